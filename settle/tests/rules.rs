//! The engine's rules, one at a time.

#![cfg(test)]

mod model;

use alloy_primitives::U256;
use model::{EXECUTOR, Fate, PROFIT, World};
use regatta_settle::abi::Reason;
use regatta_settle::engine::{Action, Mode, Skip, Stop};
use regatta_settle::ledger::{Entry, Id, Kind, Outcome};

fn outcome(world: &World, id: Id) -> Outcome {
    world.record.flight(id).unwrap().outcome.clone().unwrap()
}

fn calm(change: impl Fn(&mut regatta_settle::engine::Config)) -> World {
    let mut world = World::new(change);
    world.node.all_run = true;
    world
}

/// Tells and does everything; a block has what can pay.
fn block(world: &mut World, include: bool) {
    world.mine(1000, |_| include);
    world.settle_down();
}

#[test]
fn a_cycle_is_settled_for_what_was_predicted_to_the_wei() {
    let mut world = calm(|_| {});
    let id = world.offer(&[1, 2], PROFIT).unwrap();
    world.settle_down();
    block(&mut world, true);
    let Outcome::Included { realised, mined } = outcome(&world, id) else {
        panic!("{:?}", outcome(&world, id))
    };
    assert_eq!(realised, U256::from(PROFIT));
    assert_eq!(mined.block, world.node.head().block);
    assert_eq!(world.engine.stopped(), None);
    world.finish();
    world.check_totals();
}

#[test]
fn a_profit_that_differs_stops_settling_and_is_recorded() {
    let mut world = calm(|_| {});
    let id = world.offer(&[1], PROFIT).unwrap();
    world.settle_down();
    world.mine(1000, |_| true);
    let (_, receipt) = world
        .node
        .chain
        .last_mut()
        .unwrap()
        .receipts
        .last_mut()
        .unwrap();
    receipt.logs[0].data = U256::from(PROFIT - 1).to_be_bytes::<32>().into();
    world.settle_down();
    assert_eq!(outcome(&world, id).realised(), U256::from(PROFIT - 1));
    let stop = world.engine.stopped().unwrap();
    assert!(
        matches!(
            stop,
            Stop::ProfitDiffers {
                realised: Some(_),
                ..
            }
        ),
        "{stop}"
    );
    assert_eq!(world.offer(&[2], PROFIT), Err(Skip::Stopped));
}

#[test]
fn a_pair_is_in_one_open_settlement_and_the_window_holds() {
    let mut world = calm(|_| {});
    let first = world.offer(&[1, 2], PROFIT).unwrap();
    assert!(matches!(
        world.offer(&[2, 3], PROFIT),
        Err(Skip::PoolTaken(_))
    ));
    assert_eq!(world.offer(&[4, 4], PROFIT), Err(Skip::Malformed));
    assert_eq!(world.offer(&[], PROFIT), Err(Skip::Malformed));
    let second = world.offer(&[3], PROFIT).unwrap();
    let third = world.offer(&[4], PROFIT).unwrap();
    assert_eq!(world.offer(&[5], PROFIT), Err(Skip::Full));
    world.settle_down();
    let nonces = [first, second, third].map(|id| world.record.flight(id).unwrap().nonce);
    assert_eq!(nonces, [Some(0), Some(1), Some(2)]);
    block(&mut world, true);
    assert!(world.offer(&[1, 2, 3], PROFIT).is_ok());
}

/// N17: a send that failed had used a nonce, and all later ones were stuck.
#[test]
fn n17_a_send_that_failed_is_looked_into_before_anything_new_and_sent_again() {
    for fate in [Fate::Lost, Fate::Refused] {
        let mut world = calm(|_| {});
        let id = world.offer(&[1], PROFIT).unwrap();
        while world.node.pool.is_empty() && world.sent.is_empty() {
            world.collect();
            let sends = matches!(world.todo.front(), Some(Action::Send { .. }));
            assert!(world.act(0, if sends { fate } else { Fate::Fair }));
        }
        assert!(!world.engine.is_ready());
        assert_eq!(world.offer(&[2], PROFIT), Err(Skip::NotReady));
        world.settle_down();
        // What was lost on the way back is there; what was refused goes out again at the next head.
        assert_eq!(world.engine.is_ready(), fate == Fate::Lost);
        block(&mut world, false);
        block(&mut world, true);
        assert!(matches!(outcome(&world, id), Outcome::Included { .. }));
        assert_eq!(world.sent[&0].len(), 1);
        assert!(world.offer(&[2], PROFIT).is_ok());
        world.finish();
        world.check_totals();
    }
}

