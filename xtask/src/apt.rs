//! Packages of Debian's archive, downloaded and unpacked, never installed.
//!
//! # Invariants
//! - Nothing of the machine's is changed, and no privilege is needed.
//! - A folder of unpacked packages is complete, or not there.
//! - The version is the one that the archive has when the packages are fetched.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::cargo::run;
use crate::verb::Error;

/// Whether this machine lacks the package manager.
pub(crate) fn missing() -> bool {
    let version = Command::new("apt-get").arg("--version").output();
    version.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The folder `name` below `folder` with `packages` and what of their dependencies this machine lacks,
/// unpacked: as they were before, else as the archive has them now.
pub(crate) fn unpacked(
    folder: &Path,
    name: &str,
    packages: &[&str],
    out: &mut dyn Write,
) -> Result<PathBuf, Error> {
    let root = folder.join(name);
    if root.exists() {
        return Ok(root);
    }
    let begun = Instant::now();
    // Complete under its name, or not there.
    let partial = folder.join("partial");
    remove(&partial)?;
    let apt = Apt::new(folder)?;
    let archives = apt.download(packages)?;
    for archive in &archives {
        run(Command::new("dpkg-deb")
            .arg("-x")
            .arg(archive)
            .arg(&partial))?;
    }
    apt.remove()?;
    fs::rename(&partial, &root).map_err(|source| Error::io("name", &root, source))?;
    writeln!(
        out,
        "{} packages downloaded and unpacked in {:.0} s",
        archives.len(),
        begun.elapsed().as_secs_f64()
    )?;
    Ok(root)
}

/// Debian's package manager with lists and downloads in a folder of ours: nothing of the machine's is
/// changed, and no privilege is needed.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(folder: &Path) -> Result<Self, Error> {
        let apt = Self {
            folder: folder.join("apt"),
        };
        for path in [apt.lists(), apt.archives()] {
            let path = path.join("partial");
            fs::create_dir_all(&path).map_err(|source| Error::io("create", &path, source))?;
        }
        Ok(apt)
    }

    fn lists(&self) -> PathBuf {
        self.folder.join("lists")
    }

    fn archives(&self) -> PathBuf {
        self.folder.join("archives")
    }

    fn get(&self) -> Command {
        let mut command = Command::new("apt-get");
        command.arg("--quiet=2");
        for option in [
            format!("Dir::State::lists={}", self.lists().display()),
            format!("Dir::Cache::archives={}", self.archives().display()),
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            "Debug::NoLocking=1".to_owned(),
            "APT::Sandbox::User=".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command
    }

    /// Downloads `packages`, in the version that the archive has now, and what of their dependencies this
    /// machine lacks.
    fn download(&self, packages: &[&str]) -> Result<Vec<PathBuf>, Error> {
        run(self.get().arg("update"))?;
        let mut command = self.get();
        command.args(["--yes", "--download-only", "--no-install-recommends"]);
        run(command.arg("install").args(packages))?;
        let folder = self.archives();
        let unreadable = |source| Error::io("list", &folder, source);
        let mut archives = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                archives.push(path);
            }
        }
        archives.sort();
        Ok(archives)
    }

    fn remove(&self) -> Result<(), Error> {
        remove(&self.folder)
    }
}

fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::io("clear", folder, source))
        }
        _ => Ok(()),
    }
}
