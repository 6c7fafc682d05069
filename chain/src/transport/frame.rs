//! JSON values back to back, as a node's IPC socket carries them.
//!
//! # Invariants
//! - A value ends where its outermost bracket closes: no newline is needed, and one inside a value means nothing.
//! - No more than the limit and one read are ever held, whatever the other side sends.
//! - Every byte is looked at once.

use super::{Closed, Text};

/// Cuts a stream of bytes into JSON objects and arrays.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    /// What was read; all before `start` has been given out.
    held: Vec<u8>,
    /// Where the next value begins.
    start: usize,
    /// Up to where bytes have been looked at.
    seen: usize,
    /// How many brackets are open.
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Framer {
    /// Takes values of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            held: Vec::new(),
            start: 0,
            seen: 0,
            depth: 0,
            in_string: false,
            escaped: false,
        }
    }

    /// Adds what was read. Call [`next_value`](Self::next_value) until it has none before adding more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.start);
        self.seen -= self.start;
        self.start = 0;
        self.held.extend_from_slice(bytes);
    }

    /// How many bytes it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The next whole value, if it is there.
    pub fn next_value(&mut self) -> Result<Option<Text>, Closed> {
        while let Some(&byte) = self.held.get(self.seen) {
            self.seen += 1;
            if self.depth == 0 && byte.is_ascii_whitespace() {
                self.start = self.seen;
                continue;
            }
            let ends = self.ends(byte)?;
            if self.seen - self.start > self.limit {
                return Err(Closed::TooLarge {
                    limit: self.limit,
                    size: self.held.len() - self.start,
                });
            }
            if ends {
                return self.take().map(Some);
            }
        }
        Ok(None)
    }

    /// Whether `byte` ends the value.
    fn ends(&mut self, byte: u8) -> Result<bool, Closed> {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return Ok(false);
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            _ if self.depth == 0 => {
                let from = self.held.get(self.start..).unwrap_or_default();
                return Err(Closed::garbage("no JSON object or array begins here", from));
            }
            b'}' | b']' => self.depth -= 1,
            b'"' => self.in_string = true,
            _ => {}
        }
        Ok(self.depth == 0)
    }

    fn take(&mut self) -> Result<Text, Closed> {
        let value = if self.start == 0 && self.seen == self.held.len() {
            self.seen = 0;
            std::mem::take(&mut self.held)
        } else {
            let value = self
                .held
                .get(self.start..self.seen)
                .unwrap_or_default()
                .to_vec();
            self.start = self.seen;
            value
        };
        String::from_utf8(value)
            .map(Text::from)
            .map_err(|error| Closed::garbage("this is not UTF-8", error.as_bytes()))
    }
}
