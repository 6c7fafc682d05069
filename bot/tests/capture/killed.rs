//! A capture that is ended from outside.

#![cfg(unix)]

use crate::{read, regatta};
use regatta_bot::capture::Tail;
use regatta_bot::source::embedded::{Config, EmbeddedSource, MarketConfig, generate};
use regatta_bot::source::{BlockSource, Event};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(1);

/// A process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A capture without an end in sight.
fn start(file: &Path, more: &[&str]) -> Running {
    let file = file.to_str().unwrap();
    let args = [
        "capture",
        "--seed",
        "5",
        "--blocks",
        "1000000000",
        "--out",
        file,
    ];
    let mut command = regatta(&[&args, more].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().unwrap())
}

/// Returns once that is so.
fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + FAR;
    while !is_so() {
        assert!(Instant::now() < end, "the capture does not get on");
        std::thread::yield_now();
    }
}

/// The events of the file are the first of the source's; how many, and how the file ended.
fn checked(file: &Path) -> (usize, Tail) {
    let made = generate(&MarketConfig::with_seed(5)).unwrap();
    let base = made.market.token_by_address(made.base).unwrap();
    let mut source = EmbeddedSource::new(made.market, base, Config::with_seed(5)).unwrap();
    let read = read(&std::fs::read(file).unwrap()).unwrap();
    for recorded in &read.events {
        let Some(Event::Block(block)) = source.next_event().unwrap() else {
            panic!("the source has ended");
        };
        assert_eq!(recorded.event, Event::Block(block));
    }
    (read.events.len(), read.ended.unwrap())
}

#[test]
fn killed_at_any_moment_it_leaves_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    for (n, bytes) in [9_000, 10_001, 33_333, 100_000, 250_007]
        .into_iter()
        .enumerate()
    {
        let file = folder.path().join(n.to_string());
        let mut child = start(&file, &[]);
        until(|| std::fs::metadata(&file).is_ok_and(|data| data.len() >= bytes));
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        let (events, tail) = checked(&file);
        assert_ne!(tail, Tail::Ended);
        // A record is far shorter than this.
        assert!(
            events as u64 >= bytes.saturating_sub(9_000) / 2_000,
            "{events} of {bytes}"
        );
    }
}

#[test]
fn a_signal_ends_it_whole() {
    let folder = tempfile::tempdir().unwrap();
    // As fast as it goes, and while it waits for the next block, which is far off.
    for (signal, more) in [("-TERM", &[][..]), ("-INT", &["--block-time", "86400000"])] {
        let file = folder.path().join(signal);
        let mut child = start(&file, more);
        until(|| std::fs::read(&file).is_ok_and(|b| read(&b).is_ok_and(|r| !r.events.is_empty())));
        let sent = Command::new("kill")
            .args([signal, &child.0.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(child.0.wait().unwrap().code(), Some(0));
        let (events, tail) = checked(&file);
        assert!(events > 0);
        assert_eq!(tail, Tail::Ended);
    }
}
