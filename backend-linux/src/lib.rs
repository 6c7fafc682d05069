//! What the Linux kernel says about the CPU that a process may use, and how its threads are woken.
//!
//! [`cgroup`] understands the kernel's texts, [`files`] reads them, [`detect`](detect::detect) puts
//! them together. [`ThrottleReader`] reads the counters of throttling again and again and notices when
//! what bounds the process changes; a [`Sampler`] feeds them to a fleet's posture.
//!
//! All of that but the affinity mask of the running process is plain text in files, so the crate builds
//! everywhere and reads a copy of a Linux machine anywhere.
//!
//! `wake` is how threads sleep and are woken; it is there on Linux alone.

pub mod affinity;
#[cfg(target_os = "linux")]
mod audit;
pub mod cgroup;
pub mod detect;
pub mod files;
mod machine;
mod sampler;
#[cfg(target_os = "linux")]
mod seats;
mod throttle;
#[cfg(target_os = "linux")]
pub mod wake;

#[cfg(target_os = "linux")]
pub use audit::Audit;
pub use detect::{Detection, detect};
pub use machine::{Machine, MachineError};
pub use sampler::Sampler;
#[cfg(target_os = "linux")]
pub use seats::{BINDINGS, LinuxSeats};
pub use throttle::{Cause, Change, Counted, Reading, ThrottleReader};
