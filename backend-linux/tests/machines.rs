//! Every machine under `machines/` is understood as its file says, from files on a disk.
#![cfg(target_os = "linux")]

mod common;

use regatta_core::budget::{BoundedBy, MilliCpu};
use regatta_linux::cgroup::show;
use regatta_linux::{Counted, Detection, Machine};

/// What is found at a path of the doctor's JSON that this crate knows about, as JSON.
fn found(path: &str, machine: &Machine, found: &Detection) -> Option<String> {
    let text = |text: &str| format!("{text:?}");
    let or_null = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
    let groups = &found.groups;
    let quota = found.quota();
    let counted = Counted::find(machine.files(), found);
    let counters = counted.as_ref().map(|counted| counted.counters);
    let count = |count: Option<u64>| or_null(count.map(|count| count.to_string()));
    Some(match path {
        "quota.milli" => or_null(groups.quota.bound.map(|milli| milli.milli().to_string())),
        "quota.limiting_level" => {
            or_null(groups.limiting().map(|(_, level)| text(&show(&level.path))))
        }
        "quota.hierarchy" => or_null(match groups.quota.evidence.bounded_by {
            BoundedBy::Nothing => None,
            by => Some(text(by.name())),
        }),
        "quota.confidence" => text(groups.quota.evidence.confidence.name()),
        "quota.reason" => text(&groups.quota.evidence.reason.to_string()),
        "budget.milli" => or_null(quota.bound.map(|milli| milli.milli().to_string())),
        "budget.bounded_by" => text(quota.evidence.bounded_by.name()),
        "cores.whole" => quota.bound.map_or(0, MilliCpu::floor_cores).to_string(),
        "cores.ceil" => quota.bound.map_or(0, MilliCpu::ceil_cores).to_string(),
        "cores.fraction_milli" => quota.bound.map_or(0, MilliCpu::fraction).to_string(),
        "affinity_cpus" => or_null(
            found
                .cpus
                .allowed
                .as_ref()
                .map(|set| set.count().to_string()),
        ),
        "cpus" => or_null(
            found
                .cpus
                .allowed
                .as_ref()
                .map(|set| text(&set.to_string())),
        ),
        "throttle.measured" => counted.is_some().to_string(),
        "throttle.nr_periods" => count(counters.and_then(|counters| counters.nr_periods)),
        "throttle.nr_throttled" => count(counters.and_then(|counters| counters.nr_throttled)),
        "throttle.throttled_ns" => count(counters.and_then(|counters| counters.throttled_ns)),
        "throttle.source" => or_null(counted.map(|counted| text(&show(&counted.file)))),
        _ => return None,
    })
}

#[test]
fn every_machine_is_understood() {
    let mut wrong = Vec::new();
    let machines = common::machines();
    assert!(machines.len() > 29);
    for copy in machines {
        let folder = tempfile::tempdir().unwrap();
        copy.write(folder.path());
        let machine = Machine::copy(folder.path()).unwrap();
        let detection = machine.detect();
        for (path, want) in &copy.expect {
            let Some(got) = found(path, &machine, &detection) else {
                assert!(path.starts_with("plan."), "{}: {path}", copy.name);
                continue;
            };
            if got != *want {
                wrong.push(format!("{}: {path} is {got}, must be {want}", copy.name));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
