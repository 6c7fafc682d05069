//! What is claimed, against what is.

use super::curve::Curve;
use super::cycles::Cycles;
use super::market::{Market, ReserveError, Step, TextError};
use super::record::{Block, Winner};
use super::staircase::{self, Search};
use num_bigint::BigUint;
use std::collections::BTreeSet;
use thiserror::Error;

/// Steps of a search for a larger profit. A search that needs more leaves its question open, which is
/// counted.
const STEPS: u32 = 1 << 17;

/// Steps of a search for a smaller input with the same profit: next to nothing would be gained by it.
const STEPS_FOR_INPUT: u32 = 1 << 12;

/// Why there is nothing to check with.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The pools cannot be read.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The base token is in no pool.
    #[error("no pool trades {0}")]
    Base(String),
}

/// What is wrong with a block's record.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Objection {
    #[error("pool {0} is not in the market")]
    UnknownPool(String),
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    #[error("{path}: {what}")]
    Broken { path: String, what: &'static str },
    #[error("{path}: hop {hop} gives {right:?} and not {said}")]
    Amount {
        path: String,
        hop: usize,
        said: BigUint,
        right: Option<BigUint>,
    },
    #[error("{path}: {said} is not the profit of {output} for {input}")]
    Profit {
        path: String,
        input: BigUint,
        output: BigUint,
        said: BigUint,
    },
    #[error("{path}: {least:?} gives the same output as {said}")]
    NotLeast {
        path: String,
        said: BigUint,
        least: Option<BigUint>,
    },
    #[error("{path}: an input of {input} has a profit above {said}")]
    NotMost {
        path: String,
        said: BigUint,
        input: BigUint,
    },
    #[error("{path}: {what}")]
    Rank { path: String, what: &'static str },
    #[error("{right} cycles are touched and not {said}")]
    Touched { said: u64, right: u64 },
    #[error("{touched} touched cycles have {solved} + {suppressed} + {failed} outcomes")]
    Outcomes {
        touched: u64,
        solved: u64,
        suppressed: u64,
        failed: u64,
    },
    #[error("{gain} cycles gain on their first unit and only {solved} were solved")]
    Screened { gain: u64, solved: u64 },
    #[error("{reach} curves reach the least profit of interest and only {profitable} count")]
    Bounded { reach: u64, profitable: u64 },
    #[error(
        "{path} has a profit of {level} or more with an input of {input}, and is not published"
    )]
    Missed {
        path: String,
        level: BigUint,
        input: BigUint,
    },
}

/// What a check found, apart from objections. Adds up over blocks.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Trades that were recomputed.
    pub winners: u64,
    /// Of these, whose profit could not be pinned within the steps of a search.
    pub open_winners: u64,
    /// By how much the profits of those could at most be larger, in the base token's smallest unit.
    pub open_by: BigUint,
    /// Trades for which a smaller input has the same profit, with a smaller output.
    pub larger_input: u64,
    /// Trades for which this could not be said.
    pub open_input: u64,
    /// Cycles that were touched.
    pub touched: u64,
    /// Of these, whose curve alone does not rule out a profit above every published one.
    pub challengers: u64,
    /// Of these, how many neither were refuted nor have such a profit for certain.
    pub open_challengers: u64,
}

/// What the bot was told to publish.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The most hops of a cycle.
    pub max_hops: usize,
    /// How many of the best trades.
    pub top: usize,
    /// The least profit of interest, 1 or more.
    pub min_profit: BigUint,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            max_hops: 4,
            top: 1,
            min_profit: BigUint::from(1_u8),
        }
    }
}

/// Follows a run block by block.
#[derive(Clone, Debug)]
pub struct Checker {
    market: Market,
    base: usize,
    cycles: Cycles,
    asked: Asked,
    /// The pools that moved in the last block, marked by their places.
    moved: Vec<bool>,
}

