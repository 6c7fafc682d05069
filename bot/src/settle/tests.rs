//! The settler's thread against a node that does what a healthy one never does.

use super::driver::Surroundings;
use super::{Intake, Opened, Settler};
use crate::drain::{Drain, DrainConfig, Lines};
use crate::market::{Address, UntrustedText};
use crate::node::{Node, NodeConfig};
use crate::pipeline::tests::{arbitrage, made_up};
use crate::pipeline::{fleet_config, settling};
use crate::report::{Format, HopRecord, WinnerRecord};
use crate::source::Head;
use alloy_primitives::{Bytes, U256};
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::plan::{FleetPlan, PlanInput, Profile};
use regatta_core::role::FLEET_ROLES;
use regatta_fake_node::{Call, FakeNode, Reply, Script};
use regatta_portable::census::ThreadSpec;
use regatta_portable::{BINDINGS, Census, Fleet};
use regatta_settle::engine::{Config, Mode};
use regatta_settle::key::Key;
use regatta_settle::ledger::{Header, Ledger, Summary};
use regatta_settle::tx::{Signed, Transaction};
use serde_json::json;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(1);

const PROFIT: u128 = 1_000_000_000_000_000_000;

/// What the node was sent, in order.
type Raws = Arc<Mutex<Vec<Bytes>>>;

/// A settler on a fake node.
struct Bench {
    fake: FakeNode,
    raws: Raws,
    folder: tempfile::TempDir,
    intake: Intake,
    thread: Option<JoinHandle<()>>,
}

impl Bench {
    /// A settler on a node that answers the sends by `sends` and counts so many of the owner's transactions in its pool.
    fn new(mut sends: impl FnMut(&Call) -> Reply + Send + 'static, in_pool: u64) -> Self {
        let raws = Raws::default();
        let word = Bytes::from(U256::from(PROFIT).to_be_bytes::<32>());
        let seen = Arc::clone(&raws);
        let script = Script::new()
            .on("eth_call", move |_| Reply::Result(json!(word)))
            .on("eth_estimateGas", |_| Reply::Result(json!("0x30000")))
            .on("eth_getTransactionReceipt", |_| Reply::Result(json!(null)))
            .on("eth_getTransactionCount", move |call| {
                let waits = call.params[1] == "pending";
                let count = if waits { in_pool } else { 0 };
                Reply::Result(json!(format!("{count:#x}")))
            })
            .on("eth_sendRawTransaction", move |call| {
                let raw = serde_json::from_value(call.params[0].clone()).unwrap();
                seen.lock().unwrap().push(raw);
                sends(call)
            });
        let fake = FakeNode::start(script).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let key = Key::from_bytes(&[0x46; 32]).unwrap();
        let executor = alloy_primitives::Address::repeat_byte(0xee);
        let header = Header::new(1, executor, key.address());
        let config = Config {
            call_timeout: Duration::from_millis(200),
            max_replacements: 4,
            ..Config::new(Mode::Live, 1, executor, key.address())
        };
        let (ledger, _) = Ledger::open(&folder.path().join("ledger"), header).unwrap();
        let opened = Opened {
            config,
            key: Some(Arc::new(key)),
            ledger,
        };
        let (settler, intake) = Settler::new(opened);
        let config = NodeConfig::new(fake.endpoint().parse().unwrap());
        let (ready, started) = channel();
        let spec = ThreadSpec::one("rg-settler", "settler");
        let thread = Census::new().spawn(spec, move || live(settler, config, &ready));
        started.recv_timeout(FAR).unwrap();
        Self {
            fake,
            raws,
            folder,
            intake,
            thread: Some(thread.unwrap()),
        }
    }

    /// The next header.
    fn head(&self) -> Head {
        let hash = self.fake.extend(Vec::new());
        let (number, parent) = self.fake.chain(|chain| {
            let block = chain.block(hash).unwrap();
            (block.number, block.parent)
        });
        let head = Head {
            number,
            hash: crate::node::hash(hash),
            parent: crate::node::hash(parent),
            timestamp: number,
            base_fee: Some(1_000_000_000),
        };
        self.intake.head(head);
        head
    }

