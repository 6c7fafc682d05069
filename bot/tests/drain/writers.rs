//! Writers that are slow, that fail, and that keep what they were given.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};

/// What was written, a write each. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<Vec<u8>>>>);

impl Kept {
    pub(crate) fn writes(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().clone()
    }

    /// The numbers of the records; fails on anything that is not a whole record.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let text = String::from_utf8(self.writes().concat()).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        let number = |line: &str| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            record["number"].as_u64().unwrap()
        };
        text.lines().map(number).collect()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says when a write begins, and waits for leave to do it; once nobody is left to give leave, it has it.
pub(crate) struct Gated {
    begun: Sender<()>,
    leave: Receiver<()>,
    kept: Kept,
}

/// The other end of a [`Gated`].
pub(crate) struct Gate {
    pub(crate) begun: Receiver<()>,
    pub(crate) leave: SyncSender<()>,
}

pub(crate) fn gated(kept: &Kept) -> (Gated, Gate) {
    let (begun, seen) = channel();
    let (grant, leave) = sync_channel(0);
    let writer = Gated {
        begun,
        leave,
        kept: kept.clone(),
    };
    let gate = Gate {
        begun: seen,
        leave: grant,
    };
    (writer, gate)
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.begun.send(());
        let _ = self.leave.recv();
        self.kept.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes `piece` bytes at most at once, and fails on the calls that `fails` names, counted from 1.
pub(crate) struct Failing<F> {
    pub(crate) calls: u64,
    pub(crate) piece: usize,
    pub(crate) fails: F,
    pub(crate) kept: Kept,
}

impl<F: Fn(u64) -> bool> Write for Failing<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        if (self.fails)(self.calls) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.kept.write(&bytes[..bytes.len().min(self.piece)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
