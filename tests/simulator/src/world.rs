//! A simulated fleet: the shipped host under one lock, its threads, everyone around it, and time.

use crate::bug::Bug;
use crate::clients::Clients;
use crate::coverage::Coverage;
use crate::fleet::{self, SimHost};
use crate::rng::Rng;
use crate::rule::{Rule, Step, Violation, ensure};
use crate::sampler::Sampler;
use crate::script::{Op, Script};
use crate::seam::Seam;
use crate::thread::{At, Bring, Rings, Task, Then, Thread, Word};
use crate::unit::Unit;
use regatta_core::guard::{Guard, GuardCell};
use regatta_core::host::Grant;
use regatta_core::lane::Progress;
use regatta_core::plan::FleetPlan;
use regatta_core::role::{MAX_ROLES, RoleMask};
use regatta_core::seat::{MAX_SEATS, SlotPhase};
use regatta_core::time::{Duration, Instant};
use std::rc::Rc;

/// Steps after which a run that does not end is at fault.
const MOST_STEPS: u64 = 4_000_000;
/// Steps at one moment after which nobody ever sleeps again.
const MOST_AT_ONCE: u32 = 100_000;

/// Virtual time, and who lost how much of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    pub(crate) now: Instant,
    /// What passed while every thread could go on and no timer was late.
    pub(crate) fair: Duration,
    /// What passed while the process ran.
    pub(crate) awake: Duration,
    /// Until then a thread is stalled by the script.
    pub(crate) stolen_until: Instant,
    /// How often the process was stopped.
    pub(crate) stops: u64,
}

/// Who can take a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Actor {
    Seat(usize),
    Task(usize),
    Crawl,
    Collector,
    Sampler,
    Drainer,
    Watch,
}

/// Everything.
pub(crate) struct World<'a> {
    pub(crate) script: &'a Script,
    pub(crate) bug: Option<Bug>,
    pub(crate) cover: &'a mut Coverage,
    pub(crate) time: Time,
    rng: Rng,
    pub(crate) plan: FleetPlan,
    pub(crate) guard: Rc<GuardCell>,
    pub(crate) host: SimHost,
    /// One grant slot per seat.
    pub(crate) mail: Vec<Option<Grant>>,
    /// Bells that are set.
    pub(crate) bells: u64,
    /// The seat that sleeps with the deadline.
    pub(crate) keeper: Option<usize>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) units: Vec<Unit>,
    /// The unit of each row.
    pub(crate) rows: Vec<Option<usize>>,
    pub(crate) clients: Clients,
    pub(crate) sampler: Sampler,
    pub(crate) seam: Seam,
    pub(crate) late: Duration,
    /// What the quota ledger holds, and how often it has said so.
    pub(crate) ledger: RoleMask,
    pub(crate) ledgers: u32,
    pub(crate) generation: u32,
    /// Seats whose threads were lost.
    pub(crate) deaths: u64,
    /// The process has ended itself, as it must when a pipe is stranded.
    pub(crate) aborted: bool,
    pub(crate) phases: [SlotPhase; MAX_SEATS],
    pub(crate) progress: [Progress; MAX_ROLES],
    pub(crate) since: [Option<Duration>; MAX_ROLES],
    /// Units of each lane that were handed back and wait.
    pub(crate) returned: [u32; MAX_ROLES],
    pub(crate) notes: u64,
    steps: u64,
    ready: Vec<Actor>,
}

impl<'a> World<'a> {
    pub(crate) fn new(script: &'a Script, bug: Option<Bug>, cover: &'a mut Coverage) -> Step<Self> {
        let plan = fleet::plan(script.tier)?;
        let host = fleet::host(&plan)?;
        let guard = Rc::new(GuardCell::new(plan.permits));
        let seats = plan.seats.len();
        let rows = fleet::lanes(&plan)
            .iter()
            .map(|lane| lane.rows as usize)
            .sum();
        let width = u16::try_from(seats).unwrap_or(u16::MAX).min(8);
        Ok(Self {
            script,
            bug,
            cover,
            time: Time {
                now: Instant::from_nanos(1_000_000_000),
                fair: Duration::ZERO,
                awake: Duration::ZERO,
                stolen_until: Instant::ORIGIN,
                stops: 0,
            },
            rng: Rng::new(script.schedule),
            sampler: Sampler::new(&guard, width),
            guard,
            host,
            mail: vec![None; seats],
            bells: 0,
            keeper: None,
            threads: vec![Thread::NEW; seats],
            tasks: Vec::new(),
            units: Vec::new(),
            rows: vec![None; rows],
            clients: Clients::default(),
            seam: Seam::default(),
            late: Duration::ZERO,
            ledger: RoleMask::EMPTY,
            ledgers: 0,
            generation: 0,
            deaths: 0,
            aborted: false,
            phases: [SlotPhase::Idle; MAX_SEATS],
            progress: [Progress::Idle; MAX_ROLES],
            since: [None; MAX_ROLES],
            returned: [0; MAX_ROLES],
            notes: 0,
            steps: 0,
            ready: Vec::new(),
            plan,
        })
    }

