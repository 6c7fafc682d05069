//! The simulator: a whole fleet on the shipped core, on virtual time, one seed a schedule.
//!
//! The host, the seats, the posture owner, the live guard, the plan, the fuse and the dispatch seam are
//! those of the core. What is simulated is the binding around them, its threads, and everybody who submits
//! or interferes. A [`script`] says what happens, a seed gives a script ([`generate`]), and a [`rule`]
//! is what must hold of each run. A failure is a seed; [`run::shrink`] cuts its script down to what is
//! needed and prints it as a test.
//!
//! # What a step is
//!
//! Threads take turns in atomic steps: a critical section, the setting of a bell, a look at a wake word, the
//! declaration of a sleeper, its last look, its block. Whichever thread can take a step may take the next
//! one. Time passes only where the script says so, and then from event to event.
//!
//! # The binding
//!
//! One lock guards the host and a mailbox a seat. Whoever brings an input takes the lock, hands it in, polls
//! grants until there are none, puts each into its seat's mailbox, lets go and rings the bells of those seats.
//! A seat clears its bell, begins what is in its mailbox and runs it outside the lock, or sleeps; one seat
//! that sleeps has the host's deadline, the timekeeper. Who arms the backstop while nobody has it, or is the
//! timekeeper and gets a unit, rings an idle seat to take it over. [`bug`] has ways to get this wrong.
//!
//! # Stolen time
//!
//! Liveness is a bound: a unit that has a seat, and that the guard allows, runs within Δ. What the script
//! steals does not count: while the process is stopped, while a thread is stalled, and from the moment at which
//! a timer is due until it fires late.
//!
//! # Invariants
//! - A script and a bug are all that a run depends on.

mod binding;
pub mod bug;
mod check;
mod clients;
pub mod coverage;
mod fault;
mod fleet;
pub mod generate;
mod receipts;
mod reference;
#[cfg(test)]
mod regressions;
pub mod report;
pub mod rng;
pub mod rule;
pub mod run;
mod sampler;
pub mod script;
mod seam;
#[cfg(test)]
mod tests;
mod thread;
mod unit;
mod world;
