//! `chain`: a real Ethereum node with the real pools of `data/`, moved block by block.
//!
//! The lab is a crate of its own (`tests/chain-lab`), so that this tool does not have to build what it needs. This
//! verb runs it and passes the flags on; it runs until it is interrupted. With `--run` the bot is built as for a
//! release, and the lab starts it on the node.

use std::io::Write;

use crate::build::build_binary;
use crate::cargo::{cargo, run as run_command};
use crate::verb::{Args, Error, Flag, REST, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "chain",
    doc: "starts a real node with real pools, moves them and says where it listens, until interrupted",
    flags: FLAGS,
    run,
};

const FLAGS: &[Flag] = &[
    flag("--pools", "FILE", "pool file (data/uniswap_v2_pairs.csv)"),
    flag(
        "--second",
        "FILE",
        "pool file of a second exchange, added whole",
    ),
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
    Flag {
        name: RUN,
        value: None,
        doc: "build the bot and run it on the node",
    },
    flag(
        "--settle",
        "MODE",
        "have the bot create its executor and settle: live or shadow",
    ),
    flag(REST, "ARG..", "what comes after goes to the bot"),
];

const RUN: &str = "--run";

const fn flag(name: &'static str, value: &'static str, doc: &'static str) -> Flag {
    let value = Some(value);
    Flag { name, value, doc }
}

fn run(args: &Args, _: &mut dyn Write) -> Result<(), Error> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--locked"]);
    command.args(["--package", "regatta-chain-lab", "--", "up"]);
    for Flag { name, value, .. } in FLAGS {
        if value.is_some() && *name != REST {
            let given = args.value(name).map(|value| [*name, value]);
            command.args(given.into_iter().flatten());
        }
    }
    if args.has(RUN) {
        command.arg("--bot").arg(build_binary()?);
        command.arg(REST).args(args.rest());
    } else if !args.rest().is_empty() {
        let rest = args.rest().join(" ");
        return Err(Error::Usage(format!(
            "chain: `{rest}` is for the bot, which runs only with `{RUN}`"
        )));
    }
    run_command(&mut command)
}
