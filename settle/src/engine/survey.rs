//! What became of what is out: receipts and counts, asked on every head, and what follows from them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use alloy_primitives::{B256, U256};

use super::flight::{Out, Phase, Target};
use super::{Action, Answer, CallId, DryRun, Engine, Mode, Purpose, Receipt, Stop, cancels};
use crate::abi::{self, Reason};
use crate::ledger::{Id, Kind, Mined, Outcome, Plan};
use crate::nonce::{Behind, Counts, Reconciled, reconcile};

/// More gaps than this are not what a mempool dropped: the chain is another one. Each costs a transaction to fill.
const MOST_GAPS: usize = 32;

/// A look at everything that is out.
#[derive(Debug)]
pub(super) struct Survey {
    /// The height when it began.
    height: u64,
    /// What it looks at.
    targets: BTreeSet<Id>,
    /// Answers that are to come.
    waiting: BTreeSet<CallId>,
    /// The receipts in blocks of the chain.
    receipts: BTreeMap<Id, (B256, Receipt)>,
    /// Those of which no answer, or one from elsewhere than the chain, came.
    unsure: BTreeSet<Id>,
    /// The counts, if they came.
    counts: Option<Counts>,
    /// How much had been refused when it began.
    refusals: u64,
}

impl Engine {
    /// Begins a survey, if one is due and none is under way.
    pub(super) fn start_survey(&mut self, now: Duration) {
        let Some(head) = self
            .head
            .filter(|_| self.survey_due && self.survey.is_none())
        else {
            return;
        };
        self.survey_due = false;
        let height = head.block.number;
        let out = self
            .phases
            .iter()
            .filter(|(_, phase)| matches!(phase, Phase::Out(_)));
        let due = self.unconfirmed.iter().filter(|(_, due)| **due <= height);
        let targets = out.map(|(id, _)| *id).chain(due.map(|(id, _)| *id));
        let targets: BTreeSet<Id> = targets.collect();
        if targets.is_empty() && (self.clean || self.config.mode == Mode::Shadow) {
            return;
        }
        let mut survey = Survey {
            height,
            targets,
            waiting: BTreeSet::new(),
            receipts: BTreeMap::new(),
            unsure: BTreeSet::new(),
            counts: None,
            refusals: self.refusals,
        };
        // The counts first: what a block has by then, the receipts after it show.
        let account = self.config.owner;
        let call = self.call(Purpose::Counts, now, |call| Action::Counts {
            call,
            account,
        });
        survey.waiting.insert(call);
        let attempts = |id: &Id| {
            let attempts = self.state.flight(*id).map(|flight| flight.attempts.iter());
            let id = *id;
            attempts
                .into_iter()
                .flatten()
                .map(move |attempt| (id, attempt.hash))
        };
        let asked: Vec<(Id, B256)> = survey.targets.iter().flat_map(attempts).collect();
        for (id, hash) in asked {
            let call = self.call(Purpose::Receipt(id, hash), now, |call| Action::Receipt {
                call,
                hash,
            });
            survey.waiting.insert(call);
        }
        self.survey = Some(survey);
    }

    pub(super) fn receipt_told(&mut self, call: CallId, id: Id, hash: B256, answer: Answer) {
        let of_chain = match &answer {
            Answer::Receipt(Some(receipt)) => self.is_of_chain(receipt.block),
            _ => false,
        };
        let Some(survey) = self.survey.as_mut() else {
            return;
        };
        survey.waiting.remove(&call);
        match answer {
            Answer::Receipt(None) => {}
            Answer::Receipt(Some(receipt)) if of_chain => {
                survey.receipts.insert(id, (hash, receipt));
            }
            _ => {
                survey.unsure.insert(id);
            }
        }
    }

    pub(super) fn counts_told(&mut self, call: CallId, answer: &Answer) {
        if let Some(survey) = self.survey.as_mut() {
            survey.waiting.remove(&call);
            if let Answer::Counts(counts) = answer {
                survey.counts = Some(*counts);
            }
        }
    }

