//! Captures, as any bytes: no panic, what is read is written as the same bytes, and what is not is an error with a
//! place in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_bot::capture::{
    Kind, ReadError, Reader, Writer, decode_event, decode_header, encode_event, encode_header,
};

fn whole_file(bytes: &[u8]) {
    let mut reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return placed(&error, bytes),
    };
    let mut writer = Writer::new(Vec::new(), reader.header()).expect("it was read");
    let mut events = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some(event)) => {
                writer.recorded(&event).expect("it was read");
                events.push(event);
            }
            Ok(None) => break,
            Err(error) => return placed(&error, bytes),
        }
    }
    assert!(reader.offset() <= bytes.len() as u64 && reader.tail().is_some());
    let again = writer.finish().expect("memory takes it");
    let mut reader = Reader::new(again.as_slice()).expect("it was written");
    for event in events {
        assert_eq!(reader.next_event(), Ok(Some(event)));
    }
    assert_eq!(reader.next_event(), Ok(None));
}

fn placed(error: &ReadError, bytes: &[u8]) {
    assert!(!error.to_string().is_empty());
    let (ReadError::Damaged { offset, .. } | ReadError::Content { offset, .. }) = error else {
        return;
    };
    assert!(*offset < bytes.len() as u64, "{error}");
}

fn payload(kind: Kind, payload: &[u8]) {
    let mut again = Vec::new();
    let decoded = if kind == Kind::Header {
        decode_header(payload).map(|header| encode_header(&header, &mut again).is_ok())
    } else {
        decode_event(kind, payload, 3)
            .map(|event| event.is_some_and(|event| encode_event(&event, &mut again).is_ok()))
    };
    match decoded {
        Ok(true) => assert_eq!(again, payload),
        Ok(false) => assert!(kind == Kind::End),
        Err((at, problem)) => {
            assert!(at <= payload.len() as u64, "{problem}");
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    // The checksums keep a fuzzer from the content of a file, so payloads are read by themselves too.
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    match Kind::ALL.into_iter().find(|kind| *kind as u8 == *first) {
        Some(kind) => payload(kind, rest),
        None => whole_file(bytes),
    }
});
