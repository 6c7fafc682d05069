//! Every cycle of a market, by walking its pools.

use super::market::{Market, Step};

/// The cycles from and to a base token over distinct pools and, between, distinct other tokens.
#[derive(Clone, Debug, Default)]
pub struct Cycles {
    /// All steps, one cycle after the other.
    steps: Vec<Step>,
    /// Where each cycle ends.
    ends: Vec<usize>,
}

impl Cycles {
    /// The cycles of 2 to `max_hops` hops.
    #[must_use]
    pub fn of(market: &Market, base: usize, max_hops: usize) -> Self {
        let mut ways = vec![Vec::new(); market.token_count()];
        for pool in 0..market.pools().len() {
            for first_in in [true, false] {
                let step = Step { pool, first_in };
                ways[market.tokens_of(step).0].push(step);
            }
        }
        let mut walk = Walk {
            market,
            ways: &ways,
            base,
            max_hops,
            path: Vec::new(),
            found: Self::default(),
        };
        walk.from(base);
        walk.found
    }

    /// The cycles, each as its steps.
    pub fn iter(&self) -> impl Iterator<Item = &[Step]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(&start, &end)| &self.steps[start..end])
    }

    /// How many cycles of 2, 3 and 4 hops there are.
    #[must_use]
    pub fn count(&self) -> [u64; 3] {
        let of = |hops| self.iter().filter(|cycle| cycle.len() == hops).count() as u64;
        [of(2), of(3), of(4)]
    }

    /// The cycles over at least one of the pools that are marked.
    pub fn touched<'c>(&'c self, moved: &'c [bool]) -> impl Iterator<Item = &'c [Step]> {
        self.iter()
            .filter(|cycle| cycle.iter().any(|step| moved[step.pool]))
    }
}

struct Walk<'w> {
    market: &'w Market,
    /// The steps from each token.
    ways: &'w [Vec<Step>],
    base: usize,
    max_hops: usize,
    path: Vec<Step>,
    found: Cycles,
}

impl Walk<'_> {
    fn from(&mut self, token: usize) {
        for &step in &self.ways[token] {
            let next = self.market.tokens_of(step).1;
            let again = self
                .path
                .iter()
                .any(|before| before.pool == step.pool || self.market.tokens_of(*before).1 == next);
            if again {
                continue;
            }
            self.path.push(step);
            if next == self.base {
                self.found.steps.extend(&self.path);
                self.found.ends.push(self.found.steps.len());
            } else if self.path.len() < self.max_hops {
                self.from(next);
            }
            self.path.pop();
        }
    }
}
