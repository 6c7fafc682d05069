//! `--sim evm`: what the exact integers find also runs as bytecode, over a state that is asked for, and both agree.
#![cfg(test)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, in a helper too"
)]

mod honest;
mod liars;
mod node;
mod silent;
mod support;
