//! The health endpoint: an HTTP/1.1 server for probes, on one thread.
//!
//! The thread runs an event loop, so a client costs a socket and some kilobytes, never a thread, and one
//! that hangs hangs alone.
//!
//! # Invariants
//! - There is one thread, from the census, and no other: no pool for blocking work is ever started.
//! - There are no more than [`Limits::connections`] connections. One more closes the oldest: whoever keeps
//!   connections open cannot keep a probe out.
//! - Every connection ends: headers are waited for no longer than [`Limits::header_read`], and nothing else
//!   longer than [`Limits::lifetime`].
//! - Whatever clients do, the thread ends within its deadline once told. Only an answer that does not come
//!   back from [`Health`] can keep it, and then [`Server::stop`] says so.

use super::{Answer, HeadSeen, Health, Reason};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use serde::Serialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::{sleep, timeout};

/// The name of the thread, for the kernel.
pub const THREAD: &str = "rg-health";

/// How long to wait when a connection cannot be accepted, as when the process has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The smallest buffer that the protocol's parser takes, in bytes.
const SMALLEST_BUFFER: usize = 8192;

/// Why there is no endpoint.
#[derive(Debug, Error)]
pub enum HealthError {
    /// Somebody else has the address.
    #[error(
        "the health endpoint cannot have {addr}: it is in use; free it, or state another (port 0 takes any)"
    )]
    InUse {
        /// The address.
        addr: SocketAddr,
    },
    /// The address cannot be had.
    #[error(
        "the health endpoint cannot have {addr}: {source}; state an address of this machine, such as 127.0.0.1:9464"
    )]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// What the platform said.
        source: io::Error,
    },
    /// The event loop cannot be had.
    #[error("the health endpoint at {addr} has no event loop: {source}")]
    EventLoop {
        /// The address.
        addr: SocketAddr,
        /// What the platform said.
        source: io::Error,
    },
    /// The thread cannot be had.
    #[error("the health endpoint has no thread: {0}")]
    Thread(#[from] CensusError),
}

/// What a client may use up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most connections at once; at least one. A moment longer than that takes closing one.
    pub connections: usize,
    /// How long the headers of a request may take, from the moment they are waited for. So long, too, a
    /// connection may be idle.
    pub header_read: Duration,
    /// The most bytes that a request line and its headers may have.
    pub header_bytes: usize,
    /// The most headers.
    pub headers: usize,
    /// How long a connection may live, whatever is done on it.
    pub lifetime: Duration,
    /// How long a connection may finish what it is at, once it must end. A stop gives it no more than half of
    /// what is left.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 32,
            header_read: Duration::from_secs(5),
            header_bytes: SMALLEST_BUFFER,
            headers: 64,
            lifetime: Duration::from_mins(1),
            grace: Duration::from_secs(1),
        }
    }
}

/// The endpoint. Dropped, it tells its thread to end and does not wait for it.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    /// Carries the deadline; gone, it says to end at once.
    stop: Option<oneshot::Sender<Instant>>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread has nothing more to do.
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Binds `addr` and answers there from `health`, within the default limits.
    ///
    /// With port 0 the platform chooses one, see [`addr`](Self::addr).
    pub fn start(
        addr: SocketAddr,
        health: Arc<dyn Health>,
        census: &Census,
    ) -> Result<Self, HealthError> {
        Self::start_within(addr, health, census, Limits::default())
    }

    /// Binds `addr` and answers there from `health`, within `limits`.
    pub fn start_within(
        addr: SocketAddr,
        health: Arc<dyn Health>,
        census: &Census,
        limits: Limits,
    ) -> Result<Self, HealthError> {
        let listener = bind(addr)?;
        let (runtime, listener, addr) =
            event_loop(listener).map_err(|source| HealthError::EventLoop { addr, source })?;
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = mpsc::channel();
        let thread = census.spawn(ThreadSpec::one("health", THREAD), move || {
            runtime.block_on(serve(&health, limits, listener, stopped));
            drop(runtime);
            drop(ending);
        })?;
        Ok(Self {
            addr,
            stop: Some(stop),
            thread: Some(thread),
            ended,
        })
    }

    /// The address that was bound.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends the endpoint: nothing is accepted any more, answers that are on their way are finished, the rest
    /// is dropped. Returns by `deadline` whether the thread has ended; if not, ask again.
    pub fn stop(&mut self, deadline: Instant) -> bool {
        if let Some(stop) = self.stop.take() {
            // If nobody hears it, the thread has ended.
            let _ = stop.send(deadline);
        }
        let Some(thread) = self.thread.take() else {
            return true;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if self.ended.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Disconnected) {
            // Nothing is left to it but to return, so this is no wait. How it ended is the panic hook's to say.
            let _ = thread.join();
            true
        } else {
            self.thread = Some(thread);
            false
        }
    }
}

fn bind(addr: SocketAddr) -> Result<std::net::TcpListener, HealthError> {
    std::net::TcpListener::bind(addr).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => HealthError::InUse { addr },
        _ => HealthError::Bind { addr, source },
    })
}

/// An event loop that runs on the thread that enters it, with the listener on it.
fn event_loop(listener: std::net::TcpListener) -> io::Result<(Runtime, TcpListener, SocketAddr)> {
    let addr = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let entered = runtime.enter();
    let listener = TcpListener::from_std(listener)?;
    drop(entered);
    Ok((runtime, listener, addr))
}

