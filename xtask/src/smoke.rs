//! `smoke`: the released binary runs on the pools in `data/`.
//!
//! The tests know the bot as a library, built for tests. This starts the very file that a release
//! contains, once, with the flags of the README's example.

use std::io::Write;
use std::process::Command;

use crate::build::Layout;
use crate::cargo::output;
use crate::verb::{Args, Error, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "smoke",
    doc: "runs the binary that `build` made for three blocks over the pools in data/",
    flags: &[],
    run,
};

#[rustfmt::skip]
const ARGS: &[&str] = &[
    "run",
    "--pools", "data/uniswap_v2_pairs.csv",
    "--pools", "data/sushiswap_v2_pairs.csv",
    "--blocks", "3",
    "--block-time", "0",
];

fn run(_: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let binary = Layout::load()?.binary();
    if !binary.exists() {
        let path = binary.display();
        return Err(Error::Failed(format!(
            "smoke: {path} is not there: `cargo xtask build` makes it"
        )));
    }
    let text = output(Command::new(&binary).args(ARGS))?;
    out.write_all(text.as_bytes())?;
    if text.trim().is_empty() {
        return Err(Error::Failed(
            "smoke: the run exited 0 but printed nothing on stdout".to_owned(),
        ));
    }
    Ok(())
}
