//! The checker is itself checked: against trying every input, every path, every row.

use super::curve::Curve;
use super::cycles::Cycles;
use super::market::{Market, Step, decimal};
use super::staircase::{Hop, RESERVE_MAX, Search, least_input, output, search};
use num_bigint::BigUint;
use proptest::prelude::*;
use std::fmt::Write;

fn hop(reserve_in: u64, reserve_out: u64) -> Hop {
    Hop::new(&reserve_in.into(), &reserve_out.into())
}

/// The swap formula in machine integers.
fn swap(a: u64, b: u64, x: u64) -> u64 {
    997 * x * b / (1000 * a + 997 * x)
}

#[test]
fn swaps_follow_the_formula_both_ways() {
    for (a, b) in (1..=12).flat_map(|a| (1..=12).map(move |b| (a, b))) {
        let hop = hop(a, b);
        for x in 0..60 {
            assert_eq!(
                hop.output(&x.into()),
                Some(swap(a, b, x).into()),
                "{x} into {a}, {b}"
            );
        }
        for y in 0..=b + 1 {
            // With 12,000 units in, less than a thousandth of a unit is left of 12.
            let first = (0..=20_000).find(|&x| swap(a, b, x) >= y);
            assert_eq!(
                hop.least_input(&y.into()),
                first.map(BigUint::from),
                "{y} from {a}, {b}"
            );
        }
    }
}

#[test]
fn what_the_pool_keeps_is_3_of_1000_parts() {
    let hop = hop(1_000_000_000, 1_000_000_000);
    // 996,006.98 in full: 997 parts of the input on a curve that has moved by them.
    assert_eq!(hop.output(&1_000_000_u32.into()), Some(996_006_u32.into()));
    assert_eq!(
        hop.least_input(&996_006_u32.into()),
        Some(1_000_000_u32.into())
    );
    assert_eq!(
        hop.least_input(&996_007_u32.into()),
        Some(1_000_001_u32.into())
    );
}

/// 9·x / (1 + x) less x is largest at 2, where it is 4.
#[test]
fn the_top_of_a_curve_is_reached() {
    let [a, b, c] = [1_u8, 9, 1].map(BigUint::from);
    let curve = Curve { a, b, c };
    let four = BigUint::from(4_u8);
    assert_eq!(curve.most(), four);
    let (low, high) = curve.inputs_reaching(&four).unwrap();
    assert!(low <= 2_u8.into() && high >= 2_u8.into(), "{low} to {high}");
    assert!(!curve.reaches(&5_u8.into()));
}

#[test]
fn a_pool_holds_no_more_than_112_bits() {
    let nearly_full = Hop::new(&(&*RESERVE_MAX - 5_u8), &RESERVE_MAX);
    assert_eq!(nearly_full.output(&5_u8.into()), Some(4_u8.into()));
    assert_eq!(nearly_full.output(&6_u8.into()), None);
    assert_eq!(nearly_full.least_input(&4_u8.into()), Some(5_u8.into()));
    assert_eq!(nearly_full.least_input(&5_u8.into()), None);
}

/// The inputs from zero on with their profits, up to the first that a pool cannot hold or that costs
/// more than anything could give.
fn profits(hops: &[&Hop], most: u64) -> Vec<Option<BigUint>> {
    (0..=most)
        .map_while(|x| {
            let x = BigUint::from(x);
            let y = output(hops, &x)?;
            Some((y > x).then(|| y - x))
        })
        .collect()
}

