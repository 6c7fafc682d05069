//! Pool files and base tokens that are wrong: exit code 3, nothing on stdout, and a message with the
//! file, the line and what would be right.

use super::*;

/// Runs over one file of this content, which must be refused.
#[track_caller]
fn refused(content: impl AsRef<[u8]>, parts: &[&str]) {
    let pools = Pools::new().file("pools.csv", content);
    for format in [&[][..], &["--json"]] {
        pools.run(format).refused(3, parts);
    }
}

/// The four pools with one change.
fn with(change: impl FnOnce(&mut Vec<Row>)) -> String {
    let mut rows = rows();
    change(&mut rows);
    file_of(&rows)
}

#[test]
fn the_rows_that_the_others_are_changed_from_are_right() {
    let pools = Pools::new().file("pools.csv", file_of(&rows()));
    let ran = pools.run(&["--json", "--blocks", "2"]).exits(0);
    let crawl = record(&ran.records(), "crawl").clone();
    assert_eq!(crawl["cycles"], serde_json::json!([4, 0, 0]));
    assert_eq!(
        (&crawl["base_symbol"], &crawl["market"]),
        (&"WETH".into(), &"pools".into())
    );
}

#[test]
fn a_malformed_row_is_named_by_line() {
    let file = file_of(&rows());
    refused(
        file.replace(",\"T1\"", ""),
        &["pools.csv:2:", "8 fields where 9 belong"],
    );
    refused(file.clone() + "\n\nabc\n", &["pools.csv:8:", "1 fields"]);
    refused(
        file.replacen("\"T2\"", "\"T2", 1),
        &["pools.csv:4:", "quotation mark"],
    );
    refused(
        with(|r| r[3].pair = "0x12".to_owned()),
        &["pools.csv:5:", "column pair", "40"],
    );
    refused(
        with(|r| r[1].tokens[1] = "WETH".to_owned()),
        &["pools.csv:3:", "column token1"],
    );
    refused(
        with(|r| r[1].decimals[0] = "256".to_owned()),
        &["pools.csv:3:", "decimals0", "0 to 255"],
    );
    refused(
        with(|r| r[1].decimals[1] = "6".to_owned()),
        &["pools.csv:3:", "6 decimals here and 18", "pools.csv:2"],
    );
    for reserve in ["", "-1", "+1", "1e18", "0x10", "1.5", "1 000"] {
        refused(
            with(|r| r[2].reserves[1] = reserve.to_owned()),
            &["pools.csv:4:", "column reserve1", "decimal digits"],
        );
    }
    refused(
        with(|r| r[2].tokens[1] = WETH.to_owned()),
        &["pools.csv:4:", "two different tokens"],
    );
    let mut bytes = file.into_bytes();
    let place = bytes.len() - 3;
    bytes[place] = 0xff;
    refused(bytes, &["pools.csv:5:", "column symbol1", "UTF-8"]);
}

#[test]
fn a_reserve_of_113_bits_is_refused_and_one_of_112_is_not() {
    let most = (1_u128 << 112) - 1;
    let refused_text = (most + 1).to_string();
    refused(
        with(|r| r[2].reserves[0].clone_from(&refused_text)),
        &[
            "pools.csv:4:",
            "column reserve0",
            &refused_text,
            "112 bits",
            &most.to_string(),
        ],
    );
    refused(
        with(|r| r[2].reserves[0] = "9".repeat(400)),
        &["pools.csv:4:", "112 bits"],
    );
    let pools = Pools::new().file(
        "pools.csv",
        with(|r| r[2].reserves = [most.to_string(), most.to_string()]),
    );
    pools.run(&["--blocks", "3"]).exits(0);
}

#[test]
fn a_header_is_the_nine_columns_each_once() {
    let columns = "pair,token0,decimals0,reserve0,token1,decimals1,reserve1,symbol0,symbol1";
    let file = file_of(&rows());
    let header = |from, to| file.replacen(from, to, 1);
    refused(
        header("symbol0", "fee"),
        &["pools.csv:1:", "column `fee` is unknown", columns],
    );
    refused(
        header("symbol1", "symbol0"),
        &["pools.csv:1:", "column `symbol0` is there twice", columns],
    );
    refused(
        header(",symbol1", ""),
        &["pools.csv:1:", "column `symbol1` is missing", columns],
    );
    refused(rows()[0].text(), &["pools.csv:1:", "is unknown", columns]);
}

