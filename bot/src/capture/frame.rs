//! Records as pieces of a file: their head, their checksums and their packing.
//!
//! All payloads of a capture are one deflate stream, flushed to a byte boundary after each record: a record can be
//! unpacked when those before it have been, and needs nothing that comes after.

use super::error::Damage;
use super::{Kind, MAX_PAYLOAD};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};
use std::io::{self, Write};

/// Bytes of a head: the packed length, the unpacked length, the kind, the checksum of the packed payload, and that
/// of all of this.
pub(super) const HEAD: usize = 17;

/// Bytes of the head that its checksum covers.
const COVERED: usize = 13;

/// How much is unpacked at a time.
const CHUNK: usize = 32 << 10;

/// A head that was checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Bytes of payload in the file.
    pub(super) packed: u32,
    /// Bytes of payload unpacked.
    pub(super) unpacked: u32,
    pub(super) kind: Kind,
    checksum: u32,
}

impl Head {
    pub(super) fn read(bytes: &[u8; HEAD]) -> Result<Self, Damage> {
        let (covered, checksum) = bytes.split_at(COVERED);
        let mut words = [0; 4];
        words.copy_from_slice(checksum);
        if crc32fast::hash(covered) != u32::from_le_bytes(words) {
            return Err(Damage::HeadChecksum);
        }
        let word = |at: usize| {
            let mut word = [0; 4];
            for (byte, from) in word.iter_mut().zip(bytes.iter().skip(at)) {
                *byte = *from;
            }
            u32::from_le_bytes(word)
        };
        let [_, _, _, _, _, _, _, _, kind, ..] = *bytes;
        let head = Self {
            packed: word(0),
            unpacked: word(4),
            kind: Kind::from_byte(kind).ok_or(Damage::Kind(kind))?,
            checksum: word(9),
        };
        if head.packed > MAX_PAYLOAD + MAX_PAYLOAD / 8 {
            return Err(Damage::TooLong { bytes: head.packed });
        }
        if head.unpacked > MAX_PAYLOAD {
            return Err(Damage::TooLong {
                bytes: head.unpacked,
            });
        }
        Ok(head)
    }

    /// Whether this is the payload that the head goes with.
    pub(super) fn check(&self, payload: &[u8]) -> Result<(), Damage> {
        if crc32fast::hash(payload) == self.checksum {
            Ok(())
        } else {
            Err(Damage::PayloadChecksum)
        }
    }
}

/// The head of a record with this payload.
fn head(kind: Kind, packed: &[u8], unpacked: u32) -> io::Result<[u8; HEAD]> {
    let length = u32::try_from(packed.len()).map_err(io::Error::other)?;
    let mut bytes = [0; HEAD];
    let mut rest = bytes.as_mut_slice();
    rest.write_all(&length.to_le_bytes())?;
    rest.write_all(&unpacked.to_le_bytes())?;
    rest.write_all(&[kind as u8])?;
    rest.write_all(&crc32fast::hash(packed).to_le_bytes())?;
    let (covered, mut checksum) = bytes.split_at_mut(COVERED);
    checksum.write_all(&crc32fast::hash(covered).to_le_bytes())?;
    Ok(bytes)
}

/// Packs payloads, one after the other.
pub(super) struct Packer(DeflateEncoder<Vec<u8>>);

impl Packer {
    pub(super) fn new() -> Self {
        Self(DeflateEncoder::new(Vec::new(), Compression::default()))
    }

    /// A whole record.
    pub(super) fn record(&mut self, kind: Kind, payload: &[u8]) -> io::Result<Vec<u8>> {
        let unpacked = u32::try_from(payload.len()).map_err(io::Error::other)?;
        if !payload.is_empty() {
            self.0.write_all(payload)?;
            // To the next byte, so that all of the payload is there.
            self.0.flush()?;
        }
        let packed = std::mem::take(self.0.get_mut());
        let mut record = head(kind, &packed, unpacked)?.to_vec();
        record.extend_from_slice(&packed);
        Ok(record)
    }
}

/// Unpacks payloads, one after the other.
pub(super) struct Unpacker {
    inflate: Decompress,
    chunk: Vec<u8>,
}

impl Unpacker {
    pub(super) fn new() -> Self {
        Self {
            inflate: Decompress::new(false),
            chunk: vec![0; CHUNK],
        }
    }

    /// Puts the payload that `packed` unpacks to into `payload`, which grows by what there is and never by
    /// what is said.
    pub(super) fn unpack(
        &mut self,
        packed: &[u8],
        stated: u32,
        payload: &mut Vec<u8>,
    ) -> Result<(), Damage> {
        payload.clear();
        let (mut rest, length) = (packed, Damage::Length { stated });
        loop {
            let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress(rest, &mut self.chunk, FlushDecompress::Sync)
                .map_err(|_| Damage::Packing)?;
            let taken = place(self.inflate.total_in() - before_in);
            let given = place(self.inflate.total_out() - before_out);
            rest = rest.get(taken..).unwrap_or_default();
            payload.extend(self.chunk.iter().take(given));
            if payload.len() > stated as usize {
                return Err(length);
            }
            if status == Status::StreamEnd {
                // The stream has no end of its own: the file has.
                return Err(Damage::Packing);
            }
            if rest.is_empty() && given < self.chunk.len() {
                break;
            }
            if taken == 0 && given == 0 {
                return Err(Damage::Packing);
            }
        }
        if payload.len() == stated as usize {
            Ok(())
        } else {
            Err(length)
        }
    }
}

fn place(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
