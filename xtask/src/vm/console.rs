//! What a machine says on its first serial port, and what that amounts to.

use serde::Deserialize;

/// A line of the agent's.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Said {
    /// The first process runs; so many scenarios follow.
    Begin {
        /// How many.
        begin: usize,
    },
    /// A scenario is over.
    Scenario {
        /// Its name.
        scenario: String,
        /// How long it took, in milliseconds.
        ms: u64,
        /// Why it failed, if it did.
        failed: Option<String>,
    },
    /// All are over.
    End {
        /// How many failed.
        end: usize,
    },
}

/// Everything that a machine said.
#[derive(Default, Debug)]
pub(super) struct Log {
    lines: Vec<Said>,
    /// Lines that are none of the agent's.
    pub(super) strange: Vec<String>,
    /// What came after the last end of a line.
    rest: Vec<u8>,
}

impl Log {
    /// Takes what came and returns the lines that it completes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Said> {
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        let mut new = Vec::new();
        for line in String::from_utf8_lossy(&whole).lines() {
            let line = line.trim();
            match serde_json::from_str::<Said>(line) {
                Ok(said) => new.push(said),
                Err(_) if line.is_empty() => {}
                Err(_) => self.strange.push(line.to_owned()),
            }
        }
        self.lines.extend_from_slice(&new);
        new
    }

    /// Whether the first process got to run scenarios.
    pub(super) fn has_begun(&self) -> bool {
        self.lines
            .iter()
            .any(|line| matches!(line, Said::Begin { .. }))
    }

    /// How many scenarios passed.
    pub(super) fn passed(&self) -> usize {
        self.scenarios().filter(|(_, ok)| *ok).count()
    }

    /// The scenarios that failed.
    pub(super) fn failed(&self) -> impl Iterator<Item = &str> {
        self.scenarios().filter(|(_, ok)| !ok).map(|(name, _)| name)
    }

    fn scenarios(&self) -> impl Iterator<Item = (&str, bool)> {
        self.lines.iter().filter_map(|line| match line {
            Said::Scenario {
                scenario, failed, ..
            } => Some((scenario.as_str(), failed.is_none())),
            _ => None,
        })
    }

    /// What is missing from a whole log, if something is.
    pub(super) fn incomplete(&self) -> Option<String> {
        let ended = self.scenarios().count();
        let announced = self.lines.iter().find_map(|line| match line {
            Said::Begin { begin } => Some(*begin),
            _ => None,
        });
        let end = self.lines.last().and_then(|line| match line {
            Said::End { end } => Some(*end),
            _ => None,
        });
        match (announced, end) {
            (None, _) => Some("it never began".to_owned()),
            (Some(announced), None) => Some(format!(
                "it ended after {ended} of {announced} scenarios without the last line"
            )),
            (Some(announced), Some(failures)) => {
                let counted = self.failed().count();
                (announced != ended || failures != counted).then(|| {
                    format!(
                        "it announced {announced} scenarios and {failures} failures, and told of {ended} and {counted}"
                    )
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "{\"begin\":2}\r\n{\"scenario\":\"a\",\"ms\":12,\"failed\":null}\r\n\
                         {\"scenario\":\"b\",\"ms\":3,\"failed\":\"so\"}\r\n{\"end\":1}\r\n";

    fn log(text: &str) -> Log {
        let mut log = Log::default();
        log.take(text.as_bytes());
        log
    }

    #[test]
    fn a_log_is_the_same_however_it_is_cut() {
        for at in 0..WHOLE.len() {
            let mut log = Log::default();
            let mut lines = log.take(&WHOLE.as_bytes()[..at]);
            lines.extend(log.take(&WHOLE.as_bytes()[at..]));
            assert_eq!(lines.len(), 4, "cut at {at}");
            assert_eq!(log.incomplete(), None);
            assert_eq!((log.passed(), log.failed().collect()), (1, vec!["b"]));
        }
    }

    #[test]
    fn a_log_that_lacks_a_line_is_incomplete() {
        for line in WHOLE.lines() {
            let cut: String = WHOLE
                .lines()
                .filter(|other| *other != line)
                .flat_map(|line| [line, "\n"])
                .collect();
            assert!(log(&cut).incomplete().is_some(), "without {line}");
        }
    }

    #[test]
    fn what_is_not_the_agents_is_kept_apart() {
        let log = log(&format!("panicked at\r\n{WHOLE}"));
        assert_eq!(log.strange, ["panicked at"]);
        assert_eq!(log.incomplete(), None);
    }
}
