//! The arbitrage bot that runs on the Regatta worker fleet.
pub mod cycles;
pub mod market;
pub mod partition;
pub mod solver;
pub mod source;
