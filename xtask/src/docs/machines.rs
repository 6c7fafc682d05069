//! The state machines: their tables and their pictures.

use std::fmt::Debug;

use regatta_core::component::{ComponentEvent, ComponentState, RuntimeEvent, RuntimeState};
use regatta_core::fsm::Transition;
use regatta_core::lane::{Progress, ProgressEvent};
use regatta_core::outcome::{FuseEvent, FuseState};
use regatta_core::posture::{Posture, PostureEvent};
use regatta_core::seat::{SlotEvent, SlotPhase};

use super::meaning::meanings;
use super::svg::{Arrow, Place, diagram};
use super::{Page, table};

/// The name of what stands for every state but one in a picture.
const ANY: &str = "any other";

/// A machine, as its declaration says, with the places of its states in the picture.
struct Machine {
    /// Of the picture's file.
    file: &'static str,
    title: &'static str,
    what: &'static str,
    source: &'static str,
    /// The lines of the declaration after which the states and the events come.
    lists: [&'static str; 2],
    states: Vec<String>,
    events: Vec<String>,
    transitions: Vec<Row>,
    /// In the order of the states; one more is the place of [`ANY`].
    places: &'static [(f64, f64)],
}

/// One transition, by the indices of its states.
struct Row {
    name: &'static str,
    from: usize,
    event: String,
    to: usize,
}

/// What a list of states or events is called in the code.
fn names<T: Debug>(list: &[T]) -> Vec<String> {
    list.iter().map(|item| format!("{item:?}")).collect()
}

fn rows<S: PartialEq, E: Debug>(states: &[S], transitions: &[Transition<S, E>]) -> Vec<Row> {
    let index = |state: &S| {
        states
            .iter()
            .position(|s| s == state)
            .unwrap_or(states.len())
    };
    let row = |t: &Transition<S, E>| Row {
        name: t.name,
        from: index(&t.from),
        event: format!("{:?}", t.event),
        to: index(&t.to),
    };
    transitions.iter().map(row).collect()
}

/// Every machine.
fn machines() -> impl Iterator<Item = Machine> {
    of_the_fleet().into_iter().chain(of_components())
}

fn of_the_fleet() -> [Machine; 4] {
    [
        Machine {
            file: "slot",
            title: "A seat",
            what: "A seat is one persistent execution resource. A transition that is not listed is refused, typed, \
                   and leaves the seat as it was.",
            source: include_str!("../../../core/src/seat.rs"),
            lists: ["states SlotPhase {", "events SlotEvent {"],
            states: names(SlotPhase::ALL),
            events: names(SlotEvent::ALL),
            transitions: rows(SlotPhase::ALL, SlotPhase::TRANSITIONS),
            places: &[
                (100.0, 190.0),
                (400.0, 40.0),
                (700.0, 190.0),
                (400.0, 470.0),
                (370.0, 285.0),
                (700.0, 470.0),
                (100.0, 470.0),
                (700.0, 570.0),
            ],
        },
        Machine {
            file: "progress",
            title: "A lane",
            what: "A lane is the intake of one role.",
            source: include_str!("../../../core/src/lane.rs"),
            lists: ["states Progress {", "events ProgressEvent {"],
            states: names(Progress::ALL),
            events: names(ProgressEvent::ALL),
            transitions: rows(Progress::ALL, Progress::TRANSITIONS),
            places: &[
                (100.0, 50.0),
                (400.0, 50.0),
                (550.0, 200.0),
                (250.0, 200.0),
                (550.0, 310.0),
            ],
        },
        Machine {
            file: "posture",
            title: "The posture",
            what: "Whether new work of the roles that can wait is held back.",
            source: include_str!("../../../core/src/posture.rs"),
            lists: ["states Posture {", "events PostureEvent {"],
            states: names(Posture::ALL),
            events: names(PostureEvent::ALL),
            transitions: rows(Posture::ALL, Posture::TRANSITIONS),
            places: &[(100.0, 60.0), (540.0, 60.0)],
        },
        Machine {
            file: "fuse",
            title: "The outcome fuse",
            what: "One outcome for each expected item of a cycle, no more and no fewer.",
            source: include_str!("../../../core/src/outcome.rs"),
            lists: ["states FuseState {", "events FuseEvent {"],
            states: names(FuseState::ALL),
            events: names(FuseEvent::ALL),
            transitions: rows(FuseState::ALL, FuseState::TRANSITIONS),
            places: &[(100.0, 50.0), (400.0, 50.0), (250.0, 200.0)],
        },
    ]
}

fn of_components() -> [Machine; 2] {
    [
        Machine {
            file: "component",
            title: "A component",
            what: "Something that the process owns for as long as it runs. Whoever does not answer in time is fenced.",
            source: include_str!("../../../core/src/component.rs"),
            lists: ["states ComponentState {", "events ComponentEvent {"],
            states: names(ComponentState::ALL),
            events: names(ComponentEvent::ALL),
            transitions: rows(ComponentState::ALL, ComponentState::TRANSITIONS),
            places: &[
                (90.0, 50.0),
                (310.0, 50.0),
                (560.0, 50.0),
                (830.0, 50.0),
                (1070.0, 150.0),
                (830.0, 240.0),
                (560.0, 240.0),
                (330.0, 370.0),
                (330.0, 490.0),
                (330.0, 610.0),
                (330.0, 730.0),
                (560.0, 860.0),
                (560.0, 970.0),
                (90.0, 200.0),
                (90.0, 420.0),
                (1050.0, 610.0),
            ],
        },
        Machine {
            file: "runtime",
            title: "The runtime",
            what: "All components together.",
            source: include_str!("../../../core/src/component.rs"),
            lists: ["states RuntimeState {", "events RuntimeEvent {"],
            states: names(RuntimeState::ALL),
            events: names(RuntimeEvent::ALL),
            transitions: rows(RuntimeState::ALL, RuntimeState::TRANSITIONS),
            places: &[
                (100.0, 50.0),
                (320.0, 50.0),
                (540.0, 50.0),
                (430.0, 200.0),
                (650.0, 200.0),
            ],
        },
    ]
}

pub(super) fn page() -> String {
    machines().map(|machine| section(&machine)).collect()
}

fn section(machine: &Machine) -> String {
    let Machine {
        file,
        title,
        what,
        source,
        lists,
        ..
    } = machine;
    let mut text = format!("## {title}\n\n{what}\n\n![{title}]({file}.svg)\n\n");
    let named = [
        (&machine.states, lists[0], "state"),
        (&machine.events, lists[1], "event"),
    ];
    for (list, header, head) in named {
        let meanings = meanings(source, header);
        let row = |name: &String| {
            let found = meanings.iter().find(|(variant, _)| variant == name);
            let meaning = found.map(|(_, meaning)| meaning.clone());
            vec![format!("`{name}`"), meaning.unwrap_or_default()]
        };
        text.push_str(&table(&[head, "meaning"], list.iter().map(row)));
    }
    let state = |index: usize| machine.states.get(index).map_or("", String::as_str);
    let row = |t: &Row| {
        vec![
            t.name.to_owned(),
            format!("`{}`", state(t.from)),
            format!("`{}`", t.event),
            format!("`{}`", state(t.to)),
        ]
    };
    let rows = machine.transitions.iter().map(row);
    text.push_str(&table(&["transition", "from", "event", "to"], rows));
    text
}

pub(super) fn diagrams() -> Vec<Page> {
    let picture = |machine: &Machine| {
        let (places, arrows) = picture(machine);
        let svg = diagram(machine.title, &places, &arrows);
        (format!("{}.svg", machine.file), svg)
    };
    machines().map(|machine| picture(&machine)).collect()
}

/// The places and arrows of a machine. A transition that every other state has is one arrow.
fn picture(machine: &Machine) -> (Vec<Place>, Vec<Arrow>) {
    let states = machine.states.len();
    let same = |a: &Row, b: &Row| (a.name, &a.event, a.to) == (b.name, &b.event, b.to);
    let of_all = |row: &Row| {
        let rows = machine.transitions.iter();
        rows.filter(|other| same(other, row)).count() == states - 1 && states > 2
    };
    let mut arrows: Vec<Arrow> = Vec::new();
    let mut any = false;
    for row in &machine.transitions {
        let from = if of_all(row) { states } else { row.from };
        let label = if row.name.eq_ignore_ascii_case(&row.event) {
            row.name.to_owned()
        } else {
            format!("{}: {}", row.name, row.event)
        };
        let known = arrows
            .iter()
            .any(|a| (a.from, a.to, &a.label) == (from, row.to, &label));
        if !known {
            arrows.push(Arrow {
                from,
                to: row.to,
                label,
            });
        }
        any |= from == states;
    }
    let names = machine.states.iter().cloned();
    let names = names.chain(any.then(|| ANY.to_owned()));
    let places = names.zip(machine.places);
    (
        places.map(|(name, at)| Place { name, at: *at }).collect(),
        arrows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_place_and_every_name_a_meaning() {
        for machine in machines() {
            let (places, arrows) = picture(&machine);
            let drawn: Vec<&String> = places.iter().map(|place| &place.name).collect();
            assert!(
                machine.states.iter().all(|state| drawn.contains(&state)),
                "{}",
                machine.file
            );
            assert!(
                arrows
                    .iter()
                    .all(|arrow| arrow.from < places.len() && arrow.to < places.len())
            );
            assert_eq!(places.len(), machine.places.len(), "{}", machine.file);
            for (list, header) in [
                (&machine.states, machine.lists[0]),
                (&machine.events, machine.lists[1]),
            ] {
                let meanings = meanings(machine.source, header);
                let found: Vec<&String> = meanings.iter().map(|(name, _)| name).collect();
                assert_eq!(found, list.iter().collect::<Vec<_>>(), "{}", machine.file);
                assert!(meanings.iter().all(|(_, meaning)| !meaning.is_empty()));
            }
        }
    }

    #[test]
    fn only_what_every_other_state_has_is_drawn_once() {
        let drawn = |file: &str| {
            let machine = machines().find(|machine| machine.file == file);
            let (places, arrows) = picture(&machine.unwrap());
            (places.len(), arrows.len())
        };
        // Eighteen transitions, of which six are the death of any other; seven, of which three are the fault.
        assert_eq!(drawn("slot"), (8, 13));
        assert_eq!(drawn("progress"), (5, 5));
        assert_eq!(drawn("fuse"), (3, 4));
    }
}
