//! Gets the node and the exchange's compiled contracts, once.
//!
//! Both come from npm with pinned versions and digests, into the build's target folder. They are fetched and never
//! part of this repository: the exchange's contracts are under the GPL.
//!
//! # Invariants
//! - A package is complete and of the pinned digest under its final name, or not there.
//! - Processes that start at once download a package once: one holds the lock, the others wait for it.
//! - Nothing is downloaded when it is there.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alloy_primitives::{Bytes, hex};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha512};

use crate::error::{Foreign, LabError};

/// A package of npm's registry.
struct Package {
    name: &'static str,
    version: &'static str,
    /// The folder that it is unpacked to.
    folder: &'static str,
    /// SHA-512 of its archive, as in the registry's `dist.integrity`.
    digest: &'static str,
}

const ANVIL_X86_64: Package = Package {
    name: "@foundry-rs/anvil-linux-amd64",
    version: "1.7.1",
    folder: "anvil-amd64-1.7.1",
    digest: "f979928726c46b17c2aebd0e514670604cb63a7619b79a471fd4f306d2efdfe56b2b43bf00db8d49511a86a3612879605fb191279f77f37a1f361c644562184e",
};

const ANVIL_AARCH64: Package = Package {
    name: "@foundry-rs/anvil-linux-arm64",
    version: "1.7.1",
    folder: "anvil-arm64-1.7.1",
    digest: "ca41c998538674147cfbdb2638a066f596430820a42d072d88738075d2ef998c7d98f7810cc7eaea33f9d61298b0ee4c1bc0a53cb4a559ef89a625cf8e85e005",
};

const EXCHANGE: Package = Package {
    name: "@uniswap/v2-core",
    version: "1.0.1",
    folder: "v2-core-1.0.1",
    digest: "32dc9bb6450f4b2caca8b636536d743410de0875fe96d1edde800319d8eaa138596854432b033a93535bdc5d00de1939870b90bf2b455a1ad61ce12aea7549f1",
};

/// What the lab starts and deploys.
#[derive(Clone, Debug)]
pub struct Kit {
    /// The node's binary.
    pub anvil: PathBuf,
    /// The factory's code as it stands on chain.
    pub factory: Bytes,
    /// A pair's code as it stands on chain.
    pub pair: Bytes,
    /// The code that makes a pair; its hash enters a pair's address.
    pub pair_init: Bytes,
}

impl Kit {
    /// The kit in the target folder; what is missing is fetched first.
    pub fn fetch() -> Result<Self, LabError> {
        Self::fetch_to(&target_folder().join("chain-lab"))
    }

    /// The same in a folder of the caller's choice.
    pub fn fetch_to(folder: &Path) -> Result<Self, LabError> {
        let node = unpacked(folder, node_package()?)?;
        let build = unpacked(folder, &EXCHANGE)?.join("build");
        let pair = build.join("UniswapV2Pair.json");
        Ok(Self {
            anvil: node.join("bin/anvil"),
            factory: code(&build.join("UniswapV2Factory.json"), "deployedBytecode")?,
            pair: code(&pair, "deployedBytecode")?,
            pair_init: code(&pair, "bytecode")?,
        })
    }
}

fn node_package() -> Result<&'static Package, LabError> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok(&ANVIL_X86_64),
        ("linux", "aarch64") => Ok(&ANVIL_AARCH64),
        (os, arch) => Err(LabError::Platform { os, arch }),
    }
}

/// The target folder that this binary was built in, or the one that cargo would use.
fn target_folder() -> PathBuf {
    let built_in = std::env::current_exe().ok().and_then(|exe| {
        let mut folders = exe.ancestors();
        // Cargo marks the folder so that backups leave it out.
        let target = folders.find(|folder| folder.join("CACHEDIR.TAG").exists());
        target.map(Path::to_owned)
    });
    let configured = || std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let standard = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    built_in.or_else(configured).unwrap_or_else(standard)
}

