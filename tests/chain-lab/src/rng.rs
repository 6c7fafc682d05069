//! Random numbers that follow from a seed, the same everywhere.

/// `SplitMix64` (G. Steele, D. Lea, C. Flood, OOPSLA 2014; constants of S. Vigna's implementation). Not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }

    /// A number below `bound`; 0 for a bound of 0. Its bias is below 2⁻³² for bounds below 2³².
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let high = (u128::from(self.next()) * bound as u128) >> 64;
        usize::try_from(high).unwrap_or(0)
    }

    /// True `percent` times in a hundred.
    pub(crate) fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < usize::from(percent)
    }
}
