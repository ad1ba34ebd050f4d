//! What is read of a body that nobody wants, under a clock that stands still.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use jiff::Timestamp;

use super::*;

const PIECE_BYTES: usize = 16 << 10;

/// A body of equal pieces, of which is counted how many were read.
struct Pieces {
    left: usize,
    /// What is behind the last one: the end, or nothing for ever.
    ends: bool,
    announced: Option<u64>,
    read: Arc<AtomicUsize>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.left.checked_sub(1) else {
            return if self.ends {
                Poll::Ready(None)
            } else {
                Poll::Pending
            };
        };
        self.left = left;
        self.read.fetch_add(PIECE_BYTES, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![0; PIECE_BYTES])))))
    }

    fn size_hint(&self) -> SizeHint {
        self.announced
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// How many bytes are read, and how long that takes.
async fn heard(short_only: bool, left: usize, ends: bool, is_announced: bool) -> (usize, Duration) {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let read = Arc::new(AtomicUsize::new(0));
    let body = Pieces {
        left,
        ends,
        announced: is_announced.then_some((left.saturating_mul(PIECE_BYTES)) as u64),
        read: Arc::clone(&read),
    };
    let hearing = async {
        match short_only {
            true => hear_out_short(body, &clock).await,
            false => hear_out(body, &clock).await,
        }
    };
    let patience = Duration::from_secs(60);
    let ended = clock.timeout(patience, hearing).await;
    assert!(ended.is_ok(), "it is heard for ever");
    (read.load(Ordering::Relaxed), clock.monotonic())
}

#[tokio::test(start_paused = true)]
async fn a_refused_body_is_read_to_its_end_so_that_its_sender_hears_why() {
    for (short_only, pieces) in [(true, 1), (true, 4), (false, 4), (false, 100)] {
        let all = (pieces * PIECE_BYTES, Duration::ZERO);
        assert_eq!(heard(short_only, pieces, true, true).await, all);
    }
    let all = (100 * PIECE_BYTES, Duration::ZERO);
    assert_eq!(heard(false, 100, true, false).await, all);
}

#[tokio::test(start_paused = true)]
async fn who_sends_without_end_is_heard_for_a_while_only() {
    for is_announced in [true, false] {
        let (read, took) = heard(false, usize::MAX >> 15, false, is_announced).await;
        assert_eq!((read, took), (BYTES_MAX, Duration::ZERO));
    }
    for (short_only, pieces) in [(true, 0), (true, 3), (false, 0), (false, 3)] {
        let (read, took) = heard(short_only, pieces, false, true).await;
        assert_eq!(read, pieces * PIECE_BYTES);
        assert!(took <= TIME_MAX + Duration::from_millis(1), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_much_is_sent_only_what_is_short_is_heard_out() {
    for (pieces, is_announced) in [(5, true), (1000, true), (1, false), (1000, false)] {
        let (read, took) = heard(true, pieces, false, is_announced).await;
        assert_eq!((read, took), (0, Duration::ZERO), "{pieces} {is_announced}");
    }
}
