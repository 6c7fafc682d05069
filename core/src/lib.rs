//! The decisions of the Regatta worker fleet.
#![cfg_attr(not(any(test, loom)), no_std)]

pub mod budget;
pub mod dispatch;
pub mod fsm;
pub mod guard;
pub mod host;
pub mod lane;
pub mod outcome;
mod past;
pub mod plan;
pub mod port;
pub mod posture;
pub mod role;
pub mod seat;
pub mod text;
pub mod time;
pub mod unit;
pub mod wake;
