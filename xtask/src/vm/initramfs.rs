//! The archive that the kernel unpacks into memory and starts from: cpio in its "newc" form.
//!
//! # Invariants
//! - Headers and contents begin at multiples of four bytes.
//! - A folder comes before what is in it.

use crate::verb::Error;

/// Where a header or a content begins.
const ALIGN: usize = 4;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// The name of the entry that ends an archive.
const END: &str = "TRAILER!!!";

/// An archive that is being written.
pub(super) struct Initramfs {
    bytes: Vec<u8>,
    entries: u32,
}

impl Initramfs {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            entries: 0,
        }
    }

    /// A folder.
    pub(super) fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER, (0, 0), (&[], 0));
    }

    /// A file that may be run.
    pub(super) fn program(&mut self, path: &str, content: &[u8]) -> Result<(), Error> {
        let length = u32::try_from(content.len()).map_err(|_| {
            let length = content.len();
            Error::Failed(format!(
                "vm: {path} has {length} bytes: it takes less than 4 GiB"
            ))
        })?;
        self.entry(path, PROGRAM, (0, 0), (content, length));
        Ok(())
    }

    /// A device with this major and minor number.
    pub(super) fn character_device(&mut self, path: &str, numbers: (u32, u32)) {
        self.entry(path, CHARACTER_DEVICE, numbers, (&[], 0));
    }

    /// The archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry(END, 0, (0, 0), (&[], 0));
        self.bytes
    }

    fn entry(
        &mut self,
        path: &str,
        mode: u32,
        (major, minor): (u32, u32),
        (content, length): (&[u8], u32),
    ) {
        self.entries += 1;
        let name_length = u32::try_from(path.len() + 1).unwrap_or(u32::MAX);
        let links = if mode == FOLDER { 2 } else { 1 };
        self.bytes.extend_from_slice(b"070701");
        // Number, mode, owner, group, links, time, length, device, device meant, name, checksum.
        for field in [
            self.entries,
            mode,
            0,
            0,
            links,
            0,
            length,
            0,
            0,
            major,
            minor,
            name_length,
            0,
        ] {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        let whole = self.bytes.len().next_multiple_of(ALIGN);
        self.bytes.resize(whole, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads an archive back: name, mode and content of each entry.
    fn entries(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        const HEADER: usize = 6 + 13 * 8;
        let mut found = Vec::new();
        while !bytes.is_empty() {
            assert_eq!(&bytes[..6], b"070701");
            let field = |i: usize| {
                let text = str::from_utf8(&bytes[6 + 8 * i..][..8]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (mode, length, name_length) = (field(1), field(6) as usize, field(11) as usize);
            let name = bytes[HEADER..][..name_length - 1].to_vec();
            assert_eq!(bytes[HEADER + name_length - 1], 0);
            let content = (HEADER + name_length).next_multiple_of(4);
            found.push((
                String::from_utf8(name).unwrap(),
                mode,
                bytes[content..][..length].to_vec(),
            ));
            bytes = &bytes[(content + length).next_multiple_of(4)..];
        }
        found
    }

    #[test]
    fn what_is_put_in_is_read_back() {
        let mut files = Initramfs::new();
        files.folder("dev");
        files.character_device("dev/console", (5, 1));
        for length in 0..9 {
            let name = format!("program-{}", "x".repeat(length));
            files.program(&name, &vec![7; length]).unwrap();
        }
        let read = entries(&files.finish());
        assert_eq!(read[0], ("dev".to_owned(), FOLDER, vec![]));
        assert_eq!(read[1].1, CHARACTER_DEVICE);
        for (length, entry) in read[2..11].iter().enumerate() {
            assert_eq!((entry.1, entry.2.len()), (PROGRAM, length), "{}", entry.0);
        }
        assert_eq!(read.last().unwrap().0, END);
    }
}
