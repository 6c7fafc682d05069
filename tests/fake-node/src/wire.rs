//! Frames, by hand: what breaks the rules must be possible.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest message that is taken.
const LONGEST: u64 = 64 << 20;

/// A frame that came.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    Text(Vec<u8>),
    Ping(Vec<u8>),
    Close,
    Other,
}

/// Reads the frame of a WebSocket client (RFC 6455, section 5.2).
pub(crate) async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    let [first, second] =
        <[u8; 2]>::try_from(read(stream, 2).await?).map_err(|_| io::ErrorKind::InvalidData)?;
    let length = match second & 127 {
        126 => u64::from(stream.read_u16().await?),
        127 => stream.read_u64().await?,
        short => u64::from(short),
    };
    if length > LONGEST || second & 128 == 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mask = read(stream, 4).await?;
    let mut payload = read(stream, usize::try_from(length).map_err(io::Error::other)?).await?;
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(match first & 15 {
        1 => Frame::Text(payload),
        8 => Frame::Close,
        9 => Frame::Ping(payload),
        _ => Frame::Other,
    })
}

async fn read(stream: &mut (impl AsyncRead + Unpin), count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// The frame of a server. `first` has the final bit and the kind.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(short), _) if short < 126 => frame.push(short),
        (_, Ok(middle)) => {
            frame.push(126);
            frame.extend(middle.to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

pub(crate) const TEXT: u8 = 0x81;
pub(crate) const PONG: u8 = 0x8a;
pub(crate) const CLOSE: u8 = 0x88;

/// A text in `count` frames.
pub(crate) fn fragments(payload: &[u8], count: usize) -> Vec<u8> {
    let size = payload.len().div_ceil(count.max(1)).max(1);
    let last = payload.chunks(size).count().saturating_sub(1);
    let parts = payload.chunks(size).enumerate().map(|(at, part)| {
        let kind = u8::from(at == 0);
        frame(if at == last { 0x80 | kind } else { kind }, part)
    });
    parts.flatten().collect()
}

/// Reads the next JSON value of an IPC client; `held` has what was read beyond it.
pub(crate) async fn read_value(
    stream: &mut (impl AsyncRead + Unpin),
    held: &mut Vec<u8>,
) -> io::Result<Value> {
    loop {
        let mut values = serde_json::Deserializer::from_slice(held).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                let end = values.byte_offset();
                held.drain(..end);
                return Ok(value);
            }
            Some(Err(error)) if !error.is_eof() => return Err(io::Error::other(error)),
            _ => {}
        }
        if stream.read_buf(held).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
