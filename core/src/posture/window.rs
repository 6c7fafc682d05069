//! A counter over a trailing window, in bounded memory.
//!
//! A sample says how much a counter grew since the sample before, and not when in between. What
//! happened between two samples is taken as spread evenly over that time; so an increase read after
//! an hour of idleness does not stand for the last second.
//!
//! # Invariants
//! - Pieces are contiguous in time and end at the last sample.
//! - Resolution: samples closer together than 1/64 of the window are joined into one piece, which is at
//!   most that long; so a total is exact but for the one piece that the window's edge cuts, and that
//!   one is as wrong as the spread is uneven. Samples that are further apart stay as they came.
//! - The pieces always cover a whole window: two neighbours together are longer than 1/64 of it.

use crate::time::{Duration, Instant};
use heapless::Deque;

/// Parts of a window that are told apart.
const RESOLUTION: u64 = 64;

/// Two neighbours are longer than a part, so twice the parts cover a window.
const PIECES: usize = 128;

/// How a total rounds the piece that the edge of the window cuts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rounding {
    /// Down.
    Down,
    /// Up: of `n` events in a time `k` windows long, some window holds at least `n / k`, rounded up.
    Up,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    span: Duration,
    amount: u64,
}

/// What a counter that only grows did of late.
#[derive(Clone, Debug)]
pub(super) struct Trailing {
    last: Option<u64>,
    end: Instant,
    window: Duration,
    pieces: Deque<Piece, PIECES>,
}

impl Trailing {
    pub(super) fn new(window: Duration) -> Self {
        Self {
            last: None,
            end: Instant::ORIGIN,
            window,
            pieces: Deque::new(),
        }
    }

    /// Takes a reading of the counter. The first one is the baseline. A reading below the last one is
    /// of another counter, which grew from nobody knows where: it is a baseline too.
    pub(super) fn read(&mut self, at: Instant, value: u64) {
        if let Some(last) = self.last {
            self.push(Piece {
                span: at.since(self.end),
                amount: value.saturating_sub(last),
            });
        }
        self.last = Some(value);
        self.end = self.end.max(at);
    }

    /// Changes the window. What is known stays known, as finely as it was kept: after a change to a
    /// shorter window the pieces of the longer one are coarse until they leave it.
    pub(super) fn set_window(&mut self, window: Duration) {
        self.window = window;
        let mut pieces = Deque::new();
        core::mem::swap(&mut pieces, &mut self.pieces);
        for piece in &pieces {
            self.push(*piece);
        }
    }

    /// How much the counter grew in the window that ends at `now`.
    pub(super) fn total(&self, now: Instant, rounding: Rounding) -> u64 {
        let mut age = now.since(self.end);
        let mut total: u64 = 0;
        for piece in self.pieces.iter().rev() {
            if age >= self.window {
                break;
            }
            let inside = self.window.saturating_sub(age).min(piece.span);
            total = total.saturating_add(piece.part(inside, rounding));
            age = age + piece.span;
        }
        total
    }

    fn push(&mut self, piece: Piece) {
        let part = Duration::from_nanos(self.window.as_nanos() / RESOLUTION + 1);
        if let Some(newest) = self.pieces.back_mut()
            && newest.span + piece.span <= part
        {
            newest.span = newest.span + piece.span;
            newest.amount = newest.amount.saturating_add(piece.amount);
            return;
        }
        if self.pieces.is_full() {
            self.pieces.pop_front();
        }
        // There is room: a full deque has just lost its oldest.
        let _ = self.pieces.push_back(piece);
    }
}

impl Piece {
    /// What falls on `inside` of the span.
    fn part(&self, inside: Duration, rounding: Rounding) -> u64 {
        if inside == self.span {
            return self.amount;
        }
        let product = u128::from(self.amount) * u128::from(inside.as_nanos());
        let span = u128::from(self.span.as_nanos());
        let part = match rounding {
            Rounding::Down => product / span,
            Rounding::Up => product.div_ceil(span),
        };
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}
