//! Requests that are answered before their body has arrived are heard out, so that their senders can read why.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use heddle_rt::Clock;
use heddle_rt::net::hear_out;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

/// A body that two can read: whoever answers, and then whoever hears the rest.
#[derive(Clone)]
struct Shared(Arc<Mutex<Body>>);

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.0.lock()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}

/// Reads on for a while when a request was answered before its body had arrived.
pub(super) async fn hear_out(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let rest = Shared(Arc::new(Mutex::new(body)));
    let request = Request::from_parts(parts, Body::new(rest.clone()));
    let response = next.run(request).await;
    hear_out::hear_out(rest, &Clock::system()).await;
    response
}