/// The folder with the contents of `package`.
fn unpacked(folder: &Path, package: &Package) -> Result<PathBuf, LabError> {
    let place = folder.join(package.folder);
    if place.exists() {
        return Ok(place);
    }
    fs::create_dir_all(folder).map_err(|source| LabError::io("make", folder, source))?;
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(|source| LabError::io("create", &path, source))?;
    lock.lock()
        .map_err(|source| LabError::io("lock", &path, source))?;
    // Another process may have brought it while this one waited.
    if !place.exists() {
        let work = tempfile::tempdir_in(folder)
            .map_err(|source| LabError::io("make a folder in", folder, source))?;
        let archive = download(work.path(), package)?;
        check(&archive, package)?;
        unpack(&archive, work.path()).map_err(|source| LabError::io("unpack", &archive, source))?;
        // Every npm archive has its files in this one folder.
        fs::rename(work.path().join("package"), &place)
            .map_err(|source| LabError::io("name", &place, source))?;
    }
    Ok(place)
}

fn download(folder: &Path, package: &Package) -> Result<PathBuf, LabError> {
    let wanted = format!("{}@{}", package.name, package.version);
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--ignore-scripts", &wanted]);
    // Away from this workspace, whose folders npm need not know.
    npm.current_dir(folder).stdin(Stdio::null());
    let done = npm.output().map_err(|source| {
        let package = wanted.clone();
        match source.kind() {
            ErrorKind::NotFound => LabError::NoNpm { package },
            _ => LabError::Npm {
                package,
                said: Foreign::new(&source.to_string()),
            },
        }
    })?;
    let refused = |said: &[u8]| LabError::Npm {
        package: wanted.clone(),
        said: Foreign::new(&String::from_utf8_lossy(said)),
    };
    if !done.status.success() {
        return Err(refused(&[done.stderr, done.stdout].concat()));
    }
    let files = fs::read_dir(folder).map_err(|source| LabError::io("list", folder, source))?;
    let mut paths = files.filter_map(|file| file.ok().map(|file| file.path()));
    paths
        .find(|path| path.extension().is_some_and(|ends| ends == "tgz"))
        .ok_or_else(|| refused(b"it succeeded but left no archive"))
}

fn check(archive: &Path, package: &Package) -> Result<(), LabError> {
    let bytes = fs::read(archive).map_err(|source| LabError::io("read", archive, source))?;
    let found = hex::encode(Sha512::digest(&bytes));
    if found == package.digest {
        return Ok(());
    }
    Err(LabError::Digest {
        package: format!("{}@{}", package.name, package.version),
        found,
        expected: package.digest,
    })
}

fn unpack(archive: &Path, folder: &Path) -> io::Result<()> {
    tar::Archive::new(GzDecoder::new(File::open(archive)?)).unpack(folder)
}

/// The bytes under `evm.{which}.object` of a compiled contract.
fn code(path: &Path, which: &str) -> Result<Bytes, LabError> {
    let text = fs::read_to_string(path).map_err(|source| LabError::io("read", path, source))?;
    let wrong = |what: String| LabError::Artifact {
        path: path.to_owned(),
        what,
    };
    let file: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let object = file.pointer(&format!("/evm/{which}/object"));
    let object = object.and_then(Value::as_str);
    let object = object.ok_or_else(|| wrong(format!("evm.{which}.object is no text")))?;
    let bytes = hex::decode(object).map_err(|error| wrong(format!("evm.{which}: {error}")))?;
    if bytes.is_empty() {
        return Err(wrong(format!("evm.{which}.object is empty")));
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_with_another_digest_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.tgz");
        fs::write(&archive, b"not the package").unwrap();
        let error = check(&archive, &EXCHANGE).unwrap_err().to_string();
        assert!(error.contains("@uniswap/v2-core@1.0.1"), "{error}");
        assert!(error.contains(EXCHANGE.digest), "{error}");
    }

    #[test]
    fn a_file_that_is_no_compiled_contract_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Pair.json");
        for text in [
            "{",
            "{}",
            r#"{"evm":{"bytecode":{"object":7}}}"#,
            r#"{"evm":{"bytecode":{"object":""}}}"#,
            r#"{"evm":{"bytecode":{"object":"0g"}}}"#,
        ] {
            fs::write(&path, text).unwrap();
            let error = code(&path, "bytecode").unwrap_err();
            assert!(
                matches!(error, LabError::Artifact { .. }),
                "{text}: {error}"
            );
        }
    }
}
