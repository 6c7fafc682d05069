//! The slot state machine against a list of its own, and what a seat refuses.

use super::*;
use crate::unit::{UnitRow, UnitTable};
use SlotEvent as E;
use SlotPhase as P;

const ROLE: RoleId = RoleId::new(2);
const OTHER: RoleId = RoleId::new(5);
const KINDS: [SeatKind; 3] = [SeatKind::KeyedPin, SeatKind::FixedPin, SeatKind::Pooled];
const NOW: Instant = Instant::from_nanos(7);

/// What a seat may do, written down a second time and in another order than the machine has it.
const LEGAL: [(&str, P, E, P); 18] = [
    ("T12", P::Idle, E::Retire, P::Retired),
    ("T12", P::Pinned, E::Retire, P::Retired),
    ("T11", P::Idle, E::Die, P::Dead),
    ("T11", P::Leased, E::Die, P::Dead),
    ("T11", P::Running, E::Die, P::Dead),
    ("T11", P::Pinned, E::Die, P::Dead),
    ("T11", P::Draining, E::Die, P::Dead),
    ("T11", P::Retired, E::Die, P::Dead),
    ("T10", P::Leased, E::HandBack, P::Idle),
    ("T9", P::Pinned, E::Release, P::Idle),
    ("T8", P::Draining, E::Drained, P::Idle),
    ("T7", P::Running, E::Shed, P::Draining),
    ("T6", P::Pinned, E::Resume, P::Running),
    ("T5", P::Running, E::Finish, P::Idle),
    ("T4", P::Running, E::PinFixed, P::Pinned),
    ("T3", P::Running, E::PinKey, P::Pinned),
    ("T2", P::Leased, E::Start, P::Running),
    ("T1", P::Idle, E::Lease, P::Leased),
];

fn unit(index: u32) -> UnitId {
    UnitTable::new([UnitRow::FREE; 4]).id(index)
}

fn seat(kind: SeatKind) -> Seat {
    Seat::new(SeatSpec {
        kind,
        roles: if kind == SeatKind::Pooled {
            RoleMask::EMPTY.with(ROLE).with(OTHER)
        } else {
            RoleMask::EMPTY.with(ROLE)
        },
        key: if kind == SeatKind::KeyedPin { 3 } else { 0 },
    })
}

/// Walks a fresh seat to `phase` by legal steps only, if its kind can get there.
fn at(kind: SeatKind, phase: P) -> Option<Seat> {
    let mut seat = seat(kind);
    let pinned = kind != SeatKind::Pooled;
    match phase {
        P::Idle => {}
        P::Leased => seat.lease(ROLE, unit(0), NOW).unwrap(),
        P::Running => {
            seat.lease(ROLE, unit(0), NOW).unwrap();
            seat.start(unit(0)).unwrap();
        }
        P::Pinned => {
            seat = at(kind, P::Running)?;
            seat.finish(unit(0)).unwrap();
        }
        P::Draining => {
            seat = at(kind, P::Running)?;
            seat.shed().ok()?;
        }
        P::Dead => seat.die().unwrap(),
        P::Retired => seat.retire().unwrap(),
    }
    (phase != P::Pinned || pinned).then_some(seat)
}

/// Offers `event` to a seat through the method that stands for it; `None` where the seat's kind has
/// no such method, as the end of a unit has one event per kind.
fn offer(seat: &mut Seat, event: E) -> Option<Result<(), SeatError>> {
    let kind = seat.spec().kind;
    let draining = seat.phase() == P::Draining;
    Some(match event {
        E::Lease => seat.lease(ROLE, unit(1), NOW),
        E::Resume => seat.resume(ROLE, unit(1), NOW),
        E::Start => seat.start(unit(0)),
        E::HandBack => seat.hand_back(unit(0)),
        E::Shed => seat.shed(),
        E::Release => seat.release(),
        E::Die => seat.die(),
        E::Retire => seat.retire(),
        E::PinKey if kind == SeatKind::KeyedPin && !draining => seat.finish(unit(0)),
        E::PinFixed if kind == SeatKind::FixedPin && !draining => seat.finish(unit(0)),
        E::Finish if kind == SeatKind::Pooled && !draining => seat.finish(unit(0)),
        E::Drained if draining => seat.finish(unit(0)),
        E::PinKey | E::PinFixed | E::Finish | E::Drained => return None,
    })
}

