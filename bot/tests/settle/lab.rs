//! A real node with real pools, an executor on it, and the binary run against both.

use alloy_primitives::{U256, hex};
use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::fetch::Kit;
use regatta_chain_lab::market::{FACTORY, Market};
use regatta_chain_lab::mover::{Mover, Step};
use regatta_chain_lab::moves::Style;
use regatta_chain_lab::rows::{self, WETH};
use regatta_settle::abi::Hop;
use regatta_settle::ledger::{Ledger, Summary};
use serde_json::{Value, json};
use std::fs::{File, Permissions, read_to_string};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(1);

/// Looks until something holds. What is looked at is another process, which only a look can tell.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + FAR;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A child that does not outlive its test.
pub(crate) struct Guarded(pub(crate) Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // One that has ended is no process any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The node, what moves its pools, and the files of the bot.
pub(crate) struct Lab {
    pub(crate) node: Anvil,
    pub(crate) mover: Mover,
    pub(crate) folder: TempDir,
    /// The executor, once it is deployed.
    pub(crate) executor: String,
}

impl Lab {
    /// A node with so many pools, and the executor deployed by the verb.
    pub(crate) fn new(seed: u64) -> Self {
        let kit = Kit::fetch().unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/uniswap_v2_pairs.csv");
        let rows = rows::choose(&rows::read(&file).unwrap(), 40, WETH).unwrap();
        let mut node = Anvil::start(&kit, Options::default()).unwrap();
        let market = Market::lay_out(&mut node, &rows).unwrap();
        let style = Style {
            moves: 4,
            gap_percent: 60,
            swap_percent: 30,
        };
        let mover = Mover::new(&mut node, market, seed, style).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut lab = Self {
            node,
            mover,
            folder,
            executor: String::new(),
        };
        lab.write_key("key", 0, 0o600);
        lab.executor = lab.deploy();
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes the key of the node's account `at` to a file.
    pub(crate) fn write_key(&self, name: &str, at: usize, mode: u32) {
        let path = self.path(name);
        std::fs::write(&path, format!("{}\n", self.node.accounts()[at].key)).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }

    fn deploy(&mut self) -> String {
        let ws = self.node.ws();
        let child = Command::new(env!("CARGO_BIN_EXE_regatta"))
            .args(["settle", "deploy", "--rpc", &ws, "--key", &self.text("key")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut child = Guarded(child);
        until("the creation to be sent", || self.pending() == 1);
        self.mover.step(&mut self.node).unwrap();
        let mut out = String::new();
        child
            .0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        assert!(child.0.wait().unwrap().success());
        out.trim().to_owned()
    }

    /// Transactions that wait at the node.
    pub(crate) fn pending(&mut self) -> u64 {
        let status = self.node.rpc().call("txpool_status", json!([])).unwrap();
        let count = status["pending"].as_str().unwrap().to_owned();
        u64::from_str_radix(&count[2..], 16).unwrap()
    }

    /// The owner's transactions in blocks.
    pub(crate) fn nonce(&mut self) -> u64 {
        let owner = self.node.accounts()[0].address;
        let rpc = self.node.rpc();
        let count = rpc.call("eth_getTransactionCount", json!([owner, "latest"]));
        u64::from_str_radix(&count.unwrap().as_str().unwrap()[2..], 16).unwrap()
    }

    /// A run that settles, with these arguments beside.
    pub(crate) fn run(&self, more: &[&str]) -> Bot {
        Bot::start(self, more)
    }

    /// The arguments of a live run.
    pub(crate) fn live(&self, more: &[&str]) -> Vec<String> {
        let mut args = vec![
            "--settle".to_owned(),
            "live".to_owned(),
            "--key".to_owned(),
            self.text("key"),
            "--executor".to_owned(),
            self.executor.clone(),
            "--ledger".to_owned(),
            self.text("ledger"),
        ];
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        args
    }

    /// Moves the pools by a block, and gives the bot the time to have published it and to have sent what it found.
    pub(crate) fn step(&mut self, bot: &Bot) -> Step {
        let step = self.mover.step(&mut self.node).unwrap();
        let hash = step.head.hash.to_string();
        until("the block's record", || bot.says_block(&hash));
        step
    }

    /// Steps until the bot has sent something that waits at the node.
    pub(crate) fn step_until_sent(&mut self, bot: &Bot) {
        for _ in 0..40 {
            self.step(bot);
            let end = Instant::now() + Duration::from_secs(2);
            while Instant::now() < end {
                if self.pending() > 0 {
                    return;
                }
                std::thread::park_timeout(Duration::from_millis(10));
            }
        }
        panic!("nothing was sent in 40 blocks: {}", bot.errors());
    }

    /// Has the lab give each of the pools a third of its reserve, at a price for gas that comes first in the next block.
    pub(crate) fn front_run(&mut self, hops: &[&Hop]) {
        let lab = self.mover.market().lab;
        for hop in hops {
            let at = self.mover.market().position(hop.pool).unwrap();
            let pool = self.mover.market().pools[at];
            let amount = U256::from(pool.reserves[0] / 3);
            let mut transfer = hex::decode("a9059cbb").unwrap();
            transfer.extend(pool.address.into_word().0);
            transfer.extend(amount.to_be_bytes::<32>());
            let sync = hex::decode("fff6cae9").unwrap();
            for (to, data) in [(pool.tokens[0], transfer), (pool.address, sync)] {
                let request = json!({
                    "from": lab, "to": to, "data": hex::encode_prefixed(data), "gas": "0x493e0",
                    "maxFeePerGas": "0x38d7ea4c68000", "maxPriorityFeePerGas": "0x174876e800",
                });
                self.node
                    .rpc()
                    .call("eth_sendTransaction", json!([request]))
                    .unwrap();
            }
        }
        // Not at the lab's usual nonce: the next block is mined without moves of its own.
        self.node.rpc().call("anvil_mine", json!(["0x1"])).unwrap();
    }

    pub(crate) fn ledger(&self) -> Summary {
        Ledger::read(&self.path("ledger")).unwrap()
    }
}

/// A run of the binary.
pub(crate) struct Bot {
    child: Guarded,
    out: PathBuf,
    err: PathBuf,
}

impl Bot {
    fn start(lab: &Lab, more: &[&str]) -> Self {
        let bot = Self::spawn(lab, more);
        until("the run to follow the chain", || {
            bot.records("crawl").len() == 1 || bot.gone()
        });
        assert!(!bot.gone(), "{}", bot.errors());
        bot
    }

    /// A run of which it is not known whether it starts.
    pub(crate) fn spawn(lab: &Lab, more: &[&str]) -> Self {
        let (out, err) = (lab.path("out"), lab.path("err"));
        let ws = lab.node.ws();
        let factory = FACTORY.to_string();
        let child = Command::new(env!("CARGO_BIN_EXE_regatta"))
            .args(["run", "--json", "--rpc", &ws, "--factory", &factory])
            .args([
                "--quota",
                "2000",
                "--max-hops",
                "3",
                "--top",
                "3",
                "--log",
                "info",
            ])
            .args(more)
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        Self {
            child: Guarded(child),
            out,
            err,
        }
    }

    fn gone(&self) -> bool {
        let pid = self.child.0.id();
        let status = read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status
            .rsplit(") ")
            .next()
            .is_none_or(|rest| rest.starts_with('Z'))
    }

    pub(crate) fn errors(&self) -> String {
        read_to_string(&self.err).unwrap()
    }

    /// The whole records so far, of one type.
    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        let text = read_to_string(&self.out).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let records = whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        records
            .filter(|record: &Value| record["type"] == kind)
            .collect()
    }

    /// Settlements that ended so.
    pub(crate) fn ended(&self, outcome: &str) -> Vec<Value> {
        let mut records = self.records("settlement");
        records.retain(|record| record["outcome"] == outcome);
        records
    }

    fn says_block(&self, hash: &str) -> bool {
        let said = |kind| {
            self.records(kind)
                .iter()
                .any(|record| record["hash"] == hash)
        };
        assert!(!self.gone(), "{}", self.errors());
        said("block") || said("missed")
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }

    /// Asks it to stop, and waits for that.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let pid = self.child.0.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("the run to end", || self.gone());
        self.child.0.wait().unwrap()
    }
}
