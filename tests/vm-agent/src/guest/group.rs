//! Control groups with real limits.
//!
//! # Invariants
//! - A group that a scenario made is gone after it; a process that is still in it is moved out.

use super::failure::Failure;
use super::until;
use std::fs;
use std::path::{Path, PathBuf};

/// The period of every limit here, in microseconds.
const PERIOD_US: u32 = 100_000;

/// Which hierarchy has the CPU controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hierarchy {
    /// The first, with the CPU controller alone.
    V1,
    /// The second.
    V2,
}

impl Hierarchy {
    /// Where it is mounted.
    pub(crate) const fn root(self) -> &'static str {
        match self {
            Self::V1 => "/sys/fs/cgroup/cpu",
            Self::V2 => "/sys/fs/cgroup",
        }
    }

    /// Its name in records and logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V1 => "cgroup1",
            Self::V2 => "cgroup2",
        }
    }

    /// The file that a limit is read from.
    pub(crate) const fn limit_file(self) -> &'static str {
        match self {
            Self::V1 => "cpu.cfs_quota_us",
            Self::V2 => "cpu.max",
        }
    }
}

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    hierarchy: Hierarchy,
    /// As the kernel names it, such as `/p/l`.
    name: String,
    folder: PathBuf,
}

impl Group {
    /// Makes the group `name` below the root.
    pub(crate) fn make(hierarchy: Hierarchy, name: &str) -> Result<Self, Failure> {
        Self::below(hierarchy, Path::new(hierarchy.root()), format!("/{name}"))
    }

    /// Makes a group in this one, which gives its controllers on.
    pub(crate) fn child(&self, name: &str) -> Result<Self, Failure> {
        if self.hierarchy == Hierarchy::V2 {
            self.write("cgroup.subtree_control", "+cpu +cpuset")?;
        }
        let name_below = format!("{}/{name}", self.name);
        let folder = Path::new(self.hierarchy.root());
        Self::below(self.hierarchy, folder, name_below)
    }

    fn below(hierarchy: Hierarchy, root: &Path, name: String) -> Result<Self, Failure> {
        let folder = root.join(name.trim_start_matches('/'));
        fs::create_dir(&folder).map_err(Failure::io("make", &folder))?;
        Ok(Self {
            hierarchy,
            name,
            folder,
        })
    }

    /// As the kernel names it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its hierarchy.
    pub(crate) const fn hierarchy(&self) -> Hierarchy {
        self.hierarchy
    }

    /// A file of it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The file of its limit, as text.
    pub(crate) fn limit_file(&self) -> String {
        self.file(self.hierarchy.limit_file()).display().to_string()
    }

    /// Limits it to `milli` thousandths of a core.
    pub(crate) fn limit(&self, milli: u32) -> Result<(), Failure> {
        let quota = u64::from(milli) * u64::from(PERIOD_US) / 1000;
        match self.hierarchy {
            Hierarchy::V2 => self.write("cpu.max", &format!("{quota} {PERIOD_US}")),
            Hierarchy::V1 => {
                self.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                self.write("cpu.cfs_quota_us", &quota.to_string())
            }
        }
    }

    /// Narrows it to these CPUs, a list such as `0-3`.
    pub(crate) fn cpus(&self, list: &str) -> Result<(), Failure> {
        self.write("cpuset.cpus", list)
    }

    /// Moves a process here.
    pub(crate) fn take(&self, pid: u32) -> Result<(), Failure> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Moves a process out of every group.
    pub(crate) fn take_out(&self, pid: u32) -> Result<(), Failure> {
        let procs = Path::new(self.hierarchy.root()).join("cgroup.procs");
        fs::write(&procs, pid.to_string()).map_err(Failure::io("write", &procs))
    }

    /// Removes it; nothing may be in it.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        fs::remove_dir(&self.folder).map_err(Failure::io("remove", &self.folder))
    }

    /// A value of a file of counters.
    pub(crate) fn counter(&self, file: &str, key: &str) -> Result<u64, Failure> {
        let path = self.file(file);
        let text = fs::read_to_string(&path).map_err(Failure::io("read", &path))?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        value.ok_or_else(|| Failure::Other(format!("{}: no {key} in {text:?}", path.display())))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        let path = self.file(file);
        fs::write(&path, text).map_err(Failure::io("write", &path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever moved out may leave a moment later. A group that stays fails the scenario that makes
        // one of its name.
        let gone = || {
            let inside = fs::read_to_string(self.file("cgroup.procs")).unwrap_or_default();
            for pid in inside.lines().filter_map(|line| line.parse().ok()) {
                let _ = self.take_out(pid);
            }
            let _ = fs::remove_dir(&self.folder);
            Ok((!self.folder.exists()).then_some(()))
        };
        let _ = until("the removal of a group", gone, String::new);
    }
}
