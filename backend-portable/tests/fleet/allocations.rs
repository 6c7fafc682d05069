//! After boot and a warm-up no unit costs an allocation, neither on the submitter's thread nor on the
//! fleet's.
//!
//! The process has one more thread, the test harness's, and that one allocates when it likes; so the
//! allocator counts for the threads that say so.

use regatta_core::role::WorkerRole::{Merge, Registrar, Resolve, Solver};
use regatta_portable::{Census, Fleet, Pin, Receipt, UnitContext, Workload};
use std::sync::atomic::{AtomicU64, Ordering};

mod counting {
    //! The system's allocator with a counter.
    #![expect(
        unsafe_code,
        reason = "the trait of an allocator is unsafe to implement"
    )]

    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    thread_local! {
        static COUNTED: Cell<bool> = const { Cell::new(false) };
    }

    /// From here on the allocations of this thread count.
    pub(crate) fn count_this_thread() {
        COUNTED.set(true);
    }

    /// Counts what it passes on.
    pub(crate) struct Counting {
        pub(crate) allocations: AtomicU64,
    }

    impl Counting {
        fn count(&self) {
            // A thread that is going away has no flag any more.
            let counted = COUNTED.try_with(Cell::get).unwrap_or(false);
            self.allocations
                .fetch_add(u64::from(counted), Ordering::Relaxed);
        }
    }

    // SAFETY: every call goes to the system's allocator as it came, and so does every answer.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.count();
            // SAFETY: the caller keeps the contract of `alloc`.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the caller keeps the contract of `dealloc`, and the block is the system's.
            unsafe { System.dealloc(block, layout) }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            self.count();
            // SAFETY: the caller keeps the contract of `realloc`, and the block is the system's.
            unsafe { System.realloc(block, layout, size) }
        }
    }
}

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting {
    allocations: AtomicU64::new(0),
};

struct Doubles;

impl Workload for Doubles {
    type Unit = [u64; 4];
    type Output = [u64; 8];
    type Arena = u64;

    fn arena(&self, _: Pin) -> u64 {
        counting::count_this_thread();
        0
    }

    fn run(&self, unit: [u64; 4], sum: &mut u64, _: &UnitContext) -> [u64; 8] {
        *sum += unit[0];
        std::array::from_fn(|i| unit[i / 2] * 2)
    }
}

const WINDOW: usize = 64;

/// Submits units in windows and collects them: most waited for, some polled, some dropped. Returns how
/// many.
fn work(fleet: &Fleet<Doubles>, receipts: &mut Vec<Receipt<Doubles>>, units: u64) -> u64 {
    let mut collected = 0;
    for unit in 0..units {
        let (role, key) = match unit % 6 {
            0 => (Registrar, 0),
            1 => (Merge, 0),
            2 => (Solver, u8::try_from(unit / 6 % 3).unwrap_or(0)),
            _ => (Resolve, 0),
        };
        let submitted = fleet.submit(role, key, [unit; 4]);
        // The window is smaller than each lane: there is always room.
        receipts.extend(submitted.ok());
        if receipts.len() < WINDOW {
            continue;
        }
        for (n, receipt) in receipts.drain(..).enumerate() {
            let ended = match n % 8 {
                0 => continue,
                1 => receipt.poll().map_or_else(|later| later.wait().ok(), Some),
                _ => receipt.wait().ok(),
            };
            collected += u64::from(ended.and_then(regatta_portable::Ended::done).is_some());
        }
    }
    collected
}

#[test]
fn no_unit_costs_an_allocation() {
    const UNITS: u64 = 100_000;
    counting::count_this_thread();
    let config = crate::binding::bare()
        .lane(Resolve, 256)
        .lane(Registrar, 256)
        .lane(Merge, 256)
        .keyed_lane(Solver, 256, 3);
    let fleet = crate::binding::boot(Doubles, config, &Census::new()).unwrap();
    let mut receipts = Vec::with_capacity(WINDOW);
    work(&fleet, &mut receipts, 1_000);
    let before = ALLOCATOR.allocations.load(Ordering::Relaxed);
    let collected = work(&fleet, &mut receipts, UNITS);
    let after = ALLOCATOR.allocations.load(Ordering::Relaxed);
    assert_eq!(after - before, 0, "allocations for {UNITS} units");
    assert!(collected > UNITS / 2, "{collected} collected");
    // The counter does count.
    drop(std::hint::black_box(Box::new(1_u8)));
    assert_eq!(ALLOCATOR.allocations.load(Ordering::Relaxed), after + 1);
}
