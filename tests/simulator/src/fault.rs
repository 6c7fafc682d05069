//! What a script does to a fleet beyond its work, and how a run comes to its end.

use crate::coverage::Event;
use crate::fleet::{boot_quota, quota};
use crate::rule::{Rule, Step, ensure};
use crate::sampler::Fate;
use crate::script::Op;
use crate::thread::{At, Bring};
use crate::world::World;
use regatta_core::host::ClosePhase;
use regatta_core::role::{RoleId, RoleMask};
use regatta_core::time::{Duration, Instant};

/// How long a run may take to come to rest once the faults are over.
const END: Duration = Duration::from_secs(3_600);

impl World<'_> {
    pub(crate) fn fault(&mut self, op: Op) {
        let time = |ms: u16| Duration::from_millis(ms.into());
        let now = self.time.now;
        match op {
            Op::Submit {
                role,
                ms,
                panics,
                abandoned,
            } => self.submit(role, ms, panics, abandoned),
            Op::Flood { role, units, ms } => {
                for _ in 0..units {
                    self.submit(role, ms, false, false);
                }
            }
            Op::Walk { key, ms } => self.walk(key, time(ms)),
            Op::Abandon => self.abandon(),
            Op::Crawl(paths) => self.clients.crawl_more(paths),
            Op::CrawlGoesOn(goes_on) => self.clients.crawl_goes_on(goes_on),
            Op::Collect(collects) => self.clients.collecting = collects,
            Op::EdgesDelivered => self.sampler.fate = Fate::Delivered,
            Op::EdgesLost => self.sampler.fate = Fate::Lost,
            Op::EdgesTwice => self.sampler.fate = Fate::Twice,
            Op::EdgesLate(ms) => self.sampler.fate = Fate::Late(time(ms)),
            Op::Throttle { periods, ms } => self.sampler.throttle(periods, ms),
            Op::Blind(blind) => self.sampler.blind = blind,
            Op::SamplerGap(ms) => self.sampler.gap_until = now + time(ms),
            Op::Sample => self.sample(),
            Op::Retune(which) => self.retune(which),
            Op::Quota { milli, told } => self.requota(milli, told),
            Op::Ledger { roles, refill_ms } => {
                let held = (0..8).filter(|role| roles & 1 << role != 0);
                let held: RoleMask = held.map(RoleId::new).collect();
                let refill = (refill_ms > 0).then(|| time(refill_ms));
                self.set_ledger(held, refill);
            }
            Op::TimersLate(ms) => self.late = time(ms),
            Op::Stall { seat, ms } => {
                let seat = self.seat(seat);
                self.threads[seat].stalled = now + time(ms);
                self.time.stolen_until = self.time.stolen_until.max(now + time(ms));
            }
            Op::Spurious(seat) => {
                let seat = self.seat(seat);
                if matches!(self.threads[seat].at, At::Blocked(_)) {
                    self.wake(seat);
                    self.cover.event(Event::Unprompted);
                }
            }
            Op::Die { seat, hung } => self.die(seat, hung),
            Op::Quiesce => self.bring(Bring::Close(ClosePhase::Quiesce), now),
            Op::Fence => self.bring(Bring::Close(ClosePhase::Fence), now),
            Op::DrainSlow(ms) => self.seam.takes = time(ms),
            Op::DrainFrozen(frozen) => self.seam.frozen = frozen,
            Op::Steps(_)
            | Op::Wait(_)
            | Op::Minutes(_)
            | Op::Stop(_)
            | Op::CrawlTo(_)
            | Op::Block { .. }
            | Op::Publish(_)
            | Op::Verify => {}
        }
    }

    fn seat(&self, seat: u8) -> usize {
        usize::from(seat) % self.threads.len()
    }

    /// The quota ledger says what it holds; it takes that back when it has room again.
    pub(crate) fn set_ledger(&mut self, held: RoleMask, refill: Option<Duration>) {
        self.guard.set_ledger(held, refill);
        self.ledger = held;
        self.ledgers += 1;
        if let Some(refill) = refill {
            self.bring(Bring::Refilled(self.ledgers), self.time.now + refill);
        }
    }

    fn requota(&mut self, milli: u16, told: bool) {
        self.plan = self.plan.resized(quota(milli));
        self.generation += 1;
        let permits = self.plan.permits;
        self.guard.set_permits(permits, self.generation);
        self.sampler.owner.set_width(permits.total);
        self.send_edges();
        if told {
            let pins = u8::try_from(permits.keyed.clamp(1, 64)).unwrap_or(1);
            self.bring(Bring::Resize(pins), self.time.now);
        }
    }

    /// The thread of a seat is lost, or taken for it.
    fn die(&mut self, seat: u8, hung: bool) {
        let seat = self.seat(seat);
        let thread = &mut self.threads[seat];
        // Behind the lock it only rings, which cannot fail.
        if !thread.is_alive() || thread.hung || matches!(thread.at, At::Ring(..)) {
            return;
        }
        if hung && matches!(thread.at, At::Run { .. }) {
            thread.hung = true;
        } else {
            thread.at = At::Gone;
        }
        self.deaths |= 1 << seat;
        self.bring(Bring::Died(seat), self.time.now);
    }

    /// The faults are over: nobody says so, and everything must come to its end.
    pub(crate) fn wind_down(&mut self) -> Step {
        if self.aborted {
            return Ok(());
        }
        self.late = Duration::ZERO;
        self.sampler.gap_until = Instant::ORIGIN;
        self.set_ledger(RoleMask::EMPTY, None);
        self.requota(boot_quota(self.script.tier), false);
        self.seam.frozen = false;
        self.clients.collecting = true;
        self.clients.crawl_goes_on(true);
        self.rest()?;
        if self.host.closing() == Some(ClosePhase::Quiesce) && !self.aborted {
            self.bring(Bring::Close(ClosePhase::Fence), self.time.now);
            self.rest()?;
        }
        if self.aborted {
            return Ok(());
        }
        self.check_drained()?;
        self.check_end()
    }

    /// Time goes on until nothing will ever happen again.
    fn rest(&mut self) -> Step {
        let limit = self.time.now + END;
        while !self.aborted {
            self.pass(self.time.now)?;
            let Some(next) = self.next_event() else {
                return Ok(());
            };
            ensure(next <= limit, Rule::Ends, || {
                format!("the end is still to come at {next:?}")
            })?;
            self.move_to(next)?;
        }
        Ok(())
    }
}
