//! What the source of a run says, in a file beside what the run makes of it.
//!
//! # Invariants
//! - An event is in the file before it is acted upon.
//! - The file has its end record if the run came to its end or was asked to stop, and not if it failed.

use super::stage::Stage;
use crate::capture::Writer;
use crate::run::RunError;
use crate::source::Event;
use std::fs::File;
use std::path::Path;

/// The file, if there is to be one.
pub(super) struct RunRecord<'a> {
    path: &'a Path,
    writer: Option<Writer<File>>,
}

impl<'a> RunRecord<'a> {
    /// That of a run; once.
    pub(super) fn of(stage: &'a Stage) -> Self {
        Self {
            path: stage.args().record.as_deref().unwrap_or(Path::new("")),
            writer: stage.take_record(),
        }
    }

    /// Writes events down and gives them back.
    pub(super) fn take(&mut self, events: Vec<Event>) -> Result<Vec<Event>, RunError> {
        let Some(writer) = &mut self.writer else {
            return Ok(events);
        };
        let written = events.into_iter().map(|event| writer.event(event));
        let written: Result<_, _> = written.collect();
        written.map_err(|error| RunError::of_record(self.path, error))
    }

    /// Nothing more comes.
    pub(super) fn end(self) -> Result<(), RunError> {
        let ended = self
            .writer
            .map_or(Ok(()), |writer| writer.finish().map(drop));
        ended.map_err(|error| RunError::of_record(self.path, error))
    }
}
