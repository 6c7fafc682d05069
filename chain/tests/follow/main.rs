//! The follower against a model of a node: a tree of blocks, of which one branch is the chain.
#![cfg(test)]

mod bounds;
mod exhaustive;
mod logs;
mod node;
mod random;
mod reorgs;
mod rig;
mod tree;
