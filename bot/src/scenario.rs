//! The incident as a scenario: a cordon during the crawl, and every edge lost.
//!
//! The fleet that this one replaced stopped for ever at 9,955 registered paths: posture changed, no
//! message came, and the host slept on a full backlog while the crawl waited for its 32 receipts. Here
//! the same happens on purpose, and the backstop alone must carry the crawl to its end.

use crate::pipeline::{
    Arbitrage, CrawlError, CrawlStep, Next, REGISTRATION_WINDOW, Unwatched, crawl,
};
use crate::report::{ScenarioRecord, ScenarioTiming};
use regatta_core::lane::HoldReason;
use regatta_core::plan::LaneBinding;
use regatta_core::posture::{
    PolicyError, Posture, PostureOutcome, PosturePolicyPatch, ThrottleSample,
};
use regatta_core::role::WorkerRole;
use regatta_core::time::Duration;
use regatta_portable::census::{CensusError, ThreadSpec};
use regatta_portable::{Census, Fleet, PostureControl};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Instant;
use thiserror::Error;

/// Paths registered when the cordon sets in.
pub const REGISTERED_AT_CORDON: usize = 9_955;

/// The incident had more paths than this to register.
pub const LEAST_PATHS: u64 = 10_500;

/// Tokens of the market that is made up for the incident: enough for that many paths.
pub const TOKENS: u32 = 256;

/// How long the samples must be clean before the cordon lifts: long enough for several backstop ticks
/// to find the guard closed, and short enough to watch.
const EXIT_CLEAN_MS: &str = "1500";

/// How often the throttle counters are sampled.
const SAMPLE_EVERY: std::time::Duration = std::time::Duration::from_millis(90);

/// Why a scenario did not end as it must.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// The market is too small for the incident.
    #[error(
        "the market has {paths} paths and the incident needs more than {LEAST_PATHS}: allow more hops \
         or name more pools"
    )]
    TooFewPaths {
        /// How many there are.
        paths: u64,
    },
    /// The crawl ended early.
    #[error(transparent)]
    Crawl(#[from] CrawlError),
    /// The policy was refused.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The sampler's thread could not be had.
    #[error(transparent)]
    Thread(#[from] CensusError),
    /// The scripted throttling did not cordon.
    #[error("two throttled periods within a second did not cordon the fleet")]
    NoCordon,
    /// The sampler's thread panicked.
    #[error("the thread that samples throttling panicked")]
    SamplerLost,
    /// The cordon did not hold what it must.
    #[error(
        "the cordon held {held} of {outstanding} outstanding registrations ({reason}); it must hold all"
    )]
    NotHeld {
        /// Units held.
        held: u64,
        /// Receipts outstanding.
        outstanding: usize,
        /// The reason that was read out.
        reason: &'static str,
    },
}

