//! A stream that counts what came in.
//!
//! hyper tells that a connection ended before an answer was complete, not whether any of the answer had come. The
//! difference decides whether a delivery may be sent again without counting as an attempt.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use heddle_rt::net::dial::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes came in.
#[derive(Debug, Default)]
pub(super) struct Heard {
    bytes: AtomicU64,
}

impl Heard {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }
}

/// A stream with an ear on it.
pub(super) struct Listening {
    stream: Box<dyn Stream>,
    heard: Arc<Heard>,
}

impl Listening {
    pub(super) fn to(stream: Box<dyn Stream>) -> (Self, Arc<Heard>) {
        let heard = Arc::new(Heard::default());
        let listening = Self {
            stream,
            heard: heard.clone(),
        };
        (listening, heard)
    }
}

impl AsyncRead for Listening {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let more = buffer.filled().len() - before;
        if more > 0 {
            self.heard.bytes.fetch_add(more as u64, Ordering::Release);
        }
        polled
    }
}

impl AsyncWrite for Listening {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
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
