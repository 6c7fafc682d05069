//! Moves the pools block by block, from a seed.
//!
//! # Invariants
//! - The same seed on the same market makes the same blocks, hash for hash, if nobody else sends transactions.
//! - What a step returns as reserves is what the chain's own Sync events say, so swaps of others are in it.
//! - The market is as at the head after every call that succeeded.

use alloy_primitives::{Address, U256};
use alloy_sol_types::SolCall;
use serde_json::{Value, json};

use crate::abi;
use crate::anvil::Anvil;
use crate::chain::{self, Mined, Send};
use crate::error::LabError;
use crate::market::{Market, Pool, reserves};
use crate::moves::{Move, Style};
use crate::rng::Rng;
use crate::rpc::{Call, Head};
use crate::token::Token;

const TOKEN_GAS: u64 = 100_000;
const SYNC_GAS: u64 = 120_000;

/// A block that the mover made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The block.
    pub head: Head,
    /// The lab's moves in it, by pool.
    pub moves: Vec<(Address, Move)>,
    /// The pools that the block changed and the reserves it leaves in them, in the order of their last events.
    pub reserves: Vec<(Address, [u128; 2])>,
    /// Transactions of the lab's that reverted, since somebody else's swap came before them.
    pub reverted: usize,
}

/// A reorganisation that the mover made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reorg {
    /// The last block that both branches have.
    pub ancestor: Head,
    /// The blocks that are no longer in the chain, lowest first.
    pub orphaned: Vec<Head>,
    /// Those that took their place, lowest first; heights are the same.
    pub adopted: Vec<Step>,
}

/// Moves the pools of one market.
#[derive(Clone, Debug)]
pub struct Mover {
    market: Market,
    style: Style,
    rng: Rng,
    /// The layout's last block: below it nothing is reorganised.
    floor: u64,
}

impl Mover {
    /// A mover of `market`, which was just laid out on `node`.
    pub fn new(
        node: &mut Anvil,
        market: Market,
        seed: u64,
        style: Style,
    ) -> Result<Self, LabError> {
        Ok(Self {
            market,
            style,
            rng: Rng::new(seed),
            floor: node.rpc().head()?.number,
        })
    }

    /// The market as at the head.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }

    /// Moves some pools and mines one block.
    pub fn step(&mut self, node: &mut Anvil) -> Result<Step, LabError> {
        let moves = self.plan();
        let sends = self.sends(&moves);
        let mined = chain::mine(node.rpc(), self.market.lab, &sends)?;
        self.settle(node, mined, moves)
    }

    /// Replaces the last `depth` blocks by as many others, with other moves in them. What others had sent in the old
    /// ones is gone: the node does not put it back into its pool.
    pub fn reorg(&mut self, node: &mut Anvil, depth: u64) -> Result<Reorg, LabError> {
        let tip = node.rpc().head()?.number;
        let known = tip.saturating_sub(self.floor);
        if depth == 0 || depth > known {
            return Err(LabError::Depth { depth, known });
        }
        let first = tip - depth + 1;
        let ancestor = node.rpc().block_at(first - 1)?;
        let heights = first..=tip;
        let orphaned = heights.clone().map(|number| node.rpc().block_at(number));
        let orphaned = orphaned.collect::<Result<Vec<_>, _>>()?;
        let at = json!(format!("{:#x}", ancestor.number));
        self.reread(node, &at)?;
        let mut sends = Vec::new();
        let mut planned = Vec::new();
        for block in 0..depth {
            let moves = self.plan();
            for send in self.sends(&moves) {
                sends.push(json!([send.request(self.market.lab), block]));
            }
            for (pool, made) in &moves {
                if let Some(at) = self.market.position(*pool)
                    && let Some(pool) = self.market.pools.get_mut(at)
                {
                    pool.reserves = made.after(pool.reserves);
                }
            }
            planned.push(moves);
        }
        node.rpc().call("anvil_reorg", json!([depth, sends]))?;
        let mut adopted = Vec::new();
        for (number, moves) in heights.zip(planned) {
            let head = node.rpc().block_at(number)?;
            let reserves = chain::synced(node.rpc(), head.hash)?;
            let reverted = moves.len().saturating_sub(reserves.len());
            adopted.push(Step {
                head,
                moves,
                reserves,
                reverted,
            });
        }
        self.reread(node, &json!("latest"))?;
        Ok(Reorg {
            ancestor,
            orphaned,
            adopted,
        })
    }

    /// Has the factory make the pair of two tokens with exactly these reserves, in a block of its own. A token that
    /// the market lacks is put on the chain first, with 18 decimals.
    pub fn create_pair(
        &mut self,
        node: &mut Anvil,
        tokens: [Address; 2],
        reserves: [u128; 2],
    ) -> Result<Step, LabError> {
        let [a, b] = tokens;
        let (tokens, reserves) = if a < b {
            (tokens, reserves)
        } else {
            let [of_a, of_b] = reserves;
            ([b, a], [of_b, of_a])
        };
        for token in tokens {
            if !self.market.tokens.contains_key(&token) {
                self.add_token(node, token)?;
            }
        }
        let pool = Pool {
            address: self.market.pair_address(tokens, &node.kit().pair_init),
            tokens,
            reserves,
        };
        let [create, fill] = self.market.creation(&pool);
        let given = tokens.into_iter().zip(reserves).map(|(token, reserve)| {
            let value = U256::from(reserve);
            let to = pool.address;
            Send::new(
                token,
                abi::transferCall { to, value }.abi_encode(),
                TOKEN_GAS,
            )
        });
        let sends: Vec<Send> = [create].into_iter().chain(given).chain([fill]).collect();
        let mined = chain::mine(node.rpc(), self.market.lab, &sends)?;
        mined.all_succeeded()?;
        self.market.pools.push(pool);
        self.settle(node, mined, Vec::new())
    }

