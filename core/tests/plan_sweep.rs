//! The plan over every quota from nothing to 64 cores, in thousandths: what more quota never takes away,
//! and the complete list of where it does.
#![cfg(test)]

use regatta_core::budget::{BoundedBy, MilliCpu, Origin, Overrides, Quota, Reason, Setting};
use regatta_core::plan::{Binding, Bindings, BootRefused, FleetPlan, PlanInput, Profile};
use regatta_core::role::FLEET_ROLES;
use std::collections::BTreeMap;

const MOST: u32 = 64_000;

fn derive(milli: u32, profile: Profile, overrides: &Overrides) -> Result<FleetPlan, BootRefused> {
    FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Quota::exact(MilliCpu::new(milli), BoundedBy::Cgroup2, Reason::LimitRead),
        profile,
        overrides,
        bindings: Bindings { pinned: true },
    })
}

/// Everything of a plan that one might expect to grow with the quota, by name.
fn measures(plan: &Result<FleetPlan, BootRefused>) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let mut note = |name: String, value: u32| found.insert(name, value);
    let tier = plan.as_ref().map(|plan| plan.binding);
    note(
        "tier".into(),
        match tier {
            Err(_) => 0,
            Ok(Binding::Serial) => 1,
            Ok(Binding::Pinned) => 2,
        },
    );
    let Ok(plan) = plan else { return found };
    note("fits".into(), u32::from(!plan.oversubscribed));
    note("permits".into(), plan.permits.total.into());
    note("keyed permits".into(), plan.permits.keyed.into());
    note("seats".into(), u32::try_from(plan.seats.len()).unwrap());
    note("threads".into(), plan.threads().into());
    for row in plan.budget.rows().iter().filter(|row| row.within.is_none()) {
        note(format!("share of {}", row.name), row.peak_cores.into());
    }
    for (role, spec) in FLEET_ROLES.ids().zip(FLEET_ROLES.roles) {
        note(format!("slots of {}", spec.name), plan.slots(role).into());
        note(format!("keys of {}", spec.name), plan.keys(role).into());
    }
    found
}

/// Where a measure falls as the quota grows by one of `steps`, in words. A share that one tier has and the
/// other has not counts as nothing there.
fn falls(profile: Profile, overrides: &Overrides, steps: impl Iterator<Item = u32>) -> Vec<String> {
    let mut falls = Vec::new();
    let mut before = measures(&derive(0, profile, overrides));
    for milli in steps {
        let now = measures(&derive(milli, profile, overrides));
        if now == before {
            continue;
        }
        for (name, old) in &before {
            let new = now.get(name).copied().unwrap_or(0);
            // Of a plan that is refused nothing else is said.
            if new < *old && (now["tier"] > 0 || name == "tier") {
                falls.push(format!(
                    "{}: {name} {old} -> {new} at {milli}",
                    profile.name()
                ));
            }
        }
        before = now;
    }
    falls
}

#[test]
fn more_quota_takes_nothing_away_but_where_the_tier_changes() {
    let found = Profile::ALL.map(|profile| falls(profile, &Overrides::none(), 1..=MOST));
    // What the serial tier gives to the reserve, the pinned tier gives to the roles, each its own.
    let tier_changes = vec![
        "auto: share of cycle 1 -> 0 at 6000".to_owned(),
        "auto: share of reserve 4 -> 1 at 6000".to_owned(),
    ];
    assert_eq!(found, [tier_changes, Vec::new(), Vec::new()]);
}

/// Each setting at the ends of its range and just inside, alone.
fn edges() -> Vec<(String, Overrides)> {
    let mut edges = Vec::new();
    for setting in Setting::all(&FLEET_ROLES) {
        let takes = setting.takes();
        let values = [0, 1, 2, 3, *takes.end()];
        for value in values.into_iter().filter(|value| takes.contains(value)) {
            let mut overrides = Overrides::none();
            let set = overrides.insert(&FLEET_ROLES, setting, value, Origin::CommandLine);
            set.unwrap();
            let key = setting.key(&FLEET_ROLES).unwrap();
            edges.push((format!("{key}={value}"), overrides));
        }
    }
    edges
}

/// Whole cores and the last thousandth before the next.
fn cores() -> impl Iterator<Item = u32> {
    (0..=MOST / 1000).flat_map(|cores| [cores * 1000, cores * 1000 + 999])
}

/// An override that a serial fleet has room for may be more than the pinned tier can give, and `auto` goes
/// by the quota alone: from six cores on it refuses what it ran on five, until there is room.
#[test]
fn an_override_can_refuse_on_six_cores_what_runs_on_five_and_these_do() {
    let mut refusing = Vec::new();
    for (name, overrides) in edges() {
        for profile in Profile::ALL {
            let found = falls(profile, &overrides, cores());
            if found == ["auto: tier 1 -> 0 at 6000"] {
                refusing.push(name.clone());
                continue;
            }
            let at_tier_change = |fall: &String| fall.starts_with("auto: share of ");
            assert!(
                found
                    .iter()
                    .all(|fall| at_tier_change(fall) && fall.ends_with(" at 6000")),
                "{name}: {found:?}"
            );
        }
    }
    let expected = [
        "reserve_cores=2",
        "reserve_cores=3",
        "ambient_io_cores=2",
        "ambient_io_cores=3",
        "solver_cores=3",
        "solver_cores=65535",
        "resolve_cores=2",
        "resolve_cores=3",
        "resolve_cores=65535",
        "merge_cores=2",
        "merge_cores=3",
        "merge_cores=65535",
        "solver_pins=64",
        "sim_driver_slots=64",
    ];
    assert_eq!(refusing, expected);
}

#[test]
fn with_any_override_the_sum_fits_or_the_plan_says_that_it_does_not() {
    for (name, overrides) in edges() {
        for profile in Profile::ALL {
            for milli in cores() {
                let plan = derive(milli, profile, &overrides);
                let allocated = overrides.quota().map_or(milli, |given| given.value.milli());
                let cores = allocated / 1000;
                let whole = derive(milli / 1000 * 1000, profile, &overrides);
                assert_eq!(
                    measures(&plan),
                    measures(&whole),
                    "a fraction is never shared out"
                );
                match plan {
                    Ok(plan) => {
                        assert_eq!(
                            plan.oversubscribed,
                            plan.budget.sum() > cores,
                            "{name} {milli}"
                        );
                        let accepted = profile == Profile::Pinned && cores < 6;
                        assert!(accepted || !plan.oversubscribed, "{name} {milli}");
                        assert!((1..=plan.permits.total).contains(&plan.permits.keyed));
                    }
                    Err(BootRefused::Overrun(overrun)) => {
                        assert!(overrun.budget.sum() > cores, "{name} {milli}");
                    }
                    Err(BootRefused::BelowHostFloor { .. }) => assert!(cores < 2, "{name} {milli}"),
                    Err(BootRefused::TooManySeats { seats }) => {
                        assert!(seats > 64, "{name} {milli}");
                    }
                    Err(other) => panic!("{name} {milli}: {other}"),
                }
            }
        }
    }
}
