//! Who makes calls.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::message::Answer;
use super::shared::{Counts, Refused, Shared};
use super::{CallError, NodeError, SubscriptionId};
use crate::transport::Closed;

/// Makes calls on a connection. Clones share it; the connection ends with the last of them.
#[derive(Clone, Debug)]
pub struct Client(Arc<Owner>);

/// Ends the connection when it goes.
#[derive(Debug)]
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end(Closed::Dropped);
    }
}

/// Ends a connection from anywhere, also from another thread. It keeps none alive.
#[derive(Clone, Debug)]
pub struct Closer(Arc<Shared>);

impl Closer {
    /// Ends the connection: every call ends now, the socket closes when the session is next polled, for which it is woken.
    pub fn close(&self) {
        self.0.end(Closed::Stopped);
    }
}

/// A call of a batch.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Its parameters: an array, or an object.
    pub params: Value,
}

impl Request {
    /// A call of `method` with `params`.
    #[must_use]
    pub fn new(method: impl Into<String>, params: Value) -> Self {
        Self {
            method: method.into(),
            params,
        }
    }
}

#[derive(Serialize)]
struct Wire<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

/// The calls of one message that has been asked to be sent. What they hold goes with it.
struct Asked<'a> {
    shared: &'a Shared,
    first: u64,
    count: usize,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.shared.forget(self.first, self.count);
    }
}

impl Client {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::new(Owner(Arc::clone(shared))))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    /// Calls `method` within the usual deadline.
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, CallError> {
        self.call_within(method, params, self.shared().limits.call)
            .await
    }

    /// Calls `method`, and waits no longer than `deadline`.
    pub async fn call_within<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
        deadline: Duration,
    ) -> Result<R, CallError> {
        let id = self.shared().reserve(1);
        let text = serde_json::to_string(&Wire {
            jsonrpc: "2.0",
            id,
            method,
            params: &params,
        });
        let answers = self.ask(method, id, 1, text, deadline).await?;
        let value = result(method, answers.into_iter().next().flatten())?;
        serde_json::from_value(value).map_err(|error| CallError::Malformed {
            method: method.to_owned(),
            what: error.to_string(),
        })
    }

    /// Makes all calls of `requests` in one message. The results are in their order; each call fails for itself, and one
    /// without an answer is [`CallError::Malformed`].
    pub async fn batch(
        &self,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Value, CallError>>, CallError> {
        self.batch_within(requests, self.shared().limits.call).await
    }

    /// Makes all calls of `requests` in one message, and waits no longer than `deadline`.
    pub async fn batch_within(
        &self,
        requests: Vec<Request>,
        deadline: Duration,
    ) -> Result<Vec<Result<Value, CallError>>, CallError> {
        let Some(Request {
            method: first_method,
            ..
        }) = requests.first()
        else {
            return Ok(Vec::new());
        };
        let first = self.shared().reserve(requests.len() as u64);
        let wire = requests
            .iter()
            .zip(first..)
            .map(|(Request { method, params }, id)| Wire {
                jsonrpc: "2.0",
                id,
                method,
                params,
            })
            .collect::<Vec<_>>();
        let text = serde_json::to_string(&wire);
        let answers = self
            .ask(first_method, first, requests.len(), text, deadline)
            .await?;
        Ok(requests
            .iter()
            .zip(answers)
            .map(|(request, answer)| result(&request.method, answer))
            .collect())
    }

    /// Subscribes to what `params` say (`eth_subscribe`).
    pub async fn subscribe(&self, params: impl Serialize) -> Result<SubscriptionId, CallError> {
        let method = "eth_subscribe";
        let name: String = self.call(method, params).await?;
        SubscriptionId::new(&name).ok_or_else(|| CallError::Malformed {
            method: method.to_owned(),
            what: format!(
                "a subscription's name has {} bytes, 128 are the most",
                name.len()
            ),
        })
    }

    /// Ends a subscription; `false` if the node did not know it. Notifications of it that are on their way still come.
    pub async fn unsubscribe(&self, subscription: &SubscriptionId) -> Result<bool, CallError> {
        self.call("eth_unsubscribe", [subscription.as_str()]).await
    }

    /// What ends the connection from elsewhere.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer(Arc::clone(self.shared()))
    }

    /// Why the connection ended, if it has.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        self.shared().closed()
    }

    /// What came that nobody waited for.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared().counts()
    }

    /// How many calls wait for their answers.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared().in_flight()
    }

    async fn ask(
        &self,
        method: &str,
        first: u64,
        count: usize,
        text: serde_json::Result<String>,
        deadline: Duration,
    ) -> Result<Vec<Option<Answer>>, CallError> {
        let method = || method.to_owned();
        let text = text.map_err(|error| CallError::Malformed {
            method: method(),
            what: format!("its parameters are not JSON: {error}"),
        })?;
        let limit = self.shared().limits.transport.message_bytes;
        if text.len() > limit {
            return Err(CallError::TooLarge {
                method: method(),
                limit,
                size: text.len(),
            });
        }
        let shared = self.shared();
        shared
            .enqueue(first, count, text.into())
            .map_err(|refused| match refused {
                Refused::Closed(why) => CallError::Closed {
                    method: method(),
                    why,
                },
                Refused::Busy { in_flight } => CallError::Busy {
                    method: method(),
                    in_flight,
                    wanted: count,
                    limit: shared.limits.in_flight,
                },
            })?;
        let asked = Asked {
            shared,
            first,
            count,
        };
        match timeout(
            deadline,
            std::future::poll_fn(|cx| asked.shared.poll_group(first, cx)),
        )
        .await
        {
            Ok(answers) => answers.map_err(|why| CallError::Closed {
                method: method(),
                why,
            }),
            Err(_) => Err(CallError::TimedOut {
                method: method(),
                after: deadline,
            }),
        }
    }
}

fn result(method: &str, answer: Option<Answer>) -> Result<Value, CallError> {
    let method = method.to_owned();
    match answer {
        Some(Answer::Result(value)) => Ok(value),
        Some(Answer::Node(NodeError {
            code,
            message,
            data,
        })) => Err(CallError::Node {
            method,
            code,
            message,
            data,
        }),
        Some(Answer::Malformed(what)) => Err(CallError::Malformed {
            method,
            what: what.to_owned(),
        }),
        None => Err(CallError::Malformed {
            method,
            what: "the batch was answered without it".to_owned(),
        }),
    }
}
