//! The plan of a fleet: which binding runs it, on which seats, under which permits.
//!
//! [`FleetPlan::derive`] is one pure function of the quota, the profile, the overrides and what the
//! backend offers. No other place decides a tier.
//!
//! | whole cores of the quota | auto | forced pinned | forced serial |
//! |---|---|---|---|
//! | below 2 | refused | refused | refused |
//! | 2 up to the pinned floor | serial, naming the tier it fell from | pinned, oversubscribed | serial |
//! | from the pinned floor | pinned | pinned | serial |
//! | unknown | serial, naming the reason | as what is known of it | serial |
//!
//! # Invariants
//! - The shares fit the whole cores of the allocation unless the plan says `oversubscribed`.
//! - The binding and the seats never change after boot; permits, shares and the mark do.

mod census;
mod refusal;

pub use census::{CensusRow, FleetProfile, LaneBinding, Sizing, ThreadPrefix};
pub use refusal::{BootRefused, ProfileError, TierRefused};

use crate::budget::{
    Budget, Confidence, Consumer, MilliCpu, Origin, Override, Overrides, Quota, Setting,
    SettingKey, pinned_floor,
};
use crate::guard::Permits;
use crate::role::{RoleId, RoleMask, RoleTable, SeatKind, ShareRule};
use crate::seat::{MAX_SEATS, SeatSpec};
use crate::text::Excerpt;
use heapless::Vec;

/// The fewest whole cores that can host a fleet: one for the cycle thread, one for all else.
pub const HOST_FLOOR: u16 = 2;

/// The most permits of either kind; what the guard's word holds, and far above [`MAX_SEATS`].
const MAX_PERMITS: u32 = 0x7fff;

/// What the operator wants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Profile {
    /// Whatever the quota allows.
    #[default]
    Auto,
    /// The pinned tier, even where its shares do not fit.
    Pinned,
    /// The serial tier.
    Serial,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Pinned, Self::Serial];

    /// The name in configuration and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Pinned => "pinned",
            Self::Serial => "serial",
        }
    }

    /// The profile with this name.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let named = Self::ALL.into_iter().find(|profile| profile.name() == text);
        named.ok_or_else(|| ProfileError {
            text: Excerpt::of(text),
        })
    }
}

/// The adapter that maps lanes to threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Binding {
    /// One thread runs every granted unit.
    Serial,
    /// Each seat has a thread.
    Pinned,
}

impl Binding {
    /// The name in metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Pinned => "pinned",
        }
    }
}

/// Which bindings a backend offers. Every backend offers the serial one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bindings {
    /// Whether it offers the pinned one.
    pub pinned: bool,
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// The roles.
    pub table: &'a RoleTable,
    /// What was detected.
    pub quota: Quota,
    /// What the operator wants.
    pub profile: Profile,
    /// What the operator sets instead of a rule, all layers merged.
    pub overrides: &'a Overrides,
    /// What the backend offers.
    pub bindings: Bindings,
}

/// The plan of a fleet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetPlan {
    /// The roles.
    pub table: RoleTable,
    /// What runs the fleet.
    pub binding: Binding,
    /// What the operator wanted.
    pub profile: Profile,
    /// The shares do not fit the allocation.
    pub oversubscribed: bool,
    /// The tier that was refused, or whose floor a forced profile overrides.
    pub tier_refused: Option<TierRefused>,
    /// What is shared out: the override, else the detected bound. With neither, the least a fleet
    /// can run on.
    pub allocation: MilliCpu,
    /// Where the allocation came from; [`Origin::Rule`] when it is not an override.
    pub allocation_origin: Origin,
    /// What was detected. Posture and ledger go by this.
    pub detected: Quota,
    /// The shares.
    pub budget: Budget,
    /// The seats: keyed pins, fixed pins, pooled ones.
    pub seats: Vec<SeatSpec, MAX_SEATS>,
    /// How many units may be runnable at once.
    pub permits: Permits,
    overrides: Overrides,
}

