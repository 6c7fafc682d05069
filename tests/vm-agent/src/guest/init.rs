//! The machine's first process: mounts, runs the scenarios, says what came of each, switches off.
//!
//! What it says is one JSON object a line on the first serial port, which nobody else writes to:
//! `{"begin": COUNT}`, then for each scenario `{"scenario": NAME, "ms": TIME, "failed": null or TEXT}`, then
//! `{"end": NUMBER OF FAILURES}`. The kernel writes to the second port.

use super::failure::Failure;
use super::group::Hierarchy;
use super::scenarios::{self, Machine};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::time::Instant;

const CONSOLE: &str = "/dev/ttyS0";

/// Words of the kernel's command line, which it hands on as variables.
const CPUS: &str = "regatta_cpus";
const HIERARCHY: &str = "regatta_hierarchy";
const ONLY: &str = "regatta_only";

/// Runs everything. Whatever comes of it the machine is switched off: it does not return on success.
pub(crate) fn run() -> Result<(), Failure> {
    let machine = Machine {
        cpus: variable(CPUS)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| {
                Failure::Other(format!("{CPUS} on the kernel's command line is no number"))
            })?,
        hierarchy: match variable(HIERARCHY).as_deref() {
            Some("1") => Hierarchy::V1,
            _ => Hierarchy::V2,
        },
    };
    set_up(machine.hierarchy)?;
    let mut console = OpenOptions::new()
        .write(true)
        .open(CONSOLE)
        .map_err(Failure::io("open", CONSOLE))?;
    let only = variable(ONLY).unwrap_or_default();
    let mut chosen = scenarios::all(machine);
    chosen.retain(|scenario| scenario.name.contains(&only));
    say(&mut console, &json!({ "begin": chosen.len() }))?;
    let mut failures = 0;
    for scenario in chosen {
        let began = Instant::now();
        let failed = (scenario.run)(machine).err();
        failures += u32::from(failed.is_some());
        let record = json!({
            "scenario": scenario.name,
            "ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            "failed": failed.map(|failure| failure.to_string()),
        });
        say(&mut console, &record)?;
    }
    say(&mut console, &json!({ "end": failures }))?;
    drop(console);
    let Err(error) = reboot(RebootMode::RB_POWER_OFF);
    Err(Failure::io("switch off", "/")(error.into()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn say(console: &mut File, record: &Value) -> Result<(), Failure> {
    writeln!(console, "{record}").map_err(Failure::io("write", CONSOLE))
}

fn set_up(hierarchy: Hierarchy) -> Result<(), Failure> {
    mount_new("proc", "/proc", None)?;
    mount_new("sysfs", "/sys", None)?;
    mount_new("devtmpfs", "/dev", None)?;
    match hierarchy {
        Hierarchy::V2 => {
            mount_new("cgroup2", hierarchy.root(), None)?;
            let control = format!("{}/cgroup.subtree_control", hierarchy.root());
            fs::write(&control, "+cpu +cpuset").map_err(Failure::io("write", &control))
        }
        Hierarchy::V1 => {
            mount_new("tmpfs", "/sys/fs/cgroup", None)?;
            let root = hierarchy.root();
            fs::create_dir(root).map_err(Failure::io("make", root))?;
            mount_new("cgroup", root, Some("cpu"))
        }
    }
}

/// Mounts a file system of the kernel's.
pub(crate) fn mount_new(kind: &str, target: &str, data: Option<&str>) -> Result<(), Failure> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), data)
        .map_err(|errno| Failure::io("mount", target)(errno.into()))
}
