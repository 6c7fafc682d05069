//! Reading contracts at one block: many questions, some of which go wrong.
//!
//! Questions are asked by the block's hash, in batches. A batch that fails is halved until the one question that sinks it
//! stands alone, so that one bad contract costs itself and no other.
//!
//! # Invariants
//! - Every question gets one answer, in the order of the questions.
//! - The number of calls is bounded: a batch of `n` that fails costs at most `2n` more, and a question that the node
//!   answers with an error is asked at most [`Limits::attempts`] times, not counting what halving costs.
//! - Only the end of the connection ends a reading, and a node that lets so many calls in a row time out that no single
//!   bad question explains it.

use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes};
use serde_json::{Value, json};
use thiserror::Error;

use crate::rpc::{CallError, Client, Request};

/// How much is asked at once, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most questions in one message.
    pub batch: usize,
    /// How often a question is asked that the node answers with an error; at least once.
    pub attempts: u32,
    /// How long to wait before the second time; each further wait is twice as long.
    pub backoff: Duration,
}

impl Default for Limits {
    /// Hosted nodes take batches of a hundred; a block that was just announced is everywhere within a second.
    fn default() -> Self {
        Self {
            batch: 100,
            attempts: 4,
            backoff: Duration::from_millis(100),
        }
    }
}

/// A question to a contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Whom to ask.
    pub to: Address,
    /// What.
    pub data: Bytes,
}

impl Question {
    /// A call of a contract's function.
    pub fn new(to: Address, call: &impl alloy_sol_types::SolCall) -> Self {
        Self {
            to,
            data: call.abi_encode().into(),
        }
    }
}

/// Why a question has no answer of use.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Unanswered {
    /// There is no contract at the address: a call of it succeeds, and says nothing.
    #[error("there is no code at {0}")]
    NoCode(Address),
    /// The contract says nothing.
    #[error("{0} answers with nothing: it has no such function")]
    Silent(Address),
    /// The node, or the contract through it, refuses.
    #[error("{to}: {error}")]
    Refused {
        /// Who was asked.
        to: Address,
        /// What came.
        error: CallError,
    },
    /// The answer has another form than the function's.
    #[error("{to} answers with {} bytes that are no answer of `{function}`", answer.len())]
    Form {
        /// Who was asked.
        to: Address,
        /// What it was asked.
        function: &'static str,
        /// What it said.
        answer: Bytes,
    },
}

/// Reads at one block.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    client: &'a Client,
    at: B256,
    limits: Limits,
    gas: Option<u64>,
}

impl<'a> Reader<'a> {
    /// Reads by `client` at the block of hash `at`.
    #[must_use]
    pub const fn new(client: &'a Client, at: B256, limits: Limits) -> Self {
        Self {
            client,
            at,
            limits,
            gas: None,
        }
    }

    /// Gives each call this much gas at most, and asks no more than `batch` questions in one message. It bounds what a
    /// contract of anybody can say, and so the size of the answer: one that is over the limit of a message would end the
    /// connection.
    #[must_use]
    pub fn frugal(mut self, gas: u64, batch: usize) -> Self {
        self.gas = Some(gas);
        self.limits.batch = self.limits.batch.min(batch);
        self
    }

    /// Asks everything and decodes the answers.
    pub async fn ask<C: alloy_sol_types::SolCall>(
        &self,
        questions: &[(Address, C)],
    ) -> Result<Vec<Result<C::Return, Unanswered>>, CallError> {
        let plain: Vec<Question> = questions
            .iter()
            .map(|(to, call)| Question::new(*to, call))
            .collect();
        let answers = self.raw(&plain).await?;
        let decoded = answers.into_iter().zip(questions).map(|(answer, (to, _))| {
            let answer = answer?;
            C::abi_decode_returns_validate(&answer).map_err(|_| Unanswered::Form {
                to: *to,
                function: C::SIGNATURE,
                answer,
            })
        });
        Ok(decoded.collect())
    }

    /// Asks everything.
    pub async fn raw(
        &self,
        questions: &[Question],
    ) -> Result<Vec<Result<Bytes, Unanswered>>, CallError> {
        let requests: Vec<Request> = questions.iter().map(|q| self.request(q)).collect();
        let values = self.values(&requests).await?;
        let mut answers: Vec<Result<Bytes, Unanswered>> = values
            .into_iter()
            .zip(questions)
            .map(|(value, question)| bytes(question.to, "eth_call", value))
            .collect();
        self.look_for_code(questions, &mut answers).await?;
        Ok(answers)
    }

    /// The code at each address; empty where there is none.
    pub async fn codes(
        &self,
        addresses: &[Address],
    ) -> Result<Vec<Result<Bytes, Unanswered>>, CallError> {
        let requests: Vec<Request> = addresses
            .iter()
            .map(|address| Request::new("eth_getCode", json!([address, self.block()])))
            .collect();
        let values = self.values(&requests).await?;
        let codes = values.into_iter().zip(addresses);
        Ok(codes
            .map(|(value, to)| bytes(*to, "eth_getCode", value))
            .collect())
    }

