//! Records that are whole and say what no capture says: each is refused, at its byte.

use crate::damage::Packer;
use crate::{address, events, header, read};
use regatta_bot::capture::{
    Kind, MAX_COUNT, Problem, ReadError, Recorded, decode_event, decode_header, encode_event,
    encode_header,
};
use regatta_bot::market::BuildError;
use std::time::Duration;

/// The payload of the event of that place.
fn payload(place: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_event(&events()[place], &mut bytes).unwrap();
    bytes
}

fn problem(kind: Kind, payload: &[u8]) -> (u64, Problem) {
    decode_event(kind, payload, 2).unwrap_err()
}

#[test]
fn a_payload_cut_at_any_byte_or_with_a_byte_too_many_is_refused() {
    let kinds = [
        Kind::Block,
        Kind::Reverted,
        Kind::Pools,
        Kind::Block,
        Kind::Reread,
    ];
    for (place, kind) in kinds.into_iter().enumerate() {
        let mut payload = payload(place);
        let length = payload.len() as u64;
        for cut in 0..payload.len() {
            let (at, problem) = problem(kind, &payload[..cut]);
            assert!(at <= cut as u64, "{place} {cut}: {at}");
            let is_short = matches!(problem, Problem::Short { .. } | Problem::Count { .. });
            assert!(is_short, "{place} {cut}: {problem}");
        }
        payload.push(0);
        assert_eq!(
            problem(kind, &payload),
            (length, Problem::Trailing { bytes: 1 })
        );
    }
}

#[test]
fn numbers_have_one_form_and_a_limit() {
    let time = "the time of a record";
    for (bytes, at, expected) in [
        (vec![0x80, 0x00], 2, Problem::Overlong { what: time }),
        (vec![0xFF, 0x80, 0x00], 3, Problem::Overlong { what: time }),
        // 2^64, and eleven bytes.
        (
            vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02],
            10,
            Problem::Bits {
                what: time,
                bits: 64,
            },
        ),
        (
            vec![0xFF; 30],
            10,
            Problem::Bits {
                what: time,
                bits: 64,
            },
        ),
    ] {
        assert_eq!(problem(Kind::Reverted, &bytes), (at, expected), "{bytes:?}");
    }
    // 2^64 - 1 is one.
    let mut most = vec![0xFF; 9];
    most.extend([0x01, 0x05]);
    most.extend([7; 32]);
    let read = decode_event(Kind::Reverted, &most, 0).unwrap().unwrap();
    assert_eq!(read.at, Duration::from_nanos(u64::MAX));
}

#[test]
fn counts_choices_and_references_are_checked() {
    // The time, the number, two hashes, the time, no base fee: 74 bytes, and then the count.
    let mut block = vec![0, 5];
    block.extend([1; 64]);
    block.extend([9, 0]);
    let with = |more: &[u8]| [&block[..], more].concat();
    let what = "updates";
    assert_eq!(
        problem(Kind::Block, &with(&[2, 1, 2, 3, 0])),
        (
            69,
            Problem::Count {
                what,
                count: 2,
                room: 4
            }
        )
    );
    let mut many = with(&[0x81, 0x80, 0x40]);
    many.extend(vec![0; 4 << 20]);
    let count = MAX_COUNT + 1;
    assert_eq!(
        problem(Kind::Block, &many),
        (71, Problem::Many { what, count })
    );
    let mut choice = block.clone();
    choice[67] = 2;
    let what = "the base fee";
    assert_eq!(
        problem(Kind::Block, &choice),
        (68, Problem::Choice { what, found: 2 })
    );
    // A reserve of 2^112 in 17 bytes, behind the count and the pool.
    let mut large = with(&[1, 0]);
    large.extend([0x80; 16]);
    large.extend([0x01, 0]);
    let what = "a reserve";
    assert_eq!(
        problem(Kind::Block, &large),
        (87, Problem::Bits { what, bits: 112 })
    );
    // The exchange of a new pool is behind the time, the count and the address.
    let what = "exchange";
    let unknown = Problem::Unknown {
        what,
        number: 1,
        count: 1,
    };
    assert_eq!(
        decode_event(Kind::Pools, &payload(2), 1).unwrap_err().1,
        unknown
    );
}

#[test]
fn texts_are_printable_as_they_are() {
    let mut bytes = Vec::new();
    encode_header(&header(), &mut bytes).unwrap();
    assert_eq!(decode_header(&bytes).unwrap(), header());
    let what = "the name of the maker";
    assert_eq!(&bytes[..5], b"\x04test");
    for text in ["t\u{1b}st", "t\nst", "t\u{5d0}t"] {
        bytes[1..5].copy_from_slice(text.as_bytes());
        assert_eq!(
            decode_header(&bytes),
            Err((5, Problem::Text { what })),
            "{text:?}"
        );
    }
    bytes[1] = 0xFF;
    assert_eq!(decode_header(&bytes), Err((5, Problem::Text { what })));
}

#[test]
fn a_header_holds_a_market_or_is_refused() {
    let mut bytes = Vec::new();
    encode_header(&header(), &mut bytes).unwrap();
    let place = |n: u32| {
        let wanted = address(n);
        let all = bytes.windows(20).enumerate();
        let mut found = all.filter(|(_, window)| window == wanted.as_bytes());
        found.next_back().unwrap().0
    };
    // Token 2 becomes token 3, which comes after it.
    let mut twice = bytes.clone();
    twice[place(2)..][..20].copy_from_slice(address(3).as_bytes());
    let problem = decode_header(&twice).unwrap_err().1;
    assert_eq!(problem, Problem::Token { number: 2 });
    // Pool 11 becomes pool 10.
    let mut again = bytes.clone();
    again[place(11)..][..20].copy_from_slice(address(10).as_bytes());
    let problem = decode_header(&again).unwrap_err().1;
    let address = address(10);
    assert_eq!(
        problem,
        Problem::Market(BuildError::DuplicatePool { address })
    );
    // The exchange of pool 10, its first token, its second.
    for (offset, what, count) in [(20, "exchange", 2), (21, "token", 3), (22, "token", 3)] {
        let mut unknown = bytes.clone();
        unknown[place(10) + offset] = 9;
        let at = (place(10) + offset + 1) as u64;
        let number = 9;
        let expected = Problem::Unknown {
            what,
            number,
            count,
        };
        assert_eq!(decode_header(&unknown), Err((at, expected)));
    }
}

#[test]
fn a_clock_that_goes_back_is_refused() {
    let mut packer = Packer::new();
    let mut bytes = packer.start();
    let mut add = |nanos| {
        let begins = bytes.len() as u64;
        let event = events().swap_remove(1).event;
        let at = Duration::from_nanos(nanos);
        let mut payload = Vec::new();
        encode_event(&Recorded { at, event }, &mut payload).unwrap();
        bytes.extend(packer.record(Kind::Reverted, &payload));
        begins
    };
    add(5);
    add(5);
    let offset = add(4);
    let read = read(&bytes).unwrap();
    assert_eq!(read.events.len(), 2);
    let (at, problem) = (0, Problem::Clock);
    assert_eq!(
        read.ended,
        Err(ReadError::Content {
            offset,
            at,
            problem
        })
    );
}
