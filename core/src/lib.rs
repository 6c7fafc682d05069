//! The decisions of the Regatta worker fleet: pure state machines without a clock, a thread, a file or
//! an allocator.
//!
//! [`host`] is the centre: lanes, seats and units, driven by inputs with an explicit `now` and the live
//! [`guard`]. [`plan`] and [`budget`] say how a quota becomes a fleet, [`posture`] when work is held
//! back, [`outcome`] that each result is there once, [`dispatch`] when a pipe has stalled, [`component`] in
//! which order everything starts and stops, and [`wake`] how a thread sleeps without missing anything.
//! [`port`] is what a platform has to deliver.
//!
//! # Invariants
//! - Nothing here blocks, allocates, reads a clock or panics on input of any kind.
//! - Every rule is stated in one place, and every state machine is declared once ([`mod@fsm`]).
#![cfg_attr(not(any(test, loom)), no_std)]

pub mod affinity;
pub mod budget;
pub mod component;
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
