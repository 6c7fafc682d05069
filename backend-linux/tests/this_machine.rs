//! This machine is read without an error, and as others read it.
#![cfg(target_os = "linux")]

use regatta_linux::Machine;
use regatta_linux::cgroup::CpuSet;
use std::fs;

#[test]
fn the_mask_is_the_one_that_the_kernel_lists() {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    let listed = CpuSet::parse(list.as_bytes()).unwrap();
    let mask = Machine::this().mask().unwrap();
    assert!(mask.count() > 0);
    // The list may have CPUs that are not there; the mask has none of those.
    assert_eq!(mask.and(&listed), mask, "{mask} {listed}");
}

#[test]
fn what_bounds_this_process_is_found() {
    // However much the machine hides, the CPUs are known.
    let bound = Machine::this().detect().quota().bound.unwrap();
    assert!(bound.milli() > 0);
}
