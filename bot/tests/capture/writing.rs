//! Writing: an event is in the file before anybody has it, and a file that takes no more is an error for good.

use crate::{Kept, events, header, read};
use regatta_bot::capture::{Durable, Tail, Tee, WriteError, Writer};
use regatta_bot::source::{BlockSource, Event, SourceError};
use std::collections::VecDeque;
use std::io::{self, Write};

/// Events that were made before.
struct Made(VecDeque<Event>);

impl Made {
    fn new() -> Self {
        Self(
            events()
                .into_iter()
                .map(|recorded| recorded.event)
                .collect(),
        )
    }
}

impl BlockSource for Made {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        Ok(self.0.pop_front())
    }
}

#[test]
fn an_event_is_in_the_file_before_it_is_handed_on() {
    let kept = Kept::default();
    let mut tee = Tee::new(Made::new(), Writer::new(kept.clone(), &header()).unwrap());
    let mut came = Vec::new();
    while let Some(event) = tee.next_event().unwrap() {
        came.push(event);
        let read = read(&kept.bytes()).unwrap();
        let written: Vec<Event> = read.events.into_iter().map(|r| r.event).collect();
        assert_eq!(written, came);
        assert!(matches!(read.ended, Ok(Tail::Open { .. })));
    }
    assert_eq!(came.len(), 5);
    tee.finish().unwrap();
    assert_eq!(read(&kept.bytes()).unwrap().ended, Ok(Tail::Ended));
}

/// A disk with room for so many bytes.
struct Full {
    kept: Kept,
    room: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room);
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= taken;
        self.kept.write(&bytes[..taken])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Durable for Full {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_and_what_was_written_can_be_read() {
    let events = events();
    let whole = crate::written(&header(), &events, true);
    let ends = read(&whole).unwrap().ends;
    for room in ends[0]..whole.len() {
        let kept = Kept::default();
        let full = Full {
            kept: kept.clone(),
            room,
        };
        let mut writer = Writer::new(full, &header()).unwrap();
        let is_full = |error: &WriteError| matches!(error, WriteError::Io { kind, .. } if *kind == io::ErrorKind::StorageFull);
        let failed = events.iter().find_map(|event| writer.recorded(event).err());
        if let Some(error) = failed {
            assert!(is_full(&error), "{error}");
            // Nothing is written behind half a record.
            assert_eq!(writer.recorded(&events[0]), Err(WriteError::Broken));
            assert_eq!(writer.finish().err(), Some(WriteError::Broken));
        } else {
            assert!(is_full(&writer.finish().err().unwrap()));
        }
        let read = read(&kept.bytes()).unwrap();
        let fit = ends.iter().filter(|end| **end <= room).count() - 1;
        assert_eq!(read.events, events[..fit]);
        assert!(read.ended.is_ok());
    }
}
