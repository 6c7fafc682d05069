//! What of a record is the same wherever and however it was run.

/// The entries that depend on timing, or on how many bins the plan has.
const LEFT_OUT: [&str; 2] = ["\"timing\":", "\"ledger\":"];

/// How the record that is about the machine alone begins.
const PLAN: &str = "\"type\":\"plan\"";

/// The text of a record, given as a line of JSON without its end, without what depends on timing or on the
/// machine; every other byte is as it was. `None` for the plan, which is nothing else.
///
/// Two runs of the same events with the same options give the same canonical lines, on any binding and any number
/// of bins, as long as every block runs.
#[must_use]
pub fn canonical(line: &str) -> Option<String> {
    let body = line.strip_prefix('{').and_then(|l| l.strip_suffix('}'));
    let Some(body) = body else {
        return Some(line.to_owned());
    };
    let entries = entries(body);
    if entries.contains(&PLAN) {
        return None;
    }
    let kept: Vec<&str> = entries
        .into_iter()
        .filter(|entry| !LEFT_OUT.iter().any(|key| entry.starts_with(key)))
        .collect();
    Some(format!("{{{}}}", kept.join(",")))
}

/// The entries of an object, split at the commas that are in no string and no value.
fn entries(body: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    body.split(move |character: char| {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth = depth.saturating_sub(1),
            ',' => return depth == 0 && !quoted,
            _ => {}
        }
        false
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_timing_or_the_machine_is_left_out_and_nothing_else() {
        for (line, rest) in [
            (r#"{"type":"plan","bins":6}"#, None),
            (
                r#"{"type":"crawl","timing":{"a":1}}"#,
                Some(r#"{"type":"crawl"}"#),
            ),
            (
                r#"{"type":"block","s":"a,\"timing\":{","w":[{"timing":2,"x":[3,4]}],"timing":{"b":[{"c":"}\"],"}],"d":{}}}"#,
                Some(r#"{"type":"block","s":"a,\"timing\":{","w":[{"timing":2,"x":[3,4]}]}"#),
            ),
            (
                r#"{"type":"summary","ledger":[{"role":"solver"}],"abandoned":0,"timing":{},"timings":1}"#,
                Some(r#"{"type":"summary","abandoned":0,"timings":1}"#),
            ),
            ("no object", Some("no object")),
        ] {
            assert_eq!(canonical(line).as_deref(), rest, "{line}");
        }
    }
}
