//! Where a node listens.
//!
//! # Invariants
//! - What is shown, in a message or in a debug print, has neither credentials, nor a path, nor a query: providers put
//!   their keys into all three.
//! - What cannot be connected to is refused when it is read, with what would be right.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// A node's address: `ws://…`, `wss://…`, or the path of its IPC socket.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint(Kind);

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Web(Web),
    Ipc(PathBuf),
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Web {
    /// Whether the connection is encrypted.
    pub(crate) tls: bool,
    /// A name or an address, without the brackets of IPv6.
    pub(crate) host: String,
    /// The port, the scheme's own if none was given.
    pub(crate) port: u16,
    /// The path and the query, which begin with a slash.
    pub(crate) target: String,
    /// The decoded `user:password`.
    pub(crate) credentials: Option<Vec<u8>>,
}

impl Web {
    /// The host as an URL has it.
    pub(crate) fn bracketed(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }

    /// The URL of the handshake, without credentials.
    pub(crate) fn url(&self) -> String {
        format!(
            "{}://{}:{}{}",
            self.scheme(),
            self.bracketed(),
            self.port,
            self.target
        )
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "wss" } else { "ws" }
    }
}

/// Why a text is no endpoint. The text itself may hold a key, so only what is wrong with it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum EndpointError {
    /// There is nothing in it.
    #[error(
        "the endpoint is empty: give ws://HOST:PORT, wss://HOST/PATH, or the path of an IPC socket"
    )]
    Empty,
    /// The scheme is another one.
    #[error(
        "the scheme `{}` of the endpoint is not supported: give ws:// or wss:// (subscriptions need a lasting \
         connection), or the path of an IPC socket",
        scheme.escape_debug()
    )]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// It is neither an URL nor a path.
    #[error(
        "the endpoint is neither an URL nor a path: give ws://HOST:PORT, wss://HOST/PATH, an absolute path, a path that \
         begins with ./ or ../, or ipc:PATH"
    )]
    Neither,
    /// The URL names no host.
    #[error("the endpoint has no host: give {scheme}://HOST:PORT")]
    NoHost {
        /// The scheme.
        scheme: &'static str,
    },
    /// The host has a character that none may have.
    #[error(
        "the endpoint's host has the character {character:?}: give a name, an IPv4 address, or an IPv6 address in brackets"
    )]
    Host {
        /// The character.
        character: char,
    },
    /// The port is none.
    #[error("the endpoint's port `{}` is not a number from 1 to 65535", port.escape_debug())]
    Port {
        /// The port.
        port: String,
    },
    /// The path or the query has a character that an URL cannot hold.
    #[error("the endpoint's path has the character {character:?}: write it percent-encoded")]
    Target {
        /// The character.
        character: char,
    },
    /// The credentials are not percent-encoded text.
    #[error(
        "the endpoint's credentials have a percent sign that no two hexadecimal digits follow: write %25 for the sign itself"
    )]
    Credentials,
    /// `ipc:` without a path.
    #[error("the endpoint names no IPC socket: give ipc:PATH")]
    NoPath,
}

impl Endpoint {
    /// The IPC socket at `path`.
    #[must_use]
    pub fn ipc(path: &Path) -> Self {
        Self(Kind::Ipc(path.to_owned()))
    }

    /// Whether what is said to it travels in the clear to another machine.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        matches!(&self.0, Kind::Web(web) if !web.tls)
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return match scheme.to_ascii_lowercase().as_str() {
                "ws" => web(false, rest),
                "wss" => web(true, rest),
                _ => Err(EndpointError::Scheme {
                    scheme: scheme.chars().take(16).collect(),
                }),
            };
        }
        let path = match text.strip_prefix("ipc:") {
            Some("") => return Err(EndpointError::NoPath),
            Some(path) => path,
            None if ["/", "./", "../"]
                .iter()
                .any(|start| text.starts_with(start)) =>
            {
                text
            }
            None => return Err(EndpointError::Neither),
        };
        Ok(Self::ipc(Path::new(path)))
    }
}

fn web(tls: bool, rest: &str) -> Result<Endpoint, EndpointError> {
    let (scheme, own_port) = if tls { ("wss", 443) } else { ("ws", 80) };
    let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(authority_end);
    // A fragment never travels.
    let target = target.split('#').next().unwrap_or_default();
    if let Some(character) = target
        .chars()
        .find(|&c| !c.is_ascii_graphic() || "\"<>\\^`{|}".contains(c))
    {
        return Err(EndpointError::Target { character });
    }
    let target = if target.starts_with('/') {
        target.to_owned()
    } else {
        format!("/{target}")
    };
    let (credentials, host_port) = match authority.rsplit_once('@') {
        Some((credentials, host_port)) => (Some(percent_decode(credentials)?), host_port),
        None => (None, authority),
    };
    let bracketed = host_port
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, after)) => {
            let host = check(host, |c| c.is_ascii_hexdigit() || c == ':' || c == '.')?;
            match (after.strip_prefix(':'), after.chars().next()) {
                (None, Some(character)) => return Err(EndpointError::Host { character }),
                (port, _) => (host, port),
            }
        }
        None => match host_port.rsplit_once(':') {
            Some((host, port)) => (check(host, is_of_name)?, Some(port)),
            None => (check(host_port, is_of_name)?, None),
        },
    };
    if host.is_empty() {
        return Err(EndpointError::NoHost { scheme });
    }
    let port = match port {
        None => own_port,
        Some(text) => match text.parse::<u16>() {
            Ok(port) if port != 0 && text.bytes().all(|b| b.is_ascii_digit()) => port,
            _ => {
                return Err(EndpointError::Port {
                    port: text.chars().take(16).collect(),
                });
            }
        },
    };
    Ok(Endpoint(Kind::Web(Web {
        tls,
        host,
        port,
        target,
        credentials,
    })))
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._".contains(character)
}

fn check(host: &str, is_right: impl Fn(char) -> bool) -> Result<String, EndpointError> {
    match host.chars().find(|&character| !is_right(character)) {
        Some(character) => Err(EndpointError::Host { character }),
        None => Ok(host.to_owned()),
    }
}

fn percent_decode(text: &str) -> Result<Vec<u8>, EndpointError> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || {
                bytes
                    .next()
                    .and_then(|b| char::from(b).to_digit(16))
                    .and_then(|d| u8::try_from(d).ok())
            };
            let (Some(high), Some(low)) = (digit(), digit()) else {
                return Err(EndpointError::Credentials);
            };
            decoded.push(high << 4 | low);
        } else {
            decoded.push(byte);
        }
    }
    Ok(decoded)
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Web(web) => {
                write!(f, "{}://{}:{}", web.scheme(), web.bracketed(), web.port)?;
                if web.target == "/" {
                    Ok(())
                } else {
                    f.write_str("/…")
                }
            }
            Kind::Ipc(path) => write!(f, "ipc:{}", path.display().to_string().escape_debug()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}
