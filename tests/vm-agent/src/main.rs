//! The only program besides `regatta` in a small virtual machine with a real kernel.
//!
//! `cargo xtask vm` boots the machine with this as its first process. It mounts what is needed, runs the
//! scenarios for the machine's size, writes what came of each to the first serial port, and switches the
//! machine off. A scenario makes control groups with real limits and looks at `regatta` from the outside, as
//! whoever runs it would; the few that look at the backend's own types run this file again inside the
//! group.

#[cfg(target_os = "linux")]
mod guest;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    guest::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(2)
}
