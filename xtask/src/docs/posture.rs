//! The posture policy: its keys, defaults and ranges.

use regatta_core::posture::{PolicyKey, PosturePolicy};

use super::meaning::meanings;
use super::table;

const POLICY: &str = include_str!("../../../core/src/posture/policy.rs");

pub(super) fn page() -> String {
    let meanings = meanings(POLICY, "enum PolicyKey {");
    let default = PosturePolicy::DEFAULT.whole();
    let row = |key: PolicyKey| {
        let variant = format!("{key:?}");
        let meaning = meanings.iter().find(|(name, _)| *name == variant);
        vec![
            format!("`{key}`"),
            default
                .get(key)
                .map_or(String::new(), |value| value.to_string()),
            key.takes().to_owned(),
            meaning
                .map(|(_, meaning)| meaning.clone())
                .unwrap_or_default(),
        ]
    };
    let keys = table(
        &["key", "default", "takes", "meaning"],
        PolicyKey::ALL.map(row),
    );
    format!(
        "A patch names at least one key and no other. It is judged whole and applied whole or refused whole: \
         nothing is clamped. The samples of the windows survive it.\n\n{keys}"
    )
}
