//! What the lab knows of the chain that it made: every block that ever stood, and what it left in the pools.

use alloy_primitives::{Address, B256};
use regatta_chain_lab::market::{Market, Pool};
use regatta_chain_lab::mover::{Reorg, Step};
use regatta_chain_lab::rpc::Head;
use std::collections::{BTreeMap, BTreeSet};

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) head: Head,
    /// The pools that it changed.
    pub(crate) changed: BTreeMap<Address, [u128; 2]>,
    /// All reserves after it.
    pub(crate) reserves: BTreeMap<Address, [u128; 2]>,
}

/// Every block since the layout.
pub(crate) struct History {
    pub(crate) base: Address,
    pub(crate) tokens: BTreeMap<Address, [Address; 2]>,
    blocks: BTreeMap<B256, Known>,
    canonical: Vec<B256>,
    orphaned: BTreeSet<B256>,
    created: BTreeSet<Address>,
}

impl History {
    /// The layout's last block.
    pub(crate) fn new(head: Head, market: &Market) -> Self {
        let reserves = market
            .pools
            .iter()
            .map(|pool| (pool.address, pool.reserves));
        let known = Known {
            head,
            changed: BTreeMap::new(),
            reserves: reserves.collect(),
        };
        let mut history = Self {
            base: market.base,
            tokens: BTreeMap::new(),
            blocks: BTreeMap::from([(head.hash, known)]),
            canonical: vec![head.hash],
            orphaned: BTreeSet::new(),
            created: BTreeSet::new(),
        };
        for pool in &market.pools {
            history.tokens.insert(pool.address, pool.tokens);
        }
        history
    }

    /// A pool that came later than the layout.
    pub(crate) fn create(&mut self, pool: &Pool) {
        self.tokens.insert(pool.address, pool.tokens);
        self.created.insert(pool.address);
    }

    pub(crate) fn is_created(&self, pool: Address) -> bool {
        self.created.contains(&pool)
    }

    /// A block on top of its parent.
    pub(crate) fn step(&mut self, step: &Step) {
        assert_eq!(self.canonical.last(), Some(&step.head.parent));
        let changed: BTreeMap<_, _> = step.reserves.iter().copied().collect();
        let mut reserves = self.blocks[&step.head.parent].reserves.clone();
        reserves.extend(&changed);
        let known = Known {
            head: step.head,
            changed,
            reserves,
        };
        assert!(self.blocks.insert(step.head.hash, known).is_none());
        self.canonical.push(step.head.hash);
    }

    /// The last blocks give way to others.
    pub(crate) fn reorg(&mut self, reorg: &Reorg) {
        for head in reorg.orphaned.iter().rev() {
            assert_eq!(self.canonical.pop(), Some(head.hash));
            self.orphaned.insert(head.hash);
        }
        for step in &reorg.adopted {
            self.step(step);
        }
    }

    /// A block that stands, or once stood.
    pub(crate) fn block(&self, hash: B256) -> &Known {
        let known = self.blocks.get(&hash);
        known.unwrap_or_else(|| panic!("{hash} was never a block of this chain"))
    }

    /// The chain, lowest first.
    pub(crate) fn canonical(&self) -> &[B256] {
        &self.canonical
    }

    /// The last block.
    pub(crate) fn head(&self) -> &Known {
        &self.blocks[self.canonical.last().unwrap()]
    }

    pub(crate) fn is_orphaned(&self, hash: B256) -> bool {
        self.orphaned.contains(&hash)
    }
}
