//! The bot as components: everything long-lived has an owner, starts in order and stops within one
//! deadline.
//!
//! ```text
//! drain ◄── fleet ◄── pump ──► source        (what each needs points to it)
//!              ▲───── verifier ──▲ ◄── pump   (where blocks are verified)
//!              ▲───── settler ───▲ ◄── pump   (where trades are settled)
//! signals, health, watchdog: the control plane, up from first to last
//! ```
//!
//! # Invariants
//! - What a component shares with others is on the [`Stage`]; a component that has not started has put
//!   nothing there.
//! - The first failure decides the exit code; without one the report of the stop does.
//! - What a run says goes through the drain, in order, and the summary comes last: the fleet says it
//!   when it has drained, which is after the pump has.

mod drain;
mod fault;
mod fleet;
mod health;
mod node;
mod pump;
mod quarantine;
mod record;
mod recorder;
mod settler;
mod signals;
mod source;
mod stage;
mod threads;
mod verifier;

pub(crate) use recorder::{Counts, RecordError, record};
pub(crate) use signals::Asked;
pub use signals::Signals;
pub use stage::SetLog;
pub(crate) use stage::{Ready, Stage};
pub(crate) use threads::rows;

use crate::exit::Exit;
use crate::health::Notifier;
use crate::run::RunError;
use regatta_core::component::{
    BackoffPolicy, ComponentReport, ComponentSpec, Outcome, Plane, Report, StopReason,
    SupervisorConfig,
};
use regatta_core::time::Duration;
use regatta_portable::Census;
use regatta_portable::runtime::{Component, MOST, Registered, Runtime};
use std::sync::Arc;

/// A component with its place in the graph.
fn registered(
    name: &'static str,
    depends: &'static [&'static str],
    plane: Plane,
    component: Box<dyn Component>,
) -> Registered<'static> {
    const NEVER: Option<BackoffPolicy> = None;
    Registered {
        spec: ComponentSpec {
            name,
            depends,
            required: true,
            plane,
            reconnects: false,
            policy: NEVER,
        },
        component,
    }
}

/// A node's component with its place in the graph.
fn source_at(component: Box<dyn Component>) -> Registered<'static> {
    let mut registered = registered("source", &[], Plane::Data, component);
    registered.spec.policy = Some(node::RECONNECT);
    registered
}

/// Runs the components of `stage` to their end.
pub(crate) fn run(stage: &Arc<Stage>, signals: Option<Signals>) -> Result<(), RunError> {
    let faults = &stage.args().inject;
    let mut components = Vec::new();
    if let Some(signals) = signals {
        let of_stage = Arc::clone(stage);
        let reload = Arc::new(move || of_stage.reload());
        let component = signals::component(stage.census(), signals, reload);
        components.push(registered("signals", &[], Plane::Control, component));
    }
    if let Some(addr) = stage.args().health {
        let component = health::server(stage, addr);
        components.push(registered("health", &[], Plane::Control, component));
    }
    let notifier = Arc::new(Notifier::from_env());
    if notifier.watchdog_interval().is_some() {
        let component = health::watchdog(stage, &notifier);
        components.push(registered("watchdog", &[], Plane::Control, component));
    }
    components.extend([
        registered("drain", &[], Plane::Data, drain::component(stage)),
        registered("fleet", &["drain"], Plane::Data, fleet::component(stage)),
        match stage.asker() {
            Some(asker) => source_at(node::component(stage, asker)),
            None => registered("source", &[], Plane::Data, source::component(stage)),
        },
    ]);
    let needs: &[_] = &["drain", "fleet", "source"];
    if let Some(pipe) = stage.dispatch().verifier() {
        let component = verifier::component(stage, pipe);
        components.push(registered("verifier", needs, Plane::Data, component));
    }
    if let Some(intake) = stage.settling() {
        let component = settler::component(stage, intake);
        let mut registered = registered("settler", needs, Plane::Data, component);
        registered.spec.required = false;
        components.push(registered);
    }
    // What the pump published last is verified and settled after it has ended.
    let needs: &[_] = match (stage.dispatch().verifier(), stage.settling()) {
        (None, None) => needs,
        (Some(_), None) => &["drain", "fleet", "source", "verifier"],
        (None, Some(_)) => &["drain", "fleet", "source", "settler"],
        (Some(_), Some(_)) => &["drain", "fleet", "source", "verifier", "settler"],
    };
    let component = pump::component(stage);
    components.push(registered("pump", needs, Plane::Data, component));
    let names: Vec<_> = components.iter().map(|c| c.spec.name).collect();
    let claims = threads::claims(stage.args(), stage.plan(), &names);
    threads::granted(stage.args(), stage.plan(), &claims)?;
    let components = components
        .into_iter()
        .map(|registered: Registered<'static>| Registered {
            component: fault::around(registered.spec.name, registered.component, faults),
            ..registered
        })
        .collect();
    let runtime = Runtime::new(
        components,
        &claims,
        SupervisorConfig {
            stop_budget: Duration::from_millis(stage.args().stop_budget),
            ..SupervisorConfig::new(stage.args().source.seed)
        },
        stage.census(),
        audit(),
    )?;
    let budget = std::time::Duration::from_millis(stage.args().stop_budget);
    let report = runtime.run(move |state| health::tell(&notifier, budget, state));
    tell(&report);
    account(stage);
    stage.failure().map_or_else(|| judge(&report), Err)
}