#[test]
fn a_pool_has_one_row_in_one_file() {
    refused(
        with(|r| r[3].pair = address(101)),
        &[
            "pools.csv:5:",
            &address(101),
            "listed already, at",
            "pools.csv:2",
        ],
    );
    let pools = Pools::new()
        .file("one.csv", file_of(&rows()))
        .file("two.csv", file_of(&[Row::weth(200, 1), Row::weth(103, 2)]));
    pools.run(&[]).refused(
        3,
        &[
            "two.csv:3:",
            &address(103),
            "listed already, at",
            "one.csv:4",
        ],
    );
}

#[test]
fn a_file_without_pools_is_refused() {
    refused(
        "",
        &[
            "pools.csv: is empty",
            "the first line names the columns pair,token0",
        ],
    );
    refused("\n\r\n", &["pools.csv: is empty"]);
    refused(
        format!("{HEADER}\n"),
        &["pools.csv: has a header and no pools"],
    );
    Pools::new()
        .named("absent.csv")
        .run(&[])
        .refused(3, &["absent.csv: cannot be read: No such file"]);
    Pools::new()
        .named("")
        .run(&[])
        .refused(3, &["cannot be read"]);
    // The second file is no better for the first being right.
    let pools = Pools::new()
        .file("one.csv", file_of(&rows()))
        .named("absent.csv");
    pools.run(&[]).refused(3, &["absent.csv"]);
}

#[test]
fn a_base_token_needs_pools_and_a_way_back() {
    let pools = Pools::new().file("pools.csv", file_of(&rows()));
    let nowhere = address(77);
    pools
        .run(&["--base", &nowhere])
        .refused(3, &[&nowhere, "is in no pool", "3 other tokens"]);
    run(&["--base", &nowhere]).refused(3, &[&nowhere, "is in no pool"]);
    // Token 2 has one pool, so there is no other way back.
    let pools = Pools::new().file("pools.csv", file_of(&rows()[..3]));
    pools
        .run(&["--base", &address(2)])
        .refused(3, &[&address(2), "1 pools", "no cycle of up to 4 hops"]);
    // All its pools are of no use.
    let pools = Pools::new().file(
        "pools.csv",
        with(|rows| {
            for row in rows {
                row.reserves[1] = "0".to_owned();
            }
        }),
    );
    pools.run(&[]).refused(3, &[WETH, "is in no pool"]);
}

#[test]
fn a_zero_reserve_is_skipped_and_counted() {
    let pools = Pools::new().file(
        "pools.csv",
        with(|r| {
            r.push(Row::weth(105, 2));
            r[1].reserves[0] = "0".to_owned();
            r[4].reserves = ["0".to_owned(), "0".to_owned()];
        }),
    );
    let ran = pools.run(&["--json", "--blocks", "2"]).exits(0);
    let crawl = record(&ran.records(), "crawl").clone();
    assert_eq!(
        (&crawl["skipped_zero_reserve"], &crawl["pools"]),
        (&2.into(), &3.into())
    );
    let text = pools.run(&["--blocks", "0"]).exits(0).stdout;
    assert!(
        text.contains("2 rows skipped for a zero reserve, 0 whose"),
        "{text}"
    );
    // A file of use needs no such line.
    let pools = Pools::new().file("pools.csv", file_of(&rows()));
    assert!(!pools.run(&["--blocks", "0"]).stdout.contains("skipped"));
}

#[test]
fn a_pool_that_is_a_token_is_traded_and_one_that_lists_itself_is_skipped() {
    let pools = Pools::new().file(
        "pools.csv",
        with(|r| {
            // Shares of pool 101 trade in two further pools, and pool 107 claims to trade its own.
            r.extend([
                Row::weth(105, 101),
                Row::weth(106, 101),
                Row::weth(107, 107),
            ]);
        }),
    );
    let ran = pools.run(&["--json", "--blocks", "20"]).exits(0);
    let crawl = record(&ran.records(), "crawl").clone();
    assert_eq!(
        (&crawl["skipped_pool_is_token"], &crawl["pools"]),
        (&1.into(), &6.into())
    );
    assert_eq!(crawl["cycles"], serde_json::json!([6, 0, 0]));
    assert_eq!(record(&ran.records(), "summary")["balanced"], true);
}