/// N18: a replacement at +8.75 % was refused for ever.
#[test]
fn n18_a_replacement_offers_enough_and_is_tried_so_often_and_no_more() {
    let mut world = calm(|config| config.max_replacements = 3);
    let id = world.offer(&[1], PROFIT).unwrap();
    world.settle_down();
    for _ in 0..30 {
        block(&mut world, false);
    }
    let attempts = &world.record.flight(id).unwrap().attempts;
    assert_eq!(attempts.len(), 4);
    for pair in attempts.windows(2) {
        assert_eq!(pair[1].kind, Kind::Cancel);
        assert!(pair[1].fees.max * 8 >= pair[0].fees.max * 9);
        assert!(pair[1].fees.priority * 8 >= pair[0].fees.priority * 9);
        // The model's node has the rule that nodes have: the last one is in the mempool.
    }
    assert_eq!(world.node.pool[&0].hash, attempts[3].hash);
    let stop = world.engine.stopped().unwrap();
    assert_eq!(stop, Stop::Stuck { nonce: 0, tries: 3 });
    block(&mut world, true);
    assert!(matches!(
        outcome(&world, id),
        Outcome::Expired { cancel: Some(_) }
    ));
    assert_eq!(world.engine.stopped(), None);
}

/// N19: the base fee rose past the offer between pricing and inclusion.
#[test]
fn n19_the_fee_may_rise_in_every_block_until_expiry() {
    let mut world = calm(|_| {});
    let id = world.offer(&[1], PROFIT).unwrap();
    world.settle_down();
    let mut fee = world.node.head().base_fee;
    let last = world.config.expiry_blocks;
    for block in 1..=last {
        fee += fee / 8;
        world.mine(fee, |_| block == last);
        world.settle_down();
    }
    assert!(matches!(outcome(&world, id), Outcome::Included { .. }));
}

/// N20: a transaction of an orphaned block went back to the mempool and was mined later.
#[test]
fn n20_an_orphaned_settlement_is_open_again_and_does_nothing_after_its_expiry() {
    let mut world = calm(|config| config.max_replacement_fee = 0);
    let id = world.offer(&[1], PROFIT).unwrap();
    world.settle_down();
    block(&mut world, true);
    assert!(matches!(outcome(&world, id), Outcome::Included { .. }));
    world.reorg(1, true, 1000, false);
    world.settle_down();
    assert_eq!(world.record.flight(id).unwrap().outcome, None);
    assert_eq!(world.record.totals().realised, U256::ZERO);
    assert!(matches!(world.offer(&[1], PROFIT), Err(Skip::PoolTaken(_))));
    for _ in 0..3 {
        block(&mut world, false);
    }
    // No replacement is allowed, so that what a mempool drops has to go out again to free its nonce.
    world.node.pool.clear();
    block(&mut world, false);
    block(&mut world, true);
    let Outcome::Reverted { reason, .. } = outcome(&world, id) else {
        panic!("{:?}", outcome(&world, id))
    };
    assert!(matches!(reason, Reason::Expired(_)), "{reason}");
    world.finish();
    world.check_totals();
}

/// S15: a stopped process had leaked its reservations.
#[test]
fn s15_nothing_stays_reserved_but_what_is_out() {
    // After every number of things done, by an orderly end and by a crash.
    for done in 0..40 {
        for orderly in [true, false] {
            let mut world = calm(|_| {});
            world.offer(&[1, 2], PROFIT).unwrap();
            world.offer(&[3], PROFIT).unwrap();
            for _ in 0..done {
                world.act(0, Fate::Fair);
            }
            if orderly {
                world.engine.drain();
                assert_eq!(world.offer(&[5], PROFIT), Err(Skip::Draining));
                while world.act(0, Fate::Fair) {}
                assert!(world.engine.is_drained());
            }
            let out = world
                .record
                .open()
                .filter(|(_, flight)| !flight.attempts.is_empty());
            let out: Vec<Id> = out.map(|(id, _)| id).collect();
            world.crash();
            let reserved: Vec<Id> = world.engine.reserved().map(|(_, id)| id).collect();
            assert!(
                reserved.iter().all(|id| out.contains(id)),
                "{reserved:?}, out: {out:?}"
            );
            world.finish();
            assert!(world.offer(&[1, 2], PROFIT).is_ok());
            world.check_totals();
        }
    }
}

#[test]
fn a_crash_between_record_and_send_sends_the_same_or_nothing() {
    let mut world = calm(|_| {});
    let id = world.offer(&[1], PROFIT).unwrap();
    while !matches!(world.disk.last(), Some(Entry::Sent { .. })) {
        assert!(world.act(0, Fate::Fair));
    }
    assert!(world.sent.is_empty());
    let signed = world.record.flight(id).unwrap().attempts[0].hash;
    world.crash();
    assert_eq!(world.offer(&[2], PROFIT), Err(Skip::NotReady));
    world.settle_down();
    assert_eq!(
        world.sent[&0]
            .iter()
            .map(|sent| sent.hash)
            .collect::<Vec<_>>(),
        [signed]
    );
    block(&mut world, true);
    assert!(matches!(outcome(&world, id), Outcome::Included { .. }));
}

