//! The binding under test: the serial one, on the standard library's threads.

use regatta_portable::{BootError, Census, Fleet, FleetConfig, Workload};

/// A configuration without lanes.
pub(crate) fn bare() -> FleetConfig {
    FleetConfig::serial(2).unwrap()
}

pub(crate) fn boot<W: Workload>(
    workload: W,
    config: FleetConfig,
    census: &Census,
) -> Result<Fleet<W>, BootError> {
    Fleet::boot(workload, config, census)
}
