//! The binding's table of payloads and receipts, a row for each row of the host.

use crate::bug::Bug;
use crate::coverage::{Event, Met};
use crate::rule::{Rule, Step, Violation, ensure};
use crate::unit::Stage;
use crate::world::World;
use regatta_core::host::{Accepted, ClosePhase, Grant};
use regatta_core::lane::HoldReason;
use regatta_core::unit::{Outcome, UnitId};

impl World<'_> {
    /// The payload of a unit, unless it has ended.
    pub(crate) fn take_payload(&mut self, id: UnitId) -> Step<Option<usize>> {
        let unit = self.rows.get(id.index()).copied().flatten();
        let Some(n) = unit.filter(|n| self.units[*n].id == Some(id)) else {
            return Ok(None);
        };
        let unit = &mut self.units[n];
        if unit.outcome.is_some() && self.bug != Some(Bug::FencedPayloadRun) {
            return Ok(None);
        }
        ensure(
            unit.stage == Stage::Payload && unit.outcome.is_none(),
            Rule::Once,
            || format!("unit {n} runs although it {:?}", unit.outcome),
        )?;
        unit.stage = Stage::Began;
        Ok(Some(n))
    }

    /// A unit that was handed back waits before all others of its lane.
    pub(crate) fn returned(&mut self, grant: Grant) {
        let n = self.rows.get(grant.unit.index()).copied().flatten();
        if let Some(unit) = n.map(|n| &mut self.units[n])
            && unit.outcome.is_none()
        {
            unit.stage = Stage::Returned;
            self.returned[grant.role.index()] += 1;
        }
    }

    /// What was granted comes before what never was.
    pub(crate) fn check_turn(&mut self, grant: Grant) -> Step {
        let n = self.rows.get(grant.unit.index()).copied().flatten();
        let Some(unit) = n.map(|n| &mut self.units[n]) else {
            return Err(Violation::new(Rule::Once, format!("{grant:?} of no unit")));
        };
        let returned = &mut self.returned[grant.role.index()];
        if unit.stage == Stage::Returned {
            unit.stage = Stage::Payload;
            *returned -= 1;
            return Ok(());
        }
        // With a home for each key, those of one key say nothing of another's.
        ensure(*returned == 0 || grant.pin.is_some(), Rule::Ordered, || {
            format!("{grant:?} goes before {returned} that were handed back")
        })
    }

    pub(crate) fn put_output(&mut self, id: UnitId, output: Option<u64>) -> Step {
        let Some(n) = self.rows.get(id.index()).copied().flatten() else {
            return Ok(());
        };
        let unit = &mut self.units[n];
        ensure(unit.output.is_none(), Rule::Once, || {
            format!("unit {n} has two outputs")
        })?;
        unit.output = output;
        Ok(())
    }

    pub(crate) fn accept(&mut self, n: usize, accepted: Accepted) -> Step {
        let met = match accepted {
            Accepted::Queued(_) => Met::Queued,
            Accepted::Held(_, reason) => {
                self.cover.hold(reason);
                Met::Held
            }
            Accepted::Dead(_) => {
                self.cover.hold(HoldReason::NoSeat);
                Met::Dead
            }
        };
        self.cover.met(met);
        let id = accepted.unit();
        let row = &mut self.rows[id.index()];
        ensure(row.is_none(), Rule::Once, || {
            format!("unit {n} has the row of unit {row:?}")
        })?;
        *row = Some(n);
        if id.generation() > 0 {
            self.cover.event(Event::RowReused);
        }
        self.units[n].id = Some(id);
        Ok(())
    }

    pub(crate) fn resolve(&mut self, id: UnitId, outcome: Outcome) -> Step {
        let n = self.rows.get(id.index()).copied().flatten();
        let n = n.filter(|n| self.units[*n].id == Some(id)).ok_or_else(|| {
            Violation::new(Rule::Once, format!("{id:?} ended, and nobody submitted it"))
        })?;
        self.cover.outcomes.note(outcome as usize);
        let deaths = self.deaths != 0;
        let closing = self.host.closing();
        let unit = &mut self.units[n];
        ensure(unit.outcome.is_none(), Rule::Once, || {
            format!("unit {n} ended twice: {:?} and {outcome:?}", unit.outcome)
        })?;
        let began = unit.stage == Stage::Began;
        let right = match outcome {
            Outcome::Done => !unit.panics && began,
            Outcome::Panicked => unit.panics && began,
            Outcome::LaneDeath => deaths,
            Outcome::Closed => closing == Some(ClosePhase::Fence),
            Outcome::NotRun => closing.is_some() && !began,
        };
        ensure(right, Rule::Once, || {
            format!("{unit:?} ended as {outcome:?}")
        })?;
        let output = (outcome == Outcome::Done).then(|| unit.result(n));
        ensure(unit.output == output, Rule::Once, || {
            format!(
                "unit {n} ended as {outcome:?} with the output {:?}",
                unit.output
            )
        })?;
        unit.outcome = Some(outcome);
        if unit.stage == Stage::Returned {
            self.returned[unit.role.index()] -= 1;
        }
        self.ended(n)
    }
}
