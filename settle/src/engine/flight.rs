//! From a planned settlement to a sent transaction: the dry run, the signature, the send.

use std::time::Duration;

use alloy_primitives::{Bytes, U256};

use super::{Action, Answer, CallId, DryRun, Engine, Mode, Purpose, Sent, Stop};
use crate::abi::{self, Reason};
use crate::ledger::{Attempt, Block, Entry, Flight, Id, Kind, Mined, Outcome, Plan};
use crate::price::{self, Fees};
use crate::tx::Transaction;

/// The gas of a transaction that does nothing.
const PLAIN_GAS: u64 = 21_000;

/// Where an open settlement is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Its dry run was asked for.
    Dry(CallId),
    /// It would run: to be signed while this is the head.
    Ready { at: Block, gas: u64, fees: Fees },
    /// Shadow mode: it would be sent; the next block scores it.
    Armed,
    /// Shadow mode: the score was asked for.
    Scoring(CallId),
    /// It has transactions.
    Out(Out),
    /// Its transaction is in this block, undone, and the reason was asked for.
    Why(Mined),
}

/// What is known of an open settlement's last transaction beyond the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Out {
    /// The height when it was last sent.
    pub(super) tried: u64,
    /// The height when it was signed; 0 if an earlier run did.
    pub(super) signed: u64,
    /// Whether a node has taken the last one.
    pub(super) accepted: bool,
    /// Whether a node has, or may have, taken the one that runs the cycle.
    pub(super) taken: bool,
    /// Whether a node refused the last one.
    pub(super) refused: bool,
    /// The height at which a block had its nonce and none of its transactions.
    pub(super) passed: Option<u64>,
}

impl Default for Out {
    /// What an earlier run sent may have been taken.
    fn default() -> Self {
        Self {
            tried: 0,
            signed: 0,
            accepted: false,
            taken: true,
            refused: false,
            passed: None,
        }
    }
}

/// What is signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// The settlement's cycle.
    Settle(Id),
    /// What frees the settlement's nonce.
    Cancel(Id),
    /// What takes a nonce that nothing of ours has.
    Gap(u64),
}

/// The one signature under way: one at a time, so that nonces are given out in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Signing {
    /// It was asked for.
    Asked {
        call: CallId,
        target: Target,
        transaction: Box<Transaction>,
    },
    /// It is being put on the disk.
    Recording(Id),
}

impl Signing {
    /// The settlement whose transaction is being put on the disk.
    pub(super) fn recording(&self) -> Option<Id> {
        match self {
            Self::Recording(id) => Some(*id),
            Self::Asked { .. } => None,
        }
    }
}

/// `gas` units at `price`.
fn wei(gas: u64, price: u128) -> U256 {
    U256::from(gas).saturating_mul(U256::from(price))
}

impl Engine {
    /// The plan and data of an open settlement.
    fn calldata(&self, id: Id) -> Bytes {
        let plan = self
            .state
            .flight(id)
            .and_then(|flight| flight.plan.as_ref());
        plan.map(|plan| plan.cycle.calldata()).unwrap_or_default()
    }

    fn dry_run(&mut self, id: Id, at: Block, purpose: Purpose, now: Duration) -> CallId {
        let (data, estimate) = (self.calldata(id), matches!(purpose, Purpose::Dry(..)));
        let (from, to) = (self.config.owner, self.config.executor);
        self.call(purpose, now, |call| Action::DryRun {
            call,
            at,
            from,
            to,
            data,
            estimate,
        })
    }

    pub(super) fn ask_dry_run(&mut self, id: Id, at: Block, now: Duration) {
        let call = self.dry_run(id, at, Purpose::Dry(id, at), now);
        if let Some(Phase::Dry(old)) = self.phases.insert(id, Phase::Dry(call)) {
            self.calls.remove(&old);
        }
    }

    /// There is a new head: dry runs at the old one say nothing any more.
    pub(super) fn advance_unsent(&mut self, head: Block, now: Duration) {
        let signing = match &self.signing {
            Some(Signing::Asked {
                target: Target::Settle(id),
                ..
            }) => Some(*id),
            _ => None,
        };
        for (id, phase) in self.phases.clone() {
            match phase {
                Phase::Dry(call) => {
                    self.calls.remove(&call);
                }
                Phase::Ready { .. } if signing != Some(id) => {}
                Phase::Armed => {
                    let call = self.dry_run(id, head, Purpose::Dry(id, head), now);
                    self.phases.insert(id, Phase::Scoring(call));
                    continue;
                }
                Phase::Ready { .. } | Phase::Scoring(_) | Phase::Out(_) | Phase::Why(_) => continue,
            }
            if self
                .state
                .flight(id)
                .is_none_or(|flight| self.is_expired(flight))
            {
                self.end(id, Outcome::Expired { cancel: None });
            } else {
                self.ask_dry_run(id, head, now);
            }
        }
    }

