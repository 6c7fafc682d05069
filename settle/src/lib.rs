//! Settling opportunities on an Ethereum chain: the executor, transactions, and the settlement ledger.
