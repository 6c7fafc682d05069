//! What the bot publishes, recomputed by an independent program.

#[cfg(test)]
mod objections;

use regatta_tests::checker::check::Asked;
use regatta_tests::checker::record::blocks;
use regatta_tests::checker::{Checker, Found};
use regatta_tests::harness::{
    MarketText, ON_REAL_POOLS, Ran, coarse_market, made_up_market, real_market, regatta,
};
use std::error::Error;

/// Checks every block of a run that started from `market`.
fn check(ran: &Ran, market: &MarketText, asked: Asked) -> Result<Found, Box<dyn Error>> {
    let mut checker = Checker::new(&market.files, &market.base, asked)?;
    let mut found = Found::default();
    for block in blocks(&ran.lines)? {
        checker
            .check(&block, &mut found)
            .map_err(|objection| format!("block {}: {objection}", block.number))?;
    }
    Ok(found)
}

/// Where a search ends at its limit nothing is shown, so that must stay the exception.
fn assert_few_open(found: &Found) {
    assert!(found.open_winners * 100 <= found.winners, "{found:?}");
    assert!(
        found.open_challengers * 100 <= found.challengers,
        "{found:?}"
    );
    assert!(found.larger_input * 100 <= found.winners, "{found:?}");
    assert!(found.open_input * 2 <= found.winners, "{found:?}");
}

#[test]
fn real_pools_best_of_200_blocks() {
    let ran = regatta(ON_REAL_POOLS.into_iter().chain(["--blocks", "200"])).unwrap();
    let found = check(&ran, &real_market().unwrap(), Asked::default()).unwrap();
    assert_eq!(found.winners, 200);
    assert!(found.touched > 2_000_000, "{found:?}");
    assert_few_open(&found);
}

#[test]
fn real_pools_best_three_of_40_blocks_of_another_seed() {
    let args = ["--blocks", "40", "--seed", "7", "--top", "3"];
    let ran = regatta(ON_REAL_POOLS.into_iter().chain(args)).unwrap();
    let asked = Asked {
        top: 3,
        ..Asked::default()
    };
    let found = check(&ran, &real_market().unwrap(), asked).unwrap();
    assert_eq!(found.winners, 120);
    assert_few_open(&found);
}

#[test]
fn another_base_token_and_fewer_hops() {
    // USDC has a few hundred pools.
    let base = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48";
    for (hops, max_hops) in [("2", 2), ("3", 3)] {
        let args = [
            "--base",
            base,
            "--max-hops",
            hops,
            "--top",
            "2",
            "--min-profit",
            "1000000",
        ];
        let ran = regatta(ON_REAL_POOLS.into_iter().chain(args)).unwrap();
        let market = MarketText {
            base: base.to_owned(),
            ..real_market().unwrap()
        };
        let asked = Asked {
            max_hops,
            top: 2,
            min_profit: 1_000_000_u32.into(),
        };
        let found = check(&ran, &market, asked).unwrap();
        assert!(found.winners > 0, "{found:?}");
        assert_few_open(&found);
    }
}

#[test]
fn made_up_markets_best_three_of_every_block() {
    for (text, seed) in [("1", 1), ("2", 2)] {
        let ran = regatta(["--blocks", "100", "--seed", text, "--top", "3"]).unwrap();
        let asked = Asked {
            top: 3,
            ..Asked::default()
        };
        let found = check(&ran, &made_up_market(seed).unwrap(), asked).unwrap();
        assert!(found.winners > 200, "{found:?}");
        assert_few_open(&found);
    }
}

/// More trades than candidates are put in order at once.
#[test]
fn made_up_market_best_hundred_of_every_block() {
    let ran = regatta(["--blocks", "4", "--top", "100"]).unwrap();
    let asked = Asked {
        top: 100,
        ..Asked::default()
    };
    let found = check(&ran, &made_up_market(1).unwrap(), asked).unwrap();
    assert_eq!(found.winners, 400);
    assert!(found.open_winners * 100 <= found.winners, "{found:?}");
    assert_eq!(found.open_challengers, 0, "{found:?}");
}

/// Where rounding decides, curves rule out little: thousands of cycles have to be searched.
#[test]
fn coarse_tokens_best_three_of_every_block() {
    let market = coarse_market();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coarse.csv");
    std::fs::write(&file, &market.files[0]).unwrap();
    let pools = ["--pools", file.to_str().unwrap(), "--base", &market.base];
    let ran = regatta(pools.into_iter().chain(["--blocks", "100", "--top", "3"])).unwrap();
    assert_eq!(ran.error, None);
    let asked = Asked {
        top: 3,
        ..Asked::default()
    };
    let found = check(&ran, &market, asked).unwrap();
    assert_eq!(found.winners, 300);
    assert!(found.challengers > 1_000, "{found:?}");
    assert_few_open(&found);
}