/// Whether the process has the threads that the census knows, and no others.
fn audit() -> regatta_portable::runtime::Audit {
    Box::new(|census: &Census| crate::machine::reconciled(census))
}

/// What became of every unit, where the summary was not said.
fn account(stage: &Stage) {
    if stage.is_accounted() || stage.is_reader_gone() {
        return;
    }
    if let Some(fleet) = stage.fleet() {
        // Everything that was owed ends typed.
        fleet.close(std::time::Duration::ZERO);
        let status = fleet.status();
        let balanced = if status.balanced() {
            "balanced"
        } else {
            "not balanced"
        };
        tracing::error!("no summary was said; the ledger is {balanced}:\n{status}");
    }
}

/// Says what came of the stop.
fn tell(report: &Report<MOST>) {
    let outcome = report.outcome();
    let took = report.completed_at.since(report.started_at);
    if outcome == Outcome::Clean {
        tracing::info!(
            "stopped ({}): clean, in {} ms",
            report.reason,
            took.as_millis()
        );
        return;
    }
    tracing::error!(
        "stopped ({}): {}, in {} ms",
        report.reason,
        outcome.name(),
        took.as_millis()
    );
    for component in report.components.iter().filter(|c| !c.is_clean()) {
        tracing::error!("{}", Unclean(component));
    }
}

/// What was wrong with a component's stop, in words.
struct Unclean<'a>(&'a ComponentReport);

impl std::fmt::Display for Unclean<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(report) = self;
        write!(f, "component {}:", report.name)?;
        for (phase, code) in report.errors() {
            write!(f, " {phase} {code},")?;
        }
        match report.remaining {
            Some(left) => write!(
                f,
                " it still owns {} units, {} threads, {} handles",
                left.receipts, left.threads, left.handles
            ),
            None => f.write_str(" what it still owns is not known"),
        }
    }
}

/// What a run comes to by the report of its stop.
fn judge(report: &Report<MOST>) -> Result<(), RunError> {
    let culprits = || {
        let unclean = report.components.iter().filter(|c| !c.is_clean());
        unclean.map(|c| c.name).collect::<Vec<_>>().join(", ")
    };
    if let StopReason::StartFailed(component) | StopReason::StartTimedOut(component) = report.reason
    {
        return Err(RunError::NotStarted { component });
    }
    match report.outcome() {
        Outcome::Clean => match report.reason {
            StopReason::ComponentFailed(component) => Err(RunError::ComponentFailed { component }),
            _ => Ok(()),
        },
        Outcome::Incomplete => Err(RunError::StopIncomplete {
            components: culprits(),
        }),
        Outcome::TimedOut => Err(RunError::StopTimedOut {
            components: culprits(),
        }),
    }
}

/// The exit code of how a stop ended.
impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Clean => Self::Ok,
            Outcome::Incomplete => Self::StopIncomplete,
            Outcome::TimedOut => Self::StopTimedOut,
        }
    }
}
