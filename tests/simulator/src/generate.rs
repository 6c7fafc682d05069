//! Scripts from seeds.
//!
//! A seed first draws a mood, the kinds of fault that its script may have, so that there are scripts
//! without a death and scripts without a close, whose results can be compared whole.

use crate::rng::Rng;
use crate::script::{Op, Script, Tier};
use regatta_core::role::WorkerRole;

/// Operations of a script, unless asked otherwise.
pub const STEPS: usize = 48;

/// What a script may have, a bit for each kind.
struct Mood(u8);

impl Mood {
    const DEATHS: u8 = 1;
    const CLOSES: u8 = 2;
    const QUOTAS: u8 = 4;
    const POSTURE: u8 = 8;
    const LEDGER: u8 = 16;
    const SEAM: u8 = 32;
    const STOPS: u8 = 64;
    const SLOW: u8 = 128;

    /// A mood: each kind with its chance, one in so many.
    fn draw(rng: &mut Rng) -> Self {
        let kinds = [
            (Self::DEATHS, rng.one_in(4)),
            (Self::CLOSES, rng.one_in(3)),
            (Self::QUOTAS, rng.one_in(2)),
            (Self::POSTURE, !rng.one_in(3)),
            (Self::LEDGER, rng.one_in(3)),
            (Self::SEAM, rng.one_in(3)),
            (Self::STOPS, rng.one_in(3)),
            (Self::SLOW, rng.one_in(2)),
        ];
        let kinds = kinds.into_iter().filter(|(_, has)| *has);
        Self(kinds.fold(0, |all, (kind, _)| all | kind))
    }

    const fn has(&self, kind: u8) -> bool {
        self.0 & kind != 0
    }
}

/// Roles that clients submit to, and that the flood is of.
const CLIENTS: [WorkerRole; 6] = [
    WorkerRole::SimDriver,
    WorkerRole::Resolve,
    WorkerRole::PoolStateUpdater,
    WorkerRole::Registrar,
    WorkerRole::Verifier,
    WorkerRole::Submitter,
];

/// The script of `seed`, with about `steps` operations.
#[must_use]
pub fn script(seed: u64, steps: usize) -> Script {
    let mut rng = Rng::new(seed);
    let mood = Mood::draw(&mut rng);
    let tier = if rng.one_in(3) {
        Tier::Serial
    } else {
        Tier::Pinned
    };
    let schedule = rng.draw();
    let mut ops = Vec::with_capacity(2 * steps);
    while ops.len() < steps {
        ops.extend(draw(&mut rng, &mood));
        if rng.one_in(2) {
            ops.push(Op::Steps(u8::try_from(rng.below(16)).unwrap_or(0)));
        }
    }
    if mood.has(Mood::CLOSES) {
        ops.push(Op::Quiesce);
        ops.push(Op::Wait(rng.between(0, 60)));
        ops.push(Op::Fence);
        ops.extend((0..4).filter_map(|_| draw(&mut rng, &mood)));
    }
    Script {
        schedule,
        tier,
        ops,
    }
}

/// An operation that the mood allows, or none.
fn draw(rng: &mut Rng, mood: &Mood) -> Option<Op> {
    Some(match rng.below(32) {
        0..=5 => submit(rng, mood),
        6 | 7 => Op::Block {
            bins: byte(rng, 64),
            ms: time(rng, mood),
        },
        8 if rng.one_in(2) => Op::Walk {
            key: byte(rng, 6),
            ms: time(rng, mood),
        },
        8 => Op::Flood {
            role: role(rng),
            units: byte(rng, 40),
            ms: rng.between(0, 4),
        },
        9 => Op::Crawl(rng.between(1, 60)),
        10 => rng.pick(&[
            Op::Abandon,
            Op::Collect(true),
            Op::Collect(false),
            Op::Verify,
            Op::CrawlGoesOn(false),
            Op::CrawlGoesOn(true),
        ]),
        11..=15 => Op::Wait(wait(rng)),
        16 if rng.one_in(2) => Op::Minutes(byte(rng, 24)),
        16 => Op::Spurious(byte(rng, 16)),
        17..=20 if mood.has(Mood::POSTURE) => posture(rng),
        21 | 22 if mood.has(Mood::QUOTAS) => Op::Quota {
            milli: rng.pick(&[
                0, 500, 1_000, 1_999, 2_000, 3_500, 6_000, 7_000, 8_000, 12_000,
            ]),
            told: !rng.one_in(3),
        },
        23 if mood.has(Mood::LEDGER) => Op::Ledger {
            roles: byte(rng, 256),
            refill_ms: rng.pick(&[0, 0, 1, 20, 100, 400]),
        },
        24 if mood.has(Mood::STOPS) => {
            Op::Stop(rng.pick(&[1, 100, 1_000, 9_000, 60_000, 3_600_000]))
        }
        25 | 26 if mood.has(Mood::SLOW) => rng.pick(&[
            Op::TimersLate(0),
            Op::TimersLate(3),
            Op::TimersLate(300),
            Op::TimersLate(900),
        ]),
        27 if mood.has(Mood::SLOW) => Op::Stall {
            seat: byte(rng, 16),
            ms: rng.between(1, 700),
        },
        28..=30 if mood.has(Mood::SEAM) => seam(rng),
        31 if mood.has(Mood::DEATHS) => Op::Die {
            seat: byte(rng, 16),
            hung: rng.one_in(2),
        },
        30 if mood.has(Mood::CLOSES) && rng.one_in(6) => rng.pick(&[Op::Quiesce, Op::Fence]),
        _ => return None,
    })
}

fn byte(rng: &mut Rng, below: usize) -> u8 {
    u8::try_from(rng.below(below)).unwrap_or(0)
}

fn role(rng: &mut Rng) -> u8 {
    rng.pick(&CLIENTS) as u8
}

/// How long a unit runs.
fn time(rng: &mut Rng, mood: &Mood) -> u16 {
    if mood.has(Mood::SLOW) && rng.one_in(12) {
        rng.between(200, 2_500)
    } else {
        rng.between(0, 12)
    }
}

fn wait(rng: &mut Rng) -> u16 {
    match rng.below(8) {
        0..=3 => rng.between(1, 20),
        4..=6 => rng.between(20, 600),
        _ => rng.between(1_000, 12_000),
    }
}

fn submit(rng: &mut Rng, mood: &Mood) -> Op {
    Op::Submit {
        role: role(rng),
        ms: time(rng, mood),
        panics: rng.one_in(12),
        abandoned: rng.one_in(8),
    }
}

fn posture(rng: &mut Rng) -> Op {
    match rng.below(12) {
        0..=3 => Op::Throttle {
            periods: byte(rng, 4),
            ms: rng.pick(&[0, 5, 90, 400, 4_000]),
        },
        4 => Op::EdgesLost,
        5 => Op::EdgesTwice,
        6 => Op::EdgesLate(rng.between(1, 900)),
        7 => Op::EdgesDelivered,
        8 => Op::Blind(true),
        9 => Op::Blind(false),
        10 => Op::SamplerGap(rng.between(100, 5_000)),
        _ => Op::Retune(byte(rng, 5)),
    }
}

fn seam(rng: &mut Rng) -> Op {
    match rng.below(6) {
        0 | 1 => Op::Publish(byte(rng, 40)),
        2 => Op::DrainSlow(rng.pick(&[0, 1, 50, 900, 2_900])),
        3 => Op::DrainFrozen(true),
        4 => Op::DrainFrozen(false),
        _ => Op::Verify,
    }
}
