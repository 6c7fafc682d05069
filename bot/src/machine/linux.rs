//! What the Linux kernel says.

use super::{Findings, Level, Limit, Throttle, Wake};
use crate::cli::{PlanArgs, WakeArg};
use crate::pipeline::Watch;
use regatta_core::affinity::SeatAffinity;
use regatta_linux::cgroup::{self, View};
use regatta_linux::detect::LevelSays;
use regatta_linux::wake::{Placement, WakeChoice, WakeKind, choose, measure};
use regatta_linux::{Audit, Change, Counted, LinuxSeats, Machine, MachineError, Sampler};
use regatta_portable::{BootError, Census, Fleet, FleetConfig, Workload};
use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::time::Duration;

pub use regatta_linux::BINDINGS;

/// A copy of a machine cannot be looked at.
pub type LookError = MachineError;

/// This process on this machine.
#[must_use]
pub fn this() -> Findings {
    look(&Machine::this())
}

/// A copy of a machine.
pub fn copy(root: &Path) -> Result<Findings, LookError> {
    Ok(look(&Machine::copy(root)?))
}

fn look(machine: &Machine) -> Findings {
    let found = machine.detect();
    let groups = &found.groups;
    let levels = groups.bandwidth.as_ref().map(|bandwidth| &bandwidth.levels);
    Findings {
        groups: groups.quota,
        quota: found.quota(),
        limit: groups.limiting().map(|(above, level)| Limit {
            level: cgroup::show(&level.path),
            above: u16::try_from(above).unwrap_or(u16::MAX),
            file: cgroup::show(&level.file),
        }),
        levels: levels.into_iter().flatten().map(level).collect(),
        hidden_above: groups
            .bandwidth
            .as_ref()
            .is_some_and(|bandwidth| hidden_above(&bandwidth.view, &bandwidth.levels)),
        skipped_lines: groups.skipped_lines,
        cpus: found.cpus.allowed.as_ref().map(ToString::to_string),
        allowed: found.cpus.allowed_cpus(),
        throttle: Counted::find(machine.files(), &found).map(|counted| Throttle {
            nr_periods: counted.counters.nr_periods,
            nr_throttled: counted.counters.nr_throttled,
            throttled_ns: counted.counters.throttled_ns,
            source: cgroup::show(&counted.file),
        }),
    }
}

/// A mount whose root is not the hierarchy's hides what is above. So does a namespace; there the root
/// has a file of limits, which the true root never has in the second hierarchy.
fn hidden_above(view: &View, levels: &[regatta_linux::detect::Level]) -> bool {
    let root = levels.last();
    let has_file = root.is_some_and(|root| {
        root.file.ends_with(b"/cpu.max") && !matches!(root.says, LevelSays::NotEnabled)
    });
    view.hidden_above() > 0 || has_file
}

fn level(level: &regatta_linux::detect::Level) -> Level {
    let (limit, says) = match level.says {
        LevelSays::Limit(milli) => (Some(milli), "a limit"),
        LevelSays::Unlimited => (None, "no limit"),
        LevelSays::NotEnabled => (None, "no limit file"),
        LevelSays::NoBandwidthControl => (None, "no bandwidth control in this kernel"),
        LevelSays::Malformed => (None, "something that is no limit"),
        LevelSays::Unreadable => (None, "could not be read"),
    };
    Level {
        path: cgroup::show(&level.path),
        file: cgroup::show(&level.file),
        limit,
        says,
    }
}

/// How the threads of seats are woken, and where they run.
#[derive(Clone, Debug)]
pub struct Seats {
    platform: LinuxSeats,
    because: String,
}

