//! The plain reference: big integers and formulas of its own, no code of the solver.

use num_bigint::{BigInt, BigUint};

use crate::solver::{Fee, Hop, RESERVE_MAX};

/// One hop as big integers: reserves in and out, traded parts and all parts of the fee.
#[derive(Clone)]
pub(super) struct BigHop {
    a: BigUint,
    b: BigUint,
    num: BigUint,
    den: BigUint,
}

pub(super) fn big(hops: &[Hop]) -> Vec<BigHop> {
    hops.iter()
        .map(|hop| BigHop {
            a: hop.reserve_in().into(),
            b: hop.reserve_out().into(),
            num: hop.fee().num().into(),
            den: hop.fee().den().into(),
        })
        .collect()
}

fn zero() -> BigUint {
    BigUint::ZERO
}

fn one() -> BigUint {
    1_u8.into()
}

impl BigHop {
    /// What the contract pays out, `None` where the reserve would not hold the input.
    pub(super) fn output(&self, input: &BigUint) -> Option<BigUint> {
        if &self.a + input > BigUint::from(RESERVE_MAX) {
            return None;
        }
        let after_fee = input * &self.num;
        Some(&after_fee * &self.b / (&self.a * &self.den + after_fee))
    }

    /// The least input for an output, from the quotient rounded down and corrected by trial.
    pub(super) fn input(&self, output: &BigUint) -> Option<BigUint> {
        if output >= &self.b {
            return None;
        }
        let floor = &self.a * output * &self.den / ((&self.b - output) * &self.num);
        let mut input = if floor == zero() {
            floor
        } else {
            floor - one()
        };
        loop {
            if &self.output(&input)? >= output {
                return Some(input);
            }
            input += one();
        }
    }
}

pub(super) fn output(hops: &[BigHop], input: BigUint) -> Option<BigUint> {
    hops.iter()
        .try_fold(input, |amount, hop| hop.output(&amount))
}

pub(super) fn input(hops: &[BigHop], output: BigUint) -> Option<BigUint> {
    hops.iter()
        .rev()
        .try_fold(output, |amount, hop| hop.input(&amount))
}

/// The real map of a cycle, x ↦ (p·x) / (q·x + r), by matrix products.
pub(super) struct RealMap {
    pub(super) p: BigInt,
    pub(super) q: BigInt,
    pub(super) r: BigInt,
}

impl RealMap {
    pub(super) fn of(hops: &[BigHop]) -> Self {
        let mut total = [[BigInt::from(1), 0.into()], [0.into(), 1.into()]];
        for hop in hops {
            let [num, den] = [BigInt::from(hop.num.clone()), BigInt::from(hop.den.clone())];
            let [a, b] = [BigInt::from(hop.a.clone()), BigInt::from(hop.b.clone())];
            let factor = [[&num * b, BigInt::ZERO], [num, den * a]];
            let row =
                |i: usize, j: usize| &factor[i][0] * &total[0][j] + &factor[i][1] * &total[1][j];
            total = [[row(0, 0), row(0, 1)], [row(1, 0), row(1, 1)]];
        }
        let [[p, _], [q, r]] = total;
        Self { p, q, r }
    }

    /// Whether the product of marginal rates is above 1.
    pub(super) fn gains(&self) -> bool {
        self.p > self.r
    }

    /// The integers nearest outside the real inputs with a profit of `level` or more, if there are
    /// any such inputs: the roots of q·x² − (p − r − level·q)·x + level·r.
    pub(super) fn inputs_of(&self, level: &BigInt) -> Option<(BigUint, BigUint)> {
        let middle = &self.p - &self.r - level * &self.q;
        let discriminant: BigInt = &middle * &middle - 4 * level * &self.r * &self.q;
        if middle <= BigInt::ZERO || discriminant < BigInt::ZERO {
            return None;
        }
        let root = discriminant.sqrt();
        let twice = 2 * &self.q;
        let low: BigInt = (&middle - &root) / &twice - 1_u8;
        let high: BigInt = (&middle + &root) / &twice + 1_u8;
        Some((low.max(BigInt::ZERO).to_biguint()?, high.to_biguint()?))
    }

