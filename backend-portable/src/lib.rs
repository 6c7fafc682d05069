//! The portable backend of the Regatta worker fleet: std alone, any platform.
//!
//! It runs the serial tier: one cycle thread takes every unit, over the same
//! [`Host`](regatta_core::host::Host) that every other backend drives. It is also the reference that
//! they are compared with.
//!
//! A user writes one trait, [`Workload`], and boots a [`Fleet`]:
//!
//! ```
//! use regatta_core::role::WorkerRole;
//! use regatta_portable::{Census, Fleet, FleetConfig, Pin, UnitContext, Workload};
//!
//! struct Squares;
//!
//! impl Workload for Squares {
//!     type Unit = u64;
//!     type Output = u64;
//!     type Arena = ();
//!     fn arena(&self, _: Pin) {}
//!     fn run(&self, unit: u64, (): &mut (), _: &UnitContext) -> u64 {
//!         unit * unit
//!     }
//! }
//!
//! let config = FleetConfig::serial(2)?.lane(WorkerRole::Resolve, 64);
//! let fleet = Fleet::boot(Squares, config, &Census::new())?;
//! let receipt = fleet.submit(WorkerRole::Resolve, 0, 12)?;
//! assert_eq!(receipt.wait()?.done(), Some(144));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allotment;
mod arenas;
mod bell;
pub mod census;
pub mod clock;
mod config;
mod fleet;
mod live;
pub mod platform;
pub mod quota;
mod receipt;
pub mod runtime;
mod seats;
mod shared;
mod slots;
mod status;
mod workload;

pub use allotment::QuotaChange;
pub use census::Census;
pub use config::{AlarmAction, AlarmReport, BINDINGS, BootError, FleetConfig};
pub use fleet::{CloseReport, Fleet, SubmitError};
pub use live::{EdgeDelivery, PostureControl};
pub use receipt::{Ended, Failure, Receipt, RoomError, WaitError, WouldDeadlock};
pub use status::{FleetStatus, LaneStatus, NotReady};
pub use workload::{Pin, UnitContext, Workload};
