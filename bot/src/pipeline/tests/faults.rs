//! What becomes of a run when a unit does not do its part.

use super::*;
use crate::pipeline::PumpError;
use crate::pipeline::merge::MergeJob;
use crate::pipeline::simulate::{SimError, Simulated};
use crate::solver::{NotProved, Optimum};

const BINS: u8 = 3;
const BLOCKS: u64 = 6;

fn market() -> Generated {
    made_up(7, 96)
}

fn healthy(made: &Generated) -> Vec<BlockResult> {
    let fleet = fleet_of(arbitrage(made, 4, BINS), BINS);
    run_all(
        &fleet,
        publishing(BINS, 2),
        &blocks_of(made, 5, BLOCKS),
        |_| (),
    )
}

fn sabotaged(
    made: &Generated,
    counts: fn(&Unit) -> bool,
    at: u32,
    instead: fn(Unit, &Arbitrage) -> Output,
) -> Vec<BlockResult> {
    let workload = Sabotaged::new(arbitrage(made, 4, BINS), counts, at, instead);
    let fleet = fleet_of(workload, BINS);
    run_all(
        &fleet,
        publishing(BINS, 2),
        &blocks_of(made, 5, BLOCKS),
        |_| (),
    )
}

/// The error that ends a run.
fn fatal(counts: fn(&Unit) -> bool, instead: fn(Unit, &Arbitrage) -> Output) -> PumpError {
    let made = market();
    let workload = Sabotaged::new(arbitrage(&made, 4, BINS), counts, 1, instead);
    let fleet = fleet_of(workload, BINS);
    crawl(&fleet, &crate::pipeline::Unwatched, |_| {
        crate::pipeline::Next::Submit
    })
    .unwrap();
    let mut pump = Pump::new(&fleet, publishing(BINS, 2), &crate::pipeline::Unwatched).unwrap();
    let mut results = blocks_of(&made, 5, BLOCKS)
        .into_iter()
        .map(|block| pump.run(&[block]));
    results.next().unwrap().unwrap();
    let error = results.next().unwrap().unwrap_err();
    drop(results);
    drop(pump);
    // Whatever ended the run, no unit is unaccounted for.
    assert!(fleet.close(Duration::from_secs(10)).is_clean() && fleet.status().balanced());
    error
}

fn solves(unit: &Unit) -> bool {
    matches!(unit, Unit::Solve(_))
}

fn first_sims(unit: &Unit) -> bool {
    matches!(unit, Unit::Simulate(job) if !job.least_input)
}

fn last_sims(unit: &Unit) -> bool {
    matches!(unit, Unit::Simulate(job) if job.least_input)
}

fn panics(_: Unit, _: &Arbitrage) -> Output {
    panic!("sabotage: this test makes a unit panic")
}

/// Everything but the outcomes and what follows from them.
fn same_block(a: &BlockResult, b: &BlockResult) -> bool {
    a.tally.expected == b.tally.expected && a.moved == b.moved
}

#[test]
fn a_solver_unit_that_panics_costs_its_bin_and_no_more() {
    let made = market();
    let healthy = healthy(&made);
    for bin in 0..u32::from(BINS) {
        // The bin's unit of the third block.
        let results = sabotaged(&made, solves, 2 * u32::from(BINS) + bin, panics);
        for (block, (result, healthy)) in results.iter().zip(&healthy).enumerate() {
            if block != 2 {
                assert_eq!(timeless(result), timeless(healthy), "block {block}");
                continue;
            }
            assert!(same_block(result, healthy));
            let tally = result.tally;
            assert!(
                tally.failed > 0 && tally.owed() == 0,
                "{tally:?} for bin {bin}"
            );
            assert!(tally.solved <= healthy.tally.solved && tally.failed < tally.expected);
            assert!(result.walks[bin as usize].is_zero());
            assert!(result.winners.len() <= healthy.winners.len());
        }
    }
}

#[test]
fn a_simulation_that_panics_is_counted_and_costs_one_candidate() {
    let made = market();
    let healthy = healthy(&made);
    // The very first candidate has the largest bound.
    let results = sabotaged(&made, first_sims, 0, panics);
    assert_eq!((results[0].sim_failed, results[0].tally.failed), (1, 0));
    assert_eq!(results[0].tally, healthy[0].tally);
    assert_ne!(results[0].winners, healthy[0].winners);
    for (result, healthy) in results[1..].iter().zip(&healthy[1..]) {
        assert_eq!(timeless(result), timeless(healthy));
    }
}