    /// The whole script, and its end.
    pub(crate) fn run(&mut self) -> Step {
        let began = self.time.now;
        let script = self.script;
        let mut ended = Ok(());
        for op in &script.ops {
            ended = self.op(*op);
            if ended.is_err() || self.aborted {
                break;
            }
        }
        let ended = ended.and_then(|()| self.wind_down());
        self.cover.steps += self.steps;
        self.cover.units += self.units.len() as u64;
        self.cover.millis += self.time.now.since(began).as_millis();
        self.cover.awake += self.time.awake.as_millis();
        ended
    }

    /// The guard as it is now.
    pub(crate) fn read(&self) -> Guard {
        self.guard.read(self.time.now)
    }

    pub(crate) fn bring(&mut self, bring: Bring, not_before: Instant) {
        self.tasks.push(Task {
            bring: Some(bring),
            not_before,
            rings: Rings::default(),
        });
    }

    /// Up to `most` steps, while someone can take one.
    pub(crate) fn steps(&mut self, most: u32) -> Step {
        for _ in 0..most {
            if self.aborted || !self.step()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Time goes on to `until`, or until nothing will ever happen again.
    pub(crate) fn pass(&mut self, until: Instant) -> Step {
        loop {
            self.steps(MOST_AT_ONCE)?;
            if self.aborted {
                return Ok(());
            }
            self.find_ready();
            ensure(self.ready.is_empty(), Rule::Ends, || {
                format!("{:?} never rest", self.ready)
            })?;
            let next = self.next_event().filter(|next| *next <= until);
            self.move_to(next.unwrap_or(until))?;
            if next.is_none() {
                return Ok(());
            }
        }
    }

    /// Takes one step of someone who can take one.
    fn step(&mut self) -> Step<bool> {
        self.find_ready();
        if self.ready.is_empty() {
            return Ok(false);
        }
        self.steps += 1;
        ensure(self.steps < MOST_STEPS, Rule::Ends, || {
            format!("{MOST_STEPS} steps, and no end")
        })?;
        let actor = self.ready[self.rng.below(self.ready.len())];
        match actor {
            Actor::Seat(seat) => self.seat_step(seat)?,
            Actor::Task(task) => self.task_step(task)?,
            Actor::Crawl => self.crawl_step()?,
            Actor::Collector => self.collect()?,
            Actor::Sampler => self.sample(),
            Actor::Drainer => self.drained()?,
            Actor::Watch => self.watch()?,
        }
        self.check()?;
        Ok(true)
    }

    pub(crate) fn find_ready(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        let now = self.time.now;
        let seats = self.threads.iter().enumerate();
        ready.extend(
            seats
                .filter(|(_, thread)| thread.can_step(now))
                .map(|(seat, _)| Actor::Seat(seat)),
        );
        let tasks = self.tasks.iter().enumerate();
        ready.extend(
            tasks
                .filter(|(_, task)| task.not_before <= now)
                .map(|(task, _)| Actor::Task(task)),
        );
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for (actor, can) in [
            (Actor::Crawl, self.clients.crawl_can_step()),
            (Actor::Collector, self.clients.can_collect()),
            (Actor::Sampler, due(self.sample_due())),
            (Actor::Drainer, due(self.seam.drain_ends())),
            (Actor::Watch, due(self.seam.watch_due(self.late))),
        ] {
            if can {
                ready.push(actor);
            }
        }
        self.ready = ready;
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.ready.is_empty()
    }

    /// When something will be able to happen that cannot now.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let now = self.time.now;
        let mut next: Option<Instant> = None;
        let mut at = |event: Instant| {
            if event > now {
                next = Some(next.map_or(event, |next| next.min(event)));
            }
        };
        for thread in &self.threads {
            match thread.at {
                At::Run { ends, .. } => at(ends.max(thread.stalled)),
                At::Blocked(Some((deadline, fires))) => {
                    // That a timer is late is an event: the time from here on is stolen.
                    at(deadline);
                    at(fires.max(thread.stalled));
                }
                At::Gone | At::Ended => {}
                _ => at(thread.stalled),
            }
        }
        for task in &self.tasks {
            at(task.not_before);
        }
        let others = [
            self.sample_due(),
            self.seam.drain_ends(),
            self.seam.watch_due(self.late),
        ];
        others.into_iter().flatten().for_each(at);
        next
    }

    pub(crate) fn move_to(&mut self, to: Instant) -> Step {
        self.check_live()?;
        let from = self.time.now;
        let overdue = self.threads.iter().any(|thread| {
            matches!(thread.at, At::Blocked(Some((deadline, fires))) if deadline <= from && from < fires)
        });
        if !overdue {
            let fair = to.since(from.max(self.time.stolen_until));
            self.time.fair = self.time.fair + fair;
        }
        self.time.awake = self.time.awake + to.since(from);
        self.time.now = to;
        self.check_live()
    }

    /// The process is stopped for a while.
    pub(crate) fn stop(&mut self, time: Duration) {
        self.time.now = self.time.now + time;
        self.time.stops += 1;
    }

    fn seat_step(&mut self, seat: usize) -> Step {
        let thread = self.threads[seat];
        match thread.at {
            At::Lock => self.look(seat),
            At::Ring(rings, then) => {
                let rings = self.ring(rings);
                self.threads[seat].at = if rings.is_empty() {
                    self.after(then)
                } else {
                    At::Ring(rings, then)
                };
                Ok(())
            }
            At::Run { grant, unit, .. } => self.finish(seat, grant, unit),
            At::Declare(deadline) => {
                self.sleep(seat, deadline, true);
                Ok(())
            }
            At::Look(deadline) => {
                self.sleep(seat, deadline, false);
                Ok(())
            }
            At::Blocked(_) => {
                self.wake(seat);
                Ok(())
            }
            At::Gone | At::Ended => Err(Violation::new(
                Rule::Tables,
                format!("seat {seat} has no thread"),
            )),
        }
    }

    /// Going to sleep takes two steps: the word says so, and then the bell is looked at once more.
    fn sleep(&mut self, seat: usize, deadline: Option<Instant>, first: bool) {
        let declares = first != (self.bug == Some(Bug::LookBeforeDeclare));
        let thread = &mut self.threads[seat];
        if declares {
            thread.word = Word::Parked;
        } else if self.bells & 1 << seat != 0 {
            thread.word = Word::Working;
            thread.at = At::Lock;
            return;
        }
        thread.at = if first {
            At::Look(deadline)
        } else {
            At::Blocked(deadline.map(|deadline| (deadline, deadline + self.late)))
        };
    }

    /// The thread of a seat comes out of its sleep, for whatever reason.
    pub(crate) fn wake(&mut self, seat: usize) {
        let now = self.time.now;
        let thread = &mut self.threads[seat];
        thread.timed =
            matches!(thread.at, At::Blocked(Some((_, fires))) if !thread.token && fires <= now);
        (thread.token, thread.word, thread.at) = (false, Word::Working, At::Lock);
    }

    fn after(&self, then: Then) -> At {
        match then {
            Then::Look => At::Lock,
            Then::End => At::Ended,
            Then::Leave => At::Gone,
            Then::Sleep(deadline) => At::Declare(deadline),
            Then::Run { grant, unit } => {
                let runs = unit.map_or(Duration::ZERO, |unit| self.units[unit].runs);
                let ends = self.time.now + runs;
                At::Run { grant, unit, ends }
            }
        }
    }

    /// What a thread does that holds the lock no more.
    pub(crate) fn go_on(&mut self, seat: usize, rings: u64, then: Then) {
        let rings = Rings::of(rings & !(1 << seat));
        self.threads[seat].at = if rings.is_empty() {
            self.after(then)
        } else {
            At::Ring(rings, then)
        };
    }

    /// One step of ringing: the bell is set, or the word is looked at.
    pub(crate) fn ring(&mut self, rings: Rings) -> Rings {
        let seat = rings.seats.trailing_zeros() as usize;
        if !rings.set {
            self.bells |= 1 << seat;
            return Rings { set: true, ..rings };
        }
        let thread = &mut self.threads[seat];
        if thread.word == Word::Parked {
            thread.word = Word::Notified;
            thread.token = true;
        }
        Rings::of(rings.seats & !(1 << seat))
    }

    fn task_step(&mut self, index: usize) -> Step {
        let task = self.tasks[index];
        let rings = match task.bring {
            Some(Bring::Died(seat)) => {
                self.lane_death();
                self.tasks[index].bring = Some(Bring::Buried(seat));
                return Ok(());
            }
            Some(Bring::Refilled(ledgers)) => {
                if ledgers == self.ledgers {
                    self.set_ledger(RoleMask::EMPTY, None);
                }
                self.tasks.swap_remove(index);
                return Ok(());
            }
            Some(bring) => {
                self.tasks[index].bring = None;
                Rings::of(self.deliver(bring)?)
            }
            None => self.ring(task.rings),
        };
        self.tasks[index].rings = rings;
        if rings.is_empty() {
            self.tasks.swap_remove(index);
        }
        Ok(())
    }

    pub(crate) fn op(&mut self, op: Op) -> Step {
        let ms = |ms: u16| Duration::from_millis(ms.into());
        let now = self.time.now;
        match op {
            Op::Steps(n) => self.steps(n.into())?,
            Op::Wait(time) => self.pass(now + ms(time))?,
            Op::Minutes(n) => self.pass(now + Duration::from_secs(60 * u64::from(n)))?,
            Op::Stop(time) => self.stop(Duration::from_millis(time.into())),
            Op::CrawlTo(paths) => self.crawl_to(paths)?,
            Op::Publish(items) => self.publish(items)?,
            Op::Verify => self.verify()?,
            Op::Block { bins, ms: time } => self.block(bins, ms(time))?,
            other => self.fault(other),
        }
        // What the script holds back, it does not expect to run, for however short a while.
        self.check_live()
    }
}