    /// Draws the consequences, when every answer has come.
    pub(super) fn finish_survey(&mut self, now: Duration) {
        let Some(survey) = self.survey.take_if(|survey| survey.waiting.is_empty()) else {
            return;
        };
        for (id, (hash, receipt)) in &survey.receipts {
            // A reorg may have come since it was told.
            if self.is_of_chain(receipt.block) {
                self.found(*id, *hash, receipt, now);
            } else {
                self.survey_due = true;
            }
        }
        let Some(counts) = survey.counts else {
            return;
        };
        let out: BTreeSet<u64> = self
            .state
            .open()
            .filter_map(|(_, flight)| flight.nonce)
            .collect();
        // A nonce that the record has seen used of late is not a gap, but it is a reason to look.
        let used = self.state.flights().filter_map(|(id, flight)| {
            let ended = flight.outcome.as_ref()?.mined().is_some();
            Some((flight.nonce.filter(|_| ended)?, id))
        });
        let (kept, settled): (BTreeMap<u64, Id>, BTreeMap<u64, Id>) =
            used.partition(|(_, id)| self.unconfirmed.contains_key(id));
        let nonces = kept.keys().copied().collect();
        let next = self.state.next_nonce();
        let reconciled = reconcile(next, &out, &nonces, counts, MOST_GAPS).and_then(|reconciled| {
            // What was looked at a second time does not come free again on the same chain.
            let free = reconciled
                .gaps
                .iter()
                .any(|nonce| settled.contains_key(nonce));
            let (latest, next) = (counts.latest, reconciled.next);
            if free {
                Err(Behind { latest, next })
            } else {
                Ok(reconciled)
            }
        });
        match reconciled {
            Err(behind) => {
                self.stop.get_or_insert(Stop::Behind(behind));
            }
            Ok(reconciled) => self.decide(&survey, counts, &reconciled, &kept, now),
        }
    }

    fn decide(
        &mut self,
        survey: &Survey,
        counts: Counts,
        reconciled: &Reconciled,
        kept: &BTreeMap<u64, Id>,
        now: Duration,
    ) {
        self.next_nonce = Some(reconciled.next);
        let mut clean = reconciled.gaps.is_empty() && survey.refusals == self.refusals;
        // What the record has in a block and the chain has not.
        for id in kept.range(counts.latest..).map(|(_, id)| *id) {
            clean = false;
            if !survey.targets.contains(&id) {
                self.unconfirmed.insert(id, 0);
                self.survey_due = true;
            }
        }
        for id in survey.targets.iter().copied() {
            let unseen = !survey.receipts.contains_key(&id) && !survey.unsure.contains(&id);
            match self.phases.get(&id) {
                Some(Phase::Out(_)) if unseen => {
                    clean &= self.follow(id, counts, reconciled, survey.height, now);
                }
                Some(Phase::Out(_)) => clean = false,
                Some(_) => {}
                None => self.confirm(id, unseen, survey.height),
            }
        }
        if self.config.mode == Mode::Live {
            self.wanted
                .extend(reconciled.gaps.iter().map(|nonce| Target::Gap(*nonce)));
        }
        self.clean = clean;
    }

    /// A settlement is out and no block has it. Whether that is as it should be.
    fn follow(
        &mut self,
        id: Id,
        counts: Counts,
        reconciled: &Reconciled,
        height: u64,
        now: Duration,
    ) -> bool {
        let Some(flight) = self.state.flight(id) else {
            return true;
        };
        let (Some(nonce), Some(Phase::Out(out))) = (flight.nonce, self.phases.get(&id)) else {
            return true;
        };
        let mut out: Out = *out;
        if nonce < counts.latest {
            // Told twice, at different heights: the receipt may be late.
            if out.passed.is_some_and(|before| before < height) {
                self.end(id, Outcome::Replaced { by: None });
                return true;
            }
            out.passed = out.passed.or(Some(height));
            self.phases.insert(id, Phase::Out(out));
            return false;
        }
        if out.passed.take().is_some() {
            self.phases.insert(id, Phase::Out(out));
        }
        let absent = reconciled.absent.contains(&nonce);
        if self.config.mode == Mode::Shadow {
            return !absent;
        }
        let last = flight.attempts.last().map(|last| last.kind);
        let cancelling = last == Some(Kind::Cancel);
        let expired = self.is_expired(flight);
        let patience = out.signed.saturating_add(self.config.expiry_blocks);
        let again = !cancelling || out.refused || height >= patience;
        let cancel = Target::Cancel(id);
        let can = cancels(flight) < self.config.max_replacements && self.freeing(cancel).is_some();
        if expired && again && can && out.signed < height {
            self.wanted.push_back(cancel);
        }
        // One that has expired costs gas and frees the nonce: the last resort.
        if absent && out.tried < height && (cancelling || !expired || !can) {
            self.send_last(id, now);
        }
        // What went out since this look began, it cannot have seen.
        !absent || (out.tried >= height && out.accepted)
    }

