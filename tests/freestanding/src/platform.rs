//! What the compiler and the kernel ask of a program that has no library: the entry, the memory
//! functions, two system calls and a panic handler.
//!
//! Linux on x86-64 only; the core itself knows neither.
#![expect(
    unsafe_code,
    reason = "there is no library below that could hold the unsafe parts"
)]

use crate::drive;
use core::cell::UnsafeCell;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use regatta_core::unit::UnitRow;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the freestanding build knows the system calls of x86_64 Linux only");

/// What a panic exits with: what a shell reports for an abort.
const PANICKED: u8 = 134;

// The kernel enters with the stack pointer on a 16-byte boundary and the count of arguments there; a
// function expects to be called, with the boundary 8 bytes away.
core::arch::global_asm!(
    ".globl _start",
    ".p2align 4",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {entry}",
    "ud2",
    entry = sym entry,
);

extern "C" fn entry() -> ! {
    let Some(rows) = ROWS.take() else {
        exit(PANICKED)
    };
    match drive::drive(rows) {
        Ok(done) => {
            let written = writeln!(Stdout, "{done}");
            exit(if written.is_ok() { 0 } else { u8::MAX })
        }
        Err(stage) => {
            // The exit code says the same.
            let _ = writeln!(Stdout, "{stage}");
            exit(stage as u8)
        }
    }
}

/// The rows of the fleet, in static storage.
struct Rows {
    rows: UnsafeCell<[UnitRow; drive::ROWS]>,
    taken: AtomicBool,
}

// SAFETY: the only way to the cell is `take`, which gives it out once.
unsafe impl Sync for Rows {}

static ROWS: Rows = Rows {
    rows: UnsafeCell::new([UnitRow::FREE; drive::ROWS]),
    taken: AtomicBool::new(false),
};

impl Rows {
    /// The rows, the first time.
    #[expect(
        clippy::mut_from_ref,
        reason = "it gives the reference out once, which is what the flag is for"
    )]
    fn take(&'static self) -> Option<&'static mut [UnitRow; drive::ROWS]> {
        let first = !self.taken.swap(true, Ordering::AcqRel);
        // SAFETY: the flag goes from false to true once, so this is the only reference ever made.
        first.then(|| unsafe { &mut *self.rows.get() })
    }
}

/// File descriptor 1.
struct Stdout;

impl Write for Stdout {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = write(rest);
            // Negative on an error; zero would never end.
            let written = usize::try_from(written).map_err(|_| fmt::Error)?;
            rest = rest
                .get(written..)
                .filter(|_| written > 0)
                .ok_or(fmt::Error)?;
        }
        Ok(())
    }
}

/// `write(1, bytes)`: how many bytes were written, or a negative error.
fn write(bytes: &[u8]) -> isize {
    let result: isize;
    // SAFETY: system call 1 reads `bytes` and writes no memory of ours; it clobbers rcx and r11.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") 1_isize => result,
            in("rdi") 1,
            in("rsi") bytes.as_ptr(),
            in("rdx") bytes.len(),
            out("rcx") _,
            out("r11") _,
            options(nostack, readonly),
        );
    }
    result
}

fn exit(code: u8) -> ! {
    // SAFETY: system call 231, `exit_group`, ends the process and does not return.
    unsafe {
        core::arch::asm!(
            "syscall",
            in("rax") 231,
            in("rdi") u64::from(code),
            options(noreturn, nostack),
        );
    }
}

#[panic_handler]
fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    // There is nobody left to tell if this fails.
    let _ = writeln!(Stdout, "{info}");
    exit(PANICKED)
}

/// The functions that the compiler calls for copies, fills and comparisons. The copies and fills are one
/// instruction: a loop would be recognised and made a call of the very function it stands in.
mod memory {
    /// Copies `n` bytes between ranges that do not overlap.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
        // SAFETY: the caller vouches for both ranges; the direction flag is clear at every call.
        unsafe {
            core::arch::asm!(
                "rep movsb",
                inout("rcx") n => _,
                inout("rdi") to => _,
                inout("rsi") from => _,
                options(nostack, preserves_flags),
            );
        }
        to
    }

    /// Copies `n` bytes between ranges that may overlap.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
        if to.addr().wrapping_sub(from.addr()) >= n {
            // SAFETY: the caller's ranges, and `to` does not begin inside `from`, so ascending order
            // reads each byte before it is overwritten.
            return unsafe { memcpy(to, from, n) };
        }
        // SAFETY: the caller's ranges, in descending order; `n` is not zero here, and the direction
        // flag is clear again after.
        unsafe {
            core::arch::asm!(
                "std",
                "rep movsb",
                "cld",
                inout("rcx") n => _,
                inout("rdi") to.wrapping_add(n - 1) => _,
                inout("rsi") from.wrapping_add(n - 1) => _,
                options(nostack),
            );
        }
        to
    }

    /// Fills `n` bytes.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, byte: i32, n: usize) -> *mut u8 {
        // SAFETY: the caller vouches for the range; the direction flag is clear at every call.
        unsafe {
            core::arch::asm!(
                "rep stosb",
                inout("rcx") n => _,
                inout("rdi") to => _,
                in("eax") byte,
                options(nostack, preserves_flags),
            );
        }
        to
    }

    /// The difference of the first bytes that differ.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, n: usize) -> i32 {
        for i in 0..n {
            // SAFETY: `i` is below `n`, and the caller vouches for `n` bytes of both. Volatile, so that
            // the loop is not recognised either.
            let (l, r) = unsafe { (left.add(i).read_volatile(), right.add(i).read_volatile()) };
            if l != r {
                return i32::from(l) - i32::from(r);
            }
        }
        0
    }

    /// Whether the ranges differ.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, n: usize) -> i32 {
        // SAFETY: the same contract.
        unsafe { memcmp(left, right, n) }
    }
}
