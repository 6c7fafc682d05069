//! `--sim evm`: what the exact integers find also runs as bytecode, over a state that is asked for, and both agree.
#![cfg(test)]

mod honest;
mod liars;
mod node;
mod silent;
mod support;
