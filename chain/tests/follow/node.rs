//! A node with a seeded will of its own: what it sends is late, doubled, lost or out of order, what it answers may fail.
//!
//! # Invariants
//! - An answer lacks only logs that the subscription showed on this connection (or, where it is lenient, will show), or
//!   lacks all of them, fewer times than a follower believes: else no follower could know.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::B256;
use regatta_chain::follow::{Answer, Call, Failure};
use regatta_chain::types::Log;

use crate::rig::Rig;

/// A seeded generator (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap()
    }

    /// In so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// What is on its way to the subscriber.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Header(B256),
    Log(Log),
}

/// The node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) rng: Rng,
    pub(crate) head: B256,
    pub(crate) wire: Vec<Message>,
    /// Messages that are lost, in percent.
    pub(crate) loss: u64,
    /// Answers that fail, in percent.
    pub(crate) fails: u64,
    empties: BTreeMap<B256, u32>,
    /// Logs that were shown on this connection.
    shown: BTreeSet<(B256, u64)>,
    old_heads: Vec<B256>,
    /// Whether an answer may lack logs that are still on their way to the subscriber. Nothing is lost then.
    lenient: bool,
}

impl Node {
    pub(crate) fn new(seed: u64, head: B256, lenient: bool) -> Self {
        let mut rng = Rng(seed);
        let loss = if lenient { 0 } else { [0, 5, 30][rng.below(3)] };
        let fails = if lenient {
            60
        } else {
            [0, 10, 40][rng.below(3)]
        };
        let (wire, empties, shown) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Self {
            rng,
            head,
            wire,
            loss,
            fails,
            empties,
            shown,
            old_heads: vec![head],
            lenient,
        }
    }

    /// The branch of a block, newest first.
    fn branch(rig: &Rig, mut hash: B256) -> Vec<B256> {
        let mut all = Vec::new();
        while rig.tree.blocks.contains_key(&hash) {
            all.push(hash);
            hash = rig.tree.parent(hash);
        }
        all
    }

    /// Makes a block its head and sends what a subscriber should hear of it.
    pub(crate) fn become_head(&mut self, rig: &Rig, head: B256) {
        let (old, new) = (Self::branch(rig, self.head), Self::branch(rig, head));
        if self.rng.chance(50) {
            let mut gone: Vec<Log> = old
                .iter()
                .filter(|hash| !new.contains(hash))
                .flat_map(|hash| rig.tree.logs(*hash))
                .collect();
            for log in &mut gone {
                log.removed = true;
            }
            self.wire.extend(gone.into_iter().map(Message::Log));
        }
        let mut came: Vec<B256> = new.into_iter().filter(|hash| !old.contains(hash)).collect();
        came.reverse();
        let only_last = self.rng.chance(20);
        for hash in came {
            if !only_last || hash == head {
                self.wire.push(Message::Header(hash));
            }
            self.wire
                .extend(rig.tree.logs(hash).into_iter().map(Message::Log));
        }
        self.old_heads.push(head);
        self.head = head;
    }

    /// Grows, or switches to another branch, a new one or one that was the chain before.
    pub(crate) fn change(&mut self, rig: &mut Rig) {
        let mut tip = self.head;
        match self.rng.below(10) {
            0 if !self.old_heads.is_empty() => {
                tip = self.old_heads[self.rng.below(self.old_heads.len())];
                // A prefix of the chain is no other branch.
                if !Self::branch(rig, self.head).contains(&tip) {
                    self.become_head(rig, tip);
                }
                return;
            }
            1..=3 => {
                for _ in 0..=self.rng.below(6) {
                    let parent = rig.tree.parent(tip);
                    if rig.tree.blocks.contains_key(&parent) {
                        tip = parent;
                    }
                }
            }
            _ => {}
        }
        let blocks = if self.rng.chance(5) {
            6 + self.rng.below(4)
        } else {
            1 + self.rng.below(3)
        };
        for _ in 0..blocks {
            let number = rig.tree.header(tip).number.to::<u64>() + 1;
            let (logs, noisy) = (self.rng.next() % 4, self.rng.chance(30));
            tip = rig.tree.add(Some(tip), number, logs, noisy);
        }
        self.become_head(rig, tip);
    }

