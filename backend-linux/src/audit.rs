//! The audit of threads: those that the kernel lists against those that the census knows.
//!
//! The census is the source of ownership; the kernel's list only shows whether something went around it.
//! The process's first thread is its own, and the kernel's workers for rings (`iou-...`) belong to whoever
//! has a ring.

use regatta_portable::Census;
use std::fmt;
use std::io;
use std::path::Path;

/// How the names of the kernel's workers for rings begin.
const RING_WORKERS: &str = "iou-";

/// What an audit found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    /// Threads of the kernel's list that nobody owns, by name.
    pub strangers: Vec<String>,
    /// Living threads of the census that the kernel does not list, by name.
    pub missing: Vec<String>,
}

impl Audit {
    /// Looks at the threads of this process. A thread that begins or ends meanwhile is looked for twice
    /// before it counts.
    pub fn of(census: &Census) -> io::Result<Self> {
        const TRIES: u32 = 3;
        let mut found = Self::look(census)?;
        for _ in 1..TRIES {
            if found.is_reconciled() {
                break;
            }
            found = Self::look(census)?;
        }
        Ok(found)
    }

    fn look(census: &Census) -> io::Result<Self> {
        // A row lives from before its thread to after it, so the census is read on both sides of the list.
        let before = living(census);
        let listed = listed(Path::new("/proc/self/task"))?;
        let after = living(census);
        let strangers = listed.iter().filter(|name| {
            !name.starts_with(RING_WORKERS) && !before.contains(name) && !after.contains(name)
        });
        let missing = before
            .iter()
            .filter(|name| after.contains(name) && !listed.contains(name));
        Ok(Self {
            strangers: strangers.cloned().collect(),
            missing: missing.cloned().collect(),
        })
    }

    /// Whether every thread is owned, and every owned one there.
    #[must_use]
    pub const fn is_reconciled(&self) -> bool {
        self.strangers.is_empty() && self.missing.is_empty()
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_reconciled() {
            return f.write_str("every thread is owned");
        }
        write!(
            f,
            "threads that nobody owns: {:?}; owned threads that are not there: {:?}",
            self.strangers, self.missing
        )
    }
}

/// The kernel's names of the census's living threads.
fn living(census: &Census) -> Vec<String> {
    let rows = census.rows().into_iter();
    rows.filter(|row| row.running)
        .map(|row| row.spec.kernel_name)
        .collect()
}

/// The names of all threads but the first.
fn listed(tasks: &Path) -> io::Result<Vec<String>> {
    let first = std::process::id().to_string();
    let mut names = Vec::new();
    for task in std::fs::read_dir(tasks)? {
        let task = task?;
        if task.file_name().to_string_lossy() == first {
            continue;
        }
        // One that has ended meanwhile has no name any more.
        if let Ok(name) = std::fs::read_to_string(task.path().join("comm")) {
            names.push(name.trim_end().to_owned());
        }
    }
    Ok(names)
}