    /// What a dry run says of a plan.
    fn judged(plan: &Plan, answer: Answer) -> Result<u64, Reason> {
        let predicted = plan.predicted();
        match answer {
            Answer::DryRun(DryRun::Done { output, gas }) => match abi::profit(&output) {
                Some(realised) if realised == predicted => Ok(gas),
                realised => Err(Reason::ProfitDiffers {
                    predicted,
                    realised,
                }),
            },
            Answer::DryRun(DryRun::Reverted(data)) => Err(Reason::decode(&data)),
            Answer::Failed(text) => Err(Reason::Node(abi::bounded(&text))),
            _ => Err(Reason::Node("another answer than was asked for".to_owned())),
        }
    }

    pub(super) fn dry_run_done(
        &mut self,
        call: CallId,
        id: Id,
        at: Block,
        answer: Answer,
        now: Duration,
    ) {
        let plan = self
            .state
            .flight(id)
            .and_then(|flight| flight.plan.as_ref());
        let (Some(plan), Some(head)) = (plan, self.head) else {
            return;
        };
        let judged = Self::judged(plan, answer);
        match self.phases.get(&id) {
            Some(Phase::Scoring(asked)) if *asked == call => {
                let realised = plan.predicted();
                let outcome = match judged {
                    Ok(_) => Outcome::ShadowHit {
                        realised,
                        block: at,
                    },
                    Err(reason) => Outcome::ShadowMiss { reason, block: at },
                };
                self.end(id, outcome);
            }
            Some(Phase::Dry(asked)) if *asked == call => {
                let checked = judged.and_then(|gas| {
                    let fees = self.affordable(plan, gas, head.block.number, head.base_fee)?;
                    Ok((gas, fees))
                });
                match checked {
                    Err(reason) => self.end(id, Outcome::DryRunFailed { reason }),
                    // Its block was taken back meanwhile.
                    Ok(_) if at != head.block || !self.is_of_chain(at) => {
                        self.ask_dry_run(id, head.block, now);
                    }
                    Ok((gas, fees)) => {
                        let live = self.config.mode == Mode::Live;
                        let ready = Phase::Ready { at, gas, fees };
                        self.phases
                            .insert(id, if live { ready } else { Phase::Armed });
                    }
                }
            }
            _ => {}
        }
    }

    /// What to offer for a plan that takes `gas`, if it leaves enough even at that price.
    fn affordable(
        &self,
        plan: &Plan,
        gas: u64,
        height: u64,
        base_fee: u128,
    ) -> Result<Fees, Reason> {
        if gas > self.config.max_gas {
            return Err(Reason::OutOfGas);
        }
        let (priority, cap) = (self.config.priority_fee, self.config.max_fee_cap);
        let blocks = plan.cycle.expiry.saturating_sub(height);
        let fees = price::offer(base_fee, blocks, priority, cap).ok_or(Reason::AboveCap {
            base_fee: U256::from(base_fee),
            cap: U256::from(cap),
        })?;
        let (profit, gas) = (plan.predicted(), wei(gas, fees.max));
        if gas.saturating_add(plan.min_profit) > profit {
            return Err(Reason::TooLittleAfterGas { profit, gas });
        }
        Ok(fees)
    }

    /// Asks for the next signature, unless one is under way.
    pub(super) fn start_signing(&mut self, now: Duration) {
        let failed = matches!(self.stop, Some(Stop::Ledger(_)));
        if self.signing.is_some() || failed || self.draining || self.config.mode == Mode::Shadow {
            return;
        }
        while let Some(target) = self.wanted.pop_front() {
            if let Some(transaction) = self.freeing(target) {
                return self.ask_signature(target, transaction, now);
            }
        }
        if !self.is_ready() {
            return;
        }
        let (Some(head), Some(nonce)) = (self.head, self.next_nonce) else {
            return;
        };
        let ready = self.phases.iter().find_map(|(id, phase)| match phase {
            Phase::Ready { at, gas, fees } if *at == head.block => Some((*id, *gas, *fees)),
            _ => None,
        });
        if let Some((id, gas, fees)) = ready {
            let room = u128::from(gas) * u128::from(self.config.gas_room) / 100;
            let room = u64::try_from(room).unwrap_or(u64::MAX);
            let transaction = Transaction {
                chain_id: self.config.chain_id,
                nonce,
                max_priority_fee_per_gas: fees.priority,
                max_fee_per_gas: fees.max,
                gas_limit: gas.saturating_add(room).min(self.config.max_gas),
                to: Some(self.config.executor),
                value: U256::ZERO,
                input: self.calldata(id),
            };
            self.ask_signature(Target::Settle(id), transaction, now);
        }
    }

