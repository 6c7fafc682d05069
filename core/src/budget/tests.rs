//! The arithmetic of amounts, quotas that are put together, overrides, and the rows of both tiers.

use super::*;
use crate::role::{ConsumerSpec, FLEET_ROLES, WorkerRole};
use proptest::prelude::*;
use std::string::{String, ToString};
use std::vec::Vec;

const T: &RoleTable = &FLEET_ROLES;

fn overridden(pairs: &[(&str, &str)]) -> Overrides {
    let mut overrides = Overrides::none();
    for (key, text) in pairs {
        overrides.set(T, key, text, Origin::Config).unwrap();
    }
    overrides
}

fn peaks(budget: &Budget) -> Vec<(&'static str, u16, u16)> {
    let rows = budget.rows().iter();
    rows.map(|row| (row.name, row.peak_cores, row.threads))
        .collect()
}

#[test]
fn floor_and_ceil_differ_exactly_where_there_is_a_fraction() {
    for milli in 0..=64_000u32 {
        let q = MilliCpu::new(milli);
        let (floor, ceil) = (u32::from(q.floor_cores()), u32::from(q.ceil_cores()));
        assert!(floor * 1000 <= milli && milli < (floor + 1) * 1000);
        assert_eq!(ceil - floor, u32::from(q.fraction() != 0));
        assert_eq!(floor * 1000 + q.fraction(), milli);
    }
    let most = MilliCpu::new(u32::MAX);
    assert_eq!(
        (most.floor_cores(), most.ceil_cores()),
        (u16::MAX, u16::MAX)
    );
}

#[test]
fn an_amount_shows_as_the_decimal_number_it_is() {
    for (milli, shown) in [
        (0, "0"),
        (5, "0.005"),
        (250, "0.25"),
        (1_250, "1.25"),
        (8_000, "8"),
    ] {
        assert_eq!(MilliCpu::new(milli).to_string(), shown);
    }
}

#[test]
fn an_amount_is_read_from_digits_alone() {
    assert_eq!(MilliCpu::parse("2000"), Ok(MilliCpu::from_cores(2)));
    for bad in ["", "0", "2.5", "-1", "2000m", " 2000", "4294967296"] {
        let error = MilliCpu::parse(bad).unwrap_err().to_string();
        assert!(error.contains(&std::format!("{bad:?}")) && error.contains("2000 for two"));
    }
}

#[test]
fn two_sources_give_the_tighter_bound_and_the_weaker_confidence() {
    let cgroup = |milli| Quota {
        evidence: Evidence {
            bounded_by: BoundedBy::Cgroup2,
            level: Some(1),
            confidence: Confidence::Approximate,
            reason: Reason::OutsideNamespace,
        },
        bound: Some(MilliCpu::new(milli)),
    };
    let mask = Quota::exact(
        MilliCpu::from_cores(4),
        BoundedBy::Affinity,
        Reason::MaskCounted,
    );

    let both = cgroup(6000).and(mask);
    assert_eq!(both.bound, mask.bound);
    assert_eq!(both.evidence.bounded_by, BoundedBy::Affinity);
    assert_eq!(both.evidence.confidence, Confidence::Approximate);
    assert_eq!(both.evidence.reason, Reason::OutsideNamespace);
    assert_eq!(cgroup(2000).and(mask), cgroup(2000));

    let free = Quota::unlimited(Reason::NoLimit);
    assert_eq!((free.and(mask), mask.and(free)), (mask, mask));
    assert_eq!(free.known(), None, "no limit is no number");

    let blind = Quota::unknown(Reason::NotMounted);
    for quota in [blind.and(mask), mask.and(blind)] {
        assert_eq!(quota.bound, mask.bound, "the mask still bounds");
        assert_eq!(quota.known(), None, "and what it leaves is not known");
        assert_eq!(quota.evidence.reason, Reason::NotMounted);
    }
}

#[test]
fn the_keys_follow_from_the_table() {
    let keys: Vec<String> = Setting::all(T)
        .filter_map(|s| s.key(T))
        .map(|key| key.to_string())
        .collect();
    assert_eq!(
        keys,
        [
            "quota",
            "reserve_cores",
            "ambient_io_cores",
            "solver_cores",
            "resolve_cores",
            "merge_cores",
            "solver_pins",
            "sim_driver_slots",
        ]
    );
    for setting in Setting::all(T) {
        let key = setting.key(T).unwrap().to_string();
        assert_eq!(Setting::find(T, &key), Some(setting));
    }
    assert_eq!(Setting::find(T, "submitter_cores"), None);
}

