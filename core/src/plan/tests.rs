//! The plan table, refusals, resizing, the layout and what is said about it.

use super::*;
use crate::budget::{BoundedBy, Reason};
use crate::role::{FLEET_ROLES, RoleTableError, WorkerRole};
use std::string::{String, ToString};
use std::vec::Vec;

const T: &RoleTable = &FLEET_ROLES;
const BOTH: Bindings = Bindings { pinned: true };
const SERIAL_ONLY: Bindings = Bindings { pinned: false };

fn exact(milli: u32) -> Quota {
    Quota::exact(MilliCpu::new(milli), BoundedBy::Cgroup2, Reason::LimitRead)
}

fn unsure(milli: u32) -> Quota {
    Quota::exact(
        MilliCpu::new(milli),
        BoundedBy::Affinity,
        Reason::MaskCounted,
    )
    .and(Quota::unknown(Reason::NotMounted))
}

fn overridden(pairs: &[(&str, &str)]) -> Overrides {
    let mut overrides = Overrides::none();
    for (key, text) in pairs {
        overrides.set(T, key, text, Origin::CommandLine).unwrap();
    }
    overrides
}

fn plan_with(
    quota: Quota,
    profile: Profile,
    bindings: Bindings,
    overrides: &[(&str, &str)],
) -> Result<FleetPlan, BootRefused> {
    FleetPlan::derive(&PlanInput {
        table: T,
        quota,
        profile,
        overrides: &overridden(overrides),
        bindings,
    })
}

fn plan(quota: Quota, profile: Profile) -> Result<FleetPlan, BootRefused> {
    plan_with(quota, profile, BOTH, &[])
}

#[test]
fn the_plan_table_from_one_to_sixteen_cores() {
    // Shares by hand: reserve, ambient, resolve, merge, solver; then permits in all and keyed.
    let pinned: [(u16, [u16; 5], (u16, u16)); 11] = [
        (6, [1, 1, 1, 1, 2], (4, 2)),
        (7, [1, 1, 1, 1, 3], (5, 3)),
        (8, [1, 2, 1, 1, 3], (5, 3)),
        (9, [1, 2, 1, 1, 4], (6, 4)),
        (10, [1, 2, 1, 1, 5], (7, 5)),
        (11, [1, 2, 1, 1, 6], (8, 6)),
        (12, [1, 3, 1, 1, 6], (8, 6)),
        (13, [1, 3, 1, 1, 7], (9, 7)),
        (14, [1, 3, 1, 1, 8], (10, 8)),
        (15, [1, 3, 1, 1, 9], (11, 9)),
        (16, [1, 4, 1, 1, 9], (11, 9)),
    ];
    let names = ["reserve", "ambient_io", "resolve", "merge", "solver"];
    for (cores, shares, (total, keyed)) in pinned {
        let plan = plan(exact(u32::from(cores) * 1000), Profile::Auto).unwrap();
        assert_eq!(plan.binding, Binding::Pinned);
        assert_eq!((plan.tier_refused, plan.oversubscribed), (None, false));
        let got = names.map(|name| plan.budget.named(name).unwrap().peak_cores);
        assert_eq!(got, shares, "{cores}");
        assert_eq!(
            (plan.permits.total, plan.permits.keyed),
            (total, keyed),
            "{cores}"
        );
    }
    for cores in 2..=5 {
        let plan = plan(exact(cores * 1000), Profile::Auto).unwrap();
        assert_eq!(plan.binding, Binding::Serial);
        let small = TierRefused::QuotaTooSmallForPinnedRoles {
            floor: 6,
            cores: u16::try_from(cores).unwrap(),
        };
        assert_eq!(plan.tier_refused, Some(small));
        assert_eq!((plan.permits.total, plan.permits.keyed), (1, 1));
    }
    assert_eq!(
        plan(exact(1000), Profile::Auto),
        Err(BootRefused::BelowHostFloor {
            quota: MilliCpu::new(1000),
            floor: 2
        })
    );
}

