//! What well-behaved clients see, and how the endpoint begins and ends.

use crate::client::{Client, Told, anywhere, ask, deadline, not_ready, patient, serve};
use regatta_bot::health::server::THREAD;
use regatta_bot::health::{Answer, Health, HealthError, Limits, Reason, Server};
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use serde_json::json;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

#[test]
fn probes_are_answered_with_the_state_and_every_reason() {
    let health = Told::well();
    let (server, _census) = serve(&health, Limits::default());
    let live = ask(&server, "GET", "/livez");
    assert_eq!(live.status, 200);
    assert_eq!(
        live.json(),
        json!({"alive": true, "state": "running", "reasons": []})
    );
    assert_eq!(live.header("content-type"), Some("application/json"));
    assert_eq!(live.header("cache-control"), Some("no-store"));

    health.ready(not_ready());
    let ready = ask(&server, "GET", "/readyz?verbose");
    assert_eq!(ready.status, 503);
    let expected = json!({
        "ready": false,
        "state": "quiescing",
        "reasons": [
            {"component": "feed", "reason": "reconnecting"},
            {"component": "census", "reason": "a thread \"of nobody\""},
        ],
    });
    assert_eq!(ready.json(), expected);
}

#[test]
fn answers_follow_the_health_on_an_open_connection() {
    let health = Told::well();
    let (server, _census) = serve(&health, patient());
    let mut probe = Client::connect(&server);
    assert_eq!(probe.ask("GET", "/readyz").status, 200);
    health.ready(not_ready());
    assert_eq!(probe.ask("GET", "/readyz").status, 503);
    // A process that drains is not ready and is to be left alone.
    assert_eq!(probe.ask("GET", "/livez").status, 200);
    let stuck = vec![Reason::new("fleet", "no progress past the deadline")];
    health.live(Answer::no("stopping", stuck));
    assert_eq!(probe.ask("GET", "/livez").status, 503);
    health.ready(Answer::yes("running"));
    assert_eq!(probe.ask("GET", "/readyz").status, 200);
}

#[test]
fn a_head_gets_the_head_alone() {
    let health = Told::well();
    let (server, _census) = serve(&health, patient());
    let mut probe = Client::connect(&server);
    let head = probe.ask("HEAD", "/readyz");
    assert_eq!(head.status, 200);
    // What follows is the next answer, so no body came between.
    let get = probe.ask("GET", "/readyz");
    assert_eq!(get.status, 200);
    assert_eq!(head.header("content-length"), get.header("content-length"));
}

#[test]
fn anything_else_is_refused_in_words() {
    let health = Told::well();
    let (server, _census) = serve(&health, patient());
    let mut probe = Client::connect(&server);
    for path in ["/", "/livez/", "/LIVEZ", "/readyz/feed", "/metrics"] {
        let lost = probe.ask("GET", path);
        assert_eq!(lost.status, 404, "{path}");
        let error = lost.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains("/livez, /readyz"), "{error}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let refused = probe.ask(method, "/livez");
        assert_eq!(refused.status, 405, "{method}");
        assert_eq!(refused.header("allow"), Some("GET, HEAD"));
        let error = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains("/livez takes GET and HEAD"), "{error}");
    }
}

