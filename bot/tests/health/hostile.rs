//! Clients that are slow, broken or mean: none keeps another from its answer, or the endpoint from its end.

use crate::client::{Client, Told, ask, deadline, patient, serve};
use crate::endpoint::running;
use regatta_bot::health::{Limits, Server};
use std::time::Duration;

/// Every kind of client that does not play by the rules, each with its connection open.
fn hostile(server: &Server) -> Vec<Client> {
    let megabyte = "x".repeat(1 << 20);
    let openings = [
        String::new(),
        "G".to_owned(),
        "GET /livez HTTP/1.1\r\nX-Slow: ".to_owned(),
        "GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx".to_owned(),
        "GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1".to_owned(),
        "\0\u{1}\u{2}\u{3}\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("GET /{megabyte} HTTP/1.1\r\n\r\n"),
        format!("GET /livez HTTP/1.1\r\nX-Large: {megabyte}\r\n\r\n"),
        format!(
            "GET /livez HTTP/1.1\r\n{}\r\n",
            "X-Many: x\r\n".repeat(10_000)
        ),
    ];
    openings
        .iter()
        .map(|opening| {
            let mut client = Client::connect(server);
            // The larger ones are cut off while they send.
            client.send_if_taken(opening.as_bytes());
            client
        })
        .collect()
}

#[test]
fn a_good_client_is_answered_among_hostile_ones() {
    let (mut server, census) = serve(&Told::well(), patient());
    let mut kept = Client::connect(&server);
    for _ in 0..2 {
        let open = hostile(&server);
        assert_eq!(ask(&server, "GET", "/readyz").status, 200);
        assert_eq!(kept.ask("GET", "/readyz").status, 200);
        drop(open);
    }
    assert!(server.stop(deadline()));
    assert!(!running(&census));
}

#[test]
fn what_is_too_large_is_refused_and_closed() {
    let (server, _census) = serve(&Told::well(), patient());
    let limits = patient();
    let oversized = [
        format!("X-Large: {}\r\n", "x".repeat(limits.header_bytes)),
        "X-Many: x\r\n".repeat(limits.headers + 1),
    ];
    for headers in oversized {
        let mut client = Client::connect(&server);
        client.send_if_taken(format!("GET /livez HTTP/1.1\r\n{headers}\r\n").as_bytes());
        let rest = client.rest();
        assert!(rest.starts_with("HTTP/1.1 431 "), "{rest:?}");
    }
}

#[test]
fn garbage_is_refused_and_closed() {
    let (server, _census) = serve(&Told::well(), patient());
    let mut client = Client::connect(&server);
    client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n");
    let rest = client.rest();
    assert!(rest.starts_with("HTTP/1.1 400 "), "{rest:?}");
}

#[test]
fn headers_that_do_not_end_and_silence_are_not_waited_for() {
    let limits = Limits {
        header_read: Duration::from_millis(50),
        ..patient()
    };
    let (server, _census) = serve(&Told::well(), limits);
    for opening in ["", "GET /livez HT", "GET /livez HTTP/1.1\r\nX-Slow: "] {
        let mut client = Client::connect(&server);
        client.send(opening.as_bytes());
        // Comes to an end, and without an answer.
        let rest = client.rest();
        assert!(!rest.contains("200 OK"), "{opening:?}: {rest:?}");
    }
    // So for a connection that has asked before.
    let mut client = Client::connect(&server);
    assert_eq!(client.ask("GET", "/livez").status, 200);
    client.rest();
}

#[test]
fn a_client_that_asks_and_never_reads_is_closed_in_the_end() {
    let limits = Limits {
        lifetime: Duration::from_millis(200),
        grace: Duration::from_millis(1),
        ..patient()
    };
    let (server, _census) = serve(&Told::well(), limits);
    let mut client = Client::connect(&server);
    // Ends when both directions are full and the other side has had enough.
    let questions = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
    while client.send_if_taken(questions.as_bytes()) {}
    assert_eq!(ask(&server, "GET", "/livez").status, 200);
}

#[test]
fn one_connection_too_many_closes_the_oldest() {
    let limits = Limits {
        connections: 4,
        ..patient()
    };
    let (server, _census) = serve(&Told::well(), limits);
    let mut open: Vec<Client> = (0..4).map(|_| Client::connect(&server)).collect();
    for client in &mut open {
        assert_eq!(client.ask("GET", "/livez").status, 200);
    }
    assert_eq!(ask(&server, "GET", "/livez").status, 200);
    let mut open = open.into_iter();
    assert_eq!(open.next().unwrap().rest(), "");
    for mut client in open {
        assert_eq!(client.ask("GET", "/livez").status, 200);
    }
}

#[test]
fn connections_that_are_held_open_keep_no_probe_out() {
    let (server, _census) = serve(&Told::well(), patient());
    let most = patient().connections;
    let mut held: Vec<Client> = Vec::new();
    for _ in 0..4 * most {
        held.push(Client::connect(&server));
    }
    assert_eq!(ask(&server, "GET", "/livez").status, 200);
    // All but the youngest have been closed: no client holds more than its share.
    for client in held.iter_mut().take(3 * most) {
        assert_eq!(client.rest(), "");
    }
}

#[test]
fn a_stop_does_not_wait_for_hostile_clients() {
    let (mut server, census) = serve(&Told::well(), patient());
    let mut open = hostile(&server);
    assert_eq!(ask(&server, "GET", "/livez").status, 200);
    assert!(server.stop(deadline()));
    assert!(!running(&census));
    for client in &mut open {
        client.rest();
    }
}
