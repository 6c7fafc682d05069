//! What every way of waking must keep to, one list for all of them.
#![cfg(test)]
#![cfg(target_os = "linux")]

use regatta_core::port::{Clock, Park, Wake};
use regatta_core::time::{Duration, Instant};
use regatta_core::wake::{Waited, WakeWord};
use regatta_linux::affinity::gettid;
use regatta_linux::wake::{Placement, Sleeper, WakeKind, measure, sleeper};
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use regatta_portable::clock::MonotonicClock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

/// Each of the tests, for each of the kinds.
macro_rules! for_every_kind {
    ($($test:ident)*) => {
        mod futex { $( #[test] fn $test() { super::$test(regatta_linux::wake::WakeKind::Futex); } )* }
        mod eventfd { $( #[test] fn $test() { super::$test(regatta_linux::wake::WakeKind::Eventfd); } )* }
        mod io_uring { $( #[test] fn $test() { super::$test(regatta_linux::wake::WakeKind::IoUring); } )* }
    };
}

for_every_kind! {
    a_wake_before_the_block_ends_it
    wakes_before_the_block_are_as_one
    a_block_ends_at_its_deadline_and_not_before
    a_deadline_that_is_over_does_not_block
    the_last_instant_is_a_deadline_like_others
    a_thread_that_starts_later_wakes_one_that_blocks
    a_thread_that_ended_has_woken_one_that_blocks_later
    no_wake_is_lost_among_two_wakers
    a_wake_that_meets_the_deadline_is_not_lost
    a_wake_after_the_deadline_is_kept_for_the_next_block
    a_wake_for_one_that_found_work_costs_a_look_and_no_wake
    ten_submissions_and_one_wake_are_all_seen
    a_signal_is_no_wake
    a_signal_moves_no_deadline
    round_trips_are_measured
}

/// A word, and what its two sides need.
struct Shared {
    word: WakeWord,
    waker: Arc<dyn Wake + Send + Sync>,
    clock: MonotonicClock,
    work: AtomicU32,
}

type Parker = regatta_linux::wake::Parker;

fn shared(kind: WakeKind) -> (Arc<Shared>, Parker) {
    let clock = MonotonicClock::new();
    let Sleeper { waker, parker } = sleeper(kind, clock).unwrap();
    let shared = Shared {
        word: WakeWord::new(),
        waker,
        clock,
        work: AtomicU32::new(0),
    };
    (Arc::new(shared), parker)
}

impl Shared {
    fn publish(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
        self.word.notify(&*self.waker);
    }

    fn work(&self) -> u32 {
        self.work.load(Ordering::Relaxed)
    }

    /// Blocks until this much work was published; how many blocks it took.
    fn wait_for(&self, park: &dyn Park, work: u32) -> u32 {
        let mut blocks = 0;
        loop {
            let seen = self.work();
            if seen >= work {
                return blocks;
            }
            self.word.wait(park, None, || self.work() != seen);
            blocks += 1;
        }
    }

    fn until_parked(&self) {
        while !self.word.is_parked() {
            std::thread::yield_now();
        }
    }

    fn after(&self, ms: u64) -> Instant {
        self.clock.now() + Duration::from_millis(ms)
    }

    /// Blocks until a deadline that is near, and finds that nothing ends it before.
    fn nothing_comes(&self, park: &dyn Park) {
        let at = self.after(5);
        park.park(Some(at));
        assert!(self.clock.now() >= at, "something ended the block");
    }
}

fn spawn<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Census::new()
        .spawn(ThreadSpec::one("test", name), run)
        .unwrap()
}

/// Whether the kernel has put a thread of this process to sleep, and how often it was switched away from.
fn asleep(tid: i32) -> (bool, Vec<String>) {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap();
    let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
    let switches = switches.map(str::to_owned).collect();
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    let sleeps = state.unwrap().trim_start().starts_with('S');
    (sleeps, switches)
}

fn until_asleep(tid: i32) {
    while !asleep(tid).0 {
        std::thread::yield_now();
    }
}

fn a_wake_before_the_block_ends_it(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    shared.waker.wake();
    let park = parker().unwrap();
    park.park(None);
    shared.waker.wake();
    park.park(None);
}

fn wakes_before_the_block_are_as_one(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let park = parker().unwrap();
    for _ in 0..5 {
        for _ in 0..100 {
            shared.waker.wake();
        }
        park.park(None);
        shared.nothing_comes(&*park);
    }
}

fn a_block_ends_at_its_deadline_and_not_before(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let park = parker().unwrap();
    for us in [1, 10, 60, 200, 1_000, 20_000] {
        for _ in 0..10 {
            let at = shared.clock.now() + Duration::from_micros(us);
            park.park(Some(at));
            assert!(shared.clock.now() >= at);
        }
    }
}

fn a_deadline_that_is_over_does_not_block(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let park = parker().unwrap();
    park.park(Some(Instant::ORIGIN));
    park.park(Some(shared.clock.now()));
    // It does not cost a wake either.
    shared.waker.wake();
    park.park(Some(Instant::ORIGIN));
    shared.nothing_comes(&*park);
}

fn the_last_instant_is_a_deadline_like_others(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let waiter = {
        let shared = Arc::clone(&shared);
        spawn("waiter", move || {
            let park = parker().unwrap();
            let last = Some(Instant::from_nanos(u64::MAX));
            shared.word.wait(&*park, last, || false)
        })
    };
    shared.until_parked();
    shared.word.notify(&*shared.waker);
    assert_eq!(waiter.join().unwrap(), Waited::Notified);
}

fn a_thread_that_starts_later_wakes_one_that_blocks(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let (tid, told) = mpsc::channel();
    let waiter = {
        let shared = Arc::clone(&shared);
        spawn("waiter", move || {
            let park = parker().unwrap();
            tid.send(gettid()).unwrap();
            shared.word.wait(&*park, None, || false)
        })
    };
    let tid = told.recv().unwrap();
    shared.until_parked();
    until_asleep(tid);
    let waker = spawn("waker", move || shared.word.notify(&*shared.waker));
    assert!(waker.join().unwrap());
    assert_eq!(waiter.join().unwrap(), Waited::Notified);
}

fn a_thread_that_ended_has_woken_one_that_blocks_later(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let waker = {
        let shared = Arc::clone(&shared);
        spawn("waker", move || shared.waker.wake())
    };
    waker.join().unwrap();
    let waiter = spawn("waiter", move || parker().unwrap().park(None));
    waiter.join().unwrap();
}

fn no_wake_is_lost_among_two_wakers(kind: WakeKind) {
    const ROUNDS: u32 = 5_000;
    let (shared, parker) = shared(kind);
    let answered = Arc::new(AtomicU32::new(0));
    let wakers: Vec<_> = ["waker-1", "waker-2"]
        .into_iter()
        .map(|name| {
            let (shared, answered) = (Arc::clone(&shared), Arc::clone(&answered));
            spawn(name, move || {
                for round in 0..ROUNDS {
                    shared.publish();
                    // On no more than every second round: wakes come while it blocks and while it works.
                    while round % 2 == 0 && answered.load(Ordering::Relaxed) <= round {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let park = parker().unwrap();
    for round in 1..=ROUNDS {
        shared.wait_for(&*park, 2 * round);
        answered.store(round, Ordering::Relaxed);
    }
    for waker in wakers {
        waker.join().unwrap();
    }
}

fn a_wake_that_meets_the_deadline_is_not_lost(kind: WakeKind) {
    const ROUNDS: u32 = 3_000;
    let (shared, parker) = shared(kind);
    // The deadline of the round, in nanoseconds; the waker aims at it.
    let aim = Arc::new(Mutex::new(Instant::ORIGIN));
    let waker = {
        let (shared, aim) = (Arc::clone(&shared), Arc::clone(&aim));
        spawn("waker", move || {
            let mut last = Instant::ORIGIN;
            for round in 0..ROUNDS {
                while *aim.lock().unwrap() == last {
                    std::thread::yield_now();
                }
                last = *aim.lock().unwrap();
                // From a little before it to a little after.
                let at =
                    last - Duration::from_micros(20) + Duration::from_micros(u64::from(round % 40));
                while shared.clock.now() < at {
                    std::hint::spin_loop();
                }
                shared.publish();
            }
        })
    };
    let park = parker().unwrap();
    for round in 0..ROUNDS {
        let at = shared.clock.now() + Duration::from_micros(60);
        *aim.lock().unwrap() = at;
        shared.word.wait(&*park, Some(at), || shared.work() > round);
        // If it is not there yet, its wake is still to come: without a deadline.
        shared.wait_for(&*park, round + 1);
    }
    waker.join().unwrap();
    assert_eq!(shared.work(), ROUNDS);
}

fn a_wake_after_the_deadline_is_kept_for_the_next_block(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let park = parker().unwrap();
    for _ in 0..5 {
        shared.nothing_comes(&*park);
        shared.waker.wake();
        park.park(None);
    }
    shared.nothing_comes(&*park);
}

fn a_wake_for_one_that_found_work_costs_a_look_and_no_wake(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let park = parker().unwrap();
    // It is notified after it declared that it parks, finds work and does not block.
    let waited = shared.word.wait(&*park, None, || {
        assert!(shared.word.notify(&*shared.waker));
        true
    });
    assert_eq!(waited, Waited::Work);
    // The token it left is no notification.
    let waited = shared.word.wait(&*park, None, || false);
    assert_eq!(waited, Waited::Unprompted);
    // What comes now is.
    let waited = shared.word.wait(&*park, None, || {
        assert!(shared.word.notify(&*shared.waker));
        false
    });
    assert_eq!(waited, Waited::Notified);
    shared.nothing_comes(&*park);
}

fn ten_submissions_and_one_wake_are_all_seen(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let queue = Arc::new(Mutex::new(Vec::new()));
    let looked = Arc::new(AtomicBool::new(false));
    let waiter = {
        let (shared, queue, looked) =
            (Arc::clone(&shared), Arc::clone(&queue), Arc::clone(&looked));
        spawn("waiter", move || {
            let park = parker().unwrap();
            let waited = shared.word.wait(&*park, None, || {
                let found = !queue.lock().unwrap().is_empty();
                looked.store(true, Ordering::Release);
                found
            });
            assert_eq!(waited, Waited::Notified);
            std::mem::take(&mut *queue.lock().unwrap())
        })
    };
    while !looked.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    queue.lock().unwrap().extend(0..10);
    let sent = (0..10).filter(|_| shared.word.notify(&*shared.waker));
    assert_eq!(sent.count(), 1);
    assert_eq!(waiter.join().unwrap(), (0..10).collect::<Vec<_>>());
}

/// Interrupts a thread that sleeps, so many times, each time when it sleeps again.
fn interrupt(tid: i32, times: u32) {
    extern "C" fn handler(_: libc::c_int) {}
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    #[expect(
        unsafe_code,
        reason = "a handler is installed and a thread interrupted"
    )]
    // SAFETY: all zeroes are an action without flags, so that calls are not restarted; the handler
    // touches nothing. The action outlives the call.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = handler as *const () as libc::sighandler_t;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, action.as_ptr(), std::ptr::null_mut()),
            0
        );
    }
    for _ in 0..times {
        until_asleep(tid);
        let (_, before) = asleep(tid);
        #[expect(unsafe_code, reason = "std sends no signals to threads")]
        // SAFETY: it takes numbers alone.
        let sent =
            unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), tid, libc::SIGUSR1) };
        assert_eq!(sent, 0);
        while asleep(tid).1 == before {
            std::thread::yield_now();
        }
    }
    until_asleep(tid);
}

fn a_signal_is_no_wake(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let (tid, told) = mpsc::channel();
    let waiter = {
        let shared = Arc::clone(&shared);
        spawn("waiter", move || {
            let park = parker().unwrap();
            tid.send(gettid()).unwrap();
            shared.word.wait(&*park, None, || false)
        })
    };
    let tid = told.recv().unwrap();
    shared.until_parked();
    interrupt(tid, 5);
    assert!(shared.word.notify(&*shared.waker), "it is awake already");
    assert_eq!(waiter.join().unwrap(), Waited::Notified);
}

fn a_signal_moves_no_deadline(kind: WakeKind) {
    let (shared, parker) = shared(kind);
    let (tid, told) = mpsc::channel();
    let (done, is_done) = mpsc::channel::<()>();
    let waiter = {
        let shared = Arc::clone(&shared);
        spawn("waiter", move || {
            let park = parker().unwrap();
            let at = shared.after(200);
            tid.send(gettid()).unwrap();
            shared.word.wait(&*park, Some(at), || false);
            let late = shared.clock.now() >= at;
            // It is there to be interrupted for as long as that goes on.
            is_done.recv().unwrap();
            late
        })
    };
    let tid = told.recv().unwrap();
    shared.until_parked();
    interrupt(tid, 3);
    done.send(()).unwrap();
    assert!(waiter.join().unwrap(), "it ended before its deadline");
}

fn round_trips_are_measured(kind: WakeKind) {
    let census = Census::new();
    for placement in [Placement::Anywhere, Placement::SameCpu] {
        let measured = measure(kind, 200, placement, &census).unwrap();
        assert_eq!(measured.rounds, 200);
        let ordered = [
            1,
            measured.min,
            measured.median,
            measured.p90,
            measured.p99,
            measured.max,
        ];
        assert!(ordered.is_sorted(), "{measured:?}");
    }
    let rows = census.rows();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| !row.running));
    assert!(measure(kind, 0, Placement::Anywhere, &census).is_err());
}

/// Idle is silent: what blocks without a deadline does not run until it is woken.
#[test]
fn a_parked_thread_is_not_switched_to() {
    let sleepers = WakeKind::ALL.map(|kind| {
        let (shared, parker) = shared(kind);
        let (tid, told) = mpsc::channel();
        let waiter = {
            let shared = Arc::clone(&shared);
            spawn("waiter", move || {
                let park = parker().unwrap();
                tid.send(gettid()).unwrap();
                shared.word.wait(&*park, None, || false)
            })
        };
        let tid = told.recv().unwrap();
        shared.until_parked();
        until_asleep(tid);
        (kind, shared, waiter, tid, asleep(tid).1)
    });
    let (_kept, nothing) = mpsc::channel::<()>();
    let two_seconds = std::time::Duration::from_secs(2);
    assert!(nothing.recv_timeout(two_seconds).is_err());
    for (kind, shared, waiter, tid, before) in sleepers {
        assert_eq!(asleep(tid), (true, before), "{kind}");
        assert!(shared.word.notify(&*shared.waker));
        assert_eq!(waiter.join().unwrap(), Waited::Notified);
    }
}
