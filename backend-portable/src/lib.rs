//! The portable backend of the Regatta worker fleet.
