//! A chain, its mempool and its node, for one account: as plain as can be.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use regatta_settle::abi::{self, Cycle};
use regatta_settle::engine::{Answer, DryRun, Head, Receipt, ReceiptLog, Sent};
use regatta_settle::ledger::Block;
use regatta_settle::nonce::Counts;
use regatta_settle::tx::Signed;

/// What a call of the executor takes.
pub(crate) const GAS: u64 = 100_000;

/// A block.
#[derive(Clone)]
pub(crate) struct Mined {
    pub(crate) block: Block,
    pub(crate) base_fee: u128,
    pub(crate) receipts: Vec<(Signed, Receipt)>,
}

/// The node.
pub(crate) struct Node {
    pub(crate) executor: Address,
    pub(crate) chain: Vec<Mined>,
    pub(crate) pool: BTreeMap<u64, Signed>,
    salt: u64,
    /// Whether cycles run, whatever their data says.
    pub(crate) all_run: bool,
}

impl Node {
    pub(crate) fn new(executor: Address) -> Self {
        let mut node = Self {
            executor,
            chain: Vec::new(),
            pool: BTreeMap::new(),
            salt: 0,
            all_run: false,
        };
        for _ in 0..10 {
            node.mine(1000, |_| false);
        }
        node
    }

    pub(crate) fn head(&self) -> Head {
        let last = self.chain.last().unwrap();
        Head {
            block: last.block,
            base_fee: last.base_fee,
        }
    }

    pub(crate) fn latest(&self) -> u64 {
        self.chain
            .iter()
            .map(|mined| mined.receipts.len() as u64)
            .sum()
    }

    pub(crate) fn pending(&self) -> u64 {
        let mut nonce = self.latest();
        while self.pool.contains_key(&nonce) {
            nonce += 1;
        }
        nonce
    }

    pub(crate) fn counts(&self) -> Counts {
        let (latest, pending) = (self.latest(), self.pending());
        Counts { latest, pending }
    }

    /// What a cycle gives in the state at a height: by its data, its profit or a revert.
    fn outcome(&self, data: &[u8], number: u64) -> Result<U256, Vec<u8>> {
        let cycle = Cycle::from_calldata(data).unwrap();
        if number > cycle.expiry {
            // Expired(uint256)
            let mut error = keccak256("Expired(uint256)")[..4].to_vec();
            error.extend(U256::from(cycle.expiry).to_be_bytes::<32>());
            return Err(error);
        }
        let luck = keccak256([data, &number.to_be_bytes()].concat())[0];
        if luck < 60 && !self.all_run {
            return Err(alloy_sol_types::Revert::from("UniswapV2: K").abi_encode_it());
        }
        Ok(cycle.min_profit)
    }

    pub(crate) fn dry_run(&self, data: &[u8], at: Block) -> Answer {
        if !self.chain.iter().any(|mined| mined.block == at) {
            return Answer::Failed("header not found".to_owned());
        }
        Answer::DryRun(match self.outcome(data, at.number) {
            Ok(profit) => DryRun::Done {
                output: profit.to_be_bytes::<32>().into(),
                gas: GAS,
            },
            Err(data) => DryRun::Reverted(data.into()),
        })
    }

    pub(crate) fn receipt(&self, hash: B256) -> Answer {
        let mut all = self.chain.iter().flat_map(|mined| &mined.receipts);
        let found = all.find(|(signed, _)| signed.hash == hash);
        Answer::Receipt(found.map(|(_, receipt)| receipt.clone()))
    }

    /// Takes a transaction, by the rules that nodes have.
    pub(crate) fn send(&mut self, raw: &Bytes) -> Sent {
        let signed = Signed::decode(raw).unwrap();
        let nonce = signed.transaction.nonce;
        if nonce < self.latest() {
            return Sent::NonceTooLow;
        }
        if let Some(old) = self.pool.get(&nonce) {
            if old.hash == signed.hash {
                return Sent::Accepted;
            }
            let enough = |new: u128, old: u128| new * 10 >= old * 11;
            let (new, old) = (&signed.transaction, &old.transaction);
            if !enough(new.max_fee_per_gas, old.max_fee_per_gas)
                || !enough(new.max_priority_fee_per_gas, old.max_priority_fee_per_gas)
            {
                return Sent::Underpriced;
            }
        }
        self.pool.insert(nonce, signed);
        Sent::Accepted
    }

    /// A block with what can pay of the mempool and is `wanted`, in order.
    pub(crate) fn mine(&mut self, base_fee: u128, wanted: impl Fn(&Signed) -> bool) -> Head {
        let number = self.chain.len() as u64;
        self.salt += 1;
        let hash = keccak256([number.to_be_bytes(), self.salt.to_be_bytes()].concat());
        let block = Block { number, hash };
        let mut receipts = Vec::new();
        let mut nonce = self.latest();
        while let Some(signed) = self.pool.get(&nonce) {
            let tx = &signed.transaction;
            if tx.max_fee_per_gas < base_fee || !wanted(signed) {
                break;
            }
            let signed = self.pool.remove(&nonce).unwrap();
            nonce += 1;
            let receipt = self.run(&signed, block, base_fee);
            receipts.push((signed, receipt));
        }
        self.chain.push(Mined {
            block,
            base_fee,
            receipts,
        });
        self.head()
    }

    fn run(&self, signed: &Signed, block: Block, base_fee: u128) -> Receipt {
        let tx = &signed.transaction;
        let tip = tx
            .max_priority_fee_per_gas
            .min(tx.max_fee_per_gas - base_fee);
        let call = tx.to == Some(self.executor);
        let outcome = if call {
            self.outcome(&tx.input, block.number).map(Some)
        } else {
            Ok(None)
        };
        let log = |profit| {
            let base = Cycle::from_calldata(&tx.input).unwrap().base;
            let (topics, data) = abi::settled_log(base, profit);
            ReceiptLog {
                address: self.executor,
                topics: topics.to_vec(),
                data,
            }
        };
        Receipt {
            block,
            succeeded: outcome.is_ok(),
            gas_used: if call { GAS - 1 } else { 21_000 },
            gas_price: U256::from(base_fee + tip),
            logs: outcome.ok().flatten().map(log).into_iter().collect(),
        }
    }

    /// Takes the last block back; what it had goes to the mempool, as far as it is `kept`.
    pub(crate) fn pop(&mut self, kept: bool) -> Block {
        let mined = self.chain.pop().unwrap();
        for (signed, _) in mined.receipts {
            if kept {
                self.pool.insert(signed.transaction.nonce, signed);
            }
        }
        mined.block
    }

    /// Every transaction in a block, with its receipt.
    pub(crate) fn mined(&self) -> impl Iterator<Item = &(Signed, Receipt)> {
        self.chain.iter().flat_map(|mined| &mined.receipts)
    }

    /// The nonces that the mempool or a block has.
    pub(crate) fn held(&self) -> BTreeSet<u64> {
        (0..self.latest())
            .chain(self.pool.keys().copied())
            .collect()
    }
}

/// An error's encoding, without naming the trait everywhere.
trait Encoded {
    fn abi_encode_it(&self) -> Vec<u8>;
}

impl<T: alloy_sol_types::SolError> Encoded for T {
    fn abi_encode_it(&self) -> Vec<u8> {
        self.abi_encode()
    }
}
