//! The socket of a node on the same machine.
//!
//! # Invariants
//! - One message at a time is being written; the next is taken when it has left.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

use super::{Closed, Framer, Text};

/// How much is read at once: as much as a Unix socket holds by default, about a third of it.
const READ_BYTES: usize = 64 << 10;

pub(super) struct Ipc {
    stream: UnixStream,
    framer: Framer,
    buffer: Box<[u8]>,
    outgoing: Vec<u8>,
    written: usize,
}

impl Ipc {
    pub(super) fn new(stream: UnixStream, limit: usize) -> Self {
        Self {
            stream,
            framer: Framer::new(limit),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            outgoing: Vec::new(),
            written: 0,
        }
    }

    pub(super) fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Text, Closed>> {
        loop {
            if let Some(text) = self.framer.next_value()? {
                return Poll::Ready(Ok(text));
            }
            let mut buffer = ReadBuf::new(&mut self.buffer);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))
                .map_err(|error| Closed::lost(&error))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(Closed::Ended));
            }
            self.framer.push(buffer.filled());
        }
    }

    pub(super) fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        while let Some(rest) = self
            .outgoing
            .get(self.written..)
            .filter(|rest| !rest.is_empty())
        {
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))
                .map_err(|error| Closed::lost(&error))?;
            if count == 0 {
                return Poll::Ready(Err(Closed::Ended));
            }
            self.written += count;
        }
        self.outgoing.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Takes a message. The last one has been flushed.
    pub(super) fn start_send(&mut self, text: &Text) {
        self.outgoing.extend_from_slice(text.as_str().as_bytes());
        // Readers that cut by line exist.
        self.outgoing.push(b'\n');
    }
}
