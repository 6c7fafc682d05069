//! A file that ends early, that was altered, or that lies.

use crate::{events, header, read, written};
use flate2::write::DeflateEncoder;
use regatta_bot::capture::{
    Damage, FRAME, Kind, MAGIC, MAX_PAYLOAD, PROLOGUE, ReadError, Tail, VERSION, encode_header,
};
use std::io::Write;

fn prologue() -> usize {
    usize::try_from(PROLOGUE).unwrap()
}

#[test]
fn cut_at_any_byte_it_gives_the_records_that_are_whole() {
    let (header, events) = (header(), events());
    let bytes = written(&header, &events, true);
    let ends = read(&bytes).unwrap().ends;
    assert_eq!(ends.len(), events.len() + 1);
    for cut in 0..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let Some(read_events) = whole.checked_sub(1) else {
            let offset = if cut < prologue() { 0 } else { PROLOGUE };
            assert_eq!(
                read(&bytes[..cut]).err(),
                Some(ReadError::NoHeader { offset }),
                "{cut}"
            );
            continue;
        };
        let read = read(&bytes[..cut]).unwrap();
        assert_eq!(read.events, events[..read_events], "{cut}");
        let offset = ends[read_events] as u64;
        let tail = if ends[read_events] == cut {
            Tail::Open { offset }
        } else {
            Tail::Torn { offset }
        };
        assert_eq!(read.ended, Ok(tail), "{cut}");
    }
    assert_eq!(read(&bytes).unwrap().ended, Ok(Tail::Ended));
    assert_eq!(
        written(&header, &events, false),
        bytes[..ends[events.len()]]
    );
}

#[test]
fn any_flipped_bit_is_found_in_its_record_and_nothing_wrong_is_read() {
    let events = events();
    let whole = written(&header(), &events, true);
    let ends = read(&whole).unwrap().ends;
    for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        // The record with the flipped bit, from the header on, and where it begins.
        let record = ends.iter().filter(|end| **end <= at).count();
        let begins = match record {
            0 => PROLOGUE,
            after => ends[after - 1] as u64,
        };
        let error = match read(&bytes) {
            Err(error) => {
                assert_eq!(record, 0, "{at} {bit}");
                error
            }
            Ok(read) => {
                assert_eq!(read.events, events[..record - 1], "{at} {bit}");
                read.ended.unwrap_err()
            }
        };
        let in_head = (at as u64).checked_sub(begins).is_some_and(|at| at < FRAME);
        match (at, error) {
            (at, ReadError::Magic) if at < MAGIC.len() => {}
            (at, ReadError::Version { found }) if at < prologue() => assert_ne!(found, VERSION),
            (_, ReadError::Damaged { offset, damage }) => {
                assert_eq!(offset, begins, "{at} {bit}");
                let expected = if in_head {
                    Damage::HeadChecksum
                } else {
                    Damage::PayloadChecksum
                };
                assert_eq!(damage, expected, "{at} {bit}");
            }
            (_, error) => panic!("bit {bit} of byte {at}: {error}"),
        }
    }
}

