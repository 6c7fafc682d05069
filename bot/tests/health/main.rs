//! The health surface from outside: raw clients at the endpoint, a manager's socket, the files for deployment.

#![cfg(test)]

mod client;
mod deploy;
mod endpoint;
mod hostile;
mod manager;
