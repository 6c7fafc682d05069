//! The explorer: the shipped host, walked through every state that it can reach at small sizes.
//!
//! Not a model of the host but the host itself is stepped: [`Host`](regatta_core::host::Host) is plain
//! data that can be copied, compared and hashed. A [`world`] says which fleet, an
//! [`Action`](action::Action) what can happen to it, a [`Rule`](rule::Rule) what must hold, and
//! [`search`] goes through all of it breadth first.
//!
//! # What is left out, and why that loses nothing
//!
//! - **Names.** States that differ in row numbers, in generations with the same order, in the number of
//!   the epoch or in the origin of the clock are one state ([`Host::normalise`](regatta_core::host::Host::normalise)).
//!   The host compares ids, epochs and instants with each other and never with a constant, so such states
//!   have the same future, up to the names.
//! - **Time between ticks.** The host reads the clock to arm the backstop and to ask at a tick whether it
//!   is due. That answer is an action of its own here, on time or long after; in between the clock stands.
//!   A tick before its time does what an edge does, which is checked in each state.
//! - **Pending edges.** An edge carries no value, which is checked too, so a bag of edges on their way has no
//!   content. An edge may come in any state any number of times: that is every way to be late, doubled and
//!   reordered, and each walk without one is the walk in which it was lost.
//! - **Reports of units that are gone.** Their ids match nothing ever again and are one id. Instead of keeping
//!   such a report on its way, each state is shown it from every seat and must refuse it. A report of a
//!   unit that ended and was not released is kept, and may come at any time.
//! - **Polls where nothing waits.** They look at the guard as an edge does, and an edge may come at any time.
//! - **Memory that nobody reads.** Key and outcome of a unit that was read, and strikes that the next tick
//!   will void anyway (`normalise` again).
//! - **Panics of units.** How a unit ended is written to its row and read from there; nothing looks at it.
//! - **The order among units that were read.** They are only waiting to be released.
//!
//! # What liveness rests on
//!
//! Under a guard that stays open a unit is granted, begun and reported, and no step takes one back, so
//! 3·waiting + 2·leased + running falls with each step of a driver and its seats. From each state a tick
//! at the deadline, if there is one, and reports in some order bring it to zero without an edge; and whatever
//! else happens on the way leads to a state of the same walk, for which the same was checked.

pub mod action;
mod check;
pub mod fingerprint;
mod oracle;
pub mod report;
pub mod rule;
pub mod search;
pub mod state;
pub mod step;
mod tables;
pub mod trace;
pub mod world;
