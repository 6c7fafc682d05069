//! What the verifier compares: reserves of the world and of the source, pool by pool, at one block.

use crate::market::{Address, Market, PoolId, ReserveUpdate};
use crate::source::{BlockHash, Head};
use std::collections::BTreeSet;

/// Pools that are compared at a block beside those that moved in it, in turn through the market.
pub const ROTATING: u32 = 32;

/// Pools that are compared at a block at most; a block that moves more is compared in part, and that is counted.
pub const MOST: usize = 1024;

/// One pool at one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Check {
    /// The pool.
    pub pool: PoolId,
    /// Its contract.
    pub address: Address,
    /// What the world had: the reserves of the first and the second token.
    pub expected: (u128, u128),
    /// What the source says; none if it said nothing of this pool.
    pub read: Option<(u128, u128)>,
}

/// A pool whose reserves are not what the source says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The block.
    pub head: Head,
    /// The pool.
    pub pool: PoolId,
    /// Its contract.
    pub address: Address,
    /// What the world had.
    pub expected: (u128, u128),
    /// What the source says.
    pub read: (u128, u128),
}

/// A block to verify, and what came of it: the unit of the Verifier. It is used again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyJob {
    head: Head,
    checks: Vec<Check>,
    mismatches: Vec<Mismatch>,
    /// Where the turn through the market goes on after this block.
    next: u32,
    left_out: u64,
}

impl Default for VerifyJob {
    fn default() -> Self {
        Self {
            head: Head {
                number: 0,
                hash: BlockHash::new([0; 32]),
                parent: BlockHash::new([0; 32]),
                timestamp: 0,
                base_fee: None,
            },
            checks: Vec::new(),
            mismatches: Vec::new(),
            next: 0,
            left_out: 0,
        }
    }
}

impl VerifyJob {
    /// The block.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// The pools to compare.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The same, for taking in what was read.
    pub fn checks_mut(&mut self) -> &mut [Check] {
        &mut self.checks
    }

    /// Pools whose reserves differ, once it has run.
    #[must_use]
    pub fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }

    /// Where the turn through the market goes on.
    #[must_use]
    pub(crate) const fn next(&self) -> u32 {
        self.next
    }

    /// Pools that moved and did not fit.
    #[must_use]
    pub(crate) const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes the reserves at `head`: of the pools that `moved` in it, as they are now, and of [`ROTATING`] more in turn
    /// from number `from` on. `skip` has those that need no more looking at.
    pub fn fill(
        &mut self,
        head: Head,
        moved: &[ReserveUpdate],
        market: &Market,
        from: u32,
        skip: &BTreeSet<PoolId>,
    ) {
        (self.head, self.left_out) = (head, 0);
        self.checks.clear();
        self.mismatches.clear();
        for update in moved.iter().filter(|update| !skip.contains(&update.pool)) {
            if self.checks.len() == MOST {
                self.left_out += 1;
            } else {
                self.add(update.pool, market);
            }
        }
        // `moved` has each pool once, by number, and so has the first part of the checks.
        let moved = self.checks.len();
        let pools = u32::try_from(market.pools().len()).unwrap_or(u32::MAX);
        let turn = ROTATING.min(pools);
        self.next = from;
        for _ in 0..turn {
            // A market never shrinks, but one that is not the last one's may be smaller.
            let number = if self.next < pools { self.next } else { 0 };
            self.next = number + 1;
            let pool = PoolId::new(number);
            let already = self.checks[..moved].binary_search_by_key(&pool, |check| check.pool);
            if already.is_err() && !skip.contains(&pool) && self.checks.len() < MOST {
                self.add(pool, market);
            }
        }
    }

    fn add(&mut self, pool: PoolId, market: &Market) {
        if let Some(state) = market.pools().get(pool.index()) {
            self.checks.push(Check {
                pool,
                address: state.address,
                expected: (state.reserve0, state.reserve1),
                read: None,
            });
        }
    }

    /// Compares. A pool that the source said nothing of is no mismatch.
    pub(crate) fn run(&mut self) {
        self.mismatches.clear();
        for check in &self.checks {
            if let Some(read) = check.read
                && read != check.expected
            {
                self.mismatches.push(Mismatch {
                    head: self.head,
                    pool: check.pool,
                    address: check.address,
                    expected: check.expected,
                    read,
                });
            }
        }
    }
}
