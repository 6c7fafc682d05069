//! Who should run the host: whoever brings an input, or a thread of its own?
//!
//! Both ways over the shipped host, with the same mailboxes, bells and futexes, units that do nothing, and
//! one submitter that keeps a window of them outstanding. The two are measured in turn, round after round.
//! `cargo run --release -p regatta-linux --example host_placement [ROUNDS]`

use regatta_core::guard::Guard;
use regatta_core::host::{Grant, Host, HostConfig, Input};
use regatta_core::lane::LaneConfig;
use regatta_core::port::{Clock, Park, Wake};
use regatta_core::role::{FLEET_ROLES, RoleId, RoleMask, SeatKind, WorkerRole};
use regatta_core::seat::{SeatId, SeatSpec};
use regatta_core::time::Duration as Span;
use regatta_core::unit::{RunResult, UnitRow};
use regatta_core::wake::Doorbell;
use regatta_linux::wake::{Sleeper, WakeKind, sleeper};
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use regatta_portable::clock::MonotonicClock;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const ROLE: RoleId = WorkerRole::Resolve.id();
const ROWS: u32 = 256;

/// Somebody who sleeps.
struct Party {
    bell: Doorbell,
    waker: Arc<dyn Wake + Send + Sync>,
}

impl Party {
    fn ring(&self) {
        self.bell.ring(&*self.waker);
    }
}

struct State {
    host: Host<Box<[UnitRow]>>,
    mailboxes: Vec<Option<Grant>>,
    inbox: Vec<Input>,
}

/// The seats, then the host's thread if there is one, then the submitter.
struct Court {
    clock: MonotonicClock,
    guard: Guard,
    state: Mutex<State>,
    parties: Vec<Party>,
    seats: usize,
    own_thread: bool,
    resolved: AtomicU64,
    over: AtomicBool,
}

impl Court {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submitter(&self) -> &Party {
        &self.parties[self.seats + 1]
    }

    /// Brings an input: runs the host, or leaves it for the host's thread.
    fn bring(&self, input: Input) {
        let mut state = self.lock();
        if self.own_thread {
            state.inbox.push(input);
            drop(state);
            self.parties[self.seats].ring();
        } else {
            let called = self.handle(&mut state, input);
            drop(state);
            self.call(called);
        }
    }

    /// Gives an input to the host; the seats that were granted something, and whether units ended.
    fn handle(&self, state: &mut State, input: Input) -> (u64, u64) {
        let now = self.clock.now();
        let (mut seats, mut ended) = (0, 0);
        // The windows are smaller than the lane, so nothing is refused.
        let taken = state.host.handle(input, now, &self.guard);
        debug_assert!(taken.is_ok(), "{taken:?}");
        while let Some(grant) = state.host.poll_grant(now, &self.guard) {
            state.mailboxes[grant.seat.index()] = Some(grant);
            seats |= grant.seat.bit();
        }
        while let Some(resolved) = state.host.poll_resolved() {
            ended += 1;
            let released = state.host.release(resolved.unit);
            debug_assert!(released.is_ok(), "{released:?}");
        }
        (seats, ended)
    }

    fn call(&self, (seats, ended): (u64, u64)) {
        for seat in SeatId::members(seats) {
            self.parties[seat.index()].ring();
        }
        if ended > 0 {
            self.resolved.fetch_add(ended, Ordering::Release);
            self.submitter().ring();
        }
    }

    fn seat(&self, index: usize, park: &dyn Park) {
        let me = &self.parties[index];
        while !self.over.load(Ordering::Acquire) {
            me.bell.take();
            let mut state = self.lock();
            let mail = state.mailboxes[index].take();
            let Some(grant) = mail else {
                drop(state);
                me.bell.wait(park, None);
                continue;
            };
            let started = state
                .host
                .start(grant.seat, grant.unit, self.clock.now(), &self.guard);
            debug_assert!(started.is_ok(), "{started:?}");
            drop(state);
            self.bring(Input::SeatDone {
                seat: grant.seat,
                unit: grant.unit,
                result: RunResult::Done,
            });
        }
    }

    /// The thread of the host, if it has one.
    fn host(&self, park: &dyn Park) {
        let me = &self.parties[self.seats];
        let mut batch = Vec::new();
        while !self.over.load(Ordering::Acquire) {
            me.bell.take();
            let mut state = self.lock();
            std::mem::swap(&mut batch, &mut state.inbox);
            let mut called = (0, 0);
            for input in batch.drain(..) {
                let (seats, ended) = self.handle(&mut state, input);
                called = (called.0 | seats, called.1 + ended);
            }
            drop(state);
            let idle = called == (0, 0);
            self.call(called);
            if idle {
                me.bell.wait(park, None);
            }
        }
    }

