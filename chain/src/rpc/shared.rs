//! What the clients, the session and the taker of notifications share.
//!
//! # Invariants
//! - A group is the calls of one message: their ids follow one another, and it is known by the first.
//! - `in_flight` is the number of calls in all groups.
//! - `closed` is set once, and the first reason stays. From then on nothing is sent, and no group gains an answer.
//! - The lock is held for moves only: no JSON is read or written under it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::message::{Answer, Incoming};
use super::{Limits, NodeError, SubscriptionId};
use crate::transport::{Closed, Text};

/// What came that nobody waited for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Answers to no call, or to one that waits no more.
    pub unknown_answers: u64,
    /// Errors that name no call, where it was not plain which one was meant.
    pub unaddressed_errors: u64,
    /// Notifications after their taker was dropped.
    pub untaken_notifications: u64,
    /// Requests, and notifications that belong to no subscription.
    pub other_messages: u64,
}

/// The calls of one message.
struct Group {
    answers: Vec<Option<Answer>>,
    left: usize,
    /// Nothing more can come for it.
    done: bool,
    waker: Option<Waker>,
}

impl Group {
    fn finish(&mut self) {
        self.done = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

struct Waiting {
    subscription: SubscriptionId,
    value: Value,
    bytes: usize,
}

#[derive(Default)]
struct State {
    groups: BTreeMap<u64, Group>,
    in_flight: usize,
    /// What is still to be sent, by group.
    outgoing: VecDeque<(u64, Text)>,
    notifications: VecDeque<Waiting>,
    notification_bytes: usize,
    /// Nobody takes notifications any more.
    untaken: bool,
    counts: Counts,
    closed: Option<Closed>,
    session: Option<Waker>,
    taker: Option<Waker>,
}

pub(super) struct Shared {
    pub(super) limits: Limits,
    next_id: AtomicU64,
    state: Mutex<State>,
}

/// Why calls were not accepted.
pub(super) enum Refused {
    Closed(Closed),
    Busy { in_flight: usize },
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Shared")
            .field("in_flight", &state.in_flight)
            .field("closed", &state.closed)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            next_id: AtomicU64::new(1),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first of `count` ids that nobody had before.
    pub(super) fn reserve(&self, count: u64) -> u64 {
        self.next_id.fetch_add(count, Ordering::Relaxed)
    }

    /// Takes calls to be sent.
    pub(super) fn enqueue(&self, first: u64, count: usize, text: Text) -> Result<(), Refused> {
        let mut state = self.state();
        if let Some(closed) = &state.closed {
            return Err(Refused::Closed(closed.clone()));
        }
        if state.in_flight.saturating_add(count) > self.limits.in_flight {
            return Err(Refused::Busy {
                in_flight: state.in_flight,
            });
        }
        state.in_flight += count;
        let answers = std::iter::repeat_with(|| None).take(count).collect();
        state.groups.insert(
            first,
            Group {
                answers,
                left: count,
                done: false,
                waker: None,
            },
        );
        state.outgoing.push_back((first, text));
        wake(&mut state.session);
        Ok(())
    }

    /// The answers of a group, when nothing more can come for it. `None` is a call without one.
    pub(super) fn poll_group(
        &self,
        first: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Vec<Option<Answer>>, Closed>> {
        let mut state = self.state();
        let State { groups, closed, .. } = &mut *state;
        match (groups.get_mut(&first), closed) {
            (Some(group), _) if group.done => Poll::Ready(Ok(std::mem::take(&mut group.answers))),
            (_, Some(closed)) => Poll::Ready(Err(closed.clone())),
            (Some(group), None) => {
                group.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            // Only its one owner forgets a group.
            (None, None) => Poll::Ready(Err(Closed::Dropped)),
        }
    }

    /// Drops all that is held for a group of `count` calls.
    pub(super) fn forget(&self, first: u64, count: usize) {
        let mut state = self.state();
        if state.groups.remove(&first).is_some() {
            state.in_flight -= count;
            state.outgoing.retain(|(group, _)| *group != first);
        }
    }

    /// The next message to be sent; if there is none, the session is woken when there is.
    pub(super) fn poll_outgoing(&self, cx: &mut Context<'_>) -> Option<Text> {
        let mut state = self.state();
        state.session = Some(cx.waker().clone());
        state.outgoing.pop_front().map(|(_, text)| text)
    }

    /// Why the connection ended; if it has not, the session is woken when it does.
    pub(super) fn poll_closed(&self, cx: &mut Context<'_>) -> Option<Closed> {
        let mut state = self.state();
        state.session = Some(cx.waker().clone());
        state.closed.clone()
    }

    pub(super) fn closed(&self) -> Option<Closed> {
        self.state().closed.clone()
    }

    pub(super) fn counts(&self) -> Counts {
        self.state().counts
    }

    pub(super) fn in_flight(&self) -> usize {
        self.state().in_flight
    }

    /// Ends the connection for everybody. The first reason stays, and is returned.
    pub(super) fn end(&self, why: Closed) -> Closed {
        let mut state = self.state();
        let why = state.closed.get_or_insert(why).clone();
        state.outgoing.clear();
        wake(&mut state.session);
        wake(&mut state.taker);
        for group in state.groups.values_mut() {
            wake(&mut group.waker);
        }
        why
    }

    /// Delivers what a message of `bytes` bytes held.
    pub(super) fn deliver(
        &self,
        is_array: bool,
        parts: Vec<Incoming>,
        bytes: usize,
    ) -> Result<(), Closed> {
        let mut state = self.state();
        let mut touched = Vec::new();
        for part in parts {
            match part {
                Incoming::Answer { id, answer } => match state.answer(id, answer) {
                    Some(first) => touched.push(first),
                    None => state.counts.unknown_answers += 1,
                },
                Incoming::Unknown => state.counts.unknown_answers += 1,
                Incoming::Other => state.counts.other_messages += 1,
                Incoming::Unaddressed(error) => state.answer_the_only_one(&error),
                Incoming::Notification {
                    subscription,
                    value,
                } => {
                    state.notify(
                        Waiting {
                            subscription,
                            value,
                            bytes,
                        },
                        &self.limits,
                    )?;
                }
            }
        }
        for first in touched {
            if let Some(group) = state.groups.get_mut(&first)
                && (is_array || group.left == 0)
            {
                group.finish();
            }
        }
        Ok(())
    }

    pub(super) fn poll_notification(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(SubscriptionId, Value)>> {
        let mut state = self.state();
        if let Some(Waiting {
            subscription,
            value,
            bytes,
        }) = state.notifications.pop_front()
        {
            state.notification_bytes -= bytes;
            return Poll::Ready(Some((subscription, value)));
        }
        if state.closed.is_some() {
            return Poll::Ready(None);
        }
        state.taker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Nobody will take notifications.
    pub(super) fn leave_untaken(&self) {
        let mut state = self.state();
        state.untaken = true;
        state.counts.untaken_notifications += state.notifications.len() as u64;
        state.notifications.clear();
        state.notification_bytes = 0;
    }
}

impl State {
    /// Puts an answer into its group, whose first id it returns, if a group waits for it.
    fn answer(&mut self, id: u64, answer: Answer) -> Option<u64> {
        let (&first, group) = self.groups.range_mut(..=id).next_back()?;
        let slot = group.answers.get_mut(usize::try_from(id - first).ok()?)?;
        if group.done {
            return None;
        }
        if slot.is_none() {
            *slot = Some(answer);
            group.left -= 1;
        } else {
            *slot = Some(Answer::Malformed("it came twice"));
        }
        Some(first)
    }

    /// An error that names no call is for the only message that waits for an answer. With several it is for none: whose
    /// it was ends at its deadline.
    fn answer_the_only_one(&mut self, error: &NodeError) {
        let mut waiting = self.groups.values_mut().filter(|group| !group.done);
        match (waiting.next(), waiting.next()) {
            (Some(group), None) => {
                for answer in group.answers.iter_mut().filter(|answer| answer.is_none()) {
                    *answer = Some(Answer::Node(error.clone()));
                }
                group.finish();
            }
            _ => self.counts.unaddressed_errors += 1,
        }
    }

    fn notify(&mut self, waiting: Waiting, limits: &Limits) -> Result<(), Closed> {
        if self.untaken {
            self.counts.untaken_notifications += 1;
            return Ok(());
        }
        let count = self.notifications.len() + 1;
        let bytes = self.notification_bytes.saturating_add(waiting.bytes);
        let (count_limit, bytes_limit) = (limits.notifications, limits.notification_bytes);
        if count > count_limit || bytes > bytes_limit {
            return Err(Closed::Overflow {
                count,
                bytes,
                count_limit,
                bytes_limit,
            });
        }
        self.notifications.push_back(waiting);
        self.notification_bytes = bytes;
        wake(&mut self.taker);
        Ok(())
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
