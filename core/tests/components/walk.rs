//! Random walks over graphs of twelve, where time passes by any span and drivers come back late.

use crate::shape::Shape;
use crate::world::{Step, World};
use proptest::prelude::*;

const N: usize = 12;

/// Arrows lead to earlier components only, control to control, and then the numbers are shuffled.
fn shape() -> impl Strategy<Value = Shape<N>> {
    let arrows = prop::array::uniform12(any::<u16>());
    let names = Just((0..N).collect::<Vec<_>>()).prop_shuffle();
    (
        arrows,
        prop::array::uniform12(any::<u16>()),
        any::<u16>(),
        names,
    )
        .prop_map(|(arrows, sparse, control, names)| {
            let mut depends = [0_u16; N];
            for (i, name) in names.iter().enumerate() {
                for (d, dependency) in names.iter().enumerate().take(i) {
                    let arrow = arrows[i] & sparse[i] & (1 << d) != 0;
                    let crosses = control & (1 << name) != 0 && control & (1 << dependency) == 0;
                    if arrow && !crosses {
                        depends[*name] |= 1 << dependency;
                    }
                }
            }
            let control = control & ((1 << N) - 1);
            Shape { depends, control }
        })
}

/// Mostly answers, most of them good, so that a walk gets somewhere; `late` lets time pass beyond deadlines.
fn pick(world: &World<N>, bits: u32, late: bool) -> Step {
    let steps = world.steps();
    let answers: Vec<Step> = steps
        .iter()
        .copied()
        .filter(|step| matches!(step, Step::Answer { ok: true, .. }))
        .collect();
    let at = bits as usize / 64;
    match bits % 64 {
        0 if late => Step::Wait(Some(u64::from(bits / 64 % 150))),
        0..3 => steps[at % steps.len()],
        _ if answers.is_empty() => steps[at % steps.len()],
        _ => answers[at % answers.len()],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn every_step_of_a_large_runtime_is_what_plain_rules_say(
        shape in shape(),
        late: bool,
        errors in 0_u8..6,
        words in prop::collection::vec(any::<u32>(), 1..200),
    ) {
        let mut world = World::new(shape, 2, errors);
        for word in words {
            if world.is_over() {
                break;
            }
            let step = pick(&world, word, late);
            world.step(step);
        }
        // Whatever happened, time alone ends it.
        if !world.is_over() && !world.oracle.stopping() {
            world.step(Step::Stop);
        }
        for _ in 0..4 * N {
            if !world.is_over() {
                world.step(Step::Wait(None));
            }
        }
        prop_assert!(world.is_over());
    }
}
