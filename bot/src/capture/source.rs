//! A capture as a source.

use super::{ReadError, Reader, Tail};
use crate::source::{BlockSource, Event, SourceError};
use std::io::Read;

/// The events of a capture, as fast as they are asked for.
#[derive(Debug)]
pub struct CaptureSource<R> {
    reader: Reader<R>,
    /// Blocks that are still to be handed out.
    left: Option<u64>,
    strict: bool,
    over: bool,
}

impl<R: Read> CaptureSource<R> {
    /// The events up to the block after so many, or all. A `strict` source ends with an error where the capture
    /// has no end record; another one says so in the log.
    pub const fn new(reader: Reader<R>, blocks: Option<u64>, strict: bool) -> Self {
        Self {
            reader,
            left: blocks,
            strict,
            over: false,
        }
    }

    fn ended(&mut self) -> Result<(), ReadError> {
        self.over = true;
        let (what, offset) = match self.reader.tail() {
            None | Some(Tail::Ended) => return Ok(()),
            Some(Tail::Open { offset }) => ("has no end record", offset),
            Some(Tail::Torn { offset }) => ("ends in the middle of a record", offset),
        };
        if self.strict {
            return Err(ReadError::Unfinished { offset });
        }
        tracing::warn!("the capture {what}: it was read up to byte {offset}");
        Ok(())
    }
}

impl<R: Read> BlockSource for CaptureSource<R> {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        if self.over {
            return Ok(None);
        }
        let Some(recorded) = self.reader.next_event()? else {
            self.ended()?;
            return Ok(None);
        };
        if let Event::Block(_) = recorded.event {
            match &mut self.left {
                Some(0) => {
                    self.over = true;
                    return Ok(None);
                }
                Some(left) => *left -= 1,
                None => {}
            }
        }
        Ok(Some(recorded.event))
    }
}
