//! One machine from its boot to its end.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::console::{Log, Said};
use crate::cargo::{not_started, output};
use crate::verb::Error;

/// How long a boot may take: ten times what it does, for a loaded machine.
const BOOT: Duration = Duration::from_secs(40);

/// How often a boot that hangs or panics is tried.
const TRIES: u32 = 3;

/// How long a machine may take for its scenarios. Each ends itself long before.
const SCENARIOS: Duration = Duration::from_mins(10);

/// How often a machine is looked at.
const PACE: Duration = Duration::from_millis(20);

/// Lines of the kernel's, and of others, that are shown with a failure.
const TAIL: usize = 8;

/// The kernel's command line. The calibration of the timer is left out because it panics now and then on a
/// loaded host.
const KERNEL_WORDS: &str = "console=ttyS1 panic=-1 quiet no_timer_check tsc=reliable clocksource=tsc \
                            cryptomgr.notests=1 mitigations=off";

/// The emulator and the kernel.
pub(super) struct Tools {
    /// What the emulator's packages have in `/usr`, if it is one of them that runs.
    root: PathBuf,
    emulator: PathBuf,
    kernel: PathBuf,
}

impl Tools {
    /// Those among the packages that are unpacked in `root`, else those that are installed.
    pub(super) fn of(root: &Path) -> Result<Self, Error> {
        let unpacked = root.join("usr/bin/qemu-system-x86_64");
        let emulator = if unpacked.exists() {
            unpacked
        } else {
            "qemu-system-x86_64".into()
        };
        let kernel = kernel_in(&root.join("boot")).or_else(|| kernel_in(Path::new("/boot")));
        let tools = Self {
            root: root.to_owned(),
            emulator,
            kernel: kernel.ok_or_else(|| {
                let root = root.display();
                Error::Failed(format!(
                    "vm: no kernel in {root}/boot and /boot: remove {root}"
                ))
            })?,
        };
        output(tools.emulator().arg("--version"))?;
        Ok(tools)
    }

    /// The kernel's file name, which has its version.
    pub(super) fn kernel_name(&self) -> String {
        let name = self.kernel.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn emulator(&self) -> Command {
        let mut command = Command::new(&self.emulator);
        let arch = std::env::consts::ARCH;
        let folders = ["usr/lib", "lib"].map(|folder| {
            let path = self.root.join(format!("{folder}/{arch}-linux-gnu"));
            path.display().to_string()
        });
        command.env("LD_LIBRARY_PATH", folders.join(":"));
        for folder in ["qemu", "seabios"] {
            command
                .arg("-L")
                .arg(self.root.join("usr/share").join(folder));
        }
        command
    }
}

/// The kernel in a folder; the newest by name if there are several.
fn kernel_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_kernel = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("vmlinuz-") && name.ends_with("-cloud-amd64")
    };
    paths.filter(is_kernel).max()
}

/// A machine to boot.
pub(super) struct Boot {
    /// How many CPUs it has.
    pub(super) cpus: u16,
    /// Which hierarchy has the CPU controller: 1 or 2.
    pub(super) hierarchy: u8,
    /// Run the scenarios with this in their name alone.
    pub(super) only: String,
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPUs, cgroup{}", self.cpus, self.hierarchy)
    }
}

impl Boot {
    /// Boots the machine and follows it to its end; a line for each scenario goes to `out`.
    pub(super) fn run(
        &self,
        tools: &Tools,
        initramfs: &Path,
        folder: &Path,
        out: &mut dyn Write,
    ) -> Result<Log, Error> {
        for attempt in 1..=TRIES {
            let begun = Instant::now();
            let mut machine = Machine::start(self, tools, initramfs, folder)?;
            if !machine.boots(begun)? {
                drop(machine);
                writeln!(
                    out,
                    "{self}: boot {attempt} of {TRIES} got nowhere in {:.0} s:\n{}",
                    begun.elapsed().as_secs_f64(),
                    tail(&self.port(folder, 1))
                )?;
                continue;
            }
            let booted = begun.elapsed();
            let log = machine.finish(self, out)?;
            if let Some(missing) = log.incomplete() {
                let mut seen = log.strange.join("\n");
                seen += &tail(&self.port(folder, 1));
                return Err(Error::Failed(format!("vm: {self}: {missing}:\n{seen}")));
            }
            writeln!(
                out,
                "{self}: booted in {:.1} s, {} scenarios, {:.1} s in all",
                booted.as_secs_f64(),
                log.passed() + log.failed().count(),
                begun.elapsed().as_secs_f64()
            )?;
            return Ok(log);
        }
        Err(Error::Failed(format!(
            "vm: {self}: {TRIES} boots got nowhere"
        )))
    }

