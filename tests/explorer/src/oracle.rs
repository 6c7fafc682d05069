//! What should be so, worked out from the rules' sentences and from what anyone can see.

use crate::rule::{Rule, Violation, ensure};
use crate::state::{NOWHERE, State};
use crate::world::{DELTA, Size, World};
use regatta_core::lane::{HoldReason, Progress};
use regatta_core::role::{CordonClass, RoleId};
use regatta_core::seat::SlotPhase;
use regatta_core::time::Instant;
use regatta_core::unit::UnitId;

/// Whether a unit that has no outcome is with no seat.
fn waits(state: &State, unit: UnitId) -> bool {
    let mut seats = 0..state.host.seats().len();
    seats.all(|seat| state.held(seat).is_none_or(|(_, held)| held != unit))
}

/// Units of `role` that wait.
pub(crate) fn waiting(state: &State, role: RoleId) -> usize {
    let open = state.env.open.iter();
    open.filter(|open| open.role == role && waits(state, open.unit))
        .count()
}

/// Whether some waiting unit of `role` has an idle seat that it could use.
pub(crate) fn has_seat(world: &World, state: &State, role: RoleId) -> bool {
    let usable = |seat: usize| {
        matches!(state.phase(seat), SlotPhase::Idle | SlotPhase::Pinned)
            && state.env.parked & 1 << seat == 0
            && state.serves(seat).contains(role)
    };
    if !world.keyed(role) {
        return waiting(state, role) > 0 && (0..state.host.seats().len()).any(usable);
    }
    state.env.open.iter().any(|open| {
        let home = state.env.homes.get(usize::from(open.key));
        open.role == role
            && waits(state, open.unit)
            && home.is_some_and(|home| *home != NOWHERE && usable((*home).into()))
    })
}

/// Whether `seat` may take the waiting unit `unit` of `role`.
pub(crate) fn may_run(
    world: &World,
    state: &State,
    role: RoleId,
    unit: UnitId,
    seat: usize,
) -> bool {
    let at_home = |key: u8| {
        let home = state.env.homes.get(usize::from(key));
        !world.keyed(role) || home.is_some_and(|home| usize::from(*home) == seat)
    };
    let unit = state.env.open.iter().find(|open| open.unit == unit);
    unit.is_some_and(|open| open.role == role && waits(state, open.unit) && at_home(open.key))
        && matches!(state.phase(seat), SlotPhase::Idle | SlotPhase::Pinned)
        && state.env.parked & 1 << seat == 0
        && state.serves(seat).contains(role)
}

/// Units with a seat and without an outcome, of the roles that `pick` takes.
pub(crate) fn in_flight(state: &State, pick: impl Fn(RoleId) -> bool) -> usize {
    (0..state.host.seats().len())
        .filter_map(|seat| state.held(seat))
        .filter(|(role, unit)| pick(*role) && state.is_open(*unit))
        .count()
}

/// Why no further unit of `role` may start beside what is in flight, `less` of its own left out.
pub(crate) fn hold(
    world: &World,
    size: &Size,
    state: &State,
    role: RoleId,
    less: usize,
) -> Option<HoldReason> {
    let guard = state.env.guard.view(size);
    let spec = world.table.get(role)?;
    let lane = world.lanes.get(role.index())?;
    let serving = world
        .seats
        .iter()
        .filter(|(_, roles, _)| roles.contains(&role));
    let slots = lane.slots.map_or(serving.count(), usize::from);
    let own = in_flight(state, |other| other == role) - less;
    let all = in_flight(state, |_| true) - less;
    let deferred = spec.cordon == CordonClass::Deferrable;
    let floored = spec.cordon == CordonClass::SimFloor && guard.posture.cordoned;
    let keyed = world.keyed(role);
    let walks = in_flight(state, |other| world.keyed(other)) - if keyed { less } else { 0 };
    [
        (deferred && guard.posture.cordoned, HoldReason::Cordoned),
        (
            deferred && guard.permits.below_floor,
            HoldReason::BelowFloor,
        ),
        (
            spec.cordon != CordonClass::Never && guard.ledger.holds.contains(role),
            HoldReason::Ledger,
        ),
        (own >= slots, HoldReason::Slots),
        (
            floored && own >= slots.div_ceil(2).max(1),
            HoldReason::SimFloor,
        ),
        (all >= usize::from(guard.permits.total), HoldReason::Permits),
        (
            keyed && walks >= usize::from(guard.permits.keyed),
            HoldReason::KeyedPermits,
        ),
    ]
    .into_iter()
    .find_map(|(holds, reason)| holds.then_some(reason))
}

