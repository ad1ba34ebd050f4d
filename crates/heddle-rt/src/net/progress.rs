//! Whether a guest takes what it is sent: answers that are not read are not held for ever.
//!
//! ```text
//!   bytes that the socket does not take             none of them for 30 s
//!   a piece that HTTP/2 has no window for           30 s, and a second for each 8 KiB of it
//! ```
//! Only what waits to be sent counts: a watch that has nothing to say lives as long as it may.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Buf as _, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::{Connection, UnderWay};

/// What a guest must take of a piece for each second more.
const RATE_BYTES_MIN: u64 = 8 << 10;

/// What a connection has to send and its guest has not taken. Times are in milliseconds of its clock, and never zero.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// Since when the socket takes nothing; 0 while it does.
    blocked_since: AtomicU64,
    /// Pieces of answers after which nobody asked for the next one, by when that must have happened.
    pieces: Mutex<Pieces>,
}

#[derive(Debug, Default)]
struct Pieces {
    next: u64,
    due: BTreeMap<u64, u64>,
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
        blocked >= millis(limit) || self.pieces.lock().due.values().any(|due| *due <= now)
    }

    fn handed_out(&self, due: u64) -> u64 {
        let mut pieces = self.pieces.lock();
        pieces.next += 1;
        let number = pieces.next;
        pieces.due.insert(number, due);
        number
    }

    fn taken(&self, number: u64) {
        self.pieces.lock().due.remove(&number);
    }
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
    /// How long a piece may wait before its size counts.
    limit: Duration,
    /// The latest piece, unless the next one was asked for.
    handed_out: Option<u64>,
}

impl<B> Sending<B> {
    pub(super) fn new(body: B, under_way: UnderWay, limit: Duration) -> Self {
        Self {
            body,
            under_way,
            limit,
            handed_out: None,
        }
    }

    fn taken(&mut self) {
        if let Some(number) = self.handed_out.take() {
            self.under_way.connection().unsent.taken(number);
        }
    }

    fn hand_out(&mut self, bytes: usize) {
        let connection = self.under_way.connection();
        let seconds = (bytes as u64).div_ceil(RATE_BYTES_MIN);
        let patience = self.limit.saturating_add(Duration::from_secs(seconds));
        let due = connection.now_ms().saturating_add(millis(patience));
        self.handed_out = Some(connection.unsent.handed_out(due));
    }
}

impl<B: Body + Unpin> Body for Sending<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.taken();
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        // The last one as well: it is dropped with this once there is a window for it.
        if let Some(Ok(frame)) = &frame {
            self.hand_out(frame.data_ref().map_or(0, |data| data.remaining()));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Sending<B> {
    fn drop(&mut self) {
        self.taken();
    }
}
