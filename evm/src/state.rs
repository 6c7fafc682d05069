//! What is known of the chain's state at one block.
//!
//! A [`State`] says of each account and slot either what it holds at the block that the state is at, or that it
//! is not known. Cloning one is cheap, and a clone is not changed by what is done to the other: the owner of the
//! state can correct it while simulations over an earlier clone are under way.
//!
//! # What is kept over a block, and why that is exact
//! - *Code* that is final ([`Code::is_final`]) is kept until a revert to a block before the one it was read at. This
//!   assumes the Cancun rules or later: before them a contract could destroy itself.
//! - *Everything else*, so slots, balances, nonces, delegations and the absence of code, is forgotten by
//!   [`State::advance`]: it holds at one block, and that is told by its hash.
//! - [`State::advance_pairs`] also keeps slots of contracts whose code hash was declared to be that of
//!   `UniswapV2Pair` ([`State::declare_pair`]). By its source, the slots 6 and 7 (the tokens) are written by
//!   `initialize` alone, which the factory calls in the transaction that creates the pair; slot 12 (the lock) is 1
//!   whenever no call of the pair is under way; and the slots 8, 9 and 10 (reserves and cumulative prices) are
//!   written by `_update` alone, which always emits `Sync`. So they are kept over a block in which the pair had no
//!   log. Assumed are: the block builds on the block that the state was at (else all is forgotten), the pair was
//!   initialised when its slots were read, and the logs given are all of the block's.
//!   Nothing is kept of tokens: a token may change any balance without a log.
//!
//! # Invariants
//! - [`State::code`] and [`State::slot`] answer only what was told for the block that the state is at, or what is
//!   kept as above.
//! - What is told for another block is refused and changes nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};

use crate::code::Code;
use crate::pair;

/// A block: what the state holds at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct BlockId {
    /// Its height.
    pub number: u64,
    /// Its identity.
    pub hash: B256,
}

/// A part of the state that a simulation needs and that is not known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    /// The code, balance and nonce at an address: tell them with [`State::set_account`].
    Account(Address),
    /// A storage slot of an account: tell it with [`State::set_slot`].
    Slot(Address, U256),
}

/// What was told is about another block than the state is at. It is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the answer is about the block {answered}, and the state is at the block {at}: ask again")]
pub struct Stale {
    /// The block that the answer is about.
    pub answered: B256,
    /// The block that the state is at.
    pub at: B256,
}

/// What is known of the chain's state at one block. See the module's documentation.
#[derive(Clone, Default, Debug)]
pub struct State(Arc<Inner>);

#[derive(Clone, Default, Debug)]
struct Inner {
    head: BlockId,
    /// Counts the blocks that the state has been at. What has another count is not known.
    age: u64,
    accounts: HashMap<Address, Arc<Account>>,
    /// Each code once, however many accounts have it.
    codes: HashMap<B256, Code>,
    pairs: HashSet<B256>,
}

#[derive(Clone, Default, Debug)]
struct Account {
    code: Option<Told>,
    funds: Option<Funds>,
    slots: HashMap<U256, Slot>,
}

#[derive(Clone, Debug)]
struct Told {
    code: Code,
    /// The height of the block that it was read at.
    read_at: u64,
    age: u64,
}

#[derive(Clone, Copy, Debug)]
struct Funds {
    balance: U256,
    nonce: u64,
    age: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    value: U256,
    age: u64,
}

impl State {
    /// A state in which nothing is known, at a block.
    #[must_use]
    pub fn new(head: BlockId) -> Self {
        Self(Arc::new(Inner {
            head,
            ..Inner::default()
        }))
    }

    // Getters.

    /// The block that the state is at.
    #[must_use]
    pub fn head(&self) -> BlockId {
        self.0.head
    }

    /// The code at an address. An account without code has an empty one.
    #[must_use]
    pub fn code(&self, address: Address) -> Option<&Code> {
        let told = self.0.accounts.get(&address)?.code.as_ref()?;
        (told.age == self.0.age || told.code.is_final()).then_some(&told.code)
    }

    /// The balance in wei and the nonce of an address.
    #[must_use]
    pub fn funds(&self, address: Address) -> Option<(U256, u64)> {
        let funds = self.0.accounts.get(&address)?.funds?;
        (funds.age == self.0.age).then_some((funds.balance, funds.nonce))
    }

    /// What a slot holds.
    #[must_use]
    pub fn slot(&self, address: Address, slot: U256) -> Option<U256> {
        let slot = self.0.accounts.get(&address)?.slots.get(&slot)?;
        (slot.age == self.0.age).then_some(slot.value)
    }

    /// What a slot held when it was last known: good for guessing what else will be asked for, and for nothing else.
    pub(crate) fn last_known(&self, address: Address, slot: U256) -> Option<U256> {
        self.0
            .accounts
            .get(&address)?
            .slots
            .get(&slot)
            .map(|slot| slot.value)
    }

    /// Whether what the key names is known.
    #[must_use]
    pub fn knows(&self, key: Key) -> bool {
        match key {
            Key::Account(address) => self.code(address).is_some() && self.funds(address).is_some(),
            Key::Slot(address, slot) => self.slot(address, slot).is_some(),
        }
    }

