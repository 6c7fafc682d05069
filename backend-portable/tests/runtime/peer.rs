//! A peer on a real socket that behaves as a test says, and a client that reconnects to it.
//!
//! The client says hello and is connected once the peer has answered. What it has lost is noticed by a
//! thread that reads; what comes too late it closes.

use crate::parts::{FAR, Gate, Watched};
use regatta_core::component::{ComponentId, DrainCounts, Probe, Remaining};
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use regatta_portable::runtime::{
    Attempt, Came, Component, Connect, Context, Failed, Handle, Vitals,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const HELLO: u8 = b'h';

/// What the peer does with one connection.
pub(crate) enum Act {
    /// Drops it at once.
    Drop,
    /// Answers the hello, and waits for the end.
    Serve,
    /// Answers the hello and drops it at once.
    Flap,
    /// Does not answer.
    Stall,
    /// Answers the hello when the gate opens, and waits for the end.
    Late(Gate),
}

/// What the peer has seen, by connection in the order in which it accepted them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    /// It answered the hello.
    pub(crate) answered: bool,
    /// The client closed it.
    pub(crate) closed: bool,
}

/// The peer. It accepts as many connections as it has acts, and then closes its port.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Watched<Vec<Seen>>,
    census: Census,
}

impl Peer {
    /// A peer whose port is closed.
    pub(crate) fn closed() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            address: listener.local_addr().unwrap(),
            seen: Watched::default(),
            census: Census::new(),
        }
    }

    pub(crate) fn open(acts: Vec<Act>) -> Self {
        let peer = Self::closed();
        peer.listen(acts);
        peer
    }

    /// Opens the port.
    pub(crate) fn listen(&self, acts: Vec<Act>) {
        let listener = TcpListener::bind(self.address).unwrap();
        let (seen, census) = (self.seen.clone(), self.census.clone());
        let spec = ThreadSpec::one("peer", "peer-accepts");
        let accepts = move || {
            for act in acts {
                let stream = listener.accept().unwrap().0;
                let number = seen.change(|all| {
                    all.push(Seen::default());
                    all.len() - 1
                });
                let seen = seen.clone();
                let mark = move |mark: fn(&mut Seen)| seen.change(|all| mark(&mut all[number]));
                let serve = move || serve(&stream, &act, mark);
                let spec = ThreadSpec::one("peer", &format!("peer-{number}"));
                census.spawn(spec, serve).unwrap();
            }
        };
        self.census.spawn(spec, accepts).unwrap();
    }

    #[track_caller]
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&[Seen]) -> bool) {
        self.seen.until(what, |all| holds(all));
    }
}

fn serve(mut stream: &TcpStream, act: &Act, mark: impl Fn(fn(&mut Seen))) {
    // A client that does not close what came too late fails here.
    stream.set_read_timeout(Some(FAR)).unwrap();
    let mut byte = [0];
    if matches!(act, Act::Drop) {
        return;
    }
    if stream.read_exact(&mut byte).is_err() {
        // Closed before it said hello.
        return mark(|seen| seen.closed = true);
    }
    if let Act::Late(gate) = act {
        gate.pass();
    }
    // The client may be gone by now.
    if !matches!(act, Act::Stall) && stream.write_all(&byte).is_ok() {
        mark(|seen| seen.answered = true);
    }
    if matches!(act, Act::Flap) {
        return;
    }
    let closed = match stream.read(&mut byte) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    if closed {
        mark(|seen| seen.closed = true);
    }
}

/// An attempt to reconnect, as the client made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tried {
    pub(crate) generation: u64,
    pub(crate) began: Instant,
    /// Until when it might take.
    pub(crate) until: Instant,
    /// When it had failed, and of what.
    pub(crate) failed: Option<(Instant, &'static str)>,
}

/// What there is of the client at a time.
#[derive(Default)]
pub(crate) struct Link {
    /// What is installed, and how many were before it.
    stream: Option<(usize, TcpStream)>,
    /// What an attempt is saying hello on.
    pub(crate) trying: Vec<(u64, TcpStream)>,
    pub(crate) tried: Vec<Tried>,
    /// The generations that were installed, in order.
    pub(crate) installed: Vec<u64>,
    /// When what was installed was lost.
    pub(crate) lost: Vec<Instant>,
    /// The threads that read what is installed, or was.
    readers: Vec<JoinHandle<()>>,
    /// Nothing is to be installed any more.
    stopped: bool,
    told: Option<(ComponentId, Handle)>,
}

/// What the threads of a client share.
pub(crate) struct Shared {
    address: SocketAddr,
    census: Census,
    /// Whether an attempt ends when its time is over, as it should.
    heeds_time: bool,
    pub(crate) link: Watched<Link>,
}

/// The component. It comes up without its peer, and connects by attempts only.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    /// Called by the drain.
    pub(crate) drains: Box<dyn FnMut() + Send>,
}

/// What makes its attempts.
struct Attempts(Arc<Shared>);

impl Client {
    pub(crate) fn new(address: SocketAddr, census: &Census, heeds_time: bool) -> Self {
        Self {
            shared: Arc::new(Shared {
                address,
                census: census.clone(),
                heeds_time,
                link: Watched::default(),
            }),
            drains: Box::new(|| {}),
        }
    }
}

