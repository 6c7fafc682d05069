//! Giving the host one input and telling what it did.

use regatta_core::host::{Accepted, ClosePhase, Input, InputError, Reaction};
use regatta_core::unit::RunResult;

use super::scene::Scene;

/// An input in the words of the page.
pub(super) struct Question {
    pub(super) label: &'static str,
    /// What to give; `None` if the scene has no such input.
    input: fn(&mut Scene) -> Option<Input>,
}

/// What became of it.
pub(super) struct Answer {
    pub(super) reaction: String,
    /// The error, by its names, if it was refused.
    pub(super) refused: Option<String>,
    /// Seat, lane, ended, alarm, next grant, backstop; empty where nothing changed.
    pub(super) effects: [String; 6],
}

/// Every input, in every form that the host tells apart.
#[rustfmt::skip]
pub(super) fn questions() -> Vec<Question> {
    let ask = |label, input| Question { label, input };
    vec![
        ask("Enqueue", |scene| Some(Input::Enqueue { role: scene.role, key: 0 })),
        ask("SeatDone (its unit)", |scene| done(scene, scene.unit, RunResult::Done)),
        ask("SeatDone (its unit, panicked)", |scene| done(scene, scene.unit, RunResult::Panicked)),
        ask("SeatDone (another unit)", |scene| done(scene, scene.stale, RunResult::Done)),
        ask("BackstopTick", |scene| {
            scene.now = scene.host.next_deadline(&scene.guard).unwrap_or(scene.now);
            Some(Input::BackstopTick)
        }),
        ask("PostureEdge (nothing changed)", |_| Some(Input::PostureEdge { seq: 7 })),
        ask("PostureEdge (the cordon set or lifted)", |scene| {
            // A dead lane's cordon never lifts.
            scene.guard.posture.cordoned = !scene.guard.posture.cordoned || scene.guard.posture.lane_death;
            Some(Input::PostureEdge { seq: 8 })
        }),
        ask("EpochBoundary", |scene| Some(Input::EpochBoundary { seq: scene.host.epoch() + 1 })),
        ask("EpochBoundary (not newer)", |scene| Some(Input::EpochBoundary { seq: scene.host.epoch() })),
        ask("SeatDied", |scene| Some(Input::SeatDied { seat: scene.seat })),
        ask("Resize", |_| Some(Input::Resize { pins: 1 })),
        ask("Resize (to no pins)", |_| Some(Input::Resize { pins: 0 })),
        ask("Close (quiesce)", |_| Some(Input::Close(ClosePhase::Quiesce))),
        ask("Close (fence)", |_| Some(Input::Close(ClosePhase::Fence))),
    ]
}

fn done(
    scene: &Scene,
    unit: Option<regatta_core::unit::UnitId>,
    result: RunResult,
) -> Option<Input> {
    Some(Input::SeatDone {
        seat: scene.seat,
        unit: unit.or(scene.stale)?,
        result,
    })
}

/// Gives the input of `question` to the host of `scene`.
pub(super) fn ask(scene: &Scene, question: &Question) -> Answer {
    let mut after = scene.clone();
    let Some(input) = (question.input)(&mut after) else {
        return Answer {
            reaction: String::new(),
            refused: None,
            effects: Default::default(),
        };
    };
    let answered = after.host.handle(input, after.now, &after.guard);
    let refused = answered.as_ref().err().map(name);
    let reaction = answered.map_or(String::new(), describe);
    let (phase, lane, backstop) = (after.phase(), after.lane(), after.backstop());
    let mut ended = Vec::new();
    while let Some(resolved) = after.host.poll_resolved() {
        ended.push(format!("{:?}", resolved.outcome));
    }
    let mut alarms = Vec::new();
    while let Some(alarm) = after.host.poll_alarm() {
        alarms.push(first_word(&format!("{alarm:?}")));
    }
    let granted = after.grant().is_some();
    let grant = match (scene.clone().grant().is_some(), granted) {
        (false, true) => "a unit",
        (true, false) => "none any more",
        _ => "",
    };
    let changed = |before: String, after: String| {
        if before == after {
            String::new()
        } else {
            format!("{before} → {after}")
        }
    };
    Answer {
        reaction,
        refused,
        effects: [
            changed(scene.phase(), phase),
            changed(scene.lane(), lane),
            ended.join(", "),
            alarms.join(", "),
            grant.to_owned(),
            changed(scene.backstop().to_owned(), backstop.to_owned()),
        ],
    }
}

fn describe(reaction: Reaction) -> String {
    match reaction {
        Reaction::Accepted(Accepted::Queued(_)) => "accepted: queued".to_owned(),
        Reaction::Accepted(Accepted::Held(_, reason)) => {
            format!("accepted: held, {}", reason.label())
        }
        Reaction::Accepted(Accepted::Dead(_)) => "accepted: ended at once".to_owned(),
        Reaction::Finished => "finished".to_owned(),
        Reaction::Late => "late".to_owned(),
        Reaction::Noted => "noted".to_owned(),
    }
}

/// The names of an error and of what it is about.
fn name(error: &InputError) -> String {
    let debug = |error: &dyn std::fmt::Debug| first_word(&format!("{error:?}"));
    match error {
        InputError::Enqueue(inner) => format!("EnqueueError::{}", debug(inner)),
        InputError::SeatDone(inner) => format!("SeatDoneError::{}", debug(inner)),
        InputError::Epoch(inner) => format!("EpochError::{}", debug(inner)),
        InputError::SeatDied(inner) => format!("SeatDiedError::{}", debug(inner)),
        InputError::Resize(inner) => format!("ResizeError::{}", debug(inner)),
        InputError::Close(inner) => format!("CloseError::{}", debug(inner)),
    }
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric()).collect()
}
