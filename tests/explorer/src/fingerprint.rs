//! A state as 128 bits.
//!
//! The visited set keeps fingerprints in place of states. With 10⁸ states, the chance that any two of
//! them share one is below 10⁻²².

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// The fingerprint of a state.
pub type Print = [u64; 2];

/// Computes fingerprints; keeps its buffer.
#[derive(Default, Debug)]
pub struct Printer {
    bytes: Bytes,
}

impl Printer {
    /// The fingerprint of `value`.
    pub fn print(&mut self, value: &impl Hash) -> Print {
        self.bytes.0.clear();
        value.hash(&mut self.bytes);
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(salt);
            hasher.write(&self.bytes.0);
            hasher.finish()
        };
        [half(0), half(1)]
    }
}

/// A hasher that only writes down what it is given.
#[derive(Default, Debug)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    // Discriminants and lengths, which are small here: two bytes of each say all.
    fn write_isize(&mut self, n: isize) {
        self.0.extend_from_slice(&n.to_le_bytes()[..2]);
    }

    fn write_usize(&mut self, n: usize) {
        self.0.extend_from_slice(&n.to_le_bytes()[..2]);
    }

    fn finish(&self) -> u64 {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        hasher.hash_one(&self.0)
    }
}

/// A hasher for what is a hash already.
#[derive(Default, Debug)]
pub struct Plain(u64);

impl Hasher for Plain {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