    /// Delivers one message out of the next few, or loses or doubles it.
    pub(crate) fn deliver(&mut self, rig: &mut Rig, window: usize) {
        if self.wire.is_empty() {
            return;
        }
        let place = self.rng.below(window.min(self.wire.len()));
        let message = if self.rng.chance(self.loss) {
            self.wire.remove(place);
            return;
        } else if self.loss > 0 && self.rng.chance(10) {
            self.wire[place].clone()
        } else {
            self.wire.remove(place)
        };
        match message {
            Message::Header(hash) => rig.header(hash),
            Message::Log(log) => {
                if !log.removed {
                    self.shown.insert((log.block_hash, log.log_index.to()));
                }
                rig.log(log);
            }
        }
    }

    /// Answers one of the calls that are out.
    pub(crate) fn serve(&mut self, rig: &mut Rig) {
        if rig.calls.is_empty() {
            return;
        }
        let place = self.rng.below(rig.calls.len());
        let Some((id, call)) = rig.calls.remove(place) else {
            return;
        };
        let honest = rig.honest(call, self.head);
        let answer = if self.rng.chance(self.fails) {
            self.spoil(rig, call, honest)
        } else {
            honest
        };
        rig.answer(id, answer);
        if self.rng.chance(5) {
            // Once more, too late.
            rig.answer(id, Answer::Failed(Failure::Transport));
        }
    }

    fn spoil(&mut self, rig: &Rig, call: Call, honest: Answer) -> Answer {
        match (call, self.rng.below(6)) {
            (_, 0) => Answer::Failed(Failure::Transport),
            (_, 1) => Answer::Failed(Failure::Refused),
            (Call::LogsByHash(hash), 2) => {
                let given = self.empties.entry(hash).or_default();
                if *given >= 2 {
                    return honest;
                }
                *given += 1;
                Answer::Logs(Vec::new())
            }
            (Call::LogsByHash(hash), 3) => {
                let mut logs = rig.tree.logs(hash);
                let (shown, wire, lenient) = (&self.shown, &self.wire, self.lenient);
                let rng = &mut self.rng;
                logs.retain(|log| {
                    let coming = || {
                        wire.iter()
                            .any(|one| matches!(one, Message::Log(own) if own == log))
                    };
                    let known =
                        shown.contains(&(hash, log.log_index.to())) || (lenient && coming());
                    !known || rng.chance(40)
                });
                // Where none is left this is an answer without logs, which contradicts what was shown.
                Answer::Logs(
                    if !self.lenient
                        && logs.is_empty()
                        && self.shown.iter().all(|(shown, _)| *shown != hash)
                    {
                        rig.tree.logs(hash)
                    } else {
                        logs
                    },
                )
            }
            (Call::LogsByHash(hash), 4) => {
                let mut logs = rig.tree.logs(hash);
                logs.extend(rig.tree.logs(hash).first().cloned());
                Answer::Logs(logs)
            }
            // A node that is behind: an ancestor of its head.
            (Call::LatestHeader, _) => {
                let branch = Self::branch(rig, self.head);
                Answer::Header(rig.tree.header(branch[self.rng.below(branch.len().min(8))]))
            }
            (Call::HeaderByHash(_), 2) => Answer::Header(rig.tree.header(self.head)),
            _ => Answer::Failed(Failure::NotFound),
        }
    }

    /// The connection is lost with what was on its way.
    pub(crate) fn cut(&mut self) {
        if !self.lenient {
            self.wire.clear();
            self.shown.clear();
        }
    }
}
