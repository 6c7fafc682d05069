//! How long a wake takes here: round trips between two threads, each of which sleeps while the other has
//! the turn.
//!
//! # Invariants
//! - Every round is answered before the next begins, so that no two wakes coalesce.
//! - Both ends go through the core's wake word, as a fleet's threads do.
//! - A wake that is lost ends the measurement with an error, not with a hang.

use super::{Parker, Sleeper, WakeError, WakeKind, sleeper};
use crate::affinity::{self, AffinityError};
use crate::cgroup::CpuSet;
use regatta_core::port::{Clock, Park, Wake};
use regatta_core::time::Duration;
use regatta_core::wake::WakeWord;
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use regatta_portable::clock::MonotonicClock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use thiserror::Error;

/// Rounds before those that count.
const WARM_UP: u32 = 100;

/// A wake that takes as long is lost.
const LOST: Duration = Duration::from_secs(10);

/// The one who measures is this one.
const PING: usize = 0;

/// Where the two threads run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Placement {
    /// Where the kernel puts them.
    Anywhere,
    /// Both on the first CPU that the process may use.
    SameCpu,
    /// On the first two CPUs that the process may use.
    AcrossCpus,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anywhere => "anywhere",
            Self::SameCpu => "same CPU",
            Self::AcrossCpus => "across CPUs",
        })
    }
}

/// Times of a round trip, which is two wakes, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// How many round trips.
    pub rounds: u32,
    /// The shortest.
    pub min: u64,
    /// Half of them took at most this.
    pub median: u64,
    /// Nine in ten took at most this.
    pub p90: u64,
    /// Ninety-nine in a hundred took at most this.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rounds,
            median,
            p90,
            p99,
            max,
            ..
        } = *self;
        write!(
            f,
            "{rounds} round trips: median {median} ns, p90 {p90} ns, p99 {p99} ns, longest {max} ns"
        )
    }
}

/// Nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// No rounds were asked for.
    #[error("0 rounds measure nothing: it takes one at least")]
    NoRounds,
    /// The wake could not be set up.
    #[error(transparent)]
    Wake(#[from] WakeError),
    /// A thread could not be placed.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// A thread could not be spawned.
    #[error(transparent)]
    Census(#[from] CensusError),
    /// There are not enough CPUs.
    #[error("wakes {placement}: the process may use CPUs {allowed}: it takes {needed} at least")]
    TooFewCpus {
        /// Where they should run.
        placement: Placement,
        /// What the process may use.
        allowed: CpuSet,
        /// How many it takes.
        needed: usize,
    },
    /// A wake did not come, or its thread did not run.
    #[error("round {round}: the other thread did not answer within {} s", LOST.as_millis() / 1000)]
    Lost {
        /// The round.
        round: u32,
    },
    /// A thread panicked.
    #[error("a measuring thread panicked")]
    Panicked,
    /// The other thread could not go on, and says why.
    #[error("the other measuring thread gave up")]
    GivenUp,
}

/// Measures `rounds` round trips by a kind of wake, on two threads that are in `census` meanwhile.
pub fn measure(
    kind: WakeKind,
    rounds: u32,
    placement: Placement,
    census: &Census,
) -> Result<Measured, MeasureError> {
    measure_pair(&|clock| sleeper(kind, clock), rounds, placement, census)
}

/// The same for any wake, such as another to compare with.
pub fn measure_pair(
    sleeper: &dyn Fn(MonotonicClock) -> Result<Sleeper, WakeError>,
    rounds: u32,
    placement: Placement,
    census: &Census,
) -> Result<Measured, MeasureError> {
    if rounds == 0 {
        return Err(MeasureError::NoRounds);
    }
    let clock = MonotonicClock::new();
    let cpus = cpus(placement)?;
    let (first, second) = (sleeper(clock)?, sleeper(clock)?);
    let court = Arc::new(Court {
        turn: AtomicU32::new(0),
        words: [WakeWord::new(), WakeWord::new()],
        wakers: [first.waker, second.waker],
        given_up: AtomicBool::new(false),
        clock,
    });
    let mut threads = Vec::new();
    let mut errors = Vec::new();
    let parkers = [first.parker, second.parker];
    for (side, (parker, cpus)) in parkers.into_iter().zip(cpus).enumerate() {
        let spec = ThreadSpec {
            sizing: "two while wakes are measured".to_owned(),
            ..ThreadSpec::one("wake-measure", ["wake-ping", "wake-pong"][side])
        };
        let at_court = Arc::clone(&court);
        match census.spawn(spec, move || at_court.enter(side, parker, cpus, rounds)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                // Whoever runs already is told.
                court.give_up(side);
                errors.push(error.into());
                break;
            }
        }
    }
    let mut times = Vec::new();
    for thread in threads {
        match thread.join().unwrap_or(Err(MeasureError::Panicked)) {
            Ok(measured) => times.extend(measured),
            Err(error) => errors.push(error),
        }
    }
    // Of two, the one that says why.
    let why = |error: &MeasureError| !matches!(error, MeasureError::GivenUp);
    let telling = errors.iter().position(why).unwrap_or_default();
    if errors.is_empty() {
        Ok(summary(times))
    } else {
        Err(errors.swap_remove(telling))
    }
}