/// A record with right checksums, whatever else it says.
pub(crate) fn record(kind: u8, packed: &[u8], lengths: (u32, u32)) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&lengths.0.to_le_bytes());
    bytes.extend_from_slice(&lengths.1.to_le_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(&crc32fast::hash(packed).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend_from_slice(packed);
    bytes
}

/// Packs payloads as a capture does.
pub(crate) struct Packer(DeflateEncoder<Vec<u8>>);

impl Packer {
    pub(crate) fn new() -> Self {
        Self(DeflateEncoder::new(Vec::new(), flate2::Compression::best()))
    }

    pub(crate) fn packed(&mut self, payload: &[u8]) -> Vec<u8> {
        self.0.write_all(payload).unwrap();
        self.0.flush().unwrap();
        std::mem::take(self.0.get_mut())
    }

    pub(crate) fn record(&mut self, kind: Kind, payload: &[u8]) -> Vec<u8> {
        let packed = self.packed(payload);
        let lengths = [packed.len(), payload.len()].map(|l| u32::try_from(l).unwrap());
        record(kind as u8, &packed, lengths.into())
    }

    /// The beginning of a capture with the header of these tests.
    pub(crate) fn start(&mut self) -> Vec<u8> {
        let mut payload = Vec::new();
        encode_header(&header(), &mut payload).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend(self.record(Kind::Header, &payload));
        bytes
    }
}

/// What is wrong with a capture whose record after the header is this.
fn damage(record: impl Fn(&mut Packer) -> Vec<u8>) -> Damage {
    let mut packer = Packer::new();
    let mut bytes = packer.start();
    let begins = bytes.len() as u64;
    bytes.extend(record(&mut packer));
    match read(&bytes).unwrap().ended {
        Err(ReadError::Damaged { offset, damage }) => {
            assert_eq!(offset, begins);
            damage
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_that_lies_is_an_error_at_its_first_byte() {
    let block = Kind::Block as u8;
    let most = MAX_PAYLOAD + MAX_PAYLOAD / 8;
    for kind in [0, 7, 255] {
        assert_eq!(damage(|_| record(kind, b"", (0, 0))), Damage::Kind(kind));
    }
    for (lengths, bytes) in [
        ((most + 1, 1), most + 1),
        ((u32::MAX, u32::MAX), u32::MAX),
        ((1, MAX_PAYLOAD + 1), MAX_PAYLOAD + 1),
    ] {
        assert_eq!(
            damage(|_| record(block, b"x", lengths)),
            Damage::TooLong { bytes }
        );
    }
    // Bytes that are no deflate stream, and a stream that ends itself.
    assert_eq!(
        damage(|_| record(block, &[0xFF; 9], (9, 9))),
        Damage::Packing
    );
    assert_eq!(damage(|_| record(block, &[3, 0], (2, 0))), Damage::Packing);
    for stated in [0, 99, 101, MAX_PAYLOAD] {
        let lies = |packer: &mut Packer| {
            let packed = packer.packed(&[5; 100]);
            record(
                block,
                &packed,
                (u32::try_from(packed.len()).unwrap(), stated),
            )
        };
        assert_eq!(damage(lies), Damage::Length { stated });
    }
    assert_eq!(
        damage(|p| p.record(Kind::Header, b"")),
        Damage::SecondHeader
    );
    let end = Kind::End as u8;
    assert_eq!(
        damage(|_| record(end, &[0], (1, 0))),
        Damage::Length { stated: 0 }
    );
}

#[test]
fn nothing_follows_the_end_and_nothing_precedes_the_header() {
    let mut bytes = written(&header(), &events(), true);
    let offset = bytes.len() as u64;
    bytes.push(0);
    let damage = Damage::AfterEnd;
    assert_eq!(
        read(&bytes).unwrap().ended,
        Err(ReadError::Damaged { offset, damage })
    );

    let start = Packer::new().start();
    for record in [
        Packer::new().record(Kind::Block, b"x"),
        record(Kind::End as u8, b"", (0, 0)),
    ] {
        let bytes = [&start[..prologue()], &record].concat();
        let damage = Damage::NotTheHeader;
        let offset = PROLOGUE;
        assert_eq!(
            read(&bytes).err(),
            Some(ReadError::Damaged { offset, damage })
        );
    }
}

#[test]
fn what_is_no_capture_is_told_from_one_of_another_version() {
    assert_eq!(
        read(b"pair,token0,reserve0\n").err(),
        Some(ReadError::Magic)
    );
    // A transfer as text makes one byte of the two at its end.
    assert_eq!(read(b"\x89RGCAP\n\x01\x00").err(), Some(ReadError::Magic));
    let mut bytes = written(&header(), &[], true);
    bytes[MAGIC.len()] = 2;
    assert_eq!(read(&bytes).err(), Some(ReadError::Version { found: 2 }));
}
