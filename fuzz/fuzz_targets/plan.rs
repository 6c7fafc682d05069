//! Plans of any quota, profile and overrides: none panics, the shares fit or the plan says that they do not,
//! a plan has seats for its roles and permits to run one, and a quota that goes and comes back is as before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_core::budget::{BoundedBy, MilliCpu, Origin, Overrides, Quota, Reason, Setting};
use regatta_core::plan::{Bindings, FleetPlan, PlanInput, Profile};
use regatta_core::role::FLEET_ROLES;
use regatta_core::seat::MAX_SEATS;

fn quota(kind: u8, milli: u32) -> Quota {
    match kind % 4 {
        0 => Quota::unknown(Reason::Unreadable),
        1 => Quota::unlimited(Reason::NoLimit),
        2 => Quota::exact(MilliCpu::new(milli), BoundedBy::Cgroup2, Reason::LimitRead)
            .and(Quota::unknown(Reason::NotMounted)),
        _ => Quota::exact(MilliCpu::new(milli), BoundedBy::Cgroup1, Reason::LimitRead),
    }
}

fn check(plan: &FleetPlan) {
    let fits = plan.budget.check(plan.allocation.floor_cores()).is_ok();
    assert_eq!(fits, !plan.oversubscribed, "{plan:?}");
    assert!(
        plan.permits.total >= 1 && plan.permits.keyed <= plan.permits.total,
        "{:?}",
        plan.permits
    );
    assert!(!plan.seats.is_empty() && plan.seats.len() <= MAX_SEATS);
    for role in FLEET_ROLES.ids() {
        assert!(plan.seats_of(role) > 0 || plan.slots(role) == 0, "{role:?}");
        assert!(plan.keys(role) >= 1);
    }
    let _ = plan.census();
    let _ = plan.idle_overrides().count();
}

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_at_checked(6) else {
        return;
    };
    let milli = u32::from_le_bytes([head[0], head[1], head[2], head[3] & 3]);
    let settings: Vec<Setting> = Setting::all(&FLEET_ROLES).collect();
    let mut overrides = Overrides::none();
    let (set, later) = rest.split_at(rest.len().min(12));
    for given in set.chunks_exact(3) {
        let setting = settings[usize::from(given[0]) % settings.len()];
        let value = match given[1] {
            255 => u32::from(u16::MAX) - u32::from(given[2]),
            high => u32::from(high & 7) << 8 | u32::from(given[2]),
        };
        // A value out of range is refused, and nothing else happens.
        let _ = overrides.insert(&FLEET_ROLES, setting, value, Origin::CommandLine);
    }
    let booted = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: quota(head[4], milli),
        profile: Profile::ALL[usize::from(head[5]) % 3],
        overrides: &overrides,
        bindings: Bindings {
            pinned: head[5] & 128 == 0,
        },
    });
    let plan = match booted {
        Ok(plan) => plan,
        Err(refused) => {
            assert!(!refused.to_string().is_empty());
            return;
        }
    };
    check(&plan);
    let mut current = plan.clone();
    for detected in later.chunks_exact(3).take(16) {
        let milli = u32::from(u16::from_le_bytes([detected[1], detected[2]]));
        current = current.resized(quota(detected[0], milli));
        check(&current);
        assert_eq!(
            (current.binding, &current.seats),
            (plan.binding, &plan.seats)
        );
    }
    if plan.detected.known().is_some() {
        let back = current.resized(plan.detected);
        assert_eq!(
            (back.permits, back.allocation),
            (plan.permits, plan.allocation)
        );
        assert_eq!(back.budget, plan.budget);
    }
});
