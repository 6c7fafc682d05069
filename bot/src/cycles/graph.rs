//! The part of a market that cycles can run through.

use std::collections::VecDeque;

use super::crawl::{Crawl, Cursor};
use super::table::Cycle;
use crate::market::{Address, Direction, Market, Pool, PoolId, TokenId};

/// The most hops a cycle can have.
pub const MAX_HOPS: u8 = 4;

/// The most pools a graph can have: each has two edges, edges are 16-bit numbers, and the last number
/// stands for "no edge". It bounds only pools that may lie on a cycle, and 16 bits an edge keep a
/// registered cycle at 8 bytes.
pub const MAX_LIVE_POOLS: usize = 32_767;

/// One pool in one direction, by its place in the graph.
///
/// Pools of the graph are numbered densely in the order of their [`PoolId`]s; the edges of pool number
/// `n` are `2n` ([`Direction::ZeroForOne`]) and `2n + 1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EdgeId(u16);

impl EdgeId {
    /// In the place of an edge where there is none.
    pub(crate) const NONE: Self = Self(u16::MAX);

    /// The place in a table with one row per edge.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The same pool in the other direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }

    pub(super) const fn raw(self) -> u16 {
        self.0
    }
}

/// What an edge leads through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The pool.
    pub pool: PoolId,
    /// The way it is traded.
    pub direction: Direction,
    /// What goes in.
    pub token_in: TokenId,
    /// What comes out.
    pub token_out: TokenId,
}

/// Why there is nothing to crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The number of hops is out of range.
    #[error(
        "cycles of up to {max_hops} hops cannot be searched; the most hops are from 2 to {MAX_HOPS}"
    )]
    MaxHops {
        /// The number.
        max_hops: u8,
    },
    /// No pool trades the base token.
    #[error("base token {base} is in no pool; the market has {tokens} other tokens")]
    UnknownBase {
        /// The base token.
        base: Address,
        /// How many tokens the market has.
        tokens: usize,
    },
    /// Pools trade the base token, but no way leads back to it.
    #[error(
        "base token {base} has {pools} pools but no cycle of up to {max_hops} hops leads back to \
         it; that takes a second pool for the same pair of tokens or a third token between"
    )]
    NoCycle {
        /// The base token.
        base: Address,
        /// How many pools trade it.
        pools: usize,
        /// The most hops that were allowed.
        max_hops: u8,
    },
    /// There are more cycles than a run has memory for.
    #[error(
        "there are more than {limit} cycles of up to {max_hops} hops; allow fewer hops or list fewer pools"
    )]
    TooManyCycles {
        /// The most hops that were allowed.
        max_hops: u8,
        /// The most cycles that are taken.
        limit: usize,
    },
    /// More pools may lie on cycles than edge ids can name.
    #[error(
        "{pools} pools may lie on cycles of up to {max_hops} hops from {base}; at most \
         {MAX_LIVE_POOLS} can be handled: allow fewer hops or list fewer pools"
    )]
    TooManyPools {
        /// The base token.
        base: Address,
        /// How many pools there are.
        pools: usize,
        /// The most hops that were allowed.
        max_hops: u8,
    },
}

/// A token of the graph by its place in it.
pub(super) type Node = u16;

/// A way on from a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Step {
    pub(super) to: Node,
    pub(super) edge: EdgeId,
}

/// The end of a cycle: one or two edges that lead to the base.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// The last two edges, or the last one and [`EdgeId::NONE`].
    pub(super) edges: [EdgeId; 2],
    /// What the beginning of the cycle must not have used: the token between the two edges, or the
    /// edge itself where there is but one.
    pub(super) key: u16,
}

/// Lists of `T`, one per row, in one piece of memory.
#[derive(Clone, Debug)]
pub(super) struct Lists<T> {
    starts: Vec<usize>,
    items: Vec<T>,
}

impl<T> Lists<T> {
    fn new() -> Self {
        Self {
            starts: vec![0],
            items: Vec::new(),
        }
    }

    fn push_list(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.starts.push(self.items.len());
    }

    pub(super) fn list(&self, row: Node) -> &[T] {
        let row = usize::from(row);
        &self.items[self.starts[row]..self.starts[row + 1]]
    }
}

/// The pools that may lie on a cycle from the base, laid out for the crawl.
#[derive(Clone, Debug)]
pub struct CycleGraph {
    base: TokenId,
    max_hops: u8,
    pools: Vec<PoolId>,
    edges: Vec<Edge>,
    /// Steps from the base.
    pub(super) first: Vec<Step>,
    /// Steps from each token to others than the base.
    pub(super) on: Lists<Step>,
    /// From each token in one hop to the base.
    pub(super) one_hop: Lists<Tail>,
    /// From each token over another one to the base.
    pub(super) two_hops: Lists<Tail>,
}

