//! The future that runs the socket.
//!
//! # Invariants
//! - What has come is read before anything is written, so that the reason which a node gave before it closed is seen.
//! - When it resolves, and when it is dropped, the socket is closed and every call has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Sink, Stream};

use super::message;
use super::shared::Shared;
use crate::transport::{Closed, Socket};

/// Runs a connection until it ends, and says why it did. Without it being polled nothing is sent, and nothing comes.
#[derive(Debug)]
#[must_use = "nothing is sent and nothing comes unless the session is polled"]
pub struct Session {
    socket: Option<Socket>,
    shared: Arc<Shared>,
}

impl Session {
    pub(super) fn new(socket: Socket, shared: Arc<Shared>) -> Self {
        Self {
            socket: Some(socket),
            shared,
        }
    }

    fn turn(socket: &mut Socket, shared: &Shared, cx: &mut Context<'_>) -> Result<(), Closed> {
        while let Poll::Ready(came) = Pin::new(&mut *socket).poll_next(cx) {
            let text = came.unwrap_or(Err(Closed::Ended))?;
            let (is_array, parts) = message::read(&text)?;
            shared.deliver(is_array, parts, text.len())?;
        }
        while let Poll::Ready(ready) = Pin::new(&mut *socket).poll_ready(cx) {
            ready?;
            let Some(text) = shared.poll_outgoing(cx) else {
                break;
            };
            Pin::new(&mut *socket).start_send(text)?;
        }
        match Pin::new(socket).poll_flush(cx) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }
}

impl Future for Session {
    type Output = Closed;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Closed> {
        let Self { socket, shared } = &mut *self;
        let ended = match (socket.as_mut(), shared.poll_closed(cx)) {
            (_, Some(closed)) => Err(closed),
            (Some(socket), None) => Self::turn(socket, shared, cx),
            (None, None) => Err(Closed::Dropped),
        };
        match ended {
            Ok(()) => Poll::Pending,
            Err(why) => {
                *socket = None;
                Poll::Ready(shared.end(why))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.socket = None;
        self.shared.end(Closed::Dropped);
    }
}
