//! Running cargo and other commands, and reading what they say about the workspace.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::verb::Error;

/// The cargo that runs this tool, or the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs the command with this process's own stdout and stderr.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let status = command.status();
    judge(command, status)
}

/// Runs the command and returns what it wrote to stdout.
pub(crate) fn output(command: &mut Command) -> Result<String, Error> {
    let child = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    match child {
        Ok(done) => {
            judge(command, Ok(done.status))?;
            Ok(String::from_utf8_lossy(&done.stdout).into_owned())
        }
        Err(source) => Err(not_started(command, &source)),
    }
}

/// Runs the command, passes its stderr on line by line, and returns the last line that has `wanted` in it.
pub(crate) fn run_and_keep(command: &mut Command, wanted: &str) -> Result<Option<String>, Error> {
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|source| not_started(command, &source))?;
    let mut kept = None;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line?;
            let mut here = std::io::stderr();
            here.write_all(&line)?;
            here.write_all(b"\n")?;
            let line = String::from_utf8_lossy(&line);
            if line.contains(wanted) {
                kept = Some(line.trim().to_owned());
            }
        }
    }
    let status = child.wait();
    judge(command, status)?;
    Ok(kept)
}

fn judge(
    command: &Command,
    status: Result<std::process::ExitStatus, std::io::Error>,
) -> Result<(), Error> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Command {
            command: shown(command),
            what: status.to_string(),
        }),
        Err(source) => Err(not_started(command, &source)),
    }
}

/// The error for a command that is not there or may not be run.
pub(crate) fn not_started(command: &Command, source: &std::io::Error) -> Error {
    Error::Command {
        command: shown(command),
        what: format!("could not be started: {source}"),
    }
}

/// Runs a build of cargo's that prints its messages as JSON, and returns where the binary is.
pub(crate) fn built_executable(command: &mut Command) -> Result<PathBuf, Error> {
    let mut built = None;
    for line in output(command)?.lines() {
        let message: Message = serde_json::from_str(line).map_err(|source| Error::Json {
            command: shown(command),
            source,
        })?;
        built = built.or(message.executable);
    }
    built.ok_or_else(|| Error::Failed(format!("`{}` named no executable", shown(command))))
}

/// A line that cargo prints while it builds.
#[derive(Deserialize)]
struct Message {
    /// Set on the line for a finished binary.
    executable: Option<PathBuf>,
}

/// What `cargo metadata` says, as far as this tool asks.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    /// Every package of the lock file that some platform and feature set would use.
    pub(crate) packages: Vec<Package>,
    /// The ids of the packages that are ours.
    pub(crate) workspace_members: Vec<String>,
    /// Where cargo builds, absolute.
    pub(crate) target_directory: String,
}

/// One resolved package.
#[derive(Deserialize)]
pub(crate) struct Package {
    /// As in its manifest.
    pub(crate) name: String,
    /// Semantic version.
    pub(crate) version: String,
    /// Unique in one `cargo metadata` answer.
    pub(crate) id: String,
    /// SPDX expression, or the older form with slashes.
    pub(crate) license: Option<String>,
    /// The stated minimum supported Rust version.
    pub(crate) rust_version: Option<String>,
    /// Libraries, binaries, tests and so on.
    pub(crate) targets: Vec<Target>,
}

/// One thing that a package builds.
#[derive(Deserialize)]
pub(crate) struct Target {
    /// `lib`, `bin`, `proc-macro` and so on.
    pub(crate) kind: Vec<String>,
    /// Its root source file, absolute.
    pub(crate) src_path: String,
}

impl Metadata {
    /// Asks cargo, with every feature of the workspace on and for every platform.
    pub(crate) fn load() -> Result<Self, Error> {
        let mut command = cargo();
        command.args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--all-features",
        ]);
        let text = output(&mut command)?;
        serde_json::from_str(&text).map_err(|source| Error::Json {
            command: shown(&command),
            source,
        })
    }

    /// The packages of this workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The package of this workspace called `name`.
    pub(crate) fn member(&self, name: &str) -> Result<&Package, Error> {
        self.members()
            .find(|package| package.name == name)
            .ok_or_else(|| Error::Failed(format!("the workspace has no member called `{name}`")))
    }
}

/// What `rustc -vV` says.
pub(crate) struct Rustc {
    /// Its first line: version, commit and date.
    pub(crate) line: String,
    /// `1.95.0`
    pub(crate) release: String,
    /// The triple that it runs on and builds for by default.
    pub(crate) host: String,
}

impl Rustc {
    /// Asks the rustc that cargo uses.
    pub(crate) fn load() -> Result<Self, Error> {
        let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(program);
        let text = output(command.arg("-vV"))?;
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.map(|value| value.trim().to_owned()).ok_or_else(|| {
                Error::Failed(format!("`rustc -vV` has no line that starts with `{name}`"))
            })
        };
        Ok(Self {
            line: text.lines().next().unwrap_or_default().to_owned(),
            release: field("release:")?,
            host: field("host:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_lines_are_read_with_and_without_an_executable() {
        let read = |line: &str| serde_json::from_str::<Message>(line).unwrap().executable;
        assert_eq!(
            read(r#"{"reason":"compiler-artifact","executable":"a/b"}"#),
            Some("a/b".into())
        );
        assert_eq!(
            read(r#"{"reason":"compiler-artifact","executable":null}"#),
            None
        );
        assert_eq!(read(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
