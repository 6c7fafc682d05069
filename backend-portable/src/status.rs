//! The state of a fleet at one moment, for people and dashboards.

use crate::shared::{Shared, State};
use crate::workload::Workload;
use regatta_core::guard::Permits;
use regatta_core::host::HostCounters;
use regatta_core::lane::{HoldReason, LaneCounters, LaneLedger, Progress};
use regatta_core::port::Clock;
use regatta_core::posture::Posture;
use regatta_core::seat::SlotState;
use regatta_core::time::Duration;
use std::fmt;

/// One lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneStatus {
    /// The role's name.
    pub role: &'static str,
    /// How it gets on.
    pub progress: Progress,
    /// Its counts.
    pub ledger: LaneLedger,
    /// Its totals.
    pub counters: LaneCounters,
    /// Why its first waiting unit does not run, if one waits.
    pub hold: Option<HoldReason>,
    /// How long its oldest running unit has been running.
    pub oldest_running: Option<Duration>,
}

/// Why a fleet is not ready for work, though it runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NotReady {
    /// The quota fell below what a fleet needs: only critical roles go on, one unit at a time.
    BelowFloor,
    /// The fleet is closing, or closed.
    Closing,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BelowFloor => {
                "the quota is below what a fleet needs, so only critical roles go on"
            }
            Self::Closing => "the fleet is closing",
        })
    }
}

/// The fleet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetStatus {
    /// Every lane, in row order.
    pub lanes: Vec<LaneStatus>,
    /// Every seat, in order. The pins are those that say so.
    pub seats: Vec<SlotState>,
    /// The live posture.
    pub posture: Posture,
    /// The live permits.
    pub permits: Permits,
    /// Why the fleet is not ready, if it is not.
    pub not_ready: Option<NotReady>,
    /// Totals of the host.
    pub host: HostCounters,
    /// Receipts dropped before their outcome was collected.
    pub abandoned: u64,
}

impl FleetStatus {
    /// Whether every lane accounts for every unit.
    #[must_use]
    pub fn balanced(&self) -> bool {
        self.lanes.iter().all(|lane| lane.ledger.balanced())
    }
}

impl fmt::Display for FleetStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "posture {}, {} permits of which {} keyed",
            self.posture.name(),
            self.permits.total,
            self.permits.keyed
        )?;
        if let Some(reason) = self.not_ready {
            writeln!(f, "not ready: {reason}")?;
        }
        for lane in self.lanes.iter().filter(|lane| lane.ledger.submitted > 0) {
            let ledger = &lane.ledger;
            write!(
                f,
                "{:<20} {:?}: {} submitted = {} in flight + {} queued + {} held + {} resolved",
                lane.role,
                lane.progress,
                ledger.submitted,
                ledger.in_flight,
                ledger.queued,
                ledger.backlog,
                ledger.resolved
            )?;
            match lane.hold {
                Some(reason) => writeln!(f, "; held: {}", reason.label())?,
                None => writeln!(f)?,
            }
        }
        for (index, seat) in self.seats.iter().enumerate() {
            writeln!(f, "seat {index}: {seat:?}")?;
        }
        Ok(())
    }
}

impl<W: Workload> Shared<W> {
    pub(crate) fn status_of(&self, state: &State<W>) -> FleetStatus {
        let now = self.live.clock.now();
        let guard = self.guard(now);
        let host = &state.host;
        let table = host.table();
        let lanes = table
            .ids()
            .zip(table.roles)
            .map(|(role, spec)| LaneStatus {
                role: spec.name,
                progress: host.progress(role).unwrap_or(Progress::Idle),
                ledger: host.ledger(role).unwrap_or_default(),
                counters: host.lane_counters(role).unwrap_or_default(),
                hold: host.hold(role, &guard),
                oldest_running: host.oldest_running(role, now),
            })
            .collect();
        FleetStatus {
            lanes,
            seats: host
                .seats()
                .iter()
                .map(regatta_core::seat::Seat::state)
                .collect(),
            posture: if guard.posture.cordoned {
                Posture::Cordoned
            } else {
                Posture::Nominal
            },
            permits: guard.permits,
            not_ready: if host.closing().is_some() {
                Some(NotReady::Closing)
            } else {
                guard.permits.below_floor.then_some(NotReady::BelowFloor)
            },
            host: host.counters(),
            abandoned: state.slots.abandoned(),
        }
    }
}
