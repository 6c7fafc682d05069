//! Reading the plain texts an operator writes, and quoting them in errors that own no memory.

use core::fmt::{self, Write as _};
use heapless::String;

/// The most bytes of a refused text that an error repeats.
const EXCERPT: usize = 32;

/// The beginning of a text that was refused.
///
/// Shown quoted and escaped, so that a control character in bad input cannot act on a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Excerpt {
    start: String<EXCERPT>,
    cut: bool,
}

impl Excerpt {
    /// The first 32 bytes of `text`, or fewer where a character would be cut.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut excerpt = Self {
            start: String::new(),
            cut: false,
        };
        // Writing fails where the text is cut, and the excerpt says so.
        let _ = excerpt.write_str(text);
        excerpt
    }

    /// The beginning of what `value` shows.
    #[must_use]
    pub fn show(value: impl fmt::Display) -> Self {
        let mut excerpt = Self::of("");
        // Writing fails where the text is cut, and the excerpt says so.
        let _ = write!(excerpt, "{value}");
        excerpt
    }
}

impl fmt::Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.start.push(c).map_err(|_| {
                self.cut = true;
                fmt::Error
            })?;
        }
        Ok(())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.start.as_str())?;
        if self.cut {
            f.write_str(" and more")?;
        }
        Ok(())
    }
}

/// The number that `text` spells in decimal digits alone: no sign, no space, no separator.
#[must_use]
pub fn whole_number(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// Writes `thousandths / 1000` as a decimal number without trailing zeros: `1.25`.
pub(crate) fn write_thousandths(f: &mut fmt::Formatter<'_>, thousandths: u32) -> fmt::Result {
    write!(f, "{}", thousandths / 1000)?;
    let (mut digits, mut rest) = (3, thousandths % 1000);
    if rest == 0 {
        return Ok(());
    }
    while rest.is_multiple_of(10) {
        rest /= 10;
        digits -= 1;
    }
    write!(f, ".{rest:0digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn only_digits_make_a_number() {
        for bad in [
            "",
            "+1",
            "-1",
            " 1",
            "1 ",
            "1_000",
            "1.0",
            "0x1",
            "١",
            "4294967296",
        ] {
            assert_eq!(whole_number(bad), None, "{bad:?}");
        }
        assert_eq!(whole_number("007"), Some(7));
        assert_eq!(whole_number("4294967295"), Some(u32::MAX));
    }

    #[test]
    fn an_excerpt_is_bounded_escaped_and_says_when_it_was_cut() {
        assert_eq!(Excerpt::of("a\x1b[2J").to_string(), "\"a\\u{1b}[2J\"");
        let long = "é".repeat(17);
        assert_eq!(
            Excerpt::of(&long).to_string(),
            std::format!("{:?} and more", "é".repeat(16))
        );
    }
}