    /// The transaction that frees a nonce; nothing if it is not wanted any more or too dear.
    pub(super) fn freeing(&self, target: Target) -> Option<Transaction> {
        let head = self.head?;
        let (priority, cap) = (self.config.priority_fee, self.config.max_replacement_fee);
        let wanted = price::offer(head.base_fee, self.config.expiry_blocks, priority, cap);
        let (nonce, fees) = match target {
            Target::Gap(nonce) => {
                let out = self
                    .state
                    .open()
                    .any(|(_, flight)| flight.nonce == Some(nonce));
                (nonce, wanted.filter(|_| !out)?)
            }
            Target::Cancel(id) => {
                let flight = self
                    .state
                    .flight(id)
                    .filter(|flight| flight.outcome.is_none())?;
                let last = flight.attempts.last()?;
                (flight.nonce?, price::replacement(last.fees, wanted, cap)?)
            }
            Target::Settle(_) => return None,
        };
        Some(Transaction {
            chain_id: self.config.chain_id,
            nonce,
            max_priority_fee_per_gas: fees.priority,
            max_fee_per_gas: fees.max,
            gas_limit: PLAIN_GAS,
            to: Some(self.config.owner),
            value: U256::ZERO,
            input: Bytes::new(),
        })
    }

    fn ask_signature(&mut self, target: Target, transaction: Transaction, now: Duration) {
        let boxed = Box::new(transaction.clone());
        let call = self.call(Purpose::Sign, now, |call| Action::Sign {
            call,
            transaction,
        });
        self.signing = Some(Signing::Asked {
            call,
            target,
            transaction: boxed,
        });
    }

    pub(super) fn sign_done(&mut self, call: CallId, answer: Answer, now: Duration) {
        let (target, wanted) = match self.signing.take() {
            Some(Signing::Asked {
                call: asked,
                target,
                transaction,
            }) if asked == call => (target, transaction),
            other => {
                self.signing = other;
                return;
            }
        };
        let signed = match answer {
            Answer::Signed(signed) if signed.transaction == *wanted => signed,
            _ => {
                if let Target::Settle(id) = target {
                    self.end(id, Outcome::Dropped { cancel: None });
                }
                return;
            }
        };
        let open = |id: Id| {
            let flight = self.state.flight(id)?;
            flight.outcome.is_none().then_some(flight)
        };
        let (id, kind) = match target {
            Target::Settle(id) => {
                let Some(flight) = open(id) else { return };
                if self.is_expired(flight) {
                    return self.end(id, Outcome::Expired { cancel: None });
                }
                let good = self.is_ready() && self.next_nonce == Some(wanted.nonce);
                if let Some(head) = self.head.filter(|_| !good) {
                    return self.ask_dry_run(id, head.block, now);
                }
                (id, Kind::Settle)
            }
            Target::Cancel(id) if open(id).is_none() => return,
            Target::Cancel(id) => (id, Kind::Cancel),
            Target::Gap(_) => (self.state.next_id(), Kind::Cancel),
        };
        let attempt = Attempt {
            kind,
            hash: signed.hash,
            fees: Fees {
                max: wanted.max_fee_per_gas,
                priority: wanted.max_priority_fee_per_gas,
            },
            gas_limit: wanted.gas_limit,
            raw: signed.raw,
        };
        let nonce = wanted.nonce;
        let sequence = self.record(Entry::Sent { id, nonce, attempt });
        if matches!(self.stop, Some(Stop::Ledger(_))) {
            return;
        }
        self.next_nonce = self.next_nonce.max(nonce.checked_add(1));
        let height = self.head.map_or(0, |head| head.block.number);
        let mut out = match self.phases.get(&id) {
            Some(Phase::Out(out)) => *out,
            _ => Out {
                taken: false,
                ..Out::default()
            },
        };
        out.signed = height;
        out.accepted = false;
        out.refused = false;
        self.phases.insert(id, Phase::Out(out));
        self.unsent.insert(sequence, id);
        self.signing = Some(Signing::Recording(id));
    }

    /// Sends the settlement's last transaction, again or for the first time.
    pub(super) fn send_last(&mut self, id: Id, now: Duration) {
        // The last one may not be on the disk yet.
        let recording = self.signing.as_ref().and_then(Signing::recording) == Some(id);
        if recording || matches!(self.stop, Some(Stop::Ledger(_))) {
            return;
        }
        let last = self
            .state
            .flight(id)
            .and_then(|flight: &Flight| flight.attempts.last());
        let Some((hash, raw)) = last.map(|last| (last.hash, last.raw.clone())) else {
            return;
        };
        let height = self.head.map_or(0, |head| head.block.number);
        if let Some(Phase::Out(out)) = self.phases.get_mut(&id) {
            out.tried = height;
        }
        self.call(Purpose::Send(id), now, |call| Action::Send {
            call,
            hash,
            raw,
        });
    }

    pub(super) fn send_done(&mut self, id: Id, answer: &Answer) {
        let accepted = matches!(answer, Answer::Sent(Sent::Accepted));
        let refused = matches!(answer, Answer::Sent(Sent::Refused | Sent::Underpriced));
        let last = self
            .state
            .flight(id)
            .and_then(|flight| flight.attempts.last());
        let settles = last.is_some_and(|last| last.kind == Kind::Settle);
        if let Some(Phase::Out(out)) = self.phases.get_mut(&id) {
            out.accepted = accepted;
            out.refused = refused;
            out.taken |=
                settles && !matches!(answer, Answer::Sent(sent) if *sent != Sent::Accepted);
        }
        if !accepted {
            // Whether the node has it is not known: look, before anything new.
            self.refusals += 1;
            self.clean = false;
            self.survey_due = true;
        }
    }
}
