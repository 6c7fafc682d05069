//! Where a run starts: a market, and the source of what happens to it.

use crate::capture::{self, CaptureSource, Chain, Header, Reader};
use crate::cli::{RunArgs, SourceArgs};
use crate::cycles::{CycleGraph, GraphError};
use crate::market::{Address, Market, TokenId, UntrustedText, csv};
use crate::node::{Asker, Found, Node, NodeConfig, plain};
use crate::run::RunError;
use crate::scenario;
use crate::source::BlockSource;
use crate::source::embedded::{Config, EmbeddedSource, MarketConfig, generate};
use regatta_chain::endpoint::Endpoint;
use regatta_chain::pools::Listed;
use regatta_portable::Census;
use std::fs::File;
use std::io::BufReader;

/// WETH on Ethereum: the base token unless the command line names another.
const WETH: Address = Address::new([
    0xc0, 0x2a, 0xaa, 0x39, 0xb2, 0x23, 0xfe, 0x8d, 0x0a, 0x0e, 0x5c, 0x4f, 0x27, 0xea, 0xd9, 0x08,
    0x3c, 0x75, 0x6c, 0xc2,
]);

/// The name of the source that makes blocks up, and of its chain.
const EMBEDDED: &str = "embedded";

/// Blocks of a made-up chain, where nothing else is said.
const BLOCKS: u64 = 20;

/// Where a run starts.
pub(crate) struct Start {
    pub(crate) name: String,
    pub(crate) chain: Chain,
    pub(crate) market: Market,
    pub(crate) skipped: csv::Skipped,
    pub(crate) base: Address,
    events: Events,
}

/// Where events come from.
enum Events {
    MadeUp(Config),
    Capture(Box<CaptureSource<BufReader<File>>>),
    /// From a node's thread, which is not connected yet.
    Node(Box<(Node, Found)>),
}

/// What is said of where a run started.
pub(crate) struct Origin {
    pub(crate) name: String,
    pub(crate) chain: UntrustedText,
    pub(crate) chain_id: Option<u64>,
    pub(crate) pools: usize,
    pub(crate) tokens: usize,
    pub(crate) skipped: csv::Skipped,
    pub(crate) base: Address,
    pub(crate) base_symbol: String,
}

impl Origin {
    pub(crate) fn of(start: &Start, graph: &CycleGraph) -> Self {
        let market = &start.market;
        Self {
            name: start.name.clone(),
            chain: start.chain.name.clone(),
            chain_id: start.chain.id,
            pools: market.pools().len(),
            tokens: market.tokens().len(),
            skipped: start.skipped,
            base: start.base,
            base_symbol: market.token(graph.base()).symbol.to_string(),
        }
    }
}

/// The start of a run. A node's thread enters `census`, and `interrupted` is asked now and then while its pools are found.
pub(crate) fn start(
    args: &RunArgs,
    census: &Census,
    interrupted: impl FnMut() -> bool,
) -> Result<Start, RunError> {
    if let Some(endpoint) = &args.source.rpc {
        return at_node(&args.source, endpoint, census, interrupted);
    }
    if let Some(path) = &args.capture {
        let reader = capture::open(path).map_err(|error| RunError::Capture {
            file: UntrustedText::with_limit(&path.to_string_lossy(), usize::MAX),
            error,
        })?;
        return Ok(captured(reader, args));
    }
    let tokens = args.scenario.is_some().then_some(scenario::TOKENS);
    of_source(&args.source, tokens)
}

fn captured(reader: Reader<BufReader<File>>, args: &RunArgs) -> Start {
    let header = reader.header().clone();
    Start {
        name: header.market_name.to_string(),
        chain: header.chain,
        market: header.market,
        skipped: csv::Skipped::default(),
        base: args.source.base.unwrap_or(header.base),
        events: Events::Capture(Box::new(CaptureSource::new(
            reader,
            args.source.blocks,
            args.strict,
        ))),
    }
}

/// The start at a node: its market as it is now.
pub(crate) fn at_node(
    args: &SourceArgs,
    endpoint: &Endpoint,
    census: &Census,
    interrupted: impl FnMut() -> bool,
) -> Result<Start, RunError> {
    if args.pools.is_empty() && args.factory.is_empty() {
        return Err(RunError::NoPools);
    }
    let listed = listed(args)?;
    let config = NodeConfig {
        chain_id: args.chain_id,
        factories: args.factory.clone(),
        most_pools: args.most_pools,
        ..NodeConfig::new(endpoint.clone())
    };
    let node = Node::start(config, census)?;
    let found = node.survey(listed, interrupted)?;
    tracing::info!(
        "{} pools at block {}, {} refused, {} without reserves",
        found.market.pools().len(),
        found.head.number,
        found.refused,
        found.empty
    );
    Ok(Start {
        name: format!("the pools of {endpoint}"),
        chain: Chain {
            // As CAIP-2 names chains.
            name: UntrustedText::new(&format!("eip155:{}", found.chain_id)),
            id: Some(found.chain_id),
        },
        market: found.market.clone(),
        skipped: csv::Skipped {
            zero_reserve: found.empty,
            ..csv::Skipped::default()
        },
        base: args.base.unwrap_or(WETH),
        events: Events::Node(Box::new((node, found))),
    })
}

