//! The set fuse: one outcome for each expected item of a cycle, no more and no fewer.
//!
//! Items are numbered, and whoever reports does so per group, as a bit set of consecutive words.
//! The fuse compares sets, so a duplicate and an omission do not cancel. A trip is a fault of whoever
//! reported; there is nothing to repair, and the caller ends the process loudly.
//!
//! # Invariants
//! - An item is owed from [`expect`](Fuse::expect) until its one report.
//! - A tripped fuse stays tripped, with its first fault.
//! - Opening costs nothing, reporting costs the words of the report; only a trip looks at all rows.

use thiserror::Error;

/// How an item of a cycle ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum OutcomeKind {
    /// It was worked on and has a result.
    Solved,
    /// It was looked at and left out on purpose.
    Suppressed,
    /// It could not be worked on, for a typed reason.
    Failed,
}

crate::fsm! {
    /// What a fuse is doing.
    pub states FuseState {
        /// No cycle is open.
        Idle,
        /// A cycle is open.
        Open,
        /// A report was at fault.
        Tripped,
    }
    /// What happens to a fuse.
    pub events FuseEvent {
        /// A cycle begins.
        Open,
        /// A cycle ends with nothing owed.
        Close,
        /// A fault was found.
        Trip,
    }
    /// A fuse does not take an event.
    pub error FuseStepError;
    transitions {
        "open": Idle -- Open --> Open;
        "close": Open -- Close --> Idle;
        "trip": Open -- Trip --> Tripped;
        "late report": Idle -- Trip --> Tripped;
    }
}

/// The fault that tripped a fuse.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FuseTrip {
    /// An item was reported twice.
    #[error("cycle {cycle}: item {id} is reported as {kind:?} and has an outcome already")]
    Duplicate {
        /// The cycle.
        cycle: u64,
        /// The lowest such item of the report.
        id: u64,
        /// The kind of the second report.
        kind: OutcomeKind,
    },
    /// An item was reported that the cycle does not expect.
    #[error("cycle {cycle}: item {id} is reported as {kind:?} and was not expected")]
    Unexpected {
        /// The cycle.
        cycle: u64,
        /// The lowest such item of the report.
        id: u64,
        /// The kind of the report.
        kind: OutcomeKind,
    },
    /// The cycle was closed with items owed.
    #[error("cycle {cycle}: {count} items have no outcome, the first is {first}")]
    Omitted {
        /// The cycle.
        cycle: u64,
        /// The lowest item owed.
        first: u64,
        /// How many are owed.
        count: u64,
    },
    /// An item was expected for which there is no row.
    #[error("cycle {cycle}: item {id} is expected and there is room for {items} items")]
    NoRow {
        /// The cycle.
        cycle: u64,
        /// The lowest such item.
        id: u64,
        /// How many items the rows hold.
        items: u64,
    },
    /// A cycle was opened, expected of, or closed out of turn.
    #[error("cycle {cycle}: cannot {asked} while the fuse is {state:?}")]
    OutOfTurn {
        /// The cycle.
        cycle: u64,
        /// What was asked of the fuse.
        asked: &'static str,
        /// What it was doing.
        state: FuseState,
    },
}

/// Sixty-four items of a fuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FuseRow {
    /// The cycle that the sets are of. A row of an earlier cycle is an empty one, which makes opening
    /// free.
    cycle: u64,
    expected: u64,
    owed: u64,
}

/// Outcomes of a cycle by kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tally {
    /// Items that were expected.
    pub expected: u64,
    /// Of these, solved.
    pub solved: u64,
    /// Suppressed.
    pub suppressed: u64,
    /// Failed.
    pub failed: u64,
}

impl Tally {
    /// Items without an outcome.
    #[must_use]
    pub const fn owed(&self) -> u64 {
        self.expected - self.solved - self.suppressed - self.failed
    }

    const fn count(&mut self, kind: OutcomeKind, items: u64) {
        match kind {
            OutcomeKind::Solved => self.solved += items,
            OutcomeKind::Suppressed => self.suppressed += items,
            OutcomeKind::Failed => self.failed += items,
        }
    }
}

/// The set fuse over rows that the caller supplies, one for each 64 items; see the
/// [module documentation](self).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Fuse<S> {
    rows: S,
    cycle: u64,
    state: FuseState,
    trip: Option<FuseTrip>,
    tally: Tally,
}

impl<S: AsRef<[FuseRow]> + AsMut<[FuseRow]>> Fuse<S> {
    /// A fuse over `rows`, which it clears.
    pub fn new(mut rows: S) -> Self {
        rows.as_mut().fill(FuseRow::default());
        Self {
            rows,
            cycle: 0,
            state: FuseState::Idle,
            trip: None,
            tally: Tally::default(),
        }
    }

    /// The number of the current cycle, or of the last one; the first is 1.
    #[must_use]
    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// What the fuse is doing.
    #[must_use]
    pub const fn state(&self) -> FuseState {
        self.state
    }