    /// The largest whole profit that some real input has.
    pub(super) fn best_real_profit(&self) -> BigUint {
        let (mut yes, mut no) = (BigInt::ZERO, BigInt::from(1));
        while self.gains() && self.inputs_of(&no).is_some() {
            yes.clone_from(&no);
            no *= 2;
        }
        while &no - &yes > BigInt::from(1) {
            let middle: BigInt = (&yes + &no) / 2;
            if self.gains() && self.inputs_of(&middle).is_some() {
                yes = middle;
            } else {
                no = middle;
            }
        }
        yes.to_biguint().unwrap()
    }
}

/// What the reference makes of a claim that no input has a profit above `claimed`.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// No input has.
    Holds,
    /// This profit is possible.
    Refuted(BigUint),
    /// More than the limit of amounts would have to be tried; none of the first ones refutes it.
    TooWide,
}

/// Tries every input that can have more than `claimed`, by way of the token that gives the fewest.
pub(super) fn check(hops: &[BigHop], claimed: u128, limit: u64) -> Verdict {
    let map = RealMap::of(hops);
    let claimed = BigUint::from(claimed);
    let level = BigInt::from(&claimed + one());
    if !map.gains() {
        return Verdict::Holds;
    }
    let Some((low, mut high)) = map.inputs_of(&level) else {
        return Verdict::Holds;
    };
    // The reserves cut the inputs off: halve for the last one that all hops take.
    if output(hops, high.clone()).is_none() {
        let (mut yes, mut no) = (zero(), high);
        while &no - &yes > one() {
            let middle: BigUint = (&yes + &no) >> 1;
            if output(hops, middle.clone()).is_some() {
                yes = middle;
            } else {
                no = middle;
            }
        }
        high = yes;
    }
    if low > high {
        return Verdict::Holds;
    }
    let amounts = |token: usize| {
        let at = |x: &BigUint| output(&hops[..token], x.clone()).unwrap();
        (token, at(&low), at(&high))
    };
    let (token, first, last) = (0..hops.len())
        .map(amounts)
        .min_by_key(|(_, low, high)| high - low)
        .unwrap();
    let mut amount = first;
    for _ in 0..limit {
        if amount > last {
            return Verdict::Holds;
        }
        let paid = input(&hops[..token], amount.clone());
        let got = output(&hops[token..], amount.clone());
        if let (Some(paid), Some(got)) = (paid, got)
            && got > &paid + &claimed
        {
            return Verdict::Refuted(got - paid);
        }
        amount += one();
    }
    Verdict::TooWide
}

/// The best profit and its smallest input, over every input up to `limit`.
pub(super) fn brute_force(hops: &[BigHop], limit: u64) -> Option<(u128, u128)> {
    let mut best: Option<(BigUint, u64)> = None;
    for x in 1..=limit {
        let Some(y) = output(hops, x.into()) else {
            break;
        };
        if y > x.into() {
            let profit = y - x;
            if best.as_ref().is_none_or(|(known, _)| profit > *known) {
                best = Some((profit, x));
            }
        }
    }
    best.map(|(profit, x)| (profit.try_into().unwrap(), x.into()))
}

/// The output reserve of the last hop with which the marginal rates multiply to 1 + `excess` / 2^30 or
/// to the nearest below that, given the hops without it.
pub(super) fn closing_reserve(hops: &[(u128, u128, Fee)], excess: u32) -> Option<u128> {
    let (last, before) = hops.split_last()?;
    let scaled = |value: u128, parts: u16| BigUint::from(value) * parts;
    let mut up = scaled(last.0, last.2.den());
    let mut down = BigUint::from(last.2.num());
    for &(a, b, fee) in before {
        up *= scaled(a, fee.den());
        down *= scaled(b, fee.num());
    }
    let reserve: BigUint = up * ((1_u64 << 30) + u64::from(excess)) / (down << 30);
    let reserve = u128::try_from(reserve).ok()?;
    (1..=RESERVE_MAX).contains(&reserve).then_some(reserve)
}
