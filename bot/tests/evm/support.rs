//! A made-up chain with real bytecode: the pairs run the exchange's own code, the tokens the lab's.

use alloy_primitives::{Address as Account, Bytes, U256, aliases::U112, hex, keccak256};
use regatta_bot::cycles::CycleGraph;
use regatta_bot::evm::{Limits, Machine, StateError, StateReader, Told};
use regatta_bot::market::{Address, ExchangeId, Market, PoolId, TokenId};
use regatta_bot::pipeline::{
    Arbitrage, BlockResult, Next, Pump, PumpConfig, Unwatched, Watch, World, crawl, fleet_config,
};
use regatta_bot::source::embedded::{Config, EmbeddedSource, Generated, MarketConfig, generate};
use regatta_bot::source::{Block, BlockHash, BlockSource, Event};
use regatta_chain_lab::fetch::Kit;
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::plan::{FleetPlan, PlanInput, Profile};
use regatta_core::role::FLEET_ROLES;
use regatta_evm::Key;
use regatta_evm::pair::{self, Reserves};
use regatta_portable::{BINDINGS, Census, Fleet};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

pub(crate) const CHAIN: u64 = 31337;
const BINS: u8 = 2;

/// Reaching it is a failure.
pub(crate) const FAR: Duration = Duration::from_mins(1);

static PAIR: LazyLock<Bytes> = LazyLock::new(|| Kit::fetch().unwrap().pair);
static TOKEN: LazyLock<Bytes> =
    LazyLock::new(|| bytes(&read("../contracts/testing/Token.json")["runtimeBytecode"]));
/// A pair that takes 25 basis points.
static PAIR_25: LazyLock<Bytes> =
    LazyLock::new(|| bytes(&read("../evm/tests/data/Tokens.json")["deployed"]["Pair25"]));

fn read(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn bytes(value: &Value) -> Bytes {
    hex::decode(value.as_str().unwrap()).unwrap().into()
}

pub(crate) fn account(address: Address) -> Account {
    Account::new(*address.as_bytes())
}

/// The slot of a holder's balance.
fn entry(holder: Account) -> U256 {
    keccak256([holder.into_word().0, [0; 32]].concat()).into()
}

/// A market of few tokens, and the blocks that a seed makes of it.
pub(crate) fn market() -> Generated {
    generate(&MarketConfig {
        tokens: 16,
        ..MarketConfig::with_seed(11)
    })
    .unwrap()
}

pub(crate) fn blocks_of(made: &Generated, count: u64) -> Vec<Block> {
    let base = made.market.token_by_address(made.base).unwrap();
    let config = Config {
        blocks: Some(count),
        ..Config::with_seed(5)
    };
    let mut source = EmbeddedSource::new(made.market.clone(), base, config).unwrap();
    let events = std::iter::from_fn(|| source.next_event().unwrap());
    events
        .map(|event| match event {
            Event::Block(block) => block,
            other => panic!("a made-up chain only grows: {other:?}"),
        })
        .collect()
}

/// What a chain that answers by the block's hash says.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) market: Market,
    /// Both reserves of each pool, by block.
    pub(crate) reserves: BTreeMap<BlockHash, Vec<[u128; 2]>>,
    pub(crate) places: BTreeMap<U256, PoolId>,
    pub(crate) tax: Option<TokenId>,
    pub(crate) fork: Option<ExchangeId>,
    /// A pool whose reserves are not what its logs say.
    pub(crate) drained: Option<PoolId>,
}

impl Chain {
    pub(crate) fn new(made: &Generated, blocks: &[Block]) -> Self {
        let mut market = made.market.clone();
        let mut reserves = BTreeMap::new();
        for block in blocks {
            for update in &block.updates {
                market.apply(update).unwrap();
            }
            let pools = market.pools().iter();
            let now = pools.map(|pool| [pool.reserve0, pool.reserve1]).collect();
            reserves.insert(block.hash, now);
        }
        let places = market
            .pool_ids()
            .map(|id| (entry(account(market.pool(id).address)), id))
            .collect();
        Self {
            market,
            reserves,
            places,
            tax: None,
            fork: None,
            drained: None,
        }
    }

    fn tell(&self, block: BlockHash, key: Key) -> Option<Told> {
        let reserves = self.reserves.get(&block)?;
        let (Key::Account(of) | Key::Slot(of, _)) = key;
        let of = Address::new(of.into_array());
        let token = self.market.token_by_address(of);
        let pool = self.market.pool_by_address(of);
        let Key::Slot(_, slot) = key else {
            let code = match (token, pool) {
                (Some(_), _) => TOKEN.clone(),
                (_, Some(pool)) if self.fork == Some(self.market.pool(pool).exchange) => {
                    PAIR_25.clone()
                }
                (_, Some(_)) => PAIR.clone(),
                _ => Bytes::new(),
            };
            return Some(Told::Account {
                code,
                balance: U256::ZERO,
                nonce: 1,
            });
        };
        let word = if let Some(token) = token {
            if slot == U256::from(4) {
                U256::from(18) | U256::from(u8::from(self.tax == Some(token)) * 100) << 8
            } else {
                let held = self.places.get(&slot).map(|id| {
                    let pool = self.market.pool(*id);
                    let side = usize::from(pool.token1 == token);
                    let is_of = pool.token0 == token || pool.token1 == token;
                    U256::from(if is_of { reserves[id.index()][side] } else { 0 })
                });
                held.unwrap_or_default()
            }
        } else if let Some(id) = pool {
            let pool = self.market.pool(id);
            let token = |id| account(self.market.token(id).address).into_word().into();
            let [of_0, of_1] = reserves[id.index()];
            let shrunk = u128::from(self.drained == Some(id));
            match slot {
                pair::TOKEN_0 => token(pool.token0),
                pair::TOKEN_1 => token(pool.token1),
                pair::RESERVES => Reserves {
                    reserve0: U112::from(of_0 - shrunk),
                    reserve1: U112::from(of_1),
                    timestamp: 1,
                }
                .pack(),
                pair::LOCK => U256::ONE,
                _ => U256::ZERO,
            }
        } else {
            U256::ZERO
        };
        Some(Told::Slot(word))
    }
}

