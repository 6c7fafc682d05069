//! The command line and the environment.

use super::*;

#[test]
fn help_names_every_option_and_where_its_values_lie() {
    let help = ran(command(&["run", "--help"])).exits(0).stdout;
    for part in [
        "--pools <FILE>",
        "--base <ADDRESS>",
        "--blocks <N>",
        "--seed <S>",
        "--block-time <MS>",
        "--max-hops <2..4>",
        "--top <K>",
        "--min-profit <UNITS>",
        "--json",
        "--quota <MILLI>",
        "--profile <PROFILE>",
        "--set <KEY=VALUE>",
        "--wake <KIND>",
        "--affinity <WHERE>",
        "--scenario <NAME>",
        "--sim <HOW>",
        "cordon-crawl",
        "--log <LEVEL>",
        "REGATTA_AMBIENT_IO_CORES",
    ] {
        assert!(help.contains(part), "{part} is not in {help}");
    }
    assert!(ran(command(&["--help"])).exits(0).stdout.contains("run"));
    let version = ran(command(&["--version"])).exits(0).stdout;
    assert_eq!(version, format!("regatta {}\n", env!("CARGO_PKG_VERSION")));
    // Asked for nothing, it says what there is.
    ran(command(&[])).refused(2, &["Usage: regatta <COMMAND>", "run"]);
}

#[test]
fn bytecode_is_simulated_over_a_node_alone() {
    for with in [
        &["--sim", "evm"][..],
        &["--sim", "evm", "--capture", "none"],
    ] {
        let args = [&["run"], with].concat();
        ran(command(&args)).refused(2, &["--sim evm needs --rpc", "bytecode"]);
    }
    ran(command(&["run", "--sim", "guess"])).refused(2, &["exact, evm"]);
}

#[test]
fn values_out_of_range_are_usage_errors_that_say_what_would_be_right() {
    for (option, value, right) in [
        ("--max-hops", "1", "2..=4"),
        ("--max-hops", "5", "2..=4"),
        ("--top", "0", "1..=1000"),
        ("--top", "1001", "1..=1000"),
        ("--block-time", "86400001", "0..=86400000"),
        ("--quota", "x", "milli-cores from 1 to"),
        ("--quota", "0", "milli-cores from 1 to"),
        ("--quota", "1.5", "milli-cores from 1 to"),
        ("--base", "0x12", "40"),
        ("--profile", "fast", "auto, pinned, serial"),
        ("--wake", "spin", "auto, futex, eventfd, io_uring"),
        ("--affinity", "one", "allowed-set, one-cpu-each"),
        ("--log", "loud", "off, error, warn, info, debug"),
        ("--scenario", "storm", "cordon-crawl"),
        ("--blocks", "x", "invalid digit"),
        (
            "--min-profit",
            "340282366920938463463374607431768211456",
            "too large",
        ),
    ] {
        // An option given twice would be another error.
        ran(command(&["run", option, value])).refused(2, &[option, value, right]);
    }
    ran(command(&["run", "--blocks", "1", "--blocks", "2"])).refused(2, &["--blocks"]);
    ran(command(&["run", "--quick"])).refused(2, &["--quick"]);
    ran(command(&["crawl"])).refused(2, &["crawl"]);
}

#[test]
fn overrides_that_are_wrong_name_key_text_and_what_is_taken() {
    run(&["--set", "no_such_share=1"])
        .refused(2, &["\"no_such_share\"", "command line", "no setting"]);
    run(&["--set", "ambient_io_cores"]).refused(2, &["\"ambient_io_cores\"", "KEY=VALUE"]);
    run(&["--set", "solver_pins=65"]).refused(
        2,
        &["solver_pins", "command line", "\"65\"", "pins from 1 to 64"],
    );
    run(&["--set", "solver_pins="]).refused(2, &["solver_pins", "\"\"", "pins from 1 to 64"]);
    let mut command = run_command(&[]);
    command.env("REGATTA_QUOTA", "two");
    ran(command).refused(
        2,
        &["quota", "environment", "\"two\"", "milli-cores from 1 to"],
    );
}