impl CycleGraph {
    /// The graph of all pools of `market` that may lie on a cycle of up to `max_hops` hops from and
    /// to the token with the address `base`.
    pub fn new(market: &Market, base: Address, max_hops: u8) -> Result<Self, GraphError> {
        if !(2..=MAX_HOPS).contains(&max_hops) {
            return Err(GraphError::MaxHops { max_hops });
        }
        let tokens = market.tokens().len();
        let base_id = market
            .token_by_address(base)
            .ok_or(GraphError::UnknownBase { base, tokens })?;
        let live = live_pools(market, base_id, max_hops);
        if live.len() > MAX_LIVE_POOLS {
            return Err(GraphError::TooManyPools {
                base,
                pools: live.len(),
                max_hops,
            });
        }
        let graph = Self::lay_out(market, base_id, max_hops, live);
        if graph.crawl().next().is_none() {
            let trades_base = |pool: &&Pool| pool.token0 == base_id || pool.token1 == base_id;
            let pools = market.pools().iter().filter(trades_base).count();
            return Err(GraphError::NoCycle {
                base,
                pools,
                max_hops,
            });
        }
        Ok(graph)
    }

    /// Numbers tokens and edges and sorts the steps. At most [`MAX_LIVE_POOLS`] pools, of which each
    /// token but the base has two or more, so that tokens and edges are 16-bit numbers.
    fn lay_out(market: &Market, base: TokenId, max_hops: u8, pools: Vec<PoolId>) -> Self {
        let mut edges = Vec::with_capacity(2 * pools.len());
        let mut tokens = vec![base];
        for &id in &pools {
            let pool = market.pool(id);
            let (zero, one) = (pool.token0, pool.token1);
            tokens.extend([zero, one]);
            for (direction, token_in, token_out) in [
                (Direction::ZeroForOne, zero, one),
                (Direction::OneForZero, one, zero),
            ] {
                edges.push(Edge {
                    pool: id,
                    direction,
                    token_in,
                    token_out,
                });
            }
        }
        tokens.sort_unstable();
        tokens.dedup();

        let mut node_of = vec![Node::MAX; market.tokens().len()];
        for (node, token) in (0..).zip(&tokens) {
            node_of[token.index()] = node;
        }
        let mut steps = vec![Vec::new(); tokens.len()];
        for (edge, e) in (0..).map(EdgeId).zip(&edges) {
            let step = Step {
                to: node_of[e.token_out.index()],
                edge,
            };
            steps[usize::from(node_of[e.token_in.index()])].push(step);
        }
        for list in &mut steps {
            list.sort_unstable();
        }

        let base_node = node_of[base.index()];
        let (mut on, mut one_hop, mut two_hops) = (Lists::new(), Lists::new(), Lists::new());
        for list in &steps {
            let (home, away): (Vec<Step>, Vec<Step>) =
                list.iter().copied().partition(|step| step.to == base_node);
            on.push_list(away);
            one_hop.push_list(home.iter().map(|s| Tail {
                edges: [s.edge, EdgeId::NONE],
                key: s.edge.raw(),
            }));
        }
        for (node, _) in (0..).zip(&steps) {
            // A cycle does not come back to the base before its end, so the base has no tails.
            let ways: &[Step] = if node == base_node {
                &[]
            } else {
                on.list(node)
            };
            let over = |step: &Step| {
                let (key, edge) = (step.to, step.edge);
                let last: &[Tail] = one_hop.list(key);
                last.iter().map(move |end| Tail {
                    edges: [edge, end.edges[0]],
                    key,
                })
            };
            two_hops.push_list(ways.iter().flat_map(over));
        }
        let first = on.list(base_node).to_vec();
        Self {
            base,
            max_hops,
            pools,
            edges,
            first,
            on,
            one_hop,
            two_hops,
        }
    }

    /// The base token.
    #[must_use]
    pub const fn base(&self) -> TokenId {
        self.base
    }

    /// The most hops of a cycle.
    #[must_use]
    pub const fn max_hops(&self) -> u8 {
        self.max_hops
    }

    /// The pools of the graph, ascending. The edges of the `n`-th are `2n` and `2n + 1`.
    #[must_use]
    pub fn pools(&self) -> &[PoolId] {
        &self.pools
    }

    /// All edges, by id.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// What `id` leads through.
    ///
    /// # Panics
    /// If the id comes from another, larger graph.
    #[must_use]
    pub fn edge(&self, id: EdgeId) -> &Edge {
        &self.edges[id.index()]
    }

    /// The two edges of a pool, [`Direction::ZeroForOne`] first; none if no cycle can use it.
    #[must_use]
    pub fn edges_of(&self, pool: PoolId) -> Option<[EdgeId; 2]> {
        let number = u16::try_from(self.pools.binary_search(&pool).ok()?).ok()?;
        Some([EdgeId(2 * number), EdgeId(2 * number + 1)])
    }

