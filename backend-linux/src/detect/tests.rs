//! Detection over files in memory: what holds on every tree of groups, whatever cannot be read.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// Files in memory.
#[derive(Clone, Debug, Default)]
struct Memory(BTreeMap<Vec<u8>, Content>);

impl Memory {
    fn put(&mut self, path: &str, text: &[u8]) {
        self.0
            .insert(path.as_bytes().to_vec(), Content::Text(text.to_vec()));
    }

    fn spoil(&mut self, path: &str) {
        let unreadable = Content::Unreadable(ErrorKind::PermissionDenied);
        self.0.insert(path.as_bytes().to_vec(), unreadable);
    }
}

impl Files for Memory {
    fn read(&self, path: &[u8]) -> Content {
        self.0.get(path).cloned().unwrap_or(Content::Absent)
    }
}

/// What a level of a made-up tree has.
#[derive(Clone, Copy, Debug)]
enum Has {
    Limit(u32),
    NoLimit,
    NoFile,
    Unreadable,
    Junk,
}

fn has() -> impl Strategy<Value = Has> {
    prop_oneof![
        3 => (1u32..64_000).prop_map(Has::Limit),
        3 => Just(Has::NoLimit),
        2 => Just(Has::NoFile),
        1 => Just(Has::Unreadable),
        1 => Just(Has::Junk),
    ]
}

/// A tree of which the levels are `levels`, the root of the mount first.
fn tree(hierarchy: Hierarchy, levels: &[Has]) -> Memory {
    let mut files = Memory::default();
    let (point, kind, options, id) = match hierarchy {
        Hierarchy::V1 => ("/cg/cpu", "cgroup", "rw,cpuacct,cpu", "3:cpu"),
        Hierarchy::V2 => ("/cg", "cgroup2", "rw", "0:"),
    };
    let mut own = String::new();
    for (depth, has) in levels.iter().enumerate() {
        if depth > 0 {
            own = format!("{own}/g{depth}");
        }
        let file = |name: &str| format!("{point}{own}/{name}");
        files.put(&file("cgroup.procs"), b"");
        let limit = match hierarchy {
            Hierarchy::V1 => file("cpu.cfs_quota_us"),
            Hierarchy::V2 => file("cpu.max"),
        };
        files.put(&file("cpu.cfs_period_us"), b"1000\n");
        match (has, hierarchy) {
            (Has::Limit(milli), Hierarchy::V1) => files.put(&limit, milli.to_string().as_bytes()),
            (Has::Limit(milli), Hierarchy::V2) => {
                files.put(&limit, format!("{milli} 1000\n").as_bytes());
            }
            (Has::NoLimit, Hierarchy::V1) => files.put(&limit, b"-1\n"),
            (Has::NoLimit, Hierarchy::V2) => files.put(&limit, b"max 1000\n"),
            (Has::NoFile, _) => {}
            (Has::Unreadable, _) => files.spoil(&limit),
            (Has::Junk, _) => files.put(&limit, b"unlimited\n"),
        }
    }
    if own.is_empty() {
        own.push('/');
    }
    files.put("/proc/self/cgroup", format!("{id}:{own}\n").as_bytes());
    let mount = format!("9 1 0:1 / {point} rw - {kind} x {options}\n");
    files.put("/proc/self/mountinfo", mount.as_bytes());
    files
}

fn eight() -> CpuSet {
    CpuSet::from_words(&[0xff])
}

proptest! {
    #[test]
    fn the_smallest_limit_of_all_levels_holds_and_what_was_not_read_is_said(
        levels in vec(has(), 1..6),
        first in any::<bool>(),
    ) {
        let hierarchy = if first { Hierarchy::V1 } else { Hierarchy::V2 };
        let found = detect(&tree(hierarchy, &levels), Some(&eight()));
        let limits = levels.iter().rev().enumerate().filter_map(|(above, has)| match has {
            Has::Limit(milli) => Some((*milli, above)),
            _ => None,
        });
        // The smallest, and the lowest of those.
        let want = limits.min();
        let quota = found.groups.quota;
        prop_assert_eq!(quota.bound.map(MilliCpu::milli), want.map(|(milli, _)| milli));
        prop_assert_eq!(found.groups.limiting().map(|(above, _)| above), want.map(|(_, above)| above));
        let doubt = levels.iter().any(|has| matches!(has, Has::Unreadable | Has::Junk));
        let confidence = if doubt { Confidence::Unknown } else { Confidence::Exact };
        prop_assert_eq!(quota.evidence.confidence, confidence);
        let both = found.quota();
        prop_assert_eq!(both.bound.map(MilliCpu::milli), Some(want.map_or(8000, |(milli, _)| milli.min(8000))));
        prop_assert_eq!(both.evidence.confidence, confidence);
    }

    #[test]
    fn what_is_spoiled_is_never_taken_for_no_limit(
        levels in vec(has(), 1..5),
        first in any::<bool>(),
        at in any::<prop::sample::Index>(),
        junk in vec(any::<u8>(), 0..30),
        unreadable in any::<bool>(),
    ) {
        let hierarchy = if first { Hierarchy::V1 } else { Hierarchy::V2 };
        let mut files = tree(hierarchy, &levels);
        let whole = detect(&files, Some(&eight()));
        let matters = |path: &[u8]| !path.ends_with(b"procs");
        let paths: Vec<Vec<u8>> = files.0.keys().filter(|path| matters(path)).cloned().collect();
        let path = at.get(&paths).clone();
        let content = if unreadable {
            Content::Unreadable(ErrorKind::Other)
        } else {
            // No junk that happens to be a smaller or an equal limit.
            Content::Text([b"junk ", junk.as_slice()].concat())
        };
        files.0.insert(path.clone(), content);
        let spoiled = detect(&files, Some(&eight()));
        // A period that nobody needs may be spoiled; everything else that is spoiled is doubt.
        let unneeded = path.ends_with(b"period_us") && spoiled == whole;
        let confidence = spoiled.groups.quota.evidence.confidence;
        prop_assert!(unneeded || confidence == Confidence::Unknown, "{:?}", path);
        prop_assert!(unneeded || spoiled.quota().known().is_none());
    }

    #[test]
    fn any_bytes_in_any_file_are_survived(
        membership in vec(any::<u8>(), 0..80),
        mountinfo in vec(any::<u8>(), 0..80),
        limit in vec(any::<u8>(), 0..20),
    ) {
        let mut files = tree(Hierarchy::V2, &[Has::NoLimit, Has::NoLimit]);
        files.put("/cg/g1/cpu.max", &limit);
        let _ = detect(&files, None);
        files.put("/proc/self/mountinfo", &mountinfo);
        let _ = detect(&files, None);
        files.put("/proc/self/cgroup", &membership);
        let _ = detect(&files, None);
    }
}

#[test]
fn without_a_mask_the_limit_is_an_upper_bound_at_best() {
    let files = tree(Hierarchy::V2, &[Has::Limit(4000)]);
    let found = detect(&files, None).quota();
    assert_eq!(found.bound, Some(MilliCpu::new(4000)));
    assert_eq!(found.known(), None);
    let empty = detect(&files, Some(&CpuSet::default())).quota();
    assert_eq!(empty.known(), None);
}
