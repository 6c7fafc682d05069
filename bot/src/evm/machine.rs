//! The machine of a run: the state at the block in hand, what is asked of it, and what follows from the answers.
//!
//! # Invariants
//! - The state is at the block whose cycle runs; what is asked is asked by that block's hash.
//! - After a reading that failed nothing more is asked for the block: a node that hangs costs a block one wait.
//! - The base token is never marked: that would take everything out of trade. A pool that fails on it is.

mod judge;

use super::executor::{ExecutorError, OWNER, executor};
use super::job::{Ask, EvmAnswer, EvmJob};
use super::marks::{EvmResult, Marks};
use super::reader::{StateError, StateReader, Told};
use crate::cycles::CycleId;
use crate::market::{Address, ExchangeId, Market, PoolId, TokenId};
use crate::node::{hash, plain, plain_hash};
use crate::pipeline::{PumpError, Trade, World};
use crate::source::{BlockHash, Head};
use alloy_primitives::{B256, U256};
use regatta_evm::{
    BlockEnv, BlockId, Call, Code, CodeError, DEFAULT_GAS, Disagreement, Executor, Hop, Key, Stale,
    State, agrees,
};
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// The gas that a block may use: what the main net had for years. A call's own gas is far below.
const BLOCK_GAS: u64 = 30_000_000;

/// Seconds between blocks until two were seen.
const INTERVAL: u64 = 12;

/// Blocks that a reorganisation goes back without forgetting all code.
const PATH: usize = 128;

/// How far the machine goes for a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Readings for one question.
    pub rounds: u32,
    /// Keys in one reading. A token may make a call touch thousands.
    pub keys: usize,
    /// Time for one question.
    pub question: Duration,
    /// Time for all questions of a block that wait for the node.
    pub block: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: 8,
            keys: 2048,
            question: Duration::from_secs(2),
            block: Duration::from_secs(4),
        }
    }
}

/// Why the machine gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// An earlier reading failed, the time of the block is over, or the run is to stop.
    #[error("nothing more is asked in this block")]
    Over,
    /// The unit failed.
    #[error("the unit failed")]
    Unit,
    /// It kept asking.
    #[error("{0} readings were not enough")]
    Rounds(u32),
    /// It asks for too much.
    #[error("it needs {asked} keys at once, and {most} are read")]
    TooMuch {
        /// What it asks for.
        asked: usize,
        /// What is read.
        most: usize,
    },
    /// A reading failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// There were more or fewer answers than keys.
    #[error("{found} answers came to {asked} keys")]
    Count {
        /// Keys.
        asked: usize,
        /// Answers.
        found: usize,
    },
    /// Code that is none.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The state went on meanwhile: the bot is at fault.
    #[error(transparent)]
    Stale(#[from] Stale),
}

/// Has a seat run a unit; `None` if the unit failed.
pub(crate) type Run<'r> = dyn FnMut(EvmJob) -> Result<Option<EvmAnswer>, PumpError> + 'r;

/// A candidate as the machine runs it.
#[derive(Debug)]
pub(crate) struct Case {
    cycle: CycleId,
    call: Call,
    profit: U256,
    hops: Vec<CaseHop>,
}

#[derive(Clone, Copy, Debug)]
struct CaseHop {
    pool: PoolId,
    tokens: [TokenId; 2],
    exchange: ExchangeId,
    address: Address,
    reserves: [u128; 2],
}

/// The machine of a run.
#[derive(Debug)]
pub struct Machine {
    chain_id: u64,
    executor: Executor,
    reader: Box<dyn StateReader>,
    limits: Limits,
    state: State,
    head: Option<Head>,
    interval: u64,
    /// The last blocks that the state was at.
    path: VecDeque<BlockId>,
    marks: Marks,
    /// Exchanges whose fee was compared.
    compared: BTreeSet<ExchangeId>,
    /// Nothing more is asked in this block.
    over: bool,
    left: Duration,
    result: EvmResult,
}

impl Machine {
    /// A machine for a chain that asks `reader`.
    pub fn new(
        chain_id: u64,
        reader: Box<dyn StateReader>,
        limits: Limits,
    ) -> Result<Self, ExecutorError> {
        Ok(Self {
            chain_id,
            executor: executor()?,
            reader,
            limits,
            state: State::new(BlockId::default()),
            head: None,
            interval: INTERVAL,
            path: VecDeque::with_capacity(PATH),
            marks: Marks::default(),
            compared: BTreeSet::new(),
            over: false,
            left: limits.block,
            result: EvmResult::default(),
        })
    }

