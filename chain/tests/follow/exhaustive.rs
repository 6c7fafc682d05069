//! Every interleaving of two short branches: headers, logs and answers in every order that the sockets allow.
//!
//! # Invariants
//! - Headers come in the node's order and logs too (with `removed` ones between the branches); the two, and each answer, in
//!   any order against each other.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use alloy_primitives::B256;
use regatta_chain::follow::{Answer, Call};
use regatta_chain::types::Log;

use crate::rig::{Rig, config};

#[derive(Clone)]
struct Scene {
    rig: Rig,
    headers: Vec<B256>,
    logs: Vec<Log>,
    header: usize,
    log: usize,
}

impl Scene {
    fn log(&self) -> Scene {
        let mut next = self.clone();
        next.rig.log(self.logs[self.log].clone());
        next.log += 1;
        next
    }

    fn header(&self) -> Scene {
        let mut next = self.clone();
        next.rig.header(self.headers[self.header]);
        next.header += 1;
        next
    }

    fn answer(&self, place: usize, latest: B256) -> Scene {
        let mut next = self.clone();
        let (id, call) = next.rig.calls.remove(place).unwrap();
        let answer: Answer = next.rig.honest(call, latest);
        next.rig.answer(id, answer);
        next
    }

    /// All that can happen next.
    fn nexts(&self, last: B256) -> Vec<Scene> {
        let mut nexts = Vec::new();
        if self.header < self.headers.len() {
            nexts.push(self.header());
        }
        if self.log < self.logs.len() {
            nexts.push(self.log());
        }
        for (place, (_, call)) in self.rig.calls.iter().enumerate() {
            nexts.push(self.answer(place, last));
            // The node's head is at least what it announced.
            if *call == Call::LatestHeader
                && self.header > 0
                && self.headers[self.header - 1] != last
            {
                nexts.push(self.answer(place, self.headers[self.header - 1]));
            }
        }
        nexts
    }

    /// The state, without what differs between two ways to the same one: how many calls and events there were.
    fn key(&self) -> u64 {
        let text = format!("{:?} {:?}", self.rig.follower, self.rig.calls);
        let mut hasher = DefaultHasher::new();
        (self.header, self.log, &self.rig.chain).hash(&mut hasher);
        let (before, rest) = text.split_once("counters: Counters {").unwrap();
        let (_, after) = rest.split_once('}').unwrap();
        let mut names = Vec::new();
        for piece in before
            .split_inclusive("CallId(")
            .chain(after.split_inclusive("CallId("))
        {
            let digits = piece.chars().take_while(char::is_ascii_digit).count();
            let (id, text) = piece.split_at(digits);
            if !id.is_empty() {
                let name = names
                    .iter()
                    .position(|known| *known == id)
                    .unwrap_or(names.len());
                if name == names.len() {
                    names.push(id);
                }
                name.hash(&mut hasher);
            }
            // The next identifier.
            let text = text.split_once(" next: ").map_or(text, |(text, _)| text);
            text.hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// What the subscription shows of the logs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    None,
    /// Those of each branch's last block.
    Last,
    /// Those, and between the branches that the first one's are taken back.
    LastAndRemoved,
    /// All, and between the branches that the first one's are taken back.
    AllAndRemoved,
}

/// Explores all; how many states there were.
fn explore(first: usize, second: usize, shown: Shown, logs: u64) -> usize {
    let (mut rig, root) = Rig::live(config(), 10);
    let one = rig.tree.branch(root, first, logs);
    let other = rig.tree.branch(root, second, logs);
    let last = *other.last().unwrap();
    let told = |branch: &[B256]| -> Vec<Log> {
        let from = match shown {
            Shown::None => branch.len(),
            Shown::Last | Shown::LastAndRemoved => branch.len() - 1,
            Shown::AllAndRemoved => 0,
        };
        branch[from..]
            .iter()
            .flat_map(|hash| rig.tree.logs(*hash))
            .collect()
    };
    let mut wire = told(&one);
    if matches!(shown, Shown::LastAndRemoved | Shown::AllAndRemoved) {
        // In the order in which they came, which is the wrong one.
        let gone: Vec<Log> = wire
            .iter()
            .cloned()
            .map(|log| Log {
                removed: true,
                ..log
            })
            .collect();
        wire.extend(gone);
    }
    wire.extend(told(&other));
    let headers: Vec<B256> = one.iter().chain(&other).copied().collect();
    let mut stack = vec![Scene {
        rig,
        headers,
        logs: wire,
        header: 0,
        log: 0,
    }];
    let mut seen = HashSet::new();
    while let Some(scene) = stack.pop() {
        if !seen.insert(scene.key()) {
            continue;
        }
        let nexts = scene.nexts(last);
        if nexts.is_empty() {
            let mut chain = vec![root];
            chain.extend(&other);
            assert_eq!(scene.rig.chain, chain, "{:?}", scene.rig.follower);
            // A question whose answer came too early to tell waits for its next try.
            let mut rig = scene.rig;
            rig.pass(config().backoff_cap);
            rig.settle(last);
            assert_eq!((rig.chain, rig.follower.readiness()), (chain, Ok(())));
            continue;
        }
        stack.extend(nexts);
    }
    seen.len()
}

#[test]
fn two_branches_end_in_the_later_one_in_every_order() {
    let mut states = 0;
    for first in 1..=3 {
        for second in 1..=3 {
            for logs in [0, 1] {
                states += explore(first, second, Shown::None, logs);
            }
        }
    }
    assert!(states > 1_000, "{states}");
}

#[test]
fn logs_and_removed_logs_between_them_change_nothing() {
    let mut states = 0;
    for (first, second, shown) in [
        (1, 1, Shown::AllAndRemoved),
        (1, 2, Shown::AllAndRemoved),
        (2, 1, Shown::AllAndRemoved),
        (2, 2, Shown::Last),
        (2, 2, Shown::LastAndRemoved),
    ] {
        states += explore(first, second, shown, 1);
    }
    assert!(states > 1_000, "{states}");
}
