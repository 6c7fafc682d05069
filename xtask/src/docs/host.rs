//! What the host does with each input in each state: the shipped host is asked.

mod ask;
mod scene;

use regatta_core::lane::HoldReason;

use super::meaning::meanings;
use super::table;

const HOST: &str = include_str!("../../../core/src/host.rs");
const LANE: &str = include_str!("../../../core/src/lane.rs");

/// The columns of a table of reactions.
const HEAD: [&str; 8] = [
    "input",
    "reaction",
    "seat",
    "lane",
    "ended",
    "alarm",
    "next grant",
    "backstop",
];

pub(super) fn page() -> String {
    [inputs(), reactions(), holds()].concat()
}

fn inputs() -> String {
    let rows = |header| {
        let rows = meanings(HOST, header).into_iter();
        rows.map(|(name, meaning)| vec![format!("`{name}`"), meaning])
    };
    format!(
        "## The input alphabet\n\nThe host is a function of its state, one of these inputs, the time and the guard; \
         the guard is read anew at each call and never kept.\n\n{}Closing has two steps:\n\n{}",
        table(&["input", "meaning"], rows("enum Input {")),
        table(&["step", "meaning"], rows("enum ClosePhase {"))
    )
}

fn holds() -> String {
    let meanings = meanings(LANE, "enum HoldReason {");
    let row = |reason: HoldReason| {
        let variant = format!("{reason:?}");
        let meaning = meanings.iter().find(|(name, _)| *name == variant);
        let ends = if reason.is_guard() {
            "the guard changes"
        } else {
            "an input that is bound to come"
        };
        vec![
            format!("`{}`", reason.label()),
            meaning
                .map(|(_, meaning)| meaning.clone())
                .unwrap_or_default(),
            ends.to_owned(),
        ]
    };
    format!(
        "## Why a unit waits\n\n{}",
        table(
            &["reason", "meaning", "it ends when"],
            HoldReason::ALL.map(row)
        )
    )
}

fn reactions() -> String {
    let mut text = vec![String::from(
        "## Reactions\n\nIn each state below the host was given each input and asked what became of it: the seat, \
         the lane, the units that ended, the units that a binding's next grant starts, and whether the host wants to be \
         woken (the backstop). Empty is unchanged; a change of several steps shows its two ends.\n\n",
    )];
    for scene in scene::all() {
        text.push(format!("### {}\n\n{}\n\n", scene.title, scene.describe()));
        let (mut rows, mut quiet, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for question in ask::questions() {
            let answer = ask::ask(&scene, &question);
            if let Some(error) = answer.refused {
                refused.push(format!("{} (`{error}`)", question.label));
            } else if answer.effects.iter().all(String::is_empty) && answer.reaction == "noted" {
                quiet.push(question.label.to_owned());
            } else {
                let mut row = vec![question.label.to_owned(), answer.reaction];
                row.extend(answer.effects);
                rows.push(row);
            }
        }
        if !rows.is_empty() {
            text.push(table(&HEAD, rows));
        }
        for (what, list) in [
            ("Taken, changing nothing", quiet),
            ("Refused, changing nothing", refused),
        ] {
            if !list.is_empty() {
                text.push(format!("{what}: {}.\n\n", list.join(", ")));
            }
        }
    }
    text.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_of_the_alphabet_is_asked_about() {
        let asked: Vec<&str> = ask::questions()
            .iter()
            .map(|question| question.label)
            .collect();
        for (name, _) in meanings(HOST, "enum Input {") {
            assert!(asked.iter().any(|label| label.starts_with(&name)), "{name}");
        }
    }

    #[test]
    fn every_reason_to_wait_has_a_meaning() {
        let found = meanings(LANE, "enum HoldReason {");
        assert_eq!(found.len(), HoldReason::ALL.len());
        assert!(found.iter().all(|(_, meaning)| !meaning.is_empty()));
    }
}
