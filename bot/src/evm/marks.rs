//! What the bytecode showed to be other than it is said to be, and what is not traded any more for that.
//!
//! # Invariants
//! - A mark is for good: nothing takes it off, not even a reorganisation.
//! - Every pool that a mark covers is out of trade from the end of the block in which it was made, and pools that come later
//!   from the end of the block in which they come.

use crate::market::{Address, ExchangeId, Market, Pool, PoolId, TokenId, UntrustedText};
use crate::pipeline::World;
use std::collections::BTreeSet;
use std::fmt;

/// What is marked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Marked {
    /// A token: no pool of it is traded through.
    Token(Address),
    /// An exchange: none of its pools is.
    Exchange(UntrustedText),
    /// A pool alone.
    Pool,
}

/// Why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Less of a token arrives than was sent, or it refuses a transfer.
    TokenLies,
    /// The pools of the exchange take another fee than is configured, both in parts per million. What is found is a range
    /// where the amounts cannot tell it closer.
    FeeDiffers {
        /// What is configured.
        configured: u32,
        /// The least that it can be.
        least: u32,
        /// The most that it can be.
        most: u32,
    },
    /// The pool itself has other reserves than the run has.
    ReservesDiffer,
    /// The pool's code does what no constant-product pair does.
    PoolFails,
}

impl Reason {
    /// Its name in the output.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TokenLies => "token_lies",
            Self::FeeDiffers { .. } => "fee_differs",
            Self::ReservesDiffer => "reserves_differ",
            Self::PoolFails => "pool_fails",
        }
    }
}

/// A mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// What is marked.
    pub marked: Marked,
    /// Why.
    pub reason: Reason,
    /// The pool at which it showed.
    pub pool: Address,
    /// Pools that are out of trade for it and were in trade before.
    pub pools: usize,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pool, pools) = (self.pool, self.pools);
        match &self.marked {
            Marked::Token(token) => write!(f, "token {token} lies (seen at pool {pool})")?,
            Marked::Exchange(name) => write!(f, "exchange {name} (seen at pool {pool})")?,
            Marked::Pool => write!(f, "pool {pool}")?,
        }
        match self.reason {
            Reason::TokenLies => {
                f.write_str(": what arrives is less than what was sent, or none")?;
            }
            Reason::FeeDiffers {
                configured,
                least,
                most,
            } => {
                let hundredths = (least.midpoint(most) + 50) / 100;
                write!(
                    f,
                    ": its pools take a fee of {least} to {most} parts per million, and {configured} is configured; \
                     configure it as --factory ADDRESS:{hundredths}"
                )?;
            }
            Reason::ReservesDiffer => f.write_str(": its reserves are not what its logs say")?,
            Reason::PoolFails => f.write_str(": its code does not swap as a pair does")?,
        }
        write!(f, "; {pools} pools are out of trade")
    }
}

/// What the machine came to in a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EvmResult {
    /// Runs of the machine that gave what the exact integers say.
    pub agreed: usize,
    /// Runs that gave something else.
    pub disagreed: usize,
    /// Candidates that could not be decided.
    pub unavailable: usize,
    /// What was marked.
    pub marks: Vec<Mark>,
}

/// All marks of a run.
#[derive(Debug, Default)]
pub(super) struct Marks {
    tokens: BTreeSet<TokenId>,
    exchanges: BTreeSet<ExchangeId>,
    pools: BTreeSet<PoolId>,
    /// Made since the last time that they took effect.
    new: Vec<(What, Mark)>,
    /// Pools that every mark has taken effect on.
    seen: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Token(TokenId),
    Exchange(ExchangeId),
    Pool(PoolId),
}

impl What {
    fn covers(self, id: PoolId, pool: &Pool) -> bool {
        match self {
            Self::Token(token) => pool.token0 == token || pool.token1 == token,
            Self::Exchange(exchange) => pool.exchange == exchange,
            Self::Pool(marked) => marked == id,
        }
    }
}

impl Marks {
    pub(super) fn add(&mut self, of: &Market, what: What, reason: Reason, at: Address) {
        let (new, marked) = match what {
            What::Token(token) => (
                self.tokens.insert(token),
                Marked::Token(of.token(token).address),
            ),
            What::Exchange(exchange) => (
                self.exchanges.insert(exchange),
                Marked::Exchange(of.exchange(exchange).name.clone()),
            ),
            What::Pool(pool) => (self.pools.insert(pool), Marked::Pool),
        };
        if new {
            let mark = Mark {
                marked,
                reason,
                pool: at,
                pools: 0,
            };
            self.new.push((what, mark));
        }
    }

    pub(super) fn covers(&self, id: PoolId, pool: &Pool) -> bool {
        self.pools.contains(&id)
            || self.exchanges.contains(&pool.exchange)
            || self.tokens.contains(&pool.token0)
            || self.tokens.contains(&pool.token1)
    }

    /// Takes what they cover out of trade; the marks that are new.
    pub(super) fn apply(&mut self, world: &mut World) -> Vec<Mark> {
        let pools = world.market().pools();
        let covered = |from: usize, covers: &dyn Fn(PoolId, &Pool) -> bool| -> Vec<PoolId> {
            let ids = (0..).map(PoolId::new);
            let pools = ids.zip(pools).skip(from);
            pools
                .filter(|(id, pool)| covers(*id, pool))
                .map(|(id, _)| id)
                .collect()
        };
        let late = covered(self.seen, &|id, pool| self.covers(id, pool));
        let mut marks = std::mem::take(&mut self.new);
        let by_mark: Vec<_> = marks
            .iter()
            .map(|(what, _)| covered(0, &|id, pool| what.covers(id, pool)))
            .collect();
        self.seen = pools.len();
        for ((_, mark), covered) in marks.iter_mut().zip(by_mark) {
            mark.pools = covered
                .into_iter()
                .filter(|id| world.quarantine(*id))
                .count();
            tracing::error!("{mark}");
        }
        for pool in late {
            world.quarantine(pool);
        }
        marks.into_iter().map(|(_, mark)| mark).collect()
    }
}