impl Seats {
    /// As the operator wants it and the kernel offers it.
    #[must_use]
    pub fn choose(args: &PlanArgs, affinity: SeatAffinity) -> Self {
        let choice = match args.wake {
            WakeArg::Auto => WakeChoice::Auto,
            WakeArg::Futex => WakeChoice::Kind(WakeKind::Futex),
            WakeArg::Eventfd => WakeChoice::Kind(WakeKind::Eventfd),
            WakeArg::IoUring => WakeChoice::Kind(WakeKind::IoUring),
        };
        // No seat of the bot waits for a descriptor.
        let picked = choose(choice, false);
        tracing::info!("{picked}");
        let platform = LinuxSeats::new(picked.kind);
        let allowed = Machine::this().detect().cpus.allowed;
        Self {
            platform: allowed.map_or(platform.clone(), |cpus| platform.bind(affinity, cpus)),
            because: picked.reason,
        }
    }

    /// The wake and why it is that one.
    #[must_use]
    pub fn wake(&self) -> (&'static str, String) {
        (self.platform.wake().name(), self.because.clone())
    }

    /// Boots a fleet on these seats.
    pub fn boot<W: Workload>(
        &self,
        workload: W,
        config: FleetConfig,
        census: &Census,
    ) -> Result<Fleet<W>, BootError> {
        Fleet::boot_on(&self.platform, workload, config, census)
    }
}

/// Whether the process has the threads that the census knows, and no others.
#[must_use]
pub fn reconciled(census: &Census) -> bool {
    let audit = Audit::of(census);
    if let Ok(audit) = &audit
        && !audit.is_reconciled()
    {
        tracing::warn!("{audit}");
    }
    audit.is_ok_and(|audit| audit.is_reconciled())
}

/// The ways to wake that this kernel has.
#[must_use]
pub fn wakes() -> Vec<Wake> {
    let offers = regatta_linux::wake::offered();
    offers
        .into_iter()
        .map(|offer| Wake {
            kind: offer.kind.name(),
            offered: offer.refusal.is_none(),
            says: offer
                .refusal
                .map_or_else(|| measured(offer.kind), |refusal| refusal.reason),
        })
        .collect()
}

/// What a wake of this kind is like here: a few round trips, which is enough to see what is out of line.
fn measured(kind: WakeKind) -> String {
    const ROUNDS: u32 = 200;
    let across = measure(kind, ROUNDS, Placement::AcrossCpus, &Census::new());
    // A process on one CPU has no other to wake.
    match across.or_else(|_| measure(kind, ROUNDS, Placement::SameCpu, &Census::new())) {
        Ok(measured) => format!(
            "a wake took {} ns at the median of {} and {} ns at p99, just now",
            measured.median / 2,
            measured.rounds,
            measured.p99 / 2
        ),
        Err(error) => format!("not measured: {error}"),
    }
}

/// Takes a change of what bounds the process.
type TakeChange<'a> = Box<dyn Fn(&Change) + 'a>;

/// Samples the kernel's throttling for a fleet's posture while the pump waits, and tells the fleet when
/// the quota is another one.
pub struct Sampling<'a> {
    posture: &'a regatta_portable::PostureControl,
    changed: TakeChange<'a>,
    sampler: RefCell<Sampler>,
}

impl fmt::Debug for Sampling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampling").finish_non_exhaustive()
    }
}

impl<'a> Sampling<'a> {
    /// Samples this process, idle so far, for `fleet`.
    #[must_use]
    pub fn new<W: Workload>(fleet: &'a Fleet<W>) -> Self {
        let posture = fleet.posture();
        Self {
            posture,
            changed: Box::new(|change| {
                let cpus = change.after.cpus.allowed_cpus().count;
                fleet.requota(change.after.quota(), Some(cpus).filter(|cpus| *cpus > 0));
            }),
            sampler: RefCell::new(Sampler::new(Machine::this(), posture.now())),
        }
    }
}

impl Watch for Sampling<'_> {
    fn work(&self, working: bool) {
        let change = self.sampler.borrow_mut().work(self.posture, working);
        if let Some(change) = change {
            (self.changed)(&change);
        }
    }

    fn tend(&self) -> Option<Duration> {
        let change = self.sampler.borrow_mut().poll(self.posture);
        if let Some(change) = change {
            (self.changed)(&change);
        }
        let due = self.sampler.borrow().due(self.posture)?;
        Some(due.since(self.posture.now()).into())
    }
}
