//! What a host refuses to be made of.

use super::layout::{Layout, PLAIN, R0, R1, lane, seat};
use crate::host::{Host, HostConfig, HostError, Window};
use crate::lane::LaneConfig;
use crate::role::{
    GrantStep, RoleId, RoleMask, RoleTable, RoleTableError, SeatKind, WorkerRole as W,
};
use crate::seat::{MAX_SEATS, SeatSpec};
use crate::time::Duration;
use crate::unit::UnitRow;

fn refusal(config: &HostConfig<'_>, rows: usize) -> Option<HostError> {
    Host::new(config, vec![UnitRow::FREE; rows]).err()
}

/// The refusal of the pinned layout after `change`.
fn changed(change: impl FnOnce(&mut Layout)) -> Option<HostError> {
    let mut layout = Layout::pinned();
    change(&mut layout);
    refusal(&layout.config(), 64)
}

fn solver_lane(layout: &mut Layout) -> &mut LaneConfig {
    &mut layout.lanes[W::Solver.id().index()]
}

#[test]
fn the_layouts_of_the_tests_are_accepted() {
    for layout in [Layout::pinned(), Layout::serial(), Layout::odd()] {
        assert_eq!(refusal(&layout.config(), 64), None);
    }
}

#[test]
fn a_host_is_refused_for_the_fault_it_has() {
    let solver = W::Solver.id();
    assert_eq!(
        changed(|l| l.lanes.truncate(7)),
        Some(HostError::Lanes { lanes: 7, roles: 8 })
    );
    assert_eq!(
        changed(|l| l.lanes[3].rows += 1),
        Some(HostError::Storage {
            reserved: 65,
            storage: 64
        })
    );
    assert_eq!(
        changed(|l| l.seats.clear()),
        Some(HostError::Seats { seats: 0, most: 64 })
    );
    assert_eq!(
        changed(|l| l.seats.resize(MAX_SEATS + 1, l.seats[11])),
        Some(HostError::Seats {
            seats: 65,
            most: 64
        })
    );
    assert_eq!(changed(|l| l.seats.resize(MAX_SEATS, l.seats[11])), None);
    assert_eq!(
        changed(|l| l.seats.truncate(7)),
        Some(HostError::NoSeat {
            role: W::SimDriver.id(),
            rows: 8
        })
    );
    assert_eq!(
        changed(|l| solver_lane(l).keys = 7),
        Some(HostError::Keys {
            role: solver,
            key: 6,
            seats: 0
        })
    );
    assert_eq!(
        changed(|l| solver_lane(l).keys = 5),
        Some(HostError::Keys {
            role: solver,
            key: 5,
            seats: 1
        })
    );
    assert_eq!(
        changed(|l| l.seats[1].key = 0),
        Some(HostError::Keys {
            role: solver,
            key: 0,
            seats: 2
        })
    );
}

#[test]
fn a_lane_that_takes_units_needs_room_keys_and_slots() {
    let role = W::Resolve.id();
    let at = role.index();
    for bad in [
        lane(8, 0, 1, None),
        lane(8, 4, 0, None),
        lane(8, 4, 65, None),
        lane(8, 4, 1, Some(0)),
    ] {
        assert_eq!(
            changed(|l| l.lanes[at] = bad),
            Some(HostError::LaneSize { role }),
            "{bad:?}"
        );
    }
    assert_eq!(
        changed(|l| l.lanes[at] = lane(0, 0, 0, Some(0))),
        None,
        "unless it takes none"
    );
}

#[test]
fn a_seat_serves_roles_of_the_table_and_one_if_it_is_pinned() {
    let with = |roles: &[RoleId], kind| seat(kind, 0, roles);
    let (merge, solver) = (W::Merge.id(), W::Solver.id());
    for bad in [
        with(&[], SeatKind::Pooled),
        with(&[RoleId::new(8)], SeatKind::Pooled),
        with(&[RoleId::new(99)], SeatKind::Pooled),
        with(&[merge, solver], SeatKind::FixedPin),
    ] {
        let roles = bad.roles;
        let refused = changed(|l| l.seats[6] = bad);
        assert_eq!(refused, Some(HostError::SeatRoles { seat: 6, roles }));
    }
}

#[test]
fn the_seats_of_a_role_are_of_one_kind() {
    let refused = changed(|l| {
        l.seats[8].roles = l.seats[8].roles.with(W::Solver.id());
    });
    assert!(
        matches!(refused, Some(HostError::MixedSeats { .. })),
        "{refused:?}"
    );
}

