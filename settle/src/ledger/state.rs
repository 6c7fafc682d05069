//! What a ledger's entries add up to.
//!
//! # Invariants
//! - Planned settlements and filled gaps are open or ended: `planned + gaps = open + the sum over outcomes`.
//! - A settlement's transactions have one nonce, and no two settlements have the same one, unless the earlier one ended
//!   without using it.
//! - What a reversal takes back is what the outcome had added.

use std::collections::BTreeMap;

use alloy_primitives::U256;
use serde::Serialize;

use super::entry::{Attempt, Block, Entry, Id, Outcome, Plan};

/// How many ended settlements are kept for a reversal.
pub const KEPT: usize = 4096;

/// A settlement as far as its entries say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flight {
    /// What it is; nothing if it fills a gap.
    pub plan: Option<Plan>,
    /// Its nonce, once a transaction is signed.
    pub nonce: Option<u64>,
    /// Its transactions, in the order of signing.
    pub attempts: Vec<Attempt>,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

/// Sums over all entries. Amounts are wei.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Settlements that began.
    pub planned: u64,
    /// Gaps in the nonces that began to be filled.
    pub gaps: u64,
    /// Transactions that may have been sent.
    pub sent: u64,
    /// Settlements that ended included, less those reversed; the same for the next ones.
    pub included: u64,
    /// Ended reverted.
    pub reverted: u64,
    /// Ended expired.
    pub expired: u64,
    /// Ended dropped.
    pub dropped: u64,
    /// Ended replaced.
    pub replaced: u64,
    /// Ended by a dry run that failed.
    pub dry_run_failed: u64,
    /// Gaps that were filled.
    pub filled: u64,
    /// Shadow mode: would have run.
    pub shadow_hits: u64,
    /// Shadow mode: would have failed.
    pub shadow_misses: u64,
    /// Outcomes that were taken back.
    pub reversed: u64,
    /// What was predicted for the included ones, before gas.
    pub predicted: U256,
    /// What they brought in, before gas.
    pub realised: U256,
    /// What all transactions in blocks cost.
    pub gas_spent: U256,
    /// The sum of what each settlement cost beyond what it brought in.
    pub loss: U256,
    /// Shadow mode: what the hits would have brought in, before gas.
    pub shadow_realised: U256,
}

impl Totals {
    /// How many settlements and gaps have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.included
            + self.reverted
            + self.expired
            + self.dropped
            + self.replaced
            + self.dry_run_failed
            + self.filled
            + self.shadow_hits
            + self.shadow_misses
    }

    /// How many are open.
    #[must_use]
    pub fn open(&self) -> u64 {
        (self.planned + self.gaps).saturating_sub(self.ended())
    }

    /// Adds an outcome, or takes it back.
    fn count(&mut self, outcome: &Outcome, predicted: U256, back: bool) {
        let counter = match outcome {
            Outcome::Included { .. } => &mut self.included,
            Outcome::Reverted { .. } => &mut self.reverted,
            Outcome::Expired { .. } => &mut self.expired,
            Outcome::Dropped { .. } => &mut self.dropped,
            Outcome::Replaced { .. } => &mut self.replaced,
            Outcome::DryRunFailed { .. } => &mut self.dry_run_failed,
            Outcome::Filled { .. } => &mut self.filled,
            Outcome::ShadowHit { .. } => &mut self.shadow_hits,
            Outcome::ShadowMiss { .. } => &mut self.shadow_misses,
        };
        *counter = if back {
            counter.saturating_sub(1)
        } else {
            *counter + 1
        };
        let shadow = match outcome {
            Outcome::ShadowHit { realised, .. } => *realised,
            _ => U256::ZERO,
        };
        let included = matches!(outcome, Outcome::Included { .. });
        let predicted = if included { predicted } else { U256::ZERO };
        let (realised, cost) = (outcome.realised(), outcome.cost());
        for (sum, amount) in [
            (&mut self.predicted, predicted),
            (&mut self.realised, realised),
            (&mut self.gas_spent, cost),
            (&mut self.loss, cost.saturating_sub(realised)),
            (&mut self.shadow_realised, shadow),
        ] {
            *sum = if back {
                sum.saturating_sub(amount)
            } else {
                sum.saturating_add(amount)
            };
        }
    }
}

/// An entry that cannot follow those before it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Inconsistent {
    /// A number that is not the next one.
    #[error("{id} begins, not {next}")]
    Number {
        /// The number.
        id: Id,
        /// The one that is next.
        next: Id,
    },
    /// About a settlement that is not there, or is forgotten.
    #[error("{0} is not known")]
    Unknown(Id),
    /// About a settlement that has ended.
    #[error("{0} has ended already")]
    Ended(Id),
    /// A reversal of one that has not ended there.
    #[error("{0} did not end in the block that is taken back")]
    NotThere(Id),
    /// A second nonce for one settlement.
    #[error("{id} has nonce {had}, not {nonce}")]
    Nonce {
        /// The settlement.
        id: Id,
        /// Its nonce.
        had: u64,
        /// The other one.
        nonce: u64,
    },
    /// A nonce that another settlement has.
    #[error("nonce {nonce} of {id} is that of {other}")]
    Taken {
        /// The settlement.
        id: Id,
        /// The nonce.
        nonce: u64,
        /// Whose it is.
        other: Id,
    },
}