/// The CPUs of the two threads; `None` where they may stay.
fn cpus(placement: Placement) -> Result<[Option<CpuSet>; 2], MeasureError> {
    let allowed = affinity::mask().unwrap_or_default();
    let one = |nth: usize| {
        let cpu = allowed.iter().nth(nth);
        let word = |cpu: usize| {
            let mut words = vec![0; cpu / 64 + 1];
            words[cpu / 64] = 1 << (cpu % 64);
            Some(CpuSet::from_words(&words))
        };
        cpu.map(word).ok_or_else(|| MeasureError::TooFewCpus {
            placement,
            allowed: allowed.clone(),
            needed: nth + 1,
        })
    };
    Ok(match placement {
        Placement::Anywhere => [None, None],
        Placement::SameCpu => [one(0)?, one(0)?],
        Placement::AcrossCpus => [one(0)?, one(1)?],
    })
}

fn summary(mut times: Vec<u64>) -> Measured {
    times.sort_unstable();
    let rounds = u32::try_from(times.len()).unwrap_or(u32::MAX);
    // The smallest time that this share of the times does not exceed.
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100).max(1);
        times.get(rank - 1).copied().unwrap_or_default()
    };
    Measured {
        rounds,
        min: at(0),
        median: at(50),
        p90: at(90),
        p99: at(99),
        max: at(100),
    }
}

/// What the two threads share.
struct Court {
    /// Even: ping's turn. Odd: pong's.
    turn: AtomicU32,
    words: [WakeWord; 2],
    wakers: [Arc<dyn Wake + Send + Sync>; 2],
    given_up: AtomicBool,
    clock: MonotonicClock,
}

impl Court {
    /// What one of the threads does.
    fn enter(
        &self,
        side: usize,
        parker: Parker,
        cpus: Option<CpuSet>,
        rounds: u32,
    ) -> Result<Vec<u64>, MeasureError> {
        let bound = cpus.map_or(Ok(()), |cpus| affinity::set_mask(&cpus));
        let entered = bound
            .map_err(MeasureError::from)
            .and_then(|()| Ok(parker()?));
        let played = entered.and_then(|park| self.play(side, &*park, rounds));
        if played.is_err() {
            self.give_up(side);
        }
        played
    }

    /// Plays all rounds; the times of those that count, if this is the side that measures.
    fn play(&self, side: usize, park: &dyn Park, rounds: u32) -> Result<Vec<u64>, MeasureError> {
        let mut times = Vec::with_capacity(if side == PING { rounds as usize } else { 0 });
        for round in 0..WARM_UP + rounds {
            let turn = round * 2;
            if side == PING {
                let begun = self.clock.now();
                self.give(turn + 1, side);
                self.receive(turn + 2, round, side, park)?;
                if round >= WARM_UP {
                    times.push(self.clock.now().since(begun).as_nanos());
                }
            } else {
                self.receive(turn + 1, round, side, park)?;
                self.give(turn + 2, side);
            }
        }
        Ok(times)
    }

    /// Gives the turn to the other side.
    fn give(&self, turn: u32, side: usize) {
        self.turn.store(turn, Ordering::Release);
        self.words[1 - side].notify(&*self.wakers[1 - side]);
    }

    /// Sleeps until it is this turn.
    fn receive(
        &self,
        turn: u32,
        round: u32,
        side: usize,
        park: &dyn Park,
    ) -> Result<(), MeasureError> {
        let mine = || self.turn.load(Ordering::Acquire) == turn;
        let lost = self.clock.now() + LOST;
        while !mine() {
            if self.given_up.load(Ordering::Acquire) {
                return Err(MeasureError::GivenUp);
            }
            if self.clock.now() >= lost {
                return Err(MeasureError::Lost { round });
            }
            self.words[side].wait(park, Some(lost), || {
                mine() || self.given_up.load(Ordering::Relaxed)
            });
        }
        Ok(())
    }

    /// Tells the other side that this one does not go on.
    fn give_up(&self, side: usize) {
        self.given_up.store(true, Ordering::Release);
        self.words[1 - side].notify(&*self.wakers[1 - side]);
    }
}
