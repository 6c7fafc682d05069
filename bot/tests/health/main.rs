//! The health surface from outside: raw clients at the endpoint, a manager's socket, the files for deployment.

#![cfg(test)]
#![expect(clippy::print_stderr, reason = "what is left out is said")]

mod client;
mod deploy;
mod endpoint;
mod hostile;
mod manager;
