//! The proved integer optimum of a cycle.
//!
//! Every hop rounds down, so the profit over integer inputs is a staircase under the real curve,
//! and its best step can lie far from the real peak: where a unit of a token on the way is worth much,
//! rounding there decides. What holds exactly:
//!
//! - For any token j, with m units of it, let V(m) be what m gives from there on less the least
//!   input that gives m. The best profit is the largest V(m): the input x with the best profit becomes
//!   some m, the least input for that m is no larger than x, and gives no less.
//! - So the search may run over the amounts of any one token, and rounding at that one costs nothing.
//!   It takes the token of which the inputs in question make the fewest units.
//! - Only inputs in the window of [`ClosedForm::window`] can have a larger profit than one already
//!   known. They become the amounts between those of the window's two ends.
//!
//! Mostly one exact evaluation near the real peak comes within one unit of the real optimum, which
//! proves it. The rest is swept from the peak outwards; each better profit narrows the window.
//!
//! # Invariants
//! - What is returned as proved is the maximum over all inputs up to [`Cycle::input_limit`], by integer
//!   comparisons alone.
//! - No search evaluates more than its limit of amounts. Two coarse tokens in one cycle, or several
//!   whose units are worth about one unit of the base token in very deep pools, can need more than any
//!   useful limit: then the result is [`NotProved`], with the best found and an exact upper bound.

use super::closed_form::{ClosedForm, Window};
use super::cycle::Cycle;
use super::hop::RESERVE_MAX;

/// How many amounts [`optimum`] and [`optimum_least_input`] evaluate at most in one sweep.
///
/// A few milliseconds. A larger limit proves few cycles more, since the chance that a sweep of k
/// amounts is not enough falls only like 1/k.
pub const SWEEP_LIMIT: u32 = 1 << 16;

/// An input with its exact output, in the smallest units of the base token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Optimum {
    /// The least input that gives `output`.
    pub input: u128,
    /// What comes out of the last hop.
    pub output: u128,
    /// `output` less `input`, 1 or more.
    pub profit: u128,
}

/// A sweep that ended at its limit: the optimum is between two bounds, both exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the best profit is not proved within the sweep's limit of {limit} amounts: at least {}, at most {upper}",
    lower.map_or(0, |best| best.profit)
)]
pub struct NotProved {
    /// The best that was found, if anything has a profit; it can be used as it is.
    pub lower: Option<Optimum>,
    /// No input has a larger profit.
    pub upper: u128,
    /// The limit that was reached.
    pub limit: u32,
}

impl Optimum {
    /// The least input for an output that some input gives exactly, if that is a profit.
    #[inline]
    fn of_output(cycle: &Cycle<'_>, output: u128) -> Option<Self> {
        let input = cycle.backward(output)?;
        let profit = output.checked_sub(input).filter(|&profit| profit > 0)?;
        Some(Self {
            input,
            output,
            profit,
        })
    }

    /// The output of `input` with the least input for it, if that is a profit.
    #[inline]
    fn of_input(cycle: &Cycle<'_>, input: u128) -> Option<Self> {
        Self::of_output(cycle, cycle.forward(input)?)
    }
}

/// The largest profit over all inputs, proved, with the least input for its output; `None` where no
/// input has a profit.
///
/// Other inputs may have the same profit with another output: see [`optimum_least_input`].
#[inline]
pub fn optimum(cycle: &Cycle<'_>) -> Result<Option<Optimum>, NotProved> {
    optimum_within(cycle, SWEEP_LIMIT)
}

/// [`optimum`] with another limit for the sweep.
pub fn optimum_within(cycle: &Cycle<'_>, limit: u32) -> Result<Option<Optimum>, NotProved> {
    match cycle.hops().len() {
        2 => search::<4>(cycle, limit),
        3 => search::<6>(cycle, limit),
        _ => search::<8>(cycle, limit),
    }
}

/// [`optimum`] with the smallest input of all that have the largest profit.
///
/// Several times the work of [`optimum`], for a gain of next to nothing in input: for what is
/// published, not for every cycle.
///
/// A [`NotProved`] whose bounds are equal has the proved profit, and an input that may not be the
/// smallest.
pub fn optimum_least_input(cycle: &Cycle<'_>) -> Result<Option<Optimum>, NotProved> {
    let Some(known) = optimum(cycle)? else {
        return Ok(None);
    };
    match cycle.hops().len() {
        2 => lower_input::<4>(cycle, known, SWEEP_LIMIT),
        3 => lower_input::<6>(cycle, known, SWEEP_LIMIT),
        _ => lower_input::<8>(cycle, known, SWEEP_LIMIT),
    }
    .map(Some)
}

fn search<const N: usize>(cycle: &Cycle<'_>, limit: u32) -> Result<Option<Optimum>, NotProved> {
    let Some(form) = ClosedForm::<N>::compose(cycle) else {
        return Ok(None);
    };
    let best = Optimum::of_input(cycle, form.peak_near());
    if form.attains(next_level(best)) {
        sweep(cycle, &form, best, limit)
    } else {
        Ok(best)
    }
}