/// The pools of the files, as far as the chain is asked about them.
fn listed(args: &SourceArgs) -> Result<Vec<Listed>, RunError> {
    if args.pools.is_empty() {
        return Ok(Vec::new());
    }
    let market = csv::load(&args.pools, csv::PoolIsToken::Keep)?.market;
    let token = |id| plain(market.token(id).address);
    let listed = market.pools().iter().map(|pool| Listed {
        address: plain(pool.address),
        token0: token(pool.token0),
        token1: token(pool.token1),
    });
    Ok(listed.collect())
}

/// The start of what the options of a source say: a made-up chain, over pools from files or over a market of so many
/// tokens that is made up too.
pub(crate) fn of_source(args: &SourceArgs, tokens: Option<u32>) -> Result<Start, RunError> {
    let events = Events::MadeUp(Config {
        blocks: Some(args.blocks.unwrap_or(BLOCKS)),
        ..Config::with_seed(args.seed)
    });
    let chain = Chain {
        name: UntrustedText::new(EMBEDDED),
        id: None,
    };
    if args.pools.is_empty() {
        let mut config = MarketConfig::with_seed(args.seed);
        config.tokens = tokens.unwrap_or(config.tokens);
        let made = generate(&config)?;
        return Ok(Start {
            name: format!("made up from seed {}", args.seed),
            chain,
            market: made.market,
            skipped: csv::Skipped::default(),
            base: args.base.unwrap_or(made.base),
            events,
        });
    }
    let loaded = csv::load(&args.pools, csv::PoolIsToken::Keep)?;
    let names: Vec<String> = loaded
        .market
        .exchanges()
        .iter()
        .map(|exchange| exchange.name.to_string())
        .collect();
    Ok(Start {
        name: names.join(" + "),
        chain,
        market: loaded.market,
        skipped: loaded.skipped,
        base: args.base.unwrap_or(WETH),
        events,
    })
}

impl Start {
    /// The base token's place in the market.
    pub(crate) fn base_id(&self) -> Result<TokenId, GraphError> {
        let found = self.market.token_by_address(self.base);
        found.ok_or_else(|| GraphError::UnknownBase {
            base: self.base,
            tokens: self.market.tokens().len(),
        })
    }

    /// What a capture of this says before its events.
    pub(crate) fn header(&self) -> Header {
        let source = match self.events {
            Events::MadeUp(_) => EMBEDDED,
            Events::Capture(_) => "capture",
            Events::Node(_) => "rpc",
        };
        let name = &self.name;
        let kept = UntrustedText::printed_before(name, capture::MAX_TEXT);
        Header {
            made_by: UntrustedText::new(concat!("regatta ", env!("CARGO_PKG_VERSION"))),
            source: UntrustedText::new(source),
            chain: self.chain.clone(),
            base: self.base,
            // Names of many files together may be longer than a capture takes.
            market_name: kept.unwrap_or_else(|| UntrustedText::new(name)),
            market: self.market.clone(),
        }
    }

    /// The source once more, from its beginning, if it is one that is made up.
    pub(crate) fn again(&self) -> Result<Option<EmbeddedSource>, RunError> {
        let base = self.base_id()?;
        Ok(match &self.events {
            Events::MadeUp(config) => {
                Some(EmbeddedSource::new(self.market.clone(), base, *config)?)
            }
            Events::Capture(_) | Events::Node(_) => None,
        })
    }

    /// The node, if events come from one.
    pub(crate) fn into_node(self) -> Result<(Node, Found), Self> {
        match self.events {
            Events::Node(node) => Ok(*node),
            events => Err(Self { events, ..self }),
        }
    }

    /// What asks the node, if events come from one.
    pub(crate) fn asker(&self) -> Option<Asker> {
        match &self.events {
            Events::Node(node) => Some(node.0.asker().clone()),
            Events::MadeUp(_) | Events::Capture(_) => None,
        }
    }

    /// The source.
    pub(crate) fn source(self) -> Result<Box<dyn BlockSource + Send>, RunError> {
        let base = self.base_id()?;
        Ok(match self.events {
            Events::MadeUp(config) => Box::new(EmbeddedSource::new(self.market, base, config)?),
            Events::Capture(source) => source,
            // A node has no stream to be asked: it delivers by itself.
            Events::Node(_) => return Err(RunError::Cut),
        })
    }
}
