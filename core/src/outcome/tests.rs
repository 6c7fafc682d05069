//! The fuse against sets of numbers.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::string::ToString;
use std::vec::Vec;

const WORDS: usize = 4;

fn fuse() -> Fuse<[FuseRow; WORDS]> {
    Fuse::new([FuseRow::default(); WORDS])
}

fn items(first_word: usize, words: &[u64]) -> Vec<u64> {
    let base = 64 * first_word as u64;
    let bits = words.iter().enumerate().flat_map(|(i, w)| {
        (0..64)
            .filter(move |b| w >> b & 1 == 1)
            .map(move |b| 64 * i as u64 + b)
    });
    bits.map(|id| base + id).collect()
}

#[derive(Clone, Debug)]
enum Op {
    Open,
    Expect(usize, Vec<u64>),
    Record(OutcomeKind, usize, Vec<u64>),
    RecordOwed(OutcomeKind, usize, Vec<u64>),
    Finish(OutcomeKind),
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    // Sparse and dense words, in and one beyond the rows; records mostly of few items, so that long
    // runs survive.
    let word = prop_oneof![3 => (0u32..64).prop_map(|b| 1 << b), 1 => any::<u64>(), 1 => Just(0)];
    let words = (0..=WORDS, prop::collection::vec(word, 0..3));
    let kind = prop_oneof![
        Just(OutcomeKind::Solved),
        Just(OutcomeKind::Suppressed),
        Just(OutcomeKind::Failed)
    ];
    prop_oneof![
        1 => Just(Op::Open),
        3 => words.clone().prop_map(|(first, words)| Op::Expect(first, words)),
        2 => (kind.clone(), words.clone()).prop_map(|(k, (first, words))| Op::Record(k, first, words)),
        3 => (kind.clone(), words).prop_map(|(k, (first, words))| Op::RecordOwed(k, first, words)),
        2 => kind.prop_map(Op::Finish),
        2 => Just(Op::Close),
    ]
}

/// The rule with sets, and nothing of the fuse.
#[derive(Default)]
struct Model {
    cycle: u64,
    open: bool,
    trip: Option<FuseTrip>,
    expected: BTreeSet<u64>,
    done: BTreeSet<u64>,
}

impl Model {
    fn trip<T>(&mut self, trip: FuseTrip) -> Result<T, FuseTrip> {
        self.trip = Some(trip);
        Err(trip)
    }

    fn apply(&mut self, op: &Op) -> Result<u64, FuseTrip> {
        if let Some(trip) = self.trip {
            return Err(trip);
        }
        let cycle = self.cycle;
        let out_of_turn = |asked, state| FuseTrip::OutOfTurn {
            cycle,
            asked,
            state,
        };
        match op {
            Op::Open if self.open => self.trip(out_of_turn("open", FuseState::Open)),
            Op::Open => {
                *self = Self {
                    cycle: cycle + 1,
                    open: true,
                    ..Self::default()
                };
                Ok(0)
            }
            Op::Expect(..) if !self.open => self.trip(out_of_turn("expect", FuseState::Idle)),
            Op::Expect(first, words) => {
                for id in items(*first, words) {
                    if id >= 64 * WORDS as u64 {
                        let items = 64 * WORDS as u64;
                        return self.trip(FuseTrip::NoRow { cycle, id, items });
                    }
                    self.expected.insert(id);
                }
                Ok(0)
            }
            Op::Record(kind, first, words) => {
                for id in items(*first, words) {
                    let kind = *kind;
                    if !self.expected.contains(&id) {
                        return self.trip(FuseTrip::Unexpected { cycle, id, kind });
                    }
                    if !self.done.insert(id) {
                        return self.trip(FuseTrip::Duplicate { cycle, id, kind });
                    }
                }
                Ok(0)
            }
            Op::RecordOwed(_, first, words) => {
                let owed = items(*first, words)
                    .into_iter()
                    .filter(|id| self.expected.contains(id));
                Ok(owed.filter(|id| self.done.insert(*id)).count() as u64)
            }
            Op::Finish(_) => {
                let owed = self.expected.difference(&self.done).count();
                self.done = self.expected.clone();
                Ok(owed as u64)
            }
            Op::Close => {
                let owed: Vec<u64> = self.expected.difference(&self.done).copied().collect();
                if let Some(&first) = owed.first() {
                    let count = owed.len() as u64;
                    return self.trip(FuseTrip::Omitted {
                        cycle,
                        first,
                        count,
                    });
                }
                if !self.open {
                    return self.trip(out_of_turn("close", FuseState::Idle));
                }
                self.open = false;
                Ok(0)
            }
        }
    }
}