/// The open connections, the oldest first.
#[derive(Default)]
struct Open {
    tasks: JoinSet<()>,
    by_age: VecDeque<AbortHandle>,
}

impl Open {
    /// Forgets what has ended and makes room for one more of `most`.
    fn make_room(&mut self, most: usize) {
        while self.tasks.try_join_next().is_some() {}
        self.by_age.retain(|task| !task.is_finished());
        while self.by_age.len() >= most.max(1) {
            if let Some(oldest) = self.by_age.pop_front() {
                oldest.abort();
            }
        }
    }

    fn add(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        self.by_age.push_back(self.tasks.spawn(connection));
    }
}

/// Serves until told to stop.
async fn serve(
    health: &Arc<dyn Health>,
    limits: Limits,
    listener: TcpListener,
    stopped: oneshot::Receiver<Instant>,
) {
    let mut open = Open::default();
    let (closing, closed) = watch::channel(());
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    open.make_room(limits.connections);
                    open.add(connection(
                        stream,
                        Arc::clone(health),
                        limits,
                        closed.clone(),
                    ));
                    // A burst of clients must not close one whose question is there and has not been read.
                    yield_now().await;
                }
                Err(error) => {
                    tracing::debug!(%error, "a probe's connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    let deadline = match first::<Infallible, _>(accepting, stopped).await {
        First::Right(told) => told.unwrap_or_else(|_| Instant::now()),
        First::Left(never) => match never {},
    };
    drop(listener);
    drop(closing);
    let left = deadline.saturating_duration_since(Instant::now());
    let finished = async { while open.tasks.join_next().await.is_some() {} };
    let _ = timeout(limits.grace.min(left / 2), finished).await;
    open.tasks.shutdown().await;
}

/// Serves one connection to its end, or to that of its time.
async fn connection(
    stream: TcpStream,
    health: Arc<dyn Health>,
    limits: Limits,
    mut closed: watch::Receiver<()>,
) {
    // An answer is one small write: waiting to fill a packet is a delay for nothing. Without it all works.
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request: Request<Incoming>| {
        let reply = reply(&*health, request.method(), request.uri().path());
        async { Ok::<_, Infallible>(reply) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read)
        .max_headers(limits.headers)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes.max(SMALLEST_BUFFER))
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    // Nothing is ever sent: the change is that the sender is gone.
    let must_end = first(closed.changed(), sleep(limits.lifetime));
    // How a client fails is its own business.
    if let First::Right(_) = first(connection.as_mut(), must_end).await {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(limits.grace, connection).await;
    }
}

/// Which of two came first.
enum First<A, B> {
    Left(A),
    Right(B),
}

/// Waits for one of the two; the second is asked first.
async fn first<A, B>(left: impl Future<Output = A>, right: impl Future<Output = B>) -> First<A, B> {
    let mut left = pin!(left);
    let mut right = pin!(right);
    poll_fn(|context| {
        if let Poll::Ready(right) = right.as_mut().poll(context) {
            return Poll::Ready(First::Right(right));
        }
        left.as_mut().poll(context).map(First::Left)
    })
    .await
}

/// What is answered where.
struct Route {
    path: &'static str,
    answer: fn(&dyn Health) -> Reply,
}

/// Everything there is to ask.
const ROUTES: [Route; 2] = [
    Route {
        path: "/livez",
        answer: |health| Reply::probe(&health.liveness(), |alive, why| Livez { alive, why }),
    },
    Route {
        path: "/readyz",
        answer: |health| Reply::probe(&health.readiness(), |ready, why| Readyz { ready, why }),
    },
];

#[derive(Serialize)]
struct Livez<'a> {
    alive: bool,
    #[serde(flatten)]
    why: Why<'a>,
}

#[derive(Serialize)]
struct Readyz<'a> {
    ready: bool,
    #[serde(flatten)]
    why: Why<'a>,
}

#[derive(Serialize)]
struct Why<'a> {
    state: &'static str,
    reasons: &'a [Reason],
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<HeadSeen>,
}

#[derive(Serialize)]
struct Refusal {
    error: String,
}

/// A status and a text.
struct Reply {
    status: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Reply {
    fn json(status: StatusCode, value: &impl Serialize) -> Self {
        // Words and truth values always have a JSON form. If they had none, the status would still tell.
        Self {
            status,
            content_type: "application/json",
            body: serde_json::to_vec(value).unwrap_or_default(),
        }
    }

    fn probe<'a, B: Serialize>(answer: &'a Answer, body: impl FnOnce(bool, Why<'a>) -> B) -> Self {
        let status = if answer.ok {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        let why = Why {
            state: answer.state,
            reasons: &answer.reasons,
            head: answer.head,
        };
        Self::json(status, &body(answer.ok, why))
    }

    fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// The answer to a request; that the answer to a `HEAD` has no body is the protocol's to see to.
fn reply(health: &dyn Health, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let Some(route) = ROUTES.iter().find(|route| route.path == path) else {
        let paths = ROUTES.map(|route| route.path).join(", ");
        let error = format!("there is nothing here: there are {paths}");
        return Reply::json(StatusCode::NOT_FOUND, &Refusal { error }).into_response();
    };
    if *method == Method::GET || *method == Method::HEAD {
        return (route.answer)(health).into_response();
    }
    let error = format!("{} takes GET and HEAD", route.path);
    let mut response =
        Reply::json(StatusCode::METHOD_NOT_ALLOWED, &Refusal { error }).into_response();
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}
