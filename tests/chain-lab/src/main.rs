//! `chain-lab`: a real node with real pools that move, until it is interrupted; with `--bot` also a bot that follows it.
//!
//! Exit codes: 0 done or interrupted, 1 the lab or the bot failed, 2 the command line was not understood.

mod bot;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bot::Bot;
use clap::{Args, Parser, Subcommand};
use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::error::LabError;
use regatta_chain_lab::fetch::Kit;
use regatta_chain_lab::market::{Market, SECOND_FACTORY};
use regatta_chain_lab::mover::Mover;
use regatta_chain_lab::moves::Style;
use regatta_chain_lab::rows::{self, WETH};
use signal_hook::consts::{SIGINT, SIGTERM};
use tempfile::NamedTempFile;

/// A real Ethereum node with the real contracts and real pools.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Fetches the node and the contracts, if they are not there.
    Fetch,
    /// Starts the node, lays the pools out and moves them until interrupted.
    Up(Box<Up>),
}

#[derive(Args)]
struct Up {
    /// Pool file [default: the workspace's `data/uniswap_v2_pairs.csv`]
    #[arg(long, value_name = "FILE")]
    pools: Option<PathBuf>,
    /// Pool file of a second exchange, all of whose usable pools are added
    #[arg(long, value_name = "FILE")]
    second: Option<PathBuf>,
    /// Pools of the first file.
    #[arg(long, value_name = "N", default_value_t = 300)]
    count: usize,
    /// Milliseconds between blocks.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    block_time: u64,
    /// Ends after so many steps.
    #[arg(long, value_name = "N")]
    blocks: Option<u64>,
    /// The moves follow from it.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Pools moved in a block.
    #[arg(long, value_name = "N", default_value_t = Style::default().moves)]
    moves: usize,
    /// Replaces blocks in each step whose number is a multiple of this.
    #[arg(long, value_name = "K")]
    reorg_every: Option<u64>,
    /// Blocks that a reorganisation replaces.
    #[arg(long, value_name = "D", default_value_t = 2)]
    reorg_depth: u64,
    /// Restarts the node before each step whose number is a multiple of this.
    #[arg(long, value_name = "K")]
    restart_every: Option<u64>,
    /// Port of the node; 0 takes a free one.
    #[arg(long, value_name = "P", default_value_t = 0)]
    port: u16,
    /// The chain's id.
    #[arg(long, value_name = "ID", default_value_t = 1)]
    chain_id: u64,
    /// The bot's binary, which is started on the node and stopped with it; what it says comes in between
    #[arg(long, value_name = "FILE")]
    bot: Option<PathBuf>,
    /// Has the bot create its executor, and settle: `live`, or `shadow` for what it would send
    #[arg(long, value_name = "MODE", requires = "bot")]
    settle: Option<String>,
    /// Further arguments of the bot's
    #[arg(last = true, value_name = "ARG", requires = "bot")]
    bot_args: Vec<OsString>,
}

/// What ends the lab early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Lab(#[from] LabError),
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("{0}")]
    Bot(#[from] bot::BotError),
}

/// Between two looks at whether the bot has begun.
const LOOK: Duration = Duration::from_millis(50);

