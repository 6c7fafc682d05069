//! What must hold of a host after every call, worked out anew from its rows and seats.

use crate::guard::Guard;
use crate::host::Host;
use crate::lane::{HoldReason, NO_HOME, Progress};
use crate::role::{CordonClass, RoleId, SeatKind};
use crate::seat::{SeatId, SlotPhase};
use crate::unit::{List, Place, UnitRow};

/// A host whose rows can be copied.
pub(super) trait Rows: AsRef<[UnitRow]> + AsMut<[UnitRow]> + Clone {}
impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]> + Clone> Rows for R {}

/// Panics unless `host` is in order, `guard` being what the last call was given.
pub(super) fn check<R: Rows>(host: &Host<R>, guard: &Guard) {
    assert_eq!(host.audit(), Ok(()));
    check_lists(host);
    let counts = host.drain_counts();
    assert!(counts.is_none_or(|counts| counts.balanced()), "{counts:?}");
    let mut armed = false;
    for role in host.table.0.ids() {
        let ledger = host.ledger(role).unwrap();
        assert!(ledger.balanced(), "{role:?}: {ledger:?}");
        let waits = rows(host, role, &[Place::Queue, Place::Backlog]) > 0;
        let hold = hold(host, role, guard);
        let could = waits && has_idle_seat(host, role);
        armed |= could && hold != Some(HoldReason::Slots);
        let backed = could && hold.is_some_and(|h| h != HoldReason::Slots);
        check_lane(host, role, backed, waits);
        let want = match (waits, hold, could) {
            (true, Some(reason), _) => Some(reason),
            (true, None, false) => Some(HoldReason::NoSeat),
            (false, ..) | (true, None, true) => None,
        };
        assert_eq!(host.hold(role, guard), want, "{role:?}");
    }
    assert_eq!(host.backstop_at.is_some(), armed, "the backstop is armed");
    for seat in host.seats() {
        assert!(seat.phase() != SlotPhase::Draining || seat.spec().kind == SeatKind::Pooled);
    }
}

fn check_lane<R: Rows>(host: &Host<R>, role: RoleId, backed: bool, waits: bool) {
    let progress = host.progress(role).unwrap();
    match progress {
        Progress::Idle => assert!(!backed, "{role:?} is held and says idle"),
        Progress::Backed => assert!(backed, "{role:?} is not held and says backed"),
        Progress::Faulted => assert!(!waits, "{role:?} is dead and keeps units"),
        Progress::Closed => assert_eq!(rows(host, role, &[Place::Backlog]), 0),
    }
    let ended = matches!(progress, Progress::Closed | Progress::Faulted);
    assert!(
        ended || host.closing().is_none(),
        "{role:?} is open in a closed host"
    );
    assert!(progress != Progress::Closed || host.closing().is_some());
    if living(host, role) == 0 {
        assert!(!waits, "{role:?} has no living seat and keeps units");
    }
}

/// Every row is in exactly one list, or with a seat, or collected; each list holds its own kind.
fn check_lists<R: Rows>(host: &Host<R>) {
    let mut units = host.units.clone();
    let mut seen: Vec<u32> = Vec::new();
    let mut walk = |list: List, place: Place, role: Option<RoleId>| {
        let mut list = list;
        while let Some(index) = units.pop_front(&mut list) {
            let row = host.units.rows()[index as usize];
            assert_eq!(row.place, place, "row {index}");
            assert!(
                role.is_none_or(|r| r == row.role),
                "row {index} of {role:?}"
            );
            seen.push(index);
        }
        assert_eq!(list, List::EMPTY);
    };
    walk(host.resolved, Place::Resolved, None);
    for role in host.table.0.ids() {
        let lane = &host.lanes[role.index()];
        walk(lane.free, Place::Free, None);
        walk(lane.queue, Place::Queue, Some(role));
        walk(lane.backlog, Place::Backlog, Some(role));
    }
    for seat in host.seats() {
        walk(seat.queue, Place::Queue, None);
    }
    let loose = [Place::InFlight, Place::Collected];
    let reserved: u32 = host.lanes.iter().map(|lane| lane.rows).sum();
    seen.extend((0..reserved).filter(|i| loose.contains(&host.units.rows()[*i as usize].place)));
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..reserved), "a row is lost or doubled");
}

pub(super) fn rows<R: Rows>(host: &Host<R>, role: RoleId, places: &[Place]) -> usize {
    let of_role = host.units.rows().iter().filter(|row| row.role == role);
    of_role.filter(|row| places.contains(&row.place)).count()
}

fn living<R: Rows>(host: &Host<R>, role: RoleId) -> usize {
    let serving = host
        .seats()
        .iter()
        .filter(|s| s.spec().roles.contains(role));
    serving.filter(|s| s.phase() != SlotPhase::Dead).count()
}

/// Whether some waiting unit of `role` could start at once on some seat, the guard aside.
fn has_idle_seat<R: Rows>(host: &Host<R>, role: RoleId) -> bool {
    let lane = &host.lanes[role.index()];
    let free = |seat: usize| {
        matches!(
            host.seats[seat].phase(),
            SlotPhase::Idle | SlotPhase::Pinned
        ) && host.seats[seat].spec().roles.contains(role)
            && host.parked & SeatId::new(u8::try_from(seat).unwrap()).bit() == 0
    };
    if !lane.homes.is_empty() {
        return host.units.rows().iter().any(|row| {
            let home = lane.homes[usize::from(row.key).min(lane.homes.len() - 1)];
            row.place == Place::Queue && row.role == role && home != NO_HOME && free(home.into())
        });
    }
    (0..host.seats.len()).any(free)
}

/// Why no further unit of `role` may start, from what is in flight and the words of the guard.
fn hold<R: Rows>(host: &Host<R>, role: RoleId, guard: &Guard) -> Option<HoldReason> {
    let spec = host.table.0.get(role).unwrap();
    let deferrable = spec.cordon == CordonClass::Deferrable;
    let in_flight = |role| rows(host, role, &[Place::InFlight]);
    let slots = usize::from(host.lanes[role.index()].slots);
    let floor = guard
        .posture
        .sim_floor
        .map_or(slots.div_ceil(2), usize::from);
    let floored = spec.cordon == CordonClass::SimFloor && guard.posture.cordoned;
    let pinned = |role: &RoleId| {
        let mut seats = host
            .seats()
            .iter()
            .filter(|s| s.spec().roles.contains(*role));
        seats.any(|s| s.spec().kind == SeatKind::KeyedPin)
    };
    let all = host.table.0.ids().map(in_flight).sum::<usize>();
    let keyed: usize = host.table.0.ids().filter(pinned).map(in_flight).sum();
    [
        (deferrable && guard.posture.cordoned, HoldReason::Cordoned),
        (
            deferrable && guard.permits.below_floor,
            HoldReason::BelowFloor,
        ),
        (
            spec.cordon != CordonClass::Never && guard.ledger.holds.contains(role),
            HoldReason::Ledger,
        ),
        (in_flight(role) >= slots, HoldReason::Slots),
        (
            floored && in_flight(role) >= floor.max(1),
            HoldReason::SimFloor,
        ),
        (all >= usize::from(guard.permits.total), HoldReason::Permits),
        (
            pinned(&role) && keyed >= usize::from(guard.permits.keyed),
            HoldReason::KeyedPermits,
        ),
    ]
    .into_iter()
    .find_map(|(holds, reason)| holds.then_some(reason))
}
