//! Scripts that are kept: each once failed, or is a story that must never fail again.

use crate::coverage::Coverage;
use crate::run::run;
use crate::script::{Op, Script, Tier};
use crate::world::World;

/// The script runs to its end and every property holds.
fn holds(script: &Script) {
    if let Err(violation) = run(script, None, &mut Coverage::default()) {
        panic!("{violation}");
    }
}

/// The crawl that once stood still: more than 10,500 paths to register, a cordon sets in when the counter
/// reads 9,955 with 32 receipts outstanding, and every edge is lost.
fn incident(tier: Tier, tail: &[Op]) -> Script {
    let mut ops = vec![
        Op::EdgesLost,
        Op::Sample,
        Op::Crawl(10_600),
        Op::CrawlTo(9_955),
        Op::Throttle {
            periods: 4,
            ms: 400,
        },
        Op::Sample,
    ];
    ops.extend(tail);
    Script {
        schedule: 1,
        tier,
        ops,
    }
}

#[test]
fn the_crawl_is_held_with_its_window_full_and_completes_without_an_edge() {
    for tier in [Tier::Pinned, Tier::Serial] {
        let script = incident(tier, &[Op::Wait(2_000)]);
        let mut cover = Coverage::default();
        let mut world = World::new(&script, None, &mut cover).unwrap();
        for op in &script.ops {
            world.op(*op).unwrap();
        }
        // Units that ran when the cordon set in have ended; all others are held, and nobody was told.
        let (registered, outstanding) = world.clients.crawled();
        assert_eq!(outstanding, 32);
        assert!((9_955..9_955 + 32).contains(&registered), "{registered}");
        world.wind_down().unwrap();
        assert_eq!(world.clients.crawled(), (10_600, 0));
        assert_eq!(world.host.counters().edges, 0);
    }
}

#[test]
fn the_incident_with_late_timers_and_stopped_for_an_hour() {
    for tier in [Tier::Pinned, Tier::Serial] {
        let tail = [
            Op::TimersLate(300),
            Op::Wait(900),
            Op::Stop(3_600_000),
            Op::Wait(60),
        ];
        holds(&incident(tier, &tail));
    }
}

#[test]
fn the_incident_with_the_death_of_the_seat_that_keeps_the_time() {
    for seat in 0..12 {
        let death = Op::Die { seat, hung: false };
        holds(&incident(Tier::Pinned, &[Op::Wait(600), death]));
    }
}

/// A seat that was taken for lost reports, is refused, and has polled grants for others meanwhile: it must
/// ring them before it goes.
#[test]
fn a_seat_taken_for_lost_rings_before_it_goes() {
    holds(&Script {
        schedule: 13_168_350_753_275_463_132,
        tier: Tier::Pinned,
        ops: vec![
            Op::Submit {
                role: 6,
                ms: 5,
                panics: false,
                abandoned: false,
            },
            Op::Steps(14),
            Op::Submit {
                role: 7,
                ms: 2,
                panics: false,
                abandoned: false,
            },
            Op::Ledger {
                roles: 219,
                refill_ms: 100,
            },
            Op::Submit {
                role: 2,
                ms: 10,
                panics: false,
                abandoned: true,
            },
            Op::Wait(5),
            Op::Submit {
                role: 1,
                ms: 1_517,
                panics: false,
                abandoned: false,
            },
            Op::Die {
                seat: 9,
                hung: true,
            },
            Op::Steps(13),
        ],
    });
}

/// A hold that begins and ends within one moment, in which the backstop ticks: what could run before it waits
/// anew.
#[test]
fn a_moment_of_being_held_ends_the_wait_before_it() {
    holds(&Script {
        schedule: 15_388_184_560_006_845_577,
        tier: Tier::Pinned,
        ops: vec![
            Op::Submit {
                role: 5,
                ms: 9,
                panics: false,
                abandoned: false,
            },
            Op::Ledger {
                roles: 35,
                refill_ms: 20,
            },
            Op::Wait(79),
            Op::Ledger {
                roles: 237,
                refill_ms: 0,
            },
            Op::Stop(60_000),
            Op::Steps(11),
        ],
    });
}
