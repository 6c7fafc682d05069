//! What bounds a process: every level of its group, and its affinity, with the evidence.
//!
//! # Invariants
//! - The bound is the smallest of all levels from the process's own group to the mount's root, and of
//!   the affinity.
//! - A level that could not be read, or understood, makes the quota unknown, whatever the others say.
//! - Weights are never read as limits.

use crate::cgroup::{Controller, CpuSet, Group, Hierarchy, Limit, Membership, Mounts, View};
use crate::files::{Content, Files};
use regatta_core::affinity::AllowedCpus;
use regatta_core::budget::{BoundedBy, Confidence, Evidence, MilliCpu, Quota, Reason};

/// Where the kernel says in which groups the process is.
pub const MEMBERSHIP: &[u8] = b"/proc/self/cgroup";

/// Where the kernel says what is mounted.
pub const MOUNTINFO: &[u8] = b"/proc/self/mountinfo";

/// What a level of the hierarchy says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LevelSays {
    /// A limit.
    Limit(MilliCpu),
    /// That it has none.
    Unlimited,
    /// Nothing: the controller is not enabled here.
    NotEnabled,
    /// Nothing: the controller is here, and the kernel has no bandwidth control.
    NoBandwidthControl,
    /// Something that is no limit.
    Malformed,
    /// It could not be read.
    Unreadable,
}

/// A level of the hierarchy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Level {
    /// The group's path in the hierarchy.
    pub path: Vec<u8>,
    /// The file that was asked.
    pub file: Vec<u8>,
    /// What it says.
    pub says: LevelSays,
}

/// The groups above and including the process's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bandwidth {
    /// The hierarchy that has the CPU controller.
    pub hierarchy: Hierarchy,
    /// How they are seen.
    pub view: View,
    /// The levels, the process's own first.
    pub levels: Vec<Level>,
}

/// What the control groups say about bandwidth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Groups {
    /// The quota; its bound is `None` where no level has a limit.
    pub quota: Quota,
    /// The levels, if any could be looked at.
    pub bandwidth: Option<Bandwidth>,
    /// Lines of the kernel's files that were not understood and left out.
    pub skipped_lines: usize,
}

impl Groups {
    fn of(quota: Quota) -> Self {
        Self {
            quota,
            bandwidth: None,
            skipped_lines: 0,
        }
    }

    /// The level whose limit is the bound.
    #[must_use]
    pub fn limiting(&self) -> Option<(usize, &Level)> {
        let level = usize::from(self.quota.evidence.level?);
        Some((level, self.bandwidth.as_ref()?.levels.get(level)?))
    }
}

/// On which CPUs the process may run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cpus {
    /// Those that are in the mask and in the group's set; `None` if the mask could not be read.
    pub allowed: Option<CpuSet>,
    /// The group's set, where one could be read.
    pub group: Option<CpuSet>,
    /// Whether the kernel keeps other groups off them.
    pub exclusive: bool,
}

impl Cpus {
    /// The bound that they are.
    #[must_use]
    pub fn quota(&self) -> Quota {
        let count = self.allowed.as_ref().map_or(0, CpuSet::count);
        if count == 0 {
            // Nothing runs on no CPU, so a mask without any is not this process's.
            return Quota::unknown(Reason::Unreadable);
        }
        let milli = MilliCpu::new(count.saturating_mul(1000));
        Quota::exact(milli, BoundedBy::Affinity, Reason::MaskCounted)
    }

    /// The same as the core asks about it.
    #[must_use]
    pub fn allowed_cpus(&self) -> AllowedCpus {
        let count = self.allowed.as_ref().map_or(0, CpuSet::count);
        AllowedCpus {
            count: u16::try_from(count).unwrap_or(u16::MAX),
            exclusive: self.exclusive,
        }
    }
}

/// What bounds a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Detection {
    /// What the control groups say.
    pub groups: Groups,
    /// On which CPUs it may run.
    pub cpus: Cpus,
}

impl Detection {
    /// What holds: the smaller of the groups' limit and the CPUs, with the weaker confidence.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.groups.quota.and(self.cpus.quota())
    }
}

