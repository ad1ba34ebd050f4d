//! Hearing out who is still sending: a refusal that its sender can read.
//!
//! On HTTP/1 a client that is still sending when the connection closes sees a broken pipe instead of the answer. So what is
//! left of a refused body is read and forgotten, within bounds of bytes and of time: a sender that dawdles learns nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use heddle_rt::Clock;
use parking_lot::Mutex;

/// A body of this size is in the socket's buffers already; its sender is not waiting for us.
const SMALL_BODY_BYTES: u64 = 64 << 10;

/// How much of a refused body is read so that its sender hears the refusal.
const HEARD_OUT_BYTES_MAX: usize = 16 << 20;

/// And for how long. The answer waits meanwhile.
const HEARD_OUT_TIME_MAX: Duration = Duration::from_secs(2);

/// Reads on for a while when a request was answered before its body had arrived.
pub(super) async fn hear_out(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let announced = body.size_hint().upper();
    if announced.is_some_and(|bytes| bytes <= SMALL_BODY_BYTES) {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let rest = Arc::new(Mutex::new(body.into_data_stream()));
    let shared = rest.clone();
    let handed = futures::stream::poll_fn(move |cx| shared.lock().poll_next_unpin(cx));
    let request = Request::from_parts(parts, Body::from_stream(handed));
    let response = next.run(request).await;
    let mut left = HEARD_OUT_BYTES_MAX;
    let draining = async {
        while let Some(Ok(chunk)) =
            futures::future::poll_fn(|cx| rest.lock().poll_next_unpin(cx)).await
        {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                break;
            }
        }
    };
    // Whoever has not sent the rest by then is cut off.
    if Clock::system()
        .timeout(HEARD_OUT_TIME_MAX, draining)
        .await
        .is_err()
    {
        tracing::debug!("the rest of a refused body did not come in time");
    }
    response
}
