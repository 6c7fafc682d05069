//! The checker objects to whatever is wrong with a block's record.

use num_bigint::BigUint;
use regatta_tests::checker::check::Asked;
use regatta_tests::checker::market::Step;
use regatta_tests::checker::record::Block;
use regatta_tests::checker::staircase::{Hop, least_input, output};
use regatta_tests::checker::{Checker, Found, Objection};
use regatta_tests::harness::{coarse_market, regatta};
use serde::Deserialize;
use serde_json::{Value, json};

/// The first block of a run on coarse tokens, and a checker that has not seen it.
struct Start {
    checker: Checker,
    block: Value,
}

fn start() -> Start {
    let market = coarse_market();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coarse.csv");
    std::fs::write(&file, &market.files[0]).unwrap();
    let args = ["--base", &market.base, "--blocks", "1", "--top", "3"];
    let ran = regatta(["--pools", file.to_str().unwrap()].into_iter().chain(args)).unwrap();
    let asked = Asked {
        top: 3,
        ..Asked::default()
    };
    Start {
        checker: Checker::new(&market.files, &market.base, asked).unwrap(),
        block: ran.of_type("block").next().unwrap().clone(),
    }
}

impl Start {
    /// What the checker says to the block after `change`.
    fn changed(&self, change: impl FnOnce(&mut Value)) -> Result<(), Objection> {
        let mut block = self.block.clone();
        change(&mut block);
        let block = Block::deserialize(&block).unwrap();
        self.checker.clone().check(&block, &mut Found::default())
    }

    /// What it says to the block with the first winner's amounts right for another input.
    fn traded(&self, input: impl FnOnce(&[&Hop], BigUint) -> BigUint) -> Result<(), Objection> {
        let mut applied = self.checker.clone();
        applied
            .apply(&Block::deserialize(&self.block).unwrap())
            .unwrap();
        let market = applied.market();
        let winner = &self.block["winners"][0];
        let step = |hop: &Value| {
            let pool = market.pool(hop["pool"].as_str().unwrap()).unwrap();
            let token = market.token(hop["token_in"].as_str().unwrap()).unwrap();
            let first_in = market.pools()[pool].tokens[0] == token;
            Step { pool, first_in }
        };
        let steps: Vec<Step> = winner["hops"]
            .as_array()
            .unwrap()
            .iter()
            .map(step)
            .collect();
        let hops = market.hops(&steps);
        let input = input(&hops, amount(&winner["input"]));
        self.changed(|block| {
            let winner = &mut block["winners"][0];
            let mut at = input.clone();
            for (said, hop) in winner["hops"].as_array_mut().unwrap().iter_mut().zip(hops) {
                said["amount_in"] = json!(at.to_string());
                at = hop.output(&at).unwrap();
                said["amount_out"] = json!(at.to_string());
            }
            winner["input"] = json!(input.to_string());
            winner["output"] = json!(at.to_string());
            winner["profit"] = json!((at - input).to_string());
        })
    }
}

fn amount(text: &Value) -> BigUint {
    text.as_str().unwrap().parse().unwrap()
}

fn add(text: &mut Value, more: i32) {
    let more = num_bigint::BigInt::from(more);
    *text = json!((num_bigint::BigInt::from(amount(text)) + more).to_string());
}

fn add_count(count: &mut Value, more: i64) {
    *count = json!(count.as_i64().unwrap() + more);
}

macro_rules! assert_objects {
    ($said:expr, $objection:pat) => {
        match $said {
            Err($objection) => {}
            other => panic!("{other:?} is not {}", stringify!($objection)),
        }
    };
}

#[test]
fn to_none_that_is_right() {
    let start = start();
    assert!(start.changed(|_| {}).is_ok());
    assert!(start.traded(|_, input| input).is_ok());
}

#[test]
fn to_amounts() {
    let start = start();
    assert_objects!(
        start.changed(|block| add(&mut block["winners"][1]["hops"][1]["amount_out"], 1)),
        Objection::Amount { hop: 1, .. }
    );
    assert_objects!(
        start.changed(|block| add(&mut block["winners"][2]["hops"][1]["amount_in"], -1)),
        Objection::Amount { hop: 1, .. }
    );
    for key in ["input", "output", "profit"] {
        assert_objects!(
            start.changed(|block| add(&mut block["winners"][0][key], 1)),
            Objection::Amount { hop: 0, .. } | Objection::Profit { .. } | Objection::Rank { .. }
        );
    }
}