    /// Brings headers until something holds.
    fn heads_until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + FAR;
        while !holds(self) {
            assert!(Instant::now() < end, "waited in vain for {what}");
            self.head();
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn raws(&self) -> Vec<Bytes> {
        self.raws.lock().unwrap().clone()
    }

    /// Has a trade published, and waits until it is sent.
    fn settle(&self) {
        self.heads_until("the settler to be ready", |bench| {
            bench.intake.status().not_ready.is_none()
        });
        let found = self.head();
        self.intake.found(&found, &winner());
        self.fake
            .block_until("the send", |seen| seen.calls("eth_sendRawTransaction") > 0)
            .unwrap();
    }

    /// Ends it, and reads what it wrote down.
    fn end(mut self) -> Summary {
        self.intake.stop();
        self.thread.take().unwrap().join().unwrap();
        Ledger::read(&self.folder.path().join("ledger")).unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.intake.stop();
    }
}

/// The settler's life, with a fleet, a drain and a connection of its own.
fn live(settler: Settler, config: NodeConfig, ready: &std::sync::mpsc::Sender<()>) {
    let census = Census::new();
    let node = Node::start(config, &census).unwrap();
    node.asker().connect(1, FAR).unwrap();
    node.asker().commit(1);
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Quota::exact(MilliCpu::from_cores(2), BoundedBy::Override, Reason::Given),
        profile: Profile::Serial,
        overrides: &Overrides::none(),
        bindings: BINDINGS,
    })
    .unwrap();
    let workload = arbitrage(&made_up(1, 8), 3, 2);
    let fleet = Fleet::boot(workload, settling(fleet_config(plan, 2)), &census).unwrap();
    let sink = Lines::new(Box::new(std::io::sink()), Format::Json);
    let sinks = vec![("out".to_owned(), Box::new(sink) as Box<_>)];
    let drain = Drain::start(sinks, DrainConfig::default(), &census).unwrap();
    let surroundings = Surroundings {
        asker: node.asker().clone(),
        fleet: Arc::new(fleet),
        chain: UntrustedText::new("eip155:1"),
    };
    ready.send(()).unwrap();
    let left = settler.live(&surroundings, &drain);
    assert_eq!(left.given_up, 0);
    let closed = surroundings.fleet.close(FAR);
    assert!(closed.is_clean());
}

fn winner() -> WinnerRecord {
    let token = |byte| Address::new([byte; 20]);
    let hop = |pool, token_in, token_out| HopRecord {
        pool: Address::new([pool; 20]),
        token_in: token(token_in),
        token_out: token(token_out),
        amount_in: 5,
        amount_out: 7,
    };
    WinnerRecord {
        kind: "opportunity",
        cycle: 0,
        path: String::new(),
        input: 5,
        output: 5 + PROFIT,
        profit: PROFIT,
        least_input: true,
        hops: vec![hop(1, 20, 30), hop(2, 30, 20)],
        shown: String::new(),
    }
}

/// The nonces and distinct transactions of a ledger.
fn nonces(ledger: &Summary) -> Vec<u64> {
    ledger
        .state
        .flights()
        .filter_map(|(_, flight)| flight.nonce)
        .collect()
}

fn on_disk(path: &Path, raw: &Bytes) -> bool {
    let ledger = Ledger::read(&path.join("ledger")).unwrap();
    ledger
        .state
        .flights()
        .any(|(_, flight)| flight.attempts.iter().any(|attempt| attempt.raw == *raw))
}

#[test]
fn n17_a_send_that_is_never_answered_is_sent_again_as_it_was_and_takes_no_second_nonce() {
    let bench = Bench::new(|_| Reply::Silence, 0);
    bench.settle();
    let first = bench.raws().remove(0);
    assert!(
        on_disk(bench.folder.path(), &first),
        "it was sent before it was recorded"
    );
    // The node lacks it, and its other answers are not held up by the one that does not come.
    bench.heads_until("the second send", |bench| bench.raws().len() >= 2);
    assert_eq!(bench.raws().get(1), Some(&first));
    // Another trade waits until that one is known.
    let head = bench.head();
    let mut other = winner();
    for (hop, pool) in other.hops.iter_mut().zip(8..) {
        hop.pool = Address::new([pool; 20]);
    }
    bench.intake.found(&head, &other);
    bench.heads_until("the skip", |bench| {
        bench.intake.status().skipped.not_ready > 0
    });
    let ledger = bench.end();
    assert_eq!(nonces(&ledger), [0]);
    assert_eq!(ledger.state.totals().planned, 1);
}

#[test]
fn n18_a_replacement_is_raised_by_an_eighth_each_time_and_given_up_after_the_stated_number() {
    let underpriced = |_: &Call| Reply::error(-32000, "replacement transaction underpriced");
    let bench = Bench::new(underpriced, 0);
    bench.settle();
    bench.heads_until("it to be given up", |bench| {
        bench.intake.status().not_ready == Some("nonce_stuck")
    });
    let raws = bench.raws();
    for raw in &raws {
        assert!(
            on_disk(bench.folder.path(), raw),
            "it was sent before it was recorded"
        );
    }
    let ledger = bench.end();
    assert_eq!(nonces(&ledger), [0]);
    let (_, flight) = ledger.state.open().next().unwrap();
    // The settlement and its replacements.
    assert_eq!(flight.attempts.len(), 1 + 4);
    let sent: Vec<Transaction> = flight
        .attempts
        .iter()
        .map(|attempt| Signed::decode(&attempt.raw).unwrap().transaction)
        .collect();
    for pair in sent.windows(2) {
        let [old, new] = pair else { panic!() };
        assert_eq!(old.nonce, new.nonce);
        assert!(new.max_fee_per_gas * 8 >= old.max_fee_per_gas * 9);
        assert!(new.max_priority_fee_per_gas * 8 >= old.max_priority_fee_per_gas * 9);
    }
}
