//! The binding: what is done under the lock, by seats and by whoever brings an input.
//!
//! Whoever brings an input hands it to the host, polls grants until there are none, puts each into the
//! mailbox of its seat and, when the lock is let go, rings the bells of those seats. While the host has a
//! deadline one seat sleeps until then, the timekeeper; who arms the backstop, or takes the timekeeper
//! away from it, rings an idle seat to take it over.

use crate::bug::Bug;
use crate::coverage::{Event, Met};
use crate::rule::{Rule, Step, Violation, ensure};
use crate::script::Tier;
use crate::thread::{Bring, Then};
use crate::world::World;
use regatta_core::host::{Alarm, ClosePhase, EnqueueError, Grant, Reaction, StartError};
use regatta_core::role::SeatKind;
use regatta_core::seat::{SeatId, SlotPhase};
use regatta_core::unit::RunResult;

impl World<'_> {
    /// A seat takes the lock and looks for a grant, or for a deadline to sleep until.
    pub(crate) fn look(&mut self, seat: usize) -> Step {
        let me = 1 << seat;
        self.bells &= !me;
        let was_keeper = self.keeper == Some(seat);
        if was_keeper {
            self.keeper = None;
        }
        let mut rings = 0;
        let mut input = false;
        let (now, guard) = (self.time.now, self.read());
        let due = self.host.next_deadline(&guard);
        // The deadline of a timer that fired may be gone from the guard by now, with what it was for.
        let timed = std::mem::take(&mut self.threads[seat].timed);
        if timed || due.is_some_and(|due| due <= now) {
            self.cover.met(Met::Tick);
            self.host.backstop_tick(now, &guard);
            self.note()?;
            self.poll(&mut rings)?;
            input = true;
        }
        let mut began = None;
        while let Some(grant) = self.mail[seat].take() {
            match self.start(grant)? {
                Started::Yes(unit) => {
                    began = Some((grant, unit));
                    break;
                }
                Started::HandedBack => {
                    self.returned(grant);
                    input = true;
                    if self.bug != Some(Bug::HandBackNotPolled) {
                        self.poll(&mut rings)?;
                    }
                }
                Started::Gone => {}
            }
        }
        self.settle()?;
        if let Some((grant, unit)) = began {
            if !(was_keeper && self.bug == Some(Bug::KeeperNotHandedOver)) {
                rings |= self.hand_over(was_keeper);
            }
            self.unlock(input)?;
            self.go_on(seat, rings, Then::Run { grant, unit });
            return Ok(());
        }
        let phase = self.host.seats()[seat].phase();
        if matches!(phase, SlotPhase::Retired | SlotPhase::Dead) {
            rings |= self.hand_over(was_keeper);
            self.unlock(input)?;
            self.go_on(seat, rings, Then::End);
            return Ok(());
        }
        let mut deadline = self.host.next_deadline(&self.read());
        if deadline.is_some() {
            if self.keeper.is_none() {
                self.keeper = Some(seat);
                if !was_keeper {
                    self.cover.event(Event::KeeperTook);
                }
            } else if self.bug != Some(Bug::TwoKeepers) {
                deadline = None;
            }
        }
        self.unlock(input)?;
        self.go_on(seat, rings, Then::Sleep(deadline));
        Ok(())
    }

    /// Begins a granted unit, unless the guard has changed its mind.
    fn start(&mut self, grant: Grant) -> Step<Started> {
        let (now, guard) = (self.time.now, self.read());
        let resumed = self.resumed(grant);
        match self.host.start(grant.seat, grant.unit, now, &guard) {
            Ok(()) => {
                self.cover.met(Met::Begun);
                if !resumed {
                    self.check_guarded(grant, "begun")?;
                }
                self.note()?;
                Ok(Started::Yes(self.take_payload(grant.unit)?))
            }
            Err(StartError::HandedBack(reason)) => {
                self.cover.met(Met::HandedBack);
                self.cover.hold(reason);
                self.note()?;
                Ok(Started::HandedBack)
            }
            Err(StartError::Seat { .. }) => {
                // A fence took the lease back, or the seat is taken for dead.
                self.cover.met(Met::NoLease);
                let excused = self.host.closing() == Some(ClosePhase::Fence)
                    || self.deaths & 1 << grant.seat.index() != 0;
                ensure(excused, Rule::Refused, || {
                    format!("{grant:?} did not start")
                })?;
                Ok(Started::Gone)
            }
            Err(error) => Err(Violation::new(Rule::Refused, error.to_string())),
        }
    }

    /// Whether the seat was pinned already, so that it runs without a lease.
    fn resumed(&self, grant: Grant) -> bool {
        let seat = &self.host.seats()[grant.seat.index()];
        seat.spec().kind != SeatKind::Pooled && seat.phase() == SlotPhase::Running
    }

    /// A seat's unit ended: it reports under the lock, and looks again.
    pub(crate) fn finish(&mut self, seat: usize, grant: Grant, unit: Option<usize>) -> Step {
        let (now, guard) = (self.time.now, self.read());
        let (result, output) = match unit {
            Some(n) if !self.units[n].panics => (RunResult::Done, Some(self.units[n].result(n))),
            _ => (RunResult::Panicked, None),
        };
        let reaction = self
            .host
            .seat_done(grant.seat, grant.unit, result, now, &guard);
        self.note()?;
        let hung = self.threads[seat].hung;
        let counts = match reaction {
            Ok(Reaction::Finished) => {
                self.cover.met(Met::Finished);
                true
            }
            Ok(Reaction::Late) => {
                self.cover.met(Met::Late);
                ensure(
                    self.host.closing() == Some(ClosePhase::Fence),
                    Rule::Refused,
                    || format!("{grant:?} is late and there was no fence"),
                )?;
                false
            }
            Ok(other) => return Err(Violation::new(Rule::Refused, format!("{other:?}"))),
            Err(error) => {
                self.cover.met(Met::NotTaken);
                ensure(hung, Rule::Refused, || error.to_string())?;
                self.cover.event(Event::HungReported);
                false
            }
        };
        if counts || self.bug == Some(Bug::LateResultTaken) {
            self.put_output(grant.unit, output)?;
        }
        self.settle()?;
        let mut rings = 0;
        self.poll(&mut rings)?;
        if !hung {
            // The same report again comes too late, whatever the seat holds by now.
            let again = self
                .host
                .seat_done(grant.seat, grant.unit, result, now, &guard);
            ensure(again.is_err(), Rule::Refused, || {
                format!("{grant:?} was reported twice: {again:?}")
            })?;
        }
        self.unlock(true)?;
        if self.bug == Some(Bug::BellNotRung) {
            rings = 0;
        }
        if hung {
            rings |= self.hand_over(false);
            self.go_on(seat, rings, Then::Leave);
        } else {
            // It looks again itself, so if the deadline has nobody it takes it.
            self.go_on(seat, rings, Then::Look);
        }
        Ok(())
    }

    /// An input from outside. Returns the bells to ring.
    pub(crate) fn deliver(&mut self, bring: Bring) -> Step<u64> {
        let (now, guard) = (self.time.now, self.read());
        let mut rings = 0;
        let mut polls = true;
        match bring {
            Bring::Submit(unit) => self.enqueue(unit)?,
            Bring::Edge(_) => {
                self.cover.met(Met::Edge);
                self.host.posture_edge(now, &guard);
            }
            Bring::Resize(pins) => {
                self.cover.met(Met::Resize);
                let resized = self.host.resize(pins, now, &guard);
                ensure(resized.is_ok(), Rule::Refused, || format!("{resized:?}"))?;
                polls = self.bug != Some(Bug::ResizeNotPolled);
            }
            Bring::Died(_) | Bring::Refilled(_) => {}
            Bring::Buried(seat) => {
                self.cover.met(Met::Died);
                let id = SeatId::new(u8::try_from(seat).unwrap_or(u8::MAX));
                let died = self.host.seat_died(id, now, &guard);
                ensure(died.is_ok(), Rule::Refused, || format!("{died:?}"))?;
                self.mail[seat] = None;
                if self.keeper == Some(seat) && self.bug != Some(Bug::KeeperNotBuried) {
                    self.keeper = None;
                    self.cover.event(Event::KeeperDied);
                }
            }
            Bring::Close(phase) => {
                if self.host.closing().is_some_and(|current| phase <= current) {
                    let again = self.host.close(phase, now, &guard);
                    ensure(again.is_err(), Rule::Refused, || format!("{again:?}"))?;
                    return Ok(0);
                }
                self.cover.met(match phase {
                    ClosePhase::Quiesce => Met::Quiesce,
                    ClosePhase::Fence => Met::Fence,
                });
                let closed = self.host.close(phase, now, &guard);
                ensure(closed.is_ok(), Rule::Refused, || format!("{closed:?}"))?;
                for role in self.plan.table.ids() {
                    let kept = self.host.ledger(role).map_or(0, |ledger| ledger.backlog);
                    ensure(kept == 0, Rule::Ends, || {
                        format!("{role:?} keeps {kept} held units after {phase:?}")
                    })?;
                }
                // Those that are retired have to hear of it.
                rings = u64::MAX >> (64 - self.threads.len());
            }
            Bring::Boundary => self.boundary()?,
        }
        self.note()?;
        self.settle()?;
        if polls {
            self.poll(&mut rings)?;
        }
        if self.bug != Some(Bug::ArmedWithoutHolder) {
            rings |= self.hand_over(false);
        }
        self.unlock(true)?;
        Ok(rings)
    }

    fn enqueue(&mut self, n: usize) -> Step {
        let (now, guard) = (self.time.now, self.read());
        let (role, key) = (self.units[n].role, self.units[n].key);
        match self.host.enqueue(role, key, now, &guard) {
            Ok(accepted) => self.accept(n, accepted),
            Err(EnqueueError::IntakeFull { .. }) => {
                self.cover.met(Met::Full);
                self.clients.hold_back(role, n);
                Ok(())
            }
            Err(EnqueueError::Closed { .. }) if self.host.closing().is_some() => {
                self.cover.met(Met::Closed);
                self.refuse(n)
            }
            Err(EnqueueError::Faulted { .. }) if self.deaths != 0 => {
                self.cover.met(Met::Faulted);
                self.refuse(n)
            }
            Err(error) => Err(Violation::new(Rule::Refused, error.to_string())),
        }
    }

    /// Puts what can be granted into the mailboxes.
    fn poll(&mut self, rings: &mut u64) -> Step {
        let (now, guard) = (self.time.now, self.read());
        while let Some(grant) = self.host.poll_grant(now, &guard) {
            let seat = grant.seat.index();
            ensure(self.mail[seat].is_none(), Rule::Once, || {
                format!("{grant:?}, and there is one in the slot already")
            })?;
            self.check_guarded(grant, "granted")?;
            self.check_turn(grant)?;
            self.mail[seat] = Some(grant);
            if grant.pin.is_some_and(|pin| pin != grant.key) {
                self.cover.event(Event::Rehomed);
            }
            *rings |= 1 << seat;
        }
        self.note()
    }

    /// What the host decided reaches those who wait.
    fn settle(&mut self) -> Step {
        while let Some(resolved) = self.host.poll_resolved() {
            self.resolve(resolved.unit, resolved.outcome)?;
        }
        while let Some(alarm) = self.host.poll_alarm() {
            let Alarm::StrandedPipe { role } = alarm else {
                return Err(Violation::new(Rule::Silent, format!("{alarm:?}")));
            };
            let serves = |seat: usize| {
                let seats = self.host.seats();
                seats[seat].spec().roles.contains(role)
            };
            let lost =
                (0..self.threads.len()).any(|seat| self.deaths & 1 << seat != 0 && serves(seat));
            ensure(lost, Rule::Silent, || {
                format!("{alarm:?}, and no seat died")
            })?;
            self.cover.event(Event::Stranded);
            self.aborted = true;
        }
        Ok(())
    }

    /// Who must be rung so that somebody sleeps until the deadline.
    fn hand_over(&mut self, was_keeper: bool) -> u64 {
        if self.keeper.is_some() || self.host.next_deadline(&self.read()).is_none() {
            return 0;
        }
        if was_keeper {
            self.cover.event(Event::KeeperHandedOver);
        }
        let idle = |seat: &usize| {
            let phase = self.host.seats()[*seat].phase();
            self.threads[*seat].is_alive()
                && !self.threads[*seat].hung
                && self.mail[*seat].is_none()
                && matches!(phase, SlotPhase::Idle | SlotPhase::Pinned)
        };
        (0..self.threads.len())
            .find(idle)
            .map_or(0, |seat| 1 << seat)
    }

    /// Lets go of the lock, after an input or without one.
    fn unlock(&mut self, input: bool) -> Step {
        if !input {
            return Ok(());
        }
        let guard = self.read();
        for role in self.plan.table.ids() {
            let Some(ledger) = self.host.ledger(role) else {
                continue;
            };
            if ledger.waiting() == 0 {
                continue;
            }
            match self.host.hold(role, &guard) {
                Some(reason) => self.cover.hold(reason),
                None => {
                    return Err(Violation::new(
                        Rule::Granted,
                        format!("{role:?} waits, has a seat, and the guard allows it: {ledger:?}"),
                    ));
                }
            }
        }
        if guard.permits.below_floor {
            self.cover.event(Event::BelowFloor);
        }
        if guard.ledger.refill_at.is_some() {
            self.cover.event(Event::Refill);
        }
        Ok(())
    }

    /// Whether the fleet has a seat of its own for each key.
    pub(crate) fn is_pinned(&self) -> bool {
        self.script.tier == Tier::Pinned
    }
}

/// What became of a start.
enum Started {
    /// With the payload, unless it is gone.
    Yes(Option<usize>),
    HandedBack,
    Gone,
}