/// Runs the incident on a fleet that was booted with every posture edge suppressed.
pub fn cordon_crawl(
    fleet: &Arc<Fleet<Arbitrage>>,
    census: &Census,
) -> Result<ScenarioRecord, ScenarioError> {
    let paths: u64 = fleet.workload().world().graph().count().iter().sum();
    if paths <= LEAST_PATHS {
        return Err(ScenarioError::TooFewPaths { paths });
    }
    let mut patch = PosturePolicyPatch::default();
    patch.set("cordon_exit_clean_ms", EXIT_CLEAN_MS)?;
    fleet.posture().retune(&patch)?;

    let (go, start) = mpsc::channel();
    let sampler = spawn_sampler(fleet, census, start)?;
    let mut go = Some(go);
    let (mut cordoned, mut seen, mut resumed) = (None, None, None);
    let crawled = crawl(fleet, &Unwatched, |step| {
        if step.submitted == REGISTERED_AT_CORDON && cordoned.is_none() {
            // The counter must read exactly this, so what is outstanding is collected first.
            if step.outstanding > 0 {
                return Next::Collect;
            }
            throttle(fleet.posture());
            cordoned = Some((Instant::now(), fleet.posture().posture()));
        }
        if cordoned.is_some() && seen.is_none() && step.outstanding == REGISTRATION_WINDOW as usize
        {
            seen = Some(look(fleet, step));
            // From here on the counters are clean; the sampler ends when the cordon has lifted.
            go = None;
        }
        if seen.is_some() && resumed.is_none() && step.registered > REGISTERED_AT_CORDON {
            resumed = Some((Instant::now(), fleet.status().host.ticks));
        }
        Next::Submit
    })?;
    drop(go);
    let lifted = sampler.join().map_err(|_| ScenarioError::SamplerLost)?;
    let (
        Some((cordoned_at, Posture::Cordoned)),
        Some(seen),
        Some((resumed_at, ticks)),
        Some(lifted),
    ) = (cordoned, seen, resumed, lifted)
    else {
        return Err(ScenarioError::NoCordon);
    };
    if seen.held != seen.outstanding as u64 {
        return Err(ScenarioError::NotHeld {
            held: seen.held,
            outstanding: seen.outstanding,
            reason: seen.reason,
        });
    }
    Ok(ScenarioRecord {
        scenario: "cordon-crawl",
        paths,
        registered_at_cordon: seen.registered,
        outstanding: seen.outstanding,
        held: seen.held,
        hold_reason: seen.reason,
        registered_under_cordon: lifted.registered_before - seen.registered as u64,
        edges_delivered: fleet.status().host.edges,
        registered: crawled.registered,
        completed: crawled.registered as u64 == paths,
        timing: ScenarioTiming {
            ticks,
            cordoned_ms: (lifted.at - cordoned_at).as_secs_f64() * 1e3,
            resumed_after_ms: resumed_at
                .saturating_duration_since(lifted.at)
                .as_secs_f64()
                * 1e3,
        },
    })
}

/// What is seen while the cordon lasts.
#[derive(Clone, Copy)]
struct Seen {
    outstanding: usize,
    held: u64,
    reason: &'static str,
    registered: usize,
}

fn look(fleet: &Fleet<Arbitrage>, step: CrawlStep) -> Seen {
    let status = fleet.status();
    let lane = status.lanes.get(WorkerRole::Registrar.id().index());
    Seen {
        outstanding: step.outstanding,
        held: lane.map_or(0, |lane| lane.ledger.backlog),
        reason: lane
            .and_then(|lane| lane.hold)
            .map_or("not held", HoldReason::label),
        registered: step.registered,
    }
}

/// The end of a cordon.
struct Lifted {
    at: Instant,
    /// Registrations that had ended when the cordon still stood.
    registered_before: u64,
}

/// A sample of counters that say: throttled twice since boot, and not again.
fn sample(posture: &PostureControl, nr_throttled: u64) -> PostureOutcome {
    posture.sample(ThrottleSample {
        at: posture.now(),
        nr_throttled: Some(nr_throttled),
        throttled: Some(Duration::from_millis(10 * nr_throttled)),
    })
}

/// Two throttled periods at once.
fn throttle(posture: &PostureControl) {
    sample(posture, 0);
    sample(posture, 2);
}

/// A thread that samples clean counters from the end of `start` on, until the cordon lifts.
fn spawn_sampler(
    fleet: &Arc<Fleet<Arbitrage>>,
    census: &Census,
    start: Receiver<()>,
) -> Result<JoinHandle<Option<Lifted>>, CensusError> {
    let spec = ThreadSpec {
        kernel_name: "rg-sampler".to_owned(),
        name: "regatta/bot/sampler".to_owned(),
        owner: "scenario".to_owned(),
        role: "sampler".to_owned(),
        sizing: "one per scenario".to_owned(),
        binding: LaneBinding::Pinned,
    };
    let fleet = Arc::clone(fleet);
    census.spawn(spec, move || {
        // Ends with an error when the other side is dropped: that is the sign to begin.
        let _ = start.recv();
        // Never signalled: a receive with a time-out is this thread's clock.
        let (_never, pace) = mpsc::channel::<()>();
        while fleet.posture().posture() == Posture::Cordoned {
            let _ = pace.recv_timeout(SAMPLE_EVERY);
            let status = fleet.status();
            let lane = status.lanes.get(WorkerRole::Registrar.id().index());
            let registered_before = lane.map_or(0, |lane| lane.ledger.resolved);
            if sample(fleet.posture(), 2).transition.is_some() {
                return Some(Lifted {
                    at: Instant::now(),
                    registered_before,
                });
            }
        }
        None
    })
}