#[test]
fn every_quota_to_64_cores_under_every_profile_follows_the_tier_table() {
    for milli in 0..=64_000u32 {
        let cores = milli / 1000;
        for profile in Profile::ALL {
            for (known, quota) in [(true, exact(milli)), (false, unsure(milli))] {
                for bindings in [BOTH, SERIAL_ONLY] {
                    let got = plan_with(quota, profile, bindings, &[]);
                    let small = cores < 6;
                    let want = match profile {
                        _ if cores < 2 => Err("BelowHostFloor"),
                        Profile::Serial => Ok((Binding::Serial, None)),
                        Profile::Pinned if !bindings.pinned => Err("BindingUnavailable"),
                        Profile::Pinned => Ok((
                            Binding::Pinned,
                            small.then_some("QuotaTooSmallForPinnedRoles"),
                        )),
                        Profile::Auto if !known => Ok((Binding::Serial, Some("QuotaUnknown"))),
                        Profile::Auto if small => {
                            Ok((Binding::Serial, Some("QuotaTooSmallForPinnedRoles")))
                        }
                        Profile::Auto if !bindings.pinned => {
                            Ok((Binding::Serial, Some("PinnedUnavailable")))
                        }
                        Profile::Auto => Ok((Binding::Pinned, None)),
                    };
                    let told = got.as_ref().map_err(BootRefused::name);
                    let told = told.map(|p| (p.binding, p.tier_refused.map(TierRefused::name)));
                    assert_eq!(told, want, "{milli} {profile:?} {known} {bindings:?}");
                    let Ok(plan) = got else { continue };
                    assert_eq!(plan.oversubscribed, plan.budget.sum() > cores);
                    assert_eq!(
                        plan.oversubscribed,
                        plan.binding == Binding::Pinned && small,
                        "{milli} {profile:?}"
                    );
                    let again = plan_with(exact(cores * 1000), profile, bindings, &[]);
                    assert!(!known || again.is_ok_and(|p| p.budget == plan.budget));
                }
            }
        }
    }
}

#[test]
fn more_cores_never_mean_less_but_for_the_solver_where_ambient_takes_the_core() {
    let share = |plan: &FleetPlan, name: &str| plan.budget.named(name).unwrap().peak_cores;
    let mut before = plan(exact(6000), Profile::Auto).unwrap();
    for cores in 7..=64u32 {
        let now = plan(exact(cores * 1000), Profile::Auto).unwrap();
        for name in ["reserve", "ambient_io", "resolve", "merge", "solver"] {
            assert!(
                share(&now, name) >= share(&before, name),
                "{name} at {cores}"
            );
        }
        let grew = share(&now, "solver") > share(&before, "solver");
        assert_eq!(
            grew,
            cores % 4 != 0,
            "each fourth core is the ambient runtime's"
        );
        assert!(now.permits.total >= before.permits.total);
        assert_eq!(now.seats, before.seats, "seats do not depend on the quota");
        before = now;
    }
}

#[test]
fn nothing_known_at_all_is_planned_as_the_least_that_hosts_a_fleet() {
    let blind = Quota::unknown(Reason::Unreadable);
    let auto = plan(blind, Profile::Auto).unwrap();
    assert_eq!(
        (auto.binding, auto.allocation),
        (Binding::Serial, MilliCpu::from_cores(2))
    );
    assert_eq!(auto.tier_refused, Some(TierRefused::QuotaUnknown));
    let stated = plan_with(blind, Profile::Auto, BOTH, &[("quota", "8000")]).unwrap();
    assert_eq!(
        (stated.binding, stated.tier_refused),
        (Binding::Pinned, None)
    );
    assert_eq!(stated.allocation_origin, Origin::CommandLine);
    assert_eq!(stated.detected, blind);
    let forced = plan(blind, Profile::Pinned).unwrap();
    assert!(forced.binding == Binding::Pinned && forced.oversubscribed);
}

#[test]
fn overrides_win_and_are_judged_by_the_same_sum() {
    let auto =
        |milli, overrides: &[(&str, &str)]| plan_with(exact(milli), Profile::Auto, BOTH, overrides);
    let overrun = |result: Result<FleetPlan, BootRefused>| match result {
        Err(BootRefused::Overrun(overrun)) => (overrun.budget.sum(), overrun.cores),
        other => panic!("{other:?}"),
    };
    // The solver gives way down to its least, and no further.
    let squeezed = auto(8000, &[("ambient_io_cores", "3")]).unwrap();
    assert_eq!(squeezed.budget.named("solver").unwrap().peak_cores, 2);
    assert_eq!(overrun(auto(8000, &[("ambient_io_cores", "4")])), (9, 8));
    // A share below its least is the operator's word.
    let thin = auto(8000, &[("solver_cores", "1"), ("ambient_io_cores", "4")]).unwrap();
    assert_eq!((thin.permits.total, thin.permits.keyed), (3, 1));
    // What was enforced does not matter to the allocation, in either direction.
    assert_eq!(
        auto(1000, &[("quota", "2000")]).unwrap().binding,
        Binding::Serial
    );
    assert_eq!(
        auto(64_000, &[("quota", "1999")]).unwrap_err().name(),
        "BelowHostFloor"
    );
    // The serial tier's sum counts what stands beside the cycle.
    assert!(auto(4000, &[("ambient_io_cores", "2")]).is_ok());
    assert_eq!(overrun(auto(4000, &[("ambient_io_cores", "3")])), (5, 4));
    // Forcing the pinned tier accepts its floor, and nothing beyond it.
    let forced =
        |overrides: &[(&str, &str)]| plan_with(exact(4000), Profile::Pinned, BOTH, overrides);
    assert!(forced(&[("solver_cores", "2")]).unwrap().oversubscribed);
    assert_eq!(overrun(forced(&[("solver_cores", "3")])), (7, 6));
    let fits = forced(&[("reserve_cores", "0"), ("ambient_io_cores", "0")]).unwrap();
    assert!(!fits.oversubscribed && fits.tier_refused.is_some());
}

