//! The ledger's file: what survives a crash, and what is said of what did not.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, B256, U256};
use regatta_settle::abi::{Cycle, Hop, Reason};
use regatta_settle::ledger::{
    Attempt, Block, Entry, Header, Id, Inconsistent, Kind, Ledger, LedgerError, Mined, Outcome,
    Plan, State,
};
use regatta_settle::price::Fees;

fn header() -> Header {
    Header::new(1, Address::repeat_byte(1), Address::repeat_byte(2))
}

fn block(number: u64) -> Block {
    let hash = B256::with_last_byte(u8::try_from(number).unwrap());
    Block { number, hash }
}

fn planned(id: u64) -> Entry {
    let hop = Hop {
        pool: Address::repeat_byte(9),
        zero_for_one: true,
        amount_out: U256::MAX,
    };
    let cycle = Cycle {
        base: Address::repeat_byte(3),
        amount_in: U256::from(5),
        hops: vec![hop],
        min_profit: U256::from(100_000),
        expiry: 20,
    };
    let plan = Plan {
        found: block(10),
        cycle,
        min_profit: U256::from(1),
    };
    Entry::Planned { id: Id(id), plan }
}

fn sent(id: u64, nonce: u64, kind: Kind) -> Entry {
    let attempt = Attempt {
        kind,
        hash: B256::with_last_byte(u8::try_from(id).unwrap()),
        fees: Fees {
            max: u128::MAX,
            priority: 1 << 90,
        },
        gas_limit: u64::MAX,
        raw: vec![2, 0xc0].into(),
    };
    Entry::Sent {
        id: Id(id),
        nonce,
        attempt,
    }
}

fn ended(id: u64, outcome: Outcome) -> Entry {
    Entry::Outcome {
        id: Id(id),
        outcome,
    }
}

fn mined(number: u64) -> Mined {
    Mined {
        hash: B256::with_last_byte(1),
        block: block(number),
        gas_used: 21_000,
        gas_price: U256::from(7),
    }
}

/// Every kind of entry, and most outcomes.
fn story() -> Vec<Entry> {
    let included = |number| Outcome::Included {
        realised: U256::from(100_000),
        mined: mined(number),
    };
    vec![
        planned(0),
        sent(0, 4, Kind::Settle),
        planned(1),
        ended(0, included(11)),
        Entry::Reversed {
            id: Id(0),
            block: Some(block(11)),
        },
        ended(0, included(12)),
        sent(1, 5, Kind::Settle),
        sent(1, 5, Kind::Cancel),
        ended(
            1,
            Outcome::Reverted {
                reason: Reason::Text("UniswapV2: K".to_owned()),
                mined: mined(13),
            },
        ),
        sent(2, 6, Kind::Cancel),
        ended(2, Outcome::Filled { cancel: mined(14) }),
        planned(3),
        ended(
            3,
            Outcome::DryRunFailed {
                reason: Reason::Empty,
            },
        ),
        planned(4),
        sent(4, 7, Kind::Settle),
    ]
}

fn folded(entries: &[Entry]) -> State {
    let mut state = State::default();
    for entry in entries {
        state.apply(entry).unwrap();
    }
    state
}

/// A ledger with the story, in a folder of its own, and where its lines end.
fn written() -> (tempfile::TempDir, PathBuf, Vec<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let (mut ledger, torn) = Ledger::open(&path, header()).unwrap();
    assert_eq!(torn, None);
    let mut ends = vec![length(&path)];
    for entry in story() {
        ledger.append(&entry).unwrap();
        ends.push(length(&path));
    }
    assert_eq!(*ledger.state(), folded(&story()));
    (folder, path, ends)
}

fn length(path: &Path) -> usize {
    usize::try_from(fs::metadata(path).unwrap().len()).unwrap()
}

#[test]
fn a_file_cut_anywhere_opens_with_every_whole_line_and_goes_on() {
    let (folder, path, ends) = written();
    let bytes = fs::read(&path).unwrap();
    // A sync takes milliseconds: a small ledger is cut.
    let bytes = &bytes[..ends[4]];
    let story = &story()[..4];
    let ends = &ends[..5];
    let cut = folder.path().join("cut");
    for at in 0..=bytes.len() {
        fs::write(&cut, &bytes[..at]).unwrap();
        let whole = ends.iter().filter(|end| **end <= at).count();
        let kept = whole.saturating_sub(1);
        let start = if whole == 0 { 0 } else { ends[kept] };
        if whole > 0 {
            let read = Ledger::read(&cut).unwrap();
            assert_eq!(
                (read.state, read.entries),
                (folded(&story[..kept]), kept as u64)
            );
        }
        let (mut ledger, torn) = Ledger::open(&cut, header()).unwrap();
        assert_eq!(*ledger.state(), folded(&story[..kept]), "cut at {at}");
        let lost = torn.map(|torn| (torn.offset, torn.length));
        let left = (at > start).then_some((start as u64, (at - start) as u64));
        assert_eq!(lost, left, "cut at {at}");
        if at % 50 == 0 {
            for entry in &story[kept..] {
                ledger.append(entry).unwrap();
            }
            assert_eq!(fs::read(&cut).unwrap(), bytes, "cut at {at}");
        }
    }
}