#[test]
fn every_phase_takes_exactly_the_listed_events() {
    for &from in P::ALL {
        for &event in E::ALL {
            let listed = LEGAL.iter().find(|l| (l.1, l.2) == (from, event));
            let want = listed.map_or(Err(SlotError { from, event }), |l| Ok(l.3));
            assert_eq!(from.on(event), want, "{from:?} on {event:?}");
        }
    }
    assert_eq!(P::TRANSITIONS.len(), LEGAL.len());
    for t in P::TRANSITIONS {
        assert!(LEGAL.contains(&(t.name, t.from, t.event, t.to)), "{t:?}");
    }
}

#[test]
fn a_rejection_names_what_would_have_been_legal() {
    let text = P::Draining.on(E::Lease).unwrap_err().to_string();
    assert!(
        text.contains("Draining") && text.contains("Lease"),
        "{text}"
    );
    assert!(text.ends_with("Drained, Die"), "{text}");
    assert!(
        P::Dead
            .on(E::Die)
            .unwrap_err()
            .to_string()
            .ends_with("nothing")
    );
}

#[test]
fn each_kind_of_seat_in_each_phase_takes_what_is_listed_and_a_refusal_changes_nothing() {
    let (mut taken, mut refused) = (0, 0);
    for kind in KINDS {
        for &phase in P::ALL {
            let Some(before) = at(kind, phase) else {
                continue;
            };
            for &event in E::ALL {
                let mut seat = before.clone();
                let Some(got) = offer(&mut seat, event) else {
                    continue;
                };
                let listed = LEGAL.iter().find(|l| (l.1, l.2) == (phase, event));
                let sheds_a_pin = event == E::Shed && kind != SeatKind::Pooled;
                match listed {
                    Some((_, _, _, to)) if !sheds_a_pin => {
                        assert_eq!(
                            (got, seat.phase()),
                            (Ok(()), *to),
                            "{kind:?} {phase:?} {event:?}"
                        );
                        taken += 1;
                    }
                    _ => {
                        let error = got.unwrap_err();
                        let want = if sheds_a_pin {
                            SeatError::ShedPinned(kind)
                        } else {
                            SeatError::Slot(SlotError { from: phase, event })
                        };
                        assert_eq!(error, want);
                        assert_eq!(seat, before, "{kind:?} {phase:?} {event:?}");
                        assert_eq!(seat.held_since(), before.held_since());
                        refused += 1;
                    }
                }
            }
        }
    }
    // 13 for each kind of pin: no draining, and one way to end a unit. 12 for a pooled seat: no pin.
    assert_eq!(taken, 2 * 13 + 12);
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_seat_says_what_it_holds_and_only_while_it_holds_it() {
    for kind in KINDS {
        for &phase in P::ALL {
            let Some(seat) = at(kind, phase) else {
                continue;
            };
            let holding = matches!(phase, P::Leased | P::Running | P::Draining);
            let (role, unit) = (ROLE, unit(0));
            assert_eq!(seat.held(), holding.then_some((role, unit)));
            assert_eq!(seat.held_since(), holding.then_some(NOW));
            let want = match phase {
                P::Idle => SlotState::Idle,
                P::Leased => SlotState::Leased { role, unit },
                P::Running => SlotState::Running { role, unit },
                P::Pinned => SlotState::Pinned {
                    role,
                    key: seat.key(),
                },
                P::Draining => SlotState::Draining { role, unit },
                P::Dead => SlotState::Dead,
                P::Retired => SlotState::Retired,
            };
            assert_eq!(seat.state(), want);
        }
    }
}

#[test]
fn a_seat_takes_no_role_that_it_does_not_serve() {
    let stranger = RoleId::new(6);
    for kind in KINDS {
        for &phase in P::ALL {
            let Some(before) = at(kind, phase) else {
                continue;
            };
            for offered in [stranger, OTHER] {
                if before.spec().roles.contains(offered) {
                    continue;
                }
                let want = SeatError::Role {
                    serves: before.spec().roles,
                    role: offered,
                };
                let mut seat = before.clone();
                assert_eq!(seat.lease(offered, unit(1), NOW), Err(want));
                assert_eq!(seat.resume(offered, unit(1), NOW), Err(want));
                assert_eq!(seat, before);
            }
        }
    }
}

#[test]
fn a_role_beyond_any_table_is_refused_like_any_other() {
    for row in [16, 18, 31, 32, 200, 255] {
        let role = RoleId::new(row);
        let mut seat = seat(SeatKind::Pooled);
        assert!(matches!(
            seat.lease(role, unit(1), NOW),
            Err(SeatError::Role { .. })
        ));
    }
}

#[test]
fn a_call_about_another_unit_is_refused_and_changes_nothing() {
    let mut table = UnitTable::new([UnitRow::FREE; 4]);
    let mut free = List::EMPTY;
    let held = table.id(0);
    table.free(&mut free, 0);
    let (next_life, neighbour) = (table.id(0), table.id(1));
    for kind in KINDS {
        for named in [next_life, neighbour] {
            let want = Err(SeatError::OtherUnit { named, held });
            let leased = at(kind, P::Leased).unwrap();
            let mut seat = leased.clone();
            assert_eq!(seat.start(named), want);
            assert_eq!(seat.hand_back(named), want);
            assert_eq!(seat, leased);
            let running = at(kind, P::Running).unwrap();
            let mut seat = running.clone();
            assert_eq!(seat.finish(named), want);
            assert_eq!(seat, running);
        }
    }
    let mut draining = at(SeatKind::Pooled, P::Draining).unwrap();
    assert!(draining.finish(neighbour).is_err());
    assert_eq!(draining.finish(held), Ok(()));
}

#[test]
fn a_pinned_seat_is_never_shed() {
    for kind in [SeatKind::KeyedPin, SeatKind::FixedPin] {
        for &phase in P::ALL {
            if let Some(mut seat) = at(kind, phase) {
                assert_eq!(seat.shed(), Err(SeatError::ShedPinned(kind)));
                assert_eq!(seat.phase(), phase);
            }
        }
        assert!(at(kind, P::Draining).is_none());
    }
}

#[test]
fn a_pin_keeps_its_key_over_any_number_of_units() {
    let mut seat = at(SeatKind::KeyedPin, P::Pinned).unwrap();
    for round in 0..100 {
        let unit = unit(round % 4);
        seat.resume(ROLE, unit, NOW).unwrap();
        seat.finish(unit).unwrap();
        assert_eq!(seat.state(), SlotState::Pinned { role: ROLE, key: 3 });
    }
}

#[test]
fn seats_without_a_unit_compare_by_what_they_will_do() {
    let mut after_other = seat(SeatKind::Pooled);
    after_other.lease(OTHER, unit(1), NOW).unwrap();
    after_other.start(unit(1)).unwrap();
    after_other.finish(unit(1)).unwrap();
    assert_eq!(after_other, seat(SeatKind::Pooled));
}

#[test]
fn the_members_of_a_seat_mask_are_its_bits_in_order() {
    for mask in [0, 1, 1 << 63, u64::MAX, 0xA5A5_0000_FF00_0001] {
        let members: Vec<SeatId> = SeatId::members(mask).collect();
        assert!(members.is_sorted());
        assert_eq!(members.iter().fold(0, |m, s| m | s.bit()), mask);
    }
}