    /// An ended settlement is looked at once more.
    fn confirm(&mut self, id: Id, unseen: bool, height: u64) {
        let Some(flight) = self.state.flight(id) else {
            self.unconfirmed.remove(&id);
            return;
        };
        let Some(outcome) = &flight.outcome else {
            return;
        };
        let mined = outcome.mined();
        let settled = mined.map_or(0, |mined| mined.block.number);
        // Whether its nonce is free again or somebody else's, the next looks show.
        if let Some(block) = mined.map(|mined| mined.block).filter(|_| unseen) {
            self.reopen(id, Some(block));
        } else if height >= settled.saturating_add(self.config.depth) {
            self.unconfirmed.remove(&id);
        } else {
            self.unconfirmed
                .insert(id, settled.saturating_add(self.config.depth));
        }
    }

    /// A block of the chain has a transaction of the settlement.
    fn found(&mut self, id: Id, hash: B256, receipt: &Receipt, now: Duration) {
        let mined = Mined {
            hash,
            block: receipt.block,
            gas_used: receipt.gas_used,
            gas_price: receipt.gas_price,
        };
        let Some(flight) = self.state.flight(id) else {
            return;
        };
        if let Some(outcome) = &flight.outcome {
            let had = outcome.mined().map(|mined| (mined.hash, mined.block));
            let replaced = matches!(outcome, Outcome::Replaced { .. });
            if had == Some((hash, mined.block)) || (had.is_none() && !replaced) {
                return;
            }
            let block = had.map(|(_, block)| block);
            self.reopen(id, block);
        } else if !matches!(self.phases.get(&id), Some(Phase::Out(_))) {
            return;
        }
        let Some(flight) = self.state.flight(id) else {
            return;
        };
        let attempt = flight.attempts.iter().find(|attempt| attempt.hash == hash);
        let limit = attempt.map_or(0, |attempt| attempt.gas_limit);
        match (attempt.map(|attempt| attempt.kind), flight.plan.clone()) {
            (Some(Kind::Settle), Some(plan)) if receipt.succeeded => {
                self.included(id, &plan, receipt, mined);
            }
            (Some(Kind::Settle), Some(plan)) => {
                let expiry = plan.cycle.expiry;
                if mined.block.number > expiry {
                    let reason = Reason::Expired(U256::from(expiry));
                    self.end(id, Outcome::Reverted { reason, mined });
                } else if mined.gas_used >= limit {
                    let reason = Reason::OutOfGas;
                    self.end(id, Outcome::Reverted { reason, mined });
                } else {
                    self.phases.insert(id, Phase::Why(mined));
                    let (from, to) = (self.config.owner, self.config.executor);
                    let (at, data) = (mined.block, plan.cycle.calldata());
                    self.call(Purpose::Why(id, mined), now, |call| Action::DryRun {
                        call,
                        at,
                        from,
                        to,
                        data,
                        estimate: false,
                    });
                }
            }
            (_, plan) => {
                let outcome = self.freed(id, plan.is_some(), mined);
                self.end(id, outcome);
            }
        }
    }

    /// How a settlement ends whose nonce a transaction took that does nothing.
    fn freed(&self, id: Id, planned: bool, mined: Mined) -> Outcome {
        let cancel = Some(mined);
        let refused = matches!(self.phases.get(&id), Some(Phase::Out(out)) if !out.taken);
        match (planned, refused) {
            (false, _) => Outcome::Filled { cancel: mined },
            (true, true) => Outcome::Dropped { cancel },
            (true, false) => Outcome::Expired { cancel },
        }
    }

    /// The cycle ran: what the executor reports is what it brought in.
    fn included(&mut self, id: Id, plan: &Plan, receipt: &Receipt, mined: Mined) {
        let (executor, base) = (self.config.executor, plan.cycle.base);
        let mut reports = receipt
            .logs
            .iter()
            .filter_map(|log| abi::settled(executor, base, log.address, &log.topics, &log.data));
        // One call reports once; more are not of this contract.
        let realised = match (reports.next(), reports.next()) {
            (Some(realised), None) => Some(realised),
            _ => None,
        };
        let predicted = plan.predicted();
        let known = realised.unwrap_or_default();
        self.end(
            id,
            Outcome::Included {
                realised: known,
                mined,
            },
        );
        if realised != Some(predicted) {
            self.stop.get_or_insert(Stop::ProfitDiffers {
                id,
                predicted,
                realised,
            });
        }
    }

    pub(super) fn why_told(&mut self, id: Id, mined: Mined, answer: &Answer) {
        if self.phases.get(&id) != Some(&Phase::Why(mined)) {
            return;
        }
        let reason = match answer {
            Answer::DryRun(DryRun::Reverted(data)) => Reason::decode(data),
            Answer::DryRun(DryRun::Done { .. }) => Reason::NotReproduced,
            Answer::Failed(text) => Reason::Node(abi::bounded(text)),
            _ => Reason::Node("another answer than was asked for".to_owned()),
        };
        self.end(id, Outcome::Reverted { reason, mined });
    }
}