#[test]
fn the_trade_is_published_though_its_smallest_input_is_not_found() {
    let made = market();
    let healthy = healthy(&made);
    let not_proved = |_: Unit, _: &Arbitrage| {
        let unknown = NotProved {
            lower: None,
            upper: 0,
            limit: 0,
        };
        Output::Simulated(Simulated(Err(SimError::NotProved(unknown))))
    };
    for (instead, failed) in [
        (panics as fn(Unit, &Arbitrage) -> Output, 1),
        (not_proved, 0),
    ] {
        let results = sabotaged(&made, last_sims, 0, instead);
        let profits = |results: &[BlockResult]| -> Vec<_> {
            let winners = results.iter().flat_map(|result| &result.winners);
            winners
                .map(|winner| (winner.id, winner.trade.optimum.profit))
                .collect()
        };
        assert_eq!(profits(&results), profits(&healthy));
        assert_eq!((results[0].sim_failed, results[0].unproved), (failed, 0));
    }
}

#[test]
fn an_optimum_that_is_not_proved_is_counted_and_not_published() {
    let made = market();
    let healthy = healthy(&made);
    let results = sabotaged(&made, first_sims, 0, |_, _| {
        let unknown = NotProved {
            lower: None,
            upper: 9,
            limit: 1,
        };
        Output::Simulated(Simulated(Err(SimError::NotProved(unknown))))
    });
    assert_eq!((results[0].unproved, results[0].sim_failed), (1, 0));
    assert_eq!(results[0].winners[0], healthy[0].winners[1]);
}

#[test]
fn an_optimum_that_its_hops_do_not_bear_out_is_a_failed_simulation() {
    let made = market();
    let results = sabotaged(&made, first_sims, 0, |_, _| {
        let wrong = Optimum {
            input: 1,
            output: 3,
            profit: 2,
        };
        Output::Simulated(Simulated(Err(SimError::Disagrees(wrong))))
    });
    assert_eq!((results[0].unproved, results[0].sim_failed), (0, 1));
}

#[test]
fn a_block_without_resolve_or_merge_ends_the_run() {
    for (counts, role) in [
        (
            (|unit| matches!(unit, Unit::Resolve(_))) as fn(&Unit) -> bool,
            "resolve",
        ),
        (|unit| matches!(unit, Unit::Merge(_)), "merge"),
    ] {
        let error = fatal(counts, panics);
        assert!(
            matches!(error, PumpError::Failed { number: 2, role: found, .. } if found == role),
            "{error}"
        );
        assert!(error.to_string().contains("sabotage"), "{error}");
    }
}

#[test]
fn a_bin_that_leaves_a_cycle_out_ends_the_run() {
    let error = fatal(
        |unit| matches!(unit, Unit::Merge(_)),
        |unit, _| {
            let Unit::Merge(mut job) = unit else {
                unreachable!()
            };
            let bin = job.bins.iter_mut().find(|bin| !bin.ids.is_empty()).unwrap();
            bin.solved.clear();
            bin.suppressed.clear();
            let tally = job.run();
            Output::Merged(job, tally)
        },
    );
    assert!(
        matches!(error, PumpError::Fuse { number: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_role_that_answers_as_another_ends_the_run() {
    let other = |_: Unit, _: &Arbitrage| {
        let mut job = Box::new(MergeJob::new(1, 1));
        let tally = job.run();
        Output::Merged(job, tally)
    };
    for (counts, role) in [
        (
            (|unit| matches!(unit, Unit::Resolve(_))) as fn(&Unit) -> bool,
            "resolve",
        ),
        (solves, "solver"),
        (first_sims, "sim_driver"),
    ] {
        let made = market();
        let workload = Sabotaged::new(arbitrage(&made, 4, BINS), counts, 0, other);
        let fleet = fleet_of(workload, BINS);
        crawl(&fleet, &crate::pipeline::Unwatched, |_| {
            crate::pipeline::Next::Submit
        })
        .unwrap();
        let mut pump = Pump::new(&fleet, publishing(BINS, 2), &crate::pipeline::Unwatched).unwrap();
        let error = pump.run(&blocks_of(&made, 5, 1)).unwrap_err();
        assert!(
            matches!(error, PumpError::Protocol { number: 1, role: found } if found == role),
            "{error}"
        );
    }
}

#[test]
fn a_path_that_is_no_cycle_ends_the_crawl_and_so_does_a_lost_one() {
    let counts = |unit: &Unit| matches!(unit, Unit::Register(_));
    let refused = |unit: Unit, _: &Arbitrage| {
        let Unit::Register(job) = unit else {
            unreachable!()
        };
        Output::Registered(job.cycle(), false)
    };
    for (instead, message) in [
        (
            refused as fn(Unit, &Arbitrage) -> Output,
            "path 100 does not lead",
        ),
        (
            panics,
            "path 100 was not registered: the unit panicked: sabotage",
        ),
    ] {
        let workload = Sabotaged::new(arbitrage(&market(), 4, BINS), counts, 100, instead);
        let fleet = fleet_of(workload, BINS);
        let error = crawl(&fleet, &crate::pipeline::Unwatched, |_| {
            crate::pipeline::Next::Submit
        })
        .unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        let world = fleet.workload().arbitrage().world();
        assert!(world.table().is_empty(), "a part of a market is none");
    }
}