#[test]
fn pages_that_never_came_to_the_disk_are_a_torn_end() {
    let (_folder, path, ends) = written();
    let bytes = fs::read(&path).unwrap();
    let last = ends[ends.len() - 2];
    for from in last..bytes.len() {
        let mut zeros = bytes.clone();
        zeros[from..].fill(0);
        // With and without the line's end.
        for end in [0, b'\n'] {
            *zeros.last_mut().unwrap() = end;
            if zeros == bytes {
                continue;
            }
            fs::write(&path, &zeros).unwrap();
            let (_, torn) = Ledger::open(&path, header()).unwrap();
            let torn = torn.unwrap();
            assert_eq!(torn.offset, last as u64);
            assert_eq!(length(&path), last);
        }
    }
}

#[test]
fn a_damaged_line_is_told_with_its_offset_and_nothing_is_changed() {
    let (_folder, path, ends) = written();
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() - 1 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let line = ends.iter().rposition(|end| *end <= at);
        match Ledger::open(&path, header()) {
            Err(LedgerError::Damaged { offset, .. }) => {
                assert_eq!(
                    Some(offset),
                    line.map(|line| ends[line] as u64),
                    "byte {at}"
                );
            }
            Err(LedgerError::NotALedger { .. }) => assert_eq!(line, None, "byte {at}"),
            other => panic!("byte {at}: {other:?}"),
        }
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
}

#[test]
fn another_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    for text in ["notes", "notes\n", "0", "\0\0\0", "{\"ledger\":1}\n"] {
        fs::write(&path, text).unwrap();
        let error = Ledger::open(&path, header()).unwrap_err();
        assert!(matches!(error, LedgerError::NotALedger { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_ledger_is_of_one_chain_executor_and_account() {
    let (_folder, path, _) = written();
    let other = Address::repeat_byte(7);
    let Header {
        executor, owner, ..
    } = header();
    for wanted in [
        Header::new(2, executor, owner),
        Header::new(1, other, owner),
        Header::new(1, executor, other),
    ] {
        let error = Ledger::open(&path, wanted).unwrap_err();
        assert!(matches!(error, LedgerError::Other { .. }), "{error}");
    }
    let later = Header {
        settlement_ledger: 2,
        ..header()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later");
    drop(Ledger::open(&path, later).unwrap());
    let error = Ledger::open(&path, header()).unwrap_err();
    assert!(
        matches!(error, LedgerError::Version { found: 2, .. }),
        "{error}"
    );
}

#[test]
fn one_appends_at_a_time_and_others_may_read() {
    let (_folder, path, _) = written();
    let (first, _) = Ledger::open(&path, header()).unwrap();
    let error = Ledger::open(&path, header()).unwrap_err();
    assert!(matches!(error, LedgerError::InUse { .. }), "{error}");
    assert_eq!(Ledger::read(&path).unwrap().entries, story().len() as u64);
    drop(first);
    assert!(Ledger::open(&path, header()).is_ok());
}

#[test]
fn totals_are_those_of_what_the_chain_has() {
    let totals = *folded(&story()).totals();
    let gas = U256::from(21_000 * 7);
    assert_eq!((totals.planned, totals.gaps, totals.sent), (4, 1, 5));
    assert_eq!((totals.included, totals.reversed), (1, 1));
    assert_eq!(totals.realised, U256::from(100_000));
    assert_eq!(totals.gas_spent, gas * U256::from(3));
    // The included one cost 147,000 and brought in 100,000.
    assert_eq!(totals.loss, gas * U256::from(3) - U256::from(100_000));
    assert_eq!((totals.open(), totals.ended()), (1, 4));
}

#[test]
fn what_cannot_follow_is_refused_and_changes_nothing() {
    let (_folder, path, ends) = written();
    let (mut ledger, _) = Ledger::open(&path, header()).unwrap();
    let dropped = Outcome::Dropped { cancel: None };
    let reversed = |id, block| Entry::Reversed { id: Id(id), block };
    for (entry, is) in [
        (planned(9), "Number"),
        (planned(0), "Number"),
        (ended(0, dropped.clone()), "Ended"),
        (ended(9, dropped), "Unknown"),
        (sent(0, 4, Kind::Settle), "Ended"),
        (sent(4, 8, Kind::Cancel), "Nonce"),
        (sent(5, 4, Kind::Cancel), "Taken"),
        (sent(5, 7, Kind::Cancel), "Taken"),
        (reversed(4, Some(block(12))), "NotThere"),
        (reversed(0, Some(block(11))), "NotThere"),
        (reversed(3, None), "NotThere"),
    ] {
        let before = ledger.state().clone();
        let Err(LedgerError::Refused { source, .. }) = ledger.append(&entry) else {
            panic!("{entry:?} was taken")
        };
        let source: Inconsistent = source;
        assert!(format!("{source:?}").starts_with(is), "{entry:?}: {source}");
        assert_eq!(*ledger.state(), before);
    }
    assert_eq!(length(&path), *ends.last().unwrap());
}
