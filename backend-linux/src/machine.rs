//! The machine that is asked: this one, or a copy of another.

use crate::affinity;
use crate::cgroup::{CpuSet, CpuSetError};
use crate::detect::{Detection, detect};
use crate::files::{Content, Files, Tree};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file of a copy that holds the affinity mask, as a list of CPUs.
const AFFINITY: &[u8] = b"/affinity";

/// A machine: where its files are and who knows its mask.
#[derive(Clone, Debug)]
pub struct Machine {
    files: Tree,
    mask: Mask,
}

#[derive(Clone, Debug)]
enum Mask {
    /// The kernel is asked each time.
    Live,
    /// A copy has one for good.
    Copied(Option<CpuSet>),
}

/// A copy of a machine cannot be used.
#[derive(Debug, Error)]
pub enum MachineError {
    /// There is no such folder.
    #[error("{} is no folder: it takes a copy of a machine's files, with proc/self/cgroup in it", path.display())]
    NoFolder {
        /// What was given.
        path: PathBuf,
    },
    /// The list of CPUs is none.
    #[error("{}: {error}", path.display())]
    Affinity {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: CpuSetError,
    },
}

impl Machine {
    /// This machine, and this process on it.
    #[must_use]
    pub fn this() -> Self {
        Self {
            files: Tree::machine(),
            mask: Mask::Live,
        }
    }

    /// A copy of a machine below `root`: `proc/self/cgroup`, `proc/self/mountinfo`, the groups' files under
    /// their mount points, and `affinity`, a list of CPUs in place of the mask. Without that file the
    /// mask is unknown.
    pub fn copy(root: &Path) -> Result<Self, MachineError> {
        if !root.is_dir() {
            return Err(MachineError::NoFolder {
                path: root.to_owned(),
            });
        }
        let files = Tree::new(root);
        let mask = match files.read(AFFINITY) {
            Content::Text(text) => {
                Some(
                    CpuSet::parse(&text).map_err(|error| MachineError::Affinity {
                        path: files.locate(AFFINITY),
                        error,
                    })?,
                )
            }
            Content::Absent | Content::Unreadable(_) => None,
        };
        Ok(Self {
            files,
            mask: Mask::Copied(mask),
        })
    }

    /// The machine's files.
    #[must_use]
    pub const fn files(&self) -> &Tree {
        &self.files
    }

    /// The affinity mask, if it is known.
    #[must_use]
    pub fn mask(&self) -> Option<CpuSet> {
        match &self.mask {
            Mask::Live => affinity::mask(),
            Mask::Copied(mask) => mask.clone(),
        }
    }

    /// What bounds the process now.
    ///
    /// A process may be moved while it is looked at; then what was read is of two groups, and it is
    /// looked at again.
    #[must_use]
    pub fn detect(&self) -> Detection {
        const TRIES: u32 = 4;
        let where_ = || self.files.read(crate::detect::MEMBERSHIP);
        let mut before = where_();
        for _ in 1..TRIES {
            let found = detect(&self.files, self.mask().as_ref());
            let after = where_();
            if before == after {
                return found;
            }
            before = after;
        }
        detect(&self.files, self.mask().as_ref())
    }
}
