//! Setting the affinity mask of a thread.
//!
//! # Invariants
//! - A mask is set as a whole or not at all. The kernel drops the CPUs of a mask that are not there or
//!   not allowed and takes the rest; here that is an error, and the mask from before is put back.

use super::mask_of;
use crate::cgroup::CpuSet;
use std::io;
use thiserror::Error;

/// A mask was not set.
#[derive(Debug, Error)]
pub enum AffinityError {
    /// It has no CPU.
    #[error(
        "affinity of thread {tid}: the set of CPUs is empty: it takes one at least (errno {errno}, EINVAL)"
    )]
    Empty {
        /// The thread.
        tid: i32,
        /// What the kernel says to that.
        errno: i32,
    },
    /// The kernel refused.
    #[error("affinity of thread {tid} to CPUs {cpus}: {source}: it takes {takes}")]
    Refused {
        /// The thread.
        tid: i32,
        /// What was asked for.
        cpus: CpuSet,
        /// What would be right.
        takes: String,
        /// What the kernel said, with its errno.
        source: io::Error,
    },
    /// The kernel took some of the CPUs.
    #[error(
        "affinity of thread {tid} to CPUs {cpus}: only {taken} of them are there and allowed: it takes those alone"
    )]
    InPart {
        /// The thread.
        tid: i32,
        /// What was asked for.
        cpus: CpuSet,
        /// What the kernel took of it.
        taken: CpuSet,
    },
}

impl AffinityError {
    /// The kernel's error number; `None` if the kernel did not see an error.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Empty { errno, .. } => Some(*errno),
            Self::Refused { source, .. } => source.raw_os_error(),
            Self::InPart { .. } => None,
        }
    }
}

/// The kernel's number of the calling thread.
#[must_use]
pub fn gettid() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// Lets the calling thread run on these CPUs alone.
pub fn set_mask(cpus: &CpuSet) -> Result<(), AffinityError> {
    set_mask_of(gettid(), cpus)
}

/// Lets the thread that the kernel knows by this number run on these CPUs alone.
pub fn set_mask_of(tid: i32, cpus: &CpuSet) -> Result<(), AffinityError> {
    if cpus.count() == 0 {
        let errno = libc::EINVAL;
        return Err(AffinityError::Empty { tid, errno });
    }
    let before = mask_of(tid);
    set(tid, cpus).map_err(|source| AffinityError::Refused {
        tid,
        cpus: cpus.clone(),
        takes: match (source.raw_os_error(), &before) {
            (Some(libc::ESRCH), _) | (_, None) => "a thread that lives".to_owned(),
            (Some(libc::EPERM), _) => "a thread of this user's, or CAP_SYS_NICE".to_owned(),
            (_, Some(before)) => {
                format!(
                    "CPUs that are there and in the thread's cpuset; it may run on {before} now"
                )
            }
        },
        source,
    })?;
    match (mask_of(tid), before) {
        (Some(taken), Some(before)) if taken != *cpus => {
            // It was in force a moment ago. If it is no longer, what is in force now is as good.
            let _: io::Result<()> = set(tid, &before);
            Err(AffinityError::InPart {
                tid,
                cpus: cpus.clone(),
                taken,
            })
        }
        _ => Ok(()),
    }
}

#[expect(
    unsafe_code,
    reason = "the safe wrapper (nix's CpuSet) has the C library's fixed size"
)]
fn set(tid: i32, cpus: &CpuSet) -> io::Result<()> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    // The kernel's own words, so that bits are where it looks for them on any machine.
    let mut words: Vec<libc::c_ulong> = Vec::new();
    for cpu in cpus.iter() {
        let place = cpu / BITS;
        if place >= words.len() {
            words.resize(place + 1, 0);
        }
        words[place] |= 1 << (cpu % BITS);
    }
    let size = size_of_val(words.as_slice());
    // SAFETY: the kernel reads as many bytes as `words` has, from where it is, and writes none.
    let result = unsafe { libc::sched_setaffinity(tid, size, words.as_ptr().cast()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
