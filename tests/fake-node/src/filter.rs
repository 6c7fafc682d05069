//! Which logs are asked for.

use alloy_primitives::{Address, B256};
use serde_json::Value;

use crate::FakeLog;

/// The addresses and topics of a filter. An empty list is all.
#[derive(Clone, Default, Debug)]
pub(crate) struct Filter {
    addresses: Vec<Address>,
    topics: Vec<Vec<B256>>,
}

impl Filter {
    /// Reads a filter object; what is no filter is `None`.
    pub(crate) fn read(filter: &Value) -> Option<Self> {
        let addresses = one_or_many(filter.get("address"))?;
        let topics = match filter.get("topics") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(topics)) => topics
                .iter()
                .map(|topic| one_or_many(Some(topic)))
                .collect::<Option<_>>()?,
            Some(_) => return None,
        };
        Some(Self { addresses, topics })
    }

    pub(crate) fn takes(&self, log: &FakeLog) -> bool {
        let address = self.addresses.is_empty() || self.addresses.contains(&log.address);
        let topics = self.topics.iter().enumerate().all(|(at, wanted)| {
            wanted.is_empty()
                || log
                    .topics
                    .get(at)
                    .is_some_and(|topic| wanted.contains(topic))
        });
        address && topics
    }
}

fn one_or_many<T: std::str::FromStr>(value: Option<&Value>) -> Option<Vec<T>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(one)) => Some(vec![one.parse().ok()?]),
        Some(Value::Array(many)) => many.iter().map(|one| one.as_str()?.parse().ok()).collect(),
        Some(_) => None,
    }
}
