//! One HTTP/1 connection, driven by whoever delivers over it.
//!
//! No task of its own stands between a delivery and its socket: the head is written into one buffer, the event's data is
//! sent from where it lies, and the answer is read by the one who waits for it. A destination that answers before it has
//! read the whole request is heard at once, and its connection not used again.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, Bytes, BytesMut};
use heddle_rt::net::dial::Stream;
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};

use tokio::sync::OwnedSemaphorePermit;

use super::framing::{BodyPart, Framing};
use super::head::{self, Head};

/// Room for a common answer. More is made when it is needed, and not kept for ever.
const INPUT_BYTES: usize = 1024;
const BUFFER_BYTES_KEPT: usize = 16 * 1024;

/// A connection.
pub(in super::super) struct Single {
    stream: Box<dyn Stream>,
    /// What was heard and not yet understood.
    input: BytesMut,
    /// The head of the request.
    output: Vec<u8>,
    /// What is left of the answer.
    framing: Framing,
    head_bytes_max: usize,
    /// Whether it has carried a delivery before, and rested since.
    pub(super) has_rested: bool,
    /// Whether another delivery can follow this one.
    stays_open: bool,
    /// Its place among all connections.
    place: Option<OwnedSemaphorePermit>,
}

/// Why an answer could not be had.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum Broken {
    #[error("the connection was closed before the answer was complete")]
    Closed,
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error("the answer is not HTTP: {0}")]
    Head(#[from] httparse::Error),
    #[error("the head of the answer has more than {0} bytes")]
    HeadTooLarge(usize),
    #[error("the answer says how long it is in a way that cannot be understood")]
    Length,
    #[error("the chunks of the answer cannot be understood")]
    Chunk,
    #[error(transparent)]
    Http2(#[from] hyper::Error),
}

/// A request that was not answered.
#[derive(Debug)]
pub(super) struct Unheard {
    pub(super) error: Broken,
    /// The connection had ended while it rested, and nothing was heard of this request.
    pub(super) is_stale: bool,
}

impl std::fmt::Debug for Single {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let heard = self.input.len();
        f.debug_struct("Single")
            .field("heard", &heard)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Single {
    pub(super) fn new(stream: Box<dyn Stream>, head_bytes_max: usize) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            output: Vec::new(),
            framing: Framing::Length(0),
            head_bytes_max,
            has_rested: false,
            stays_open: true,
            place: None,
        }
    }

    /// Takes a place among all connections, until it ends.
    pub(super) fn at(self, place: OwnedSemaphorePermit) -> Self {
        Self {
            place: Some(place),
            ..self
        }
    }

    /// Where the head of the next request is to be written.
    pub(in super::super) fn output(&mut self) -> &mut Vec<u8> {
        self.output.clear();
        &mut self.output
    }

    /// Sends the head that was written and this body, and waits for the head of the answer.
    pub(super) async fn ask(&mut self, body: &Bytes) -> Result<Head, Unheard> {
        let asked = match self.write(body).await {
            Ok(()) => self.head().await,
            // It may have said why before it closed.
            Err(error) if is_hang_up(&error) => self.head().await.map_err(|_| error.into()),
            Err(error) => Err(error.into()),
        };
        self.output.shrink_to(BUFFER_BYTES_KEPT);
        asked.map_err(|error| {
            let silent = self.has_rested && self.input.is_empty();
            let is_gone = match &error {
                Broken::Closed => true,
                Broken::Io(error) => is_hang_up(error),
                _ => false,
            };
            let is_stale = silent && is_gone;
            Unheard { error, is_stale }
        })
    }

    /// Writes until all is written, or until the other side has begun to answer what it has not read.
    async fn write(&mut self, body: &Bytes) -> io::Result<()> {
        let (mut head, mut body) = (&self.output[..], &body[..]);
        let (stream, input) = (&mut self.stream, &mut self.input);
        let is_whole = poll_fn(|cx| {
            while !head.is_empty() || !body.is_empty() {
                let slices = [IoSlice::new(head), IoSlice::new(body)];
                let Poll::Ready(written) = Pin::new(&mut *stream).poll_write_vectored(cx, &slices)
                else {
                    return hear_early(stream, input, cx).map_ok(|()| false);
                };
                let written = written?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                let of_head = written.min(head.len());
                head.advance(of_head);
                body.advance(written - of_head);
            }
            Poll::Ready(Ok(true))
        })
        .await?;
        self.stays_open &= is_whole;
        self.stream.flush().await
    }

    /// Waits for the head of the answer. Provisional ones are passed over.
    async fn head(&mut self) -> Result<Head, Broken> {
        loop {
            if let Some((head, length)) = head::read(&self.input)? {
                self.input.advance(length);
                if head.status.is_informational() && head.status.as_u16() != 101 {
                    continue;
                }
                self.framing = head.framing;
                self.stays_open &= head.stays_open;
                return Ok(head);
            }
            if self.input.len() > self.head_bytes_max {
                return Err(Broken::HeadTooLarge(self.head_bytes_max));
            }
            if !self.fill().await? {
                return Err(Broken::Closed);
            }
        }
    }

    /// Reads what comes; `false` when nothing will.
    async fn fill(&mut self) -> io::Result<bool> {
        self.input.reserve(INPUT_BYTES);
        Ok(self.stream.read_buf(&mut self.input).await? > 0)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.framing.is_at_end()
    }

    pub(super) fn announced(&self) -> u64 {
        self.framing.announced()
    }

    /// The next piece of the answer's body; `None` behind the last. Dropping the future loses nothing.
    pub(super) async fn piece(&mut self) -> Option<Result<Bytes, Broken>> {
        loop {
            match self.framing.take(&mut self.input) {
                Ok(BodyPart::Piece(bytes)) => return Some(Ok(bytes)),
                Ok(BodyPart::End) => return None,
                Ok(BodyPart::Nothing) => {}
                Err(error) => return Some(Err(error)),
            }
            match self.fill().await {
                Ok(true) => {}
                Ok(false) if self.framing == Framing::UntilClosed => return None,
                Ok(false) => return Some(Err(Broken::Closed)),
                Err(error) => return Some(Err(error.into())),
            }
        }
    }

    /// Whether another delivery can follow: the answer was read to its end, and nothing behind it.
    pub(super) fn rest(&mut self) -> bool {
        self.has_rested = true;
        if self.input.capacity() > BUFFER_BYTES_KEPT {
            self.input = BytesMut::new();
        }
        self.stays_open && self.is_at_end() && self.input.is_empty()
    }

    /// Whether the other side has neither closed nor said anything that nobody asked for. Costs no call of the system
    /// unless something has come.
    pub(super) fn is_quiet(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        let polled = Pin::new(&mut self.stream).poll_read(&mut cx, &mut buffer);
        polled.is_pending()
    }

    /// Says goodbye, which TLS wants to be said. Nobody waits for it to be heard.
    pub(super) fn close(mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        // Whether it could be sent or not, the connection ends here.
        let _sent: Poll<io::Result<()>> = Pin::new(&mut self.stream).poll_shutdown(&mut cx);
    }
}

/// Waits for the other side to speak while it does not read.
fn hear_early(
    stream: &mut Box<dyn Stream>,
    input: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let mut bytes = [0; INPUT_BYTES];
    let mut buffer = ReadBuf::new(&mut bytes);
    match Pin::new(stream).poll_read(cx, &mut buffer) {
        Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }
        Poll::Ready(Ok(())) => {
            input.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(()))
        }
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => Poll::Pending,
    }
}

/// Whether the other side ended the connection.
fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof,
    };
    let gone = [
        BrokenPipe,
        ConnectionAborted,
        ConnectionReset,
        NotConnected,
        UnexpectedEof,
    ];
    gone.contains(&error.kind())
}
