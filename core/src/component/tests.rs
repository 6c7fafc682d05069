//! The parts one by one, and the sentences about a whole that are easiest to read as a story. What holds for
//! every graph and every order of answers is in `tests/components` of the crate.

mod deadline;
mod graph;
mod health;
mod reconnect;
mod report;
mod rig;
mod supervisor;
