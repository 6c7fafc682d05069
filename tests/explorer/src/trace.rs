//! A trace as a Rust test to paste: the same calls on a host of the same make.

use crate::action::{Action, LATE};
use crate::rule::{Coverage, Rule, Violation};
use crate::state::State;
use crate::step::Scene;
use crate::world::{DELTA, ROLES, ROWS, SEATS, STUCK_TICKS, World};
use regatta_core::role::{RoleId, RoleSpec};
use regatta_core::time::Duration;
use regatta_core::unit::UnitId;
use std::fmt::Write;

/// Writes the calls of a walk down, with a name for each unit.
struct Scribe<'a> {
    scene: Scene<'a>,
    state: State,
    /// The id of each unit that came in, by its number.
    units: Vec<UnitId>,
    /// The numbers of the units whose reports are still on their way, with their seats.
    stale: Vec<(usize, usize)>,
    text: String,
}

/// The test that takes `actions` and ends where `violation` was found.
#[must_use]
pub fn as_test(scene: Scene<'_>, name: &str, actions: &[Action], violation: &Violation) -> String {
    let Ok(mut state) = State::initial(scene.world) else {
        return format!("// {violation}\n");
    };
    state.normalise(Duration::ZERO, scene.gone, &mut []);
    let mut scribe = Scribe {
        scene,
        state,
        units: Vec::new(),
        stale: Vec::new(),
        text: String::new(),
    };
    for action in actions {
        scribe.write(*action);
    }
    let Scribe { text, units, .. } = scribe;
    let has = |wanted: &str| text.contains(wanted);
    let now = mutable("now", has("now = now"));
    let guard = mutable("guard", has("guard."));
    let steps = (0..units.len()).fold(text.clone(), |steps, unit| {
        let used = [",", ")"].map(|after| format!("u{unit}{after}"));
        if used.iter().any(|use_of| steps.contains(use_of)) {
            steps
        } else {
            steps.replace(&format!("let u{unit} ="), "let _ =")
        }
    });
    let preamble = preamble(scene.world);
    let ending = ending(violation.rule);
    format!(
        "#[test]\nfn {name}() {{\n{preamble}    {guard} = Guard::open(16);\n    {now} = Instant::ORIGIN;\n{steps}    // {violation}.\n{ending}    assert_eq!(host.audit(), Ok(()));\n}}\n"
    )
}

fn mutable(name: &str, changes: bool) -> String {
    format!("let {}{name}", if changes { "mut " } else { "" })
}

/// What is asserted of the last state.
fn ending(rule: Rule) -> &'static str {
    if rule != Rule::Alive {
        return "";
    }
    "    assert!(host.seats().iter().all(|seat| seat.held().is_none()));
    let held = |role| host.hold(role, &guard);
    assert!(table.ids().all(|role| held(role).is_none()));
    let waiting = |role| host.ledger(role).map_or(0, |ledger| ledger.waiting());
    assert!(table.ids().map(waiting).sum::<u64>() > 0);
    // Only this is left to end it.
    assert!(host.next_deadline(&guard).is_some());
"
}

