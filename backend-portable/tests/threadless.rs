//! A runtime to which the platform gives no further thread: hooks that cannot run have failed, what cannot be
//! told to stop is fenced, and the end comes.
//!
//! One test in a binary of its own, since the whole process gets no threads meanwhile. The limit is Linux's.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use regatta_core::component::{
    BackoffPolicy, ComponentId, ComponentSpec, DrainCounts, ErrorCode, Limit, Outcome, PhaseResult,
    Plane, Probe, Remaining, Report, RuntimeState, StartResult, StopReason, SupervisorConfig,
};
use regatta_core::time::Duration as Span;
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use regatta_portable::runtime::{
    Attempt, Came, Component, Connect, Context, Failed, Handle, MOST, Registered, Runtime, Vitals,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

const HOUR: Span = Span::from_secs(3600);
const NO_THREAD: ErrorCode = ErrorCode("no_thread");

/// While it lives, the platform refuses every thread.
struct Refusal {
    before: rlim_t,
    go: Vec<Sender<()>>,
    fillers: Vec<JoinHandle<()>>,
}

impl Refusal {
    fn new() -> Self {
        let (before, most) = getrlimit(Resource::RLIMIT_AS).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
        let size = size.unwrap().trim().trim_end_matches(" kB");
        // Half of what the stack of a thread takes.
        let room = size.parse::<rlim_t>().unwrap() * 1024 + (1 << 20);
        setrlimit(Resource::RLIMIT_AS, room, most).unwrap();
        // Stacks of threads that have ended are used again: these hold them all.
        let census = Census::new();
        let (mut go, mut fillers) = (Vec::new(), Vec::new());
        loop {
            let (send, held) = channel::<()>();
            let spec = |kernel_name: String, _| ThreadSpec::one("filler", &kernel_name);
            let fill = move || {
                let _ = held.recv();
            };
            match census.spawn_numbered("fill-", spec, fill) {
                Ok(filler) => fillers.push(filler),
                Err(CensusError::Spawn { .. }) => break,
                Err(error) => unreachable!("{error}"),
            }
            go.push(send);
        }
        Self {
            before,
            go,
            fillers,
        }
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        let most = getrlimit(Resource::RLIMIT_AS).unwrap().1;
        setrlimit(Resource::RLIMIT_AS, self.before, most).unwrap();
        self.go.clear();
        for filler in self.fillers.drain(..) {
            filler.join().unwrap();
        }
    }
}

/// Tells that something hangs, which it does until the other end is gone.
type Held = (Sender<()>, Receiver<()>);

fn hang(held: &Mutex<Option<Held>>) {
    if let Some((says, held)) = held.lock().unwrap().take() {
        says.send(()).unwrap();
        let _ = held.recv();
    }
}

/// How often what was done to a part, and what of it hangs.
#[derive(Default)]
struct Counts {
    hooks: AtomicU32,
    fences: AtomicU32,
    attempts: AtomicU32,
    attempt_hangs: Mutex<Option<Held>>,
    stop_hangs: Mutex<Option<Held>>,
}

impl Counts {
    fn all(&self) -> [u32; 3] {
        [&self.hooks, &self.fences, &self.attempts].map(|count| count.load(Ordering::Relaxed))
    }

    fn hook(&self) {
        self.hooks.fetch_add(1, Ordering::Relaxed);
    }
}

impl Vitals for Counts {
    fn probe(&self) -> Probe {
        Probe::Ready
    }

    fn fence(&self) {
        self.fences.fetch_add(1, Ordering::Relaxed);
    }

    fn remaining(&self) -> Remaining {
        Remaining::NONE
    }
}

struct Part(Arc<Counts>);

struct Attempts(Arc<Counts>);

impl Connect for Attempts {
    fn attempt(&self, _: &Attempt<'_>) -> Result<(), Failed> {
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
        hang(&self.0.attempt_hangs);
        Ok(())
    }
}

impl Component for Part {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::clone(&self.0) as _
    }

    fn connect(&self) -> Option<Arc<dyn Connect>> {
        Some(Arc::new(Attempts(Arc::clone(&self.0))))
    }

    fn start(&mut self, _: Context) -> Result<Came, Failed> {
        self.0.hook();
        Ok(Came::Up)
    }

    fn quiesce(&mut self, _: Instant) -> Result<(), Failed> {
        self.0.hook();
        Ok(())
    }

    fn drain(&mut self, _: Instant) -> Result<DrainCounts, Failed> {
        self.0.hook();
        Ok(DrainCounts::default())
    }

    fn stop(&mut self, _: Instant) -> Result<(), Failed> {
        hang(&self.0.stop_hangs);
        self.0.hook();
        Ok(())
    }
}

