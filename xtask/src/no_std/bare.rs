//! The core for a bare target, by a compiler whose sources are at hand.
//!
//! The installed toolchain has neither a compiled `core` for such a target nor the sources to compile
//! one. Debian's archive has both, of one version: its packages are downloaded and unpacked under the target
//! folder, nothing is installed, and `-Zbuild-std` compiles `core` from them. Which version that is
//! today is the archive's answer.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::apt;
use crate::cargo::{Metadata, cargo, output, run};
use crate::core_alone::{CORE, FEATURES};
use crate::verb::Error;

/// Why this machine cannot do it, if it cannot.
pub(super) fn impossible() -> Option<String> {
    apt::missing().then(|| {
            "no-std: this machine has no apt-get, and the compiler for another target comes from Debian's \
             archive: run this on Debian 12 or later"
            .to_owned()
    })
}

/// The compiler, and the sources of its libraries.
const PACKAGES: &[&str] = &["rustc-web", "rust-web-src"];

/// Builds the core for `target` with each feature set that ships. Where the check is `optional`, an
/// archive that cannot be reached is no fault of the core.
pub(super) fn build(target: &str, optional: bool, out: &mut dyn Write) -> Result<(), Error> {
    let folder = Path::new(&Metadata::load()?.target_directory).join("bare");
    let compiler = match Compiler::fetch(&folder, out) {
        Err(error) if optional => {
            writeln!(
                out,
                "no-std: the compiler for {target} could not be had: {error}: skipped"
            )?;
            return Ok(());
        }
        fetched => fetched?,
    };
    for features in FEATURES {
        let begun = Instant::now();
        run(&mut compiler.build(target, features, &folder))?;
        writeln!(
            out,
            "{CORE} for {target}, features `{features}`: built by {} in {:.0} s",
            compiler.version,
            begun.elapsed().as_secs_f64()
        )?;
    }
    Ok(())
}

/// An unpacked compiler.
struct Compiler {
    /// As it states it.
    version: String,
    /// Its `/usr`.
    usr: PathBuf,
}

impl Compiler {
    /// The compiler that was unpacked before, else the one that the archive offers today.
    fn fetch(folder: &Path, out: &mut dyn Write) -> Result<Self, Error> {
        let root = apt::unpacked(folder, "compiler", PACKAGES, out)?;
        let mut compiler = Self {
            version: String::new(),
            usr: root.join("usr"),
        };
        let mut rustc = Command::new(compiler.rustc());
        rustc.env("LD_LIBRARY_PATH", compiler.libraries());
        let version = output(rustc.arg("--version"))?;
        version.trim().clone_into(&mut compiler.version);
        Ok(compiler)
    }

    fn rustc(&self) -> PathBuf {
        self.usr.join("bin/rustc")
    }

    /// Where the packages put their shared libraries.
    fn libraries(&self) -> PathBuf {
        let folder = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
        self.usr.join(folder)
    }

    fn build(&self, target: &str, features: &str, folder: &Path) -> Command {
        let mut command = cargo();
        command.args(["build", "--locked", "--package", CORE]);
        command.args(["--no-default-features", "--features", features]);
        command.args(["-Zbuild-std=core", "--target", target]);
        // What is asked is whether it compiles: no time for making it fast.
        command.args(["--config", "profile.dev.opt-level=0"]);
        command.args(["--config", "profile.dev.debug=false"]);
        command.arg("--target-dir").arg(folder.join("target"));
        command.env("RUSTC", self.rustc());
        command.env("LD_LIBRARY_PATH", self.libraries());
        // The compiler is a release one, and building `core` is no stable feature of it.
        command.env("RUSTC_BOOTSTRAP", "1");
        command
    }
}