#[cfg(unix)]
#[test]
fn an_environment_that_is_no_text_is_refused_by_name() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = run_command(&[]);
    command.env("REGATTA_SOLVER_PINS", std::ffi::OsStr::from_bytes(b"\xff4"));
    ran(command).refused(2, &["REGATTA_SOLVER_PINS", "not Unicode", "whole number"]);
}

#[test]
fn the_command_line_wins_over_the_environment_and_each_says_so() {
    let plan = |args: &[&str], environment: &[(&str, &str)]| {
        let mut command = command(&["run", "--json", "--blocks", "0"]);
        command.args(args).envs(environment.iter().copied());
        let ran = ran(command).exits(0);
        let plan = record(&ran.records(), "plan").clone();
        (
            plan["quota_milli"].as_u64(),
            plan["quota_origin"].as_str().map(str::to_owned),
            plan["bins"].as_u64(),
            ran.stderr,
        )
    };
    let both = plan(
        &["--quota", "3000"],
        &[("REGATTA_QUOTA", "1000"), ("REGATTA_SOLVER_PINS", "5")],
    );
    assert_eq!(
        (both.0, both.1.as_deref(), both.2),
        (Some(3000), Some("command line"), Some(5))
    );
    for line in [
        "quota = 3000 set by the command line",
        "solver_pins = 5 set by the environment",
    ] {
        assert!(both.3.contains(line), "{}", both.3);
    }
    let one = plan(
        &["--set", "solver_pins=2"],
        &[("REGATTA_QUOTA", "4000"), ("REGATTA_SOLVER_PINS", "5")],
    );
    assert_eq!(
        (one.0, one.1.as_deref(), one.2),
        (Some(4000), Some("environment"), Some(2))
    );
}

#[test]
fn a_plan_that_is_refused_has_an_exit_code_of_its_own() {
    let plain = |args: &[&str]| ran(command(&[&["run", "--log", "off"], args].concat()));
    plain(&["--quota", "1000"]).refused(10, &["1 cores", "needs 2 whole ones", "--quota 2000"]);
    plain(&["--quota", "1999"]).refused(10, &["1.999 cores"]);
    #[cfg(not(all(feature = "linux", target_os = "linux")))]
    plain(&["--quota", "8000", "--profile", "pinned"])
        .refused(11, &["no pinned binding", "--profile auto or serial"]);
    run(&["--set", "ambient_io_cores=9"]).refused(
        12,
        &[
            "sum to 11 cores",
            "there are 2",
            "ambient_io 9 (command line)",
            "--quota 11000",
        ],
    );
    run(&["--profile", "serial", "--blocks", "0"]).exits(0);
}

/// What the seats sleep in and where they run is as asked for, on either tier, and the plan says so.
#[cfg(all(feature = "linux", target_os = "linux"))]
#[test]
fn seats_are_as_they_were_asked_for() {
    for (profile, seats) in [("serial", 1), ("pinned", 12)] {
        for wake in ["futex", "eventfd", "io_uring"] {
            let asked = ["--wake", wake, "--affinity", "one-cpu-each", "--json"];
            let ran = run(&[["--profile", profile].as_slice(), &asked].concat()).exits(0);
            let plan = record(&ran.records(), "plan").clone();
            assert_eq!(plan["binding"], profile);
            assert_eq!(plan["seats"]["count"], seats);
            assert_eq!(plan["seats"]["affinity"], "one_cpu_each");
            // Where the kernel forbids it, another one and a line that says so.
            assert!(
                plan["seats"]["wake"] == wake || ran.stderr.contains(wake),
                "{plan}"
            );
        }
    }
}

#[test]
fn a_scenario_that_cannot_be_played_is_no_success() {
    let ran = run(&["--scenario", "cordon-crawl", "--max-hops", "2", "--json"]).exits(4);
    assert!(
        ran.stderr.contains("needs more than 10500"),
        "{}",
        ran.stderr
    );
    let records = ran.records();
    let kinds: Vec<_> = records
        .iter()
        .map(|record| record["type"].as_str())
        .collect();
    assert_eq!(kinds, [Some("plan"), Some("summary")]);
}
