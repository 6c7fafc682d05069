//! Patches: all or nothing, typed refusals, text.

use super::super::*;
use std::string::{String, ToString};
use std::vec::Vec;

/// For each key a good value other than the default, a bad one, and both as text.
fn texts(key: PolicyKey) -> (&'static str, &'static str) {
    match key {
        PolicyKey::EnterEvents => ("3", "0"),
        PolicyKey::EnterWindowMs | PolicyKey::DutyWindowMs | PolicyKey::ExitCleanMs => ("7", "0"),
        PolicyKey::DutyPercent => ("0.5", "100.001"),
        PolicyKey::SimIntakeFloor => ("2", "0"),
    }
}

#[test]
fn every_subset_of_good_and_bad_values_is_applied_whole_or_not_at_all() {
    let before = PosturePolicy::DEFAULT;
    // Each key absent, good or bad.
    for code in 0..3usize.pow(6) {
        let kinds: Vec<usize> = (0..6).map(|i| code / 3usize.pow(i) % 3).collect();
        let mut patch = PosturePolicyPatch::default();
        for (key, kind) in PolicyKey::ALL.into_iter().zip(&kinds) {
            let (good, bad) = texts(key);
            match kind {
                1 => patch.set(key.name(), good).unwrap(),
                2 => patch.set(key.name(), bad).unwrap(),
                _ => {}
            }
        }
        let first_bad = kinds
            .iter()
            .position(|k| *k == 2)
            .map(|i| PolicyKey::ALL[i]);
        match before.patched(&patch) {
            Ok((after, changes)) => {
                assert_eq!(first_bad, None);
                let (old, new) = (before.whole(), after.whole());
                for (key, kind) in PolicyKey::ALL.into_iter().zip(&kinds) {
                    let want = if *kind == 1 {
                        patch.get(key)
                    } else {
                        old.get(key)
                    };
                    assert_eq!(new.get(key), want);
                    assert_eq!(changes.iter().any(|c| c.key == key), *kind == 1);
                }
            }
            Err(PolicyError::OutOfRange { key, value }) => {
                assert_eq!(Some(key), first_bad);
                assert_eq!(Some(value), patch.get(key));
            }
            Err(PolicyError::Empty) => assert_eq!(code, 0),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn the_values_at_the_ends_of_each_range_are_taken_and_those_beyond_are_not() {
    let verdict = |key: &str, text: &str| {
        let mut patch = PosturePolicyPatch::default();
        patch.set(key, text).and_then(|()| patch.validate()).is_ok()
    };
    for key in PolicyKey::ALL {
        let (good, bad): (&[&str], &[&str]) = match key {
            PolicyKey::DutyPercent => (
                &["0.001", "2", "2.5", "100", "100.000"],
                &[
                    "0", "0.000", "0.0005", "100.001", "-1", "2.", ".5", "2.5.1", "1e1", "4294968",
                ],
            ),
            PolicyKey::SimIntakeFloor => {
                (&["1", "65535", "null"], &["0", "65536", "none", "", "-1"])
            }
            _ => (
                &["1", "4294967295"],
                &["0", "4294967296", "1.5", "", "null", "+1", "1 "],
            ),
        };
        for text in good {
            assert!(verdict(key.name(), text), "{key} = {text}");
        }
        for text in bad {
            assert!(!verdict(key.name(), text), "{key} = {text}");
        }
    }
}

#[test]
fn a_percentage_is_read_to_the_thousandth() {
    let cases = [
        ("2", 2_000),
        ("0.5", 500),
        ("0.05", 50),
        ("0.005", 5),
        ("99.999", 99_999),
    ];
    for (text, thousandths) in cases {
        let mut patch = PosturePolicyPatch::default();
        patch.set("cordon_duty_percent", text).unwrap();
        assert_eq!(
            patch.duty_percent.map(DutyPercent::thousandths),
            Some(thousandths)
        );
        assert_eq!(patch.duty_percent.unwrap().to_string(), text);
    }
}

#[test]
fn a_refusal_names_key_value_and_range_and_an_unknown_key_gets_the_list() {
    let mut patch = PosturePolicyPatch::default();
    let unknown = patch
        .set("cordon_enter_event", "3")
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("\"cordon_enter_event\""));
    assert!(
        PolicyKey::ALL
            .iter()
            .all(|key| unknown.contains(key.name())),
        "{unknown}"
    );
    let malformed = patch
        .set("cordon_duty_percent", "2%")
        .unwrap_err()
        .to_string();
    for part in ["cordon_duty_percent", "\"2%\"", "up to 100"] {
        assert!(malformed.contains(part), "{malformed}");
    }
    patch.set("cordon_duty_percent", "101").unwrap();
    let range = patch.validate().unwrap_err().to_string();
    assert!(
        range.contains("not 101") && range.contains("up to 100"),
        "{range}"
    );
    let twice = patch.set("cordon_duty_percent", "1");
    assert_eq!(
        twice,
        Err(PolicyError::Twice {
            key: PolicyKey::DutyPercent
        })
    );
}

#[test]
fn null_goes_back_to_half_the_slots_and_changes_read_old_to_new() {
    let mut patch = PosturePolicyPatch::default();
    patch.set("cordon_sim_intake_floor", "3").unwrap();
    patch.set("cordon_duty_percent", "0.25").unwrap();
    patch.set("cordon_enter_events", "2").unwrap();
    let (policy, changes) = PosturePolicy::DEFAULT.patched(&patch).unwrap();
    let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "cordon_duty_percent: 2 -> 0.25",
            "cordon_sim_intake_floor: null -> 3"
        ]
    );
    assert_eq!(policy.sim_intake_floor(), Some(3));
    let mut back = PosturePolicyPatch::default();
    back.set("cordon_sim_intake_floor", "null").unwrap();
    let (policy, changes) = policy.patched(&back).unwrap();
    assert_eq!((policy.sim_intake_floor(), changes.len()), (None, 1));
}
