//! SPDX licence expressions, evaluated against a list.
//!
//! The grammar is that of annex D of the SPDX specification 2.3: `OR` binds loosest, then `AND`, then
//! `WITH`, which joins a licence and an exception. Manifests from before that grammar write `/` for `OR`.

/// A text that is not a licence expression.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{expression}` is no licence expression: {found} where {wanted} belongs")]
pub(super) struct Malformed {
    expression: String,
    found: String,
    wanted: &'static str,
}

/// Whether `expression` can be met with licences that are `allowed`. A licence with an exception is
/// asked for as one name, `LICENCE WITH EXCEPTION`.
pub(super) fn satisfied(
    expression: &str,
    allowed: &dyn Fn(&str) -> bool,
) -> Result<bool, Malformed> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens = spaced.split_whitespace().collect();
    let mut parser = Parser {
        expression,
        tokens,
        at: 0,
        allowed,
    };
    let met = parser.any_of()?;
    match parser.peek() {
        None => Ok(met),
        Some(_) => Err(parser.malformed("the end")),
    }
}

struct Parser<'a> {
    expression: &'a str,
    tokens: Vec<&'a str>,
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    /// `all_of (OR all_of)*`
    fn any_of(&mut self) -> Result<bool, Malformed> {
        let mut met = self.all_of()?;
        while self.take("OR") {
            met |= self.all_of()?;
        }
        Ok(met)
    }

    /// `one (AND one)*`
    fn all_of(&mut self) -> Result<bool, Malformed> {
        let mut met = self.one()?;
        while self.take("AND") {
            met &= self.one()?;
        }
        Ok(met)
    }

    /// `( any_of )` or a licence, perhaps with an exception
    fn one(&mut self) -> Result<bool, Malformed> {
        if self.take("(") {
            let met = self.any_of()?;
            return if self.take(")") {
                Ok(met)
            } else {
                Err(self.malformed("`)`"))
            };
        }
        let mut name = self.name("a licence")?;
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.name("an exception")?);
        }
        Ok((self.allowed)(&name))
    }

    fn name(&mut self, wanted: &'static str) -> Result<String, Malformed> {
        match self.peek() {
            Some(token) if !matches!(token, "(" | ")" | "OR" | "AND" | "WITH") => {
                let name = token.to_owned();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.malformed(wanted)),
        }
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn malformed(&self, wanted: &'static str) -> Malformed {
        let found = self
            .peek()
            .map_or("the end".to_owned(), |token| format!("`{token}`"));
        Malformed {
            expression: self.expression.to_owned(),
            found,
            wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::satisfied;

    /// A, B and `A WITH X` are allowed, nothing else is.
    fn met(expression: &str) -> Result<bool, String> {
        let allowed = |name: &str| matches!(name, "A" | "B" | "A WITH X");
        satisfied(expression, &allowed).map_err(|error| error.to_string())
    }

    #[test]
    fn expressions_are_evaluated() {
        for (expression, expected) in [
            ("A", true),
            ("N", false),
            ("A OR N", true),
            ("N OR A", true),
            ("N OR M", false),
            ("A AND B", true),
            ("A AND N", false),
            ("N AND A", false),
            // AND binds tighter than OR: read the other way round, both would change.
            ("A OR N AND N", true),
            ("N AND N OR A", true),
            ("(A OR N) AND N", false),
            ("N AND (N OR A)", false),
            ("(N OR A)AND(B)", true),
            ("N/A", true),
            ("N/M", false),
            ("A WITH X", true),
            ("A WITH Y", false),
            ("B WITH X", false),
            ("A WITH Y OR B", true),
            ("A WITH X AND N", false),
            ("((A))", true),
        ] {
            assert_eq!(met(expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_named() {
        for expression in [
            "",
            "A OR",
            "OR A",
            "A B",
            "(A",
            "A)",
            "()",
            "A AND OR B",
            "A WITH",
            "WITH X",
            "A WITH (X)",
        ] {
            let error = met(expression).unwrap_err();
            assert!(error.contains(&format!("`{expression}`")), "{error}");
        }
    }
}
