//! One connected socket, which carries whole text messages both ways.
//!
//! # Invariants
//! - No message over the limit is ever held: what announces more, or grows beyond it, ends the connection.
//! - Everything from the look-up of the name to the last handshake has one deadline.
//! - A WebSocket on which nothing comes is pinged, and ends if nothing comes then either: a cut network gives no error.
//! - The TLS provider is passed by hand; nothing here depends on a default of the process.
//!
//! A host that is a name is looked up by the system on a thread of the runtime, which cannot be interrupted: who must stop
//! at once shuts the runtime down in the background.

mod connect;
mod error;
mod frame;
mod ipc;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

pub use connect::{Roots, connect};
pub use error::{Closed, ConnectError, SHOWN, shown};
pub use frame::Framer;
/// A text whose clones share it.
pub use tokio_tungstenite::tungstenite::Utf8Bytes as Text;

/// What a connection may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most bytes of a message, either way.
    pub message_bytes: usize,
    /// The longest that connecting may take.
    pub connect: Duration,
    /// How long nothing may come before the node is pinged. IPC has no ping: the kernel says when the other side is gone.
    pub ping_after: Duration,
    /// How long the answer to a ping may take.
    pub ping_deadline: Duration,
}

impl Default for Limits {
    /// 16 MiB is what the common nodes send at most; ten seconds of silence are more than a block of any chain that
    /// this serves makes, when a pong counts as well.
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            connect: Duration::from_secs(10),
            ping_after: Duration::from_secs(10),
            ping_deadline: Duration::from_secs(5),
        }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connected socket: a stream of texts, each of which is a message, and a sink for such.
///
/// The stream ends with one error that says why. Both halves belong to one task: the keep-alive runs while the stream is
/// polled, and its pings leave when the sink is flushed, which the stream sees to.
pub struct Socket {
    wire: Wire,
    keep_alive: Option<KeepAlive>,
    ended: bool,
}

enum Wire {
    Web(Box<WebSocketStream<Box<dyn Duplex>>>),
    Ipc(ipc::Ipc),
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

struct KeepAlive {
    ping_after: Duration,
    deadline: Duration,
    timer: Pin<Box<Sleep>>,
    /// Whether a ping has no answer yet.
    asked: bool,
    /// Whether the ping has still to be handed to the socket.
    due: bool,
}

impl KeepAlive {
    fn new(limits: &Limits) -> Self {
        Self {
            ping_after: limits.ping_after,
            deadline: limits.ping_deadline,
            timer: Box::pin(sleep_until(Instant::now() + limits.ping_after)),
            asked: false,
            due: false,
        }
    }

    fn heard(&mut self) {
        self.asked = false;
        self.due = false;
        self.timer.as_mut().reset(Instant::now() + self.ping_after);
    }

    /// Whether the node is to be taken for dead.
    fn poll(&mut self, cx: &mut Context<'_>) -> Result<(), Closed> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.asked {
                return Err(Closed::Silent {
                    quiet: self.ping_after,
                    deadline: self.deadline,
                });
            }
            self.asked = true;
            self.due = true;
            self.timer.as_mut().reset(Instant::now() + self.deadline);
        }
        Ok(())
    }
}

impl Socket {
    fn web(stream: WebSocketStream<Box<dyn Duplex>>, limits: &Limits) -> Self {
        Self {
            wire: Wire::Web(Box::new(stream)),
            keep_alive: Some(KeepAlive::new(limits)),
            ended: false,
        }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Text, Closed>> {
        loop {
            let came = match &mut self.wire {
                Wire::Ipc(ipc) => return ipc.poll_message(cx),
                Wire::Web(stream) => Pin::new(&mut **stream).poll_next(cx),
            };
            let Poll::Ready(came) = came else {
                return self.poll_keep_alive(cx);
            };
            if let Some(keep_alive) = &mut self.keep_alive {
                keep_alive.heard();
            }
            return Poll::Ready(match came {
                Some(Ok(Message::Text(text))) => Ok(text),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Binary(bytes))) => {
                    Err(Closed::garbage("a message is binary", &bytes))
                }
                Some(Ok(Message::Close(frame))) => Err(frame.map_or(
                    Closed::ByNode {
                        code: 1005,
                        reason: String::new(),
                    },
                    |frame| Closed::ByNode {
                        code: frame.code.into(),
                        reason: frame.reason.to_string(),
                    },
                )),
                Some(Err(error)) => Err(Closed::of(&error)),
                None => Err(Closed::Ended),
            });
        }
    }

    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Text, Closed>> {
        let Some(keep_alive) = &mut self.keep_alive else {
            return Poll::Pending;
        };
        if let Err(silent) = keep_alive.poll(cx) {
            return Poll::Ready(Err(silent));
        }
        if keep_alive.due
            && let Poll::Ready(Err(closed)) = self.poll_flushed(cx)
        {
            return Poll::Ready(Err(closed));
        }
        Poll::Pending
    }

    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        match &mut self.wire {
            Wire::Ipc(ipc) => ipc.poll_flushed(cx),
            Wire::Web(stream) => {
                let mut stream = Pin::new(&mut **stream);
                if let Some(keep_alive) = &mut self.keep_alive
                    && keep_alive.due
                {
                    ready!(stream.as_mut().poll_ready(cx)).map_err(|error| Closed::of(&error))?;
                    let ping = Message::Ping(Vec::new().into());
                    stream
                        .as_mut()
                        .start_send(ping)
                        .map_err(|error| Closed::of(&error))?;
                    keep_alive.due = false;
                }
                stream.poll_flush(cx).map_err(|error| Closed::of(&error))
            }
        }
    }
}

impl Stream for Socket {
    type Item = Result<Text, Closed>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let came = ready!(self.poll_message(cx));
        self.ended = came.is_err();
        Poll::Ready(Some(came))
    }
}

impl Sink<Text> for Socket {
    type Error = Closed;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        match &mut self.wire {
            Wire::Ipc(ipc) => ipc.poll_flushed(cx),
            Wire::Web(stream) => Pin::new(&mut **stream)
                .poll_ready(cx)
                .map_err(|error| Closed::of(&error)),
        }
    }

    fn start_send(mut self: Pin<&mut Self>, text: Text) -> Result<(), Closed> {
        match &mut self.wire {
            Wire::Ipc(ipc) => {
                ipc.start_send(&text);
                Ok(())
            }
            Wire::Web(stream) => Pin::new(&mut **stream)
                .start_send(Message::Text(text))
                .map_err(|error| Closed::of(&error)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.poll_flushed(cx)
    }

    /// Flushes, and says goodbye on a WebSocket. Dropping the socket closes it as well, without a word.
    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        ready!(self.poll_flushed(cx))?;
        match &mut self.wire {
            Wire::Ipc(_) => Poll::Ready(Ok(())),
            Wire::Web(stream) => Pin::new(&mut **stream)
                .poll_close(cx)
                .map_err(|error| Closed::of(&error)),
        }
    }
}