/// Looks at `files`; `mask` is the affinity mask of the process, if it could be read.
#[must_use]
pub fn detect(files: &impl Files, mask: Option<&CpuSet>) -> Detection {
    let membership = files.read(MEMBERSHIP);
    let mountinfo = files.read(MOUNTINFO);
    let (Content::Text(membership), Content::Text(mountinfo)) = (&membership, &mountinfo) else {
        return Detection {
            groups: Groups::of(Quota::unknown(Reason::Unreadable)),
            cpus: cpus(files, None, mask),
        };
    };
    let membership = Membership::parse(membership);
    let mounts = Mounts::parse(mountinfo);
    let mut groups = bandwidth(files, &membership, &mounts);
    if membership.bad_lines > 0 || membership.good_lines == 0 {
        groups.quota = groups.quota.and(Quota::unknown(Reason::Malformed));
    }
    groups.skipped_lines = membership.bad_lines + mounts.skipped;
    let view = membership
        .group(Controller::CpuSet)
        .and_then(|group| Some((group, best(files, &mounts, Controller::CpuSet, group)?)));
    Detection {
        groups,
        cpus: cpus(files, view.as_ref(), mask),
    }
}

/// The best view whose first level is a group; the best one if none is.
fn best(
    files: &impl Files,
    mounts: &Mounts,
    controller: Controller,
    group: Group<'_>,
) -> Option<View> {
    let mut views = mounts.views(controller, group);
    let place = views.iter().position(|view| is_group(files, view));
    let place = place.unwrap_or(0);
    (place < views.len()).then(|| views.swap_remove(place))
}

/// Whether the first level of a view is a folder of a hierarchy, not an empty one put in its place.
fn is_group(files: &impl Files, view: &View) -> bool {
    const ANY: [&str; 6] = [
        "cgroup.procs",
        "cpu.max",
        "cpu.cfs_quota_us",
        "cpu.shares",
        "cpu.weight",
        "cpu.stat",
    ];
    ANY.iter().any(|name| files.exists(&view.file(0, name)))
}

fn bandwidth(files: &impl Files, membership: &Membership<'_>, mounts: &Mounts) -> Groups {
    let Some(group) = membership.group(Controller::Cpu) else {
        // No hierarchy has the controller.
        return Groups::of(Quota::unlimited(Reason::NoBandwidthControl));
    };
    let Some(view) = best(files, mounts, Controller::Cpu, group) else {
        return Groups::of(Quota::unknown(Reason::NotMounted));
    };
    let levels: Vec<Level> = (0..view.levels())
        .map(|level| ask(files, group.hierarchy, &view, level))
        .collect();
    let mut quota = sum_up(group.hierarchy, &levels);
    if !is_group(files, &view) {
        quota = quota.and(Quota::unknown(Reason::Unreadable));
    }
    if view.is_outside() {
        quota = quota.and(match quota.bound {
            // What was seen may not be what holds, and something tighter may.
            Some(_) => outside(Confidence::Approximate),
            None => outside(Confidence::Unknown),
        });
    }
    Groups {
        quota,
        bandwidth: Some(Bandwidth {
            hierarchy: group.hierarchy,
            view,
            levels,
        }),
        skipped_lines: 0,
    }
}

fn outside(confidence: Confidence) -> Quota {
    Quota {
        bound: None,
        evidence: Evidence {
            bounded_by: BoundedBy::Nothing,
            level: None,
            confidence,
            reason: Reason::OutsideNamespace,
        },
    }
}

