//! Rust text split into code and comments, without a compiler.
//!
//! The rules must not take a word in a comment or a string for code, and must see code that is configured
//! out. So this is a scanner for just that: comments (nested too), string and character literals.
//!
//! # Invariants
//! - Code and comment have the line structure of the input: line *n* here is line *n* there.
//! - Every character of the input is in the code, in the comment, or inside a literal (a space in the
//!   code), in exactly one of them.

/// One Rust file, scanned.
pub(crate) struct Source {
    lines: Vec<Line>,
}

/// One line of it.
pub(crate) struct Line {
    /// The line without comments, and with blanks for what literals contain.
    pub(crate) code: String,
    /// The comments on the line, their markers included.
    pub(crate) comment: String,
}

/// An attribute, `#[...]` or `#![...]`, from its `#` to its bracket.
pub(crate) struct Attribute {
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// What is between the brackets.
    pub(crate) content: String,
}

impl Attribute {
    /// Whether `word` stands in it, whole.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        words(&self.content).any(|(found, _)| found == word)
    }

    /// The word that it begins with.
    pub(crate) fn name(&self) -> &str {
        words(&self.content).next().map_or("", |(word, _)| word)
    }
}

impl Source {
    /// Scans `text`.
    pub(crate) fn new(text: &str) -> Self {
        let mut scanner = Scanner {
            rest: text,
            code: String::new(),
            comment: String::new(),
        };
        scanner.run();
        let lines = scanner.code.split('\n').zip(scanner.comment.split('\n'));
        let mut lines: Vec<Line> = lines
            .map(|(code, comment)| Line {
                code: code.to_owned(),
                comment: comment.trim().to_owned(),
            })
            .collect();
        if text.is_empty() || text.ends_with('\n') {
            lines.pop();
        }
        Self { lines }
    }

    /// Its lines, from the first.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Its attributes, in order. An attribute inside a macro's body counts.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = Attribute> {
        let code: Vec<&str> = self.lines.iter().map(|line| line.code.as_str()).collect();
        let code = code.join("\n");
        let mut found = Vec::new();
        let (mut at, mut line) = (0, 1);
        while let Some(offset) = code[at..].find('#') {
            let hash = at + offset;
            line += code[at..hash].matches('\n').count();
            at = hash + 1;
            let rest = code[at..]
                .strip_prefix('!')
                .unwrap_or(&code[at..])
                .trim_start();
            if let Some(content) = rest.strip_prefix('[').and_then(bracketed) {
                found.push(Attribute {
                    line,
                    content: content.to_owned(),
                });
            }
        }
        found.into_iter()
    }
}

/// `text` up to the bracket that closes the one before it.
fn bracketed(text: &str) -> Option<&str> {
    let mut depth = 1;
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[..i]);
        }
    }
    None
}

/// The identifiers of `code` with the text that follows each.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = code;
    std::iter::from_fn(move || {
        rest = &rest[rest.find(in_word)?..];
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some((word, after))
    })
}

/// Whether `code` calls one of these macros; the name of the first.
pub(crate) fn macro_called<'a>(code: &str, names: &[&'a str]) -> Option<&'a str> {
    words(code)
        .filter(|(_, after)| after.starts_with('!') && !after.starts_with("!="))
        .find_map(|(word, _)| names.iter().find(|name| **name == word).copied())
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where a piece of text belongs.
#[derive(Clone, Copy)]
enum To {
    Code,
    Comment,
    /// Inside a literal.
    Nowhere,
}

struct Scanner<'a> {
    rest: &'a str,
    code: String,
    comment: String,
}

impl Scanner<'_> {
    fn run(&mut self) {
        while let Some(c) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(end, To::Comment);
            } else if self.rest.starts_with("/*") {
                self.take(block_comment(self.rest), To::Comment);
            } else if c == '"' {
                self.literal(1, string(&self.rest[1..]), 1);
            } else if let Some((prefix, inner, suffix)) = raw_string(self.rest) {
                self.literal(prefix, inner, suffix);
            } else if let Some(inner) = character(self.rest) {
                self.literal(1, inner, 1);
            } else {
                self.take(c.len_utf8(), To::Code);
            }
        }
    }

    /// Takes a literal: its opening, what it contains, its closing (as far as the text goes).
    fn literal(&mut self, prefix: usize, inner: usize, suffix: usize) {
        self.take(prefix, To::Code);
        self.take(inner, To::Nowhere);
        self.take(suffix.min(self.rest.len()), To::Code);
    }

    fn take(&mut self, bytes: usize, to: To) {
        let (taken, rest) = self.rest.split_at(bytes);
        for c in taken.chars() {
            let (code, comment) = match (c, to) {
                ('\n', _) => ('\n', '\n'),
                (c, To::Code) => (c, ' '),
                (c, To::Comment) => (' ', c),
                (_, To::Nowhere) => (' ', ' '),
            };
            self.code.push(code);
            self.comment.push(comment);
        }
        self.rest = rest;
    }
}