/// The trade itself is right, and another one is better.
#[test]
fn to_trades_that_are_not_the_best_of_their_cycle() {
    let start = start();
    let less = |hops: &[&Hop], input: BigUint| {
        let gives = output(hops, &input).unwrap();
        least_input(hops, &(gives / 2_u8)).unwrap()
    };
    // The others' profits may now be larger than the first's, which comes first.
    let alone = |mut start: Start| {
        start.block["winners"].as_array_mut().unwrap().truncate(1);
        start
    };
    let start = alone(start);
    assert_objects!(start.traded(less), Objection::NotMost { .. });
    assert_objects!(
        start.traded(|_, input| input + 1_u8),
        Objection::NotLeast { .. }
    );
}

#[test]
fn to_reserves() {
    let start = start();
    let pools: Vec<Value> = start.block["winners"][0]["hops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hop| hop["pool"].clone())
        .collect();
    let place = start.block["moved"]
        .as_array()
        .unwrap()
        .iter()
        .position(|moved| pools.contains(&moved["pool"]))
        .unwrap();
    for key in ["reserve0", "reserve1"] {
        let twice = |block: &mut Value| {
            let reserve = amount(&block["moved"][place][key]);
            block["moved"][place][key] = json!((reserve * 2_u8).to_string());
        };
        assert_objects!(
            start.changed(twice),
            Objection::Amount { .. } | Objection::NotMost { .. }
        );
        for wrong in ["0", "5192296858534827628530496329220096"] {
            assert_objects!(
                start.changed(|block| block["moved"][place][key] = json!(wrong)),
                Objection::Reserve(_)
            );
        }
    }
    assert_objects!(
        start.changed(|block| block["moved"][place]["pool"] = json!("0xabc")),
        Objection::UnknownPool(_)
    );
    assert_objects!(
        start.changed(|block| block["moved"] = json!([])),
        Objection::Broken { .. }
    );
}

#[test]
fn to_paths() {
    let start = start();
    let broken = [
        |winner: &mut Value| winner["path"] = json!("0xabc"),
        |winner: &mut Value| winner["hops"].as_array_mut().unwrap().rotate_left(1),
        |winner: &mut Value| winner["hops"].as_array_mut().unwrap().truncate(1),
        |winner: &mut Value| winner["hops"] = json!([]),
        |winner: &mut Value| {
            let other = winner["hops"][1]["pool"].clone();
            winner["hops"][0]["pool"] = other;
        },
        // There and back through one pool.
        |winner: &mut Value| {
            let there = winner["hops"][0].clone();
            let mut back = there.clone();
            back["token_in"] = there["token_out"].clone();
            back["token_out"] = there["token_in"].clone();
            winner["hops"] = json!([there, back]);
        },
    ];
    for (case, change) in broken.into_iter().enumerate() {
        match start.changed(|block| change(&mut block["winners"][0])) {
            Err(Objection::Broken { .. }) => {}
            other => panic!("case {case}: {other:?}"),
        }
    }
    assert_objects!(
        start.changed(|block| block["winners"][0]["hops"][0]["pool"] = json!("0x0")),
        Objection::UnknownPool(_)
    );
}

#[test]
fn to_the_order_and_number_of_winners() {
    let start = start();
    let winners = |block: &mut Value, change: fn(&mut Vec<Value>)| {
        change(block["winners"].as_array_mut().unwrap());
    };
    assert_objects!(
        start.changed(|b| winners(b, |w| w.swap(0, 2))),
        Objection::Rank { .. }
    );
    assert_objects!(
        start.changed(|b| winners(b, |w| w[1] = w[0].clone())),
        Objection::Rank { .. }
    );
    for missing in 0..3 {
        let drop = |block: &mut Value| {
            block["winners"].as_array_mut().unwrap().remove(missing);
        };
        assert_objects!(start.changed(drop), Objection::Missed { .. });
        // One unproved simulation excuses one cycle, and there are more of them.
        let excused = |block: &mut Value| {
            drop(block);
            block["unproved"] = json!(1);
        };
        assert_objects!(start.changed(excused), Objection::Missed { .. });
    }
}

#[test]
fn to_counts() {
    let start = start();
    assert_objects!(
        start.changed(|b| add_count(&mut b["touched"], -1)),
        Objection::Touched { .. }
    );
    assert_objects!(
        start.changed(|b| add_count(&mut b["solved"], -1)),
        Objection::Outcomes { .. }
    );
    let screen = |block: &mut Value| {
        block["suppressed"] = block["touched"].clone();
        block["solved"] = json!(0);
    };
    assert_objects!(start.changed(screen), Objection::Screened { .. });
    assert_objects!(
        start.changed(|b| b["profitable"] = json!(0)),
        Objection::Bounded { .. }
    );
}
