//! The wake word under every interleaving that the memory model allows.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p regatta-core --test loom_wake --release`.
#![cfg(loom)]

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use regatta_core::port::{Park, Wake};
use regatta_core::time::Instant;
use regatta_core::wake::{Doorbell, WakeWord};

/// A platform that keeps one token, as the ports ask.
#[derive(Default)]
struct Token {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Park for Token {
    fn park(&self, _: Option<Instant>) {
        let mut set = self.set.lock().unwrap();
        while !*set {
            set = self.changed.wait(set).unwrap();
        }
        *set = false;
    }
}

impl Wake for Token {
    fn wake(&self) {
        *self.set.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

struct Shared {
    word: WakeWord,
    token: Token,
    work: AtomicU32,
}

fn wait_for(shared: &Shared, units: u32) {
    loop {
        let seen = shared.work.load(Ordering::Relaxed);
        if seen == units {
            return;
        }
        shared.word.wait(&shared.token, None, || {
            shared.work.load(Ordering::Relaxed) != seen
        });
    }
}

fn publish(shared: &Shared) {
    shared.work.fetch_add(1, Ordering::Relaxed);
    shared.word.notify(&shared.token);
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        word: WakeWord::new(),
        token: Token::default(),
        work: AtomicU32::new(0),
    })
}

/// Every interleaving with at most three preemptions; a lost wake needs one on each side.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// If a wake can be lost, some interleaving leaves the waiter blocked and loom reports a deadlock.
#[test]
fn one_waker_never_loses_a_wake() {
    explore(|| {
        let shared = shared();
        let waker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                publish(&shared);
                publish(&shared);
            })
        };
        wait_for(&shared, 2);
        waker.join().unwrap();
    });
}

#[test]
fn two_wakers_never_lose_a_wake() {
    explore(|| {
        let shared = shared();
        let wakers = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || publish(&shared))
        });
        wait_for(&shared, 2);
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

/// A platform's token may be left over from elsewhere, and a block may end early: the waiter looks, finds
/// nothing, and parks again, and the wake for what comes in between still reaches it.
#[test]
fn a_stray_token_costs_no_wake() {
    explore(|| {
        let shared = shared();
        let stray = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.token.wake())
        };
        let waker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || publish(&shared))
        };
        wait_for(&shared, 1);
        waker.join().unwrap();
        stray.join().unwrap();
    });
}

/// A binding counts its inputs and sleeps on the count it saw before it looked. The count is released
/// with the input: else the waiter could take an input for seen that was not visible when it looked.
#[test]
fn an_input_that_is_counted_is_visible() {
    explore(|| {
        let shared = shared();
        let input = Arc::new(AtomicU32::new(0));
        let waker = {
            let (shared, input) = (Arc::clone(&shared), Arc::clone(&input));
            thread::spawn(move || {
                input.store(7, Ordering::Relaxed);
                shared.work.fetch_add(1, Ordering::Release);
                shared.word.notify(&shared.token);
            })
        };
        loop {
            let seen = shared.work.load(Ordering::Acquire);
            if input.load(Ordering::Relaxed) == 7 {
                break;
            }
            shared.word.wait(&shared.token, None, || {
                shared.work.load(Ordering::Relaxed) != seen
            });
        }
        waker.join().unwrap();
    });
}

struct Door {
    bell: Doorbell,
    token: Token,
    mailbox: Mutex<Vec<u32>>,
}

fn door() -> Arc<Door> {
    Arc::new(Door {
        bell: Doorbell::new(),
        token: Token::default(),
        mailbox: Mutex::new(Vec::new()),
    })
}

fn bring(door: &Door, letter: u32) {
    door.mailbox.lock().unwrap().push(letter);
    door.bell.ring(&door.token);
}

/// Waits, takes the ring and then looks, until so many letters came.
fn collect(door: &Door, letters: usize) -> Vec<u32> {
    let mut got = Vec::new();
    while got.len() < letters {
        door.bell.wait(&door.token, None);
        if door.bell.take() {
            got.append(&mut door.mailbox.lock().unwrap());
        }
    }
    got.sort_unstable();
    got
}

#[test]
fn a_bell_that_rings_twice_loses_no_letter() {
    explore(|| {
        let door = door();
        let ringer = {
            let door = Arc::clone(&door);
            thread::spawn(move || {
                bring(&door, 1);
                bring(&door, 2);
            })
        };
        assert_eq!(collect(&door, 2), [1, 2]);
        ringer.join().unwrap();
    });
}

#[test]
fn two_ringers_lose_no_letter() {
    explore(|| {
        let door = door();
        let ringers = [1, 2].map(|letter| {
            let door = Arc::clone(&door);
            thread::spawn(move || bring(&door, letter))
        });
        assert_eq!(collect(&door, 2), [1, 2]);
        for ringer in ringers {
            ringer.join().unwrap();
        }
    });
}

/// Without a lock around what is brought: who takes one ring sees what came with the rings that it covers.
#[test]
fn a_ring_that_is_taken_shows_what_came_with_all_before_it() {
    explore(|| {
        let door = door();
        let brought = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let ringers = [0, 1].map(|who| {
            let (door, brought) = (Arc::clone(&door), Arc::clone(&brought));
            thread::spawn(move || {
                brought[who].store(1, Ordering::Relaxed);
                door.bell.ring(&door.token);
            })
        });
        let seen = || brought.iter().all(|one| one.load(Ordering::Relaxed) == 1);
        loop {
            door.bell.wait(&door.token, None);
            if door.bell.take() && seen() {
                break;
            }
        }
        for ringer in ringers {
            ringer.join().unwrap();
        }
    });
}

/// A binding's seat: its mailbox and its bell's mark are changed under one lock, it is woken after the lock is
/// free, and between two looks it may find that it has looked already.
#[test]
fn a_seat_that_is_called_after_the_lock_is_free_misses_no_grant() {
    explore(|| {
        let door = door();
        let bringers = [1, 2].map(|letter| {
            let door = Arc::clone(&door);
            thread::spawn(move || {
                let mut mailbox = door.mailbox.lock().unwrap();
                mailbox.push(letter);
                door.bell.mark();
                drop(mailbox);
                door.bell.announce(&door.token);
            })
        });
        let mut got = Vec::new();
        while got.len() < 2 {
            let mut mailbox = door.mailbox.lock().unwrap();
            door.bell.take();
            got.append(&mut mailbox);
            drop(mailbox);
            if got.len() < 2 {
                door.bell.wait(&door.token, None);
            }
        }
        for bringer in bringers {
            bringer.join().unwrap();
        }
    });
}