/// What a reader does instead of answering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    Answers,
    Fails,
    /// It says nothing for as long as it may.
    Hangs,
    /// It says what does not fit the question.
    Garbles,
    /// It leaves an answer out.
    Forgets,
}

/// A reader over a chain, with its moods.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) chain: Chain,
    pub(crate) mood: Mutex<Mood>,
    pub(crate) readings: AtomicU64,
    pub(crate) keys: AtomicU64,
}

impl Reader {
    pub(crate) fn over(chain: Chain) -> Arc<Self> {
        Arc::new(Self {
            chain,
            mood: Mutex::new(Mood::Answers),
            readings: AtomicU64::new(0),
            keys: AtomicU64::new(0),
        })
    }
}

#[derive(Debug)]
struct Shared(Arc<Reader>);

impl StateReader for Shared {
    fn read(
        &self,
        block: BlockHash,
        keys: &[Key],
        wait: Duration,
    ) -> Result<Vec<Told>, StateError> {
        let reader = &self.0;
        reader.readings.fetch_add(1, Ordering::Relaxed);
        reader.keys.fetch_add(keys.len() as u64, Ordering::Relaxed);
        let mood = *reader.mood.lock().unwrap();
        let told = keys.iter().map(|key| reader.chain.tell(block, *key));
        let mut told: Vec<Told> = told
            .collect::<Option<_>>()
            .unwrap_or_else(|| panic!("asked for a block that is not the one in hand"));
        match mood {
            Mood::Answers => {}
            Mood::Fails => return Err(StateError::Failed("no such block".into())),
            Mood::Hangs => {
                let (never, answer) = std::sync::mpsc::channel::<()>();
                answer.recv_timeout(wait).unwrap_err();
                drop(never);
                return Err(StateError::TimedOut(wait));
            }
            Mood::Garbles => told.iter_mut().for_each(|told| {
                *told = match told {
                    Told::Slot(_) => Told::Account {
                        code: Bytes::new(),
                        balance: U256::ZERO,
                        nonce: 0,
                    },
                    Told::Account { .. } => Told::Slot(U256::ONE),
                };
            }),
            Mood::Forgets => drop(told.pop()),
        }
        Ok(told)
    }
}

pub(crate) fn machine(reader: &Arc<Reader>, limits: Limits) -> Machine {
    Machine::new(CHAIN, Box::new(Shared(Arc::clone(reader))), limits).unwrap()
}

/// A fleet with every cycle of at most three hops.
pub(crate) fn fleet_of(market: &Market, base: Address) -> Fleet<Arbitrage> {
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Quota::exact(MilliCpu::from_cores(2), BoundedBy::Override, Reason::Given),
        profile: Profile::Serial,
        overrides: &Overrides::none(),
        bindings: BINDINGS,
    })
    .unwrap();
    let graph = Arc::new(CycleGraph::new(market, base, 3).unwrap());
    let workload = Arbitrage::new(World::new(market.clone(), graph), BINS).unwrap();
    let fleet = Fleet::boot(workload, fleet_config(plan, BINS), &Census::new()).unwrap();
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    fleet
}

pub(crate) fn pump<'f>(
    fleet: &'f Fleet<Arbitrage>,
    machine: Option<Machine>,
    watch: &'f dyn Watch,
) -> Pump<'f> {
    let config = PumpConfig {
        bins: BINS,
        top: 3,
        min_profit: 1,
    };
    let pump = Pump::new(fleet, config, watch).unwrap();
    match machine {
        Some(machine) => pump.with_evm(machine),
        None => pump,
    }
}

/// Runs every block; the ledger balances.
pub(crate) fn run(
    made: &Generated,
    blocks: &[Block],
    machine: Option<Machine>,
) -> (Vec<BlockResult>, Fleet<Arbitrage>) {
    let fleet = fleet_of(&made.market, made.base);
    let mut pump = pump(&fleet, machine, &Unwatched);
    let results = blocks
        .iter()
        .map(|block| pump.run(std::slice::from_ref(block)).unwrap())
        .collect();
    drop(pump);
    assert_balanced(&fleet);
    (results, fleet)
}

pub(crate) fn assert_balanced(fleet: &Fleet<Arbitrage>) {
    let began = Instant::now();
    let closed = fleet.close(FAR);
    let status = fleet.status();
    assert!(closed.is_clean() && status.balanced(), "{status}");
    assert_eq!(status.abandoned, 0);
    assert!(began.elapsed() < FAR);
}

/// The pools of a result's winners, each with its cycle's.
pub(crate) fn pools(result: &BlockResult, fleet: &Fleet<Arbitrage>) -> Vec<PoolId> {
    let world = fleet.workload().world();
    let of = |winner: &regatta_bot::pipeline::Winner| {
        let cycle = world.table().get(winner.id).unwrap();
        let edges = cycle.edges().iter();
        edges
            .map(|edge| world.graph().edge(*edge).pool)
            .collect::<Vec<_>>()
    };
    result.winners.iter().flat_map(of).collect()
}

/// A result without what depends on timing and on the machine.
pub(crate) fn published(result: &BlockResult) -> BlockResult {
    BlockResult {
        cycle: Duration::ZERO,
        walks: Vec::new(),
        evm: None,
        ..result.clone()
    }
}
