//! Makes `chain.capture` and `chain.corpus` in a folder from the test chain: real pools that move, a reorganisation of
//! two blocks, a new pool, and a node that restarts.
//!
//! ```sh
//! cargo run -p regatta-bot --example golden_chain -- tests/golden
//! ```
//!
//! What is captured follows from the seed but for the times; the corpus is what a replay says of it, made once.
//!
//! # Invariants
//! - A step is made once the capture has the one before, so that nothing is skipped on a slow machine.

use regatta_core::plan::LaneBinding;
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use std::error::Error;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use regatta_bot::capture::{self, capture};
use regatta_bot::cli::{Cli, Command};
use regatta_bot::replay::replay;
use regatta_bot::run::Outside;
use regatta_bot::source::Event;
use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::fetch::Kit;
use regatta_chain_lab::market::Market;
use regatta_chain_lab::mover::Mover;
use regatta_chain_lab::moves::Style;
use regatta_chain_lab::rows::{self, WETH};

const POOLS: usize = 60;
const SEED: u64 = 7;

/// Steps before the reorganisation, between it and the new pool, between that and the restart, and after it.
const STEPS: [u64; 4] = [10, 8, 8, 11];
const DEPTH: u64 = 2;

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(2);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let folder = std::env::args_os().nth(1).ok_or("name a folder")?;
    let path = |name| Path::new(&folder).join(name).to_string_lossy().into_owned();
    let (file, corpus) = (path("chain.capture"), path("chain.corpus"));
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/uniswap_v2_pairs.csv");
    let rows = rows::choose(&rows::read(Path::new(data))?, POOLS, WETH)?;
    let mut node = Anvil::start(&Kit::fetch()?, Options::default())?;
    let market = Market::lay_out(&mut node, &rows)?;
    let factory = market.factory.to_string();
    let style = Style {
        moves: 3,
        ..Style::default()
    };
    let mut mover = Mover::new(&mut node, market, SEED, style)?;

    let blocks = (STEPS.iter().sum::<u64>() + DEPTH + 1).to_string();
    let ws = node.ws();
    let args = [
        "regatta",
        "capture",
        "--rpc",
        &ws,
        "--factory",
        &factory,
        "--out",
        &file,
        "--blocks",
        &blocks,
        "--force",
    ];
    let Command::Capture(args) = Cli::try_parse_from(args)?.command else {
        return Err("not a capture".into());
    };
    let spec = ThreadSpec {
        kernel_name: "capture".to_owned(),
        name: "golden/capture".to_owned(),
        owner: "golden".to_owned(),
        role: "capture".to_owned(),
        sizing: "one".to_owned(),
        binding: LaneBinding::Pinned,
    };
    let running = Census::new().spawn(spec, move || {
        capture(&args, io::stdout(), None).map_err(|error| error.to_string())
    })?;
    let caught_up = |node: &mut Anvil| -> Outcome<()> {
        let head = node.rpc().head()?.hash;
        let end = Instant::now() + FAR;
        while last(&file) != Some(head.0) {
            if running.is_finished() || Instant::now() > end {
                return Err(format!("the capture does not come to {head}").into());
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        Ok(())
    };
    for (part, steps) in STEPS.into_iter().enumerate() {
        caught_up(&mut node)?;
        match part {
            1 => drop(mover.reorg(&mut node, DEPTH)?),
            2 => {
                let pools = &mover.market().pools;
                let [first, second] =
                    apart(&pools.iter().map(|pool| pool.tokens)).ok_or("all are paired")?;
                drop(mover.create_pair(&mut node, [first, second], [1 << 70, 1 << 70])?);
            }
            3 => node.restart()?,
            _ => {}
        }
        for _ in 0..steps {
            caught_up(&mut node)?;
            mover.step(&mut node)?;
        }
    }
    running.join().map_err(|_| "the capture panicked")??;
    let args = [
        "regatta",
        "replay",
        &file,
        "--write",
        &corpus,
        "--strict",
        "--quota",
        "2000",
        "--profile",
        "serial",
    ];
    let Command::Replay(args) = Cli::try_parse_from(args)?.command else {
        return Err("not a replay".into());
    };
    Ok(replay(&args, io::stdout(), Outside::default())?)
}

/// The last block of a capture that is being written.
fn last(file: &str) -> Option<[u8; 32]> {
    let mut reader = capture::open(Path::new(file)).ok()?;
    let mut last = None;
    while let Ok(Some(recorded)) = reader.next_event() {
        last = match recorded.event {
            Event::Block(block) => Some(*block.hash.as_bytes()),
            Event::Reread { head, .. } => Some(*head.hash.as_bytes()),
            _ => None,
        };
    }
    last
}

/// Two tokens without a pool of both, each with one of its own.
fn apart<T: Copy + PartialEq>(pools: &(impl Iterator<Item = [T; 2]> + Clone)) -> Option<[T; 2]> {
    let paired = |a: T, b: T| pools.clone().any(|pool| pool == [a, b] || pool == [b, a]);
    pools.clone().flatten().find_map(|first| {
        let mut others = pools.clone().flatten();
        let second = others.find(|second| *second != first && !paired(first, *second))?;
        Some([first, second])
    })
}
