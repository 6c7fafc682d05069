//! No length and no count of a capture makes its reader reserve memory that the file's bytes do not fill.
//!
//! One test in a binary of its own: the allocator counts for the whole process.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, in a helper too"
)]

use flate2::write::DeflateEncoder;
use regatta_bot::capture::{
    Chain, Damage, Header, Kind, MAGIC, MAX_COUNT, MAX_PAYLOAD, ReadError, Reader, Tail, VERSION,
    encode_header,
};
use regatta_bot::market::{Address, MarketBuilder, UntrustedText};
use std::alloc::System;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

mod counting {
    //! The system's allocator, which knows the most that was had at a time.
    #![expect(
        unsafe_code,
        reason = "the trait of an allocator is unsafe to implement"
    )]

    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts what it passes on.
    pub(crate) struct Counting {
        pub(crate) inner: System,
        pub(crate) had: AtomicUsize,
        pub(crate) most: AtomicUsize,
    }

    // SAFETY: every call goes to the system's allocator as it came, and so does every answer.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let had = self.had.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
            self.most.fetch_max(had, Ordering::Relaxed);
            // SAFETY: the caller keeps the contract of `alloc`.
            unsafe { self.inner.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            self.had.fetch_sub(layout.size(), Ordering::Relaxed);
            // SAFETY: the caller keeps the contract of `dealloc`, and the block is the inner's.
            unsafe { self.inner.dealloc(block, layout) }
        }
    }
}

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting {
    inner: System,
    had: AtomicUsize::new(0),
    most: AtomicUsize::new(0),
};

/// What reading a small file may take: the window and the tables of the unpacker, mostly.
const SMALL: usize = 256 << 10;

/// How much `f` had at a time at most.
fn memory<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.had.load(Ordering::Relaxed);
    ALLOCATOR.most.store(before, Ordering::Relaxed);
    let came = f();
    (came, ALLOCATOR.most.load(Ordering::Relaxed) - before)
}

/// A record with right checksums, whatever else it says.
fn record(kind: Kind, packed: &[u8], lengths: (u32, u32)) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&lengths.0.to_le_bytes());
    bytes.extend_from_slice(&lengths.1.to_le_bytes());
    bytes.push(kind as u8);
    bytes.extend_from_slice(&crc32fast::hash(packed).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend_from_slice(packed);
    bytes
}

fn packed(packer: &mut DeflateEncoder<Vec<u8>>, payload: &[u8]) -> Vec<u8> {
    packer.write_all(payload).unwrap();
    packer.flush().unwrap();
    std::mem::take(packer.get_mut())
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap()
}

/// A capture of a market without anything, and a record of a block behind it.
fn capture(block: impl FnOnce(&mut DeflateEncoder<Vec<u8>>) -> Vec<u8>) -> Vec<u8> {
    let text = || UntrustedText::new("x");
    let header = Header {
        made_by: text(),
        source: text(),
        chain: Chain {
            name: text(),
            id: None,
        },
        base: Address::new([0; 20]),
        market_name: text(),
        market: MarketBuilder::new().build(),
    };
    let mut payload = Vec::new();
    encode_header(&header, &mut payload).unwrap();
    let mut packer = DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    let header = packed(&mut packer, &payload);
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend(record(
        Kind::Header,
        &header,
        (length(&header), length(&payload)),
    ));
    bytes.extend(block(&mut packer));
    bytes
}

fn ended(bytes: &[u8]) -> Result<Tail, ReadError> {
    let mut reader = Reader::new(bytes)?;
    while reader.next_event()?.is_some() {}
    Ok(reader.tail().unwrap())
}

#[test]
fn what_lies_about_its_size_takes_no_memory() {
    let most = MAX_PAYLOAD + MAX_PAYLOAD / 8;
    // The longest record that may be, of which there is nothing.
    let torn = capture(|_| record(Kind::Block, b"", (most, MAX_PAYLOAD)));
    let (came, took) = memory(|| ended(&torn));
    assert!(matches!(came, Ok(Tail::Torn { .. })), "{came:?}");
    assert!(took < SMALL, "{took}");

    // A few bytes that are to unpack to as much as may be.
    let short = capture(|packer| {
        let packed = packed(packer, b"short");
        record(Kind::Block, &packed, (length(&packed), MAX_PAYLOAD))
    });
    let (came, took) = memory(|| ended(&short));
    let is_length = |e: &ReadError| {
        matches!(
            e,
            ReadError::Damaged {
                damage: Damage::Length { .. },
                ..
            }
        )
    };
    assert!(came.as_ref().is_err_and(is_length), "{came:?}");
    assert!(took < SMALL, "{took}");

    // Much that unpacks from little, and is to be a few bytes.
    let bomb = capture(|packer| {
        let packed = packed(packer, &vec![0; 32 << 20]);
        record(Kind::Block, &packed, (length(&packed), 5))
    });
    let (came, took) = memory(|| ended(&bomb));
    assert!(came.as_ref().is_err_and(is_length), "{came:?}");
    assert!(took < SMALL, "{took}");

    // A count that may be, and nothing behind it.
    let mut block = vec![0, 5];
    block.extend([1; 64]);
    block.extend([9, 0, 0x80, 0x80, 0x40]);
    assert_eq!(MAX_COUNT, 1 << 20);
    let many = capture(|packer| {
        let packed = packed(packer, &block);
        record(Kind::Block, &packed, (length(&packed), length(&block)))
    });
    let (came, took) = memory(|| ended(&many));
    assert!(matches!(came, Err(ReadError::Content { .. })), "{came:?}");
    assert!(took < SMALL, "{took}");

    // The most that a record can hold is not a multiple of it in memory.
    block.resize(block.len() + (3 << 20), 0);
    let full = capture(|packer| {
        let packed = packed(packer, &block);
        record(Kind::Block, &packed, (length(&packed), length(&block)))
    });
    let (came, took) = memory(|| ended(&full));
    assert!(matches!(came, Ok(Tail::Open { .. })), "{came:?}");
    assert!(took < 160 << 20, "{took}");
}