impl Checker {
    /// A checker of runs that start from the pools of these texts.
    pub fn new<S: AsRef<str>>(files: &[S], base: &str, asked: Asked) -> Result<Self, SetupError> {
        let mut market = Market::default();
        for file in files {
            market.read(file.as_ref())?;
        }
        let base = market
            .token(base)
            .ok_or_else(|| SetupError::Base(base.to_owned()))?;
        Ok(Self {
            cycles: Cycles::of(&market, base, asked.max_hops),
            moved: vec![false; market.pools().len()],
            market,
            base,
            asked,
        })
    }

    /// The market as the last block left it.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }

    /// The cycles.
    #[must_use]
    pub const fn cycles(&self) -> &Cycles {
        &self.cycles
    }

    /// Applies a block and checks all of it.
    pub fn check(&mut self, block: &Block, found: &mut Found) -> Result<(), Objection> {
        self.apply(block)?;
        self.check_winners(block, found)?;
        self.check_best(block, found)
    }

    /// Moves the pools that the block moved.
    pub fn apply(&mut self, block: &Block) -> Result<(), Objection> {
        self.moved.fill(false);
        for moved in &block.moved {
            let pool = self.pool(&moved.pool)?;
            let reserves = [moved.reserve0.clone(), moved.reserve1.clone()];
            self.market.set(pool, &reserves)?;
            self.moved[pool] = true;
        }
        Ok(())
    }

    fn pool(&self, address: &str) -> Result<usize, Objection> {
        let unknown = || Objection::UnknownPool(address.to_owned());
        self.market.pool(address).ok_or_else(unknown)
    }

    /// Recomputes the trades that the applied block published.
    pub fn check_winners(&self, block: &Block, found: &mut Found) -> Result<(), Objection> {
        let mut before: Option<&Winner> = None;
        let mut paths = BTreeSet::new();
        for winner in &block.winners {
            let rank = |what| Objection::Rank {
                path: winner.path.clone(),
                what,
            };
            if before.is_some_and(|before| before.profit < winner.profit) {
                return Err(rank("is published after a trade with a smaller profit"));
            }
            if winner.profit < self.asked.min_profit {
                return Err(rank("has a profit that is not of interest"));
            }
            if !paths.insert(&winner.path) {
                return Err(rank("is published twice"));
            }
            if paths.len() > self.asked.top {
                return Err(rank("is one more than was asked for"));
            }
            self.check_winner(winner, found)?;
            before = Some(winner);
        }
        Ok(())
    }

    fn check_winner(&self, winner: &Winner, found: &mut Found) -> Result<(), Objection> {
        let path = || winner.path.clone();
        let steps = self.steps_of(winner)?;
        let hops = self.market.hops(&steps);

        let mut amount = winner.input.clone();
        for (place, (hop, said)) in hops.iter().zip(&winner.hops).enumerate() {
            let right = hop.output(&amount);
            if said.amount_in != amount || right.as_ref() != Some(&said.amount_out) {
                return Err(Objection::Amount {
                    path: path(),
                    hop: place,
                    said: said.amount_out.clone(),
                    right,
                });
            }
            amount.clone_from(&said.amount_out);
        }
        if amount != winner.output || winner.output != &winner.input + &winner.profit {
            return Err(Objection::Profit {
                path: path(),
                input: winner.input.clone(),
                output: winner.output.clone(),
                said: winner.profit.clone(),
            });
        }
        let least = staircase::least_input(&hops, &winner.output);
        if least.as_ref() != Some(&winner.input) {
            return Err(Objection::NotLeast {
                path: path(),
                said: winner.input.clone(),
                least,
            });
        }

        found.winners += 1;
        match staircase::search(&hops, &(&winner.profit + 1_u8), STEPS) {
            Search::Nowhere => {}
            Search::Least(input) => {
                return Err(Objection::NotMost {
                    path: path(),
                    said: winner.profit.clone(),
                    input,
                });
            }
            Search::Open => {
                let most = Curve::of(&hops).map_or(BigUint::ZERO, |curve| curve.most());
                found.open_winners += 1;
                found.open_by += most - &winner.profit;
            }
        }
        match staircase::search(&hops, &winner.profit, STEPS_FOR_INPUT) {
            Search::Least(input) if input == winner.input => {}
            Search::Open => found.open_input += 1,
            Search::Least(_) | Search::Nowhere => found.larger_input += 1,
        }
        Ok(())
    }

