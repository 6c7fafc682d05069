//! What is checked of a run after each call, each step, and each moment.

use crate::fleet::{DELTA, SOLVER};
use crate::rule::{Rule, Step, Violation, ensure};
use crate::thread::{At, Bring, Thread};
use crate::unit::Stage;
use crate::world::World;
use regatta_core::guard::LedgerView;
use regatta_core::host::Grant;
use regatta_core::role::{CordonClass, RoleId};
use regatta_core::unit::Outcome;

/// Calls of the host between two recounts from the rows.
const AUDIT_EVERY: u64 = 64;

impl World<'_> {
    /// After a call of the host: the books, and the tables of transitions.
    pub(crate) fn note(&mut self) -> Step {
        self.notes += 1;
        if self.notes.is_multiple_of(AUDIT_EVERY) {
            self.audit()?;
        }
        for (seat, holder) in self.host.seats().iter().enumerate() {
            let (before, after) = (self.phases[seat], holder.phase());
            if before != after {
                self.phases[seat] = after;
                ensure(
                    self.cover.slot(holder.spec().kind, before, after),
                    Rule::Tables,
                    || format!("seat {seat} went from {before:?} to {after:?}"),
                )?;
            }
        }
        for role in self.plan.table.ids() {
            let Some((after, ledger)) = self.host.progress(role).zip(self.host.ledger(role)) else {
                continue;
            };
            let before = std::mem::replace(&mut self.progress[role.index()], after);
            if before != after {
                ensure(self.cover.lane(before, after), Rule::Tables, || {
                    format!("lane {role:?} went from {before:?} to {after:?}")
                })?;
            }
            ensure(ledger.balanced(), Rule::Conserves, || {
                format!("{role:?}: {ledger:?}")
            })?;
        }
        Ok(())
    }

    pub(crate) fn audit(&self) -> Step {
        let audit = self.host.audit();
        audit.map_err(|error| Violation::new(Rule::Conserves, error.to_string()))
    }

    fn in_flight(&self, pick: impl Fn(RoleId) -> bool) -> u64 {
        let roles = self.plan.table.ids().filter(|role| pick(*role));
        roles
            .filter_map(|role| self.host.ledger(role))
            .map(|ledger| ledger.in_flight)
            .sum()
    }

    /// What was just granted or begun, the guard must allow, itself counted.
    pub(crate) fn check_guarded(&self, grant: Grant, what: &str) -> Step {
        // From those who own the words, not from the words.
        let posture = self.sampler.owner.machine().view();
        let permits = self.plan.permits;
        let role = grant.role;
        let Some(spec) = self.plan.table.get(role) else {
            return Err(Violation::new(
                Rule::Guarded,
                format!("{grant:?} of no role"),
            ));
        };
        let own = self.in_flight(|other| other == role);
        let deferrable = spec.cordon == CordonClass::Deferrable;
        let slots = self.plan.slots(role).max(1);
        let floored = spec.cordon == CordonClass::SimFloor && posture.cordoned;
        let floor = posture.sim_floor.unwrap_or(slots.div_ceil(2)).max(1);
        let keyed = self.is_pinned() && role == SOLVER;
        let broken = [
            (deferrable && posture.cordoned, "a cordon"),
            (deferrable && permits.below_floor, "the floor"),
            (
                spec.cordon != CordonClass::Never && self.ledger.contains(role),
                "the ledger",
            ),
            (own > u64::from(slots), "its slots"),
            (floored && own > u64::from(floor), "the floor of the cordon"),
            (
                self.in_flight(|_| true) > u64::from(permits.total),
                "the permits",
            ),
            (keyed && own > u64::from(permits.keyed), "the keyed permits"),
        ];
        let broken = broken.iter().find(|(broken, _)| *broken);
        ensure(broken.is_none(), Rule::Guarded, || {
            let by = broken.map_or("", |(_, by)| by);
            format!("{grant:?} was {what} against {by}: {posture:?}, {permits:?}")
        })
    }

    /// After a step: no wake is lost, and the deadline has its one holder.
    pub(crate) fn check(&self) -> Step {
        if self.aborted {
            return Ok(());
        }
        let ringing = self.threads.iter().map(Thread::rings);
        let ringing = ringing.chain(self.tasks.iter().map(|task| task.rings.seats));
        let ringing = ringing.fold(self.clients.crawl_rings(), |all, rings| all | rings);
        let dying = self.tasks.iter().fold(0_u64, |all, task| match task.bring {
            Some(Bring::Died(seat) | Bring::Buried(seat)) => all | 1 << seat,
            _ => all,
        });
        let armed = {
            let mut guard = self.read();
            guard.ledger = LedgerView::default();
            self.host.next_deadline(&guard)
        };
        let mut held = armed.is_none() || dying != 0;
        let mut keepers = 0;
        for (seat, thread) in self.threads.iter().enumerate() {
            let bit = 1 << seat;
            let looks = thread.will_look(self.bells & bit != 0, ringing & bit != 0);
            if self.mail[seat].is_some() && dying & bit == 0 {
                ensure(looks, Rule::Rung, || {
                    format!(
                        "seat {seat} has {:?} and is at {:?}",
                        self.mail[seat], thread.at
                    )
                })?;
            }
            let deadline = thread.deadline();
            keepers += u32::from(deadline.is_some());
            held |= looks;
            held |= deadline
                .zip(armed)
                .is_some_and(|(sleeps, due)| sleeps <= due);
        }
        ensure(held, Rule::Held, || {
            format!(
                "the host wants a tick at {armed:?} and nobody will look: {:?}",
                self.threads
                    .iter()
                    .map(|thread| thread.at)
                    .collect::<Vec<At>>()
            )
        })?;
        ensure(keepers <= 1, Rule::Held, || {
            format!("{keepers} threads sleep for the deadline")
        })
    }

    /// The bound: whoever could run does within the interval, by the time that nobody stole.
    pub(crate) fn check_live(&mut self) -> Step {
        let guard = self.read();
        for role in self.plan.table.ids() {
            let waits = self
                .host
                .ledger(role)
                .is_some_and(|ledger| ledger.waiting() > 0);
            let since = &mut self.since[role.index()];
            if !waits || self.host.hold(role, &guard).is_some() {
                *since = None;
                continue;
            }
            let since = *since.get_or_insert(self.time.fair);
            let waited = self.time.fair.saturating_sub(since);
            ensure(waited <= DELTA, Rule::Live, || {
                format!("{role:?} could have run for {} ms", waited.as_millis())
            })?;
        }
        Ok(())
    }

    /// The end: everything is terminal, empty or typed, and at rest.
    pub(crate) fn check_end(&mut self) -> Step {
        self.audit()?;
        let fenced = self.host.closing() == Some(regatta_core::host::ClosePhase::Fence);
        for (n, unit) in self.units.iter().enumerate() {
            ensure(
                unit.outcome.is_some() != (unit.stage == Stage::Refused),
                Rule::Ends,
                || format!("unit {n}: {unit:?}"),
            )?;
            let done = unit.outcome == Some(Outcome::Done);
            ensure(unit.output.is_some() == done, Rule::Once, || {
                format!("unit {n} ended, and then got an output: {unit:?}")
            })?;
        }
        let row = self.rows.iter().position(Option::is_some);
        ensure(row.is_none(), Rule::Ends, || {
            format!("row {row:?} was never released")
        })?;
        for role in self.plan.table.ids() {
            use regatta_core::lane::Progress;
            let ledger = self.host.ledger(role).unwrap_or_default();
            let left = ledger.waiting() + ledger.in_flight + ledger.uncollected;
            ensure(left == 0, Rule::Ends, || format!("{role:?}: {ledger:?}"))?;
            let right = match self.host.progress(role) {
                Some(Progress::Idle) => self.host.closing().is_none(),
                Some(Progress::Closed) => self.host.closing().is_some(),
                Some(Progress::Faulted) => self.deaths != 0,
                Some(Progress::Backed) | None => false,
            };
            ensure(right, Rule::Ends, || {
                format!("{role:?} is {:?}", self.host.progress(role))
            })?;
        }
        for (seat, thread) in self.threads.iter().enumerate() {
            let right = match thread.at {
                At::Blocked(None) => !fenced,
                At::Ended => fenced,
                At::Gone => self.deaths & 1 << seat != 0,
                _ => false,
            };
            ensure(right, Rule::Quiet, || {
                format!("seat {seat} is at {:?}", thread.at)
            })?;
        }
        let due = self.host.next_deadline(&self.read());
        ensure(due.is_none() && self.host.is_idle(), Rule::Quiet, || {
            format!("the host wants a tick at {due:?}")
        })?;
        ensure(self.clients.open_epoch().is_none(), Rule::Fused, || {
            "the epoch never closed".to_owned()
        })?;
        if self.deaths == 0 && self.host.closing().is_none() {
            self.check_reference()?;
        }
        Ok(())
    }

    /// The outcomes and outputs are those of a driver that does one thing after the other.
    fn check_reference(&mut self) -> Step {
        let plain = crate::reference::run(&self.units)?;
        for (n, (unit, plain)) in self.units.iter().zip(plain).enumerate() {
            let seen = (unit.outcome, unit.output);
            ensure(seen == (Some(plain.0), plain.1), Rule::Agrees, || {
                format!("unit {n} is {seen:?}, and {plain:?} by the plain driver")
            })?;
        }
        let done = self
            .units
            .iter()
            .filter(|unit| unit.outcome == Some(Outcome::Done));
        let outputs = done.filter(|unit| unit.output.is_some()).count();
        let counted: u64 = self
            .plan
            .table
            .ids()
            .filter_map(|role| self.host.ledger(role))
            .map(|ledger| ledger.resolved)
            .sum();
        ensure(
            counted == self.units.len() as u64 && outputs <= self.units.len(),
            Rule::Agrees,
            || format!("{counted} units ended of {}", self.units.len()),
        )
    }
}