    /// Makes a token keep `bps` parts in 10,000 of each transfer from now on, in a block of its own.
    pub fn tax(&mut self, node: &mut Anvil, token: Address, bps: u16) -> Result<Step, LabError> {
        let known = self.market.tokens.get_mut(&token);
        known.ok_or(LabError::Unknown(token, "token"))?.tax_bps = bps;
        let call = abi::setTaxCall { bps }.abi_encode();
        let sends = [Send::new(token, call, TOKEN_GAS)];
        let mined = chain::mine(node.rpc(), self.market.lab, &sends)?;
        mined.all_succeeded()?;
        self.settle(node, mined, Vec::new())
    }

    /// Takes all of one token (0 or 1) from a pool, as a deflating token does, and has the pool see it: a reserve of
    /// zero. In a block of its own.
    pub fn empty(
        &mut self,
        node: &mut Anvil,
        pool: Address,
        side: usize,
    ) -> Result<Step, LabError> {
        let unknown = || LabError::Unknown(pool, "pool");
        let at = self.market.position(pool).ok_or_else(unknown)?;
        let found = self.market.pools.get(at).ok_or_else(unknown)?;
        let token = *found.tokens.get(side).ok_or_else(unknown)?;
        let held = abi::balanceOfCall { holder: pool }.abi_encode();
        let Call { method, params } = Call::view(token, &held);
        let value: U256 = node.rpc().ask(method, params)?;
        let deflate = abi::deflateCall {
            holder: pool,
            value,
        };
        let sends = [
            Send::new(token, deflate.abi_encode(), TOKEN_GAS),
            Send::new(pool, abi::syncCall {}.abi_encode(), SYNC_GAS),
        ];
        let mined = chain::mine(node.rpc(), self.market.lab, &sends)?;
        mined.all_succeeded()?;
        self.settle(node, mined, Vec::new())
    }

    fn add_token(&mut self, node: &mut Anvil, address: Address) -> Result<(), LabError> {
        let token = Token {
            decimals: 18,
            symbol: "LAB".to_owned(),
            tax_bps: 0,
        };
        token.put(node.rpc(), address, self.market.lab)?;
        self.market.tokens.insert(address, token);
        Ok(())
    }

    /// Moves of distinct pools.
    fn plan(&mut self) -> Vec<(Address, Move)> {
        let mut moves: Vec<(Address, Move)> = Vec::new();
        for _ in 0..self.style.moves {
            let at = self.rng.below(self.market.pools.len());
            let Some(pool) = self.market.pools.get(at) else {
                continue;
            };
            let taxed = |token: &Address| {
                let token = self.market.tokens.get(token);
                token.is_none_or(|token| token.tax_bps != 0)
            };
            let fees = pool.tokens.iter().any(taxed);
            let planned = Move::plan(&mut self.rng, self.style, pool, fees);
            let again = moves.iter().any(|(known, _)| *known == pool.address);
            if let Some(planned) = planned.filter(|_| !again) {
                moves.push((pool.address, planned));
            }
        }
        moves
    }

    fn sends(&self, moves: &[(Address, Move)]) -> Vec<Send> {
        let of_move = |(pool, made): &(Address, Move)| {
            let at = self.market.position(*pool)?;
            let pool = self.market.pools.get(at)?;
            Some(made.sends(pool, self.market.lab))
        };
        moves.iter().filter_map(of_move).flatten().collect()
    }

    /// Takes over what the block did.
    fn settle(
        &mut self,
        node: &mut Anvil,
        mined: Mined,
        moves: Vec<(Address, Move)>,
    ) -> Result<Step, LabError> {
        let Mined { head, sent, done } = mined;
        let reserves = chain::synced(node.rpc(), head.hash)?;
        for (pool, found) in &reserves {
            if let Some(at) = self.market.position(*pool)
                && let Some(pool) = self.market.pools.get_mut(at)
            {
                pool.reserves = *found;
            }
        }
        Ok(Step {
            head,
            moves,
            reserves,
            reverted: sent - done,
        })
    }

    /// Reads all reserves in the state after a block; pools that are not there leave the market.
    fn reread(&mut self, node: &mut Anvil, at: &Value) -> Result<(), LabError> {
        let found = reserves(node.rpc(), &self.market.pools, at)?;
        let pools = self.market.pools.iter().zip(found);
        let there = pools
            .filter_map(|(pool, reserves)| reserves.map(|reserves| Pool { reserves, ..*pool }));
        self.market.pools = there.collect();
        Ok(())
    }
}
