//! The rows of a pool file, and which of them a lab uses.
//!
//! # Invariants
//! - The same rows give the same choice, on every machine.
//! - A chosen row has two reserves above zero, and its address is no row's token: the lab puts a token's code at a
//!   token's address.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use alloy_primitives::{Address, address};
use serde::Deserialize;

use crate::error::LabError;

/// Wrapped ether on mainnet, the token in which cycles start and end.
pub const WETH: Address = address!("0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2");

/// One pair of a pool file such as `data/uniswap_v2_pairs.csv`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Row {
    /// Its address.
    pub pair: Address,
    /// The token with the lower address.
    pub token0: Address,
    /// Decimals of its units.
    pub decimals0: u8,
    /// In its smallest units.
    pub reserve0: u128,
    /// The other token.
    pub token1: Address,
    /// Decimals of its units.
    pub decimals1: u8,
    /// In its smallest units.
    pub reserve1: u128,
    /// Foreign text.
    pub symbol0: String,
    /// Foreign text.
    pub symbol1: String,
}

impl Row {
    fn has(&self, token: Address) -> bool {
        self.token0 == token || self.token1 == token
    }

    /// The reserve of `token`, which is one of the two.
    fn reserve_of(&self, token: Address) -> u128 {
        if self.token0 == token {
            self.reserve0
        } else {
            self.reserve1
        }
    }
}

/// The rows of a pool file; every row must be well-formed.
pub fn read(path: &Path) -> Result<Vec<Row>, LabError> {
    let rows = csv::Reader::from_path(path).and_then(|reader| reader.into_deserialize().collect());
    rows.map_err(|source| LabError::Rows {
        path: path.to_owned(),
        source,
    })
}

/// `count` of the rows, in their order, with as many cycles of three hops through `base` as possible: triangles are
/// taken by the smaller of their two base reserves, the largest first, then rows as they come.
pub fn choose(rows: &[Row], count: usize, base: Address) -> Result<Vec<Row>, LabError> {
    let usable = usable(rows);
    if usable.len() < count {
        let usable = usable.len();
        return Err(LabError::TooFewPools {
            wanted: count,
            usable,
        });
    }
    let mut chosen = BTreeSet::new();
    for triangle in triangles(&usable, base) {
        let new = triangle.iter().filter(|at| !chosen.contains(*at)).count();
        if chosen.len() + new <= count {
            chosen.extend(triangle);
        }
    }
    let others: Vec<usize> = (0..usable.len())
        .filter(|at| !chosen.contains(at))
        .collect();
    let missing = count.saturating_sub(chosen.len());
    chosen.extend(others.into_iter().take(missing));
    let rows = chosen.into_iter().filter_map(|at| usable.get(at).copied());
    Ok(rows.cloned().collect())
}

/// How many cycles of three hops through `base` the rows have, each direction counted.
#[must_use]
pub fn cycles(rows: &[Row], base: Address) -> usize {
    2 * triangles(&usable(rows), base).len()
}

fn usable(rows: &[Row]) -> Vec<&Row> {
    let tokens: BTreeSet<Address> = rows
        .iter()
        .flat_map(|row| [row.token0, row.token1])
        .collect();
    let usable = |row: &&Row| {
        let is_token = tokens.contains(&row.pair);
        !is_token && row.reserve0 > 0 && row.reserve1 > 0 && row.token0 < row.token1
    };
    rows.iter().filter(usable).collect()
}

/// The positions of the three pools of each triangle through `base`, the deepest first.
fn triangles(rows: &[&Row], base: Address) -> Vec<[usize; 3]> {
    let with_base = rows.iter().enumerate().filter(|(_, row)| row.has(base));
    let spokes: BTreeMap<Address, (usize, u128)> = with_base
        .map(|(at, row)| {
            let other = if row.token0 == base {
                row.token1
            } else {
                row.token0
            };
            (other, (at, row.reserve_of(base)))
        })
        .collect();
    let mut found: Vec<(u128, [usize; 3])> = rows
        .iter()
        .enumerate()
        .filter_map(|(at, row)| {
            let (first, depth0) = *spokes.get(&row.token0)?;
            let (second, depth1) = *spokes.get(&row.token1)?;
            Some((depth0.min(depth1), [first, at, second]))
        })
        .collect();
    found.sort_by_key(|&(depth, pools)| (u128::MAX - depth, pools));
    found.into_iter().map(|(_, pools)| pools).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pair: u8, token0: u8, token1: u8, reserves: [u128; 2]) -> Row {
        Row {
            pair: Address::repeat_byte(pair),
            token0: Address::repeat_byte(token0),
            decimals0: 18,
            reserve0: reserves[0],
            token1: Address::repeat_byte(token1),
            decimals1: 18,
            reserve1: reserves[1],
            symbol0: String::new(),
            symbol1: String::new(),
        }
    }

    /// Base 1. Triangles (1,2),(2,3),(1,3) with depth 50 and (1,4),(4,5),(1,5) with depth 70.
    fn rows() -> Vec<Row> {
        vec![
            row(0x81, 1, 9, [7, 7]),
            row(0x82, 1, 2, [50, 9]),
            row(0x83, 2, 3, [9, 9]),
            row(0x84, 1, 3, [60, 9]),
            row(0x85, 1, 4, [70, 9]),
            row(0x86, 4, 5, [9, 9]),
            row(0x87, 1, 5, [80, 9]),
            row(0x88, 1, 6, [0, 9]),
            row(2, 1, 7, [9, 9]),
        ]
    }

    #[test]
    fn the_deepest_triangles_come_first_and_the_order_is_the_files() {
        let base = Address::repeat_byte(1);
        let pairs = |count| -> Vec<u8> {
            let chosen = choose(&rows(), count, base).unwrap();
            chosen.iter().map(|row| row.pair[0]).collect()
        };
        assert_eq!(pairs(3), [0x85, 0x86, 0x87]);
        assert_eq!(pairs(4), [0x81, 0x85, 0x86, 0x87]);
        assert_eq!(pairs(6), [0x82, 0x83, 0x84, 0x85, 0x86, 0x87]);
        assert_eq!(pairs(7).len(), 7);
        assert_eq!(cycles(&rows(), base), 4);
    }

    #[test]
    fn rows_that_no_lab_can_use_are_not_chosen() {
        let base = Address::repeat_byte(1);
        // One has no reserve, the other one's address is a token.
        let error = choose(&rows(), 8, base).unwrap_err();
        assert!(
            matches!(
                error,
                LabError::TooFewPools {
                    wanted: 8,
                    usable: 7
                }
            ),
            "{error}"
        );
    }
}
