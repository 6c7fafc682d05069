//! A socket for the doctor's questions, which is made anew when an answer has ended it.
//!
//! # Invariants
//! - Nothing waits beyond the line's end, nor longer than a step.
//! - A socket is connected at most [`CONNECTS`] times.

use super::record::AnswerRecord;
use regatta_chain::endpoint::Endpoint;
use regatta_chain::rpc::{self, CallError, Client, Notifications, Request};
use regatta_chain::transport::{Closed, ConnectError, shown};
use serde_json::Value;
use std::io;
use std::time::Duration;
use thiserror::Error;
use tokio::time::{Instant, timeout};

/// How often a socket is connected that ends again and again.
const CONNECTS: u32 = 12;

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum Failure {
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The socket did not connect again.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It ended too often.
    #[error("the node ended {CONNECTS} connections: no more are made")]
    TooOften,
    /// The time was over.
    #[error("no time was left for it: give more with --for")]
    NoTime,
}

impl Failure {
    /// What it is, as [`AnswerRecord::says`] has it.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Call(CallError::Node { .. }) => "refused",
            Self::Call(CallError::TimedOut { .. }) => "timed_out",
            Self::Call(CallError::Malformed { .. }) => "malformed",
            Self::Call(
                CallError::TooLarge { .. }
                | CallError::Closed {
                    why: Closed::TooLarge { .. },
                    ..
                },
            ) => "too_large",
            Self::Call(CallError::Closed {
                why: Closed::Garbage { .. } | Closed::Protocol { .. },
                ..
            }) => "garbage",
            Self::Call(CallError::Closed { .. }) => "closed",
            Self::Call(CallError::Busy { .. }) => "busy",
            Self::Connect(_) | Self::TooOften => "unreachable",
            Self::NoTime => "no_time",
        }
    }

    /// As a record.
    pub(super) fn record(&self) -> AnswerRecord {
        let (code, message) = match self {
            Self::Call(CallError::Node { code, message, .. }) => (Some(*code), shown(message)),
            other => (None, other.to_string()),
        };
        AnswerRecord {
            says: self.kind(),
            code,
            message: Some(message),
        }
    }
}

/// A socket for questions.
pub(super) struct Line<'a> {
    endpoint: &'a Endpoint,
    limits: rpc::Limits,
    client: Client,
    connects: u32,
    /// How long one question may take.
    step: Duration,
    /// When no more is asked.
    until: Instant,
    /// The largest answer so far, in bytes.
    pub(super) largest: usize,
}

/// Connects a socket that runs by itself until its last client is gone.
pub(super) async fn open(
    endpoint: &Endpoint,
    limits: &rpc::Limits,
) -> Result<(Client, Notifications), ConnectError> {
    let (client, notifications, session) = rpc::connect(endpoint, limits).await?;
    // It ends when the client is dropped, and with the runtime.
    drop(tokio::spawn(session));
    Ok((client, notifications))
}

impl<'a> Line<'a> {
    pub(super) async fn connect(
        endpoint: &'a Endpoint,
        limits: rpc::Limits,
        step: Duration,
        until: Instant,
    ) -> Result<Self, ConnectError> {
        let (client, _) = open(endpoint, &limits).await?;
        Ok(Self {
            endpoint,
            limits,
            client,
            connects: 1,
            step,
            until,
            largest: 0,
        })
    }

    /// Calls `method`.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        let (client, deadline) = self.ready().await?;
        let answer = client.call_within(method, params, deadline).await;
        self.sized(answer, size)
    }

    /// Calls everything of `requests` in one message. An answer without one of them is a failure, and so is an error to
    /// one: what it says is given.
    pub(super) async fn batch(&mut self, requests: Vec<Request>) -> Result<Vec<Value>, Failure> {
        let (client, deadline) = self.ready().await?;
        let answers = client.batch_within(requests, deadline).await;
        let answers: Result<Vec<Value>, CallError> =
            answers.and_then(|answers| answers.into_iter().collect());
        self.sized(answers, |values| values.iter().map(size).sum())
    }

    fn sized<T>(
        &mut self,
        answer: Result<T, CallError>,
        size: impl Fn(&T) -> usize,
    ) -> Result<T, Failure> {
        let bytes = match &answer {
            Ok(value) => size(value),
            Err(CallError::Closed {
                why: Closed::TooLarge { size, .. },
                ..
            }) => *size,
            Err(_) => 0,
        };
        self.largest = self.largest.max(bytes);
        Ok(answer?)
    }

    /// A client of a living connection, and how long the next question may take.
    async fn ready(&mut self) -> Result<(Client, Duration), Failure> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        if left(self.until).is_zero() {
            return Err(Failure::NoTime);
        }
        if self.client.closed().is_some() {
            if self.connects >= CONNECTS {
                return Err(Failure::TooOften);
            }
            self.connects += 1;
            let within = self.step.min(left(self.until));
            match timeout(within, open(self.endpoint, &self.limits)).await {
                Ok(opened) => self.client = opened?.0,
                Err(_) => return Err(Failure::NoTime),
            }
        }
        Ok((self.client.clone(), self.step.min(left(self.until))))
    }
}

/// The bytes of `value` as text, with some forty around it in an answer.
pub(super) fn size(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(40);
    // Counting cannot fail, and neither can writing what was read.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