#[test]
fn a_ledger_that_fails_ends_all_sending() {
    let mut world = calm(|_| {});
    world.offer(&[1], PROFIT).unwrap();
    world.offer(&[2], PROFIT).unwrap();
    while !matches!(world.disk.last(), Some(Entry::Sent { .. })) {
        assert!(world.act(0, Fate::Fair));
    }
    world.engine.record_failed("no space");
    let sent = world.sent.len();
    world.todo.clear();
    for _ in 0..5 {
        world.mine(1000, |_| true);
        world.tell();
        world.collect();
        let sends = |action: &Action| matches!(action, Action::Send { .. } | Action::Sign { .. });
        assert!(!world.todo.iter().any(sends));
        world.act(0, Fate::Fair);
    }
    assert_eq!(world.sent.len(), sent);
    assert!(matches!(world.engine.stopped(), Some(Stop::Ledger(_))));
}

#[test]
fn losses_stop_settling_alone_and_still_do_after_a_restart() {
    let mut world = World::new(|config| config.loss_limit = U256::from(100_000_000));
    // The dry run passes at one height, and the block after fails: expired, as the model's node has it.
    let mut lost = 0;
    for pool in 1..200 {
        if world.offer(&[pool % 100], PROFIT).is_err() {
            break;
        }
        world.settle_down();
        block(&mut world, true);
        lost += world.record.totals().reverted;
    }
    assert!(lost > 0);
    assert!(matches!(
        world.engine.stopped(),
        Some(Stop::LossLimit { .. })
    ));
    assert_eq!(world.offer(&[200], PROFIT), Err(Skip::Stopped));
    world.crash();
    world.settle_down();
    assert!(matches!(
        world.engine.stopped(),
        Some(Stop::LossLimit { .. })
    ));
    world.finish();
    world.check_totals();
}

#[test]
fn what_gas_would_eat_is_not_sent() {
    let mut world = calm(|config| config.min_profit = U256::from(1_000_000));
    assert_eq!(world.offer(&[1], 999_999), Err(Skip::TooSmall));
    let gas = 100_000 * (1000 + 125 + 140 + 158 + 10);
    for (profit, runs) in [(gas + 999_999, false), (gas + 1_000_000, true)] {
        let id = world.offer(&[1], profit).unwrap();
        world.settle_down();
        let refused = matches!(
            world.record.flight(id).unwrap().outcome,
            Some(Outcome::DryRunFailed {
                reason: Reason::TooLittleAfterGas { .. }
            })
        );
        assert_eq!(refused, !runs);
        assert_eq!(world.sent.len(), usize::from(runs));
    }
}

#[test]
fn in_shadow_nothing_is_signed_or_sent_and_the_next_block_scores() {
    let mut world = World::new(|config| config.mode = Mode::Shadow);
    for pool in 1..60 {
        world.offer(&[pool], PROFIT).unwrap();
        world.settle_down();
        block(&mut world, true);
    }
    assert!(world.sent.is_empty());
    world.finish();
    let totals = world.record.totals();
    assert_eq!(
        totals.planned,
        totals.shadow_hits + totals.shadow_misses + totals.dry_run_failed
    );
    assert!(totals.shadow_hits > 5 && totals.shadow_misses > 5 && totals.dry_run_failed > 5);
    assert_eq!(
        totals.shadow_realised,
        U256::from(PROFIT) * U256::from(totals.shadow_hits)
    );
    assert!(
        !world
            .record
            .flights()
            .any(|(_, flight)| flight.nonce.is_some())
    );
}

/// N17, the other half: somebody else used the nonce.
#[test]
fn a_nonce_that_somebody_else_used_ends_the_settlement_and_one_that_is_lost_is_filled() {
    let mut world = calm(|_| {});
    let id = world.offer(&[1], PROFIT).unwrap();
    world.settle_down();
    world.foreign(0);
    block(&mut world, true);
    block(&mut world, true);
    assert_eq!(outcome(&world, id), Outcome::Replaced { by: None });
    // The mempool shows a transaction of somebody else, and loses it once ours is behind it.
    world.foreign(1);
    block(&mut world, false);
    world.crash();
    world.settle_down();
    let behind = world.offer(&[1], PROFIT).unwrap();
    world.settle_down();
    assert_eq!(world.record.flight(behind).unwrap().nonce, Some(2));
    world.node.pool.remove(&1);
    block(&mut world, false);
    block(&mut world, true);
    assert!(matches!(outcome(&world, behind), Outcome::Included { .. }));
    assert_eq!(world.record.totals().filled, 1);
    world.finish();
    world.check_totals();
}

/// Up to the depth it could be a reorg; beyond it is not.
#[test]
fn another_chains_ledger_stops_settling_and_sends_nothing() {
    let mut world = calm(|_| {});
    for pool in 0..50 {
        world.offer(&[pool], PROFIT).unwrap();
        world.settle_down();
        block(&mut world, true);
    }
    world.finish();
    world.node = model::node::Node::new(EXECUTOR);
    world.crash();
    world.settle_down();
    for _ in 0..20 {
        block(&mut world, true);
    }
    let stop = world.engine.stopped();
    assert!(matches!(stop, Some(Stop::Behind(_))), "{stop:?}");
    assert_eq!(world.node.latest() + world.node.pending(), 0);
    assert_eq!(world.offer(&[1], PROFIT), Err(Skip::Stopped));
}