#[test]
fn a_refused_override_names_key_text_origin_and_what_would_be_right() {
    let mut overrides = Overrides::none();
    let cases = [
        ("solver_cores", "0", "1 to 65535"),
        ("solver_cores", "65536", "1 to 65535"),
        ("reserve_cores", "-1", "0 to 65535"),
        ("solver_pins", "65", "1 to 64"),
        ("sim_driver_slots", "many", "1 to 64"),
        ("quota", "0", "1 to 4294967295"),
    ];
    for (key, text, takes) in cases {
        let error = overrides
            .set(T, key, text, Origin::Environment)
            .unwrap_err()
            .to_string();
        for part in [key, text, takes, "environment"] {
            assert!(error.contains(part), "{error}");
        }
    }
    let error = overrides
        .set(T, "solver\n", "1", Origin::Config)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"solver\\n\"") && error.contains("config"),
        "{error}"
    );
    let error = overrides.insert(T, Setting::Cores(Consumer::Beside(9)), 1, Origin::Config);
    assert!(matches!(error, Err(OverrideError::UnknownKey { .. })));
    let error = overrides.insert(T, Setting::Quota, 0, Origin::Config);
    assert!(matches!(error, Err(OverrideError::Value { .. })));
    assert_eq!(
        overrides,
        Overrides::none(),
        "a refused value leaves no trace"
    );
}

proptest! {
    #[test]
    fn the_later_origin_wins_in_whatever_order_values_come(
        given in prop::collection::vec((0usize..8, 1u32..=64, 1usize..4), 0..24),
        split in 0usize..24,
    ) {
        let origins = [Origin::Rule, Origin::Config, Origin::Environment, Origin::CommandLine];
        let settings: Vec<Setting> = Setting::all(T).collect();
        // One value per setting and origin, so that the order cannot matter.
        let mut given = given;
        given.sort_unstable();
        given.dedup_by_key(|(setting, _, origin)| (*setting, *origin));
        let mut unique: Vec<(usize, u32, usize)> = Vec::new();
        for entry in given {
            if !unique.iter().any(|u| (u.0, u.2) == (entry.0, entry.2)) {
                unique.push(entry);
            }
        }
        let (left, right) = unique.split_at(split.min(unique.len()));
        let layer = |entries: &[(usize, u32, usize)]| {
            let mut layer = Overrides::none();
            for &(setting, value, origin) in entries {
                layer.insert(T, settings[setting], value, origins[origin]).unwrap();
            }
            layer
        };
        let (mut forth, mut back) = (layer(left), layer(right));
        forth.merge(&layer(right));
        back.merge(&layer(left));
        prop_assert_eq!(&forth, &back);
        for (index, setting) in settings.iter().enumerate() {
            let want = unique.iter().filter(|u| u.0 == index).max_by_key(|u| u.2);
            let got = forth.iter(T).find(|(s, ..)| s == setting).map(|(_, _, o)| (o.value, o.origin));
            prop_assert_eq!(got, want.map(|u| (u.1, origins[u.2])));
        }
    }
}

#[test]
fn at_one_origin_the_later_value_wins() {
    let mut overrides = overridden(&[("solver_pins", "3")]);
    overrides
        .set(T, "solver_pins", "5", Origin::Config)
        .unwrap();
    assert_eq!(
        overrides.count(WorkerRole::Solver.id()).map(|o| o.value),
        Some(5)
    );
    overrides
        .set(T, "solver_pins", "7", Origin::CommandLine)
        .unwrap();
    overrides
        .set(T, "solver_pins", "9", Origin::Environment)
        .unwrap();
    assert_eq!(
        overrides.count(WorkerRole::Solver.id()).map(|o| o.value),
        Some(7)
    );
}

#[test]
fn eight_cores_are_shared_out_as_signed_off() {
    let budget = Budget::pinned(T, 8, &Overrides::none());
    assert_eq!(
        peaks(&budget),
        [
            ("reserve", 1, 0),
            ("ambient_io", 2, 2),
            ("solver", 3, 6),
            ("sim_driver", 0, 4),
            ("resolve", 1, 1),
            ("merge", 1, 1),
            ("pool_state_updater", 0, 0),
            ("registrar", 0, 0),
            ("verifier", 0, 0),
            ("submitter", 0, 0),
        ]
    );
    assert_eq!(budget.sum(), 8);
}

