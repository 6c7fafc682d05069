//! Calls to a node and the notifications it sends: JSON-RPC 2.0 over one [`Socket`].
//!
//! [`connect`] gives three things. The [`Session`] is a future that runs the socket: poll it beside whatever uses the rest;
//! it resolves to why the connection ended. A [`Client`] makes calls. [`Notifications`] gives what subscriptions bring.
//!
//! # Invariants
//! - An answer belongs to a call by its id, and an id is used once. An answer to no call is counted and ignored.
//! - A call ends: with an answer, at its deadline, or with the connection. What it held is released then, also if its
//!   future is dropped; a call that was still to be sent is then not sent.
//! - Notifications come in the order of their arrival, whether or not the answer that names their subscription has been
//!   seen by who asked. None is dropped in silence: more than may wait end the connection.
//! - What is not JSON-RPC ends the connection: after it, nothing that comes can be told apart.
//! - Dropping the session, dropping the last client, and a [`Closer`] each end the connection and every call at once.
//!
//! A parsed answer takes up to some sixteen times the bytes of its text, which the limit on a message bounds.

mod client;
mod error;
mod message;
mod notifications;
mod session;
mod shared;

use std::sync::Arc;
use std::time::Duration;

pub use client::{Client, Closer, Request};
pub use error::{CallError, NodeError};
pub use message::SubscriptionId;
pub use notifications::Notifications;
pub use session::Session;
pub use shared::Counts;

use crate::endpoint::Endpoint;
use crate::transport::{self, ConnectError, Roots, Socket};
use shared::Shared;

/// What a connection may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// What its socket may take.
    pub transport: transport::Limits,
    /// How long a call may take, where the caller does not say.
    pub call: Duration,
    /// The most calls whose answers are waited for; each call of a batch counts.
    pub in_flight: usize,
    /// The most notifications that wait to be taken.
    pub notifications: usize,
    /// The most bytes of text that they had.
    pub notification_bytes: usize,
}

impl Default for Limits {
    /// A block of a busy chain has a few thousand logs of some 700 bytes; several of them may come at once.
    fn default() -> Self {
        Self {
            transport: transport::Limits::default(),
            call: Duration::from_secs(10),
            in_flight: 1024,
            notifications: 65_536,
            notification_bytes: 64 << 20,
        }
    }
}

/// Connects to `endpoint`, trusting the system's root certificates.
pub async fn connect(
    endpoint: &Endpoint,
    limits: &Limits,
) -> Result<(Client, Notifications, Session), ConnectError> {
    connect_with(endpoint, limits, &Roots::System).await
}

/// Connects to `endpoint`, trusting `roots`.
pub async fn connect_with(
    endpoint: &Endpoint,
    limits: &Limits,
    roots: &Roots,
) -> Result<(Client, Notifications, Session), ConnectError> {
    Ok(over(
        transport::connect(endpoint, &limits.transport, roots).await?,
        limits,
    ))
}

/// Speaks JSON-RPC over a socket that is connected.
pub fn over(socket: Socket, limits: &Limits) -> (Client, Notifications, Session) {
    let shared = Arc::new(Shared::new(*limits));
    (
        Client::new(&shared),
        Notifications::new(&shared),
        Session::new(socket, shared),
    )
}
