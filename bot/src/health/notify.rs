//! The words to a service manager that started us: ready, stopping, still alive.
//!
//! The protocol is systemd's: one datagram a message, to the socket named in `NOTIFY_SOCKET`. It is written
//! out here because it must not block, and a library that may wait in `send` would be on the path of the stop.
//!
//! # Invariants
//! - Nothing here blocks or fails the program. What could not be sent is logged the first time and returned
//!   each time.
//! - A watchdog is armed with a keep-alive, so its first period is a whole one.
//! - A keep-alive is sent only if the manager asked for them, and asked this process.
//! - No text can add a line to a message.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// The most characters of a status that are sent.
const STATUS_CHARS: usize = 200;

/// Why a message did not go out.
#[derive(Debug, Error)]
enum Unsent {
    /// The name is of no kind that is known here.
    #[error("NOTIFY_SOCKET is {name:?}: it takes an absolute path, or @ and a name on Linux")]
    Name { name: OsString },
    /// No socket can be had to send from, or the name does not fit an address.
    #[error("NOTIFY_SOCKET {name:?} cannot be used: {source}")]
    Socket { name: OsString, source: io::Error },
    /// The platform did not take the message.
    #[error("the service manager at {name:?} did not get {message:?}: {source}")]
    Send {
        name: OsString,
        message: String,
        source: io::Error,
    },
}

/// The line to the service manager; without one, every word goes nowhere.
#[derive(Debug)]
pub struct Notifier {
    line: Option<line::Line>,
    watchdog: Option<Duration>,
    complained: AtomicBool,
}

impl Notifier {
    /// The line that the environment names, if it names one. The environment stays as it is.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var_os(name), std::process::id())
    }

    /// The line that `var` names for the process `pid`.
    #[must_use]
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>, pid: u32) -> Self {
        let mut notifier = Self::silent();
        let Some(name) = var("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return notifier;
        };
        match line::Line::open(&name) {
            Ok(line) => {
                notifier.line = Some(line);
                notifier.watchdog = watchdog(var("WATCHDOG_USEC"), var("WATCHDOG_PID"), pid);
            }
            Err(unsent) => notifier.complain(&unsent),
        }
        notifier
    }

    /// A line to nobody.
    #[must_use]
    pub fn silent() -> Self {
        Self {
            line: None,
            watchdog: None,
            complained: AtomicBool::new(false),
        }
    }

    /// Whether there is somebody to tell.
    #[must_use]
    pub fn has_listener(&self) -> bool {
        self.line.is_some()
    }

    /// How often to [keep alive](Self::keep_alive): half of the watchdog's period. `None` if nobody watches.
    #[must_use]
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|period| period / 2)
    }

    /// Says that we are ready, and how we are. Returns whether it went out.
    pub fn ready(&self, status: &str) -> bool {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)))
    }

    /// Says how we are, for whoever asks the manager. Returns whether it went out.
    pub fn status(&self, status: &str) -> bool {
        self.send(&format!("STATUS={}", one_line(status)))
    }

    /// Says that we are stopping, and asks for `budget` from now before the manager takes to force; it never
    /// shortens what the manager allows anyway. Returns whether it went out.
    pub fn stopping(&self, status: &str, budget: Duration) -> bool {
        self.send(&format!(
            "STOPPING=1\nSTATUS={}\nEXTEND_TIMEOUT_USEC={}",
            one_line(status),
            budget.as_micros()
        ))
    }

    /// Asks for `more` time from now for the start or the stop that is going on. Returns whether it went out.
    pub fn extend(&self, more: Duration) -> bool {
        self.send(&format!("EXTEND_TIMEOUT_USEC={}", more.as_micros()))
    }

    /// Begins to keep the watchdog quiet: sends a keep-alive, and returns how soon the next is due. `None` if
    /// nobody watches.
    pub fn arm(&self) -> Option<Duration> {
        let interval = self.watchdog_interval()?;
        self.keep_alive();
        Some(interval)
    }

    /// Says that we are alive, to be said only when it is so. Returns whether it went out.
    pub fn keep_alive(&self) -> bool {
        self.watchdog.is_some() && self.send("WATCHDOG=1")
    }

    fn send(&self, message: &str) -> bool {
        let Some(line) = &self.line else { return false };
        match line.send(message) {
            Ok(()) => true,
            Err(unsent) => {
                self.complain(&unsent);
                false
            }
        }
    }

    fn complain(&self, unsent: &Unsent) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!("{unsent}; further ones are not logged");
        }
    }
}

/// The watchdog's period. A process that is not named was not asked, one of its parents was.
fn watchdog(period: Option<OsString>, process: Option<OsString>, pid: u32) -> Option<Duration> {
    let number = |text: &OsStr| text.to_str()?.parse::<u64>().ok();
    if process.is_some_and(|process| number(&process) != Some(u64::from(pid))) {
        return None;
    }
    let text = period?;
    let period = number(&text).filter(|&micros| micros > 0);
    if period.is_none() {
        tracing::warn!("WATCHDOG_USEC is {text:?}: it takes a number of microseconds above 0");
    }
    period.map(Duration::from_micros)
}

/// `status` without what would end its line, and not too long.
fn one_line(status: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    status.chars().take(STATUS_CHARS).map(printable).collect()
}

#[cfg(unix)]
mod line {
    //! A datagram socket and where it sends to.

    use super::Unsent;
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    /// A line to a manager. The address is looked up with each message: the manager may have been started anew.
    #[derive(Debug)]
    pub(super) struct Line {
        name: OsString,
        to: SocketAddr,
        socket: UnixDatagram,
    }

    impl Line {
        pub(super) fn open(name: &OsStr) -> Result<Self, Unsent> {
            let owned = || name.to_owned();
            let to = address(name).ok_or_else(|| Unsent::Name { name: owned() })?;
            let opened = to.and_then(|to| Ok((to, socket()?)));
            let (to, socket) = opened.map_err(|source| Unsent::Socket {
                name: owned(),
                source,
            })?;
            Ok(Self {
                name: owned(),
                to,
                socket,
            })
        }

        pub(super) fn send(&self, message: &str) -> Result<(), Unsent> {
            // A datagram goes out whole or not at all.
            let sent = self.socket.send_to_addr(message.as_bytes(), &self.to);
            sent.map(|_| ()).map_err(|source| Unsent::Send {
                name: self.name.clone(),
                message: message.to_owned(),
                source,
            })
        }
    }

    fn socket() -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// The address that `name` stands for, if it is of a kind that is known here.
    fn address(name: &OsStr) -> Option<io::Result<SocketAddr>> {
        match name.as_bytes() {
            [b'/', ..] => Some(SocketAddr::from_pathname(name)),
            #[cfg(target_os = "linux")]
            [b'@', name @ ..] => {
                use std::os::linux::net::SocketAddrExt;
                Some(SocketAddr::from_abstract_name(name))
            }
            _ => None,
        }
    }
}

#[cfg(not(unix))]
mod line {
    //! No datagram sockets, so no manager that listens on one.

    use super::Unsent;
    use std::ffi::OsStr;

    #[derive(Debug)]
    pub(super) enum Line {}

    impl Line {
        pub(super) fn open(name: &OsStr) -> Result<Self, Unsent> {
            Err(Unsent::Name {
                name: name.to_owned(),
            })
        }

        pub(super) fn send(&self, _: &str) -> Result<(), Unsent> {
            match *self {}
        }
    }
}
