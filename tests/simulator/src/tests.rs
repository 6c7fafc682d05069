//! Tests of the simulator itself: that it is a function of its seed, and that it can fail.

use crate::bug::Bug;
use crate::coverage::Coverage;
use crate::generate::{STEPS, script};
use crate::report::{self, ReportError, Runs};
use crate::run::{self, Failure, shrink};

/// Seeds in which every bug of the binding is found.
const ENOUGH: u64 = 20_000;

fn found(bug: Bug) -> Failure {
    (0..ENOUGH)
        .find_map(|seed| run::seed(seed, STEPS, Some(bug), &mut Coverage::default()).err())
        .map_or_else(
            || panic!("{} was not found in {ENOUGH} runs", bug.name()),
            |found| *found,
        )
}

#[test]
fn every_bug_of_the_binding_is_found() {
    for bug in Bug::ALL {
        found(bug);
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let counted = |seed| {
        let mut cover = Coverage::default();
        run::seed(seed, STEPS, None, &mut cover).unwrap();
        (cover.steps, cover.units, cover.millis)
    };
    let first: Vec<_> = (0..50).map(counted).collect();
    let second: Vec<_> = (0..50).map(counted).collect();
    assert_eq!(first, second);
    assert!(first.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn a_script_that_was_cut_fails_by_the_same_rule_and_no_operation_of_it_can_go() {
    let failure = found(Bug::ResizeNotPolled);
    let least = shrink(&failure, Some(Bug::ResizeNotPolled));
    assert_eq!(least.violation.rule, failure.violation.rule);
    assert!(least.script.ops.len() < failure.script.ops.len() / 2);
    assert_eq!(shrink(&least, Some(Bug::ResizeNotPolled)), least);
    // Without the bug nothing is wrong with it.
    run::run(&least.script, None, &mut Coverage::default()).unwrap();
    let text = least.script.as_test("kept");
    assert!(
        text.starts_with("#[test]\nfn kept() {\n    holds(&Script {\n"),
        "{text}"
    );
    for op in &least.script.ops {
        assert!(
            text.contains(&format!("            Op::{op:?},\n")),
            "{text}"
        );
    }
}

#[test]
fn scripts_grow_with_the_operations_asked_for() {
    for (steps, least) in [(8, 8), (48, 48), (400, 400)] {
        for seed in 0..20 {
            assert!(script(seed, steps).ops.len() >= least);
        }
    }
    let mut cover = Coverage::default();
    for seed in 0..20 {
        run::seed(seed, 400, None, &mut cover).unwrap();
    }
}

#[test]
fn a_report_says_what_holds_or_the_test_to_keep() {
    let runs = Runs {
        first: 0,
        seeds: 20,
        steps: STEPS,
        bug: None,
    };
    let mut out = Vec::new();
    report::whole(runs, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with("20 runs in ") && text.contains("\nheld       holds: "),
        "{text}"
    );
    assert!(text.contains("missed: "), "{text}");
    let mut out = Vec::new();
    let bug = Some(Bug::TwoKeepers);
    let error = report::whole(Runs { bug, ..runs }, &mut out).unwrap_err();
    assert!(matches!(error, ReportError::Fails { .. }), "{error}");
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("#[test]\nfn seed_"), "{text}");
}