fn ask(files: &impl Files, hierarchy: Hierarchy, view: &View, level: usize) -> Level {
    let read = |name| files.read(&view.file(level, name));
    let (file, weight) = match hierarchy {
        Hierarchy::V1 => ("cpu.cfs_quota_us", "cpu.shares"),
        Hierarchy::V2 => ("cpu.max", "cpu.weight"),
    };
    let limit = match (read(file), hierarchy) {
        (Content::Text(max), Hierarchy::V2) => Ok(Limit::from_max(&max)),
        (Content::Text(quota), Hierarchy::V1) => match read("cpu.cfs_period_us") {
            Content::Text(period) => Ok(Limit::from_cfs(&quota, Some(&period))),
            Content::Absent => Ok(Limit::from_cfs(&quota, None)),
            Content::Unreadable(_) => match Limit::from_cfs(&quota, None) {
                Limit::Unlimited => Ok(Limit::Unlimited),
                Limit::At(_) | Limit::Malformed => Err(LevelSays::Unreadable),
            },
        },
        (Content::Absent, _) if files.exists(&view.file(level, weight)) => {
            Err(LevelSays::NoBandwidthControl)
        }
        (Content::Absent, _) => Err(LevelSays::NotEnabled),
        (Content::Unreadable(_), _) => Err(LevelSays::Unreadable),
    };
    Level {
        path: view.path(level).to_vec(),
        file: view.file(level, file),
        says: match limit {
            Ok(Limit::At(milli)) => LevelSays::Limit(milli),
            Ok(Limit::Unlimited) => LevelSays::Unlimited,
            Ok(Limit::Malformed) => LevelSays::Malformed,
            Err(says) => says,
        },
    }
}

/// The smallest limit of the levels. Where two are equal the lower level is named.
fn sum_up(hierarchy: Hierarchy, levels: &[Level]) -> Quota {
    let said = |says| levels.iter().any(|level| level.says == says);
    let none = if said(LevelSays::NoBandwidthControl) && !said(LevelSays::Unlimited) {
        Reason::NoBandwidthControl
    } else {
        Reason::NoLimit
    };
    let mut quota = Quota::unlimited(none);
    for (level, found) in (0..).zip(levels) {
        quota = quota.and(match found.says {
            LevelSays::Limit(milli) => Quota {
                bound: Some(milli),
                evidence: Evidence {
                    bounded_by: hierarchy.bounded_by(),
                    level: Some(level),
                    confidence: Confidence::Exact,
                    reason: Reason::LimitRead,
                },
            },
            LevelSays::Malformed => Quota::unknown(Reason::Malformed),
            LevelSays::Unreadable => Quota::unknown(Reason::Unreadable),
            LevelSays::Unlimited | LevelSays::NotEnabled | LevelSays::NoBandwidthControl => {
                continue;
            }
        });
    }
    quota
}

fn cpus(files: &impl Files, group: Option<&(Group<'_>, View)>, mask: Option<&CpuSet>) -> Cpus {
    let set = group.and_then(|(group, view)| group_cpus(files, group.hierarchy, view));
    let allowed = match (mask, &set) {
        (Some(mask), Some(set)) => {
            let both = mask.and(set);
            // Sets that have nothing in common are not of the same process.
            Some(if both.count() > 0 { both } else { mask.clone() })
        }
        (mask, _) => mask.cloned(),
    };
    Cpus {
        allowed,
        group: set,
        exclusive: group.is_some_and(|(group, view)| exclusive(files, group.hierarchy, view)),
    }
}

/// The CPUs of the nearest level that says so.
fn group_cpus(files: &impl Files, hierarchy: Hierarchy, view: &View) -> Option<CpuSet> {
    if view.is_outside() {
        return None;
    }
    let name = match hierarchy {
        Hierarchy::V1 => "cpuset.effective_cpus",
        Hierarchy::V2 => "cpuset.cpus.effective",
    };
    (0..view.levels()).find_map(|level| match files.read(&view.file(level, name)) {
        Content::Text(text) => CpuSet::parse(&text).ok().filter(|set| set.count() > 0),
        Content::Absent | Content::Unreadable(_) => None,
    })
}

/// Whether the process's own group is the root of a partition, or exclusive and not the one that holds
/// everything. In doubt it is not.
fn exclusive(files: &impl Files, hierarchy: Hierarchy, view: &View) -> bool {
    let says = |name, wanted: &[&[u8]]| match files.read(&view.file(0, name)) {
        Content::Text(text) => wanted.contains(&text.trim_ascii()),
        Content::Absent | Content::Unreadable(_) => false,
    };
    !view.is_outside()
        && match hierarchy {
            Hierarchy::V1 => view.path(0) != b"/" && says("cpuset.cpu_exclusive", &[b"1"]),
            Hierarchy::V2 => says("cpuset.cpus.partition", &[b"root", b"isolated"]),
        }
}

#[cfg(test)]
mod tests;
