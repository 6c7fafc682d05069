//! What the process tells the outside of its health: to probes over HTTP, to a service manager by datagram.
//!
//! Both ask a [`Health`] or are told by whoever has one; neither knows what the process is made of.
//!
//! # Invariants
//! - Answers are asked for at the moment of the question. Nothing here keeps one.
//! - Nothing here can hold up the program or end it: a client that hangs, a manager that is gone and a
//!   full socket cost a connection or a line in the log.

pub mod notify;
pub mod server;

pub use notify::Notifier;
pub use server::{HealthError, Limits, Server};

use serde::Serialize;
use std::time::Duration;

/// How long a stop may take unless told otherwise: the one deadline that all its phases share.
pub const DEFAULT_STOP_BUDGET: Duration = Duration::from_secs(10);

/// What a service manager should wait beyond the stop budget before it kills: for the report of the stop,
/// and for a process that its quota keeps from running.
pub const STOP_MARGIN: Duration = Duration::from_secs(5);

/// The port of the health endpoint in the examples of deployment.
pub const DEFAULT_HEALTH_PORT: u16 = 9464;

/// Who knows how the process is.
///
/// It is asked on the endpoint's thread, so an answer must be quick and wait for nobody: while it is being
/// made, no other client is served.
pub trait Health: Send + Sync {
    /// Whether the process is alive, or why it should be killed. True while a stop makes progress.
    fn liveness(&self) -> Answer;

    /// Whether the process is ready, or why it is not. False from the moment a stop begins.
    fn readiness(&self) -> Answer;
}

/// What a probe is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Answer {
    /// Yes or no.
    pub ok: bool,
    /// The state of the process in one word, in lower case.
    pub state: &'static str,
    /// Why not; with a yes, what is degraded.
    pub reasons: Vec<Reason>,
    /// The newest header of the chain, where one has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadSeen>,
}

/// The newest header that the source has told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct HeadSeen {
    /// Its height.
    pub number: u64,
    /// Milliseconds since it came.
    pub age_ms: u64,
}

impl Answer {
    /// Yes, and nothing to add.
    #[must_use]
    pub fn yes(state: &'static str) -> Self {
        Self {
            ok: true,
            state,
            reasons: Vec::new(),
            head: None,
        }
    }

    /// No, for these reasons.
    #[must_use]
    pub fn no(state: &'static str, reasons: Vec<Reason>) -> Self {
        Self {
            ok: false,
            state,
            reasons,
            head: None,
        }
    }
}

/// What is wrong with a component.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reason {
    /// The component.
    pub component: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Reason {
    /// What is wrong with `component`.
    #[must_use]
    pub fn new(component: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            component: component.into(),
            reason: reason.into(),
        }
    }
}
