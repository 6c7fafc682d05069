//! The affinity mask of the calling thread.

use crate::cgroup::CpuSet;

/// The mask, if the platform tells. It grows with the machine; a mask of the fixed size that the C
/// library offers ends at 1,024 CPUs.
#[cfg(target_os = "linux")]
#[must_use]
#[expect(
    unsafe_code,
    reason = "the safe wrapper (nix's CpuSet) has the fixed size"
)]
pub fn mask() -> Option<CpuSet> {
    /// More CPUs than any kernel supports.
    const MOST_WORDS: usize = (1 << 20) / 64;
    let mut words = vec![0u64; 1024 / 64];
    loop {
        let bytes = size_of_val(words.as_slice());
        // SAFETY: the kernel writes at most `bytes` bytes to the pointer, which is valid for as many
        // and aligned for the `unsigned long`s that a `cpu_set_t` is made of. Process 0 is the
        // calling thread.
        let result = unsafe { libc::sched_getaffinity(0, bytes, words.as_mut_ptr().cast()) };
        if result == 0 {
            // `unsigned long`s in the machine's order are the same bits as 64-bit words, but on
            // 32-bit big-endian machines, which the kernel's list serves instead.
            return if cfg!(all(target_endian = "big", target_pointer_width = "32")) {
                None
            } else {
                Some(CpuSet::from_words(&words))
            };
        }
        let too_small = std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
        if !too_small || words.len() >= MOST_WORDS {
            return None;
        }
        words.resize(words.len() * 2, 0);
    }
}

/// The mask, if the platform tells.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn mask() -> Option<CpuSet> {
    None
}