    /// The file that a serial port writes to.
    fn port(&self, folder: &Path, number: u8) -> PathBuf {
        let (cpus, hierarchy) = (self.cpus, self.hierarchy);
        folder.join(format!("machine-{cpus}-{hierarchy}-{number}.log"))
    }
}

/// What the first process said on its standard streams, and the last lines of the kernel's.
fn tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = last_words(&text);
    format!("the end of {}:\n{last}", path.display())
}

/// The kernel begins each of its lines with the time, in brackets.
fn last_words(text: &str) -> String {
    let (kernels, others): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('['));
    let last = |lines: Vec<&str>| lines[lines.len().saturating_sub(TAIL)..].join("\n");
    format!("{}\n{}", last(others), last(kernels))
}

/// A machine that runs, ended when it is dropped.
struct Machine {
    emulator: Child,
    /// The file that the first serial port writes to.
    port: PathBuf,
    console: File,
    log: Log,
    /// Lines that are not shown yet.
    new: Vec<Said>,
}

impl Machine {
    fn start(boot: &Boot, tools: &Tools, initramfs: &Path, folder: &Path) -> Result<Self, Error> {
        let port = boot.port(folder, 0);
        File::create(&port).map_err(|source| Error::io("create", &port, source))?;
        let console = File::open(&port).map_err(|source| Error::io("open", &port, source))?;
        let mut command = tools.emulator();
        // One host thread for all CPUs: with more, wakes between them take milliseconds.
        command.args(["-accel", "tcg,thread=single", "-m", "512"]);
        command.args(["-nodefaults", "-no-user-config", "-display", "none"]);
        command.args(["-no-reboot", "-smp", &boot.cpus.to_string()]);
        for number in [0, 1] {
            let path = boot.port(folder, number);
            command
                .arg("-serial")
                .arg(format!("file:{}", path.display()));
        }
        command.arg("-kernel").arg(&tools.kernel);
        command.arg("-initrd").arg(initramfs);
        command.arg("-append").arg(format!(
            "{KERNEL_WORDS} regatta_cpus={} regatta_hierarchy={} regatta_only={}",
            boot.cpus, boot.hierarchy, boot.only
        ));
        let emulator = command.stdin(Stdio::null()).spawn();
        Ok(Self {
            emulator: emulator.map_err(|source| not_started(&command, &source))?,
            port,
            console,
            log: Log::default(),
            new: Vec::new(),
        })
    }

    /// Whether the first process gets to its scenarios.
    fn boots(&mut self, begun: Instant) -> Result<bool, Error> {
        while begun.elapsed() < BOOT {
            let ended = self.look()?;
            if self.log.has_begun() {
                return Ok(true);
            }
            if ended {
                break;
            }
            pause();
        }
        Ok(false)
    }

    /// Shows what the machine says until it is off.
    fn finish(mut self, boot: &Boot, out: &mut dyn Write) -> Result<Log, Error> {
        let begun = Instant::now();
        while begun.elapsed() < SCENARIOS {
            let ended = self.look()?;
            for said in self.new.drain(..) {
                show(&said, boot, out)?;
            }
            if ended {
                return Ok(std::mem::take(&mut self.log));
            }
            pause();
        }
        let late = format!("the machine was ended after {SCENARIOS:?}");
        self.log.strange.push(late);
        Ok(std::mem::take(&mut self.log))
    }

    /// Reads what is new, and says whether the machine was off before.
    fn look(&mut self) -> Result<bool, Error> {
        let ended = self.emulator.try_wait();
        let ended = ended.map_err(|source| Error::io("wait for", &self.port, source))?;
        let ended = ended.is_some();
        let mut bytes = Vec::new();
        let read = self.console.read_to_end(&mut bytes);
        read.map_err(|source| Error::io("read", &self.port, source))?;
        self.new.extend(self.log.take(&bytes));
        Ok(ended)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

fn show(said: &Said, boot: &Boot, out: &mut dyn Write) -> Result<(), Error> {
    let Said::Scenario {
        scenario,
        ms,
        failed,
    } = said
    else {
        return Ok(());
    };
    let verdict = if failed.is_none() { "ok" } else { "FAILED" };
    writeln!(out, "{boot}: {scenario:<36} {ms:>6} ms  {verdict}")?;
    if let Some(why) = failed {
        writeln!(out, "  {why}")?;
    }
    Ok(out.flush()?)
}

/// Waits on a channel that nobody sends on.
fn pause() {
    let (_never, pace) = mpsc::channel::<()>();
    let _ = pace.recv_timeout(PACE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_kernel_does_not_hide_why() {
        let trace = "[ 1.0] a call\n".repeat(100);
        let said = last_words(&format!("[ 0.1] boot\nregatta-vm-agent: why\r\n{trace}"));
        assert!(said.starts_with("regatta-vm-agent: why\n"), "{said}");
        assert_eq!(said.lines().count(), 1 + TAIL);
    }
}
