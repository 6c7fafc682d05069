//! Random numbers that are the same on every platform.

/// `SplitMix64`: a generator with 64 bits of state, one multiply-xorshift round a number. Not for
/// secrets.
///
/// Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014;
/// constants as in S. Vigna's public-domain implementation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator whose numbers follow from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number below `bound`, all equally likely; 0 for a bound of 0.
    ///
    /// The high half of a 128-bit product, with the draws rejected that would favour some numbers
    /// (D. Lemire, "Fast random integer generation in an interval", 2019).
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let draw = self.next_u64();
            let high = ((draw as u128 * bound as u128) >> 64) as u64;
            let low = draw.wrapping_mul(bound);
            if low >= unfair {
                return high;
            }
        }
    }

    /// A number from `low` to `high`, both included; `low` if `high` is less.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True `percent` times in a hundred.
    pub const fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < percent as u64
    }

    /// Roughly a standard normal number in units of 2⁻¹⁶: the sum of twelve uniform numbers less its
    /// mean (Irwin and Hall), so never beyond six.
    pub const fn normal_q16(&mut self) -> i64 {
        let mut sum = 0;
        let mut draws = 0;
        while draws < 12 {
            sum += self.below(1 << 16);
            draws += 1;
        }
        sum.cast_signed() - (6 << 16)
    }
}

/// The finaliser of the generator: a bijection in which every input bit sways every output bit.
pub(super) const fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation for the seed 1234567.
    #[test]
    fn the_numbers_are_those_of_the_reference() {
        let mut rng = SplitMix64::new(1_234_567);
        let numbers: Vec<_> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn numbers_stay_in_range_and_reach_all_of_it() {
        let mut rng = SplitMix64::new(1);
        let mut seen = [0_u32; 7];
        let mut ends = [false; 2];
        for _ in 0..7_000 {
            seen[usize::try_from(rng.below(7)).unwrap()] += 1;
            let number = rng.between(3, 5);
            assert!((3..=5).contains(&number));
            ends = [ends[0] || number == 3, ends[1] || number == 5];
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert_eq!(ends, [true; 2]);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        assert_eq!(rng.between(9, 3), 9);
        assert!(!rng.percent(0) && rng.percent(100));
        let normal: Vec<_> = (0..1000).map(|_| rng.normal_q16()).collect();
        let mean = normal.iter().sum::<i64>() / 1000;
        let variance = (normal.iter().map(|z| z * z).sum::<i64>() / 1000) >> 16;
        assert!(
            mean.abs() < 1 << 13 && (58_000..73_000).contains(&variance),
            "{mean} {variance}"
        );
    }
}
