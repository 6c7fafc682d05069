//! The affinity mask of a thread: reading it, and setting it.

#[cfg(target_os = "linux")]
mod set;

use crate::cgroup::CpuSet;

#[cfg(target_os = "linux")]
pub use set::{AffinityError, gettid, set_mask, set_mask_of};

/// Words of a mask at first: as many CPUs as the C library's type of fixed size has.
const FIRST_WORDS: usize = 1024 / 64;

/// More CPUs than any kernel supports.
const MOST_WORDS: usize = (1 << 20) / 64;

/// What came of asking for a mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// It was written.
    Written,
    /// The kernel has more CPUs than there is room for.
    TooSmall,
    /// The platform does not tell.
    Refused,
}

/// The mask of the calling thread, if the platform tells.
#[must_use]
pub fn mask() -> Option<CpuSet> {
    // Thread 0 is the calling one.
    mask_of(0)
}

/// The mask of the thread that the kernel knows by this number, if the platform tells.
#[must_use]
pub fn mask_of(tid: i32) -> Option<CpuSet> {
    grow(|words| kernel(tid, words))
}

/// Asks with ever more room. The kernel writes no part of a mask, so a fixed size fails on a machine
/// that is larger than it.
fn grow(mut ask: impl FnMut(&mut [u64]) -> Asked) -> Option<CpuSet> {
    let mut words = vec![0; FIRST_WORDS];
    loop {
        match ask(&mut words) {
            Asked::Written => return Some(CpuSet::from_words(&words)),
            Asked::TooSmall if words.len() < MOST_WORDS => words.resize(words.len() * 2, 0),
            Asked::TooSmall | Asked::Refused => return None,
        }
    }
}

#[cfg(all(
    target_os = "linux",
    not(all(target_endian = "big", target_pointer_width = "32"))
))]
#[expect(
    unsafe_code,
    reason = "the safe wrapper (nix's CpuSet) has the C library's fixed size"
)]
fn kernel(tid: i32, words: &mut [u64]) -> Asked {
    // SAFETY: the kernel writes at most as many bytes as `words` has, to where it is. The pointer is
    // aligned for the `unsigned long`s that the kernel's mask is made of; in the machine's order they
    // are the same bits as 64-bit words, but on 32-bit big-endian machines, which are left out.
    let result =
        unsafe { libc::sched_getaffinity(tid, size_of_val(words), words.as_mut_ptr().cast()) };
    if result == 0 {
        Asked::Written
    } else if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        Asked::TooSmall
    } else {
        Asked::Refused
    }
}

#[cfg(not(all(
    target_os = "linux",
    not(all(target_endian = "big", target_pointer_width = "32"))
)))]
fn kernel(_: i32, _: &mut [u64]) -> Asked {
    Asked::Refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_of_any_machine_fits() {
        for cpus in [1, 64, 1024, 1025, 5000, 1 << 20] {
            let set = grow(|words| {
                let Some(last) = words.get_mut((cpus - 1) / 64) else {
                    return Asked::TooSmall;
                };
                *last |= 1 << ((cpus - 1) % 64);
                Asked::Written
            });
            assert_eq!(set.unwrap().iter().collect::<Vec<_>>(), [cpus - 1]);
        }
    }

    #[test]
    fn a_kernel_that_is_never_satisfied_or_refuses_is_given_up() {
        let mut most = 0;
        let never = |words: &mut [u64]| {
            most = words.len();
            Asked::TooSmall
        };
        assert_eq!(grow(never), None);
        assert_eq!(most, MOST_WORDS);
        assert_eq!(grow(|_| Asked::Refused), None);
    }
}
