//! Probes of the old services: whether this one is there, and whether it takes events.
//!
//! They are answered before anybody is asked who they are, like those of the control listener, and say no more than the status.

use bytes::Bytes;
use heddle_store::Health;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;

use super::{LegacyCall, Source, call, not_allowed, nowhere};

impl Source {
    /// The answer to a probe; `None` for every other path.
    pub fn legacy_probe<B>(&self, request: &Request<B>) -> Option<Response<Full<Bytes>>> {
        let call = call(request.uri().path())?;
        let probe = matches!(call, LegacyCall::Health | LegacyCall::Ready);
        probe.then(|| self.probe_or_refuse(call, request.method()))
    }

    /// The answer to a probe, or to a method that a path does not have.
    pub(super) fn probe_or_refuse(
        &self,
        call: LegacyCall<'_>,
        method: &Method,
    ) -> Response<Full<Bytes>> {
        let ready = match call {
            LegacyCall::Publish(..) => return not_allowed("POST"),
            LegacyCall::Nowhere => return nowhere().response(),
            _ if method != Method::GET => return not_allowed("GET"),
            LegacyCall::Subscribed(_) | LegacyCall::Health => true,
            LegacyCall::Ready => self.takes_events(),
        };
        let mut response = Response::new(Full::default());
        if !ready {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            let pause = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, pause);
        }
        response
    }

    fn takes_events(&self) -> bool {
        let log = &self.shared.log;
        self.shared.in_force.load().ready
            && log.health() == Health::Serving
            && !log.room().borrow().low
    }
}
