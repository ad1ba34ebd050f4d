//! Hearing out who is still sending: a refusal that its sender can read.
//!
//! On HTTP/1 a client that is still sending when the connection closes sees a broken pipe instead of the answer. So what is
//! left of a refused body is read and forgotten, piece by piece, within bounds of bytes and of time: a sender that dawdles
//! learns nothing.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body, Buf as _};

use crate::Clock;

/// What is read of a body of any length.
const BYTES_MAX: usize = 16 << 20;
/// What a body may announce to be read by whoever hears short ones only.
const SHORT_BYTES_MAX: u64 = 64 << 10;
/// How long it may take. The answer waits meanwhile.
const TIME_MAX: Duration = Duration::from_secs(2);

/// Reads what is left of a body, so that its sender hears the answer.
pub async fn hear_out<B: Body>(body: B, clock: &Clock) {
    if body.is_end_stream() {
        return;
    }
    let mut body = std::pin::pin!(body);
    // Whoever has not sent the rest by then is cut off.
    if clock.timeout(TIME_MAX, drain(body.as_mut())).await.is_err() {
        tracing::debug!("the rest of a refused body did not come in time");
    }
}

/// The same for a listener whose guests send much and often: only what is short is heard out.
pub async fn hear_out_short<B: Body>(body: B, clock: &Clock) {
    let announced = body.size_hint().upper();
    if announced.is_some_and(|bytes| bytes <= SHORT_BYTES_MAX) {
        hear_out(body, clock).await;
    }
}

async fn drain<B: Body>(mut body: Pin<&mut B>) {
    let mut left = BYTES_MAX;
    while left > 0
        && let Some(Ok(frame)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await
    {
        let bytes = frame.data_ref().map_or(0, |data| data.remaining());
        left = left.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests;
