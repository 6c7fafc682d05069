//! The decisions of the Regatta worker fleet.
#![cfg_attr(not(test), no_std)]
pub mod fsm;
pub mod guard;
pub mod port;
pub mod role;
pub mod time;
