//! The door for subscribers that consent later: whoever knows the token may say yes, and has no need of a name.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;

use super::{Source, refusal};
use crate::path::delivery::consent::{CALLBACK_PATH, Consents};

const GRANTED: &[u8] = b"Consent to be sent events was granted.\n";

impl Source {
    /// The answer to a subscriber that calls back; `None` for every other path. The body says nothing and is not read.
    pub fn consent<B>(&self, request: &Request<B>) -> Option<Response<Full<Bytes>>> {
        let token = request.uri().path().strip_prefix(CALLBACK_PATH)?;
        if ![Method::GET, Method::POST].contains(request.method()) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, Bytes::new());
            let allowed = HeaderValue::from_static("GET, POST");
            response.headers_mut().insert(header::ALLOW, allowed);
            return Some(response);
        }
        let called_back = Consents::called_back(&self.shared, token, request.headers());
        Some(match called_back {
            Ok(true) => text(StatusCode::OK, Bytes::from_static(GRANTED)),
            Ok(false) => refusal::no_such_path().response(),
            Err(bad) => text(StatusCode::BAD_REQUEST, Bytes::from(format!("{bad}\n"))),
        })
    }
}

fn text(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
