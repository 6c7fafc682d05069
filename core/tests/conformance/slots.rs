//! Every role through every transition of its seat, the legal ones and all others.

use crate::fleet::{Fleet, plan};
use proptest::prelude::*;
use regatta_core::host::Input;
use regatta_core::plan::Profile;
use regatta_core::role::{ALL_ROLES, FLEET_ROLES, RoleId, SeatKind, WorkerRole};
use regatta_core::seat::{Seat, SeatSpec, SlotEvent, SlotPhase};
use regatta_core::time::Instant;
use regatta_core::unit::UnitId;
use std::collections::BTreeSet;

/// The kinds of seat that serve the roles, one letter a role: keyed, fixed, pooled.
const KINDS: &str = "KPPFPPPP";

/// The legal transitions as bytes: phase before, event, phase after, and the kinds of seat that have it.
#[rustfmt::skip]
const LEGAL: &[(u8, u8, u8, &str)] = &[
    // Idle (0): lease, die, retire.
    (0, 0, 1, "KFP"), (0, 10, 5, "KFP"), (0, 11, 6, "KFP"),
    // Leased (1): start, hand back, die.
    (1, 1, 2, "KFP"), (1, 9, 0, "KFP"), (1, 10, 5, "KFP"),
    // Running (2): the three ends of a unit, shed, die.
    (2, 2, 3, "K"), (2, 3, 3, "F"), (2, 4, 0, "P"), (2, 6, 4, "P"), (2, 10, 5, "KFP"),
    // Pinned (3): resume, release, die, retire.
    (3, 5, 2, "KF"), (3, 8, 0, "KF"), (3, 10, 5, "KF"), (3, 11, 6, "KF"),
    // Draining (4): drained, die.
    (4, 7, 0, "P"), (4, 10, 5, "P"),
    // Dead (5): nothing.
    // Retired (6): die.
    (6, 10, 5, "KFP"),
];

/// The phase after `event` on a seat of `kind`, or `None` where that must be refused.
fn legal(kind: &str, phase: u8, event: u8) -> Option<u8> {
    let mut rows = LEGAL.iter();
    rows.find(|(from, on, _, kinds)| (*from, *on) == (phase, event) && kinds.contains(kind))
        .map(|(_, _, to, _)| *to)
}

fn bytes(n: usize) -> impl Iterator<Item = u8> + Clone {
    (0_u8..).take(n)
}

/// One seat for each role, moved by bytes.
struct Stub {
    seats: Vec<Seat>,
    unit: UnitId,
    /// What the table says that each seat is in.
    phases: Vec<u8>,
    /// Which (kind, phase, event) were tried.
    tried: BTreeSet<(char, u8, u8)>,
}

impl Stub {
    fn new() -> Self {
        let mut fleet = Fleet::new(&plan(8000, Profile::Auto));
        let role = WorkerRole::Resolve.id();
        fleet.handle(Input::Enqueue { role, key: 0 }).unwrap();
        let unit = fleet.pump()[0].unit;
        let seat = |role: &WorkerRole| {
            let kind = FLEET_ROLES.get(role.id()).unwrap().seat;
            // A pooled seat serves every pooled role, so that a role which a refusal left behind would show.
            let served = |other: &RoleId| match kind {
                SeatKind::Pooled => FLEET_ROLES.get(*other).unwrap().seat == kind,
                SeatKind::KeyedPin | SeatKind::FixedPin => *other == role.id(),
            };
            let roles = FLEET_ROLES.ids().filter(served).collect();
            Seat::new(SeatSpec {
                kind,
                roles,
                key: 0,
            })
        };
        Self {
            seats: ALL_ROLES.iter().map(seat).collect(),
            unit,
            phases: vec![0; ALL_ROLES.len()],
            tried: BTreeSet::new(),
        }
    }

    /// The role of the first byte meets the event of the second.
    fn step(&mut self, role: u8, event: u8) {
        let index = usize::from(role) % ALL_ROLES.len();
        let number = event % u8::try_from(SlotEvent::ALL.len()).unwrap();
        let role = ALL_ROLES[index].id();
        let kind = &KINDS[index..=index];
        let from = self.phases[index];
        self.tried
            .insert((kind.chars().next().unwrap(), from, number));

        let seat = &mut self.seats[index];
        let before = seat.clone();
        assert_eq!(seat.phase(), SlotPhase::ALL[usize::from(from)]);
        let event = SlotEvent::ALL[usize::from(number)];
        let expected = legal(kind, from, number);
        let done = meet(seat, role, self.unit, event);
        if let Some(to) = expected {
            assert!(done, "{role:?}: {event:?} in {:?}", before.phase());
            assert_eq!(seat.phase(), SlotPhase::ALL[usize::from(to)]);
            self.phases[index] = to;
        } else {
            assert!(!done, "{role:?}: {event:?} in {:?}", before.phase());
            assert!(*seat == before, "a refusal leaves the seat as it was");
        }
    }
}