#[test]
fn what_an_operator_set_in_vain_is_named() {
    let set = [
        ("solver_cores", "2"),
        ("solver_pins", "2"),
        ("ambient_io_cores", "1"),
        ("sim_driver_slots", "2"),
    ];
    let idle = |milli| -> Vec<String> {
        let plan = plan_with(exact(milli), Profile::Auto, BOTH, &set).unwrap();
        assert_eq!(plan.overridden().count(), set.len());
        plan.idle_overrides().map(|key| key.to_string()).collect()
    };
    assert_eq!(idle(8000), Vec::<String>::new());
    assert_eq!(idle(4000), ["solver_cores", "sim_driver_slots"]);
    // Pins are what the work is split over, on either tier.
    let keys = |milli| {
        let plan = plan_with(exact(milli), Profile::Auto, BOTH, &set).unwrap();
        plan.keys(WorkerRole::Solver.id())
    };
    assert_eq!((keys(4000), keys(8000)), (2, 2));
}

#[test]
fn the_pinned_layout_has_a_seat_per_key_then_the_fixed_ones_then_the_pooled() {
    let plan = plan(exact(8000), Profile::Auto).unwrap();
    let solver = RoleMask::EMPTY.with(WorkerRole::Solver.id());
    let merge = RoleMask::EMPTY.with(WorkerRole::Merge.id());
    let kinds: Vec<_> = plan
        .seats
        .iter()
        .map(|s| (s.kind, s.roles, s.key))
        .collect();
    let keyed: Vec<_> = (0..6)
        .map(|key| (SeatKind::KeyedPin, solver, key))
        .collect();
    assert_eq!(kinds[..6], keyed);
    assert_eq!(kinds[6], (SeatKind::FixedPin, merge, 0));
    let pooled: RoleMask = T
        .ids()
        .filter(|r| !solver.contains(*r) && !merge.contains(*r))
        .collect();
    assert_eq!(kinds[7..], [(SeatKind::Pooled, pooled, 0); 5]);
    assert_eq!(plan.slots(WorkerRole::Solver.id()), 6);
    assert_eq!(plan.slots(WorkerRole::SimDriver.id()), 4);
    assert_eq!(plan.slots(WorkerRole::Verifier.id()), 5);
}

#[test]
fn the_serial_layout_is_one_seat_for_every_role() {
    let plan = plan(exact(4000), Profile::Auto).unwrap();
    let [seat] = plan.seats.as_slice() else {
        panic!("{:?}", plan.seats)
    };
    assert!(T.ids().all(|role| seat.roles.contains(role)));
    assert_eq!(plan.slots(WorkerRole::SimDriver.id()), 4);
}

#[test]
fn sixty_four_seats_boot_and_sixty_five_are_refused() {
    let with = |pins| plan_with(exact(8000), Profile::Auto, BOTH, &[("solver_pins", pins)]);
    assert_eq!(with("58").unwrap().seats.len(), 64);
    assert_eq!(with("59"), Err(BootRefused::TooManySeats { seats: 65 }));
}

#[test]
fn a_resize_moves_permits_and_never_seats_and_undoes_itself() {
    let booted = plan(exact(8000), Profile::Auto).unwrap();
    let mut plan = booted.clone();
    let steps = [
        (16_000, (11, 9, false), false),
        (6_999, (4, 2, false), false),
        (5_000, (4, 2, false), true),
        (2_000, (4, 2, false), true),
        (1_999, (1, 1, true), true),
        (8_000, (5, 3, false), false),
    ];
    for (milli, (total, keyed, below_floor), oversubscribed) in steps {
        let want = Permits {
            total,
            keyed,
            below_floor,
        };
        assert_eq!(booted.permits_for(exact(milli)), want, "{milli} from boot");
        plan = plan.resized(exact(milli));
        assert_eq!(plan.permits, want, "{milli}");
        assert_eq!(plan.oversubscribed, oversubscribed, "{milli}");
        assert_eq!(
            (plan.binding, &plan.seats),
            (Binding::Pinned, &booted.seats)
        );
    }
    assert_eq!(plan, booted);
}

