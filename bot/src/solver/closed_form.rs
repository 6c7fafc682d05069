//! The closed form of a cycle in exact integers, and what it proves.
//!
//! In real numbers an n-hop cycle maps x to B·x / (A + C·x), with A = Π den·a, B = Π num·b and C as
//! [`ClosedForm::compose`] sums it. Written with w = A + C·x, the profit p(x) = B·x / (A + C·x) − x is
//! (A + B − w − AB/w) / C. It is concave, zero at x = 0, and largest at w = √(AB), which lies at a
//! positive x where B > A. For a profit level l and T = A + B − l·C, all of this is exact:
//!
//! - an input x reaches l ⇔ w + AB/w ≤ T ⇔ AB ≤ w·(T − w);
//! - some real input reaches l ⇔ T ≥ 2√(AB) ⇔ T > 0 and T² ≥ 4AB;
//! - x is at or left of the peak ⇔ w² ≤ AB.
//!
//! Every hop of the true cycle rounds down, so its profit is at most p(x): an integer input with
//! profit l reaches l here.
//!
//! # Invariants
//! - Nothing wraps. Reserves are below 2^112 and fees at most 10^4 < 2^13.3, so with n hops (n = 2, 3,
//!   4) in 128n bits: A, B < 2^(125.3n); C is a sum of n products of 2n − 1 factors, n fees and n − 1
//!   scaled reserves, so l·C and C·x with l, x < 2^112 are below n·2^(125.3n); every sum of
//!   three such terms is below 2^(125.3n + 4) < 2^(128n) / 2, and four times a product of two of them
//!   in 256n bits.
//! - Floats only say where to look: every answer about a level is an integer comparison.

use super::cycle::Cycle;
use super::wide::{Product, Wide};

/// The map of a cycle and its peak. `N` is 2n limbs for n hops.
pub(super) struct ClosedForm<const N: usize> {
    a: Wide<N>,
    c: Wide<N>,
    a_plus_b: Wide<N>,
    ab: Product<N>,
    ab_times_4: Product<N>,
    floats: Floats,
}

/// The map's numbers in `f64`, to choose candidates by.
struct Floats {
    c: f64,
    /// √(AB).
    root: f64,
    /// The input of the peak, (√(AB) − A) / C.
    peak: f64,
}

/// The inputs from `low` to `high`: no input outside has the profit that the window was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub(super) low: u128,
    pub(super) high: u128,
}

impl<const N: usize> ClosedForm<N> {
    /// The map of a cycle of N/2 hops; `None` where B ≤ A, which leaves no input a profit.
    #[inline]
    pub(super) fn compose(cycle: &Cycle<'_>) -> Option<Self> {
        debug_assert!(cycle.hops().len() * 2 == N, "the limbs follow the hops");
        let mut a = Wide::from_u128(1);
        let mut b = Wide::from_u128(1);
        let mut c = Wide::ZERO;
        for hop in cycle.hops() {
            let (hop_in, hop_out) = (hop.scaled_in(), hop.scaled_out());
            c = c.times(hop_in).plus(&b.times(u128::from(hop.fee().num())));
            a = a.times(hop_in);
            b = b.times(hop_out);
        }
        let gap = b.minus(&a).filter(|gap| *gap != Wide::ZERO)?;
        let ab = a.product(&b);
        // x* = √A·(B − A) / ((√A + √B)·C): the difference is exact, so nothing cancels.
        let (root_a, root_b, c_float) = (a.to_f64().sqrt(), b.to_f64().sqrt(), c.to_f64());
        let floats = Floats {
            c: c_float,
            root: root_a * root_b,
            peak: root_a * (gap.to_f64() / ((root_a + root_b) * c_float)),
        };
        Some(Self {
            a,
            c,
            a_plus_b: a.plus(&b),
            ab,
            ab_times_4: ab.quadruple(),
            floats,
        })
    }

    /// The input of the peak, rounded down, to about 2^−49 of itself.
    #[inline]
    pub(super) fn peak_near(&self) -> u128 {
        truncate(self.floats.peak)
    }

    /// T = A + B − l·C, unless it is below zero.
    #[inline]
    fn total(&self, level: u128) -> Option<Wide<N>> {
        self.a_plus_b.minus(&self.c.times(level))
    }

    /// w = A + C·x.
    #[inline]
    fn at(&self, input: u128) -> Wide<N> {
        self.a.plus(&self.c.times(input))
    }

