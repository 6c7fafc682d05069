//! Breadth first, level by level, so that the first violation has a shortest trace.
//!
//! A level is expanded in blocks, each block by two threads that share what is visited and change
//! nothing; their finds are then entered in the order of the block. So the walk, its numbers and its
//! traces are the same on every machine.

use crate::action::{Action, Alphabet, actions};
use crate::fingerprint::{Plain, Print, Printer};
use crate::rule::{Coverage, Rule, Violation};
use crate::state::State;
use crate::step::Scene;
use regatta_core::time::Duration;
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// States that are expanded before their finds are entered.
const BLOCK: usize = 1 << 13;

type Visited = HashSet<Print, BuildHasherDefault<Plain>>;

/// What a walk found.
#[derive(Debug)]
pub struct Walk {
    /// Distinct states.
    pub states: usize,
    /// Steps taken.
    pub steps: u64,
    /// Levels, which is the length of the longest shortest trace.
    pub depth: usize,
    /// The rows of the transition tables that were walked.
    pub covered: Coverage,
    /// The first violation, and how it comes about.
    pub violation: Option<(Violation, Vec<Action>)>,
}

/// A state that was reached, by its parent and the last step.
#[derive(Clone, Copy)]
struct Reached {
    parent: u32,
    action: Action,
}

/// A state to expand, with its number.
type Open = (u32, State);

/// A successor that was not visited when it was found.
struct Find {
    print: Print,
    reached: Reached,
    state: State,
}

/// What one thread has to say about its part of a block.
#[derive(Default)]
struct Part {
    finds: Vec<Find>,
    steps: u64,
    covered: Coverage,
    violation: Option<(Violation, u32, Action)>,
}

/// The number of the initial state, which has no parent.
const ROOT: u32 = 0;

/// Walks every state that `alphabet` leads to, up to the first violation.
pub fn walk(scene: Scene<'_>, alphabet: Alphabet) -> Result<Walk, Violation> {
    let mut initial = State::initial(scene.world)?;
    initial.normalise(Duration::ZERO, scene.gone, &mut []);
    scene.check(&initial)?;
    let mut visited = Visited::default();
    visited.insert(Printer::default().print(&initial));
    let mut reached = vec![Reached {
        parent: ROOT,
        action: Action::Poll,
    }];
    let mut level: Vec<Open> = vec![(ROOT, initial)];
    let mut walk = Walk {
        states: 0,
        steps: 0,
        depth: 0,
        covered: Coverage::default(),
        violation: None,
    };
    while !level.is_empty() && walk.violation.is_none() {
        let mut next = Vec::new();
        for block in level.chunks(BLOCK) {
            for part in parts(scene, alphabet, block, &visited) {
                walk.steps += part.steps;
                walk.covered.merge(part.covered);
                if let (None, Some((violation, parent, action))) = (&walk.violation, part.violation)
                {
                    let mut trace = trace(&reached, parent);
                    trace.push(action);
                    walk.violation = Some((violation, trace));
                }
                for find in part.finds {
                    if visited.insert(find.print) {
                        let number = u32::try_from(reached.len()).unwrap_or(u32::MAX);
                        reached.push(find.reached);
                        next.push((number, find.state));
                    }
                }
            }
            if walk.violation.is_some() {
                break;
            }
        }
        walk.depth += usize::from(!next.is_empty());
        level = next;
    }
    walk.states = reached.len();
    Ok(walk)
}

fn trace(reached: &[Reached], mut number: u32) -> Vec<Action> {
    let mut trace = Vec::new();
    while number != ROOT
        && let Some(step) = reached.get(number as usize)
    {
        trace.push(step.action);
        number = step.parent;
    }
    trace.reverse();
    trace
}

#[expect(
    clippy::disallowed_methods,
    reason = "the census is part of what is explored; these two threads end before the function does"
)]
fn parts(scene: Scene<'_>, alphabet: Alphabet, block: &[Open], visited: &Visited) -> [Part; 2] {
    let (front, back) = block.split_at(block.len().div_ceil(2));
    if back.len() < 64 {
        return [front, back].map(|open| expand(scene, alphabet, open, visited));
    }
    std::thread::scope(|scope| {
        let back = scope.spawn(|| expand(scene, alphabet, back, visited));
        let front = expand(scene, alphabet, front, visited);
        let back = back.join().unwrap_or_else(|_| Part {
            // What a step panics with is caught where it is taken.
            violation: Some((
                Violation::new(Rule::Panics, "the explorer"),
                ROOT,
                Action::Poll,
            )),
            ..Part::default()
        });
        [front, back]
    })
}

fn expand(scene: Scene<'_>, alphabet: Alphabet, open: &[Open], visited: &Visited) -> Part {
    let mut part = Part::default();
    let mut printer = Printer::default();
    for (parent, state) in open {
        let parent = *parent;
        for action in actions(state, scene.world, scene.size, alphabet) {
            part.steps += 1;
            let covered = &mut part.covered;
            let printer = &mut printer;
            let step = AssertUnwindSafe(|| {
                let stepped = scene.step(state, action, covered)?;
                let mut state = stepped.state;
                state.normalise(stepped.elapsed, scene.gone, &mut []);
                let print = printer.print(&state);
                if visited.contains(&print) {
                    return Ok(None);
                }
                scene.check(&state)?;
                if alphabet != Alphabet::Whole {
                    scene.alive(&state, alphabet.ticks(&state, scene.world))?;
                }
                let reached = Reached { parent, action };
                Ok(Some(Find {
                    print,
                    reached,
                    state,
                }))
            });
            let found = catch_unwind(step)
                .unwrap_or_else(|_| Err(Violation::new(Rule::Panics, format!("{action:?}"))));
            match found {
                Ok(find) => part.finds.extend(find),
                Err(violation) => {
                    part.violation = Some((violation, parent, action));
                    return part;
                }
            }
        }
    }
    part
}
