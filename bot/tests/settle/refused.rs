//! What settling does not start with.

use crate::lab::{Bot, Lab};
use alloy_primitives::Address;
use regatta_chain_lab::rows::WETH;
use regatta_settle::ledger::{Header, Ledger};

/// The exit code of a run with these, and what it says.
fn refused(lab: &Lab, args: &[&str]) -> (Option<i32>, String) {
    let mut bot = Bot::spawn(lab, args);
    let status = bot.wait();
    (status.code(), bot.errors())
}

#[test]
fn a_wrong_key_executor_owner_or_ledger_is_told_before_anything_starts() {
    let lab = Lab::new(15);
    lab.write_key("open", 0, 0o644);
    lab.write_key("other", 1, 0o600);
    let header = Header::new(
        5,
        lab.executor.parse::<Address>().unwrap(),
        lab.node.accounts()[0].address,
    );
    Ledger::open(&lab.path("foreign"), header).unwrap();
    let weth = WETH.to_string();
    let (key, open, other) = (lab.text("key"), lab.text("open"), lab.text("other"));
    let (ledger, foreign) = (lab.text("ledger"), lab.text("foreign"));
    let executor = lab.executor.as_str();
    let nobody = "0x00000000000000000000000000000000000dead0";
    for (key, executor, ledger, says) in [
        (&open, executor, &ledger, "its mode is 0644"),
        (&key, nobody, &ledger, "has no code"),
        (
            &key,
            &weth,
            &ledger,
            "is not that of the executor this build knows",
        ),
        (&other, executor, &ledger, "is owned by"),
        (&key, executor, &foreign, "is of chain 5"),
    ] {
        let live = [
            "--settle",
            "live",
            "--key",
            key,
            "--executor",
            executor,
            "--ledger",
            ledger,
        ];
        let (code, said) = refused(&lab, &live);
        assert_eq!(code, Some(8), "{said}");
        assert!(said.contains(says), "{says}: {said}");
    }
    assert!(
        !lab.path("ledger").exists(),
        "a refused run leaves no ledger"
    );
}

#[test]
fn options_that_do_not_fit_are_refused_without_a_node() {
    let run = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_regatta"))
            .arg("run")
            .args(args)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let weth = WETH.to_string();
    let at = [
        "--rpc",
        "ws://127.0.0.1:1",
        "--factory",
        &weth,
        "--executor",
        &weth,
        "--ledger",
        "/none",
    ];
    for (more, says) in [
        (vec!["--settle", "live"], "--key <FILE>"),
        (
            vec!["--settle", "shadow", "--key", "/none"],
            "leave --key out",
        ),
        (
            vec![
                "--settle",
                "shadow",
                "--max-fee-per-gas",
                "5",
                "--priority-fee",
                "6",
            ],
            "cannot be above it",
        ),
        (vec!["--loss-limit", "1"], "--settle <MODE>"),
        (vec!["--settle", "shadow", "--expiry-blocks", "0"], "1..=64"),
    ] {
        let args: Vec<&str> = at.iter().copied().chain(more).collect();
        let (code, said) = run(&args);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(says), "{says}: {said}");
    }
    for args in [
        vec![
            "--settle",
            "shadow",
            "--executor",
            &weth,
            "--ledger",
            "/none",
        ],
        vec!["--rpc", "ws://127.0.0.1:1", "--settle", "shadow"],
    ] {
        assert_eq!(run(&args).0, Some(2));
    }
}
