//! The Submitter's unit: signing is the one part of settling that is work of the CPU.

use super::Message;
use regatta_settle::key::Key;
use regatta_settle::tx::{SignError, Signed, Transaction};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A transaction to sign, and what came of it.
#[derive(Debug)]
pub struct SubmitJob {
    transaction: Transaction,
    key: Arc<Key>,
    signed: Option<Result<Signed, SignError>>,
    /// Whom to wake. Sending never blocks.
    wake: Sender<Message>,
}

impl SubmitJob {
    pub(super) fn new(transaction: Transaction, key: Arc<Key>, wake: Sender<Message>) -> Self {
        Self {
            transaction,
            key,
            signed: None,
            wake,
        }
    }

    pub(crate) fn run(&mut self) {
        self.signed = Some(self.transaction.sign(&self.key));
        // With the settler gone nobody wants it.
        let _ = self.wake.send(Message::Ran);
    }

    pub(super) fn into_signed(self) -> Option<Result<Signed, SignError>> {
        self.signed
    }
}
