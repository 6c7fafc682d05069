//! An executor on the chain, and what is said of the settlements through it, against what the node says.

use crate::bot::{Child, FAR};
use crate::lab::Lab;
use crate::said::hash;
use alloy_primitives::B256;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// The owner's key, its executor, and the ledger.
pub(crate) struct Settling {
    folder: TempDir,
    executor: String,
}

impl Settling {
    /// Deploys the executor by the bot's own verb, in a block of its own.
    pub(crate) fn deploy(lab: &mut Lab) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        std::fs::write(&key, format!("{}\n", lab.node.accounts()[0].key)).unwrap();
        std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_regatta"))
            .args(["settle", "deploy", "--rpc", &lab.node.ws(), "--key"])
            .arg(key)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut child = Child(child);
        let end = Instant::now() + FAR;
        while lab.waiting() == 0 {
            assert!(Instant::now() < end, "the executor's creation is not sent");
            std::thread::yield_now();
        }
        lab.step();
        let mut executor = String::new();
        let mut out = child.0.stdout.take().unwrap();
        out.read_to_string(&mut executor).unwrap();
        assert!(child.0.wait().unwrap().success());
        let executor = executor.trim().to_owned();
        Self { folder, executor }
    }

    /// The arguments with which the bot settles.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
        let (key, ledger) = (path("key"), path("ledger"));
        [
            "--settle",
            "live",
            "--key",
            &key,
            "--ledger",
            &ledger,
            "--executor",
            &self.executor,
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

/// Settles what it published, brings in what it predicted, and takes back what an orphan had brought in. How many
/// settlements stand.
pub(crate) fn check(records: &[Value], lab: &mut Lab) -> usize {
    let mut winners: BTreeMap<(B256, String), String> = BTreeMap::new();
    let mut included: BTreeMap<u64, &Value> = BTreeMap::new();
    for record in records {
        match record["type"].as_str().unwrap() {
            "block" => {
                for winner in record["winners"].as_array().unwrap() {
                    let text = |key: &str| winner[key].as_str().unwrap().to_owned();
                    winners.insert((hash(record, "hash"), text("path")), text("profit"));
                }
            }
            "settlement" if record["outcome"] == "included" => {
                let path = record["path"].as_str().unwrap().to_owned();
                let published = winners.get(&(hash(record, "found_hash"), path));
                assert_eq!(
                    record["predicted"].as_str(),
                    published.map(String::as_str),
                    "{record}"
                );
                assert_eq!(record["predicted"], record["realised"], "{record}");
                let before = included.insert(record["id"].as_u64().unwrap(), record);
                assert_eq!(before, None, "settled twice: {record}");
            }
            "settlement" if record["outcome"] == "reversed" => {
                included.remove(&record["id"].as_u64().unwrap());
                assert!(
                    lab.history.is_orphaned(hash(record, "block_hash")),
                    "{record}"
                );
            }
            _ => {}
        }
    }
    for record in included.values() {
        let block = hash(record, "block_hash");
        assert!(lab.history.canonical().contains(&block), "{record}");
        let receipt = lab
            .node
            .rpc()
            .call("eth_getTransactionReceipt", json!([record["transaction"]]));
        let receipt = receipt.unwrap();
        assert_eq!(
            (&receipt["status"], hash(&receipt, "blockHash")),
            (&json!("0x1"), block)
        );
    }
    included.len()
}
