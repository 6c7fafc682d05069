//! A state that cannot be read: counted, typed, bounded, and nothing is published that was not confirmed.

use super::support::*;
use regatta_bot::evm::Limits;
use regatta_bot::pipeline::{Unwatched, Watch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Property: whatever goes wrong with the reading, the block ends after one more reading, without a winner; and when the
/// reader is well again, so is the run.
#[test]
fn a_reader_that_is_not_well_costs_a_block_one_reading_and_its_winners() {
    let made = market();
    let blocks = blocks_of(&made, 12);
    let reader = Reader::over(Chain::new(&made, &blocks));
    let limits = Limits {
        question: Duration::from_millis(50),
        block: Duration::from_millis(100),
        ..Limits::default()
    };
    let fleet = fleet_of(&made.market, made.base);
    let mut pump = pump(&fleet, Some(machine(&reader, limits)), &Unwatched);
    let moods = [Mood::Fails, Mood::Hangs, Mood::Garbles, Mood::Forgets];
    let mut winners = 0;
    for (block, mood) in blocks.iter().zip(moods.into_iter().cycle()) {
        *reader.mood.lock().unwrap() = mood;
        let before = reader.readings.load(Ordering::Relaxed);
        let result = pump.run(std::slice::from_ref(block)).unwrap();
        let readings = reader.readings.load(Ordering::Relaxed) - before;
        let evm = result.evm.unwrap();
        assert_eq!((evm.agreed, evm.disagreed), (0, 0), "{mood:?}: {evm:?}");
        assert_eq!(result.winners, [], "{mood:?}");
        assert!(readings <= 1, "{mood:?}: {readings} readings");
        winners += result.profitable;
    }
    assert!(winners > 0, "there was something to confirm");
    drop(pump);
    assert_balanced(&fleet);
}

/// Property: a node that came back is asked again in the next block.
#[test]
fn a_reader_that_comes_back_is_asked_again() {
    let made = market();
    let blocks = blocks_of(&made, 12);
    let reader = Reader::over(Chain::new(&made, &blocks));
    let fleet = fleet_of(&made.market, made.base);
    let mut pump = pump(
        &fleet,
        Some(machine(&reader, Limits::default())),
        &Unwatched,
    );
    let mut counted = [0; 3];
    for (block, count) in blocks.iter().zip(0..) {
        // Well at first, so that the fees are compared and what fails are candidates.
        let mood = if (4..8).contains(&count) {
            Mood::Fails
        } else {
            Mood::Answers
        };
        *reader.mood.lock().unwrap() = mood;
        let result = pump.run(std::slice::from_ref(block)).unwrap();
        let evm = result.evm.unwrap();
        if mood == Mood::Fails {
            assert_eq!(result.winners, []);
            assert_eq!((evm.agreed, evm.disagreed), (0, 0));
            // Those that were on their way when the first failed.
            assert!(evm.unavailable <= 4, "{evm:?}");
            counted[1] += evm.unavailable;
        } else {
            assert_eq!((evm.unavailable, evm.disagreed), (0, 0));
            counted[if count < 4 { 0 } else { 2 }] += evm.agreed;
        }
    }
    assert!(counted.iter().all(|count| *count > 0), "{counted:?}");
    drop(pump);
    assert_balanced(&fleet);
}

#[derive(Debug)]
struct Stopping(AtomicBool);

impl Watch for Stopping {
    fn work(&self, _: bool) {}

    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn tend(&self) -> Option<Duration> {
        None
    }
}

/// Property: once the run is to stop, nothing more is asked, so the stop waits for no node.
#[test]
fn a_run_that_is_to_stop_asks_nothing_more() {
    let made = market();
    let blocks = blocks_of(&made, 6);
    let reader = Reader::over(Chain::new(&made, &blocks));
    let fleet = fleet_of(&made.market, made.base);
    let watch = Stopping(AtomicBool::new(false));
    let mut pump = pump(&fleet, Some(machine(&reader, Limits::default())), &watch);
    pump.run(&blocks[..3]).unwrap();
    let before = reader.readings.load(Ordering::Relaxed);
    assert!(before > 0);
    watch.0.store(true, Ordering::Relaxed);
    let result = pump.run(&blocks[3..]).unwrap();
    assert_eq!(reader.readings.load(Ordering::Relaxed), before);
    assert!(result.profitable > 0 && result.winners.is_empty());
    drop(pump);
    assert_balanced(&fleet);
}

/// Property: a question that asks for more keys than are read at once is not decided, and only that question.
#[test]
fn a_question_for_too_much_is_left() {
    let made = market();
    let blocks = blocks_of(&made, 6);
    let reader = Reader::over(Chain::new(&made, &blocks));
    let limits = Limits {
        keys: 1,
        ..Limits::default()
    };
    let (results, _) = run(&made, &blocks, Some(machine(&reader, limits)));
    let unavailable: usize = results
        .iter()
        .map(|r| r.evm.as_ref().unwrap().unavailable)
        .sum();
    assert!(unavailable > 0);
    assert!(results.iter().all(|result| result.winners.is_empty()));
}
