//! The kernel's texts, as any bytes: no parser panics, and what is not understood is never "no limit".
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_core::budget::Confidence;
use regatta_linux::cgroup::{Controller, Counters, CpuSet, Hierarchy, Limit, Membership, Mounts};
use regatta_linux::detect;
use regatta_linux::detect::{MEMBERSHIP, MOUNTINFO};
use regatta_linux::files::{Content, Files};
use std::io::ErrorKind;

/// A machine whose files are the parts of one text: the membership, the mounts, and all others in turn.
struct Parts<'a>(Vec<&'a [u8]>);

impl Files for Parts<'_> {
    fn read(&self, path: &[u8]) -> Content {
        let at = match path {
            p if p == MEMBERSHIP => 0,
            p if p == MOUNTINFO => 1,
            // A file is the same whenever it is read.
            p => 2 + p.iter().map(|byte| usize::from(*byte)).sum::<usize>() % 6,
        };
        match self.0.get(at).copied() {
            None | Some(b"absent") => Content::Absent,
            Some(b"unreadable") => Content::Unreadable(ErrorKind::PermissionDenied),
            Some(text) => Content::Text(text.to_vec()),
        }
    }
}

fuzz_target!(|text: &[u8]| {
    if let Limit::Unlimited = Limit::from_max(text) {
        assert!(text.starts_with(b"max") || text.trim_ascii().starts_with(b"max"));
    }
    if let Limit::Unlimited = Limit::from_cfs(text, None) {
        assert_eq!(text.trim_ascii(), b"-1");
    }
    let half = text.len() / 2;
    let _ = Limit::from_cfs(&text[..half], Some(&text[half..]));
    for hierarchy in [Hierarchy::V1, Hierarchy::V2] {
        let _ = Counters::parse(hierarchy, text);
    }
    if let Ok(set) = CpuSet::parse(text) {
        assert_eq!(set.iter().count(), set.count() as usize);
    }
    let mounts = Mounts::parse(text);
    let membership = Membership::parse(text);
    for controller in [Controller::Cpu, Controller::CpuSet] {
        if let Some(group) = membership.group(controller) {
            for view in mounts.views(controller, group) {
                for level in 0..view.levels() {
                    let _ = (view.path(level), view.file(level, "cpu.max"));
                }
            }
        }
    }
    let parts = Parts(text.split(|byte| *byte == 0).collect());
    let detection = detect(&parts, None);
    let quota = detection.quota();
    if quota.evidence.confidence == Confidence::Unknown {
        assert!(quota.known().is_none());
    }
    let _ = detection.cpus.allowed_cpus();
});
