//! Reading the kernel's files, or a copy of them.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The most of a file that is read. The longest, `mountinfo`, has a few hundred bytes a mount.
const MAX_BYTES: u64 = 64 << 20;

/// What came of reading a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// All of it.
    Text(Vec<u8>),
    /// There is no such file.
    Absent,
    /// There is one, or may be, and it was not read.
    Unreadable(ErrorKind),
}

/// Something that has files.
pub trait Files {
    /// Reads the file at `path`, which is absolute.
    fn read(&self, path: &[u8]) -> Content;

    /// Whether there is something at `path`.
    fn exists(&self, path: &[u8]) -> bool {
        !matches!(self.read(path), Content::Absent)
    }
}

/// The files below a folder: `/` for the machine itself, another for a copy of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The files below `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The machine's own files.
    #[must_use]
    pub fn machine() -> Self {
        Self::new("/")
    }

    /// Where `path` is on this machine.
    #[must_use]
    pub fn locate(&self, path: &[u8]) -> PathBuf {
        self.root
            .join(as_path(path.strip_prefix(b"/").unwrap_or(path)))
    }
}

impl Files for Tree {
    fn read(&self, path: &[u8]) -> Content {
        match read(&self.locate(path)) {
            Ok(text) => Content::Text(text),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Content::Absent,
                kind => Content::Unreadable(kind),
            },
        }
    }

    fn exists(&self, path: &[u8]) -> bool {
        !matches!(
            self.locate(path).symlink_metadata().map_err(|e| e.kind()),
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory)
        )
    }
}

/// A file that is no regular one (a device that was mounted over it to hide it, a pipe that would block)
/// was not read.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut text = Vec::new();
    let file = std::fs::File::open(path)?;
    let read = file.take(MAX_BYTES).read_to_end(&mut text)?;
    if read as u64 == MAX_BYTES {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

#[cfg(unix)]
fn as_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Elsewhere a path is text; one that is not has no file.
#[cfg(not(unix))]
fn as_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
