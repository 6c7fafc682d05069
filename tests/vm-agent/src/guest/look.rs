//! Looking at records.

use super::failure::Failure;
use super::job::Place;
use serde_json::Value;

/// What the doctor says in a place.
pub(crate) fn doctor(place: Place<'_>) -> Result<Value, Failure> {
    let mut job = place.regatta(&["doctor", "--json"])?;
    job.exits(0)?;
    let records = job.records()?;
    records
        .into_iter()
        .next()
        .ok_or_else(|| Failure::Other("the doctor said nothing".to_owned()))
}

/// The value at a pointer such as `/quota/milli` is `wanted`.
pub(crate) fn expect(
    record: &Value,
    pointer: &str,
    wanted: impl Into<Value>,
) -> Result<(), Failure> {
    let wanted = wanted.into();
    let found = record
        .pointer(pointer)
        .cloned()
        .ok_or_else(|| Failure::Other(format!("the record has no {pointer}: {record}")))?;
    if found == wanted {
        return Ok(());
    }
    Err(Failure::Differs {
        what: pointer.to_owned(),
        found,
        wanted,
    })
}

/// Each of these pointers has its value.
pub(crate) fn expect_all<const N: usize>(
    record: &Value,
    wanted: [(&str, Value); N],
) -> Result<(), Failure> {
    wanted
        .into_iter()
        .try_for_each(|(pointer, wanted)| expect(record, pointer, wanted))
}

/// Whether the doctor gives the hint called `name`, and its text has `part`.
pub(crate) fn expect_hint(record: &Value, name: &str, part: &str) -> Result<(), Failure> {
    let hints = record["hints"].as_array();
    let found = hints.into_iter().flatten().any(|hint| {
        let text = hint["text"].as_str();
        hint["name"] == name && text.is_some_and(|text| text.contains(part))
    });
    if found {
        return Ok(());
    }
    Err(Failure::Other(format!(
        "no hint {name} with {part:?} in {}",
        record["hints"]
    )))
}