    // Inputs.

    /// Declares that code with this hash is that of `UniswapV2Pair`, for [`State::advance_pairs`].
    pub fn declare_pair(&mut self, code_hash: B256) {
        if !self.0.pairs.contains(&code_hash) {
            self.inner().pairs.insert(code_hash);
        }
    }

    /// Tells what is at an address: the answers of `eth_getCode`, `eth_getBalance` (wei) and
    /// `eth_getTransactionCount` for the block `at`.
    pub fn set_account(
        &mut self,
        address: Address,
        code: Code,
        balance: U256,
        nonce: u64,
        at: B256,
    ) -> Result<(), Stale> {
        self.set_code(address, code, at)?;
        let age = self.0.age;
        self.account(address).funds = Some(Funds {
            balance,
            nonce,
            age,
        });
        Ok(())
    }

    /// Tells the code at an address, at the block `at`.
    pub fn set_code(&mut self, address: Address, code: Code, at: B256) -> Result<(), Stale> {
        self.check(at)?;
        let inner = self.inner();
        let code = inner.codes.entry(code.hash()).or_insert(code).clone();
        let told = Told {
            code,
            read_at: inner.head.number,
            age: inner.age,
        };
        self.account(address).code = Some(told);
        Ok(())
    }

    /// Tells what a slot holds, at the block `at`.
    pub fn set_slot(
        &mut self,
        address: Address,
        slot: U256,
        value: U256,
        at: B256,
    ) -> Result<(), Stale> {
        self.check(at)?;
        let age = self.0.age;
        self.account(address)
            .slots
            .insert(slot, Slot { value, age });
        Ok(())
    }

    /// Tells the reserves of a pair at the block `at`, and the time of its last update in seconds, modulo 2³²: its
    /// slot 8. A `Sync` log tells the reserves; its block's timestamp is the time.
    pub fn reserves(
        &mut self,
        pool: Address,
        reserves: pair::Reserves,
        at: B256,
    ) -> Result<(), Stale> {
        self.set_slot(pool, pair::RESERVES, reserves.pack(), at)
    }

    /// Goes on to a block, and forgets all but final code.
    pub fn advance(&mut self, to: BlockId) {
        let inner = self.inner();
        inner.head = to;
        inner.age = inner.age.wrapping_add(1);
    }

    /// Goes on to a block whose parent is `parent`, and in which `logged` are the addresses that had logs; keeps what
    /// the module's documentation says of pairs. If the state was at another block than `parent`, it is
    /// [`State::advance`].
    pub fn advance_pairs(&mut self, to: BlockId, parent: B256, logged: &HashSet<Address>) {
        let before = self.0.age;
        let follows = self.0.head.hash == parent;
        self.advance(to);
        if !follows {
            return;
        }
        let inner = self.inner();
        let now = inner.age;
        for (address, account) in &mut inner.accounts {
            let is_pair = account
                .code
                .as_ref()
                .is_some_and(|told| inner.pairs.contains(&told.code.hash()));
            if !is_pair {
                continue;
            }
            let moved = logged.contains(address);
            let account = Arc::make_mut(account);
            for (number, slot) in &mut account.slots {
                let stays =
                    pair::FIXED.contains(number) || (!moved && pair::BY_UPDATE.contains(number));
                if stays && slot.age == before {
                    slot.age = now;
                }
            }
        }
    }

    /// Goes back to a block, because those after it are no longer part of the chain: forgets all but final code that
    /// was read at that height or before.
    pub fn revert(&mut self, to: BlockId) {
        self.advance(to);
        let inner = self.inner();
        for account in inner.accounts.values_mut() {
            if account
                .code
                .as_ref()
                .is_some_and(|told| told.read_at > to.number)
            {
                Arc::make_mut(account).code = None;
            }
        }
    }

    /// Forgets all about an address, its code too.
    pub fn invalidate(&mut self, address: Address) {
        if self.0.accounts.contains_key(&address) {
            self.inner().accounts.remove(&address);
        }
    }

    /// Gives back the room of what is no longer known. It also serves to guess what will be asked for, so this costs
    /// some round trips in the block after it.
    pub fn shrink(&mut self) {
        let inner = self.inner();
        let age = inner.age;
        inner.accounts.retain(|_, account| {
            let account = Arc::make_mut(account);
            account.slots.retain(|_, slot| slot.age == age);
            account.funds = account.funds.filter(|funds| funds.age == age);
            account.code = account
                .code
                .take()
                .filter(|told| told.age == age || told.code.is_final());
            account.code.is_some() || account.funds.is_some() || !account.slots.is_empty()
        });
        let used: HashSet<B256> = inner
            .accounts
            .values()
            .filter_map(|a| a.code.as_ref().map(|told| told.code.hash()))
            .collect();
        inner.codes.retain(|hash, _| used.contains(hash));
    }

    fn check(&self, at: B256) -> Result<(), Stale> {
        let head = self.0.head.hash;
        if at == head {
            Ok(())
        } else {
            Err(Stale {
                answered: at,
                at: head,
            })
        }
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }

    fn account(&mut self, address: Address) -> &mut Account {
        Arc::make_mut(self.inner().accounts.entry(address).or_default())
    }
}
