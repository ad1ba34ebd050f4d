//! Where heartbeats arrive: a tiny HTTP endpoint that the courier reaches like any other.
//!
//! ```text
//!   POST /TOKEN/NAMESPACE/APPLICATION     204, and the board knows
//!   anything else                         404
//! ```
//! The token is drawn anew by every process. Whoever does not know it learns nothing, and what they send is not kept.

use std::sync::Arc;

use bytes::Bytes;
use heddle_rt::net::hear_out::hear_out_short;
use heddle_rt::net::receive::RequestBody;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;

use crate::shared::Shared;

/// The service behind the listener of the sink. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HeartbeatSink {
    shared: Arc<Shared>,
}

impl HeartbeatSink {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Takes a heartbeat. Its body is empty; that of a stranger is heard out if it is short.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: RequestBody,
    {
        let (parts, body) = request.into_parts();
        let status = match self.arrived(&parts) {
            Some(()) => StatusCode::NO_CONTENT,
            None => StatusCode::NOT_FOUND,
        };
        hear_out_short(body, &self.shared.clock).await;
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        response
    }

    fn arrived(&self, parts: &Parts) -> Option<()> {
        let heartbeats = &self.shared.heartbeats;
        let path = parts.uri.path().strip_prefix('/')?;
        let (token, pair) = path.split_once('/')?;
        if parts.method != Method::POST || token.is_empty() || token != heartbeats.token {
            return None;
        }
        let (namespace, application) = pair.split_once('/')?;
        let id = parts.headers.get("ce-id")?.to_str().ok()?;
        heartbeats.arrived(namespace, application, id);
        Some(())
    }
}
