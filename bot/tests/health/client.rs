//! A client that writes bytes and reads bytes, and a health that the test sets.

use regatta_bot::health::{Answer, Health, Limits, Reason, Server};
use regatta_portable::Census;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long anything may take before the test has failed. Nothing is expected to.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// When the test will have failed.
pub(crate) fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// Any port of the loopback.
pub(crate) fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A health that says what the test told it to.
pub(crate) struct Told {
    answers: Mutex<(Answer, Answer)>,
    /// The folder of the thread that asked last, in the process's own list of threads.
    pub(crate) asked_by: Mutex<Option<PathBuf>>,
}

impl Told {
    /// Alive and ready.
    pub(crate) fn well() -> Arc<Self> {
        let running = Answer::yes("running");
        Arc::new(Self {
            answers: Mutex::new((running.clone(), running)),
            asked_by: Mutex::new(None),
        })
    }

    pub(crate) fn live(&self, answer: Answer) {
        self.answers.lock().unwrap().0 = answer;
    }

    pub(crate) fn ready(&self, answer: Answer) {
        self.answers.lock().unwrap().1 = answer;
    }
}

impl Health for Told {
    fn liveness(&self) -> Answer {
        let thread = std::fs::read_link("/proc/thread-self").ok();
        *self.asked_by.lock().unwrap() = thread.map(|thread| PathBuf::from("/proc").join(thread));
        self.answers.lock().unwrap().0.clone()
    }

    fn readiness(&self) -> Answer {
        self.answers.lock().unwrap().1.clone()
    }
}

/// A server that answers from `health`, and its census.
pub(crate) fn serve(health: &Arc<Told>, limits: Limits) -> (Server, Census) {
    let census = Census::new();
    let server = Server::start_within(anywhere(), health.clone(), &census, limits).unwrap();
    (server, census)
}

/// Limits that a test fails before it reaches.
pub(crate) fn patient() -> Limits {
    Limits {
        header_read: 10 * PATIENCE,
        lifetime: 10 * PATIENCE,
        ..Limits::default()
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// An open connection.
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.addr()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            read: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends what the other side may refuse to take; false when it has ended.
    pub(crate) fn send_if_taken(&mut self, bytes: &[u8]) -> bool {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
        match self.stream.write_all(bytes) {
            Ok(()) => true,
            Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => false,
            Err(error) => panic!("nothing was taken and nothing ended: {error}"),
        }
    }

    pub(crate) fn ask(&mut self, method: &str, path: &str) -> Got {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        self.answer(method != "HEAD")
    }

    /// The next answer, with its body unless it cannot have one.
    pub(crate) fn answer(&mut self, has_body: bool) -> Got {
        let head_ends = loop {
            let end = self.read.windows(4).position(|four| four == b"\r\n\r\n");
            match end {
                Some(end) => break end,
                None => assert!(self.more(), "closed within a head: {:?}", self.text()),
            }
        };
        let head = String::from_utf8(self.read[..head_ends].to_vec()).unwrap();
        self.read.drain(..head_ends + 4);
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut got = Got {
            status,
            head,
            body: String::new(),
        };
        if has_body {
            let length: usize = got.header("content-length").unwrap().parse().unwrap();
            while self.read.len() < length {
                assert!(self.more(), "closed within a body: {:?}", self.text());
            }
            got.body = String::from_utf8(self.read.drain(..length).collect()).unwrap();
        }
        got
    }

    /// Everything up to the end, which has to come.
    pub(crate) fn rest(&mut self) -> String {
        while self.more() {}
        self.text()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    /// Reads on; false when the other side has ended, in peace or not.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(read) => {
                self.read.extend_from_slice(&buffer[..read]);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing came and nothing ended: {error}"),
        }
    }
}

/// One question on a connection of its own.
pub(crate) fn ask(server: &Server, method: &str, path: &str) -> Got {
    Client::connect(server).ask(method, path)
}

/// Not ready, for two reasons.
pub(crate) fn not_ready() -> Answer {
    Answer::no(
        "quiescing",
        vec![
            Reason::new("feed", "reconnecting"),
            Reason::new("census", "a thread \"of nobody\""),
        ],
    )
}