proptest! {
    #[test]
    fn the_fuse_is_the_sets(ops in prop::collection::vec(op(), 1..80)) {
        let (mut fuse, mut model) = (fuse(), Model::default());
        let mut kinds = [0u64; 3];
        for op in [Op::Open].iter().chain(&ops) {
            let (done_before, cycle) = (model.done.len(), model.cycle);
            let want = model.apply(op);
            let got = match op {
                Op::Open => fuse.open().map(|()| 0),
                Op::Expect(first, words) => fuse.expect(*first, words).map(|()| 0),
                Op::Record(kind, first, words) => fuse.record(*kind, *first, words).map(|()| 0),
                Op::RecordOwed(kind, first, words) => fuse.record_owed(*kind, *first, words),
                Op::Finish(kind) => fuse.record_owed(*kind, 0, &[u64::MAX; WORDS]),
                Op::Close => fuse.close().map(|_| 0),
            };
            prop_assert_eq!(got, want);
            if model.trip.is_some() {
                prop_assert_eq!(fuse.state(), FuseState::Tripped);
                return Ok(());
            }
            if model.cycle != cycle {
                kinds = [0; 3];
            } else if let Op::Record(k, ..) | Op::RecordOwed(k, ..) | Op::Finish(k) = op {
                kinds[*k as usize] += (model.done.len() - done_before) as u64;
            }
            let tally = fuse.tally();
            prop_assert_eq!([tally.solved, tally.suppressed, tally.failed], kinds);
            prop_assert_eq!(tally.expected, model.expected.len() as u64);
            let owed: Vec<u64> = (0..WORDS).flat_map(|w| items(w, &[fuse.owed(w)])).collect();
            let want: Vec<u64> = model.expected.difference(&model.done).copied().collect();
            prop_assert_eq!(owed, want);
        }
    }
}

#[test]
fn a_duplicate_and_an_omission_do_not_cancel() {
    let mut fuse = fuse();
    fuse.open().unwrap();
    fuse.expect(0, &[0b11]).unwrap();
    fuse.record(OutcomeKind::Solved, 0, &[0b01]).unwrap();
    let trip = FuseTrip::Duplicate {
        cycle: 1,
        id: 0,
        kind: OutcomeKind::Failed,
    };
    assert_eq!(fuse.record(OutcomeKind::Failed, 0, &[0b01]), Err(trip));
    // Nothing heals it.
    assert_eq!(fuse.record(OutcomeKind::Solved, 0, &[0b10]), Err(trip));
    assert_eq!(fuse.close(), Err(trip));
    assert_eq!(fuse.open(), Err(trip));
    assert!(trip.to_string().contains("item 0"), "{trip}");
}

#[test]
fn a_report_after_the_end_of_its_cycle_trips() {
    let mut fuse = fuse();
    fuse.open().unwrap();
    fuse.expect(1, &[1]).unwrap();
    fuse.record(OutcomeKind::Suppressed, 1, &[1]).unwrap();
    fuse.close().unwrap();
    let late = fuse.clone().record(OutcomeKind::Solved, 1, &[1]);
    assert!(
        matches!(late, Err(FuseTrip::Duplicate { id: 64, .. })),
        "{late:?}"
    );
    // In the next cycle the item is unexpected until it is expected again.
    fuse.open().unwrap();
    let stray = fuse.clone().record(OutcomeKind::Solved, 1, &[1]);
    assert!(
        matches!(
            stray,
            Err(FuseTrip::Unexpected {
                cycle: 2,
                id: 64,
                ..
            })
        ),
        "{stray:?}"
    );
    fuse.expect(1, &[1]).unwrap();
    fuse.record(OutcomeKind::Solved, 1, &[1]).unwrap();
    assert_eq!(fuse.close().map(|tally| tally.solved), Ok(1));
}
