//! On a chain that is as it says, the machine changes nothing of what is published.

use super::support::*;
use regatta_bot::evm::Limits;
use regatta_bot::pipeline::Unwatched;
use std::sync::atomic::Ordering;

/// Property: every candidate agrees, and every record is that of a run without the machine.
#[test]
fn every_candidate_agrees_and_what_is_published_is_the_same() {
    let made = market();
    let blocks = blocks_of(&made, 12);
    let reader = Reader::over(Chain::new(&made, &blocks));
    let (with, _) = run(&made, &blocks, Some(machine(&reader, Limits::default())));
    let (without, _) = run(&made, &blocks, None);
    let mut agreed = 0;
    for (with, without) in with.iter().zip(&without) {
        assert_eq!(published(with), published(without));
        let evm = with.evm.as_ref().unwrap();
        assert_eq!((evm.disagreed, evm.unavailable), (0, 0), "{evm:?}");
        assert_eq!(evm.marks, []);
        assert!(evm.agreed >= with.winners.len());
        agreed += evm.agreed;
        assert_eq!(without.evm, None);
    }
    assert!(agreed > 10, "{agreed} are no evidence");
    assert!(reader.keys.load(Ordering::Relaxed) > 0);
}

/// Property: after a reorganisation the state is that of the new branch, to the hash: the reader refuses any other.
#[test]
fn a_reorganisation_is_asked_for_by_the_new_hashes() {
    let made = market();
    let blocks = blocks_of(&made, 8);
    let mut other = blocks[7].clone();
    other.hash = regatta_bot::source::BlockHash::new([7; 32]);
    other.updates.reverse();
    let chain = Chain::new(&made, &[&blocks[..7], &[other.clone()]].concat());
    let reader = Reader::over(chain);
    let fleet = fleet_of(&made.market, made.base);
    let mut pump = pump(
        &fleet,
        Some(machine(&reader, Limits::default())),
        &Unwatched,
    );
    pump.run(&blocks[..7]).unwrap();
    // It is reverted before it runs: nothing of it is ever asked for.
    pump.apply(&blocks[7]).unwrap();
    pump.revert(blocks[7].number, blocks[7].hash, true).unwrap();
    let result = pump.run(&[other]).unwrap();
    let evm = result.evm.unwrap();
    assert!(evm.agreed > 0, "{evm:?}");
    assert_eq!((evm.disagreed, evm.unavailable), (0, 0), "{evm:?}");
    drop(pump);
    assert_balanced(&fleet);
}
