//! `build`: what a release is made of, as a folder and as one archive.
//!
//! # Invariants
//! - The same files give the same archive, byte for byte: entries in byte order of their path, no owner,
//!   no time, two modes.
//! - The manifest names every file of the folder but itself, with its size and SHA-256.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tar::HeaderMode;

use crate::cargo::{Metadata, Rustc, built_executable, cargo};
use crate::tidy::tracked_paths;
use crate::verb::{Args, Error, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "build",
    doc: "the release: builds the binary and assembles it with its documents, a manifest and an archive",
    flags: &[],
    run,
};

const PACKAGE: &str = "regatta-bot";
const BINARY: &str = "regatta";
const MANIFEST: &str = "manifest.json";

/// Documents beside the binary; folders with all that git tracks in them.
const DOCUMENTS: &[&str] = &["README.md", "LICENSE-MIT", "LICENSE-APACHE", "docs"];

/// Where a release is put together.
pub(crate) struct Layout {
    version: String,
    rustc: Rustc,
    /// `target/dist`
    dist: PathBuf,
}

impl Layout {
    /// The layout for this workspace's version and this machine's target.
    pub(crate) fn load() -> Result<Self, Error> {
        let metadata = Metadata::load()?;
        let version = metadata.member(PACKAGE)?.version.clone();
        let dist = Path::new(&metadata.target_directory).join("dist");
        Ok(Self {
            version,
            rustc: Rustc::load()?,
            dist,
        })
    }

    /// `regatta-VERSION-TARGET`
    fn name(&self) -> String {
        format!("{BINARY}-{}-{}", self.version, self.rustc.host)
    }

    fn folder(&self) -> PathBuf {
        self.dist.join(self.name())
    }

    /// The binary, once it is built.
    pub(crate) fn binary(&self) -> PathBuf {
        self.folder().join(BINARY)
    }
}

fn run(_: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let layout = Layout::load()?;
    let built = build_binary()?;
    let folder = layout.folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|source| Error::io("clear", &folder, source))?;
    }
    copy(&built, &folder, BINARY)?;
    let mut names = vec![BINARY.to_owned()];
    for path in documents()? {
        copy(Path::new(&path), &folder, &path)?;
        names.push(path);
    }
    names.sort();
    let manifest = Manifest {
        name: BINARY.to_owned(),
        version: layout.version.clone(),
        target: layout.rustc.host.clone(),
        rustc: layout.rustc.line.clone(),
        files: names
            .iter()
            .map(|name| Entry::of(&folder, name))
            .collect::<Result<_, _>>()?,
    };
    write_file(&folder.join(MANIFEST), &manifest.to_json()?)?;
    names.push(MANIFEST.to_owned());
    names.sort();

    let archive = archive(&folder, &layout.name(), &names)?;
    let archive_name = format!("{}.tar.gz", layout.name());
    let archive_path = layout.dist.join(&archive_name);
    write_file(&archive_path, &archive)?;
    let sum = sha256(&archive);
    write_file(
        &layout.dist.join(format!("{archive_name}.sha256")),
        format!("{sum}  {archive_name}\n").as_bytes(),
    )?;

    writeln!(out, "{}", folder.display())?;
    for Entry {
        path,
        bytes,
        sha256,
    } in &manifest.files
    {
        writeln!(out, "  {sha256} {bytes:>9} {path}")?;
    }
    writeln!(
        out,
        "{}\n  {sum} {:>9}",
        archive_path.display(),
        archive.len()
    )?;
    Ok(())
}

/// Builds the binary for release and returns where cargo put it.
pub(crate) fn build_binary() -> Result<PathBuf, Error> {
    let mut command = cargo();
    command.args([
        "build",
        "--release",
        "--locked",
        "--package",
        PACKAGE,
        "--bin",
        BINARY,
    ]);
    command.arg("--message-format=json-render-diagnostics");
    built_executable(&mut command)
}

/// The tracked files that go beside the binary, in byte order.
fn documents() -> Result<Vec<String>, Error> {
    let mut paths = Vec::new();
    for document in DOCUMENTS {
        let found = tracked_paths(document)?;
        if found.is_empty() {
            return Err(Error::Failed(format!(
                "build: git tracks no `{document}`, which a release has"
            )));
        }
        paths.extend(found);
    }
    Ok(paths)
}

fn copy(from: &Path, folder: &Path, name: &str) -> Result<(), Error> {
    let to = folder.join(name);
    let parent = to.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(|source| Error::io("create", parent, source))?;
    fs::copy(from, &to).map_err(|source| Error::io("copy", from, source))?;
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|source| Error::io("write", path, source))
}

/// What a release says about itself.
#[derive(Serialize)]
struct Manifest {
    name: String,
    version: String,
    target: String,
    rustc: String,
    files: Vec<Entry>,
}

/// One file of it.
#[derive(Serialize)]
struct Entry {
    path: String,
    bytes: usize,
    sha256: String,
}

impl Entry {
    fn of(folder: &Path, name: &str) -> Result<Self, Error> {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(|source| Error::io("read", &path, source))?;
        Ok(Self {
            path: name.to_owned(),
            bytes: bytes.len(),
            sha256: sha256(&bytes),
        })
    }
}

impl Manifest {
    fn to_json(&self) -> Result<Vec<u8>, Error> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|source| Error::Json {
            command: "build".to_owned(),
            source,
        })?;
        text.push(b'\n');
        Ok(text)
    }
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            // A `String` takes whatever it is given.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// The files `names` of `folder` under `root/` as a compressed tape archive.
fn archive(folder: &Path, root: &str, names: &[String]) -> Result<Vec<u8>, Error> {
    let gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut builder = tar::Builder::new(gzip);
    builder.mode(HeaderMode::Deterministic);
    for name in names {
        let path = folder.join(name);
        builder
            .append_path_with_name(&path, Path::new(root).join(name))
            .map_err(|source| Error::io("archive", &path, source))?;
    }
    Ok(builder.into_inner()?.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// A folder of two files, one of them executable, last changed `age` ago.
    fn folder(age: Duration) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["regatta", "docs/a.md"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, name).unwrap();
            fs::File::open(&path)
                .unwrap()
                .set_modified(SystemTime::now() - age)
                .unwrap();
        }
        folder
    }

    fn names() -> Vec<String> {
        vec!["docs/a.md".to_owned(), "regatta".to_owned()]
    }

    #[test]
    fn the_same_files_give_the_same_archive() {
        let (young, old) = (
            folder(Duration::ZERO),
            folder(Duration::from_secs(1_000_000)),
        );
        let of = |folder: &tempfile::TempDir| archive(folder.path(), "r", &names()).unwrap();
        assert_eq!(of(&young), of(&old));
        fs::write(young.path().join("regatta"), "other").unwrap();
        assert_ne!(of(&young), of(&old));
    }

    #[test]
    fn the_archive_unpacks_to_the_files() {
        let folder = folder(Duration::ZERO);
        let bytes = archive(folder.path(), "r", &names()).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&bytes[..]));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((entry.path().unwrap().display().to_string(), text));
        }
        let expected = ["docs/a.md", "regatta"].map(|name| (format!("r/{name}"), name.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_manifest_has_the_sum_of_each_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        let entry = Entry::of(folder.path(), "a").unwrap();
        // The one-block example of FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((entry.bytes, entry.sha256.as_str()), (3, expected));
    }
}
