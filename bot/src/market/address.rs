//! Twenty-byte account addresses.

use core::fmt;
use core::str::FromStr;

use serde::{Serialize, Serializer};

use super::UntrustedText;

/// Hex digits in the written form of an address.
const DIGITS: usize = 40;

/// The address of an account: a pool or a token.
///
/// Written as `0x` and 40 hex digits. Both letter cases are read, lower case is written. The
/// mixed-case checksum of EIP-55 is not verified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 20]);

/// Why a text is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text does not start with `0x`.
    #[error("`{text}` does not start with 0x; an address is 0x and 40 hex digits")]
    Prefix {
        /// The text.
        text: UntrustedText,
    },
    /// The text has the prefix and another number of characters behind it than 40.
    #[error(
        "`{text}` has {found} characters after 0x where 40 belong; an address is 0x and 40 hex digits"
    )]
    Length {
        /// The text.
        text: UntrustedText,
        /// How many characters follow the prefix.
        found: usize,
    },
    /// A character is no hex digit.
    #[error(
        "`{text}` has `{character}` as digit {digit} of 40, which is no hex digit; an address is \
         0x and 40 hex digits"
    )]
    Digit {
        /// The text.
        text: UntrustedText,
        /// The character.
        character: UntrustedText,
        /// Its place after the prefix, the first being 1.
        digit: usize,
    },
}

impl Address {
    /// The address with these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// The bytes of the address.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let untrusted = || UntrustedText::new(text);
        let Some(digits) = text.strip_prefix("0x") else {
            return Err(AddressError::Prefix { text: untrusted() });
        };
        let found = digits.chars().count();
        if found != DIGITS {
            return Err(AddressError::Length {
                text: untrusted(),
                found,
            });
        }
        let mut bytes = [0; 20];
        for (i, character) in digits.chars().enumerate() {
            let nibble = character
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
                .ok_or_else(|| AddressError::Digit {
                    text: untrusted(),
                    character: UntrustedText::new(character.encode_utf8(&mut [0; 4])),
                    digit: i + 1,
                })?;
            bytes[i / 2] = bytes[i / 2] << 4 | nibble;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_kind_of_bad_text_has_its_own_message() {
        let message = |text: &str| text.parse::<Address>().unwrap_err().to_string();
        assert_eq!(
            message("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"),
            "`c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2` does not start with 0x; an address is 0x \
             and 40 hex digits"
        );
        assert_eq!(
            message(""),
            "`` does not start with 0x; an address is 0x and 40 hex digits"
        );
        assert_eq!(
            message("0xc02a"),
            "`0xc02a` has 4 characters after 0x where 40 belong; an address is 0x and 40 hex digits"
        );
        assert_eq!(
            message("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2a"),
            "`0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2a` has 41 characters after 0x where 40 belong; an \
             address is 0x and 40 hex digits"
        );
        assert_eq!(
            message("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756c\u{1b}2"),
            "`0xc02aaa39b223fe8d0a0e5c4f27ead9083c756c\\u{1b}2` has `\\u{1b}` as digit 39 of 40, \
             which is no hex digit; an address is 0x and 40 hex digits"
        );
        // Forty characters that are more than forty bytes must not be cut inside a character.
        assert!(message(&format!("0x{}", "é".repeat(40))).contains("as digit 1 of 40"));
    }

    #[test]
    fn it_is_serialised_as_text() {
        let address = Address::new([0xAB; 20]);
        assert_eq!(
            serde_json::to_string(&address).unwrap(),
            "\"0xabababababababababababababababababababab\""
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_in_either_case(bytes: [u8; 20]) {
            let address = Address::new(bytes);
            let text = address.to_string();
            prop_assert_eq!(text.parse::<Address>(), Ok(address));
            let upper = format!("0x{}", text[2..].to_uppercase());
            prop_assert_eq!(upper.parse::<Address>(), Ok(address));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}|[0-9a-fA-F]{35,45}") {
            let _ = text.parse::<Address>();
            let _ = format!("0x{text}").parse::<Address>();
        }
    }
}
