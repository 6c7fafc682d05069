//! Parking and waking allocate nothing: every allocation of a thread is counted.
#![cfg(test)]
#![cfg(target_os = "linux")]

use regatta_core::port::{Clock, Park, Wake};
use regatta_core::time::Duration;
use regatta_core::wake::WakeWord;
use regatta_linux::wake::{Sleeper, WakeKind, sleeper, watch_sleeper};
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use regatta_portable::clock::MonotonicClock;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

struct Counting;

thread_local! {
    /// Of this thread. The test harness has threads too.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator that counts")]
// SAFETY: the system's allocator does the work, by its own rules.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: what the caller promises is what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

const ROUNDS: u32 = 500;

/// Blocks with and without a deadline, and with a wake before.
fn on_one_thread(park: &dyn Park, waker: &dyn Wake, clock: MonotonicClock) {
    for _ in 0..ROUNDS {
        waker.wake();
        park.park(None);
        park.park(Some(clock.now() + Duration::from_micros(1)));
    }
}

#[test]
fn a_block_and_a_wake_allocate_nothing() {
    let clock = MonotonicClock::new();
    assert!(allocations(|| drop(std::hint::black_box(Box::new(0)))) > 0);
    for kind in WakeKind::ALL {
        let Sleeper { waker, parker } = sleeper(kind, clock).unwrap();
        let park = parker().unwrap();
        assert_eq!(
            allocations(|| on_one_thread(&*park, &*waker, clock)),
            0,
            "{kind}"
        );
        across_threads(kind, clock);
        if kind.takes_descriptors() {
            watching(kind, clock);
        }
    }
}

fn across_threads(kind: WakeKind, clock: MonotonicClock) {
    let Sleeper { waker, parker } = sleeper(kind, clock).unwrap();
    let shared = Arc::new((WakeWord::new(), AtomicU32::new(0), AtomicU32::new(0)));
    let of_waiter = Arc::clone(&shared);
    let waits = move || {
        let (word, asked, answered) = &*of_waiter;
        let park = parker().unwrap();
        allocations(|| {
            for round in 1..=ROUNDS {
                while asked.load(Ordering::Acquire) < round {
                    word.wait(&*park, None, || asked.load(Ordering::Relaxed) >= round);
                }
                answered.store(round, Ordering::Release);
            }
        })
    };
    let waiter = Census::new()
        .spawn(ThreadSpec::one("test", "waiter"), waits)
        .unwrap();
    let (word, asked, answered) = &*shared;
    let of_waker = allocations(|| {
        for round in 1..=ROUNDS {
            asked.store(round, Ordering::Release);
            word.notify(&*waker);
            while answered.load(Ordering::Acquire) < round && !waiter.is_finished() {
                std::thread::yield_now();
            }
        }
    });
    assert_eq!((waiter.join().unwrap(), of_waker), (0, 0), "{kind}");
}

fn watching(kind: WakeKind, clock: MonotonicClock) {
    let Sleeper { waker, parker } = watch_sleeper(kind, clock).unwrap();
    let mut park = parker().unwrap();
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(b"x").unwrap();
    park.watch(near.into(), 1).unwrap();
    let counted = allocations(|| {
        for _ in 0..ROUNDS {
            park.park(None);
            park.take_ready().for_each(drop);
            waker.wake();
            park.park(Some(clock.now()));
        }
    });
    assert_eq!(counted, 0, "{kind}");
}