/// What the entries up to now say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    flights: BTreeMap<Id, Flight>,
    next: u64,
    next_nonce: Option<u64>,
    ended: usize,
    totals: Totals,
}

impl State {
    /// The open settlements and the last ended ones, in order.
    pub fn flights(&self) -> impl Iterator<Item = (Id, &Flight)> {
        self.flights.iter().map(|(id, flight)| (*id, flight))
    }

    /// The open settlements, in order.
    pub fn open(&self) -> impl Iterator<Item = (Id, &Flight)> {
        self.flights()
            .filter(|(_, flight)| flight.outcome.is_none())
    }

    /// A settlement, unless it is forgotten.
    #[must_use]
    pub fn flight(&self, id: Id) -> Option<&Flight> {
        self.flights.get(&id)
    }

    /// The next settlement's number.
    #[must_use]
    pub fn next_id(&self) -> Id {
        Id(self.next)
    }

    /// One more than the highest nonce that was used here.
    #[must_use]
    pub fn next_nonce(&self) -> Option<u64> {
        self.next_nonce
    }

    /// The sums.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The highest block that an outcome names.
    #[must_use]
    pub fn highest_block(&self) -> Option<Block> {
        let outcomes = self
            .flights
            .values()
            .filter_map(|flight| flight.outcome.as_ref());
        let blocks = outcomes.filter_map(|outcome| Some(outcome.mined()?.block));
        blocks.max_by_key(|block| block.number)
    }

    fn open_flight(&mut self, id: Id) -> Result<&mut Flight, Inconsistent> {
        let flight = self.flights.get_mut(&id).ok_or(Inconsistent::Unknown(id))?;
        if flight.outcome.is_some() {
            return Err(Inconsistent::Ended(id));
        }
        Ok(flight)
    }

    fn begin(&mut self, id: Id, flight: Flight) -> Result<(), Inconsistent> {
        let next = self.next_id();
        if id != next {
            return Err(Inconsistent::Number { id, next });
        }
        self.next += 1;
        self.flights.insert(id, flight);
        Ok(())
    }

    /// Adds an entry, if it can follow those before it; else nothing changes.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), Inconsistent> {
        match entry {
            Entry::Planned { id, plan } => {
                let plan = Some(plan.clone());
                let flight = Flight {
                    plan,
                    ..Flight::default()
                };
                self.begin(*id, flight)?;
                self.totals.planned += 1;
            }
            Entry::Sent { id, nonce, attempt } => {
                let other = self.flights.iter().find(|(other, flight)| {
                    let used = flight
                        .outcome
                        .as_ref()
                        .is_none_or(|outcome| outcome.mined().is_some());
                    *other != id && flight.nonce == Some(*nonce) && used
                });
                if let Some((other, _)) = other {
                    let (id, nonce, other) = (*id, *nonce, *other);
                    return Err(Inconsistent::Taken { id, nonce, other });
                }
                if *id == self.next_id() {
                    self.begin(*id, Flight::default())?;
                    self.totals.gaps += 1;
                }
                let flight = self.open_flight(*id)?;
                if let Some(had) = flight.nonce.filter(|had| had != nonce) {
                    let (id, nonce) = (*id, *nonce);
                    return Err(Inconsistent::Nonce { id, had, nonce });
                }
                flight.nonce = Some(*nonce);
                flight.attempts.push(attempt.clone());
                self.totals.sent += 1;
                self.next_nonce = self.next_nonce.max(nonce.checked_add(1));
            }
            Entry::Outcome { id, outcome } => {
                let flight = self.open_flight(*id)?;
                let predicted = flight.plan.as_ref().map(Plan::predicted);
                flight.outcome = Some(outcome.clone());
                let predicted = predicted.unwrap_or_default();
                self.totals.count(outcome, predicted, false);
                self.ended += 1;
                self.forget();
            }
            Entry::Reversed { id, block } => {
                let flight = self.flights.get_mut(id).ok_or(Inconsistent::Unknown(*id))?;
                let there = |outcome: &Outcome| match outcome {
                    Outcome::Replaced { .. } => block.is_none(),
                    other => block.is_some() && other.mined().map(|mined| mined.block) == *block,
                };
                if !flight.outcome.as_ref().is_some_and(there) {
                    return Err(Inconsistent::NotThere(*id));
                }
                let predicted = flight.plan.as_ref().map(Plan::predicted);
                if let Some(outcome) = flight.outcome.take() {
                    self.totals
                        .count(&outcome, predicted.unwrap_or_default(), true);
                }
                self.totals.reversed += 1;
                self.ended = self.ended.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Drops the oldest ended settlement, if too many are kept.
    fn forget(&mut self) {
        if self.ended <= KEPT {
            return;
        }
        let mut ended = self
            .flights
            .iter()
            .filter(|(_, flight)| flight.outcome.is_some());
        if let Some(id) = ended.next().map(|(id, _)| *id) {
            self.flights.remove(&id);
            self.ended -= 1;
        }
    }
}