/// Whether the seat took the event. The three ends of a unit and the end of a drain are one call, and
/// the seat knows which it is.
fn meet(seat: &mut Seat, role: RoleId, unit: UnitId, event: SlotEvent) -> bool {
    let now = Instant::ORIGIN;
    let ends = |seat: &mut Seat, phase, kind: Option<SeatKind>| {
        seat.phase() == phase
            && kind.is_none_or(|kind| seat.spec().kind == kind)
            && seat.finish(unit).is_ok()
    };
    match event {
        SlotEvent::Lease => seat.lease(role, unit, now).is_ok(),
        SlotEvent::Start => seat.start(unit).is_ok(),
        SlotEvent::PinKey => ends(seat, SlotPhase::Running, Some(SeatKind::KeyedPin)),
        SlotEvent::PinFixed => ends(seat, SlotPhase::Running, Some(SeatKind::FixedPin)),
        SlotEvent::Finish => ends(seat, SlotPhase::Running, Some(SeatKind::Pooled)),
        SlotEvent::Resume => seat.resume(role, unit, now).is_ok(),
        SlotEvent::Shed => seat.shed().is_ok(),
        SlotEvent::Drained => ends(seat, SlotPhase::Draining, None),
        SlotEvent::Release => seat.release().is_ok(),
        SlotEvent::HandBack => seat.hand_back(unit).is_ok(),
        SlotEvent::Die => seat.die().is_ok(),
        SlotEvent::Retire => seat.retire().is_ok(),
    }
}

/// The phases that a seat of `kind` can come to, each with the events that lead there.
fn paths(kind: &str) -> Vec<(u8, Vec<u8>)> {
    let mut found = vec![(0, Vec::new())];
    let mut at = 0;
    while at < found.len() {
        let (phase, path) = found[at].clone();
        for event in bytes(SlotEvent::ALL.len()) {
            if let Some(to) = legal(kind, phase, event)
                && found.iter().all(|(known, _)| *known != to)
            {
                found.push((to, [path.as_slice(), &[event]].concat()));
            }
        }
        at += 1;
    }
    found
}

#[test]
fn the_lists_of_the_stub_are_those_of_the_core() {
    assert_eq!(KINDS.len(), ALL_ROLES.len());
    assert_eq!(FLEET_ROLES.roles.len(), ALL_ROLES.len());
    let letter = |kind| match kind {
        SeatKind::KeyedPin => 'K',
        SeatKind::FixedPin => 'F',
        SeatKind::Pooled => 'P',
    };
    let kinds: String = FLEET_ROLES
        .roles
        .iter()
        .map(|spec| letter(spec.seat))
        .collect();
    assert_eq!(kinds, KINDS);
    assert_eq!((SlotPhase::ALL.len(), SlotEvent::ALL.len()), (7, 12));
    assert_eq!(SlotPhase::TRANSITIONS.len(), LEGAL.len());
}

/// Every phase and every event, also those that no seat of a kind comes to.
#[test]
fn the_machine_takes_what_is_listed_and_refuses_all_else_with_what_would_be_legal() {
    let (mut taken, mut refused) = (0, 0);
    for from in bytes(SlotPhase::ALL.len()) {
        for on in bytes(SlotEvent::ALL.len()) {
            let phase = SlotPhase::ALL[usize::from(from)];
            let event = SlotEvent::ALL[usize::from(on)];
            let listed = LEGAL.iter().find(|row| (row.0, row.1) == (from, on));
            match (phase.on(event), listed) {
                (Ok(to), Some(row)) => {
                    assert_eq!(to, SlotPhase::ALL[usize::from(row.2)]);
                    taken += 1;
                }
                (Err(error), None) => {
                    assert_eq!((error.from, error.event), (phase, event));
                    refused += 1;
                }
                (got, _) => panic!("{phase:?} on {event:?}: {got:?}"),
            }
        }
    }
    assert_eq!((taken, refused), (18, 66));
}

/// The tour: each role in each phase that its seat comes to meets each event.
#[test]
fn every_role_goes_through_every_legal_transition_and_no_other() {
    let mut tried = BTreeSet::new();
    let mut walked = BTreeSet::new();
    for role in bytes(ALL_ROLES.len()) {
        let kind = &KINDS[usize::from(role)..=usize::from(role)];
        for (phase, path) in paths(kind) {
            for event in bytes(SlotEvent::ALL.len()) {
                let mut stub = Stub::new();
                for step in &path {
                    stub.step(role, *step);
                }
                stub.step(role, event);
                tried.extend(stub.tried);
                if legal(kind, phase, event).is_some() {
                    walked.insert((phase, event));
                }
            }
        }
    }
    assert_eq!(walked.len(), LEGAL.len(), "each row is some role's");
    // A pin never drains and a pooled seat is never pinned: six phases each, of three kinds.
    assert_eq!(tried.len(), 3 * 6 * SlotEvent::ALL.len());
}

proptest! {
    /// Any bytes at all: what is refused changes nothing, and later bytes find the seat as it was.
    #[test]
    fn any_script_leads_where_the_table_says(script in proptest::collection::vec(any::<(u8, u8)>(), 0..400)) {
        let mut stub = Stub::new();
        for (role, event) in script {
            stub.step(role, event);
        }
    }
}
