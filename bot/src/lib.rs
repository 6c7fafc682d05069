//! The arbitrage bot that runs on the Regatta worker fleet.
//!
//! From a stream of blocks it keeps pool states, finds arbitrage cycles, solves what each block
//! touched, simulates the good ones exactly and publishes the best. `docs/tour.md` walks through it.

mod app;
pub mod capture;
pub mod cli;
pub mod config;
pub mod cycles;
pub mod dispatch;
pub mod doctor;
pub mod drain;
pub mod evm;
pub mod exit;
mod follow;
pub mod health;
pub mod machine;
pub mod market;
pub mod node;
pub mod partition;
pub mod pipeline;
pub mod plan;
mod publish;
pub mod replay;
pub mod report;
pub mod run;
pub mod scenario;
pub mod settle;
pub mod solver;
pub mod source;
mod start;
mod tally;
pub mod verify;

pub use app::Signals;