#[test]
fn the_serial_tier_gives_one_core_to_the_cycle_and_the_rest_to_what_stands_beside_it() {
    for cores in 2..=64u16 {
        let budget = Budget::serial(T, cores, &Overrides::none());
        let share = |name: &str| budget.named(name).unwrap();
        assert_eq!(share(CYCLE).peak_cores, 1);
        assert_eq!(share("reserve").peak_cores, cores - 1);
        assert_eq!(share("ambient_io").within, Some("reserve"));
        assert_eq!(share("ambient_io").threads, (cores / 4).max(1));
        assert!(
            T.ids()
                .all(|role| budget.role(role).unwrap().within == Some(CYCLE))
        );
        assert_eq!(budget.sum(), u32::from(cores));
    }
    let own = Budget::serial(T, 4, &overridden(&[("reserve_cores", "2")]));
    assert_eq!(own.named("reserve").unwrap().peak_cores, 2);
    assert_eq!(own.named("ambient_io").unwrap().peak_cores, 1);
    assert_eq!(own.named("ambient_io").unwrap().within, None);
}

#[test]
fn an_override_stands_as_given_and_the_rest_follows() {
    let budget = Budget::pinned(
        T,
        8,
        &overridden(&[
            ("ambient_io_cores", "0"),
            ("resolve_cores", "2"),
            ("solver_pins", "3"),
            ("sim_driver_slots", "9"),
        ]),
    );
    let row = |name: &str| *budget.named(name).unwrap();
    assert_eq!(
        (row("ambient_io").peak_cores, row("ambient_io").threads),
        (0, 1)
    );
    assert_eq!((row("resolve").peak_cores, row("resolve").threads), (2, 2));
    assert_eq!((row("solver").peak_cores, row("solver").threads), (4, 3));
    assert_eq!(
        (row("solver").origin, row("solver").threads_origin),
        (Origin::Rule, Origin::Config)
    );
    assert_eq!(
        (row("sim_driver").peak_cores, row("sim_driver").threads),
        (0, 9)
    );
    assert_eq!(budget.sum(), 8);
    let fixed = Budget::pinned(T, 8, &overridden(&[("solver_cores", "1")]));
    assert_eq!(fixed.named("solver").unwrap().peak_cores, 1);
    assert_eq!(fixed.sum(), 6, "what an override leaves stays free");
}

#[test]
fn an_overrun_lists_each_consumer_its_share_and_where_that_came_from() {
    let mut overrides = overridden(&[("ambient_io_cores", "3")]);
    overrides
        .set(T, "solver_cores", "4", Origin::CommandLine)
        .unwrap();
    let error = Budget::pinned(T, 8, &overrides).check(8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the shares sum to 10 cores and there are 8: reserve 1 (rule), ambient_io 3 (config), solver 4 \
         (command line), resolve 1 (rule), merge 1 (rule); lower one of them, or allocate more with \
         --quota 10000"
    );
    assert_eq!(Budget::pinned(T, 8, &overrides).check(10), Ok(()));
}

#[test]
fn the_pinned_floor_is_where_the_shares_first_fit() {
    assert_eq!(pinned_floor(T), 6);
    let beside = |share| {
        std::vec![ConsumerSpec {
            name: "x",
            share,
            threads: false,
        }]
    };
    let with = |share| RoleTable {
        consumers: beside(share).leak(),
        ..FLEET_ROLES
    };
    // resolve 1, merge 1, solver at least 2.
    assert_eq!(pinned_floor(&with(ShareRule::Fixed { cores: 0 })), 4);
    assert_eq!(pinned_floor(&with(ShareRule::Quarter { min: 3 })), 7);
    assert_eq!(
        pinned_floor(&with(ShareRule::Fixed { cores: u16::MAX })),
        u16::MAX
    );
    for cores in 2..64 {
        let fits = Budget::pinned(T, cores, &Overrides::none())
            .check(cores)
            .is_ok();
        assert_eq!(fits, cores >= 6, "{cores}");
    }
}