/// The least profit that would be better.
fn next_level(best: Option<Optimum>) -> u128 {
    best.map_or(1, |best| best.profit + 1)
}

/// Evaluates the amounts of one token that can still be better than `best`, from the peak outwards.
fn sweep<const N: usize>(
    cycle: &Cycle<'_>,
    form: &ClosedForm<N>,
    mut best: Option<Optimum>,
    limit: u32,
) -> Result<Option<Optimum>, NotProved> {
    let input_limit = cycle.input_limit();
    let peak = form.peak_within(input_limit);
    let Some(window) = form.window(next_level(best), peak, input_limit) else {
        return Ok(best);
    };
    let Some((token, mut amounts)) = coarsest(cycle, window) else {
        return Ok(best);
    };
    let start = cycle
        .forward_to(token, peak)
        .unwrap_or(0)
        .clamp(amounts.low, amounts.high);
    // Evaluated so far: the amounts strictly between the two.
    let (mut down, mut up) = (start - 1, start);
    let mut evaluated = 0;
    loop {
        let amount = match (down >= amounts.low, up <= amounts.high) {
            (false, false) => return Ok(best),
            _ if evaluated == limit => break,
            (true, goes_up) if !goes_up || evaluated % 2 == 1 => {
                down -= 1;
                down + 1
            }
            _ => {
                up += 1;
                up - 1
            }
        };
        evaluated += 1;
        if let Some(better) = value(cycle, token, amount, best) {
            best = Some(better);
            let window = form.window(next_level(best), peak, input_limit);
            match window.and_then(|window| amounts_of(cycle, token, window)) {
                Some(narrower) => amounts = narrower,
                None => return Ok(best),
            }
        }
    }
    let upper = upper_bound(form, next_level(best), peak, input_limit);
    Err(NotProved {
        lower: best,
        upper,
        limit,
    })
}

/// The profit by way of `amount` of token `token`, if it is more than `best`'s.
#[inline]
fn value(cycle: &Cycle<'_>, token: usize, amount: u128, best: Option<Optimum>) -> Option<Optimum> {
    let input = cycle.backward_from(token, amount)?;
    let output = cycle.forward_from(token, amount)?;
    let known = best.map_or(0, |best| best.profit);
    if output <= input || output - input <= known {
        return None;
    }
    // The input may give more than `amount`, and its output may have a smaller input: both only add.
    Optimum::of_input(cycle, input)
}

/// The amounts of token `token` that the inputs of a window become, from 1.
fn amounts_of(cycle: &Cycle<'_>, token: usize, window: Window) -> Option<Window> {
    let low = cycle.forward_to(token, window.low)?.max(1);
    let high = cycle.forward_to(token, window.high)?;
    (low <= high).then_some(Window { low, high })
}

/// The token of which a window's inputs become the fewest different amounts, and these. `None` where
/// they do not even become one unit of some token.
fn coarsest(cycle: &Cycle<'_>, window: Window) -> Option<(usize, Window)> {
    let mut coarsest = (0, window);
    for token in 1..cycle.hops().len() {
        let amounts = amounts_of(cycle, token, window)?;
        if amounts.high - amounts.low < coarsest.1.high - coarsest.1.low {
            coarsest = (token, amounts);
        }
    }
    Some(coarsest)
}

/// The largest profit that is not refuted, given a `level` that is not.
fn upper_bound<const N: usize>(
    form: &ClosedForm<N>,
    level: u128,
    peak: u128,
    input_limit: u128,
) -> u128 {
    // A profit is less than an output, and an output less than its reserve.
    let (mut open, mut refuted) = (level, RESERVE_MAX);
    while refuted - open > 1 {
        let middle = open + (refuted - open) / 2;
        if form.window(middle, peak, input_limit).is_none() {
            refuted = middle;
        } else {
            open = middle;
        }
    }
    open
}

/// The smallest input with the profit of `known`, which is the largest there is.
fn lower_input<const N: usize>(
    cycle: &Cycle<'_>,
    known: Optimum,
    limit: u32,
) -> Result<Optimum, NotProved> {
    let Some(form) = ClosedForm::<N>::compose(cycle) else {
        return Ok(known);
    };
    let low = form.least_reaching(known.profit, known.input);
    let Some((token, amounts)) = coarsest(
        cycle,
        Window {
            low,
            high: known.input,
        },
    ) else {
        return Ok(known);
    };
    // The first amount with that profit has the smallest input: the least input grows with the
    // amount.
    for amount in (amounts.low..=amounts.high).take(limit as usize) {
        let input = cycle.backward_from(token, amount);
        let output = cycle.forward_from(token, amount);
        if let (Some(input), Some(output)) = (input, output)
            && output.checked_sub(input) == Some(known.profit)
        {
            return Ok(Optimum {
                input,
                output,
                profit: known.profit,
            });
        }
    }
    Err(NotProved {
        lower: Some(known),
        upper: known.profit,
        limit,
    })
}
