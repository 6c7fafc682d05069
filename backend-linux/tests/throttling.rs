//! A real quota of the first hierarchy: the posture sees it, and what changes is noticed.
//!
//! The test makes a group of its own, puts a copy of itself into it, and removes the group whatever
//! comes of the copy. Where it may not make one, it says so and passes.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "the helpers of a test fail as the test does; what is left out is said"
)]

use regatta_core::budget::{MilliCpu, Origin, Overrides, Quota};
use regatta_core::plan::{FleetPlan, PlanInput, Profile};
use regatta_core::posture::{Posture, PosturePolicyPatch};
use regatta_core::role::{FLEET_ROLES, WorkerRole};
use regatta_linux::cgroup::Hierarchy;
use regatta_linux::{Cause, Change, Counted, Machine, Sampler};
use regatta_portable::census::ThreadSpec;
use regatta_portable::{BINDINGS, Census, Fleet, FleetConfig, Pin, UnitContext, Workload};
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Says to the copy in the group where that is.
const INSIDE: &str = "REGATTA_TEST_GROUP";

/// What groups of this test are called, before the number of the process that made them.
const PREFIX: &str = "regatta-test-";

/// No step takes longer, on however loaded a machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a machine that has its CPUs free takes to get to 1.5 cores, and more.
const BUSY: Duration = Duration::from_secs(2);

/// A group that is gone when this is.
struct Group {
    path: PathBuf,
    child: Option<Child>,
}

impl Group {
    /// Beside the group that this process is in; `Err` says why there can be none.
    fn make() -> Result<Self, String> {
        let detection = Machine::this().detect();
        let bandwidth = detection.groups.bandwidth.ok_or("no group is to be seen")?;
        if bandwidth.hierarchy != Hierarchy::V1 {
            return Err("the CPU controller is not in the first hierarchy".to_owned());
        }
        let procs = bandwidth.view.file(0, "cgroup.procs");
        let procs = Machine::this().files().locate(&procs);
        let folder = procs.parent().ok_or("a file without a folder")?;
        // What a killed run left behind is removed if nothing is in it.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let path = folder.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = Self { path, child: None };
        for (file, value) in [
            ("cpu.cfs_period_us", "100000"),
            ("cpu.cfs_quota_us", "150000"),
        ] {
            let path = group.path.join(file);
            fs::write(&path, value).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        // The kernel may need a moment until the last thread has left.
        let until = Instant::now() + PATIENCE;
        while self.path.exists() && fs::remove_dir(&self.path).is_err() && Instant::now() < until {
            pause(Duration::from_millis(1));
        }
    }
}

/// Waits on a channel that nobody sends on.
fn pause(time: Duration) {
    let (_never, pace) = mpsc::channel::<()>();
    let _ = pace.recv_timeout(time);
}

#[test]
fn a_real_quota_cordons_and_lets_go() {
    if let Some(group) = std::env::var_os(INSIDE) {
        // Released when the copy is in the group.
        std::io::stdin()
            .lock()
            .read_line(&mut String::new())
            .unwrap();
        return inside(Path::new(&group));
    }
    let mut group = match Group::make() {
        Ok(group) => group,
        Err(why) => return eprintln!("no group can be made, nothing was tested: {why}"),
    };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["a_real_quota_cordons_and_lets_go", "--exact", "--nocapture"])
        .env(INSIDE, &group.path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let id = child.id().to_string();
    group.child = Some(child);
    fs::write(group.path.join("cgroup.procs"), id).unwrap();
    writeln!(stdin, "go").unwrap();
    let status = group.child.as_mut().unwrap().wait().unwrap();
    let path = group.path.clone();
    drop(group);
    assert!(!path.exists(), "{} is still there", path.display());
    assert!(status.success(), "the copy in the group failed");
}

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

/// What runs in the group: a fleet that believes in two cores, and one thread beside its own.
struct Rig {
    group: PathBuf,
    census: Census,
    fleet: Fleet<Burn>,
}

impl Rig {
    fn new(group: &Path, quota: Quota) -> Self {
        let mut overrides = Overrides::none();
        overrides
            .set(&FLEET_ROLES, "quota", "2000", Origin::CommandLine)
            .unwrap();
        let plan = FleetPlan::derive(&PlanInput {
            table: &FLEET_ROLES,
            quota,
            profile: Profile::Auto,
            overrides: &overrides,
            bindings: BINDINGS,
        });
        let config = FleetConfig::new(&FLEET_ROLES, plan.unwrap()).lane(WorkerRole::Resolve, 4);
        let census = Census::new();
        Self {
            group: group.to_owned(),
            fleet: Fleet::boot(Burn, config, &census).unwrap(),
            census,
        }
    }

    /// Burns on two threads until `done`, which is asked every few milliseconds.
    fn burn_until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let stop = Arc::new(AtomicBool::new(false));
        let beside = {
            let stop = Arc::clone(&stop);
            let spec = ThreadSpec::one("test", "beside");
            self.census.spawn(spec, move || burn(&stop)).unwrap()
        };
        let unit = self.fleet.submit(WorkerRole::Resolve, 0, Arc::clone(&stop));
        let reached = until(&mut done);
        stop.store(true, Ordering::Relaxed);
        assert!(unit.unwrap().wait().unwrap().done().is_some());
        beside.join().unwrap();
        assert!(reached, "{what} did not happen within {PATIENCE:?}");
    }

    fn enter_new_group(&self, quota: &str) {
        fs::create_dir(&self.group).unwrap();
        self.set_quota(quota);
        enter(&self.group);
    }

