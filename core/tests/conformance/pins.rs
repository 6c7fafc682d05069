//! Pins and their arenas over many cycles: a seat keeps its key, and its arena lives as long as the pin.
//!
//! The stub gives each pin an arena, a number that no other ever had, when a seat first runs a unit
//! under it, and takes it away when the pin is released. The host knows nothing of arenas; what it owes is
//! that the pin of a grant names the right one.

use crate::fleet::{Fleet, plan};
use proptest::prelude::*;
use regatta_core::host::{Grant, Input};
use regatta_core::plan::Profile;
use regatta_core::role::WorkerRole;
use regatta_core::seat::{SeatId, SlotPhase};
use std::collections::BTreeMap;

/// Keys, and solver seats, of the shipped plan.
const KEYS: u8 = 6;

struct Stub {
    fleet: Fleet,
    epoch: u64,
    /// The arena of each pinned seat, with the key it was made for.
    arenas: BTreeMap<SeatId, (u8, u32)>,
    made: u32,
}

impl Stub {
    fn new() -> Self {
        Self {
            fleet: Fleet::new(&plan(8000, Profile::Auto)),
            epoch: 0,
            arenas: BTreeMap::new(),
            made: 0,
        }
    }

    /// A unit runs: under the seat's own arena, which is the one it ran under last if it kept its pin.
    fn run(&mut self, grant: Grant) {
        let Some(key) = grant.pin else {
            return self.fleet.finish(grant);
        };
        let made = &mut self.made;
        let (pinned, _) = self.arenas.entry(grant.seat).or_insert_with(|| {
            *made += 1;
            (key, *made)
        });
        assert_eq!(*pinned, key, "a seat keeps its key for life");
        self.fleet.finish(grant);
        let phase = self.fleet.host.seats()[grant.seat.index()].phase();
        assert_eq!(phase, SlotPhase::Pinned, "the pin outlives the unit");
    }

    /// One cycle: a unit for each key of the bits, one of merge, and the boundary after them.
    fn cycle(&mut self, keys: u8, pins: Option<u8>) {
        for key in (0..KEYS).filter(|key| keys & (1 << key) != 0) {
            self.fleet.enqueue(WorkerRole::Solver, key);
        }
        self.fleet.enqueue(WorkerRole::Merge, 0);
        loop {
            let before = self.solver_pins();
            let started = self.fleet.pump();
            assert!(
                started
                    .iter()
                    .all(|grant| grant.role == WorkerRole::Merge.id() || grant.pin.is_some()),
                "each solver unit has a pin"
            );
            if started.is_empty() {
                break;
            }
            for grant in started {
                self.run(grant);
            }
            let after = self.solver_pins();
            assert!(
                before.iter().all(|pin| after.contains(pin)),
                "no pin goes within a cycle"
            );
        }
        self.fleet.collect();
        if let Some(pins) = pins {
            let before = self.solver_pins();
            self.fleet.handle(Input::Resize { pins }).unwrap();
            assert_eq!(self.solver_pins(), before);
        }
        self.epoch += 1;
        self.fleet
            .handle(Input::EpochBoundary { seq: self.epoch })
            .unwrap();
        // The boundary is where pins are released, and an arena goes with its pin.
        let pinned = self.solver_pins();
        self.arenas
            .retain(|seat, _| pinned.iter().any(|(held, _)| held == seat));
        let expected: Vec<(SeatId, u8)> = self
            .arenas
            .iter()
            .map(|(seat, (key, _))| (*seat, *key))
            .collect();
        assert_eq!(pinned, expected, "pins and arenas are the same set");
    }

    fn solver_pins(&self) -> Vec<(SeatId, u8)> {
        let solvers = |pin: &(SeatId, u8)| pin.0.index() < usize::from(KEYS);
        self.fleet.pins().into_iter().filter(solvers).collect()
    }
}

#[test]
fn a_thousand_cycles_use_the_six_arenas_of_the_first() {
    let mut stub = Stub::new();
    stub.cycle(0b11_1111, None);
    let first = stub.arenas.clone();
    assert_eq!(first.len(), 6);
    for cycle in 0..1000_u16 {
        // Any pattern of keys, none among them.
        stub.cycle(u8::try_from(cycle % 64).unwrap(), None);
        assert_eq!(stub.arenas, first);
    }
}

#[test]
fn a_released_pin_takes_its_arena_along_and_the_next_claim_makes_a_new_one() {
    let mut stub = Stub::new();
    stub.cycle(0b11_1111, Some(4));
    assert_eq!(stub.arenas.len(), 4, "two pins were released");
    stub.cycle(0b11_1111, Some(6));
    assert_eq!(
        stub.arenas.len(),
        4,
        "the keys of the two ran on other pins"
    );
    stub.cycle(0b11_1111, None);
    let arenas: Vec<u32> = stub.arenas.values().map(|(_, arena)| *arena).collect();
    assert_eq!(arenas, [1, 2, 3, 4, 7, 8]);
}

proptest! {
    /// The first byte of a pair says which keys have work, the second, if it is small, how many pins are
    /// kept from the boundary on.
    #[test]
    fn any_script_of_cycles_keeps_pins_and_arenas_together(
        script in proptest::collection::vec((0..64_u8, 0..24_u8), 1..60)
    ) {
        let mut stub = Stub::new();
        for (keys, pins) in script {
            stub.cycle(keys, (1..=KEYS).contains(&pins).then_some(pins));
        }
    }
}
