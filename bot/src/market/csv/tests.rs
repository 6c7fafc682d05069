//! Real files, every way a file can be wrong, and mutations of good ones.

use crate::solver::Fee;
use std::io::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

const HEADER: &str = "pair,token0,decimals0,reserve0,token1,decimals1,reserve1,symbol0,symbol1";
const P1: &str = "0x1111111111111111111111111111111111111111";
const P2: &str = "0x2222222222222222222222222222222222222222";
const A: &str = "0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn file(rows: &[String]) -> String {
    format!("{HEADER}\n{}\n", rows.join("\n"))
}

fn good(pair: &str) -> String {
    format!("{pair},{A},18,1000,{B},6,2000,AAA,BBB")
}

fn read(text: impl AsRef<[u8]>) -> Result<Loaded, LoadError> {
    let mut loader = Loader::new(PoolIsToken::Keep);
    loader.text("pools.csv", "pools", text.as_ref())?;
    loader.finish()
}

fn message(text: impl AsRef<[u8]>) -> String {
    read(text).unwrap_err().to_string()
}

/// The message for a file whose only row is `row`, less the place.
fn row_message(row: &str) -> String {
    let message = message(file(&[row.to_owned()]));
    message
        .strip_prefix("pools.csv:2: ")
        .expect(&message)
        .to_owned()
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../data")
        .join(name)
}

#[test]
fn the_real_files_load() {
    let paths = [data("uniswap_v2_pairs.csv"), data("sushiswap_v2_pairs.csv")];
    let loaded = load(&paths, PoolIsToken::Keep).unwrap();
    assert_eq!(
        loaded.skipped,
        Skipped {
            zero_reserve: 70,
            pool_is_token: 0
        }
    );
    assert_eq!(
        loaded.skipped.to_string(),
        "70 with a zero reserve, 0 whose address is a token's"
    );
    let market = &loaded.market;
    assert_eq!(market.pools().len(), 10_773 + 136 - 70);
    let names: Vec<_> = market.exchanges().iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["uniswap_v2_pairs", "sushiswap_v2_pairs"]);
    assert!(market.exchanges().iter().all(|e| e.fee == Fee::default()));
    let first = &market.pools()[0];
    assert_eq!(
        first.address.to_string(),
        "0xb4e16d0168e52d35cacd2c6185b44281ec28c9dc"
    );
    assert_eq!(first.reserve1, 524_595_304_157_729_979_983_018);
    assert_eq!(market.token(first.token0).symbol.as_str(), "USDC");
    assert_eq!(market.token(first.token0).decimals, 6);
    assert_eq!(
        market
            .exchange(market.pools()[10_838].exchange)
            .name
            .as_str(),
        "sushiswap_v2_pairs"
    );

    let skipping = load(&paths, PoolIsToken::Skip).unwrap();
    assert_eq!(
        skipping.skipped,
        Skipped {
            zero_reserve: 70,
            pool_is_token: 26
        }
    );
    assert_eq!(skipping.market.pools().len(), market.pools().len() - 26);
    assert_eq!(load(&paths, PoolIsToken::Keep).unwrap(), loaded);
}

#[test]
fn columns_may_be_in_any_order_and_lines_may_end_in_crlf_or_not_at_all() {
    let plain = read(file(&[good(P1)])).unwrap();
    let header = "symbol1,symbol0,reserve1,decimals1,token1,reserve0,decimals0,token0,pair";
    let row = format!("BBB,AAA,2000,6,{B},1000,18,{A},{P1}");
    assert_eq!(read(format!("{header}\r\n{row}\r\n")).unwrap(), plain);
    assert_eq!(read(format!("\u{feff}{header}\n\n\n{row}")).unwrap(), plain);
}

#[test]
fn a_bad_header_is_refused_with_the_column_and_the_list() {
    assert_eq!(
        message(format!("{HEADER},fee\n")),
        format!("pools.csv:1: column `fee` is unknown; the columns are {HEADER}, in any order")
    );
    assert_eq!(
        message(HEADER.replace("symbol1", "\u{1b}[2J")),
        format!(
            "pools.csv:1: column `\\u{{1b}}[2J` is unknown; the columns are {HEADER}, in any order"
        )
    );
    assert_eq!(
        message(HEADER.replace("token1", "token0")),
        format!("pools.csv:1: column `token0` is there twice; the columns are {HEADER}, each once")
    );
    assert_eq!(
        message(HEADER.replace(",reserve1", "")),
        format!(
            "pools.csv:1: column `reserve1` is missing; the columns are {HEADER}, in any order"
        )
    );
    // A file without a header is one whose columns are unknown.
    assert!(message(format!("{}\n", good(P1))).contains("`0x1111"));
}

