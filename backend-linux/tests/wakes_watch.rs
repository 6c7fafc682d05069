//! Waiting for descriptors and for wakes in one call: one list for both ways to do it.
#![cfg(test)]
#![cfg(target_os = "linux")]

use regatta_core::port::{Clock, Wake};
use regatta_core::time::Duration;
use regatta_core::wake::{Waited, WakeWord};
use regatta_linux::wake::{
    MAX_WATCHED, Sleeper, WakeError, WakeKind, WatchError, WatchPark, watch_sleeper,
};
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use regatta_portable::clock::MonotonicClock;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

macro_rules! for_both_kinds {
    ($($test:ident)*) => {
        mod eventfd { $( #[test] fn $test() { super::$test(regatta_linux::wake::WakeKind::Eventfd); } )* }
        mod io_uring { $( #[test] fn $test() { super::$test(regatta_linux::wake::WakeKind::IoUring); } )* }
    };
}

for_both_kinds! {
    a_descriptor_that_is_readable_before_it_is_watched_ends_the_block
    a_descriptor_that_becomes_readable_ends_the_block
    a_descriptor_ends_every_block_until_it_is_read
    two_descriptors_are_told_apart
    a_wake_and_a_descriptor_at_once_are_both_told
    a_wake_names_no_descriptor
    a_hang_up_ends_the_block_until_it_is_unwatched
    a_file_that_is_always_readable_is_always_ready
    a_descriptor_is_looked_at_even_if_the_deadline_is_over
    tokens_are_distinct_and_the_table_has_an_end
}

struct Watching {
    waker: Arc<dyn Wake + Send + Sync>,
    park: Box<dyn WatchPark>,
    clock: MonotonicClock,
}

impl Watching {
    fn new(kind: WakeKind) -> Self {
        let clock = MonotonicClock::new();
        let Sleeper { waker, parker } = watch_sleeper(kind, clock).unwrap();
        let park = parker().unwrap();
        Self { waker, park, clock }
    }

    /// Watches one end of a new pair of sockets; the end that is watched, to read it, and the other.
    fn socket(&mut self, token: u64) -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let watched = near.try_clone().unwrap();
        self.park.watch(watched.into(), token).unwrap();
        (near, far)
    }

    fn ready(&self) -> Vec<u64> {
        self.park.take_ready().collect()
    }

    /// Blocks without a deadline until all of these were told ready. Any other is an error.
    fn until_ready(&self, tokens: &[u64]) {
        let expected: BTreeSet<u64> = tokens.iter().copied().collect();
        let mut seen = BTreeSet::new();
        while seen != expected {
            self.park.park(None);
            seen.extend(self.park.take_ready());
            assert!(seen.is_subset(&expected), "{seen:?} {expected:?}");
        }
    }

    /// Nothing ends a block. One that a descriptor ended while it was being read is passed over.
    fn nothing_comes(&self) {
        let mut early = 0;
        loop {
            let at = self.clock.now() + Duration::from_millis(5);
            self.park.park(Some(at));
            if self.clock.now() >= at {
                assert_eq!(self.ready(), []);
                return;
            }
            early += 1;
            assert!(early < 2, "something ends every block");
            self.ready();
        }
    }
}

fn read(socket: &mut UnixStream) {
    socket.read_exact(&mut [0]).unwrap();
}

fn write(socket: &mut UnixStream) {
    socket.write_all(b"x").unwrap();
}

fn a_descriptor_that_is_readable_before_it_is_watched_ends_the_block(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let (near, mut far) = UnixStream::pair().unwrap();
    write(&mut far);
    watching.park.watch(near.into(), 5).unwrap();
    watching.park.park(None);
    assert_eq!(watching.ready(), [5]);
    assert_eq!(watching.ready(), []);
}

fn a_descriptor_that_becomes_readable_ends_the_block(kind: WakeKind) {
    let clock = MonotonicClock::new();
    let Sleeper { waker: _, parker } = watch_sleeper(kind, clock).unwrap();
    let word = Arc::new(WakeWord::new());
    let (near, mut far) = UnixStream::pair().unwrap();
    let waits = {
        let word = Arc::clone(&word);
        move || {
            let mut near_read = near.try_clone().unwrap();
            let mut park = parker().unwrap();
            park.watch(near.into(), 9).unwrap();
            for _ in 0..200 {
                assert_eq!(word.wait(&*park, None, || false), Waited::Unprompted);
                // What a block was armed for may complete only after it ended by what was read since.
                let ready: Vec<u64> = park.take_ready().collect();
                assert_eq!(ready, [9]);
                read(&mut near_read);
                near_read.write_all(b"y").unwrap();
            }
        }
    };
    let waiter = Census::new()
        .spawn(ThreadSpec::one("test", "waiter"), waits)
        .unwrap();
    for _ in 0..200 {
        while !word.is_parked() && !waiter.is_finished() {
            std::thread::yield_now();
        }
        write(&mut far);
        read(&mut far);
    }
    waiter.join().unwrap();
}

fn a_descriptor_ends_every_block_until_it_is_read(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let (mut near, mut far) = watching.socket(1);
    for _ in 0..20 {
        watching.nothing_comes();
        write(&mut far);
        for _ in 0..5 {
            watching.park.park(None);
            assert_eq!(watching.ready(), [1]);
        }
        read(&mut near);
    }
    watching.nothing_comes();
}

fn two_descriptors_are_told_apart(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let (mut first, mut far_of_first) = watching.socket(10);
    let (mut second, mut far_of_second) = watching.socket(20);
    for _ in 0..20 {
        watching.nothing_comes();
        write(&mut far_of_second);
        watching.until_ready(&[20]);
        read(&mut second);
        watching.nothing_comes();
        write(&mut far_of_first);
        write(&mut far_of_second);
        watching.until_ready(&[10, 20]);
        read(&mut first);
        read(&mut second);
    }
}

fn a_wake_and_a_descriptor_at_once_are_both_told(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let (mut near, mut far) = watching.socket(3);
    let word = WakeWord::new();
    for armed in [false, true].repeat(10) {
        if armed {
            watching.nothing_comes();
        }
        let waited = word.wait(&*watching.park, None, || {
            write(&mut far);
            assert!(word.notify(&*watching.waker));
            false
        });
        assert_eq!(waited, Waited::Notified);
        // Whichever the block ended by, the other is there for the next.
        if watching.ready().is_empty() {
            watching.until_ready(&[3]);
        }
        read(&mut near);
        // The wake is used up: at the latest by the block after.
        watching.park.park(Some(watching.clock.now()));
        watching.nothing_comes();
    }
}

fn a_wake_names_no_descriptor(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let (_near, _far) = watching.socket(3);
    for _ in 0..20 {
        watching.waker.wake();
        watching.park.park(None);
        assert_eq!(watching.ready(), []);
    }
    watching.nothing_comes();
}

fn a_hang_up_ends_the_block_until_it_is_unwatched(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let (mut near, far) = watching.socket(4);
    watching.nothing_comes();
    drop(far);
    for _ in 0..3 {
        watching.until_ready(&[4]);
    }
    assert_eq!(near.read(&mut [0]).unwrap(), 0);
    watching.park.unwatch(4).unwrap();
    watching.nothing_comes();
    // Its slot serves another.
    let (_near, mut far) = watching.socket(4);
    watching.nothing_comes();
    write(&mut far);
    watching.until_ready(&[4]);
}

fn a_file_that_is_always_readable_is_always_ready(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let file = tempfile::tempfile().unwrap();
    watching.park.watch(file.into(), 6).unwrap();
    for _ in 0..3 {
        watching.park.park(None);
        assert_eq!(watching.ready(), [6]);
    }
}

fn a_descriptor_is_looked_at_even_if_the_deadline_is_over(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let (_near, mut far) = watching.socket(8);
    write(&mut far);
    watching.park.park(Some(watching.clock.now()));
    assert_eq!(watching.ready(), [8]);
}

fn tokens_are_distinct_and_the_table_has_an_end(kind: WakeKind) {
    let mut watching = Watching::new(kind);
    let mut kept = Vec::new();
    for token in 0..MAX_WATCHED as u64 {
        kept.push(watching.socket(token));
    }
    let spare = || UnixStream::pair().unwrap().0.into();
    let taken = watching.park.watch(spare(), 0);
    assert_eq!(taken, Err(WatchError::Taken { token: 0 }));
    let full = watching.park.watch(spare(), 99);
    assert_eq!(full, Err(WatchError::Full { token: 99 }));
    let unknown = watching.park.unwatch(99).unwrap_err();
    assert_eq!(unknown, WatchError::Unknown { token: 99 });
    // What was refused changed nothing; each is still told by its own token.
    for (token, (near, far)) in kept.iter_mut().enumerate() {
        write(far);
        watching.until_ready(&[token as u64]);
        read(near);
        watching.park.park(Some(watching.clock.now()));
        watching.ready();
    }
    // A mark goes with its descriptor.
    write(&mut kept[0].1);
    watching.park.park(None);
    watching.park.unwatch(0).unwrap();
    let (_near, _far) = watching.socket(77);
    assert_eq!(watching.ready(), []);
}

#[test]
fn a_futex_takes_no_descriptors() {
    let refused = watch_sleeper(WakeKind::Futex, MonotonicClock::new());
    assert!(matches!(refused, Err(WakeError::NoDescriptors { .. })));
}