/// A role whose table row is pooled is granted by one step for idle seats only: a seat that pinned
/// would never be found again.
#[test]
fn a_seat_is_pooled_or_of_the_kind_that_the_table_gives_its_role() {
    for kind in [SeatKind::KeyedPin, SeatKind::FixedPin] {
        let mut layout = Layout::one(&PLAIN, lane(4, 4, 1, None), 1);
        layout.seats[0].kind = kind;
        let refused = refusal(&layout.config(), 4);
        let wrong = HostError::SeatKind {
            role: R0,
            seat: kind,
            table: SeatKind::Pooled,
        };
        assert_eq!(refused, Some(wrong));
    }
    let merge_with_a_key = changed(|l| l.seats[6].kind = SeatKind::KeyedPin);
    assert!(matches!(merge_with_a_key, Some(HostError::SeatKind { .. })));
}

#[test]
fn a_fixed_role_has_one_seat() {
    let role = W::Merge.id();
    let refused = changed(|l| l.seats.push(l.seats[6]));
    assert_eq!(refused, Some(HostError::FixedPins { role, seats: 2 }));
}

#[test]
fn windows_must_fit_the_rows_of_their_lane() {
    let layout = Layout::pinned();
    let window = |role: W, units| Window {
        producer: "crawl",
        role: role.id(),
        units,
    };
    let fits = [
        window(W::Registrar, 5),
        window(W::Registrar, 3),
        window(W::Solver, 8),
    ];
    let config = |windows| HostConfig {
        windows,
        ..layout.config()
    };
    assert_eq!(refusal(&config(&fits), 64), None);
    let burst = [window(W::Registrar, 5), window(W::Registrar, 4)];
    let role = W::Registrar.id();
    let refused = Some(HostError::Windows {
        role,
        windows: 9,
        rows: 8,
    });
    assert_eq!(refusal(&config(&burst), 64), refused);
    let huge = [
        window(W::Registrar, u32::MAX),
        window(W::Registrar, u32::MAX),
    ];
    assert!(matches!(
        refusal(&config(&huge), 64),
        Some(HostError::Windows { .. })
    ));
}

#[test]
fn a_window_on_a_role_that_does_not_exist_is_refused() {
    let layout = Layout::pinned();
    let role = RoleId::new(8);
    let windows = [Window {
        producer: "crawl",
        role,
        units: 1,
    }];
    let config = HostConfig {
        windows: &windows,
        ..layout.config()
    };
    let refused = Some(HostError::WindowRole {
        producer: "crawl",
        role,
        roles: 8,
    });
    assert_eq!(refusal(&config, 64), refused);
}

#[test]
fn a_backstop_of_nothing_is_refused() {
    let layout = Layout::pinned();
    let none = HostConfig {
        backstop: Duration::ZERO,
        ..layout.config()
    };
    assert!(matches!(
        refusal(&none, 64),
        Some(HostError::Backstop { .. })
    ));
    let never = HostConfig {
        stuck_ticks: 0,
        ..layout.config()
    };
    assert!(matches!(
        refusal(&never, 64),
        Some(HostError::Backstop { .. })
    ));
}

#[test]
fn a_table_that_does_not_check_is_refused_before_anything_is_read_from_it() {
    const NONE: RoleTable = RoleTable {
        roles: &[],
        ..PLAIN
    };
    const DANGLING: RoleTable = RoleTable {
        order: &[GrantStep::Pooled(R1)],
        ..PLAIN
    };
    let mut layout = Layout::one(&NONE, lane(4, 4, 1, None), 1);
    let refused = |layout: &Layout| refusal(&layout.config(), 4);
    assert_eq!(
        refused(&layout),
        Some(HostError::Table(RoleTableError::Empty))
    );
    layout.table = &DANGLING;
    assert!(matches!(refused(&layout), Some(HostError::Table(_))));
}

#[test]
fn rows_of_an_earlier_host_are_overwritten() {
    let layout = Layout::one(&PLAIN, lane(4, 4, 1, None), 1);
    let guard = crate::guard::Guard::open(1);
    let mut rows = [UnitRow::FREE; 4];
    let mut first = Host::new(&layout.config(), rows.as_mut_slice()).unwrap();
    first
        .enqueue(R0, 0, crate::time::Instant::ORIGIN, &guard)
        .unwrap();
    let again = Host::new(&layout.config(), rows.as_mut_slice()).unwrap();
    assert_eq!(
        (again.audit(), again.room(R0), again.is_idle()),
        (Ok(()), 4, true)
    );
}

#[test]
fn a_seat_spec_that_names_no_possible_role_is_empty() {
    assert_eq!(RoleMask::EMPTY.with(RoleId::new(16)), RoleMask::EMPTY);
    let spec = SeatSpec {
        kind: SeatKind::Pooled,
        roles: RoleMask::EMPTY.with(RoleId::new(255)),
        key: 0,
    };
    assert!(matches!(
        changed(|l| l.seats[7] = spec),
        Some(HostError::SeatRoles { seat: 7, .. })
    ));
}
