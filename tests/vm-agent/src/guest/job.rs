//! A command that runs in a group, and what it says.
//!
//! # Invariants
//! - A job is killed and waited for when it is dropped.
//! - What a job writes goes to files, so that it never waits for a reader.

use super::enter::{SAME, Sight};
use super::failure::{Failure, tail};
use super::group::Group;
use super::{AGENT, REGATTA, until};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Lines of what a job says that are shown with a failure.
const LINES: usize = 4;

/// The user that may do nothing.
pub(crate) const NOBODY: u32 = 65_534;

/// Where and as whom a command runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place<'a> {
    group: Option<&'a Group>,
    user: Option<u32>,
    sight: Sight,
}

impl<'a> Place<'a> {
    /// In `group`, as root.
    pub(crate) fn group(group: &'a Group) -> Self {
        Self {
            group: Some(group),
            ..Self::default()
        }
    }

    /// The same as another user.
    pub(crate) fn user(self, user: u32) -> Self {
        Self {
            user: Some(user),
            ..self
        }
    }

    /// The same in namespaces of its own.
    pub(crate) fn sight(self, sight: Sight) -> Self {
        Self { sight, ..self }
    }

    /// Starts `regatta` here.
    pub(crate) fn regatta(self, arguments: &[&str]) -> Result<Job, Failure> {
        self.start(REGATTA, arguments)
    }

    /// Starts this file here.
    pub(crate) fn agent(self, arguments: &[&str]) -> Result<Job, Failure> {
        self.start(AGENT, arguments)
    }

    fn start(self, program: &str, arguments: &[&str]) -> Result<Job, Failure> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = |end: &str| std::env::temp_dir().join(format!("job-{number}.{end}"));
        let create = |path: &PathBuf| File::create(path).map_err(Failure::io("create", path));
        let (out, err) = (path("out"), path("err"));
        let mut command = Command::new(AGENT);
        command.arg("enter");
        match self.group {
            Some(group) => command.arg(group.file("cgroup.procs")),
            None => command.arg(SAME),
        };
        command.arg(self.user.map_or(SAME.to_owned(), |user| user.to_string()));
        command.arg(self.sight.name()).arg(program).args(arguments);
        command.env_clear();
        command.stdin(Stdio::piped());
        command.stdout(create(&out)?).stderr(create(&err)?);
        let child = command.spawn().map_err(Failure::io("start", AGENT))?;
        let what = format!("{program} {}", arguments.join(" "));
        Ok(Job {
            child,
            out,
            err,
            what,
        })
    }
}

/// A command that runs, or has run.
#[derive(Debug)]
pub(crate) struct Job {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    what: String,
}

impl Job {
    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to stdout so far.
    pub(crate) fn out(&self) -> Result<String, Failure> {
        fs::read_to_string(&self.out).map_err(Failure::io("read", &self.out))
    }

    /// What it wrote to stderr so far.
    pub(crate) fn err(&self) -> Result<String, Failure> {
        fs::read_to_string(&self.err).map_err(Failure::io("read", &self.err))
    }

    /// The records that it wrote so far.
    pub(crate) fn records(&self) -> Result<Vec<Value>, Failure> {
        let out = self.out()?;
        let whole = out.rfind('\n').map_or("", |end| &out[..end]);
        let read = |line: &str| {
            serde_json::from_str(line)
                .map_err(|error| Failure::Other(format!("{}: {error}: {line}", self.what)))
        };
        whole.lines().map(read).collect()
    }

    /// Writes a line to its stdin.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), Failure> {
        let stdin = self.child.stdin.as_mut();
        let stdin = stdin.ok_or_else(|| Failure::Other(format!("{}: no stdin", self.what)))?;
        writeln!(stdin, "{line}").map_err(Failure::io("write to", &self.what))
    }

    /// Waits, while it runs, until `look` finds something in what it says.
    pub(crate) fn wait_for<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&Self) -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let (out, err) = (self.out.clone(), self.err.clone());
        let seen = move || {
            let read = |path| fs::read_to_string(path).unwrap_or_default();
            format!("{} / {}", tail(&read(out), 1), tail(&read(err), LINES))
        };
        let what = format!("{what} of `{}`", self.what);
        until(
            &what,
            || {
                // Asked before it is looked at, so that its last words count.
                let ended = self.ended()?;
                match (look(self)?, ended) {
                    (None, Some(code)) => Err(self.ended_with(&code, "not yet")),
                    (found, _) => Ok(found),
                }
            },
            seen,
        )
    }

    /// Waits until stderr has `text`.
    pub(crate) fn wait_for_word(&mut self, text: &str) -> Result<(), Failure> {
        self.wait_for(&format!("the word {text:?}"), |job| {
            Ok(job.err()?.contains(text).then_some(()))
        })
    }

    /// Waits until there are `count` records of `kind`, and gives the last.
    pub(crate) fn wait_for_record(&mut self, kind: &str, count: usize) -> Result<Value, Failure> {
        self.wait_for(&format!("record {count} of kind {kind}"), |job| {
            let of_kind = |record: &Value| record["type"] == kind;
            let mut found = job.records()?.into_iter().filter(of_kind);
            Ok(found.nth(count - 1))
        })
    }

    /// Waits for one more block than there are.
    pub(crate) fn wait_for_next_block(&mut self) -> Result<Value, Failure> {
        let is_block = |record: &&Value| record["type"] == "block";
        let so_far = self.records()?.iter().filter(is_block).count();
        self.wait_for_record("block", so_far + 1)
    }

    /// Waits for its end, which must be with `code` and without a panic.
    pub(crate) fn exits(&mut self, code: i32) -> Result<(), Failure> {
        let what = format!("the end of `{}`", self.what);
        let err = self.err.clone();
        let seen = || tail(&fs::read_to_string(err).unwrap_or_default(), LINES);
        let status = until(&what, || self.ended(), seen)?;
        if status != code.to_string() || self.err()?.contains("panicked") {
            return Err(self.ended_with(&status, &code.to_string()));
        }
        Ok(())
    }

    /// How it ended, if it has.
    fn ended(&mut self) -> Result<Option<String>, Failure> {
        let status = self.child.try_wait();
        let status = status.map_err(Failure::io("wait for", &self.what))?;
        Ok(status.map(|status| {
            status
                .code()
                .map_or(status.to_string(), |code| code.to_string())
        }))
    }

    fn ended_with(&self, found: &str, wanted: &str) -> Failure {
        let said = format!(
            "{}{}",
            self.out().unwrap_or_default(),
            self.err().unwrap_or_default()
        );
        Failure::Ended {
            what: self.what.clone(),
            found: found.to_owned(),
            wanted: wanted.to_owned(),
            tail: tail(&said, LINES),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.out);
        let _ = fs::remove_file(&self.err);
    }
}