/// What the lab did.
#[derive(Default)]
struct Done {
    steps: u64,
    moved: usize,
    orphaned: u64,
    restarts: u64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = io::stdout();
    let done = match cli.verb {
        Verb::Fetch => fetch(&mut out),
        Verb::Up(up) => up.run(&mut out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to tell if stderr is closed too.
            let _ = writeln!(io::stderr(), "chain-lab: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn fetch(out: &mut dyn Write) -> Result<(), Failure> {
    let kit = Kit::fetch()?;
    writeln!(out, "anvil {}", kit.anvil.display())?;
    Ok(())
}

impl Up {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut interrupts = Interrupts::install()?;
        let done = self.go(&mut interrupts, out);
        // The terminal's interrupt reaches the node too: what fails after it did not fail.
        match done {
            Err(Failure::Lab(_)) if interrupts.came()? => Ok(()),
            done => done,
        }
    }

    fn go(&self, interrupts: &mut Interrupts, out: &mut dyn Write) -> Result<(), Failure> {
        let standard =
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/uniswap_v2_pairs.csv");
        let file = self.pools.clone().unwrap_or_else(standard);
        let rows = rows::choose(&rows::read(&file)?, self.count, WETH)?;
        let cycles = rows::cycles(&rows, WETH);
        let kit = Kit::fetch()?;
        let options = Options {
            chain_id: self.chain_id,
            port: self.port,
            ..Options::default()
        };
        let mut node = Anvil::start(&kit, options)?;
        let mut market = Market::lay_out(&mut node, &rows)?;
        if let Some(file) = &self.second {
            let rows = rows::read(file)?;
            let count = rows::usable(&rows).len();
            let rows = rows::choose(&rows, count, WETH)?;
            market.add_exchange(&mut node, SECOND_FACTORY, &rows)?;
        }
        let key = key_file(&node)?;
        writeln!(out, "node     {}", node.ws())?;
        writeln!(out, "ipc      {}", node.ipc().display())?;
        writeln!(out, "chain    {}", self.chain_id)?;
        writeln!(out, "factory  {}", market.factory)?;
        if self.second.is_some() {
            writeln!(out, "second   {SECOND_FACTORY}")?;
        }
        writeln!(out, "base     {}", market.base)?;
        writeln!(
            out,
            "pools    {}, {cycles} cycles of 3 hops in the first {}",
            market.pools.len(),
            rows.len()
        )?;
        if let (Some(owner), Some(key)) = (node.accounts().first(), &key) {
            writeln!(out, "owner    {}", owner.address)?;
            writeln!(out, "key file {}", key.path().display())?;
        }
        out.flush()?;
        let style = Style {
            moves: self.moves,
            ..Style::default()
        };
        let settling = self.settling(&mut node, key.as_ref())?;
        let mut bot = self.start_bot(&node, &market, &settling)?;
        let mut mover = Mover::new(&mut node, market, self.seed, style)?;
        let mut done = Done::default();
        let pause = Duration::from_millis(self.block_time);
        let mut steps = 1..=self.blocks.unwrap_or(u64::MAX);
        // Reading all pools is slow on this node once the block that they are read at is not its last.
        while let Some(bot) = &mut bot
            && !bot.has_begun()
        {
            bot.check()?;
            if interrupts.within(LOOK)? {
                break;
            }
        }
        while !interrupts.within(pause)?
            && let Some(step) = steps.next()
        {
            if let Some(bot) = &mut bot {
                bot.check()?;
            }
            let due =
                |every: Option<u64>| every.is_some_and(|every| step.is_multiple_of(every.max(1)));
            let depth = self.reorg_depth.min(mover.depth(&mut node)?);
            if due(self.reorg_every) && depth > 0 {
                let reorg = mover.reorg(&mut node, depth)?;
                let from = reorg.ancestor.number;
                writeln!(out, "reorg    {depth} blocks above {from}")?;
                done.orphaned += depth;
            }
            if due(self.restart_every) {
                node.restart()?;
                writeln!(out, "restart")?;
                done.restarts += 1;
            }
            let step = mover.step(&mut node)?;
            let (number, hash) = (step.head.number, step.head.hash);
            let (changed, reverted) = (step.reserves.len(), step.reverted);
            write!(out, "mined    {number} {hash} pools {changed}")?;
            if reverted > 0 {
                write!(out, " reverted {reverted}")?;
            }
            writeln!(out)?;
            out.flush()?;
            done.steps += 1;
            done.moved += changed;
        }
        // While the node is there: the bot has no reason to reconnect.
        let ended = bot.map(Bot::stop).transpose()?;
        write!(out, "done     {} blocks, {} moves", done.steps, done.moved)?;
        write!(out, ", {} blocks orphaned", done.orphaned)?;
        write!(out, ", {} restarts", done.restarts)?;
        if ended.is_some() {
            write!(out, "; the bot stopped cleanly")?;
        }
        writeln!(out)?;
        Ok(())
    }

    /// Has the bot create its executor, in a block made for it, and says what it takes to settle by that.
    fn settling(
        &self,
        node: &mut Anvil,
        key: Option<&NamedTempFile>,
    ) -> Result<Vec<OsString>, Failure> {
        let (Some(binary), Some(mode), Some(key)) = (&self.bot, &self.settle, key) else {
            return Ok(Vec::new());
        };
        let executor = bot::deploy(binary, &node.ws(), key.path(), || {
            node.rpc().call("anvil_mine", serde_json::json!(["0x1"]))?;
            Ok::<_, LabError>(())
        })?;
        let ledger = key.path().with_extension("ledger");
        let options = ["--settle", mode, "--executor", &executor, "--ledger"];
        let mut args: Vec<OsString> = options.iter().map(OsString::from).collect();
        args.push(ledger.into());
        if mode == "live" {
            args.extend(["--key".into(), key.path().into()]);
        }
        Ok(args)
    }

    /// The bot, if there is to be one, on the pools of both exchanges.
    fn start_bot(
        &self,
        node: &Anvil,
        market: &Market,
        settling: &[OsString],
    ) -> Result<Option<Bot>, Failure> {
        let Some(binary) = &self.bot else {
            return Ok(None);
        };
        let mut args: Vec<OsString> = vec!["run".into(), "--rpc".into(), node.ws().into()];
        let second = self.second.as_ref().map(|_| SECOND_FACTORY);
        for factory in [Some(market.factory), second].into_iter().flatten() {
            args.extend(["--factory".into(), factory.to_string().into()]);
        }
        args.extend(["--base".into(), market.base.to_string().into()]);
        args.extend(settling.iter().cloned());
        args.extend(self.bot_args.iter().cloned());
        Ok(Some(Bot::start(binary, &args)?))
    }
}

/// A file with the owner's key that only this user can read; it goes with the value.
fn key_file(node: &Anvil) -> Result<Option<NamedTempFile>, Failure> {
    let Some(owner) = node.accounts().first() else {
        return Ok(None);
    };
    // Made with mode 0600.
    let mut file = tempfile::Builder::new()
        .prefix("owner-")
        .suffix(".key")
        .tempfile()?;
    writeln!(file, "{}", owner.key)?;
    file.flush()?;
    Ok(Some(file))
}

/// SIGINT and SIGTERM, as bytes on a socket: so a wait for them has a deadline.
struct Interrupts {
    signals: UnixStream,
    came: bool,
}

impl Interrupts {
    fn install() -> io::Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        let came = false;
        Ok(Self { signals, came })
    }

    /// Whether one has come by now.
    fn came(&mut self) -> io::Result<bool> {
        self.within(Duration::ZERO)
    }

    /// Waits so long for one.
    fn within(&mut self, wait: Duration) -> io::Result<bool> {
        if self.came {
            return Ok(true);
        }
        // The system takes zero for no limit.
        let wait = wait.max(Duration::from_millis(1));
        self.signals.set_read_timeout(Some(wait))?;
        match self.signals.read(&mut [0]) {
            Ok(_) => self.came = true,
            Err(error) if error.kind() == ErrorKind::Interrupted => self.came = true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        Ok(self.came)
    }
}
