//! What the tests share: units that are closures, gates, threads, and a cordon at will.

use crate::binding::bare;
use regatta_core::posture::{Posture, ThrottleSample};
use regatta_core::role::{RoleId, WorkerRole};
use regatta_core::time::{Duration as Span, Instant};
use regatta_portable::census::ThreadSpec;
use regatta_portable::{
    Census, Ended, Failure, Fleet, FleetConfig, LaneStatus, Pin, PostureControl, Receipt,
    UnitContext, Workload,
};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Far longer than anything here takes: reaching it is a failure.
pub(crate) const FAR: Duration = Duration::from_mins(1);

/// A unit: what it does.
pub(crate) type Job<O = u64> = Box<dyn FnOnce(&mut Scratch, &UnitContext) -> O + Send>;

/// What is called with the number of each arena before it is built.
pub(crate) type OnArena = Box<dyn Fn(u32) + Send + Sync>;

/// An arena that can be told from the one before.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// How many arenas were built before this one.
    pub(crate) number: u32,
    /// Whose it is.
    pub(crate) pin: Pin,
    /// For the units to count in.
    pub(crate) runs: u64,
}

/// A workload of closures.
pub(crate) struct Jobs<O = u64> {
    arenas: AtomicU32,
    on_arena: OnArena,
    output: PhantomData<fn() -> O>,
}

impl<O> Jobs<O> {
    pub(crate) fn new() -> Self {
        Self::with_arenas(Box::new(|_| {}))
    }

    pub(crate) fn with_arenas(on_arena: OnArena) -> Self {
        Self {
            arenas: AtomicU32::new(0),
            on_arena,
            output: PhantomData,
        }
    }
}

impl<O: Send + 'static> Workload for Jobs<O> {
    type Unit = Job<O>;
    type Output = O;
    type Arena = Scratch;

    fn arena(&self, pin: Pin) -> Scratch {
        let number = self.arenas.fetch_add(1, Ordering::Relaxed);
        (self.on_arena)(number);
        Scratch {
            number,
            pin,
            runs: 0,
        }
    }

    fn run(&self, unit: Job<O>, arena: &mut Scratch, context: &UnitContext) -> O {
        arena.runs += 1;
        unit(arena, context)
    }
}

/// A lane that is never held and one that a cordon holds, so many rows each.
pub(crate) fn config(rows: u32) -> FleetConfig {
    bare()
        .lane(WorkerRole::Resolve, rows)
        .lane(WorkerRole::Registrar, rows)
}

pub(crate) fn boot<O: Send + 'static>(config: FleetConfig) -> Fleet<Jobs<O>> {
    crate::binding::boot(Jobs::new(), config, &Census::new()).unwrap()
}

/// A unit that yields a value.
pub(crate) fn yields<O: Send + 'static>(value: O) -> Job<O> {
    Box::new(|_, _| value)
}

/// Submits, where room is certain.
pub(crate) fn submit<O: Send + 'static>(
    fleet: &Fleet<Jobs<O>>,
    role: impl Into<RoleId>,
    job: Job<O>,
) -> Receipt<Jobs<O>> {
    fleet.submit(role, 0, job).unwrap()
}

/// The output of a unit that must have run to its end.
pub(crate) fn done<O: Send + 'static>(receipt: Receipt<Jobs<O>>) -> O {
    receipt.wait_for(FAR).unwrap().done().unwrap()
}

/// How a unit ended that must not have run to its end, and whether it was given back.
pub(crate) fn failed<O: Send + 'static>(receipt: Receipt<Jobs<O>>) -> (Failure, bool) {
    match receipt.wait_for(FAR).unwrap() {
        Ended::Done(_) => (
            Failure::Panicked {
                message: "it did run to its end".into(),
            },
            false,
        ),
        Ended::Failed(failure, unit) => (failure, unit.is_some()),
    }
}

/// The status of a lane.
pub(crate) fn lane<O: Send + 'static>(
    fleet: &Fleet<Jobs<O>>,
    role: impl Into<RoleId>,
) -> LaneStatus {
    fleet.status().lanes.swap_remove(role.into().index())
}

/// Holds a unit in its run.
pub(crate) struct Gate {
    entered: Receiver<()>,
    open: Sender<()>,
}

impl Gate {
    /// A gate, and a unit that runs until it is opened and then does `job`.
    pub(crate) fn before<O: Send + 'static>(job: Job<O>) -> (Self, Job<O>) {
        let (enter, entered) = channel();
        let (open, opened) = channel::<()>();
        let gated = Box::new(move |arena: &mut Scratch, context: &UnitContext| {
            enter.send(()).unwrap();
            // The gate opens with a message, or with the end of the test that held it.
            let _ = opened.recv();
            job(arena, context)
        });
        (Self { entered, open }, gated)
    }

    /// Returns once the unit runs.
    pub(crate) fn entered(&self) {
        self.entered.recv_timeout(FAR).unwrap();
    }

    pub(crate) fn open(self) {
        self.open.send(()).unwrap();
    }
}

/// A running unit and its gate.
pub(crate) fn busy<O: Send + 'static>(
    fleet: &Fleet<Jobs<O>>,
    role: impl Into<RoleId>,
    output: O,
) -> (Gate, Receipt<Jobs<O>>) {
    let (gate, job) = Gate::before(yields(output));
    let receipt = submit(fleet, role, job);
    gate.entered();
    (gate, receipt)
}

pub(crate) fn spawn<T: Send + 'static>(
    census: &Census,
    kernel_name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    census
        .spawn(ThreadSpec::one("test", kernel_name), run)
        .unwrap()
}

/// Returns once the kernel says that the thread sleeps; elsewhere, at once. Nothing else tells that a
/// thread has begun to wait. A test that calls this is right without it, and sees more with it.
pub(crate) fn wait_asleep(kernel_name: &str) {
    #[cfg(target_os = "linux")]
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let stats = tasks
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
        let asleep = format!("({kernel_name}) S ");
        if stats.into_iter().any(|stat| stat.contains(&asleep)) {
            return;
        }
        std::thread::yield_now();
    }
    #[cfg(not(target_os = "linux"))]
    let _ = kernel_name;
}

/// A kernel that throttles when asked to, for a posture owner to look at. Its time runs ahead of the
/// clock.
pub(crate) struct Throttle {
    now: Option<Instant>,
    periods: u64,
}

impl Throttle {
    pub(crate) fn new() -> Self {
        Self {
            now: None,
            periods: 0,
        }
    }

    /// A throttled second.
    pub(crate) fn cordon(&mut self, posture: &PostureControl) {
        self.sample(posture, 0);
        self.sample(posture, 100);
        self.periods += 5;
        self.sample(posture, 100);
        assert_eq!(posture.posture(), Posture::Cordoned);
    }

    /// A clean hour.
    pub(crate) fn lift(&mut self, posture: &PostureControl) {
        self.sample(posture, 1_800_000);
        self.sample(posture, 1_800_000);
        assert_eq!(posture.posture(), Posture::Nominal);
    }

    fn sample(&mut self, posture: &PostureControl, after_ms: u64) {
        let now = self.now.unwrap_or(posture.now()) + Span::from_millis(after_ms);
        self.now = Some(now);
        posture.sample(ThrottleSample {
            at: now,
            nr_throttled: Some(self.periods),
            throttled: None,
        });
    }
}
