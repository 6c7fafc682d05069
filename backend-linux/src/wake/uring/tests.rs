//! Rings that are too small, lose their requests, or fail.

use super::*;
use crate::wake::EventfdWaker;
use regatta_core::port::Wake;
use regatta_core::time::Duration;
use regatta_portable::clock::MonotonicClock;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

fn pair(submissions: u32, completions: u32) -> (Arc<EventfdWaker>, UringPark) {
    let (waker, base) = EventfdPark::pair(MonotonicClock::new()).unwrap();
    let park = UringPark::with_rings(base, submissions, completions).unwrap();
    (waker, park)
}

/// Takes the request of the counter away, as the kernel does when it cannot go on with it.
fn end_counter_request(park: &UringPark) {
    let ring = &mut *park.ring.borrow_mut();
    let ring = ring.as_mut().unwrap();
    let remove = opcode::PollRemove::new(COUNTER).build();
    ring.push(&remove.user_data(IGNORED)).unwrap();
    ring.io.submit().unwrap();
}

/// Blocks for a moment in which nothing is to come.
fn passes(park: &UringPark) {
    let clock = park.base.clock();
    let at = clock.now() + Duration::from_millis(5);
    park.park(Some(at));
    assert!(clock.now() >= at, "something ended the block");
}

/// Reads what completed, however small the completion ring: every block reads one completion at least.
fn settle(park: &UringPark) {
    for _ in 0..4 * MAX_WATCHED {
        park.park(Some(Instant::ORIGIN));
    }
    park.take_ready().for_each(drop);
}

#[test]
fn a_burst_larger_than_the_rings_loses_nothing() {
    for completions in [1, 2] {
        let (waker, mut park) = pair(1, completions);
        let mut far = Vec::new();
        for token in 0..MAX_WATCHED as u64 {
            let (near, other) = UnixStream::pair().unwrap();
            let kept = near.try_clone().unwrap();
            park.watch(near.into(), token).unwrap();
            far.push((other, kept));
        }
        for _ in 0..50 {
            // Everything is armed and completes while nobody reads.
            settle(&park);
            for (other, _) in &mut far {
                other.write_all(b"x").unwrap();
                waker.wake();
            }
            let mut seen = BTreeSet::new();
            while seen.len() < MAX_WATCHED {
                park.park(None);
                seen.extend(park.take_ready());
            }
            for (_, kept) in &mut far {
                kept.read_exact(&mut [0]).unwrap();
            }
            settle(&park);
            waker.wake();
            park.park(None);
        }
        assert!(park.ring.borrow().is_some(), "the ring was given up");
    }
}

#[test]
fn a_request_that_ended_is_armed_again() {
    let (waker, park) = pair(ENTRIES, 2 * ENTRIES);
    for _ in 0..20 {
        // Ended with a wake before, then after, then without one.
        waker.wake();
        end_counter_request(&park);
        park.park(None);
        end_counter_request(&park);
        waker.wake();
        park.park(None);
        end_counter_request(&park);
        passes(&park);
        waker.wake();
        park.park(None);
    }
    assert!(park.ring.borrow().is_some(), "the ring was given up");
}

#[test]
fn a_slot_that_is_used_again_gets_nothing_of_the_one_before() {
    // In rings with room, and in those in which completions have to wait.
    for entries in [ENTRIES, 1] {
        let (_waker, mut park) = pair(entries, entries);
        let (near, mut far) = UnixStream::pair().unwrap();
        park.watch(near.into(), 1).unwrap();
        passes(&park);
        // Its request completes, and is not read before the slot is another's.
        far.write_all(b"x").unwrap();
        let _old = park.unwatch(1).unwrap();
        let (other, _far) = UnixStream::pair().unwrap();
        park.watch(other.into(), 2).unwrap();
        passes(&park);
        assert_eq!(park.take_ready().next(), None);
        assert!(park.ring.borrow().is_some(), "the ring was given up");
    }
}

/// A request keeps its file open, whatever the process closes.
#[test]
fn a_descriptor_that_is_unwatched_is_let_go_at_once() {
    let (_waker, mut park) = pair(ENTRIES, 2 * ENTRIES);
    let (near, mut far) = UnixStream::pair().unwrap();
    park.watch(near.into(), 1).unwrap();
    passes(&park);
    drop(park.unwatch(1).unwrap());
    far.set_nonblocking(true).unwrap();
    let read = far.read(&mut [0]);
    assert_eq!(read.unwrap(), 0, "it is still open somewhere");
    assert!(park.ring.borrow().is_some(), "the ring was given up");
}

#[test]
fn a_ring_that_fails_is_given_up_and_wakes_still_come() {
    let (waker, mut park) = pair(ENTRIES, 2 * ENTRIES);
    let (near, mut far) = UnixStream::pair().unwrap();
    park.watch(near.into(), 7).unwrap();
    passes(&park);
    // Another file in the ring's place.
    let null = std::fs::File::open("/dev/null").unwrap();
    let ring = park.ring.borrow().as_ref().unwrap().io.as_raw_fd();
    // SAFETY: both descriptors are open; the ring's stays owned by the ring, which closes it once.
    #[expect(unsafe_code, reason = "the ring's file is replaced behind its back")]
    let replaced = unsafe { libc::dup2(null.as_raw_fd(), ring) };
    assert_eq!(replaced, ring);
    waker.wake();
    park.park(None);
    assert!(park.ring.borrow().is_none(), "the ring is still used");
    far.write_all(b"x").unwrap();
    park.park(None);
    assert_eq!(park.take_ready().collect::<Vec<_>>(), [7]);
    assert!(park.unwatch(7).is_ok());
    passes(&park);
}