impl Scribe<'_> {
    /// The variable of a unit.
    fn name(&self, unit: UnitId) -> String {
        let number = self.units.iter().rposition(|known| *known == unit);
        number.map_or_else(|| "nobody".to_owned(), |number| format!("u{number}"))
    }

    fn held(&self, seat: u8) -> String {
        let held = self.state.held(seat.into());
        held.map_or_else(|| "nobody".to_owned(), |(_, unit)| self.name(unit))
    }

    /// One line, and the step itself.
    fn write(&mut self, action: Action) {
        let line = self.line(action);
        let read = self.state.env.read.len();
        self.stale_reports(action);
        let stepped = self
            .scene
            .step(&self.state, action, &mut Coverage::default());
        let mut note = "";
        if let Ok(mut stepped) = stepped {
            self.units.extend(stepped.gained);
            let names = &mut self.units;
            stepped
                .state
                .normalise(stepped.elapsed, self.scene.gone, names);
            self.state = stepped.state;
            if self.state.env.read.len() > read && action != Action::Read {
                note = "\n    while host.poll_resolved().is_some() {}";
            }
        }
        let _ = writeln!(self.text, "    {line}{note}");
    }

    fn stale_reports(&mut self, action: Action) {
        match action {
            Action::Done { seat, twice: true }
            | Action::Die {
                seat,
                reports: true,
            } => {
                let held = self.state.held(seat.into());
                let number =
                    held.and_then(|(_, unit)| self.units.iter().rposition(|known| *known == unit));
                self.stale
                    .extend(number.map(|number| (number, usize::from(seat))));
            }
            Action::Stale(at) if usize::from(at) < self.stale.len() => {
                self.stale.remove(at.into());
            }
            _ => {}
        }
    }

    fn line(&self, action: Action) -> String {
        let size = self.scene.size;
        match action {
            Action::Enqueue { role, key } => {
                let unit = self.units.len();
                format!(
                    "let u{unit} = host.enqueue(RoleId::new({role}), {key}, now, &guard).unwrap().unit();"
                )
            }
            Action::Poll => "host.poll_grant(now, &guard);".to_owned(),
            Action::Start(seat) => {
                let unit = self.held(seat);
                format!(
                    "let _ = host.start(regatta_core::seat::SeatId::new({seat}), {unit}, now, &guard);"
                )
            }
            Action::Done { seat, .. } => {
                let unit = self.held(seat);
                format!(
                    "host.seat_done(regatta_core::seat::SeatId::new({seat}), {unit}, regatta_core::unit::RunResult::Done, now, &guard).unwrap();"
                )
            }
            Action::Stale(at) => {
                let (number, seat) = self.stale.get(usize::from(at)).copied().unwrap_or_default();
                format!(
                    "host.seat_done(regatta_core::seat::SeatId::new({seat}), u{number}, regatta_core::unit::RunResult::Done, now, &guard).unwrap_err();"
                )
            }
            Action::Tick { late } => {
                let mut wait = DELTA.as_millis();
                if late {
                    wait += LATE.as_millis();
                }
                format!(
                    "now = now + Duration::from_millis({wait});\n    guard.ledger.refill_at = guard.ledger.refill_at.map(|_| now + Duration::from_nanos(1));\n    host.backstop_tick(now, &guard);"
                )
            }
            Action::Edge => "host.posture_edge(now, &guard);".to_owned(),
            Action::Epoch => {
                "let _ = host.epoch_boundary(host.epoch() + 1, now, &guard);".to_owned()
            }
            Action::Die { seat, .. } => {
                format!(
                    "host.seat_died(regatta_core::seat::SeatId::new({seat}), now, &guard).unwrap();"
                )
            }
            Action::Resize(pins) => format!("host.resize({pins}, now, &guard).unwrap();"),
            Action::Close { fence } => {
                let phase = if fence { "Fence" } else { "Quiesce" };
                format!(
                    "host.close(regatta_core::host::ClosePhase::{phase}, now, &guard).unwrap();"
                )
            }
            Action::Read => "host.poll_resolved().unwrap();".to_owned(),
            Action::Release(at) => {
                let unit = self.state.env.read.get(usize::from(at));
                let unit = unit.map_or_else(|| "nobody".to_owned(), |(_, unit)| self.name(*unit));
                format!("host.release({unit}).unwrap();")
            }
            Action::Cordon(on) => format!("guard.posture.cordoned = {on};"),
            Action::LaneDeath => {
                "guard.posture.cordoned = true;\n    guard.posture.lane_death = true;".to_owned()
            }
            Action::Permits(level) => {
                let permits = size.permits.get(usize::from(level));
                permits.map_or_else(String::new, |permits| {
                    format!("guard.permits = regatta_core::guard::{permits:?};")
                })
            }
            Action::Ledger(level) => {
                let (roles, refills) = size
                    .ledgers
                    .get(usize::from(level))
                    .copied()
                    .unwrap_or_default();
                let roles = list(roles.iter().copied());
                let refill = if refills {
                    "Some(now + Duration::from_nanos(1))"
                } else {
                    "None"
                };
                format!(
                    "guard.ledger.holds = {roles}.into_iter().collect();\n    guard.ledger.refill_at = {refill};"
                )
            }
        }
    }
}

fn list(roles: impl Iterator<Item = RoleId>) -> String {
    let roles: Vec<String> = roles.map(role).collect();
    format!("[{}]", roles.join(", "))
}

fn role(role: RoleId) -> String {
    format!("RoleId::new({})", role.index())
}

/// The host of the world, as code.
fn preamble(world: &World) -> String {
    use regatta_core::role::GrantStep::{Claim, Pinned, Pooled};
    let mut text = String::from(
        "    use regatta_core::guard::Guard;
    use regatta_core::host::{Host, HostConfig};
    use regatta_core::lane::LaneConfig;
    use regatta_core::role::{CordonClass, GrantStep, RoleId, RoleSpec, RoleTable, SeatKind, ShareRule};
    use regatta_core::seat::SeatSpec;
    use regatta_core::time::{Duration, Instant};
    use regatta_core::unit::UnitRow;
    static TABLE: RoleTable = RoleTable {
        roles: &[
",
    );
    for spec in world.table.roles {
        let RoleSpec {
            name,
            short,
            cordon,
            seat,
            share,
            owns_receipts,
        } = spec;
        let _ = writeln!(
            text,
            "            RoleSpec {{ name: {name:?}, short: {short:?}, cordon: CordonClass::{cordon:?}, seat: SeatKind::{seat:?}, share: ShareRule::{share:?}, owns_receipts: {owns_receipts} }},"
        );
    }
    text.push_str("        ],\n        consumers: &[],\n        order: &[\n");
    for step in world.table.order {
        let (kind, id) = match step {
            Pooled(id) => ("Pooled", id),
            Pinned(id) => ("Pinned", id),
            Claim(id) => ("Claim", id),
        };
        let _ = writeln!(text, "            GrantStep::{kind}({}),", role(*id));
    }
    text.push_str("        ],\n    };\n    let lanes = [\n");
    for lane in world.lanes {
        let _ = writeln!(text, "        {lane:?},");
    }
    text.push_str("    ];\n    let seats = [\n");
    for (kind, roles, key) in world.seats {
        let roles = list(roles.iter().copied());
        let _ = writeln!(
            text,
            "        SeatSpec {{ kind: SeatKind::{kind:?}, roles: {roles}.into_iter().collect(), key: {key} }},"
        );
    }
    let _ = write!(
        text,
        "    ];
    let table = &TABLE;
    let config = HostConfig {{
        table,
        lanes: &lanes,
        seats: &seats,
        windows: &[],
        backstop: Duration::from_millis({delta}),
        stuck_ticks: {STUCK_TICKS},
    }};
    let mut host = Host::<_, {SEATS}, {ROLES}>::sized(&config, [UnitRow::FREE; {ROWS}]).unwrap();
",
        delta = DELTA.as_millis()
    );
    text
}