impl FleetPlan {
    /// The plan for `input`; the table in the [module documentation](self) is its rule.
    pub fn derive(input: &PlanInput<'_>) -> Result<Self, BootRefused> {
        let table = *input.table;
        table.check()?;
        let (allocation, allocation_origin, unknown) = match input.overrides.quota() {
            Some(given) => (given.value, given.origin, false),
            None => (
                input
                    .quota
                    .bound
                    .unwrap_or(MilliCpu::from_cores(HOST_FLOOR)),
                Origin::Rule,
                input.quota.known().is_none(),
            ),
        };
        let cores = allocation.floor_cores();
        if cores < HOST_FLOOR {
            return Err(BootRefused::BelowHostFloor {
                quota: allocation,
                floor: HOST_FLOOR,
            });
        }
        let floor = pinned_floor(&table);
        let too_small =
            (cores < floor).then_some(TierRefused::QuotaTooSmallForPinnedRoles { floor, cores });
        let (binding, tier_refused) = match input.profile {
            Profile::Serial => (Binding::Serial, None),
            Profile::Pinned if !input.bindings.pinned => {
                return Err(BootRefused::BindingUnavailable);
            }
            Profile::Pinned => (Binding::Pinned, too_small),
            Profile::Auto => {
                let unknown = unknown.then_some(TierRefused::QuotaUnknown);
                let missing = (!input.bindings.pinned).then_some(TierRefused::PinnedUnavailable);
                let refused = unknown.or(too_small).or(missing);
                let binding = refused.map_or(Binding::Pinned, |_| Binding::Serial);
                (binding, refused)
            }
        };
        let budget = shares(&table, binding, cores, input.overrides);
        // Who forces the pinned tier below its floor accepts that its shares by rule do not fit, and
        // no more than that.
        budget.check(match binding {
            Binding::Pinned => cores.max(floor),
            Binding::Serial => cores,
        })?;
        let seats = layout(&table, binding, &budget)?;
        Ok(Self {
            table,
            binding,
            profile: input.profile,
            oversubscribed: budget.check(cores).is_err(),
            tier_refused,
            allocation,
            allocation_origin,
            detected: input.quota,
            permits: permits(&table, binding, &budget, cores),
            budget,
            seats,
            overrides: input.overrides.clone(),
        })
    }

    /// The plan after the quota was detected anew: binding and seats as booted, shares, permits and
    /// the mark derived again.
    ///
    /// An allocation that the operator set stays. A quota that could not be read neither widens the
    /// allocation nor, unless it is bounded lower, narrows it. Below the least that hosts a fleet one
    /// permit is left, and the next detection that finds enough undoes it.
    #[must_use]
    pub fn resized(&self, detected: Quota) -> Self {
        let mut plan = self.clone();
        plan.detected = detected;
        if self.overrides.quota().is_none() {
            plan.allocation = match (detected.evidence.confidence, detected.bound) {
                (Confidence::Unknown, bound) => {
                    bound.map_or(self.allocation, |b| b.min(self.allocation))
                }
                (_, bound) => bound.unwrap_or(self.allocation),
            };
        }
        let cores = plan.allocation.floor_cores();
        plan.budget = shares(&plan.table, plan.binding, cores, &plan.overrides);
        plan.oversubscribed = plan.budget.check(cores).is_err();
        plan.permits = permits(&plan.table, plan.binding, &plan.budget, cores);
        plan
    }

    /// The permits of [`resized`](Self::resized).
    #[must_use]
    pub fn permits_for(&self, detected: Quota) -> Permits {
        self.resized(detected).permits
    }

    /// The most units of `role` that run at once, by its seats or its slots, permits apart.
    #[must_use]
    pub fn slots(&self, role: RoleId) -> u16 {
        let Some(spec) = self.table.get(role) else {
            return 0;
        };
        match (spec.share, self.overrides.count(role)) {
            (ShareRule::Slots { .. }, Some(given)) => given.value,
            (ShareRule::Slots { slots }, None) => slots,
            _ => self.seats_of(role),
        }
    }

    /// How many keys the work of `role` is split over: its pins by rule or override, on either tier, so
    /// that the tier does not change what is computed. One for a role without keys.
    #[must_use]
    pub fn keys(&self, role: RoleId) -> u8 {
        let pins = match (
            self.table.get(role).map(|spec| spec.share),
            self.overrides.count(role),
        ) {
            (Some(ShareRule::Rest { .. }), Some(given)) => given.value,
            (Some(ShareRule::Rest { pins, .. }), None) => pins,
            _ => 1,
        };
        u8::try_from(pins).unwrap_or(u8::MAX)
    }

    /// How many seats may be leased for `role`.
    #[must_use]
    pub fn seats_of(&self, role: RoleId) -> u16 {
        let serving = self.seats.iter().filter(|seat| seat.roles.contains(role));
        u16::try_from(serving.count()).unwrap_or(u16::MAX)
    }

