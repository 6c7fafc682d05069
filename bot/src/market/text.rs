//! Text from outside, made safe to print.
//!
//! Token symbols are whatever the author of a token contract chose, and error messages quote whatever
//! a file contains. Both end on terminals and in logs.
//!
//! # Invariants
//! - The kept text has no character that moves a cursor, ends a line, is invisible or changes the
//!   order in which its surroundings are shown.
//! - The kept text has at most its limit of characters, and one more for the mark of a cut.
//! - The mapping from text to kept text is fixed: it depends on nothing but the text and the limit.

use core::fmt;

use serde::{Serialize, Serializer};

/// Characters that are kept unless another limit is given: longer than any honest symbol and than
/// the text of an address (42).
const DEFAULT_LIMIT: usize = 48;

/// Stands for the rest of a text that was cut.
const CUT: char = '…';

/// A text from an untrusted place, escaped and cut when it was taken in.
///
/// The original is not kept, so nothing can print it by mistake. Escapes are those of a Rust string
/// literal, so the backslash is escaped too and an escape cannot be forged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UntrustedText(Box<str>);

impl UntrustedText {
    /// The printable form of `text`, cut after 48 characters.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::with_limit(text, DEFAULT_LIMIT)
    }

    /// The printable form of `text`, cut after `limit` characters. An escape counts as what it is
    /// printed as and is kept whole or not at all.
    #[must_use]
    pub fn with_limit(text: &str, limit: usize) -> Self {
        let mut safe = String::new();
        let mut kept = 0;
        for character in text.chars() {
            let width = printed(character).count();
            if kept + width > limit {
                safe.push(CUT);
                break;
            }
            kept += width;
            safe.extend(printed(character));
        }
        Self(safe.into_boxed_str())
    }

    /// The printable form of `bytes`, with each byte sequence that is not UTF-8 shown as `U+FFFD`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::new(&String::from_utf8_lossy(bytes))
    }

    /// A text that was made printable before, as it was: `None` if it is longer than `limit` characters, or has
    /// one that this type does not keep.
    #[must_use]
    pub fn printed_before(text: &str, limit: usize) -> Option<Self> {
        let kept = |character| character == '\\' || printed(character).eq([character]);
        let is_kept = text.chars().all(kept) && text.chars().count() <= limit;
        is_kept.then(|| Self(text.into()))
    }

    /// The printable form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the text was empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What `character` is printed as: itself or its escape.
fn printed(character: char) -> impl Iterator<Item = char> {
    let plain = matches!(character, '\'' | '"');
    let escape = !plain && is_right_to_left(character);
    let as_is = plain.then_some(character);
    let unicode = escape.then(|| character.escape_unicode());
    // `escape_debug` escapes all that is not printable: controls, format characters (the bidirectional
    // overrides and zero-width characters among them), line and paragraph separators, spaces other
    // than ' ', private-use and unassigned characters, and marks that pile up on what precedes them.
    let debug = (!plain && !escape).then(|| character.escape_debug());
    as_is
        .into_iter()
        .chain(unicode.into_iter().flatten())
        .chain(debug.into_iter().flatten())
}

/// Whether `character` lies in a block whose default direction is right to left (Unicode Standard
/// Annex 9, table of default classes). Such letters are harmless by themselves, but a terminal that
/// follows the annex swaps the numbers beside them.
fn is_right_to_left(character: char) -> bool {
    matches!(
        u32::from(character),
        0x0590..=0x08FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFF | 0x1_0800..=0x1_0FFF | 0x1_E800..=0x1_EFFF
    )
}

impl fmt::Display for UntrustedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for UntrustedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

impl Serialize for UntrustedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        UntrustedText::new(text).to_string()
    }

    #[test]
    fn honest_symbols_stay_as_they_are() {
        for symbol in [
            "",
            "WETH",
            "yDAI+yUSDC+yUSDT",
            "Ξ",
            "ſUSD",
            "1inch",
            "$ROPE",
            "狗",
            "🐶",
            "d'or \"x\"",
        ] {
            assert_eq!(shown(symbol), symbol);
        }
    }

    #[test]
    fn hostile_text_is_escaped() {
        assert_eq!(
            shown("\u{1b}[2J\u{1b}]0;x\u{7}"),
            "\\u{1b}[2J\\u{1b}]0;x\\u{7}"
        );
        assert_eq!(shown("a\r\nb\tc\0"), "a\\r\\nb\\tc\\0");
        assert_eq!(shown("\u{202e}HTEW\u{2066}"), "\\u{202e}HTEW\\u{2066}");
        assert_eq!(
            shown("US\u{200b}DC\u{feff}\u{ad}"),
            "US\\u{200b}DC\\u{feff}\\u{ad}"
        );
        assert_eq!(
            shown("\u{2028}\u{2029}\u{85}\u{9b}"),
            "\\u{2028}\\u{2029}\\u{85}\\u{9b}"
        );
        assert_eq!(shown("e\u{301}"), "e\\u{301}");
        assert_eq!(shown("\u{5d0}1"), "\\u{5d0}1");
        // A forged escape cannot be taken for a real one.
        assert_eq!(shown("\\u{1b}"), "\\\\u{1b}");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(shown(&"x".repeat(48)), "x".repeat(48));
        assert_eq!(shown(&"x".repeat(49)), format!("{}…", "x".repeat(48)));
        assert_eq!(UntrustedText::with_limit("ab\u{1b}cd", 7).as_str(), "ab…");
        assert_eq!(
            UntrustedText::with_limit("ab\u{1b}cd", 8).as_str(),
            "ab\\u{1b}…"
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_replacements() {
        assert_eq!(UntrustedText::from_bytes(b"a\xffb").as_str(), "a\u{fffd}b");
    }

    #[test]
    fn what_was_printed_before_stays_as_it_was() {
        for text in ["", "T\u{1b}[2J", "a\\b", "x'\"", &"y".repeat(60)] {
            let safe = UntrustedText::new(text);
            assert_eq!(UntrustedText::printed_before(safe.as_str(), 49), Some(safe));
        }
        for text in ["a\u{1b}", "a\nb", "\u{202e}", "\u{5d0}", "yy"] {
            assert_eq!(UntrustedText::printed_before(text, 1), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_unprintable_or_long_survives(
            text in proptest::collection::vec(any::<char>(), 0..80),
        ) {
            let text: String = text.into_iter().collect();
            let safe = shown(&text);
            prop_assert!(safe.chars().count() <= 49);
            prop_assert!(safe.chars().all(|c| c == CUT || c == '"' || c == '\'' || c == '\\'
                || (c.escape_debug().count() == 1 && !is_right_to_left(c))));
        }
    }
}
