//! What the doc comments of a list of variants say.

/// The variants after the line that ends in `header`, each with its doc comment in one line.
///
/// It reads the way rustfmt writes: a comment, attributes, and the variant, one level deep.
pub(super) fn meanings(source: &str, header: &str) -> Vec<(String, String)> {
    let mut lines = source.lines().map(str::trim);
    let mut found = Vec::new();
    if !lines.any(|line| line.ends_with(header)) {
        return found;
    }
    let (mut depth, mut doc) = (1_usize, Vec::new());
    for line in lines {
        if depth == 1 {
            if let Some(text) = line.strip_prefix("///") {
                doc.push(text.trim());
                continue;
            }
            let name: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
            if name.starts_with(char::is_uppercase) {
                // Links of the source lead nowhere from a page.
                let text = doc.join(" ").replace("[`", "`").replace("`]", "`");
                found.push((name, text));
                doc.clear();
            }
        }
        if line.starts_with("//") {
            continue;
        }
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
        if depth == 0 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::meanings;

    #[test]
    fn variants_are_found_with_their_comments_and_nothing_inside_them_is() {
        let source = "
            /// No.
            pub enum Other { A }
            pub enum Wanted {
                /// One [`Link`],
                /// two lines.
                A,
                /// Has { fields.
                B {
                    /// Not a variant.
                    Inner: u8,
                },
                #[default]
                C(u8),
            }
            pub enum After { D }";
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let expected = [
            pair("A", "One `Link`, two lines."),
            pair("B", "Has { fields."),
            pair("C", ""),
        ];
        assert_eq!(meanings(source, "enum Wanted {"), expected);
        assert!(meanings(source, "enum Missing {").is_empty());
    }
}