    /// The current cycle's outcomes so far, or the last one's.
    #[must_use]
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// Begins a cycle that expects nothing yet.
    pub fn open(&mut self) -> Result<(), FuseTrip> {
        self.step(FuseEvent::Open, "open")?;
        self.cycle += 1;
        self.tally = Tally::default();
        Ok(())
    }

    /// Expects the items of `words`, whose first bit is item `64 * first_word`. An item that is
    /// expected already stays as it is: it owes one outcome, however often it is named.
    pub fn expect(&mut self, first_word: usize, words: &[u64]) -> Result<(), FuseTrip> {
        self.untripped()?;
        if self.state != FuseState::Open {
            return Err(self.out_of_turn("expect"));
        }
        for (word, &bits) in (first_word..).zip(words).filter(|(_, bits)| **bits != 0) {
            let cycle = self.cycle;
            let Some(row) = self.row(word) else {
                let items = 64 * self.rows.as_ref().len() as u64;
                let id = lowest(word, bits);
                return Err(self.tripped(FuseTrip::NoRow { cycle, id, items }));
            };
            let new = bits & !row.expected;
            row.expected |= new;
            row.owed |= new;
            self.tally.expected += u64::from(new.count_ones());
        }
        Ok(())
    }

    /// Takes the outcomes of the items of `words`, whose first bit is item `64 * first_word`.
    pub fn record(
        &mut self,
        kind: OutcomeKind,
        first_word: usize,
        words: &[u64],
    ) -> Result<(), FuseTrip> {
        self.untripped()?;
        for (word, &bits) in (first_word..).zip(words).filter(|(_, bits)| **bits != 0) {
            let cycle = self.cycle;
            let row = self.row(word).map_or(FuseRow::default(), |row| {
                let before = *row;
                row.owed &= !bits;
                before
            });
            let fault = bits & !row.owed;
            if fault != 0 {
                let id = lowest(word, fault);
                return Err(self.tripped(if row.expected & lowest_bit(fault) == 0 {
                    FuseTrip::Unexpected { cycle, id, kind }
                } else {
                    FuseTrip::Duplicate { cycle, id, kind }
                }));
            }
            self.tally.count(kind, u64::from(bits.count_ones()));
        }
        Ok(())
    }

    /// Gives an outcome to those items of `words` that are still owed one, and says how many they were:
    /// what a worker leaves when it is lost.
    pub fn record_owed(
        &mut self,
        kind: OutcomeKind,
        first_word: usize,
        words: &[u64],
    ) -> Result<u64, FuseTrip> {
        self.untripped()?;
        let mut items = 0;
        for (word, &bits) in (first_word..).zip(words) {
            if let Some(row) = self.row(word) {
                items += u64::from((row.owed & bits).count_ones());
                row.owed &= !bits;
            }
        }
        self.tally.count(kind, items);
        Ok(items)
    }

    /// Those items of word `word` that are owed an outcome.
    #[must_use]
    pub fn owed(&self, word: usize) -> u64 {
        // Rows of earlier cycles owe nothing, since no cycle ends while any does.
        self.rows.as_ref().get(word).map_or(0, |row| row.owed)
    }

    /// Ends the cycle, in which every expected item must have its outcome.
    pub fn close(&mut self) -> Result<Tally, FuseTrip> {
        self.untripped()?;
        let count = self.tally.owed();
        if count > 0 {
            let (cycle, rows) = (self.cycle, self.rows.as_ref().len());
            let first = (0..rows).find(|word| self.owed(*word) != 0);
            let first = first.map_or(0, |word| lowest(word, self.owed(word)));
            return Err(self.tripped(FuseTrip::Omitted {
                cycle,
                first,
                count,
            }));
        }
        self.step(FuseEvent::Close, "close")?;
        Ok(self.tally)
    }

    /// The row of `word`, empty if its sets are of an earlier cycle.
    fn row(&mut self, word: usize) -> Option<&mut FuseRow> {
        let cycle = self.cycle;
        let row = self.rows.as_mut().get_mut(word)?;
        if row.cycle != cycle {
            *row = FuseRow {
                cycle,
                ..FuseRow::default()
            };
        }
        Some(row)
    }

    fn untripped(&self) -> Result<(), FuseTrip> {
        self.trip.map_or(Ok(()), Err)
    }

    fn step(&mut self, event: FuseEvent, asked: &'static str) -> Result<(), FuseTrip> {
        self.untripped()?;
        self.state = self.state.on(event).map_err(|_| self.out_of_turn(asked))?;
        Ok(())
    }

    fn out_of_turn(&mut self, asked: &'static str) -> FuseTrip {
        self.tripped(FuseTrip::OutOfTurn {
            cycle: self.cycle,
            asked,
            state: self.state,
        })
    }

    fn tripped(&mut self, trip: FuseTrip) -> FuseTrip {
        // Idle and Open take a trip, and a tripped fuse never comes here.
        if let Ok(state) = self.state.on(FuseEvent::Trip) {
            self.state = state;
        }
        *self.trip.get_or_insert(trip)
    }
}

const fn lowest_bit(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

fn lowest(word: usize, bits: u64) -> u64 {
    64 * word as u64 + u64::from(bits.trailing_zeros())
}

#[cfg(test)]
mod tests;
