//! Roles, the rules of the budget, and what a quota comes to.

use regatta_core::budget::{
    BoundedBy, CYCLE, MilliCpu, Overrides, Quota, Reason, Setting, pinned_floor,
};
use regatta_core::plan::{Bindings, FleetPlan, HOST_FLOOR, PlanInput, Profile};
use regatta_core::role::{FLEET_ROLES, GrantStep};

use super::table;

/// The quotas of the plan table, in whole cores.
const CORES: std::ops::RangeInclusive<u16> = 1..=16;

pub(super) fn page() -> String {
    [roles(), budget(), overrides(), plans()].concat()
}

fn code(text: impl std::fmt::Display) -> String {
    format!("`{text}`")
}

fn roles() -> String {
    let rows = FLEET_ROLES
        .ids()
        .zip(FLEET_ROLES.roles)
        .map(|(role, spec)| {
            vec![
                role.index().to_string(),
                code(spec.name),
                code(spec.short),
                format!("{:?}", spec.cordon),
                format!("{:?}", spec.seat),
                spec.share.to_string(),
                if spec.owns_receipts { "yes" } else { "no" }.to_owned(),
            ]
        });
    let head = [
        "row",
        "role",
        "in thread names",
        "under a cordon",
        "seat",
        "share",
        "owns receipts",
    ];
    let steps = FLEET_ROLES.order.iter().map(|step| {
        let name = FLEET_ROLES.get(step.role()).map_or("", |spec| spec.name);
        match step {
            GrantStep::Pooled(_) => format!("{name} on a pooled seat"),
            GrantStep::Pinned(_) => format!("{name} on its pin"),
            GrantStep::Claim(_) => format!("{name} claiming a seat"),
        }
    });
    let order: Vec<String> = steps.collect();
    format!(
        "## Roles\n\n{}A grant looks for a waiting unit in this order: {}. Where no seat pins, the steps on \
         a pin find nothing.\n\n",
        table(&head, rows),
        order.join(", ")
    )
}

fn budget() -> String {
    let beside = FLEET_ROLES.consumers.iter().map(|spec| {
        let threads = if spec.threads { "one per core" } else { "none" };
        vec![code(spec.name), spec.share.to_string(), threads.to_owned()]
    });
    let shared = FLEET_ROLES.roles.iter().map(|spec| {
        let threads = "its seats".to_owned();
        vec![code(spec.name), spec.share.to_string(), threads]
    });
    format!(
        "## The rules of the budget\n\n`Q` is the whole cores of the quota, rounded down. On the pinned tier each \
         consumer has its share, and together they must fit `Q`:\n\n{}The least `Q` on which they fit is {}. On the \
         serial tier one core is the cycle thread's, on which every role runs, and the consumers beside \
         the roles share what is left, at least one. No fleet boots below {HOST_FLOOR}.\n\n",
        table(&["consumer", "share", "threads"], beside.chain(shared)),
        pinned_floor(&FLEET_ROLES)
    )
}

fn overrides() -> String {
    let rows = Setting::all(&FLEET_ROLES).filter_map(|setting| {
        let takes = setting.takes();
        Some(vec![
            code(setting.key(&FLEET_ROLES)?),
            format!("{} to {} {}", takes.start(), takes.end(), setting.unit()),
        ])
    });
    format!(
        "## Overrides\n\nEach wins over its rule, takes part in the same sum, and is refused if it is out of \
         range.\n\n{}",
        table(&["key", "takes"], rows)
    )
}

fn plan(cores: u16, profile: Profile) -> Result<FleetPlan, String> {
    let quota = Quota::exact(
        MilliCpu::from_cores(cores),
        BoundedBy::Cgroup2,
        Reason::LimitRead,
    );
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota,
        profile,
        overrides: &Overrides::none(),
        bindings: Bindings { pinned: true },
    });
    plan.map_err(|refused| code(refused.name()))
}

fn plans() -> String {
    let mut text = vec![String::from(
        "## Plans\n\nShares in whole cores, by quota; a consumer *in* another uses the cores of that one. Permits are how \
         many units may be runnable at once, and *keyed* how many of those may be of keyed roles.\n\n",
    )];
    for profile in Profile::ALL {
        let consumers = FLEET_ROLES.consumers.iter().map(|spec| spec.name);
        let roles = FLEET_ROLES.roles.iter().map(|spec| spec.name);
        // Roles without a share have nothing to show.
        let shown = consumers.chain(roles).filter(|name| has_share(name));
        let shown: Vec<&str> = std::iter::once(CYCLE).chain(shown).collect();
        let mut head = vec!["Q", "tier"];
        head.extend(&shown);
        head.extend(["sum", "permits", "keyed", "seats", "threads", "remark"]);
        let rows = CORES.map(|cores| row(cores, profile, &shown, head.len()));
        text.push(format!("### {}\n\n{}", profile.name(), table(&head, rows)));
    }
    text.concat()
}

fn has_share(name: &str) -> bool {
    plan(*CORES.end(), Profile::Pinned).is_ok_and(|plan| {
        plan.budget
            .named(name)
            .is_some_and(|row| row.peak_cores > 0)
    })
}

fn row(cores: u16, profile: Profile, shown: &[&str], width: usize) -> Vec<String> {
    let mut cells = vec![cores.to_string()];
    match plan(cores, profile) {
        Err(refused) => {
            cells.resize(width - 1, String::new());
            cells.push(format!("refused: {refused}"));
        }
        Ok(plan) => {
            cells.push(plan.binding.name().to_owned());
            let share = |name: &&str| match plan.budget.named(name) {
                None => String::new(),
                Some(row) => match row.within {
                    Some(holder) => format!("in {holder}"),
                    None => row.peak_cores.to_string(),
                },
            };
            cells.extend(shown.iter().map(share));
            let remark = plan.tier_refused.map(|refused| code(refused.name()));
            let over = plan.oversubscribed.then(|| "oversubscribed".to_owned());
            let remarks: Vec<String> = over.into_iter().chain(remark).collect();
            cells.extend([
                plan.budget.sum().to_string(),
                plan.permits.total.to_string(),
                plan.permits.keyed.to_string(),
                plan.seats.len().to_string(),
                plan.threads().to_string(),
                remarks.join(", "),
            ]);
        }
    }
    cells
}