    /// T² − 4AB, where some real input has a profit of `level` (1 or more); else `None`.
    #[inline]
    fn slack(&self, level: u128) -> Option<Product<N>> {
        let total = self.total(level)?;
        total.product(&total).minus(&self.ab_times_4)
    }

    /// Whether some real input has a profit of `level`, 1 or more.
    #[inline]
    pub(super) fn attains(&self, level: u128) -> bool {
        self.slack(level).is_some()
    }

    /// Whether the real profit at `input` is `level` or more.
    #[inline]
    pub(super) fn reaches(&self, input: u128, level: u128) -> bool {
        let w = self.at(input);
        self.total(level)
            .and_then(|total| total.minus(&w))
            .is_some_and(|rest| w.product(&rest) >= self.ab)
    }

    /// The largest input up to `limit` that is at or left of the peak.
    pub(super) fn peak_within(&self, limit: u128) -> u128 {
        let mut input = self.peak_near().min(limit);
        loop {
            let w = self.at(input);
            let square = w.product(&w);
            // √(AB) − w = (AB − w²) / (√(AB) + w): the difference is exact, so one step lands within
            // 2^−49 of the distance, and the last steps are of one unit.
            let step = |difference: Product<N>| {
                let distance = difference.to_f64() / (self.floats.root + w.to_f64());
                truncate(distance / self.floats.c).max(1)
            };
            if let Some(left) = self.ab.minus(&square) {
                if input == limit || !self.is_left(input + 1) {
                    return input;
                }
                input = (input + step(left)).min(limit);
            } else if let Some(right) = square.minus(&self.ab) {
                // Left of the peak there is always x = 0, where w = A < √(AB).
                input = input.saturating_sub(step(right));
            }
        }
    }

    /// Whether `input` is at or left of the peak.
    fn is_left(&self, input: u128) -> bool {
        let w = self.at(input);
        w.product(&w) <= self.ab
    }

    /// The inputs up to `limit` outside of which no profit is `level` (1 or more), wide by a little;
    /// `None` where no input has it. `peak` is [`ClosedForm::peak_within`] of that limit.
    pub(super) fn window(&self, level: u128, peak: u128, limit: u128) -> Option<Window> {
        let slack = self.slack(level)?.to_f64();
        let total = self.total(level)?.to_f64();
        // The two w of the level are (T ± √(T² − 4AB)) / 2, and T/2 − √(AB) is the slack by
        // 2·(T + 2√(AB)): the distances from the peak, without cancellation where the slack is small.
        let (half_width, shift) = (
            slack.sqrt() / 2.0,
            slack / (2.0 * (2.0 * self.floats.root + total)),
        );
        // Where the limit cuts the peak off, the left edge is sought from the limit.
        let left = if peak == limit {
            0
        } else {
            truncate((half_width - shift) / self.floats.c * MARGIN).saturating_add(1)
        };
        let right = truncate((half_width + shift) / self.floats.c * MARGIN).saturating_add(1);

        // Everything at or left of a failing input that is left of the peak fails, likewise right.
        let mut below = peak.saturating_sub(left);
        let mut step = left.max(1);
        while below > 0 && self.reaches(below, level) {
            below = below.saturating_sub(step);
            step = step.saturating_mul(2);
        }
        let mut above = peak.saturating_add(right).saturating_add(1);
        let mut step = right;
        while above <= limit && self.reaches(above, level) {
            above = above.saturating_add(step);
            step = step.saturating_mul(2);
        }
        let window = Window {
            low: below + 1,
            high: (above - 1).min(limit),
        };
        (window.low <= window.high).then_some(window)
    }

    /// The least input that reaches `level`, given one that does.
    pub(super) fn least_reaching(&self, level: u128, reaching: u128) -> u128 {
        // The inputs that reach a level are an interval: gallop out of it, then halve.
        let mut yes = reaching;
        let mut step = 1;
        let mut no = loop {
            let probe = yes.saturating_sub(step);
            if probe == 0 || !self.reaches(probe, level) {
                break probe;
            }
            yes = probe;
            step *= 2;
        };
        while yes - no > 1 {
            let middle = no + (yes - no) / 2;
            if self.reaches(middle, level) {
                yes = middle;
            } else {
                no = middle;
            }
        }
        yes
    }
}

/// What widens a window that floats predict, so that its edges rarely need a second look.
const MARGIN: f64 = 1.0 + 1e-9;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds down, saturates"
)]
fn truncate(value: f64) -> u128 {
    value as u128
}