    /// Whether `cycle` is one: edges of this graph that lead from the base over distinct pools and
    /// distinct tokens back to it.
    #[must_use]
    pub fn is_cycle(&self, cycle: &Cycle) -> bool {
        let edges = self.edges();
        let mut at = self.base;
        for (place, id) in cycle.edges().iter().enumerate() {
            let Some(edge) = edges.get(id.index()) else {
                return false;
            };
            // A way that comes through the base is told by that, too: its last edge leads there again.
            let again = cycle.edges()[..place].iter().any(|earlier| {
                let earlier = edges.get(earlier.index());
                earlier.is_none_or(|e| e.pool == edge.pool || e.token_out == edge.token_out)
            });
            if edge.token_in != at || again {
                return false;
            }
            at = edge.token_out;
        }
        at == self.base
    }

    /// The edges of `old` in this graph, by their ids there; none if a pool of `old` is not in this graph.
    /// It has them all if its market is that of `old` with more pools.
    #[must_use]
    pub fn edges_from(&self, old: &Self) -> Option<Vec<EdgeId>> {
        let pairs = old.pools.iter().map(|pool| self.edges_of(*pool));
        let pairs: Option<Vec<[EdgeId; 2]>> = pairs.collect();
        pairs.map(Vec::into_flattened)
    }

    /// All cycles, from the first.
    #[must_use]
    pub fn crawl(&self) -> Crawl<'_> {
        self.crawl_from(Cursor::START)
    }

    /// All cycles from where a crawl of this graph stood.
    #[must_use]
    pub const fn crawl_from(&self, cursor: Cursor) -> Crawl<'_> {
        Crawl::new(self, cursor)
    }

    /// Refuses a graph of more than `limit` cycles. Counts no further than that.
    pub fn at_most(&self, limit: usize) -> Result<(), GraphError> {
        match self.crawl().nth(limit) {
            None => Ok(()),
            Some(_) => Err(GraphError::TooManyCycles {
                max_hops: self.max_hops,
                limit,
            }),
        }
    }

    /// How many cycles of 2, 3 and 4 hops there are. It crawls them.
    #[must_use]
    pub fn count(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        self.crawl().for_each(|cycle| counts[cycle.hops() - 2] += 1);
        counts
    }
}

/// The pools that may lie on a cycle of up to `max_hops` hops from `base`, ascending.
fn live_pools(market: &Market, base: TokenId, max_hops: u8) -> Vec<PoolId> {
    let mut around = vec![Vec::new(); market.tokens().len()];
    for id in market.pool_ids() {
        let pool = market.pool(id);
        around[pool.token0.index()].push(id);
        around[pool.token1.index()].push(id);
    }
    let other = |id: PoolId, token: TokenId| {
        let pool = market.pool(id);
        if pool.token0 == token {
            pool.token1
        } else {
            pool.token0
        }
    };

    // A cycle through a pool is at least as long as the ways from the base to its two tokens and the
    // hop between them.
    let mut distance = vec![None; market.tokens().len()];
    let mut queue = VecDeque::from([(base, 0_u32)]);
    distance[base.index()] = Some(0);
    while let Some((token, hops)) = queue.pop_front() {
        for &id in &around[token.index()] {
            let next = other(id, token);
            if distance[next.index()].is_none() {
                distance[next.index()] = Some(hops + 1);
                queue.push_back((next, hops + 1));
            }
        }
    }
    let mut live: Vec<bool> = market
        .pools()
        .iter()
        .map(|pool| {
            let ends = distance[pool.token0.index()].zip(distance[pool.token1.index()]);
            ends.is_some_and(|(a, b)| a + b < u32::from(max_hops))
        })
        .collect();

    // A token with one pool is a dead end, and so may be the token behind it. A base with one pool has no
    // cycle at all.
    let mut degree: Vec<usize> = around
        .iter()
        .map(|pools| pools.iter().filter(|id| live[id.index()]).count())
        .collect();
    let mut dead_ends: Vec<TokenId> = market
        .pools()
        .iter()
        .flat_map(|pool| [pool.token0, pool.token1])
        .filter(|&token| degree[token.index()] == 1)
        .collect();
    while let Some(token) = dead_ends.pop() {
        if degree[token.index()] != 1 {
            continue;
        }
        for &id in &around[token.index()] {
            if core::mem::take(&mut live[id.index()]) {
                let next = other(id, token);
                degree[token.index()] -= 1;
                degree[next.index()] -= 1;
                dead_ends.push(next);
            }
        }
    }
    market.pool_ids().filter(|id| live[id.index()]).collect()
}
