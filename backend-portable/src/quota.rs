//! What std alone can say about the CPU quota.
//!
//! [`std::thread::available_parallelism`] looks at the affinity mask and, on Linux, at the cgroup
//! limits, and rounds the result down to whole CPUs, or up where less than one is left. So the
//! answer is an approximation and says so in its evidence. Backends that can read the limits
//! themselves do not use this module.

use regatta_core::budget::{BoundedBy, Confidence, Evidence, MilliCpu, Quota, Reason};

/// The quota as far as std can tell.
#[must_use]
pub fn platform_quota() -> Quota {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one caller: the evidence says that the platform rounded"
    )]
    let cpus = std::thread::available_parallelism();
    match cpus {
        Ok(cpus) => Quota {
            bound: Some(MilliCpu::from_cores(
                u16::try_from(cpus.get()).unwrap_or(u16::MAX),
            )),
            evidence: Evidence {
                bounded_by: BoundedBy::Platform,
                level: None,
                confidence: Confidence::Approximate,
                reason: Reason::PlatformRounded,
            },
        },
        Err(_) => Quota::unknown(Reason::Unreadable),
    }
}
