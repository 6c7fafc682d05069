//! A real Ethereum node with the real pools, for the tests and for trying the bot out.
