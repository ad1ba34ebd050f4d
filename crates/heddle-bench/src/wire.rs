//! As much of HTTP/1.1 as a benchmark needs: whole messages with a known length, on connections that stay open.
//!
//! Both ends of every measured connection use this, so that what they cost is small and the same for all sides. It is no
//! general client: chunked bodies are refused by name, and nothing is reachable but the loopback addresses it is given.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Room for a common message; longer ones make the buffer grow.
const BUFFER_BYTES: usize = 8 * 1024;
/// Beyond this a head is no head.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Where a message ends: the length of its head, blank line included, and of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    head: usize,
    body: usize,
}

/// A connection that reads whole messages.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Wire {
    pub(super) async fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::over(heddle_rt::net::connect(address).await?)
    }

    pub(super) fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: BytesMut::with_capacity(BUFFER_BYTES),
        })
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads until a message is there; `None` when the other end closed between two messages.
    pub(super) async fn message(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = frame(&self.buffer)? {
                while self.buffer.len() < frame.head + frame.body {
                    self.buffer
                        .reserve(frame.head + frame.body - self.buffer.len());
                    self.more().await?;
                }
                return Ok(Some(frame));
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(malformed("a head that does not end"));
            }
            if self.buffer.is_empty() {
                if self.stream.read_buf(&mut self.buffer).await? == 0 {
                    return Ok(None);
                }
            } else {
                self.more().await?;
            }
        }
    }

    /// Reads on inside a message, where the end of the stream is an error.
    async fn more(&mut self) -> io::Result<()> {
        if self.buffer.capacity() == self.buffer.len() {
            self.buffer.reserve(BUFFER_BYTES);
        }
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    pub(super) fn head(&self, frame: Frame) -> &[u8] {
        &self.buffer[..frame.head]
    }

    pub(super) fn body(&self, frame: Frame) -> &[u8] {
        &self.buffer[frame.head..frame.head + frame.body]
    }

    /// Makes room for the next message.
    pub(super) fn consume(&mut self, frame: Frame) {
        self.buffer.advance(frame.head + frame.body);
        if self.buffer.is_empty() {
            self.buffer.reserve(BUFFER_BYTES);
        }
    }
}

/// One request on a connection of its own; answers status and body.
pub(super) async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
) -> anyhow::Result<(u16, String)> {
    let mut wire = Wire::connect(address).await?;
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\n\r\n");
    wire.write(request.as_bytes()).await?;
    let frame = wire
        .message()
        .await?
        .with_context(|| format!("{address} closed without an answer"))?;
    let body = String::from_utf8_lossy(wire.body(frame)).into_owned();
    Ok((status(wire.head(frame))?, body))
}

/// The status of a response.
pub(super) fn status(head: &[u8]) -> io::Result<u16> {
    let digits = head.get(9..12).unwrap_or_default();
    if !digits.iter().all(u8::is_ascii_digit) || digits.is_empty() {
        return Err(malformed("no status line"));
    }
    Ok(digits
        .iter()
        .fold(0, |status, digit| status * 10 + u16::from(digit - b'0')))
}

/// The value of a header, without the space around it.
pub(super) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (found, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        found
            .eq_ignore_ascii_case(name.as_bytes())
            .then(|| value.trim_ascii())
    })
}

/// The frame of the message that begins here, once its head is complete.
fn frame(bytes: &[u8]) -> io::Result<Option<Frame>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = &bytes[..end + 4];
    let body = match header(head, "content-length") {
        Some(length) => std::str::from_utf8(length)
            .ok()
            .and_then(|length| length.parse().ok())
            .ok_or_else(|| malformed("a content-length that is no number"))?,
        None if header(head, "transfer-encoding").is_some() => {
            return Err(malformed("a chunked body, where a length is expected"));
        }
        None => 0,
    };
    Ok(Some(Frame {
        head: head.len(),
        body,
    }))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("received {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_where_its_length_says() {
        let head = "HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\n";
        let whole = format!("{head}helloHTTP/1.1 2");
        let frame = frame(whole.as_bytes()).unwrap().unwrap();
        assert_eq!((frame.head, frame.body), (head.len(), 5));
        assert_eq!(status(whole.as_bytes()).unwrap(), 202);
    }

    #[test]
    fn half_a_head_is_waited_for_and_a_body_without_length_is_refused() {
        assert_eq!(frame(b"HTTP/1.1 200 OK\r\ncontent-le").unwrap(), None);
        assert!(frame(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(frame(b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n").is_err());
        assert!(status(b"HTTP/1.1").is_err());
    }

    #[test]
    fn headers_are_found_in_any_case_and_only_by_their_whole_name() {
        let head = b"POST / HTTP/1.1\r\nX-CE-Id: 1\r\nCE-ID:  2 \r\n\r\n";
        assert_eq!(header(head, "ce-id"), Some(b"2".as_slice()));
        assert_eq!(header(head, "ce-i"), None);
    }
}