#[test]
fn pipelined_questions_are_answered_in_their_order() {
    let health = Told::well();
    health.ready(not_ready());
    let (server, _census) = serve(&health, patient());
    let mut probe = Client::connect(&server);
    let paths = ["/livez", "/readyz", "/", "/livez"];
    let questions = paths.map(|path| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    probe.send(questions.concat().as_bytes());
    let answers: Vec<u16> = (0..4).map(|_| probe.answer(true).status).collect();
    assert_eq!(answers, [200, 503, 404, 200]);
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind(anywhere()).unwrap();
    let addr = taken.local_addr().unwrap();
    let refused = Server::start(addr, Told::well(), &Census::new()).unwrap_err();
    assert!(matches!(refused, HealthError::InUse { addr: named } if named == addr));
    assert!(refused.to_string().contains(&addr.to_string()), "{refused}");
}

#[test]
fn an_address_of_another_machine_is_named() {
    // Reserved for documentation: nobody has it.
    let addr = SocketAddr::from(([192, 0, 2, 1], 0));
    let refused = Server::start(addr, Told::well(), &Census::new()).unwrap_err();
    assert!(matches!(refused, HealthError::Bind { addr: named, .. } if named == addr));
    assert!(refused.to_string().contains("192.0.2.1:0"), "{refused}");
}

#[test]
fn a_second_endpoint_of_one_census_is_refused_and_leaves_its_port() {
    let (server, census) = serve(&Told::well(), Limits::default());
    let free = TcpListener::bind(anywhere()).unwrap();
    let addr = free.local_addr().unwrap();
    drop(free);
    let refused = Server::start(addr, Told::well(), &census).unwrap_err();
    assert!(matches!(
        refused,
        HealthError::Thread(CensusError::Taken { .. })
    ));
    TcpListener::bind(addr).unwrap();
    assert_eq!(ask(&server, "GET", "/livez").status, 200);
}

#[test]
fn a_stop_ends_idle_connections_and_the_thread() {
    let health = Told::well();
    let (mut server, census) = serve(&health, patient());
    let mut idle: Vec<Client> = (0..8).map(|_| Client::connect(&server)).collect();
    for probe in &mut idle {
        assert_eq!(probe.ask("GET", "/livez").status, 200);
    }
    assert!(running(&census));
    let thread = health.asked_by.lock().unwrap().clone();

    assert!(server.stop(deadline()));
    assert!(!running(&census));
    for probe in &mut idle {
        assert_eq!(probe.rest(), "");
    }
    let refused = TcpStream::connect(server.addr()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    // Stopped is stopped, whatever the deadline.
    assert!(server.stop(Instant::now()));

    #[cfg(target_os = "linux")]
    {
        // The kernel takes a thread off its list just after it has told those who join it.
        let (thread, given_up) = (thread.unwrap(), deadline());
        while thread.exists() {
            assert!(Instant::now() < given_up, "{} is there", thread.display());
            std::thread::yield_now();
        }
    }
    #[cfg(not(target_os = "linux"))]
    drop(thread);
}

#[test]
fn a_dropped_endpoint_ends_by_itself() {
    let (server, census) = serve(&Told::well(), patient());
    let mut idle = Client::connect(&server);
    assert_eq!(idle.ask("GET", "/livez").status, 200);
    drop(server);
    assert_eq!(idle.rest(), "");
    let given_up = deadline();
    while running(&census) {
        assert!(Instant::now() < given_up, "the thread goes on");
        std::thread::yield_now();
    }
}

/// A health that answers when it is let.
struct Slow {
    asked: Mutex<mpsc::Sender<()>>,
    let_go: Mutex<mpsc::Receiver<()>>,
}

impl Health for Slow {
    fn liveness(&self) -> Answer {
        self.asked.lock().unwrap().send(()).unwrap();
        // Gone means go.
        let _ = self.let_go.lock().unwrap().recv();
        Answer::yes("running")
    }

    fn readiness(&self) -> Answer {
        Answer::yes("running")
    }
}

#[test]
fn a_stop_says_so_while_an_answer_keeps_the_thread_and_still_finishes_it() {
    let (asked, was_asked) = mpsc::channel();
    let (go, let_go) = mpsc::channel();
    let health = Slow {
        asked: Mutex::new(asked),
        let_go: Mutex::new(let_go),
    };
    let census = Census::new();
    let mut server =
        Server::start_within(anywhere(), Arc::new(health), &census, patient()).unwrap();
    let mut probe = Client::connect(&server);
    probe.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    was_asked.recv().unwrap();
    assert!(!server.stop(Instant::now()), "it cannot have ended");
    assert!(running(&census));
    drop(go);
    assert!(server.stop(deadline()));
    assert!(!running(&census));
}

/// A health that is broken.
struct Broken;

impl Health for Broken {
    fn liveness(&self) -> Answer {
        panic!("a fault of the health, for the test")
    }

    fn readiness(&self) -> Answer {
        Answer::yes("running")
    }
}

#[test]
fn a_health_that_panics_costs_one_connection() {
    let census = Census::new();
    let mut server = Server::start(anywhere(), Arc::new(Broken), &census).unwrap();
    let mut probe = Client::connect(&server);
    probe.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(probe.rest(), "", "no answer is no");
    assert_eq!(ask(&server, "GET", "/readyz").status, 200);
    assert!(server.stop(deadline()));
}

/// Whether the endpoint's thread is in the census, owned as it must be.
pub(crate) fn running(census: &Census) -> bool {
    let rows = census.rows();
    let [row] = rows.as_slice() else {
        panic!("one thread and no other: {rows:?}")
    };
    assert_eq!(row.spec, ThreadSpec::one("health", THREAD));
    row.running
}