    fn submit(&self, park: &dyn Park, units: u64, window: u64) {
        let me = self.submitter();
        for sent in 0..units {
            while sent >= self.resolved.load(Ordering::Acquire) + window {
                me.bell.take();
                if sent >= self.resolved.load(Ordering::Acquire) + window {
                    me.bell.wait(park, None);
                }
            }
            self.bring(Input::Enqueue { role: ROLE, key: 0 });
        }
        while self.resolved.load(Ordering::Acquire) < units {
            me.bell.take();
            if self.resolved.load(Ordering::Acquire) < units {
                me.bell.wait(park, None);
            }
        }
        self.over.store(true, Ordering::Release);
        self.parties.iter().for_each(Party::ring);
    }
}

/// One run: nanoseconds and CPU nanoseconds a unit.
fn run(
    own_thread: bool,
    seats: usize,
    window: u64,
    units: u64,
) -> Result<(f64, f64), Box<dyn Error>> {
    let clock = MonotonicClock::new();
    let lanes: Vec<LaneConfig> = FLEET_ROLES
        .ids()
        .map(|role| LaneConfig {
            rows: if role == ROLE { ROWS } else { 0 },
            queue: ROWS,
            keys: 1,
            slots: None,
        })
        .collect();
    let spec = SeatSpec {
        kind: SeatKind::Pooled,
        roles: FLEET_ROLES.ids().collect::<RoleMask>(),
        key: 0,
    };
    let host = Host::new(
        &HostConfig {
            table: &FLEET_ROLES,
            lanes: &lanes,
            seats: &vec![spec; seats],
            windows: &[],
            backstop: Span::from_millis(250),
            stuck_ticks: 8,
        },
        vec![UnitRow::FREE; ROWS as usize].into_boxed_slice(),
    )?;
    let (mut parties, mut parkers) = (Vec::new(), Vec::new());
    for _ in 0..seats + 2 {
        let Sleeper { waker, parker } = sleeper(WakeKind::Futex, clock)?;
        parties.push(Party {
            bell: Doorbell::new(),
            waker,
        });
        parkers.push(parker);
    }
    let court = Arc::new(Court {
        clock,
        guard: Guard::open(u16::MAX >> 1),
        state: Mutex::new(State {
            host,
            mailboxes: vec![None; seats],
            inbox: Vec::with_capacity(ROWS as usize * 2),
        }),
        parties,
        seats,
        own_thread,
        resolved: AtomicU64::new(0),
        over: AtomicBool::new(false),
    });
    let submitter = parkers.pop().ok_or("a parker for each")?;
    let census = Census::new();
    let mut threads = Vec::new();
    for (index, parker) in parkers.into_iter().enumerate() {
        if index == seats && !own_thread {
            continue;
        }
        let court = Arc::clone(&court);
        let spec = ThreadSpec::one("example", &format!("party-{index}"));
        threads.push(census.spawn(spec, move || {
            if let Ok(park) = parker() {
                if index == court.seats {
                    court.host(&*park);
                } else {
                    court.seat(index, &*park);
                }
            }
        })?);
    }
    let park = submitter()?;
    let (began, used) = (Instant::now(), cpu_time()?);
    court.submit(&*park, units, window);
    let (took, used) = (began.elapsed(), cpu_time()?.saturating_sub(used));
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let per_unit = |time: Duration| time.as_nanos() as f64 / units as f64;
    Ok((per_unit(took), per_unit(used)))
}

/// The CPU time of this process, from the kernel's accounts of its threads.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        // A thread may end while we look.
        let Ok(stat) = std::fs::read_to_string(task?.path().join("schedstat")) else {
            continue;
        };
        sum += stat.split(' ').next().ok_or("no time")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(sum))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(9), |text| text.parse())?;
    let mut table = String::new();
    writeln!(
        table,
        "seats window   bringer ns/unit  own thread ns/unit   ratio   CPU ns/unit: bringer, own thread"
    )?;
    for (seats, window, units) in [
        (1, 1, 20_000),
        (2, 1, 20_000),
        (1, 64, 200_000),
        (2, 64, 200_000),
        (6, 64, 200_000),
    ] {
        let (mut times, mut cpu) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for round in 0..rounds {
            // Who goes first changes from round to round.
            for turn in 0..2 {
                let own_thread = (round + turn) % 2 == 1;
                let (time, used) = run(own_thread, seats, window, units)?;
                times[usize::from(own_thread)].push(time);
                cpu[usize::from(own_thread)].push(used);
            }
        }
        let [bringer, own] = &mut times;
        let (low, high) = (
            bringer.iter().copied().fold(f64::MAX, f64::min),
            bringer.iter().copied().fold(0.0, f64::max),
        );
        let (b, o) = (median(bringer), median(own));
        let [b_cpu, o_cpu] = &mut cpu;
        writeln!(
            table,
            "{seats:>5} {window:>6}   {b:>8.0} ({low:.0}-{high:.0})   {o:>12.0}   {:>11.2}   {:>10.0}, {:.0}",
            o / b,
            median(b_cpu),
            median(o_cpu)
        )?;
    }
    #[expect(clippy::print_stdout, reason = "an example says what it measured")]
    {
        print!("{table}");
    }
    Ok(())
}