    /// A block came.
    pub(crate) fn came(&mut self, head: Head) {
        let to = BlockId {
            number: head.number,
            hash: plain_hash(head.hash),
        };
        if let Some(before) = self.head.filter(|before| before.hash == head.parent) {
            self.interval = head.timestamp.saturating_sub(before.timestamp).clamp(1, 60);
        }
        if self.state.head().hash == plain_hash(head.parent) {
            self.state.advance(to);
        } else {
            // A gap, or a branch whose root is not known: code of what is no longer there may be among what is known.
            self.state = State::new(to);
            self.path.clear();
        }
        if self.path.len() == PATH {
            self.path.pop_front();
        }
        self.path.push_back(to);
        self.head = Some(head);
    }

    /// The world is at this block: that it came was said, or the market was read anew at it.
    pub(crate) fn at(&mut self, head: Head) {
        if self.head.is_none_or(|at| at.hash != head.hash) {
            self.came(head);
        }
    }

    /// The last block was reverted.
    pub(crate) fn reverted(&mut self, block: BlockHash) {
        if self
            .path
            .back()
            .is_some_and(|last| last.hash == plain_hash(block))
        {
            self.path.pop_back();
        } else {
            self.path.clear();
        }
        match self.path.back() {
            Some(last) => self.state.revert(*last),
            None => self.state = State::new(BlockId::default()),
        }
        self.head = None;
    }

    /// A cycle of the pump begins.
    pub(crate) fn begin(&mut self) {
        self.over = self.head.is_none();
        self.left = self.limits.block;
        self.result = EvmResult::default();
    }

    /// Nothing more is asked in this block.
    pub(crate) fn give_up(&mut self) {
        self.over = true;
    }

    /// Whether nothing more is asked in this block.
    pub(crate) const fn is_over(&self) -> bool {
        self.over
    }

    /// A cycle of the pump ends, and no unit reads the world: marks take effect.
    pub(crate) fn end(&mut self, world: &mut World) -> EvmResult {
        let marks = self.marks.apply(world);
        EvmResult {
            marks,
            ..std::mem::take(&mut self.result)
        }
    }

    /// Whether a cycle goes through anything that is marked.
    pub(crate) fn distrusts(&self, world: &World, id: CycleId) -> bool {
        let market = world.market();
        world.table().get(id).is_none_or(|cycle| {
            cycle.edges().iter().any(|edge| {
                let pool = world.graph().edge(*edge).pool;
                self.marks.covers(pool, market.pool(pool))
            })
        })
    }

    /// A trade of a cycle as a case; `None` if there is no such cycle.
    pub(crate) fn case(&self, world: &World, id: CycleId, trade: &Trade) -> Option<Case> {
        let (market, graph) = (world.market(), world.graph());
        let cycle = world.table().get(id)?;
        let (input, outputs) = trade.amounts().split_first()?;
        let mut hops = Vec::with_capacity(outputs.len());
        let mut of_call = Vec::with_capacity(outputs.len());
        for (edge, output) in cycle.edges().iter().zip(outputs) {
            let edge = graph.edge(*edge);
            let pool = market.pool(edge.pool);
            of_call.push(Hop {
                pool: plain(pool.address),
                zero_for_one: edge.token_in == pool.token0,
                amount_out: U256::from(*output),
            });
            hops.push(CaseHop {
                pool: edge.pool,
                tokens: [edge.token_in, edge.token_out],
                exchange: pool.exchange,
                address: pool.address,
                reserves: [pool.reserve0, pool.reserve1],
            });
        }
        let block = self.next_block()?;
        Some(Case {
            cycle: id,
            call: Call {
                block,
                gas: DEFAULT_GAS,
                owner: OWNER,
                executor: self.executor.clone(),
                base: plain(market.token(graph.base()).address),
                amount_in: U256::from(*input),
                hops: of_call,
                min_profit: U256::ZERO,
                expiry_block: block.number,
            },
            profit: U256::from(trade.optimum.profit),
            hops,
        })
    }