/// The length of the block comment that `text` begins with.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of what a string literal contains, given the text after its opening quote.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i,
            _ => {}
        }
    }
    text.len()
}

/// If `text` begins with a raw string (no identifier may touch a quote, so these letters are no
/// identifier's end): the lengths of its opening, content and closing.
fn raw_string(text: &str) -> Option<(usize, usize, usize)> {
    let letters = ["r", "br", "cr"].into_iter().find(|prefix| {
        let rest = text
            .strip_prefix(prefix)
            .map(|rest| rest.trim_start_matches('#'));
        rest.is_some_and(|rest| rest.starts_with('"'))
    })?;
    let hashes = text[letters.len()..].find('"')?;
    let prefix = letters.len() + hashes + 1;
    let closing = format!("\"{}", "#".repeat(hashes));
    let inner = &text[prefix..];
    Some((
        prefix,
        inner.find(&closing).unwrap_or(inner.len()),
        closing.len(),
    ))
}

/// If `text` begins with a character literal, not a lifetime: the length of what it contains.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    if first == '\\' {
        let escaped = inner[1..].chars().next()?.len_utf8();
        return Some(1 + escaped + inner[1 + escaped..].find('\'')?);
    }
    inner[first.len_utf8()..]
        .starts_with('\'')
        .then_some(first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, Vec<String>) {
        let source = Source::new(text);
        source
            .lines
            .into_iter()
            .map(|line| (line.code.trim_end().to_owned(), line.comment))
            .unzip()
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        for (text, code, comment) in [
            ("a(); // b()", "a();", "// b()"),
            (
                "a(/* b /* c */ d */ e);",
                "a(                  e);",
                "/* b /* c */ d */",
            ),
            (r#"a("b // c");"#, r#"a("      ");"#, ""),
            (r#"a("\"b");"#, r#"a("   ");"#, ""),
            (r#"a("\\"); // b"#, r#"a("  ");"#, "// b"),
            ("a(r\"\\\"); // b", "a(r\" \");", "// b"),
            ("a(br##\"b\"#c\"##);", "a(br##\"    \"##);", ""),
            ("a('\"'); b('\\''); // c", "a(' '); b('  ');", "// c"),
            ("a('\\u{1F600}');", "a('         ');", ""),
            (
                "fn f<'a>(x: &'a str) {} // b",
                "fn f<'a>(x: &'a str) {}",
                "// b",
            ),
            ("let r#type = 1; // b", "let r#type = 1;", "// b"),
            ("for\"x\"", "for\" \"", ""),
            ("a(\"never closed // b", "a(\"", ""),
            ("/* never closed", "", "/* never closed"),
        ] {
            assert_eq!(
                split(text),
                (vec![code.to_owned()], vec![comment.to_owned()]),
                "{text}"
            );
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let (code, comment) = split("//! a\n/* b\nc */ d\n\"e\nf\" // g\n");
        assert_eq!(code, ["", "", "     d", "\"", " \""]);
        assert_eq!(comment, ["//! a", "/* b", "c */", "", "// g"]);
        assert_eq!(split("").0.len(), 0);
        assert_eq!(split("a\n\nb").0.len(), 3);
    }

    #[test]
    fn attributes_are_found_with_their_lines() {
        let text = "#![no_std]\n// #[x]\n#[a(\n  b = [1],\n  c,\n)]\nfn f() { let x = \"#[d]\"; }\n# [e]\n";
        let found: Vec<_> = Source::new(text)
            .attributes()
            .map(|a| (a.line, a.name().to_owned()))
            .collect();
        assert_eq!(
            found,
            [
                (1, "no_std".to_owned()),
                (3, "a".to_owned()),
                (8, "e".to_owned())
            ]
        );
        let a = Source::new(text).attributes().nth(1).unwrap();
        assert!(a.has_word("b") && a.has_word("c") && !a.has_word("d"));
    }

    #[test]
    fn a_macro_call_is_a_whole_word_and_a_bang() {
        assert_eq!(macro_called("x(); todo!()", &["dbg", "todo"]), Some("todo"));
        assert_eq!(macro_called("std::dbg![x]", &["dbg"]), Some("dbg"));
        for code in ["my_dbg!(x)", "dbg_x!(x)", "dbg != x", "dbg!=x", "dbg(x)"] {
            assert_eq!(macro_called(code, &["dbg"]), None, "{code}");
        }
    }
}
