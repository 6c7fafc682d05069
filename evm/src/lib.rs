//! Swaps in an embedded EVM, over the bytecode and the state that a node has.
