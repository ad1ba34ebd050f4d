//! Whether a guest takes what it is sent: answers that are not read are not held for ever, and are under way until they are.
//!
//! ```text
//!   bytes that the socket does not take             none of them for 30 s
//!   what HTTP/2 has no window for                   30 s, and a second for each 8 KiB of it
//! ```
//! Only what waits to be sent counts: a watch that has nothing to say lives as long as it may. What was handed over is followed
//! until its last byte has left ([`Piece`]), since a whole answer may wait in a buffer long after its body is gone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Buf, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::{Connection, UnderWay};

/// What a guest must take of an answer for each second more.
const RATE_BYTES_MIN: u64 = 8 << 10;

/// What a connection has to send and its guest has not taken. Times are in milliseconds of its clock, and never zero.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// Since when the socket takes nothing; 0 while it does.
    blocked_since: AtomicU64,
    /// Answers that were handed over and have not left.
    answers: Mutex<UnsentAnswers>,
}

#[derive(Debug, Default)]
struct UnsentAnswers {
    last: u64,
    waiting: BTreeMap<u64, UnsentAnswer>,
}

#[derive(Clone, Copy, Debug)]
struct UnsentAnswer {
    bytes: u64,
    /// When they must have left.
    due: u64,
}

impl Unsent {
    /// Whether the socket has been offered bytes that it does not take.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_since.load(Ordering::Relaxed) != 0
    }

    /// Whether a guest has taken nothing for longer than it may.
    pub(super) fn is_stalled(&self, now: u64, limit: Duration) -> bool {
        let since = self.blocked_since.load(Ordering::Relaxed);
        let blocked = if since == 0 {
            0
        } else {
            now.saturating_sub(since)
        };
        let overdue = |answer: &UnsentAnswer| answer.due <= now;
        blocked >= millis(limit) || self.answers.lock().waiting.values().any(overdue)
    }

    /// A number for another answer.
    fn begin(&self) -> u64 {
        let mut answers = self.answers.lock();
        answers.last += 1;
        answers.last
    }

    /// So many bytes more of an answer wait. They have the time that they are worth, behind those that wait already.
    fn handed_over(&self, number: u64, bytes: u64, now: u64, limit: Duration) {
        if bytes == 0 {
            return;
        }
        let mut answers = self.answers.lock();
        let answer = answers
            .waiting
            .entry(number)
            .or_insert_with(|| UnsentAnswer {
                bytes: 0,
                due: now.saturating_add(millis(limit)),
            });
        answer.bytes += bytes;
        answer.due = answer.due.saturating_add(worth(bytes));
    }

    /// So many bytes of an answer have left. Whoever was fast has no more time for the rest than anybody else.
    fn taken(&self, number: u64, bytes: u64, now: u64, limit: Duration) {
        let mut answers = self.answers.lock();
        let Some(answer) = answers.waiting.get_mut(&number) else {
            return;
        };
        answer.bytes = answer.bytes.saturating_sub(bytes);
        let left = worth(answer.bytes).saturating_add(millis(limit));
        answer.due = answer.due.min(now.saturating_add(left));
        if answer.bytes == 0 {
            answers.waiting.remove(&number);
        }
    }
}

/// How long so many bytes may take.
fn worth(bytes: u64) -> u64 {
    bytes.div_ceil(RATE_BYTES_MIN).saturating_mul(1000)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A stream of which is known whether it takes what is written.
#[derive(Debug)]
pub(super) struct Watched<I> {
    stream: I,
    connection: Arc<Connection>,
}

impl<I> Watched<I> {
    pub(super) fn new(stream: I, connection: Arc<Connection>) -> Self {
        Self { stream, connection }
    }

    fn noted<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let blocked = &self.connection.unsent.blocked_since;
        let was_blocked = blocked.load(Ordering::Relaxed) != 0;
        match (&written, was_blocked) {
            (Poll::Pending, false) => blocked.store(self.connection.now_ms(), Ordering::Relaxed),
            (Poll::Ready(_), true) => {
                blocked.store(0, Ordering::Relaxed);
                self.connection.moved();
            }
            (Poll::Pending, true) | (Poll::Ready(_), false) => {}
        }
        written
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of an answer, which is under way until it is sent.
#[derive(Debug)]
pub(super) struct Sending<B> {
    body: B,
    under_way: UnderWay,
    /// How long bytes may wait before their number counts; with HTTP/1 the socket says it all.
    limit: Option<Duration>,
    /// The answer, among those of the connection.
    number: u64,
}

impl<B> Sending<B> {
    pub(super) fn new(body: B, under_way: UnderWay, limit: Option<Duration>) -> Self {
        Self {
            number: under_way.connection().unsent.begin(),
            body,
            under_way,
            limit,
        }
    }
}

impl<B: Body + Unpin> Body for Sending<B> {
    type Data = Piece<B::Data>;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, B::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        let piece = |data| Piece::new(data, self.under_way.another(), self.limit, self.number);
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A piece of an answer, which is under way until its last byte has left.
#[derive(Debug)]
pub(super) struct Piece<D: Buf> {
    data: D,
    under_way: UnderWay,
    limit: Option<Duration>,
    number: u64,
}

impl<D: Buf> Piece<D> {
    fn new(data: D, under_way: UnderWay, limit: Option<Duration>, number: u64) -> Self {
        if let Some(limit) = limit {
            let connection = under_way.connection();
            let bytes = data.remaining() as u64;
            let unsent = &connection.unsent;
            unsent.handed_over(number, bytes, connection.now_ms(), limit);
        }
        Self {
            data,
            under_way,
            limit,
            number,
        }
    }

    fn taken(&self, bytes: usize) {
        if let Some(limit) = self.limit {
            let connection = self.under_way.connection();
            let now = connection.now_ms();
            let unsent = &connection.unsent;
            unsent.taken(self.number, bytes as u64, now, limit);
        }
    }
}

impl<D: Buf> Buf for Piece<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(slices)
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
        self.taken(count);
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        let bytes = self.data.copy_to_bytes(count);
        self.taken(count);
        bytes
    }
}

impl<D: Buf> Drop for Piece<D> {
    fn drop(&mut self) {
        // Nobody wants the rest.
        self.taken(self.data.remaining());
    }
}