/// What must hold in every state.
pub(crate) fn books(world: &World, state: &State) -> Result<(), Violation> {
    let audit = state.host.audit();
    ensure(audit.is_ok(), Rule::Conserves, || format!("{audit:?}"))?;
    for role in world.table.ids() {
        let Some(ledger) = state.host.ledger(role) else {
            continue;
        };
        let waiting = waiting(state, role) as u64;
        let in_flight = in_flight(state, |other| other == role) as u64;
        let of_role = |list: &[(RoleId, UnitId)]| list.iter().filter(|(r, _)| *r == role).count();
        let uncollected = (of_role(&state.env.ended) + of_role(&state.env.read)) as u64;
        let seen = (waiting, in_flight, uncollected);
        let stated = (ledger.waiting(), ledger.in_flight, ledger.uncollected);
        ensure(seen == stated && ledger.balanced(), Rule::Conserves, || {
            format!(
                "{role:?}: waiting, in flight and uncollected are {seen:?}, the ledger has {ledger:?}"
            )
        })?;
    }
    Ok(())
}

/// What must hold once grants were polled until there are none, under the guard of that poll.
pub(crate) fn polled(world: &World, size: &Size, state: &State) -> Result<(), Violation> {
    let guard = state.env.guard.view(size);
    let mut armed = false;
    let mut refills = false;
    for role in world.table.ids() {
        let waits = waiting(state, role) > 0;
        let seat = has_seat(world, state, role);
        let held = hold(world, size, state, role, 0);
        ensure(!seat || held.is_some(), Rule::Grants, || {
            format!("{role:?} waits, has a seat, and the guard allows it")
        })?;
        let reason = match (waits, held) {
            (false, _) => None,
            (true, None) => Some(HoldReason::NoSeat),
            (true, held) => held,
        };
        let stated = state.host.hold(role, &guard);
        ensure(stated == reason, Rule::Reasons, || {
            format!("{role:?} is held by {reason:?}, and says {stated:?}")
        })?;
        let by_guard = seat && held.is_some_and(HoldReason::is_guard);
        let progress = state.host.progress(role);
        let right = match progress {
            Some(Progress::Backed) => by_guard,
            Some(Progress::Idle) => !by_guard,
            Some(Progress::Faulted) => !waits,
            Some(Progress::Closed) => {
                let ledger = state.host.ledger(role);
                let kept = ledger.map_or(0, |ledger| ledger.backlog);
                state.host.closing().is_some() && kept == 0
            }
            None => false,
        };
        ensure(right, Rule::Reasons, || {
            format!("{role:?} is {progress:?}; held by the guard: {by_guard}")
        })?;
        armed |= by_guard;
        refills |= by_guard && guard.ledger.holds.contains(role);
    }
    deadline(state, &guard, armed, refills)
}

fn deadline(
    state: &State,
    guard: &regatta_core::guard::Guard,
    armed: bool,
    refills: bool,
) -> Result<(), Violation> {
    let refill = guard.ledger.refill_at.filter(|_| refills);
    let due = state.host.next_deadline(guard);
    let latest = refill.unwrap_or(Instant::ORIGIN + DELTA);
    let right = match due {
        None => !armed,
        Some(due) => armed && due > Instant::ORIGIN && due <= latest,
    };
    ensure(right, Rule::Armed, || {
        format!("the deadline is {due:?}; some unit has a seat and the guard holds it: {armed}")
    })
}
