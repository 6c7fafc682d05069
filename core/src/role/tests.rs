//! The table check, and what the shipped table promises.

use super::*;

const POOLED: RoleSpec = row(
    "a",
    "a",
    CordonClass::Never,
    SeatKind::Pooled,
    ShareRule::Permits,
    true,
);
const PINNED: RoleSpec = row(
    "b",
    "b",
    CordonClass::Never,
    SeatKind::KeyedPin,
    ShareRule::Rest { min: 1, pins: 2 },
    true,
);
const R0: RoleId = RoleId::new(0);
const R1: RoleId = RoleId::new(1);

const fn table(roles: &'static [RoleSpec], order: &'static [GrantStep]) -> RoleTable {
    RoleTable {
        roles,
        consumers: &[],
        order,
    }
}

#[test]
fn a_table_is_refused_for_the_fault_it_has() {
    use GrantStep::{Claim, Pinned, Pooled};
    let cases: [(RoleTable, RoleTableError); 9] = [
        (table(&[], &[]), RoleTableError::Empty),
        (
            table(&[POOLED; 17], &[]),
            RoleTableError::TooMany { roles: 17 },
        ),
        (
            table(
                &[RoleSpec {
                    short: "too-long",
                    ..POOLED
                }],
                &[Pooled(R0)],
            ),
            RoleTableError::ShortName { role: 0, length: 8 },
        ),
        (
            table(&[POOLED], &[Pooled(R0), Pooled(R1)]),
            RoleTableError::UnknownRole {
                step: 1,
                role: 1,
                roles: 1,
            },
        ),
        (table(&[POOLED], &[]), RoleTableError::Order { role: 0 }),
        (
            table(&[POOLED], &[Pooled(R0), Pooled(R0)]),
            RoleTableError::Order { role: 0 },
        ),
        (
            table(&[PINNED], &[Claim(R0), Pinned(R0)]),
            RoleTableError::Order { role: 0 },
        ),
        (
            table(&[PINNED], &[Pinned(R0)]),
            RoleTableError::Order { role: 0 },
        ),
        (
            table(
                &[PINNED, PINNED],
                &[Pinned(R0), Claim(R0), Pinned(R1), Claim(R1)],
            ),
            RoleTableError::SecondRest { role: 1 },
        ),
    ];
    let named = |name| ConsumerSpec {
        name,
        share: ShareRule::Fixed { cores: 1 },
        threads: false,
    };
    let beside = |consumers: Vec<ConsumerSpec>| RoleTable {
        consumers: consumers.leak(),
        ..table(&[POOLED], &[Pooled(R0)])
    };
    let cases = cases.into_iter().chain([
        (
            beside(vec![named("x"); 17]),
            RoleTableError::TooManyConsumers { consumers: 17 },
        ),
        (
            beside(vec![
                named("x"),
                ConsumerSpec {
                    share: ShareRule::Permits,
                    ..named("y")
                },
            ]),
            RoleTableError::ConsumerShare { consumer: 1 },
        ),
        (
            beside(vec![named("x"), named("a")]),
            RoleTableError::Name { row: 2 },
        ),
        (
            beside(vec![named("x"), named("xy"), named("")]),
            RoleTableError::Name { row: 3 },
        ),
    ]);
    for (table, want) in cases {
        assert_eq!(table.check(), Err(want), "{table:?}");
    }
    assert_eq!(beside(vec![named("xy"), named("x")]).check(), Ok(()));
    assert_eq!(
        table(&[POOLED, PINNED], &[Pooled(R0), Pinned(R1), Claim(R1)]).check(),
        Ok(())
    );
}

#[test]
fn the_enum_and_the_table_name_the_same_rows() {
    assert_eq!(ALL_ROLES.len(), FLEET_ROLES.roles.len());
    for (row, role) in ALL_ROLES.iter().enumerate() {
        assert_eq!(role.id().index(), row);
        assert!(FLEET_ROLES.get(role.id()).is_some());
    }
}

#[test]
fn a_mask_iterates_exactly_its_members_in_row_order() {
    for bits in 0..=u16::MAX {
        let mask = RoleMask(bits);
        let mut rebuilt = RoleMask::EMPTY;
        let mut last = None;
        for role in mask.iter() {
            assert!(mask.contains(role) && last < Some(role));
            last = Some(role);
            rebuilt = rebuilt.with(role);
        }
        assert_eq!(rebuilt, mask);
    }
}

#[test]
fn a_queued_sim_comes_before_a_new_solver_claim_and_after_a_pinned_one() {
    let at = |want: GrantStep| FLEET_ROLES.order.iter().position(|s| *s == want);
    let sim = at(GrantStep::Pooled(WorkerRole::SimDriver.id()));
    assert!(at(GrantStep::Pinned(WorkerRole::Solver.id())) < sim);
    assert!(sim < at(GrantStep::Claim(WorkerRole::Solver.id())));
}
