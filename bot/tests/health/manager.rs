//! The notifier at a service manager's socket that is the test's own.
#![cfg(unix)]

use crate::client::PATIENCE;
use regatta_bot::health::Notifier;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// The process that the notifier believes to be.
const PID: u32 = 4711;

fn notifier(vars: &[(&str, &str)]) -> Notifier {
    let of = |name: &str| vars.iter().find(|(key, _)| *key == name);
    Notifier::from_vars(|name| of(name).map(|(_, value)| OsString::from(value)), PID)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The manager's end at `path`.
fn listen(path: &Path) -> UnixDatagram {
    let manager = UnixDatagram::bind(path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    manager
}

fn next(manager: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let length = manager.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

/// Goes through a life and checks what the manager hears of it.
fn live_through(notifier: &Notifier, manager: &UnixDatagram) {
    assert!(notifier.has_listener());
    assert!(notifier.extend(Duration::from_secs(30)));
    assert!(notifier.ready("block 1"));
    assert_eq!(notifier.arm(), Some(Duration::from_secs(5)));
    assert!(notifier.keep_alive());
    assert!(notifier.status("block 2"));
    assert!(notifier.stopping("draining", Duration::from_secs(15)));
    assert!(notifier.keep_alive());
    for heard in [
        "EXTEND_TIMEOUT_USEC=30000000",
        "READY=1\nSTATUS=block 1",
        "WATCHDOG=1",
        "WATCHDOG=1",
        "STATUS=block 2",
        "STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=15000000",
        "WATCHDOG=1",
    ] {
        assert_eq!(next(manager), heard);
    }
}

#[test]
fn a_manager_at_a_path_hears_a_life_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = listen(&path);
    let notifier = notifier(&[
        ("NOTIFY_SOCKET", text(&path)),
        ("WATCHDOG_USEC", "10000000"),
        ("WATCHDOG_PID", "4711"),
    ]);
    live_through(&notifier, &manager);
}

#[cfg(target_os = "linux")]
#[test]
fn a_manager_at_an_abstract_name_hears_a_life_in_order() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let name = format!("regatta-health-test-{}", std::process::id());
    let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    // No process named: whoever reads it is meant.
    let notifier = notifier(&[
        ("NOTIFY_SOCKET", &format!("@{name}")),
        ("WATCHDOG_USEC", "10000000"),
    ]);
    live_through(&notifier, &manager);
}

#[test]
fn a_watchdog_that_watches_another_process_is_not_fed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = listen(&path);
    for (period, process) in [
        ("10000000", "4712"),
        ("10000000", "x"),
        ("10000000", ""),
        ("0", "4711"),
        ("10s", "4711"),
        ("-1", "4711"),
    ] {
        let notifier = notifier(&[
            ("NOTIFY_SOCKET", text(&path)),
            ("WATCHDOG_USEC", period),
            ("WATCHDOG_PID", process),
        ]);
        assert_eq!(notifier.watchdog_interval(), None, "{period} {process}");
        assert_eq!(notifier.arm(), None);
        assert!(!notifier.keep_alive());
        // Only this is heard.
        assert!(notifier.status("here"));
        assert_eq!(next(&manager), "STATUS=here");
    }
}

#[test]
fn a_status_stays_one_line_and_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = listen(&path);
    let notifier = notifier(&[("NOTIFY_SOCKET", text(&path))]);
    assert!(notifier.status("feed gone\nMAINPID=1\r\0"));
    assert_eq!(next(&manager), "STATUS=feed gone MAINPID=1  ");
    assert!(notifier.ready(&"\u{fc}".repeat(100_000)));
    let heard = next(&manager);
    assert!(heard.starts_with("READY=1\nSTATUS=\u{fc}\u{fc}"));
    assert_eq!(heard.chars().count(), "READY=1\nSTATUS=".len() + 200);
}

#[test]
fn without_a_manager_nothing_is_said() {
    for vars in [
        &[][..],
        &[("NOTIFY_SOCKET", "")],
        &[("WATCHDOG_USEC", "10000000"), ("WATCHDOG_PID", "4711")],
    ] {
        let (notifier, log) = logged(|| {
            let notifier = notifier(vars);
            assert!(!notifier.ready("here"));
            notifier
        });
        assert!(!notifier.has_listener());
        assert_eq!(notifier.arm(), None);
        assert_eq!(log, "", "a run by hand is no fault");
    }
}

#[test]
fn a_manager_that_went_away_and_came_back_is_told_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let first = listen(&path);
    let notifier = notifier(&[("NOTIFY_SOCKET", text(&path))]);
    assert!(notifier.ready("here"));
    assert_eq!(next(&first), "READY=1\nSTATUS=here");
    drop(first);
    assert!(!notifier.status("nobody is bound"));
    std::fs::remove_file(&path).unwrap();
    assert!(!notifier.status("nothing is there"));
    let second = listen(&path);
    assert!(notifier.status("here still"));
    assert_eq!(next(&second), "STATUS=here still");
}

#[test]
fn a_socket_that_is_full_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let _manager_that_does_not_read = listen(&path);
    let notifier = notifier(&[("NOTIFY_SOCKET", text(&path))]);
    // Ends when the queue is full; a send that waits would never return.
    while notifier.status("here") {}
    assert!(!notifier.stopping("still not read", Duration::from_secs(1)));
}

#[test]
fn what_cannot_be_sent_is_logged_once_and_names_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone");
    let too_long = format!("/{}", "x".repeat(200));
    for name in [text(&path), "relative", "vsock:2:1234", too_long.as_str()] {
        let ((), log) = logged(|| {
            let notifier = notifier(&[("NOTIFY_SOCKET", name)]);
            for _ in 0..3 {
                assert!(!notifier.ready("here"));
            }
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(name), "{log}");
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// What `run` returns and what it logs.
fn logged<T>(run: impl FnOnce() -> T) -> (T, String) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let value = tracing::subscriber::with_default(subscriber, run);
    let bytes = log.0.lock().unwrap().clone();
    (value, String::from_utf8(bytes).unwrap())
}
