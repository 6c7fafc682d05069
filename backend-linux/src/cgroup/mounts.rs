//! `/proc/self/mountinfo`: where the hierarchies are mounted.

use super::view::{View, unescape};
use super::{Controller, Group, Hierarchy, lines, number};
use std::collections::BTreeMap;

/// The most mounts that are followed upwards from one mount; deeper ones count as hidden.
const DEEPEST: usize = 256;

/// What is mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// The first hierarchy, with these of our controllers.
    V1 { cpu: bool, cpuset: bool },
    /// The second.
    V2,
    /// Something else, which may hide a hierarchy.
    Other,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    id: u64,
    parent: u64,
    root: Vec<u8>,
    point: Vec<u8>,
    kind: Kind,
}

/// The mounts that the process sees.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mounts {
    mounts: Vec<Mount>,
    /// Lines that were not understood and are left out. If one of them was a mount of the hierarchy
    /// that is looked for, then that hierarchy is not found, which is unknown, not unlimited.
    pub skipped: usize,
}

impl Mounts {
    /// Reads the file.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let mut read = Self::default();
        for line in lines(text) {
            match mount(line) {
                Some(mount) => read.mounts.push(mount),
                None => read.skipped += 1,
            }
        }
        read
    }

    /// How many mounts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mounts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mounts.is_empty()
    }

    /// The views of `group` as far as `controller` is concerned, the best first: those that show the
    /// group before those that do not, then those that show more levels above it, then in the order of
    /// the file. A mount that another one hides is none.
    #[must_use]
    pub fn views(&self, controller: Controller, group: Group<'_>) -> Vec<View> {
        let fits = |kind: &Kind| match (group.hierarchy, kind, controller) {
            (Hierarchy::V2, Kind::V2, _) => true,
            (Hierarchy::V1, Kind::V1 { cpu, .. }, Controller::Cpu) => *cpu,
            (Hierarchy::V1, Kind::V1 { cpuset, .. }, Controller::CpuSet) => *cpuset,
            _ => false,
        };
        let tree = self.tree();
        let mut views: Vec<View> = self
            .mounts
            .iter()
            .filter(|mount| fits(&mount.kind) && !tree.hides(mount))
            .filter_map(|mount| View::new(&mount.point, &mount.root, group.path))
            .collect();
        views.sort_by_key(|view| (view.is_outside(), view.hidden_above()));
        views
    }

    fn tree(&self) -> Tree<'_> {
        let mut tree = Tree {
            by_id: BTreeMap::new(),
            children: BTreeMap::new(),
        };
        for mount in &self.mounts {
            tree.by_id.entry(mount.id).or_insert(mount);
            tree.children.entry(mount.parent).or_default().push(mount);
        }
        tree
    }
}

/// Which mount stands on which.
struct Tree<'a> {
    by_id: BTreeMap<u64, &'a Mount>,
    children: BTreeMap<u64, Vec<&'a Mount>>,
}

impl Tree<'_> {
    /// Whether the mount's point leads somewhere else: something was mounted over it, or over a folder
    /// on the way to it.
    fn hides(&self, mount: &Mount) -> bool {
        let over = |id: u64, point: &[u8], but: u64| {
            let mut on = self.children.get(&id).into_iter().flatten();
            on.any(|other| other.id != but && other.id != id && leads_to(&other.point, point))
        };
        if over(mount.id, &mount.point, mount.id) {
            return true;
        }
        let mut at = mount;
        for _ in 0..DEEPEST {
            if over(at.parent, &at.point, at.id) {
                return true;
            }
            match self.by_id.get(&at.parent) {
                // The top of what the process sees stands on a mount that is not listed, or on itself.
                Some(parent) if parent.id != at.id => at = parent,
                _ => return false,
            }
        }
        true
    }
}

/// Whether `point` is `path` or a folder on the way to it.
fn leads_to(point: &[u8], path: &[u8]) -> bool {
    let point = point.strip_suffix(b"/").unwrap_or(point);
    path.strip_prefix(point)
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER-OPTIONS`.
///
/// A line whose super options have blanks of their own is not one of a hierarchy and is left out.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let (id, parent) = (number(fields.next()?)?, number(fields.next()?)?);
    let _device = fields.next()?;
    let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
    let _options = fields.next()?;
    fields.by_ref().find(|field| *field == b"-")?;
    let (kind, _source, options) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() || point.first() != Some(&b'/') || climbs(&point) {
        return None;
    }
    let has = |controller: Controller| {
        let mut options = options.split(|byte| *byte == b',');
        options.any(|option| option == controller.name().as_bytes())
    };
    let kind = match kind {
        b"cgroup" => Kind::V1 {
            cpu: has(Controller::Cpu),
            cpuset: has(Controller::CpuSet),
        },
        b"cgroup2" => Kind::V2,
        _ => Kind::Other,
    };
    if kind != Kind::Other && root.first() != Some(&b'/') {
        return None;
    }
    Some(Mount {
        id,
        parent,
        root: root.into_owned(),
        point: point.into_owned(),
        kind,
    })
}

/// The kernel resolves a mount point before it prints it; one that climbs is not the kernel's.
fn climbs(point: &[u8]) -> bool {
    point.split(|byte| *byte == b'/').any(|part| part == b"..")
}