fn agrees_with_trying_every_input(hops: &[Hop], most: u64) -> Result<(), TestCaseError> {
    let hops: Vec<&Hop> = hops.iter().collect();
    let profits = profits(&hops, most);
    let best = profits.iter().flatten().max().cloned().unwrap_or_default();
    let curve = Curve::of(&hops);
    prop_assert!(curve.as_ref().map_or(BigUint::ZERO, Curve::most) >= best);
    let one = BigUint::from(1_u8);
    for level in [
        one.clone(),
        (&best / 2_u8) + 1_u8,
        best.clone(),
        &best + 1_u8,
    ] {
        if level < one {
            continue;
        }
        let enough = |profit: &Option<BigUint>| profit.as_ref().is_some_and(|p| *p >= level);
        let first = profits.iter().position(enough);
        let expected = first.map_or(Search::Nowhere, |x| Search::Least(BigUint::from(x)));
        prop_assert_eq!(
            search(&hops, &level, u32::MAX),
            expected,
            "level {}",
            &level
        );

        let around = curve
            .as_ref()
            .and_then(|curve| curve.inputs_reaching(&level));
        for x in profits
            .iter()
            .enumerate()
            .filter(|(_, p)| enough(p))
            .map(|(x, _)| BigUint::from(x))
        {
            prop_assert!(
                around
                    .as_ref()
                    .is_some_and(|(low, high)| *low <= x && x <= *high)
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// From and to a token of which there are at most 400 units, no larger input can pay.
    #[test]
    fn the_search_finds_what_trying_every_input_finds(
        ends in (1_u64..400, 1_u64..400),
        between in prop::collection::vec((1_u64..3_000, 1_u64..3_000), 1..=3),
    ) {
        let mut reserves = vec![ends.0];
        for (a, b) in between {
            reserves.extend([a, b]);
        }
        reserves.push(ends.1);
        let hops: Vec<Hop> = reserves.chunks(2).map(|pair| hop(pair[0], pair[1])).collect();
        agrees_with_trying_every_input(&hops, 400)?;
    }

    /// The same where pools are nearly full.
    #[test]
    fn the_search_ends_where_pools_are_full(
        room in prop::collection::vec(1_u64..60, 2..=3),
        gain in 1_u64..5,
    ) {
        let full = |room: u64| &*RESERVE_MAX - room;
        let hops: Vec<Hop> = room
            .iter()
            .map(|&room| Hop::new(&(full(room) / gain), &RESERVE_MAX))
            .chain([Hop::new(&full(room[0]), &RESERVE_MAX)])
            .collect();
        agrees_with_trying_every_input(&hops, 400)?;
    }
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    // A unit of the second token is worth a thousand of the first, so profits come in steps.
    let hops = [hop(1_000_000, 1_000), hop(1_000, 1_020_000)];
    let hops: Vec<&Hop> = hops.iter().collect();
    let best = profits(&hops, 100_000).into_iter().flatten().max().unwrap();
    let level = best + 1_u8;
    assert_eq!(search(&hops, &level, u32::MAX), Search::Nowhere);
    assert_eq!(search(&hops, &level, 1), Search::Open);
}

#[test]
fn the_least_input_of_a_path_is_the_first_that_gives_enough() {
    let hops = [hop(50, 7), hop(9, 80), hop(30, 31)];
    let hops: Vec<&Hop> = hops.iter().collect();
    for y in 0..31_u8 {
        let y = BigUint::from(y);
        let first = (0..5_000_u32)
            .map(BigUint::from)
            .find(|x| output(&hops, x).unwrap() >= y);
        assert_eq!(least_input(&hops, &y), first, "{y}");
    }
}

/// Pools over a few tokens, the first of which is the base; some pairs have several.
fn small_market() -> Market {
    let pairs = ["ab", "ab", "ac", "bc", "bc", "bd", "cd", "ad", "de", "fa"];
    let mut text = String::from("reserve1,pair,token0,reserve0,token1\n");
    for (place, pair) in pairs.into_iter().enumerate() {
        let (one, other) = pair.split_at(1);
        writeln!(text, "9,P{place},{one},8,{other}").unwrap();
    }
    let mut market = Market::default();
    market.read(&text).unwrap();
    market
}

/// Every list of steps that is a cycle, by trying them all.
fn all_cycles(market: &Market, base: usize, hops: usize) -> Vec<Vec<Step>> {
    let steps: Vec<Step> = (0..market.pools().len())
        .flat_map(|pool| [true, false].map(|first_in| Step { pool, first_in }))
        .collect();
    let mut lists: Vec<Vec<Step>> = vec![Vec::new()];
    for _ in 0..hops {
        lists = lists
            .iter()
            .flat_map(|list| {
                steps
                    .iter()
                    .map(|step| [list.as_slice(), &[*step]].concat())
            })
            .collect();
    }
    let distinct = |mut all: Vec<usize>| {
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() == count
    };
    let is_cycle = |list: &Vec<Step>| {
        let (ins, outs): (Vec<usize>, Vec<usize>) =
            list.iter().map(|step| market.tokens_of(*step)).unzip();
        let connects = ins[1..] == outs[..outs.len() - 1];
        let returns = ins[0] == base && outs.last() == Some(&base);
        connects && returns && distinct(ins) && distinct(list.iter().map(|s| s.pool).collect())
    };
    lists.into_iter().filter(is_cycle).collect()
}

#[test]
fn the_walk_finds_every_cycle_once() {
    let market = small_market();
    let base = market.token("a").unwrap();
    for max_hops in 2..=4 {
        let mut found: Vec<String> = Cycles::of(&market, base, max_hops)
            .iter()
            .map(|steps| market.path(steps))
            .collect();
        let mut all: Vec<String> = (2..=max_hops)
            .flat_map(|hops| all_cycles(&market, base, hops))
            .map(|steps| market.path(&steps))
            .collect();
        found.sort_unstable();
        all.sort_unstable();
        assert_eq!(found, all);
        assert!(!found.is_empty());
    }
}

#[test]
fn rows_that_cannot_trade_are_left_out_and_wrong_ones_are_errors() {
    let mut market = Market::default();
    let text = "pair,token0,reserve0,token1,reserve1,symbol0\n\
                0xAA,0x01,5,0x02,6,x\n\
                0xAB,0x01,0,0x02,6,y\n\
                0xAC,0x0F,5,0xac,6,z\n";
    market.read(text).unwrap();
    assert_eq!(market.pools().len(), 1);
    assert_eq!((market.pool("0xaa"), market.pool("0xab")), (Some(0), None));
    assert_eq!(
        (market.token("0x02"), market.token("0x0f")),
        (Some(1), None)
    );
    for wrong in [
        "pair,token0\n",
        "pair,token0,reserve0,token1,reserve1\n1,2,x,3,4\n",
    ] {
        assert!(Market::default().read(wrong).is_err());
    }
    for (text, number) in [
        ("012", Some(12_u8)),
        ("", None),
        ("+1", None),
        ("1_0", None),
    ] {
        assert_eq!(decimal(text), number.map(BigUint::from));
    }
}

#[test]
fn nothing_of_the_bot_is_in_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/checker");
    let crates = ["core", "portable", "bot"].map(|name| format!("regatta_{name}"));
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for name in &crates {
            assert!(!text.contains(name), "{} uses {name}", path.display());
        }
    }
}
