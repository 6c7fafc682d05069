//! Components, as a whole: every graph of two to four, every order of answers, failures, time-outs and late
//! answers, and random walks over larger graphs, each step compared with what plain rules say is due.
#![cfg(test)]

mod explore;
mod oracle;
mod reconnect;
mod shape;
mod walk;
mod world;
