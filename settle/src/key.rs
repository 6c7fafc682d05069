//! The private key that transactions are signed with, and the file it is in.
//!
//! # Invariants
//! - A key is read from a file that nobody but its owner can read, or not at all. What is checked is the file that was
//!   opened, not its name.
//! - A key is never printed: both formats show its address.
//! - Its bytes are overwritten when it is dropped, and those that were read are too.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, hex, keccak256};
use k256::ecdsa::{SigningKey, VerifyingKey};
use k256::elliptic_curve::zeroize::Zeroizing;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;

/// The longest that a key file can be: a prefix, 64 digits and a line's end.
const MAX_LENGTH: u64 = 2 + 64 + 2;

/// The bits of a file's mode that let others than its owner at it.
const OTHERS: u32 = 0o077;

/// A private key. Dropping it overwrites it.
pub struct Key {
    signer: SigningKey,
    address: Address,
}

/// Why a key file is not used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be opened or read.
    #[error("key file {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is a folder, a pipe or the like.
    #[error("key file {}: it is not a regular file", .path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Others than its owner can reach it.
    #[error("key file {}: its mode is {mode:04o}, which lets others at it: make it 0600 or 0400", .path.display())]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Somebody else owns it.
    #[error("key file {}: it belongs to user {owner}, not to user {user} or 0", .path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Who runs this.
        user: u32,
    },
    /// It does not hold 32 bytes in hexadecimal.
    #[error("key file {}: {length} bytes, not 64 hexadecimal digits, with or without 0x", .path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// How long it is, in bytes.
        length: u64,
    },
    /// The number is no key.
    #[error("key file {}: its number is 0 or not below the curve's order", .path.display())]
    Range {
        /// The file.
        path: PathBuf,
    },
}

/// The address of a public key.
pub(crate) fn address_of(key: &VerifyingKey) -> Address {
    let point = key.to_encoded_point(false);
    // After the point's tag: its two coordinates.
    let coordinates = point.as_bytes().get(1..).unwrap_or_default();
    Address::from_word(keccak256(coordinates))
}

impl Key {
    /// The key with these bytes; nothing if they are 0 or not below the curve's order.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let signer = SigningKey::from_bytes(bytes.into()).ok()?;
        let address = address_of(signer.verifying_key());
        Some(Self { signer, address })
    }

    /// Reads the key in the file at `path`, which the process's user or root owns and nobody else can reach.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let path = path.to_owned();
        let io = |source| KeyError::Io {
            path: path.clone(),
            source,
        };
        // A pipe without a writer would block the opening.
        let opened = File::options()
            .read(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(&path);
        let file = opened.map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(KeyError::NotAFile { path });
        }
        let mode = metadata.mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(KeyError::Mode { path, mode });
        }
        let (owner, user) = (metadata.uid(), geteuid().as_raw());
        if owner != user && owner != 0 {
            return Err(KeyError::Owner { path, owner, user });
        }
        let length = metadata.len();
        let mut text = Zeroizing::new(Vec::with_capacity(128));
        file.take(MAX_LENGTH + 1)
            .read_to_end(&mut text)
            .map_err(io)?;
        let mut bytes = Zeroizing::new([0; 32]);
        let digits = text.strip_suffix(b"\n").unwrap_or(&text);
        let digits = digits.strip_suffix(b"\r").unwrap_or(digits);
        let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
        if digits.len() != 64 || hex::decode_to_slice(digits, &mut *bytes).is_err() {
            return Err(KeyError::Form { path, length });
        }
        Self::from_bytes(&bytes).ok_or(KeyError::Range { path })
    }

    /// The account's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    pub(crate) fn signer(&self) -> &SigningKey {
        &self.signer
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.address)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key of {}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    /// The curve's order: one more than the largest number that is a key.
    const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

    /// A file with `text` and `mode`, in a folder of its own.
    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_key_is_read_with_or_without_prefix_and_line_end() {
        let digits = "46".repeat(32);
        for text in [
            digits.clone(),
            format!("0x{digits}"),
            format!("{digits}\n"),
            format!("0x{digits}\r\n"),
        ] {
            for mode in [0o600, 0o400] {
                let (_folder, path) = file(&text, mode);
                let key = Key::read(&path).unwrap();
                let address = "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F";
                assert_eq!(key.address().to_string(), address);
                for shown in [format!("{key:?}"), format!("{key:#?}"), key.to_string()] {
                    assert!(
                        shown.contains(address) && !shown.contains("4646"),
                        "{shown}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_file_that_others_can_reach_is_refused_whatever_the_bit() {
        let digits = "46".repeat(32);
        for mode in 0..=0o777 {
            let (_folder, path) = file(&digits, mode | 0o400);
            let (others, read) = ((mode & 0o077) != 0, Key::read(&path));
            assert_eq!(
                matches!(&read, Err(KeyError::Mode { .. })),
                others,
                "{mode:o}"
            );
            assert!(others || read.is_ok(), "{mode:o}");
            if let Err(error) = read {
                let error = error.to_string();
                let named = format!("{:04o}", mode | 0o400);
                assert!(error.contains(&named) && error.contains("0600"), "{error}");
                assert!(!error.contains("4646"), "{error}");
            }
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in [
            "",
            "0x",
            "\n",
            "46",
            &"46".repeat(33),
            &"zz".repeat(32),
            &"46".repeat(5000),
        ] {
            let (_folder, path) = file(text, 0o600);
            let error = Key::read(&path).unwrap_err();
            assert!(matches!(error, KeyError::Form { .. }), "{error}");
        }
        for text in ["00".repeat(32), ORDER.to_owned(), "ff".repeat(32)] {
            let (_folder, path) = file(&text, 0o600);
            let error = Key::read(&path).unwrap_err();
            assert!(matches!(error, KeyError::Range { .. }), "{error}");
        }
        let largest = ORDER.replace("4141", "4140");
        let (_folder, path) = file(&largest, 0o600);
        assert!(Key::read(&path).is_ok());
    }

    #[test]
    fn what_is_no_file_is_refused_and_a_link_is_judged_by_what_it_names() {
        let (folder, path) = file(&"46".repeat(32), 0o640);
        assert!(matches!(
            Key::read(folder.path()),
            Err(KeyError::NotAFile { .. })
        ));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(
            Key::read(&link),
            Err(KeyError::Mode { mode: 0o640, .. })
        ));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(Key::read(&link).is_ok());
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(matches!(Key::read(&pipe), Err(KeyError::NotAFile { .. })));
    }
}