    /// The block that is built on the one in hand, as far as it can be known.
    fn next_block(&self) -> Option<BlockEnv> {
        let head = self.head?;
        Some(BlockEnv {
            number: head.number.saturating_add(1),
            timestamp: head.timestamp.saturating_add(self.interval),
            base_fee: u64::try_from(head.base_fee.unwrap_or(0)).unwrap_or(u64::MAX),
            gas_limit: BLOCK_GAS,
            beneficiary: alloy_primitives::Address::ZERO,
            random: B256::ZERO,
        })
    }

    /// Whether the bytecode gives what the case says. Who makes it differ is marked.
    pub(crate) fn confirm(
        &mut self,
        market: &Market,
        case: &Case,
        run: &mut Run<'_>,
    ) -> Result<bool, PumpError> {
        let number = self.state.head().number;
        let cycle = case.cycle.number();
        let outcome = match self.answer(&Ask::Run(case.call.clone()), run)? {
            Ok(EvmAnswer::Ran(outcome)) => outcome,
            Ok(_) => return Ok(false),
            Err(why) => {
                tracing::warn!("block {number}: cycle {cycle} was not simulated: {why}");
                self.result.unavailable += 1;
                return Ok(false);
            }
        };
        match agrees(&case.call, case.profit, &outcome) {
            Ok(()) => {
                self.result.agreed += 1;
                return Ok(true);
            }
            Err(Disagreement::Undecided(_)) => self.result.unavailable += 1,
            Err(disagreement) => {
                self.result.disagreed += 1;
                tracing::error!("block {number}: cycle {cycle}: {disagreement}");
                self.judge(market, case, run)?;
            }
        }
        Ok(false)
    }

    /// Asks the machine, and tells it what it lacks.
    fn answer(
        &mut self,
        ask: &Ask,
        run: &mut Run<'_>,
    ) -> Result<Result<EvmAnswer, Unavailable>, PumpError> {
        if self.over {
            return Ok(Err(Unavailable::Over));
        }
        let mut left = self.limits.question;
        for _ in 0..=self.limits.rounds {
            let job = EvmJob {
                chain_id: self.chain_id,
                state: self.state.clone(),
                ask: ask.clone(),
            };
            let Some(answer) = run(job)? else {
                return Ok(Err(Unavailable::Unit));
            };
            let Some(keys) = answer.missing() else {
                return Ok(Ok(answer));
            };
            if let Err(why) = self.read(keys, &mut left) {
                return Ok(Err(why));
            }
        }
        Ok(Err(Unavailable::Rounds(self.limits.rounds)))
    }

    /// Reads keys into the state.
    fn read(&mut self, keys: &[Key], left: &mut Duration) -> Result<(), Unavailable> {
        let (asked, most) = (keys.len(), self.limits.keys);
        if asked > most {
            return Err(Unavailable::TooMuch { asked, most });
        }
        let wait = self.left.min(*left);
        if wait.is_zero() {
            self.over = self.left.is_zero();
            return Err(StateError::TimedOut(self.limits.question).into());
        }
        let at = self.state.head().hash;
        let began = Instant::now();
        let read = self.reader.read(hash(at), keys, wait);
        let took = began.elapsed();
        self.left = self.left.saturating_sub(took);
        *left = left.saturating_sub(took);
        // Whatever is wrong with it, it is wrong with the node or with the block.
        let taken = read.map_err(Unavailable::from);
        let taken = taken.and_then(|told| self.tell(keys, told, at));
        self.over |= taken.is_err();
        taken
    }

    /// Tells the state what was read at a block.
    fn tell(&mut self, keys: &[Key], told: Vec<Told>, at: B256) -> Result<(), Unavailable> {
        let (asked, found) = (keys.len(), told.len());
        if asked != found {
            return Err(Unavailable::Count { asked, found });
        }
        for (key, told) in keys.iter().zip(told) {
            match (*key, told) {
                (
                    Key::Account(of),
                    Told::Account {
                        code,
                        balance,
                        nonce,
                    },
                ) => self
                    .state
                    .set_account(of, Code::new(code)?, balance, nonce, at)?,
                (Key::Slot(of, slot), Told::Slot(word)) => {
                    self.state.set_slot(of, slot, word, at)?;
                }
                (key, _) => return Err(StateError::Garbled(key).into()),
            }
        }
        Ok(())
    }
}
