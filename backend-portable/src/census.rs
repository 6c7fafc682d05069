//! The census: the only way to get a thread.
//!
//! Every thread of the process that is ours is spawned here, under a row that says whose it is, what
//! for, and how its number came about. The kernel keeps 15 bytes of a thread's name, so names are
//! checked to be distinct within that, and the full name stands in the row.
//!
//! # Invariants
//! - No two living threads of one census have the same kernel name.
//! - A row says `running` from before its thread exists until after its function has returned.

use regatta_core::plan::LaneBinding;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// The most bytes of a thread name that the Linux kernel keeps.
pub const KERNEL_NAME: usize = 15;

/// A thread to be spawned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadSpec {
    /// The name for the kernel: 1 to 15 bytes of printable ASCII, distinct among living threads.
    pub kernel_name: String,
    /// The full name.
    pub name: String,
    /// The component that owns the thread.
    pub owner: String,
    /// What it serves: a role's name, or another word.
    pub role: String,
    /// How the number of such threads came about.
    pub sizing: String,
    /// How the lane it serves meets threads.
    pub binding: LaneBinding,
}

impl ThreadSpec {
    /// The one thread that `owner` has for `kernel_name`, which also says what it serves.
    #[must_use]
    pub fn one(owner: &str, kernel_name: &str) -> Self {
        Self {
            kernel_name: kernel_name.to_owned(),
            name: format!("{owner}/{kernel_name}"),
            owner: owner.to_owned(),
            role: kernel_name.to_owned(),
            sizing: "one".to_owned(),
            binding: LaneBinding::Pinned,
        }
    }
}

/// A row of the census.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadRow {
    /// What was asked for.
    pub spec: ThreadSpec,
    /// Whether the thread lives.
    pub running: bool,
}

/// Why a thread was not spawned.
#[derive(Debug, Error)]
pub enum CensusError {
    /// The name does not fit the kernel.
    #[error(
        "thread name {name:?} has {} bytes: it takes 1 to {KERNEL_NAME} bytes of printable ASCII",
        name.len()
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A living thread has the name.
    #[error("thread name {name:?} belongs to a living thread of {owner:?}")]
    Taken {
        /// The name.
        name: String,
        /// The owner of the other thread.
        owner: String,
    },
    /// The platform refused.
    #[error("thread {name:?} could not be spawned: {source}")]
    Spawn {
        /// The name.
        name: String,
        /// What the platform said.
        source: std::io::Error,
    },
}

/// The registry of threads. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Census {
    rows: Arc<Mutex<Vec<ThreadRow>>>,
}

/// Marks the row of a thread as gone, whether its function returned or unwound.
struct Leaving {
    census: Census,
    name: String,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut rows = self.census.lock();
        if let Some(row) = rows
            .iter_mut()
            .find(|r| r.running && r.spec.kernel_name == self.name)
        {
            row.running = false;
        }
    }
}

impl Census {
    /// An empty census.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a thread under a row of its own.
    pub fn spawn<T: Send + 'static>(
        &self,
        spec: ThreadSpec,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> Result<std::thread::JoinHandle<T>, CensusError> {
        let name = self.enter(spec)?;
        self.start(name, run)
    }

    /// Spawns a thread whose kernel name is `prefix` and the lowest number that no living thread has
    /// with it; `spec` says the rest.
    pub fn spawn_numbered<T: Send + 'static>(
        &self,
        prefix: &str,
        spec: impl FnOnce(String, u32) -> ThreadSpec,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> Result<std::thread::JoinHandle<T>, CensusError> {
        let mut rows = self.lock();
        let taken = |name: &str| {
            rows.iter()
                .any(|row| row.running && row.spec.kernel_name == name)
        };
        let mut number = 0;
        let mut name = format!("{prefix}{number}");
        while taken(&name) {
            number += 1;
            name = format!("{prefix}{number}");
        }
        let name = enter(&mut rows, spec(name, number))?;
        drop(rows);
        self.start(name, run)
    }

    fn enter(&self, spec: ThreadSpec) -> Result<String, CensusError> {
        enter(&mut self.lock(), spec)
    }

    /// Starts the thread whose row has been entered.
    fn start<T: Send + 'static>(
        &self,
        name: String,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> Result<std::thread::JoinHandle<T>, CensusError> {
        let leaving = Leaving {
            census: self.clone(),
            name: name.clone(),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the census is where threads come from"
        )]
        let spawned = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let _leaving = leaving;
                run()
            });
        // On failure the closure, and with it the row's mark, was dropped.
        spawned.map_err(|source| CensusError::Spawn { name, source })
    }

    /// The rows so far, in the order in which threads were spawned.
    #[must_use]
    pub fn rows(&self) -> Vec<ThreadRow> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ThreadRow>> {
        // A row is complete whenever the lock is free, so a panic elsewhere leaves nothing half-done.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a row for a thread that is about to live, and returns its kernel name.
fn enter(rows: &mut Vec<ThreadRow>, spec: ThreadSpec) -> Result<String, CensusError> {
    let name = spec.kernel_name.clone();
    if name.is_empty() || name.len() > KERNEL_NAME || !name.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(CensusError::Name { name });
    }
    let living = rows
        .iter()
        .find(|r| r.running && r.spec.kernel_name == name);
    if let Some(row) = living {
        let owner = row.spec.owner.clone();
        return Err(CensusError::Taken { name, owner });
    }
    rows.push(ThreadRow {
        spec,
        running: true,
    });
    Ok(name)
}
