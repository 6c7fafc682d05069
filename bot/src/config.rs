//! The configuration file: overrides of the plan, the posture policy and the log level.
//!
//! ```toml
//! log = "info"
//!
//! [plan]
//! quota = 4000
//! solver_pins = 6
//!
//! [posture]
//! cordon_enter_events = 3
//! ```
//!
//! The environment wins over it, and the command line over both. On SIGHUP it is read again: `log` and
//! `[posture]` change the running process, whole or not at all; a change anywhere else is refused by name.
//!
//! # Invariants
//! - A file is taken whole or not at all, and an unknown key is an error that names it.

use crate::cli::LogArg;
use clap::ValueEnum;
use regatta_core::budget::{Origin, OverrideError, Overrides};
use regatta_core::posture::{PolicyError, PosturePolicyPatch};
use regatta_core::role::FLEET_ROLES;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::{Table, Value};

/// Why a file was not taken.
#[derive(Debug, Error)]
pub enum ConfigFileError {
    /// It could not be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no TOML.
    #[error("{}: {error}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// A key that there is not.
    #[error("{}: there is no key {key:?}: it takes `log` and the tables `plan` and `posture`", path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// A value of the wrong kind.
    #[error("{}: {key} = {value}: it takes {takes}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What would be right.
        takes: &'static str,
    },
    /// An override of the plan is wrong.
    #[error("{}: {error}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// Why.
        error: OverrideError,
    },
    /// A key of the posture policy is wrong.
    #[error("{}: {error}", path.display())]
    Posture {
        /// The file.
        path: PathBuf,
        /// Why.
        error: PolicyError,
    },
}

/// A file that was read.
#[derive(Clone, Debug, Default)]
pub struct ConfigFile {
    /// The log level.
    pub log: Option<LogArg>,
    /// The overrides of the plan, as text by key.
    plan: BTreeMap<String, String>,
    /// The posture policy's keys, as text.
    posture: BTreeMap<String, String>,
}

impl ConfigFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigFileError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ConfigFileError> {
        let table: Table = text.parse().map_err(|error| ConfigFileError::Syntax {
            path: path.to_owned(),
            error: Box::new(error),
        })?;
        let mut file = Self::default();
        for (key, value) in table {
            match (key.as_str(), value) {
                ("log", value) => file.log = Some(log(path, &value)?),
                ("plan", Value::Table(plan)) => file.plan = texts(path, "plan", plan)?,
                ("posture", Value::Table(posture)) => {
                    file.posture = texts(path, "posture", posture)?;
                }
                ("plan" | "posture", value) => {
                    return Err(ConfigFileError::Value {
                        path: path.to_owned(),
                        key,
                        value: value.to_string(),
                        takes: "a table of keys",
                    });
                }
                _ => {
                    return Err(ConfigFileError::UnknownKey {
                        path: path.to_owned(),
                        key,
                    });
                }
            }
        }
        // Both are checked here, so that a file which was read can be used.
        file.overrides(path, &mut Overrides::none())?;
        file.patch(path)?;
        Ok(file)
    }

    /// Adds the file's overrides.
    pub fn overrides(&self, path: &Path, into: &mut Overrides) -> Result<(), ConfigFileError> {
        for (key, text) in &self.plan {
            into.set(&FLEET_ROLES, key, text, Origin::Config)
                .map_err(|error| ConfigFileError::Plan {
                    path: path.to_owned(),
                    error,
                })?;
        }
        Ok(())
    }

    /// The posture policy's keys, as a patch; `None` if there are none.
    pub fn patch(&self, path: &Path) -> Result<Option<PosturePolicyPatch>, ConfigFileError> {
        let mut changes = PosturePolicyPatch::default();
        for (key, text) in &self.posture {
            changes
                .set(key, text)
                .map_err(|error| ConfigFileError::Posture {
                    path: path.to_owned(),
                    error,
                })?;
        }
        Ok((!self.posture.is_empty()).then_some(changes))
    }

    /// Takes over from `new` what changes live; the rest stays as it was.
    pub(crate) fn take_live(&mut self, new: Self) {
        self.log = new.log;
        self.posture.extend(new.posture);
    }

    /// What differs in `new` and cannot change while the process runs, by name.
    #[must_use]
    pub fn fixed_changes(&self, new: &Self) -> Vec<String> {
        let keys = self.plan.keys().chain(new.plan.keys());
        let mut changed: Vec<String> = keys
            .filter(|key| self.plan.get(*key) != new.plan.get(*key))
            .map(|key| format!("plan.{key}"))
            .collect();
        // A key that is gone would fall back to what it was at boot, which nobody wrote down.
        let gone = self
            .posture
            .keys()
            .filter(|key| !new.posture.contains_key(*key));
        changed.extend(gone.map(|key| format!("posture.{key} (taken away)")));
        changed.sort();
        changed.dedup();
        changed
    }
}

