//! Exit codes. `docs/operations.md` lists them for operators.

use regatta_core::plan::BootRefused;
use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Ok = 0,
    /// Something outside failed: the output could not be written, a thread not be had, the source reverted a block
    /// that is not the last or is too old.
    Failed = 1,
    /// The command line or the environment is wrong.
    Usage = 2,
    /// A pool file, the base token, or the market that follows from them is wrong.
    Input = 3,
    /// A scenario did not end as it must.
    Scenario = 4,
    /// A capture cannot be read: it is damaged, of another version, or not there.
    Capture = 5,
    /// A replay did not say what it was to say.
    Differs = 6,
    /// The node is not there, not on the chain, syncing, or does not say which pools there are.
    Node = 7,
    /// The key, the executor or the ledger is not what settling needs, or the executor was not created.
    Settle = 8,
    /// The quota cannot host a fleet.
    BelowHostFloor = 10,
    /// The forced profile is not offered here.
    BindingUnavailable = 11,
    /// The shares do not fit the quota.
    Overrun = 12,
    /// More seats than a fleet can have.
    TooManySeats = 13,
    /// The role table or the host's configuration is wrong: the bot is at fault.
    BootConfig = 14,
    /// A component did not start, for a reason that has no code of its own.
    StartFailed = 15,
    /// The outcome ledger did not balance.
    FuseTripped = 20,
    /// The unit ledger did not balance at the end.
    LedgerUnbalanced = 21,
    /// The fleet stopped taking or finishing units.
    FleetFailed = 22,
    /// More pools were quarantined than may be.
    PoolsQuarantined = 23,
    /// Everything stopped in time, and something was left.
    StopIncomplete = 30,
    /// Something did not stop in time.
    StopTimedOut = 31,
}

impl Exit {
    /// Every code.
    pub const ALL: [Self; 21] = [
        Self::Ok,
        Self::Failed,
        Self::Usage,
        Self::Input,
        Self::Scenario,
        Self::Capture,
        Self::Differs,
        Self::Node,
        Self::Settle,
        Self::BelowHostFloor,
        Self::BindingUnavailable,
        Self::Overrun,
        Self::TooManySeats,
        Self::BootConfig,
        Self::StartFailed,
        Self::FuseTripped,
        Self::LedgerUnbalanced,
        Self::FleetFailed,
        Self::PoolsQuarantined,
        Self::StopIncomplete,
        Self::StopTimedOut,
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&BootRefused> for Exit {
    fn from(refused: &BootRefused) -> Self {
        match refused {
            BootRefused::BelowHostFloor { .. } => Self::BelowHostFloor,
            BootRefused::BindingUnavailable => Self::BindingUnavailable,
            BootRefused::Overrun(_) => Self::Overrun,
            BootRefused::TooManySeats { .. } => Self::TooManySeats,
            BootRefused::Table(_) => Self::BootConfig,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_documented() {
        let operations = include_str!("../../docs/operations.md");
        let mut codes = Exit::ALL.map(|exit| exit as u8);
        codes.sort_unstable();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]));
        for exit in Exit::ALL {
            let row = format!("| {} | `{exit:?}` |", exit as u8);
            assert!(
                operations.contains(&row),
                "docs/operations.md lacks the row {row}"
            );
        }
    }
}
