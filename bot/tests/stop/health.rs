//! What the process says of itself: to probes, and to a service manager.

use crate::process::Process;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(1);

/// Where the probes are answered, as the log says.
pub(crate) fn endpoint(process: &mut Process) -> SocketAddr {
    process.says("probes are answered at");
    let line = process.line("probes are answered at");
    line.rsplit("http://")
        .next()
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

pub(crate) fn ask(addr: SocketAddr, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(FAR)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let body = text.split("\r\n\r\n").nth(1).unwrap();
    (status, serde_json::from_str(body).unwrap())
}

/// Ready means that every component says so and that every thread of the process is known. From the signal on
/// it is not ready, and alive until the end.
#[test]
fn the_probes_tell_how_far_the_process_is() {
    let mut process = Process::start(&[
        "--health",
        "127.0.0.1:0",
        "--inject",
        "fleet=hang-drain",
        "--stop-budget",
        "4000",
    ]);
    let addr = endpoint(&mut process);
    process.in_blocks();
    let (status, ready) = ask(addr, "/readyz");
    assert_eq!(
        (status, &ready["ready"]),
        (200, &Value::Bool(true)),
        "{ready}"
    );
    assert_eq!(ask(addr, "/livez").0, 200);
    process.signal("-TERM");
    process.says("an injected fault begins");
    let (status, ready) = ask(addr, "/readyz");
    assert_eq!(
        (status, &ready["ready"]),
        (503, &Value::Bool(false)),
        "{ready}"
    );
    let reasons = ready["reasons"].to_string();
    assert!(
        reasons.contains("fleet") && reasons.contains("draining"),
        "{reasons}"
    );
    // The data plane hangs, and the control plane answers.
    assert_eq!(ask(addr, "/livez").0, 200);
    assert_eq!(process.ended().code, 31);
}

/// What cannot be had at the start is said, with the address.
#[test]
fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let ended = Process::start(&["--health", &addr]).ended();
    assert_eq!(ended.code, 15, "{}", ended.err);
    assert!(ended.err.contains(&addr), "{}", ended.err);
}

#[test]
fn a_service_manager_is_told_ready_alive_and_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(FAR)).unwrap();
    let next = || {
        let mut bytes = [0; 4096];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let until = |what: &str| {
        let mut said = Vec::new();
        loop {
            let message = next();
            said.push(message.clone());
            if message.contains(what) {
                return said;
            }
        }
    };
    let process = Process::start_with(
        &[],
        &[
            ("NOTIFY_SOCKET", path.to_str().unwrap()),
            ("WATCHDOG_USEC", "200000"),
        ],
    );
    // The keep-alive that arming sends comes first: the manager's clock runs already.
    let said = until("READY=1");
    assert!(said[0].contains("WATCHDOG=1"), "{said:?}");
    until("WATCHDOG=1");
    until("WATCHDOG=1");
    process.signal("-TERM");
    until("STOPPING=1");
    let ended = process.ended();
    assert_eq!(ended.code, 0, "{}", ended.err);
}