fn log(path: &Path, value: &Value) -> Result<LogArg, ConfigFileError> {
    let level = value.as_str().map(|text| LogArg::from_str(text, false));
    match level {
        Some(Ok(level)) => Ok(level),
        _ => Err(ConfigFileError::Value {
            path: path.to_owned(),
            key: "log".to_owned(),
            value: value.to_string(),
            takes: "off, error, warn, info or debug",
        }),
    }
}

/// The values of a table as the texts that their keys take.
fn texts(
    path: &Path,
    table: &str,
    values: Table,
) -> Result<BTreeMap<String, String>, ConfigFileError> {
    let mut texts = BTreeMap::new();
    for (key, value) in values {
        let text = match value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::String(text) => text,
            value => {
                return Err(ConfigFileError::Value {
                    path: path.to_owned(),
                    key: format!("{table}.{key}"),
                    value: value.to_string(),
                    takes: "a number, or a text such as \"null\"",
                });
            }
        };
        texts.insert(key, text);
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, ConfigFileError> {
        ConfigFile::parse(Path::new("regatta.toml"), text)
    }

    #[test]
    fn a_file_is_taken_whole() {
        let file = parse("log = \"info\"\n[plan]\nquota = 4000\n[posture]\ncordon_enter_events = 3\ncordon_duty_percent = 2.5\n").unwrap();
        assert_eq!(file.log, Some(LogArg::Info));
        let mut overrides = Overrides::none();
        file.overrides(Path::new(""), &mut overrides).unwrap();
        assert_eq!(overrides.quota().unwrap().origin, Origin::Config);
        assert!(file.patch(Path::new("")).unwrap().is_some());
        assert!(parse("").unwrap().patch(Path::new("")).unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, names) in [
            ("lag = 1", "\"lag\""),
            ("log = 3", "log = 3"),
            ("log = \"loud\"", "off, error, warn"),
            ("plan = 3", "a table"),
            ("[plan]\nno_such = 1", "no_such"),
            ("[plan]\nquota = true", "plan.quota"),
            ("[plan]\nquota = -1", "quota"),
            ("[posture]\nno_such = 1", "no_such"),
            (
                "[posture]\ncordon_enter_events = \"many\"",
                "cordon_enter_events",
            ),
            ("[posture", "regatta.toml"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(names), "{text}: {error}");
        }
    }

    #[test]
    fn what_cannot_change_live_is_named() {
        let old = parse("[plan]\nquota = 4000\n[posture]\ncordon_enter_events = 3").unwrap();
        let new =
            parse("log = \"info\"\n[plan]\nsolver_pins = 5\n[posture]\ncordon_exit_clean_ms = 5")
                .unwrap();
        assert_eq!(
            old.fixed_changes(&new),
            [
                "plan.quota",
                "plan.solver_pins",
                "posture.cordon_enter_events (taken away)"
            ]
        );
        assert!(new.fixed_changes(&new).is_empty());
        let live = parse("[plan]\nsolver_pins = 5\n[posture]\ncordon_exit_clean_ms = 7").unwrap();
        assert!(new.fixed_changes(&live).is_empty());
    }
}