impl Component for Client {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::clone(&self.shared) as _
    }

    fn connect(&self) -> Option<Arc<dyn Connect>> {
        Some(Arc::new(Attempts(Arc::clone(&self.shared))))
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        self.shared.link.change(|link| {
            link.told = Some((context.id, context.runtime));
            link.lost.push(Instant::now());
        });
        Ok(Came::Degraded)
    }

    fn drain(&mut self, _: Instant) -> Result<DrainCounts, Failed> {
        (self.drains)();
        Ok(DrainCounts::default())
    }

    /// Closes everything, also what attempts wait for, and joins what reads.
    fn stop(&mut self, _: Instant) -> Result<(), Failed> {
        self.shared.close();
        let readers = self
            .shared
            .link
            .change(|link| std::mem::take(&mut link.readers));
        for reader in readers {
            reader
                .join()
                .map_err(|_| Failed::new("reader", "it panicked"))?;
        }
        Ok(())
    }
}

impl Shared {
    /// Connects and says hello, on a socket that a stop can shut.
    fn hello(&self, generation: u64, until: Instant) -> std::io::Result<TcpStream> {
        let left = |until: Instant| {
            let left = until.saturating_duration_since(Instant::now());
            left.max(Duration::from_millis(1))
        };
        let mut stream = TcpStream::connect_timeout(&self.address, left(until))?;
        let shut = stream.try_clone()?;
        let stopped = self.link.change(|link| {
            link.trying.push((generation, shut));
            link.stopped
        });
        let mut byte = [HELLO];
        let answered = if stopped {
            Err(ErrorKind::ConnectionAborted.into())
        } else {
            let limit = self.heeds_time.then(|| left(until));
            stream
                .set_read_timeout(limit)
                .and_then(|()| stream.write_all(&byte))
                .and_then(|()| stream.read_exact(&mut byte))
                .and_then(|()| stream.set_read_timeout(None))
        };
        self.link
            .change(|link| link.trying.retain(|(of, _)| *of != generation));
        answered.map(|()| stream)
    }

    /// To be called where it is decided that the stream may be installed.
    fn install(&self, stream: TcpStream, generation: u64) {
        self.link.change(|link| {
            assert!(link.stream.is_none(), "over another one");
            link.stream = Some((link.installed.len(), stream));
            link.installed.push(generation);
        });
    }

    /// Has what was installed read until it is lost.
    fn read(self: &Arc<Self>) {
        self.link.change(|link| {
            // A stop may have closed it already.
            let Some((number, stream)) = &link.stream else {
                return;
            };
            let (number, mut stream) = (*number, stream.try_clone().unwrap());
            let shared = Arc::clone(self);
            let reads = move || {
                let ended = stream.read(&mut [0]).map_or(true, |read| read == 0);
                assert!(ended, "the peer says nothing after its hello");
                shared.lost(number);
            };
            let spec = ThreadSpec::one("client", &format!("reads-{number}"));
            link.readers.push(self.census.spawn(spec, reads).unwrap());
        });
    }

    fn lost(&self, number: usize) {
        let told = self.link.change(|link| {
            // Whoever takes it out is the one to tell.
            link.stream.take_if(|(installed, _)| *installed == number)?;
            link.lost.push(Instant::now());
            link.told.clone()
        });
        if let Some((id, runtime)) = told {
            runtime.lost(id);
        }
    }

    fn close(&self) {
        self.link.change(|link| {
            link.stopped = true;
            let installed = link.stream.take().map(|(_, stream)| stream);
            let trying = link.trying.iter().map(|(_, stream)| stream);
            for stream in trying.chain(&installed) {
                // One that the peer has closed is shut already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
    }
}

impl Vitals for Shared {
    fn probe(&self) -> Probe {
        self.link.look(|link| match link.stream {
            Some(_) => Probe::Ready,
            None => Probe::NotReady("no_peer"),
        })
    }

    fn fence(&self) {
        self.close();
    }

    fn remaining(&self) -> Remaining {
        self.link.look(|link| Remaining {
            receipts: 0,
            threads: u32::try_from(link.readers.len()).unwrap(),
            handles: u32::from(link.stream.is_some()) + u32::try_from(link.trying.len()).unwrap(),
        })
    }
}

impl Connect for Attempts {
    fn attempt(&self, attempt: &Attempt<'_>) -> Result<(), Failed> {
        let shared = &self.0;
        let generation = attempt.generation().number();
        let number = shared.link.change(|link| {
            link.tried.push(Tried {
                generation,
                began: Instant::now(),
                until: attempt.until,
                failed: None,
            });
            link.tried.len() - 1
        });
        let fail = |code, source: Box<dyn std::error::Error + Send + Sync>| {
            shared
                .link
                .change(|link| link.tried[number].failed = Some((Instant::now(), code)));
            Failed::new(code, source)
        };
        let stream = shared
            .hello(generation, attempt.until)
            .map_err(|error| fail("no_hello", error.into()))?;
        // Closed by the error, if it is one: the closure is dropped with what it was to install.
        attempt
            .install(move || shared.install(stream, generation))
            .map_err(|error| fail("too_late", error.into()))?;
        shared.read();
        Ok(())
    }
}