    /// Asks any requests in batches, halving those that fail, and once more what the node answers with an error: it may
    /// not have the block yet.
    ///
    /// A batch in which nothing is answered may be one that was refused as a whole, which nodes say in many ways. It is
    /// halved too, but only at the last attempt, since the block may just not be there yet.
    pub async fn values(
        &self,
        requests: &[Request],
    ) -> Result<Vec<Result<Value, CallError>>, CallError> {
        let batch = self.limits.batch.max(1);
        let attempts = self.limits.attempts.max(1);
        // One bad question lets every batch time out that it is in, of which there are as many as halvings.
        let most_silences = batch.ilog2() + 3;
        let mut silences = 0;
        let mut results: Vec<Option<Result<Value, CallError>>> = vec![None; requests.len()];
        let mut wait = self.limits.backoff;
        for attempt in 1..=attempts {
            let open: Vec<usize> = (0..requests.len())
                .filter(|&i| !matches!(results.get(i), Some(Some(Ok(_)))))
                .collect();
            if open.is_empty() {
                break;
            }
            if attempt > 1 {
                tokio::time::sleep(wait).await;
                wait = wait.saturating_mul(2);
            }
            // Ranges of `open` that are still to be asked, the next one last.
            let mut parts: Vec<&[usize]> = open.chunks(batch).rev().collect();
            while let Some(part) = parts.pop() {
                let asked = part.iter().filter_map(|&i| requests.get(i).cloned());
                let came = self.client.batch(asked.collect()).await;
                let is_silence = matches!(came, Err(CallError::TimedOut { .. }));
                silences = if is_silence { silences + 1 } else { 0 };
                let halves = match &came {
                    Ok(answers) => attempt == attempts && answers.iter().all(Result::is_err),
                    Err(error) if error.is_closed() || silences > most_silences => {
                        return Err(error.clone());
                    }
                    // Whatever it was, less is asked at once: codes and words of refusals differ between nodes.
                    Err(_) => true,
                };
                if halves && part.len() > 1 {
                    let (front, back) = part.split_at(part.len() / 2);
                    parts.extend([back, front]);
                    continue;
                }
                let answers = came.unwrap_or_else(|error| vec![Err(error); part.len()]);
                for (&i, answer) in part.iter().zip(answers) {
                    if let Some(place) = results.get_mut(i) {
                        *place = Some(answer);
                    }
                }
            }
        }
        let unasked = || {
            Err(CallError::Malformed {
                method: "batch".to_owned(),
                what: "the question was not asked".to_owned(),
            })
        };
        Ok(results
            .into_iter()
            .map(|r| r.unwrap_or_else(unasked))
            .collect())
    }

    /// Says of answers without a byte whether anybody was there to give one.
    async fn look_for_code(
        &self,
        questions: &[Question],
        answers: &mut [Result<Bytes, Unanswered>],
    ) -> Result<(), CallError> {
        let silent: Vec<(usize, Address)> = answers
            .iter()
            .zip(questions)
            .enumerate()
            .filter(|(_, (answer, _))| answer.as_ref().is_ok_and(|bytes| bytes.is_empty()))
            .map(|(i, (_, question))| (i, question.to))
            .collect();
        let addresses: Vec<Address> = silent.iter().map(|(_, address)| *address).collect();
        let codes = self.codes(&addresses).await?;
        for ((i, to), code) in silent.into_iter().zip(codes) {
            if let Some(answer) = answers.get_mut(i) {
                *answer = Err(match code {
                    Ok(code) if code.is_empty() => Unanswered::NoCode(to),
                    Ok(_) => Unanswered::Silent(to),
                    Err(error) => error,
                });
            }
        }
        Ok(())
    }

    fn request(&self, question: &Question) -> Request {
        let mut call = json!({ "to": question.to, "data": question.data });
        if let (Some(gas), Some(fields)) = (self.gas, call.as_object_mut()) {
            fields.insert("gas".to_owned(), json!(format!("{gas:#x}")));
        }
        Request::new("eth_call", json!([call, self.block()]))
    }

    /// The block by its hash (EIP-1898).
    fn block(&self) -> Value {
        json!({ "blockHash": self.at })
    }
}

/// The bytes that a call answers with.
fn bytes(to: Address, method: &str, value: Result<Value, CallError>) -> Result<Bytes, Unanswered> {
    let value = value.map_err(|error| Unanswered::Refused { to, error })?;
    serde_json::from_value(value).map_err(|error| Unanswered::Refused {
        to,
        error: CallError::Malformed {
            method: method.to_owned(),
            what: error.to_string(),
        },
    })
}
