//! The decisions of the Regatta worker fleet.
#![no_std]
pub mod time;