    fn leave_and_remove_group(&self) {
        enter(self.group.parent().unwrap());
        let gone = until(&mut || fs::remove_dir(&self.group).is_ok());
        assert!(gone, "the group could not be removed");
    }

    fn set_quota(&self, us: &str) {
        fs::write(self.group.join("cpu.cfs_quota_us"), us).unwrap();
    }
}

/// Moves this process.
fn enter(group: &Path) {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
}

fn until(done: &mut dyn FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if done() {
            return true;
        }
        pause(Duration::from_millis(5));
    }
    false
}

/// Throttled periods of the group so far.
fn throttled() -> u64 {
    let machine = Machine::this();
    let counted = Counted::find(machine.files(), &machine.detect()).unwrap();
    counted.counters.nr_throttled.unwrap()
}

fn inside(group: &Path) {
    let detection = Machine::this().detect();
    assert_eq!(detection.groups.quota.bound.unwrap().milli(), 1500);
    let (above, level) = detection.groups.limiting().unwrap();
    assert_eq!(
        (above, level.file.ends_with(b"cpu.cfs_quota_us")),
        (0, true)
    );
    let rig = Rig::new(group, detection.quota());
    let posture = rig.fleet.posture();
    let mut patch = PosturePolicyPatch::default();
    for (key, value) in [
        ("cordon_enter_window_ms", "1000"),
        ("cordon_duty_window_ms", "500"),
        ("cordon_exit_clean_ms", "500"),
    ] {
        patch.set(key, value).unwrap();
    }
    posture.retune(&patch).unwrap();

    // Throttled long before anybody looked. A machine whose CPUs others need does not get to 1.5
    // cores; then the quota is made one that it gets to.
    let began = Instant::now();
    let mut lowered = false;
    rig.burn_until("throttling", || {
        // Once: setting a quota fills it up again.
        if !lowered && began.elapsed() > BUSY {
            rig.set_quota("30000");
            lowered = true;
        }
        throttled() >= 4
    });
    let mut sampler = Sampler::new(Machine::this(), posture.now());
    sampler.work(posture, true);
    assert_eq!(
        posture.posture(),
        Posture::Nominal,
        "the past is no present"
    );
    sampler.work(posture, false);

    cordons_within_a_second(&rig, &mut sampler);
    // Nothing works and nothing throttles; the samples go on until the cordon has ended.
    let lifted = until(&mut || {
        sampler.poll(posture);
        posture.posture() == Posture::Nominal
    });
    assert!(lifted, "the cordon did not end");
    assert_eq!(sampler.due(posture), None, "an idle fleet is watched");

    changes_are_noticed(&rig, &mut sampler);
}

fn cordons_within_a_second(rig: &Rig, sampler: &mut Sampler) {
    let posture = rig.fleet.posture();
    let before = throttled();
    let mut real = None;
    let mut entered = None;
    sampler.work(posture, true);
    rig.burn_until("a cordon", || {
        if throttled() >= before + 2 {
            real.get_or_insert_with(Instant::now);
        }
        sampler.poll(posture);
        if posture.posture() == Posture::Cordoned {
            entered = Some(Instant::now());
        }
        entered.is_some()
    });
    sampler.work(posture, false);
    // By duty a cordon may come before the second event.
    let late = match (real, entered) {
        (Some(real), Some(entered)) => entered.saturating_duration_since(real),
        _ => Duration::ZERO,
    };
    assert!(
        late <= Duration::from_secs(1),
        "{late:?} after the throttling"
    );
}

fn changes_are_noticed(rig: &Rig, sampler: &mut Sampler) {
    let posture = rig.fleet.posture();
    let milli = |change: &Change| {
        let bound = |detection: &regatta_linux::Detection| {
            detection.groups.quota.bound.map(MilliCpu::milli)
        };
        (bound(&change.before), bound(&change.after))
    };
    let next = |sampler: &mut Sampler| {
        let mut found = None;
        sampler.work(posture, true);
        let noticed = until(&mut || {
            found = sampler.poll(posture);
            found.is_some()
        });
        assert!(noticed, "the change was not noticed");
        found.unwrap()
    };
    let now = milli_of(sampler);
    rig.set_quota("120000");
    let lowered = next(sampler);
    assert_eq!(lowered.cause, Cause::Changed);
    assert_eq!(milli(&lowered), (Some(now), Some(1200)));
    rig.set_quota("-1");
    assert_eq!(milli(&next(sampler)), (Some(1200), None));
    rig.set_quota("150000");
    assert_eq!(milli(&next(sampler)), (None, Some(1500)));

    // Moved out, and the group removed: the kept file says so at the next reading.
    rig.leave_and_remove_group();
    let moved = next(sampler);
    assert_eq!(moved.cause, Cause::Moved);
    assert_eq!(milli(&moved).0, Some(1500));
    let text = moved.to_string();
    assert!(
        text.contains("moved") && text.contains("1.5 cores"),
        "{text}"
    );

    // Into a group of that name, and then, between two looks, into another one of the same name: the
    // kept file is of the first one still, and says that it is gone.
    rig.enter_new_group("120000");
    let moved = next(sampler);
    assert_eq!((moved.cause, milli(&moved).1), (Cause::Moved, Some(1200)));
    rig.leave_and_remove_group();
    rig.enter_new_group("150000");
    let gone = next(sampler);
    assert_eq!(gone.cause, Cause::GroupGone);
    assert_eq!(milli(&gone), (Some(1200), Some(1500)));
    rig.leave_and_remove_group();
}

fn milli_of(sampler: &Sampler) -> u32 {
    let quota = sampler.reader().detection().groups.quota;
    quota.bound.map_or(0, MilliCpu::milli)
}
