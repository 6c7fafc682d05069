//! Work that takes as much CPU as it can get, and a fleet whose posture follows from that.

use super::failure::Failure;
use super::until;
use regatta_core::budget::{Origin, Overrides};
use regatta_core::plan::{FleetPlan, PlanInput, Profile};
use regatta_core::posture::{Posture, PosturePolicyPatch};
use regatta_core::role::{FLEET_ROLES, WorkerRole};
use regatta_linux::{Machine, Sampler};
use regatta_portable::census::ThreadSpec;
use regatta_portable::{BINDINGS, Census, Fleet, FleetConfig, Pin, UnitContext, Workload};
use serde_json::json;
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// The windows of the policy, short enough to be waited for.
const POLICY: [(&str, &str); 3] = [
    ("cordon_enter_window_ms", "1000"),
    ("cordon_duty_window_ms", "500"),
    ("cordon_exit_clean_ms", "500"),
];

/// A unit burns until it is told to stop.
struct Burn;

impl Workload for Burn {
    type Unit = Arc<AtomicBool>;
    type Output = ();
    type Arena = ();

    fn arena(&self, _: Pin) {}

    fn run(&self, stop: Arc<AtomicBool>, (): &mut (), _: &UnitContext) {
        burn(&stop);
    }
}

fn burn(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

fn burners(
    census: &Census,
    count: u16,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<JoinHandle<()>>, Failure> {
    let one = |number| {
        let stop = Arc::clone(stop);
        let spec = ThreadSpec::one("agent", &format!("burn-{number}"));
        census.spawn(spec, move || burn(&stop)).map_err(other)
    };
    (0..count).map(one).collect()
}

fn other(error: impl Display) -> Failure {
    Failure::Other(error.to_string())
}

/// Burns on so many threads until the process is killed.
pub(crate) fn burn_for_good(threads: u16) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for thread in burners(&Census::new(), threads, &stop)? {
        thread
            .join()
            .map_err(|_| other("a burning thread panicked"))?;
    }
    Ok(())
}

/// A fleet that believes in two cores burns on `threads` threads until it is cordoned, and then rests
/// until the cordon ends. It says when each was, and fails where one does not come.
pub(crate) fn run(threads: u16) -> Result<(), Failure> {
    let census = Census::new();
    let fleet = boot(&census)?;
    let posture = fleet.posture();
    let mut patch = PosturePolicyPatch::default();
    for (key, value) in POLICY {
        patch.set(key, value).map_err(other)?;
    }
    posture.retune(&patch).map_err(other)?;
    let mut sampler = Sampler::new(Machine::this(), posture.now());
    let tell = |posture: Posture, began: Instant, sampler: &Sampler| {
        let quota = sampler.reader().detection().groups.quota;
        let record = json!({
            "posture": posture.name(),
            "after_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            "limit": quota.bound.map(regatta_core::budget::MilliCpu::milli),
        });
        writeln!(std::io::stdout(), "{record}").map_err(Failure::io("write", "stdout"))
    };

    let began = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    let beside = burners(&census, threads.saturating_sub(1), &stop)?;
    let unit = fleet.submit(WorkerRole::Resolve, 0, Arc::clone(&stop));
    let unit = unit.map_err(|_| other("the unit was refused"))?;
    sampler.work(posture, true);
    let entered = comes(Posture::Cordoned, &fleet, &mut sampler);
    stop.store(true, Ordering::Relaxed);
    unit.wait()
        .map_err(|_| other("the unit did not end"))?
        .done()
        .ok_or_else(|| other("the unit was not done"))?;
    for thread in beside {
        thread
            .join()
            .map_err(|_| other("a burning thread panicked"))?;
    }
    entered?;
    tell(Posture::Cordoned, began, &sampler)?;

    let began = Instant::now();
    sampler.work(posture, false);
    comes(Posture::Nominal, &fleet, &mut sampler)?;
    tell(Posture::Nominal, began, &sampler)?;
    if sampler.due(posture).is_some() {
        return Err(other("a fleet that is idle and nominal is watched"));
    }
    Ok(())
}

fn boot(census: &Census) -> Result<Fleet<Burn>, Failure> {
    let mut overrides = Overrides::none();
    overrides
        .set(&FLEET_ROLES, "quota", "2000", Origin::CommandLine)
        .map_err(other)?;
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Machine::this().detect().quota(),
        profile: Profile::Serial,
        overrides: &overrides,
        bindings: BINDINGS,
    });
    let config = FleetConfig::new(&FLEET_ROLES, plan.map_err(other)?).lane(WorkerRole::Resolve, 4);
    Fleet::boot(Burn, config, census).map_err(other)
}

fn comes(wanted: Posture, fleet: &Fleet<Burn>, sampler: &mut Sampler) -> Result<(), Failure> {
    let posture = fleet.posture();
    until(
        &format!("the posture {}", wanted.name()),
        || {
            sampler.poll(posture);
            Ok((posture.posture() == wanted).then_some(()))
        },
        || posture.posture().name().to_owned(),
    )
}
