//! A fleet of sixteen rows, driven through everything that happens to one, with nothing below it.
//!
//! `cargo xtask no-std` builds this with `--cfg freestanding`: no `std`, no `alloc`, no C library and no
//! start files, only the core and `platform.rs`. Any other build is an ordinary program that does
//! the same, so that lints and tests see the drive as they see all code.
//!
//! It prints one line and exits with 0, or with the number of the [`Stage`](drive::Stage) that failed.
#![cfg_attr(freestanding, no_std, no_main)]

mod drive;
#[cfg(freestanding)]
mod platform;

/// Linked by request only, to see that it does not link.
#[cfg(feature = "alloc")]
extern crate alloc;

/// Something that needs an allocator, so that the linked crate is used.
#[cfg(feature = "alloc")]
#[must_use]
pub fn shared(word: u64) -> alloc::sync::Arc<u64> {
    alloc::sync::Arc::new(word)
}

#[cfg(not(freestanding))]
fn main() -> std::process::ExitCode {
    use std::io::Write;

    let mut rows = [regatta_core::unit::UnitRow::FREE; drive::ROWS];
    let said = match drive::drive(&mut rows) {
        Ok(done) => (0, format!("{done}\n")),
        Err(stage) => (stage as u8, format!("{stage}\n")),
    };
    let written = std::io::stdout().write_all(said.1.as_bytes());
    std::process::ExitCode::from(if written.is_ok() { said.0 } else { u8::MAX })
}