#[test]
fn files_without_rows_are_refused() {
    for empty in ["", "\n", "\r\n\r\n", "\u{feff}"] {
        assert_eq!(
            message(empty),
            format!("pools.csv: is empty; the first line names the columns {HEADER}")
        );
    }
    for header_only in [HEADER.to_owned(), format!("{HEADER}\r\n\r\n")] {
        assert_eq!(
            message(header_only),
            "pools.csv: has a header and no pools; each further line is one pool"
        );
    }
}

#[test]
fn a_row_with_missing_or_extra_fields_is_refused() {
    let list = format!("fields where 9 belong: {HEADER}");
    assert_eq!(row_message("a,b,c"), format!("the row has 3 {list}"));
    assert_eq!(
        row_message(&format!("{},x", good(P1))),
        format!("the row has 10 {list}")
    );
}

#[test]
fn bad_fields_are_refused_with_their_column_and_text() {
    let cases = [
        (
            P1,
            "0x11",
            "column pair: `0x11` has 2 characters after 0x where 40 belong; an address is \
                      0x and 40 hex digits",
        ),
        (
            B,
            "weth",
            "column token1: `weth` does not start with 0x; an address is 0x and 40 hex digits",
        ),
        (
            ",18,",
            ",256,",
            "column decimals0: `256` is no number of decimals; that is a whole number \
                           from 0 to 255",
        ),
        (
            ",6,",
            ",-1,",
            "column decimals1: `-1` is no number of decimals; that is a whole number \
                         from 0 to 255",
        ),
        (
            ",6,",
            ",,",
            "column decimals1: `` is no number of decimals; that is a whole number from 0 \
                       to 255",
        ),
        (
            "1000",
            "1e3",
            "column reserve0: `1e3` is no reserve; that is a whole number of the token's \
                         smallest unit in decimal digits",
        ),
        (
            "2000",
            "+2000",
            "column reserve1: `+2000` is no reserve; that is a whole number of the \
                           token's smallest unit in decimal digits",
        ),
        (
            "2000",
            "5192296858534827628530496329220096",
            "column reserve1: `5192296858534827628530496329220096` has more than 112 bits; a reserve is \
          at most 5192296858534827628530496329220095",
        ),
        (
            B,
            A,
            "columns token0 and token1: both are 0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; a \
                pool trades two different tokens",
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(row_message(&good(P1).replacen(from, to, 1)), expected);
    }
    let long = good(P1).replace("1000", &"9".repeat(5000));
    assert_eq!(
        row_message(&long),
        format!(
            "column reserve0: `{}…` has more than 112 bits; a reserve is at most \
             5192296858534827628530496329220095",
            "9".repeat(48)
        )
    );
}

#[test]
fn the_largest_reserve_and_any_decimals_are_taken() {
    let row = good(P1)
        .replace("1000", "5192296858534827628530496329220095")
        .replace(",18,", ",255,");
    let market = read(file(&[row])).unwrap().market;
    assert_eq!(market.pools()[0].reserve0, super::super::MAX_RESERVE);
    assert_eq!(market.tokens()[0].decimals, 255);
}

#[test]
fn the_line_is_that_of_the_file() {
    let bad = "x,y";
    let crlf = format!("{HEADER}\r\n{}\r\n\r\n{bad}\r\n", good(P1));
    assert!(message(crlf).starts_with("pools.csv:4: the row has 2"));
    let cr = format!("{HEADER}\r{}\r{bad}\r", good(P1));
    assert!(message(cr).starts_with("pools.csv:3: the row has 2"));
    // A quoted symbol with line ends in it takes up lines of the file.
    let quoted = good(P1).replace("AAA", "\"A\r\nA\n\nA\"");
    assert!(
        message(format!("{HEADER}\n{quoted}\n{bad}\n")).starts_with("pools.csv:6: the row has 2")
    );
}

#[test]
fn an_open_quotation_mark_does_not_swallow_the_rows_after_it() {
    let open = good(P1).replace("BBB", "\"BBB");
    assert_eq!(
        message(file(&[good(P2), open, good(A), good(B)])),
        "pools.csv:3: a quotation mark in this row has no partner; a quoted field starts and ends \
         with one, and has each mark inside it doubled"
    );
    assert_eq!(
        message(format!("\"{HEADER}\n{}\n", good(P1))),
        "pools.csv:1: a quotation mark in this row has no partner; a quoted field starts and ends \
         with one, and has each mark inside it doubled"
    );
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    let mut text = file(&[good(P1)]).into_bytes();
    let symbol = text.windows(3).position(|w| w == b"AAA").unwrap();
    text[symbol + 1] = 0xFF;
    assert_eq!(
        message(text),
        "pools.csv:2: column symbol0: `A\u{fffd}A` is not UTF-8; pool files are UTF-8 throughout"
    );
}

#[test]
fn a_pool_listed_twice_is_refused_with_both_places_across_files() {
    let message = message(file(&[good(P1), good(P2), good(P1)]));
    assert_eq!(
        message,
        format!(
            "pools.csv:4: column pair: {P1} is listed already, at pools.csv:2; a pool has one row in \
             one file"
        )
    );
    let mut loader = Loader::new(PoolIsToken::Keep);
    loader
        .text("a.csv", "a", file(&[good(P1), good(P2)]).as_bytes())
        .unwrap();
    let error = loader
        .text("b.csv", "b", file(&[good(P2)]).as_bytes())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "b.csv:2: column pair: {P2} is listed already, at a.csv:3; a pool has one row in one file"
        )
    );
}