#[test]
fn a_quota_that_cannot_be_read_never_widens_a_running_fleet() {
    let booted = plan(exact(8000), Profile::Auto).unwrap();
    let blind = booted.resized(Quota::unknown(Reason::Unreadable));
    assert_eq!(
        (blind.permits, blind.allocation),
        (booted.permits, booted.allocation)
    );
    assert_eq!(booted.resized(unsure(64_000)).permits, booted.permits);
    assert_eq!(booted.resized(unsure(6_000)).permits.keyed, 2);
    let stated = plan_with(exact(1000), Profile::Auto, BOTH, &[("quota", "8000")]).unwrap();
    assert_eq!(stated.resized(exact(500)).permits, stated.permits);
}

#[test]
fn a_serial_fleet_has_one_permit_at_any_size() {
    let booted = plan(exact(4000), Profile::Auto).unwrap();
    for milli in [0, 1999, 2000, 64_000] {
        let permits = booted.permits_for(exact(milli));
        assert_eq!((permits.total, permits.keyed), (1, 1));
        assert_eq!(permits.below_floor, milli < 2000);
    }
}

#[test]
fn the_longest_names_leave_room_for_the_index() {
    let mut roles = T.roles.to_vec();
    roles[0].short = "1234567";
    let mut consumers = T.consumers.to_vec();
    consumers[1].name = "asynchronous_input";
    let table = RoleTable {
        roles: roles.leak(),
        consumers: consumers.leak(),
        ..FLEET_ROLES
    };
    let plan = FleetPlan::derive(&PlanInput {
        table: &table,
        quota: exact(8000),
        profile: Profile::Auto,
        overrides: &Overrides::none(),
        bindings: BOTH,
    });
    let census = plan.unwrap().census();
    let prefixes: Vec<&str> = census.iter().filter_map(|r| r.threads.as_deref()).collect();
    assert_eq!(
        prefixes,
        ["work-pool-", "work-1234567-", "work-merge-", "asynchronou-"]
    );
}

#[test]
fn a_profile_is_read_by_its_name_and_by_nothing_else() {
    for profile in Profile::ALL {
        assert_eq!(Profile::parse(profile.name()), Ok(profile));
    }
    for bad in ["", "Auto", "auto ", "fleet"] {
        let error = Profile::parse(bad).unwrap_err().to_string();
        assert!(error.contains("takes auto, pinned or serial"), "{error}");
    }
}

#[test]
fn refusals_tell_the_operator_what_to_do() {
    let below = plan(exact(1250), Profile::Auto).unwrap_err().to_string();
    assert!(
        below.contains("1.25 cores") && below.contains("--quota 2000"),
        "{below}"
    );
    let small = plan(exact(4000), Profile::Auto)
        .unwrap()
        .tier_refused
        .unwrap()
        .to_string();
    assert!(
        small.contains("there are 4") && small.contains("--quota 6000"),
        "{small}"
    );
    let missing = plan_with(exact(8000), Profile::Pinned, SERIAL_ONLY, &[]);
    assert!(missing.unwrap_err().to_string().contains("--profile auto"));
    let broken = RoleTable {
        roles: &[],
        ..FLEET_ROLES
    };
    let refused = FleetPlan::derive(&PlanInput {
        table: &broken,
        quota: exact(8000),
        profile: Profile::Auto,
        overrides: &Overrides::none(),
        bindings: BOTH,
    });
    assert_eq!(refused, Err(BootRefused::Table(RoleTableError::Empty)));
}

#[test]
fn the_census_counts_every_thread_of_the_plan_under_a_name_that_fits() {
    for (milli, threads) in [(8000, 6 + 1 + 5 + 2), (4000, 1 + 1)] {
        let plan = plan(exact(milli), Profile::Auto).unwrap();
        let census = plan.census();
        let own: u16 = census
            .iter()
            .filter(|r| r.threads.is_some())
            .map(|r| r.count)
            .sum();
        assert_eq!((own, plan.threads()), (threads, threads));
        let mut names: Vec<String> = Vec::new();
        for row in &census {
            assert_eq!(
                row.threads.is_none(),
                row.binding == LaneBinding::Logical,
                "{row:?}"
            );
            for index in 0..row.threads.as_ref().map_or(0, |_| row.count) {
                names.push(std::format!("{}{index}", row.threads.as_ref().unwrap()));
            }
        }
        assert!(names.iter().all(|n| n.len() <= 15), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), usize::from(threads), "distinct");
        let resources: Vec<_> = census.iter().map(|r| r.resource).collect();
        assert!(T.roles.iter().all(|spec| resources.contains(&spec.name)));
    }
    let labels = plan(exact(4000), Profile::Pinned).unwrap().fleet_profile();
    assert_eq!(
        (labels.profile, labels.binding, labels.oversubscribed),
        ("pinned", "pinned", "true")
    );
}
