//! The node's thread: it accepts connections and carries what is said on them.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use futures_util::future::{Either, select};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::accept_async;

use crate::state::{Out, State};
use crate::wire::{CLOSE, Frame, PONG, TEXT, fragments, frame, read_frame, read_value};
use crate::{Door, Listen};

/// What the node's thread and its owner share.
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    version: watch::Sender<u64>,
    door: Notify,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            version: watch::Sender::new(0),
            door: Notify::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes whoever waits for a change.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let made = change(&mut self.lock());
        self.changed.notify_all();
        self.version.send_modify(|version| *version += 1);
        made
    }

    /// Has the thread look at the door again, and at whether it is to stop.
    pub(crate) fn knock(&self) {
        self.door.notify_one();
    }

    pub(crate) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn changed(&self) -> &Condvar {
        &self.changed
    }
}

/// Where the node listens.
#[derive(Clone)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Listener {
    async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            Address::Unix(path) => {
                // What a listener before left behind.
                if let Err(error) = std::fs::remove_file(path)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    return Err(error);
                }
                UnixListener::bind(path).map(Self::Unix)
            }
        }
    }

    async fn accept(&self) -> io::Result<Box<dyn Duplex>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Self::Unix(listener) => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

/// Runs the node until it is stopped. `bound` is its first socket.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    address: Address,
    listen: Listen,
    bound: Option<std::net::TcpListener>,
) -> io::Result<()> {
    let mut listener = match bound {
        Some(bound) => {
            bound.set_nonblocking(true)?;
            Some(Listener::Tcp(TcpListener::from_std(bound)?))
        }
        None => None,
    };
    loop {
        let (stopped, door) = {
            let state = shared.lock();
            (state.stopped, state.door)
        };
        if stopped {
            return Ok(());
        }
        if door == Door::Shut {
            listener = None;
            if let Address::Unix(path) = &address {
                let _ = std::fs::remove_file(path);
            }
            shared.with(|state| state.listening = false);
            shared.door.notified().await;
            continue;
        }
        let open = match listener.take() {
            Some(open) => open,
            None => Listener::bind(&address).await?,
        };
        shared.with(|state| state.listening = true);
        match select(pin!(shared.door.notified()), pin!(open.accept())).await {
            Either::Left(_) => {}
            Either::Right((stream, _)) => {
                let (shared, listen) = (Arc::clone(&shared), listen.clone());
                tokio::spawn(async move {
                    // How a connection ends is seen on its other side.
                    let _ = welcome(shared, listen, stream?).await;
                    io::Result::Ok(())
                });
            }
        }
        listener = Some(open);
    }
}

async fn welcome(
    shared: Arc<Shared>,
    listen: Listen,
    mut stream: Box<dyn Duplex>,
) -> io::Result<()> {
    let door = shared.with(|state| {
        state.knocked += 1;
        state.door
    });
    match door {
        Door::Open | Door::Shut => {}
        Door::Mute => return read_all(&mut stream).await,
        Door::Status(status) => {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                if stream.read_buf(&mut request).await? == 0 {
                    return Ok(());
                }
            }
            stream
                .write_all(format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n").as_bytes())
                .await?;
            return read_all(&mut stream).await;
        }
        Door::Garbage => {
            stream.write_all(b"\x00\xff\x15\x03garbage\r\n\r\n").await?;
            return read_all(&mut stream).await;
        }
    }
    match listen {
        Listen::Ipc => connection(&shared, stream, false).await,
        Listen::Ws => web(&shared, stream).await,
        Listen::Wss(config) => {
            let stream = TlsAcceptor::from(config).accept(stream).await?;
            web(&shared, Box::new(stream)).await;
        }
    }
    Ok(())
}

async fn read_all(stream: &mut Box<dyn Duplex>) -> io::Result<()> {
    let mut buffer = vec![0; 4096];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

async fn web(shared: &Shared, stream: Box<dyn Duplex>) {
    if let Ok(socket) = accept_async(stream).await {
        connection(shared, socket.into_inner(), true).await;
    }
}

async fn connection(shared: &Shared, stream: Box<dyn Duplex>, is_web: bool) {
    let (mut reading, mut writing) = split(stream);
    let (sender, mut receiver) = unbounded_channel();
    let number = shared.with(|state| state.enter(sender));
    let reader = async {
        if is_web {
            read_web(shared, number, &mut reading).await
        } else {
            read_ipc(shared, number, &mut reading).await
        }
    };
    let writer = write(&mut writing, &mut receiver, is_web);
    // Whichever ends first drops the connection.
    drop(select(pin!(reader), pin!(writer)).await);
    shared.with(|state| state.open.remove(&number));
}

async fn read_web(
    shared: &Shared,
    number: usize,
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<()> {
    loop {
        match read_frame(stream).await? {
            Frame::Text(text) => {
                let message = serde_json::from_slice(&text)?;
                shared.with(|state| state.hear(number, &message));
            }
            Frame::Ping(payload) => shared.with(|state| {
                state.pings += 1;
                state.say(number, Out::Pong(payload));
            }),
            Frame::Close => return Ok(()),
            Frame::Other => {}
        }
    }
}

async fn read_ipc(
    shared: &Shared,
    number: usize,
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<()> {
    let mut held = Vec::new();
    loop {
        let message = read_value(stream, &mut held).await?;
        shared.with(|state| state.hear(number, &message));
    }
}

async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    receiver: &mut UnboundedReceiver<Out>,
    is_web: bool,
) -> io::Result<()> {
    while let Some(out) = receiver.recv().await {
        let (bytes, ends) = bytes(out, is_web);
        stream.write_all(&bytes).await?;
        stream.flush().await?;
        if ends {
            break;
        }
    }
    Ok(())
}

/// What goes onto the socket, and whether the connection is dropped after it.
fn bytes(out: Out, is_web: bool) -> (Vec<u8>, bool) {
    match out {
        Out::Text(text) if is_web => (frame(TEXT, text.as_bytes()), false),
        Out::Fragments(text) if is_web => (fragments(text.as_bytes(), 100), false),
        Out::Text(text) | Out::Fragments(text) => (text.into_bytes(), false),
        Out::Pong(payload) => (frame(PONG, &payload), false),
        Out::Bytes(bytes) => (bytes, false),
        Out::MidFrame(text) => {
            let whole = if is_web {
                frame(TEXT, text.as_bytes())
            } else {
                text.into_bytes()
            };
            let half = whole.len().div_ceil(2);
            (whole.into_iter().take(half).collect(), true)
        }
        Out::Close(code, reason) if is_web => {
            let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
            (frame(CLOSE, &payload), true)
        }
        Out::Close(..) | Out::Drop => (Vec::new(), true),
    }
}
