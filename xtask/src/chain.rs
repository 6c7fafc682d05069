//! `chain`: a real Ethereum node with the real pools of `data/`, moved block by block.
//!
//! The lab is a crate of its own (`tests/chain-lab`), so that this tool does not have to build what it needs. This
//! verb runs it and passes the flags on; it runs until it is interrupted.

use std::io::Write;

use crate::cargo::{cargo, run as run_command};
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "chain",
    doc: "starts a real node with real pools, moves them and says where it listens, until interrupted",
    flags: FLAGS,
    run,
};

const FLAGS: &[Flag] = &[
    flag("--pools", "FILE", "pool file (data/uniswap_v2_pairs.csv)"),
    flag("--count", "N", "so many pools of it (300)"),
    flag("--block-time", "MS", "milliseconds between blocks (1000)"),
    flag("--blocks", "N", "end after so many steps"),
    flag("--seed", "S", "the moves follow from it (1)"),
    flag("--moves", "N", "pools moved in a block (5)"),
    flag("--reorg-every", "K", "replace blocks in every K-th step"),
    flag("--reorg-depth", "D", "so many of them (2)"),
    flag(
        "--restart-every",
        "K",
        "restart the node in every K-th step",
    ),
    flag("--port", "P", "port of the node (a free one)"),
    flag("--chain-id", "ID", "what the node says it is (1)"),
];

const fn flag(name: &'static str, value: &'static str, doc: &'static str) -> Flag {
    let value = Some(value);
    Flag { name, value, doc }
}

fn run(args: &Args, _: &mut dyn Write) -> Result<(), Error> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--locked"]);
    command.args(["--package", "regatta-chain-lab", "--", "up"]);
    for Flag { name, .. } in FLAGS {
        let given = args.value(name).map(|value| [*name, value]);
        command.args(given.into_iter().flatten());
    }
    run_command(&mut command)
}