#[test]
fn rows_that_disagree_about_decimals_are_refused_with_both_places() {
    let other = good(P2).replace(",6,", ",18,");
    assert_eq!(
        message(file(&[good(P1), other])),
        format!(
            "pools.csv:3: token {B} has 18 decimals here and 6 at pools.csv:2; a token has the same \
             decimals everywhere, so one of the two rows is wrong"
        )
    );
}

#[test]
fn useless_rows_are_skipped_and_counted() {
    let zero = good(P1).replace("1000", "000");
    let shares = format!("{B},{A},18,1,{P2},18,1,AAA,UNI-V2");
    let rows = [zero, good(P2), shares];
    let kept = read(file(&rows)).unwrap();
    assert_eq!(
        kept.skipped,
        Skipped {
            zero_reserve: 1,
            pool_is_token: 0
        }
    );
    assert_eq!(kept.market.pools().len(), 2);

    let mut loader = Loader::new(PoolIsToken::Skip);
    loader
        .text("pools.csv", "pools", file(&rows).as_bytes())
        .unwrap();
    let skipping = loader.finish().unwrap();
    // Both: P2 is a token of the third row, and B, the pool of that row, is one of the second.
    assert_eq!(
        skipping.skipped,
        Skipped {
            zero_reserve: 1,
            pool_is_token: 2
        }
    );
    assert_eq!(skipping.skipped.total(), 3);
    assert!(skipping.market.pools().is_empty());

    let own = good(A);
    assert_eq!(
        read(file(&[own])).unwrap().skipped,
        Skipped {
            zero_reserve: 0,
            pool_is_token: 1
        }
    );
}

#[test]
fn a_hostile_symbol_is_loaded_and_printed_safely() {
    let row = good(P1).replace("AAA", "\"\u{1b}]0;owned\u{7}\n\u{202e}\"");
    let market = read(file(&[row])).unwrap().market;
    assert_eq!(
        market.tokens()[0].symbol.as_str(),
        "\\u{1b}]0;owned\\u{7}\\n\\u{202e}"
    );
    let empty = good(P1).replace("AAA", "");
    assert!(
        read(file(&[empty])).unwrap().market.tokens()[0]
            .symbol
            .is_empty()
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("no\u{1b}.csv");
    let error = load(&[&missing], PoolIsToken::Keep).unwrap_err();
    assert!(matches!(error, LoadError::Unreadable { .. }));
    let text = error.to_string();
    assert!(
        text.contains("no\\u{1b}.csv: cannot be read: ") && !text.contains('\u{1b}'),
        "{text}"
    );
    assert!(matches!(
        load(&[directory.path()], PoolIsToken::Keep),
        Err(LoadError::Unreadable { .. })
    ));

    let path = directory.path().join("dex.csv");
    File::create(&path)
        .unwrap()
        .write_all(file(&[good(P1)]).as_bytes())
        .unwrap();
    let loaded = load(&[&path], PoolIsToken::Keep).unwrap();
    assert_eq!(loaded.market.exchanges()[0].name.as_str(), "dex");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
        let mut with_header = format!("{HEADER}\n").into_bytes();
        with_header.extend(bytes);
        let _ = read(&with_header);
    }

    #[test]
    fn no_mutation_of_a_good_file_panics(at in 0_usize..300, byte: u8, cut: bool) {
        let mut bytes = file(&[good(P1), good(P2)]).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        if let Err(error) = read(&bytes) {
            prop_assert!(error.to_string().chars().all(|c| !c.is_control()));
        }
    }
}
