//! A backup as a stream: a line of JSON for each thing in it, followed by its bytes, and a line at the end.
//!
//! Without the last line the stream was broken off, whatever the connection says.

pub(crate) mod fuzzing;

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use futures::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};

/// The longest line. A name cannot be longer than paths are.
const LINE_BYTES_MAX: usize = 16 << 10;

/// What a line says.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub(crate) enum Frame {
    File {
        name: String,
        mode: u32,
        size: u64,
    },
    Directory {
        name: String,
        mode: u32,
    },
    Link {
        name: String,
        target: String,
    },
    /// All of it: so many things were sent.
    End {
        entries: u64,
    },
    /// The server could not go on.
    Failed {
        message: String,
    },
}

impl Frame {
    pub(crate) fn line(&self) -> Bytes {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line.into()
    }
}

/// Reads frames, and the bytes behind them, from pieces of any size.
#[derive(Debug)]
pub(crate) struct Frames<S> {
    pieces: S,
    rest: BytesMut,
}

impl<S, E> Frames<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    pub(crate) fn new(pieces: S) -> Self {
        Self {
            pieces,
            rest: BytesMut::new(),
        }
    }

    /// The next line.
    pub(crate) async fn frame(&mut self) -> io::Result<Frame> {
        loop {
            let end = self.rest.iter().position(|byte| *byte == b'\n');
            if end.unwrap_or(self.rest.len()) > LINE_BYTES_MAX {
                return Err(io::Error::other("what was sent is no backup"));
            }
            if let Some(end) = end {
                let line = self.rest.split_to(end);
                self.rest.advance(1);
                return serde_json::from_slice(&line).map_err(io::Error::other);
            }
            self.more().await?;
        }
    }

    /// Some of the bytes behind a line, at most `left` of them.
    pub(crate) async fn bytes(&mut self, left: u64) -> io::Result<Bytes> {
        if self.rest.is_empty() {
            self.more().await?;
        }
        let count = usize::try_from(left).unwrap_or(usize::MAX);
        let count = count.min(self.rest.len());
        Ok(self.rest.split_to(count).freeze())
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.pieces.next().await {
            Some(Ok(piece)) => self.rest.extend_from_slice(&piece),
            Some(Err(error)) => return Err(io::Error::other(error)),
            None => {
                let text = "the server broke off; its log says why";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
        }
        Ok(())
    }
}