/// A program of parts that have nothing to do with each other.
fn program(parts: &[(&'static str, &Arc<Counts>)], stop_budget: Span, census: &Census) -> Runtime {
    let registered = parts.iter().map(|(name, counts)| Registered {
        spec: ComponentSpec {
            name,
            depends: &[],
            required: true,
            plane: Plane::Data,
            reconnects: true,
            policy: Some(BackoffPolicy {
                limit: Limit::Attempts(3),
                initial: Span::from_millis(1),
                attempt: HOUR,
                ..BackoffPolicy::DEFAULT
            }),
        },
        component: Box::new(Part(Arc::clone(counts))),
    });
    let config = SupervisorConfig {
        start_budget: HOUR,
        stop_budget,
        seed: 1,
    };
    let audit = Box::new(|_: &Census| true);
    Runtime::new(registered.collect(), &[], config, census, audit).unwrap()
}

/// Has it run, and returns once it is up.
fn up(runtime: Runtime, census: &Census) -> (Handle, JoinHandle<Report<MOST>>) {
    let handle = runtime.handle();
    let spec = ThreadSpec::one("test", "driver");
    let run = census.spawn(spec, move || runtime.run(|_| ())).unwrap();
    until(|| handle.state() == RuntimeState::Running);
    (handle, run)
}

/// Returns once it holds, which nothing announces.
fn until(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn without_threads_hooks_fail_what_was_up_is_fenced_and_the_end_comes() {
    let census = Census::new();

    // A start.
    let only = Arc::new(Counts::default());
    let runtime = program(&[("only", &only)], HOUR, &census);
    let refusal = Refusal::new();
    let report = runtime.run(|_| ());
    drop(refusal);
    assert_eq!(report.reason, StopReason::StartFailed("only"));
    assert_eq!(report.components[0].start, StartResult::Failed(NO_THREAD));
    assert_eq!(only.all(), [0, 0, 0]);

    // Attempts to reconnect, and a stop. The attempt that hangs was begun after every thread before it had
    // been joined, so none ends from here on, and leaves its stack to another one.
    let (only, holds) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    let ((says, said), (go, held)) = (channel(), channel());
    *holds.attempt_hangs.lock().unwrap() = Some((says, held));
    let runtime = program(&[("only", &only), ("holds", &holds)], HOUR, &census);
    let (handle, run) = up(runtime, &census);
    handle.lost(ComponentId::new(1));
    said.recv().unwrap();
    let refusal = Refusal::new();
    handle.lost(ComponentId::new(0));
    let failed = "not ready\nonly: failed\nholds: reconnecting";
    until(|| handle.readiness().to_string() == failed);
    assert_eq!(only.all(), [1, 0, 0]);
    handle.signal(15);
    let report = run.join().unwrap();
    drop((refusal, go));
    assert_eq!(report.outcome(), Outcome::Incomplete);
    for component in report.components {
        let phases = [component.quiesce, component.drain, component.stop];
        assert_eq!(phases, [PhaseResult::Failed(NO_THREAD); 3]);
    }
    assert_eq!(only.all(), [1, 1, 0], "it is cut off at least");
    assert_eq!(holds.all(), [1, 1, 1]);

    // A fence. The stop that hangs was begun after every thread before it had been joined.
    let only = Arc::new(Counts::default());
    let ((says, said), (go, held)) = (channel(), channel());
    *only.stop_hangs.lock().unwrap() = Some((says, held));
    let runtime = program(&[("only", &only)], Span::from_secs(1), &census);
    let (handle, run) = up(runtime, &census);
    handle.signal(15);
    said.recv().unwrap();
    let refusal = Refusal::new();
    let report = run.join().unwrap();
    drop((refusal, go));
    assert_eq!(report.outcome(), Outcome::TimedOut);
    let threads = report.components[0].remaining.map(|left| left.threads);
    assert_eq!(threads, Some(1), "that of its stop");
    assert_eq!(only.all()[1], 1);
}
