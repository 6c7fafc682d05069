//! The wake word under every interleaving that the memory model allows.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p regatta-core --test loom_wake --release`.
#![cfg(loom)]

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use regatta_core::port::{Park, Wake};
use regatta_core::time::Instant;
use regatta_core::wake::WakeWord;

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
