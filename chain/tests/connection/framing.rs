//! Values back to back on a socket without frames.

use proptest::prelude::*;
use regatta_chain::transport::{Closed, Framer};
use serde_json::Value;

/// An object or an array, with all that could mislead a scan.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        proptest::collection::vec(
            prop::sample::select(r#"{}[]"\,: é𝄞n"#.chars().collect::<Vec<_>>()),
            0..12
        )
        .prop_map(|text| Value::from(text.into_iter().collect::<String>())),
        Just(Value::Null),
    ];
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[{}\"\\\\a]{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    nested.prop_map(|value| {
        if value.is_object() || value.is_array() {
            value
        } else {
            Value::from(vec![value])
        }
    })
}

proptest! {
    /// However values are spaced and however the bytes are cut, they come out one by one; and with any limit the framer
    /// never holds more than that and the last read.
    #[test]
    fn values_come_out_whole_however_the_bytes_are_cut(
        sent in proptest::collection::vec((values(), any::<bool>(), prop::sample::select(vec!["", "\n", " \r\n\t"])), 0..8),
        cuts in proptest::collection::vec(1..40_usize, 1..20),
        limit in 1..200_usize,
    ) {
        let mut bytes = Vec::new();
        for (value, pretty, space) in &sent {
            let text = if *pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
            bytes.extend(text.unwrap().bytes());
            bytes.extend(space.bytes());
        }
        let (mut wide, mut narrow) = (Framer::new(1 << 20), Some(Framer::new(limit)));
        let (mut whole, mut small) = (Vec::new(), Vec::new());
        let (mut rest, mut cuts) = (bytes.as_slice(), cuts.iter().cycle());
        while !rest.is_empty() {
            let (part, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            rest = after;
            wide.push(part);
            while let Some(text) = wide.next_value().unwrap() {
                whole.push(text);
            }
            let Some(mut framer) = narrow.take() else { continue };
            framer.push(part);
            prop_assert!(framer.held() <= limit + part.len());
            narrow = loop {
                match framer.next_value() {
                    Ok(Some(text)) => small.push(text),
                    Ok(None) => break Some(framer),
                    Err(Closed::TooLarge { size, .. }) => {
                        prop_assert!(size > limit && size <= limit + part.len());
                        break None;
                    }
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            };
        }
        let values = whole.iter().map(|text| serde_json::from_str::<Value>(text).unwrap()).collect::<Vec<_>>();
        prop_assert_eq!(&values, &sent.iter().map(|(value, ..)| value.clone()).collect::<Vec<_>>());
        let fit = whole.iter().take_while(|text| text.len() <= limit).cloned().collect::<Vec<_>>();
        prop_assert_eq!(narrow.is_some(), fit.len() == whole.len());
        prop_assert_eq!(small, fit);
    }

    /// Whatever bytes come, in whatever pieces, there is an answer and no more is held than the limit and one read.
    #[test]
    fn any_bytes_end_in_values_or_a_typed_error(
        pieces in proptest::collection::vec(proptest::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\"\\ ".to_vec())], 0..64), 0..16),
        limit in 0..100_usize,
    ) {
        let mut framer = Framer::new(limit);
        'all: for piece in &pieces {
            framer.push(piece);
            prop_assert!(framer.held() <= limit + piece.len());
            loop {
                match framer.next_value() {
                    Ok(Some(text)) => prop_assert!(text.len() <= limit),
                    Ok(None) => break,
                    Err(Closed::TooLarge { .. } | Closed::Garbage { .. }) => break 'all,
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            }
        }
    }
}