    /// What the operator set, with its key.
    pub fn overridden(&self) -> impl Iterator<Item = (Setting, SettingKey, Override<u32>)> + '_ {
        self.overrides.iter(&self.table)
    }

    /// What the operator set that has no say in this plan, such as the slots of a fleet with
    /// one seat.
    pub fn idle_overrides(&self) -> impl Iterator<Item = SettingKey> + '_ {
        let serial = self.binding == Binding::Serial;
        self.overridden()
            .filter(move |(setting, ..)| {
                serial
                    && match setting {
                        // Work is split over as many keys on either tier.
                        Setting::Quota | Setting::Pins(_) => false,
                        Setting::Cores(consumer) => {
                            matches!(consumer, Consumer::Role(_))
                        }
                        Setting::Slots(_) => true,
                    }
            })
            .map(|(_, key, _)| key)
    }
}

fn shares(table: &RoleTable, binding: Binding, cores: u16, overrides: &Overrides) -> Budget {
    match binding {
        Binding::Pinned => Budget::pinned(table, cores, overrides),
        Binding::Serial => Budget::serial(table, cores, overrides),
    }
}

/// The seats of a binding.
///
/// Serial: one for all roles. Pinned: one per key, one per fixed pin, and for the pooled roles together
/// as many as they bring, at least one.
fn layout(
    table: &RoleTable,
    binding: Binding,
    budget: &Budget,
) -> Result<Vec<SeatSpec, MAX_SEATS>, BootRefused> {
    if binding == Binding::Serial {
        return Ok(Vec::from([SeatSpec {
            kind: SeatKind::Pooled,
            roles: table.ids().collect(),
            key: 0,
        }]));
    }
    let of = |kind| {
        let rows = table.ids().zip(table.roles);
        rows.filter(move |(_, spec)| spec.seat == kind)
            .map(|(role, _)| role)
    };
    let count = |role| budget.role(role).map_or(0, |row| row.threads);
    let pooled: RoleMask = of(SeatKind::Pooled).collect();
    let pooled_seats = of(SeatKind::Pooled)
        .map(|role| u32::from(count(role)))
        .sum::<u32>();
    let pooled_seats = pooled_seats.max(u32::from(!pooled.is_empty()));
    let pins = of(SeatKind::KeyedPin).chain(of(SeatKind::FixedPin));
    let seats = pooled_seats + pins.map(|role| u32::from(count(role))).sum::<u32>();
    let refused = BootRefused::TooManySeats { seats };

    let pinned = [SeatKind::KeyedPin, SeatKind::FixedPin]
        .into_iter()
        .flat_map(|kind| {
            of(kind).flat_map(move |role| {
                (0..count(role)).map(move |key| (kind, RoleMask::EMPTY.with(role), key))
            })
        });
    let pooled = (0..pooled_seats).map(|_| (SeatKind::Pooled, pooled, 0));
    let mut layout = Vec::new();
    for (kind, roles, key) in pinned.chain(pooled) {
        let key = u8::try_from(key).map_err(|_| refused.clone())?;
        layout
            .push(SeatSpec { kind, roles, key })
            .map_err(|_| refused.clone())?;
    }
    Ok(layout)
}

/// Permits of `budget` on `cores`.
///
/// A pinned fleet's permits are the shares of its roles, each role with a share having at least one;
/// the keyed ones are those of the keyed roles. A serial fleet has one thread and one permit.
fn permits(table: &RoleTable, binding: Binding, budget: &Budget, cores: u16) -> Permits {
    let below_floor = cores < HOST_FLOOR;
    if below_floor || binding == Binding::Serial {
        return Permits {
            total: 1,
            keyed: 1,
            below_floor,
        };
    }
    let (mut total, mut keyed) = (0, 0);
    for (role, spec) in table.ids().zip(table.roles) {
        if matches!(spec.share, ShareRule::Slots { .. } | ShareRule::Permits) {
            continue;
        }
        let share = budget
            .role(role)
            .map_or(1, |row| u32::from(row.peak_cores).max(1));
        total += share;
        if spec.seat == SeatKind::KeyedPin {
            keyed += share;
        }
    }
    let word = |n: u32| u16::try_from(n.clamp(1, MAX_PERMITS)).unwrap_or(1);
    Permits {
        total: word(total),
        keyed: word(keyed),
        below_floor,
    }
}

#[cfg(test)]
mod tests;
