//! Each block once, whatever happens to the connection and to the chain.

use crate::made_up::step;
use crate::rig::{Rig, hash};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Act {
    Blocks(u8),
    Reorg(u8, u8),
    Drop,
    DropAmid(u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (1..4u8).prop_map(Act::Blocks),
        // One block less at most: never below the block that was read.
        2 => (1..5u8, 0..4u8).prop_map(|(depth, more)| Act::Reorg(depth, depth - 1 + more)),
        2 => Just(Act::Drop),
        2 => (1..5u8).prop_map(Act::DropAmid),
    ];
    proptest::collection::vec(act, 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Over any number of lost connections and short branches: what was said and not taken back is the chain, from the
    /// block at which the market was read, each block once and in order; and the market is the chain's.
    #[test]
    fn what_is_said_and_not_taken_back_is_the_chain(acts in acts()) {
        let mut rig = Rig::start();
        for number in 0..24 {
            rig.step(number);
        }
        let mut number = 100;
        let mut next = || {
            number += 1;
            step(number)
        };
        for act in acts {
            match act {
                Act::Blocks(count) => {
                    for _ in 0..count {
                        rig.node.extend(next());
                    }
                }
                Act::Reorg(depth, new) => {
                    rig.node.reorg(depth.into(), (0..new.max(1)).map(|_| next()).collect());
                }
                Act::Drop => {
                    rig.node.drop_connections();
                    rig.lose();
                }
                Act::DropAmid(count) => {
                    rig.node.extend(next());
                    rig.node.drop_connections();
                    for _ in 0..count {
                        rig.node.extend(next());
                    }
                    rig.lose();
                }
            }
        }
        rig.step(99);
        prop_assert_eq!(rig.model.rereads, 1);
        let first = rig.model.blocks[0].0;
        let canonical = rig.node.chain(|chain| chain.canonical().to_vec());
        let expected: Vec<_> = canonical
            .into_iter()
            .map(hash)
            .skip_while(|at| *at != first)
            .collect();
        let said: Vec<_> = rig.model.blocks.iter().map(|(at, _)| *at).collect();
        prop_assert_eq!(said, expected);
    }
}
