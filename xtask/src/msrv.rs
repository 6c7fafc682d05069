//! `msrv`: the stated Rust version is the one that is running.
//!
//! A minimum version that no machine tests is a guess. Here the check runs on exactly the minor version
//! that `rust-version` states, so the statement holds by what was compiled.

use std::io::Write;

use crate::cargo::{Metadata, Rustc};
use crate::verb::{Args, Error, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "msrv",
    doc: "the rust-version of every crate is the minor version of the rustc that runs",
    flags: &[],
    run,
};

fn run(_: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let running = Rustc::load()?.release;
    let metadata = Metadata::load()?;
    for package in metadata.members() {
        let stated = package.rust_version.as_deref().unwrap_or("none");
        writeln!(out, "{}: states {stated}, running {running}", package.name)?;
        if !agree(stated, &running) {
            return Err(Error::Failed(format!(
                "{} states rust-version {stated}, but rustc {running} is running: \
                 state the version that is tested, or test with the one that is stated",
                package.name
            )));
        }
    }
    Ok(())
}

/// Whether both versions have the same major and minor number.
fn agree(stated: &str, running: &str) -> bool {
    let minor = |version: &str| -> Option<(u32, u32)> {
        let mut parts = version.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    minor(stated).is_some() && minor(stated) == minor(running)
}

#[cfg(test)]
mod tests {
    use super::agree;

    #[test]
    fn the_minor_version_counts_and_nothing_after_it() {
        for (stated, running, expected) in [
            ("1.95", "1.95.0", true),
            ("1.95.0", "1.95.2", true),
            ("1.95", "1.95.0-nightly", true),
            ("1.94", "1.95.0", false),
            ("1.9", "1.95.0", false),
            ("2.95", "1.95.0", false),
            ("none", "none", false),
        ] {
            assert_eq!(agree(stated, running), expected, "{stated} and {running}");
        }
    }
}