    /// The pools of a trade, if they make a cycle that the block touched.
    fn steps_of(&self, winner: &Winner) -> Result<Vec<Step>, Objection> {
        let broken = |what| Objection::Broken {
            path: winner.path.clone(),
            what,
        };
        let mut steps: Vec<Step> = Vec::new();
        let mut at = self.base;
        for hop in &winner.hops {
            let pool = self.pool(&hop.pool)?;
            let pair = [&hop.token_in, &hop.token_out].map(|token| self.market.token(token));
            let step = [true, false]
                .map(|first_in| Step { pool, first_in })
                .into_iter()
                .find(|step| {
                    let (token_in, token_out) = self.market.tokens_of(*step);
                    pair == [Some(token_in), Some(token_out)]
                })
                .ok_or_else(|| broken("a pool does not trade these tokens"))?;
            if self.market.tokens_of(step).0 != at {
                return Err(broken("a hop does not begin where the last one ended"));
            }
            if steps.iter().any(|before| before.pool == pool) {
                return Err(broken("a pool is used twice"));
            }
            at = self.market.tokens_of(step).1;
            steps.push(step);
        }
        if at != self.base || !(2..=self.asked.max_hops).contains(&steps.len()) {
            return Err(broken("is no cycle of so many hops"));
        }
        if winner.path != self.market.path(&steps) {
            return Err(broken("is not the path over these pools"));
        }
        if !steps.iter().any(|step| self.moved[step.pool]) {
            return Err(broken("none of these pools has moved"));
        }
        Ok(steps)
    }

    /// Looks at every cycle that the applied block touched: the counts are right, and no cycle that is
    /// not published has a larger profit than those that are.
    pub fn check_best(&self, block: &Block, found: &mut Found) -> Result<(), Objection> {
        let published: BTreeSet<&str> = block.winners.iter().map(|w| w.path.as_str()).collect();
        let level = match block.winners.last() {
            Some(last) if block.winners.len() == self.asked.top => &last.profit + 1_u8,
            _ => self.asked.min_profit.clone(),
        };
        let (mut touched, mut gain, mut reach) = (0, 0, 0);
        // A simulation that was not proved, or failed, may have been of any one cycle.
        let mut excused = block.unproved + block.sim_failed;
        for steps in self.cycles.touched(&self.moved) {
            touched += 1;
            let hops = self.market.hops(steps);
            let Some(curve) = Curve::of(&hops) else {
                continue;
            };
            gain += 1;
            if !curve.reaches(&self.asked.min_profit) {
                continue;
            }
            reach += 1;
            if !curve.reaches(&level) {
                continue;
            }
            let path = self.market.path(steps);
            if published.contains(path.as_str()) {
                continue;
            }
            found.challengers += 1;
            match staircase::search(&hops, &level, STEPS) {
                Search::Nowhere => {}
                Search::Open => found.open_challengers += 1,
                Search::Least(_) if excused > 0 => excused -= 1,
                Search::Least(input) => return Err(Objection::Missed { path, level, input }),
            }
        }
        found.touched += touched;
        Self::check_counts(block, touched, gain, reach)
    }

    fn check_counts(block: &Block, touched: u64, gain: u64, reach: u64) -> Result<(), Objection> {
        let &Block {
            solved,
            suppressed,
            failed,
            profitable,
            ..
        } = block;
        if touched != block.touched {
            return Err(Objection::Touched {
                said: block.touched,
                right: touched,
            });
        }
        if touched != solved + suppressed + failed {
            return Err(Objection::Outcomes {
                touched,
                solved,
                suppressed,
                failed,
            });
        }
        // What failed with its unit may have been any of them.
        if gain > solved + failed {
            return Err(Objection::Screened { gain, solved });
        }
        if reach > profitable + failed {
            return Err(Objection::Bounded { reach, profitable });
        }
        Ok(())
    }
}
