//! Answers: a status, a JSON object, and the few headers that mean something.

use bytes::Bytes;
use http::header::{self, ACCEPT_ENCODING, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde_json::{Map, Value};

use crate::catalog::Coding;

/// What a browser or a careful client is told to ask its user for.
const CHALLENGE: HeaderValue =
    HeaderValue::from_static("Basic realm=\"heddle\", charset=\"UTF-8\"");

/// An answer, before it is bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OsbResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Map<String, Value>,
    /// A body that is bytes already, instead of `body`.
    pub(crate) rendered: Option<Bytes>,
    pub(crate) retry_seconds: Option<u32>,
    pub(crate) etag: Option<HeaderValue>,
    /// How `rendered` is coded, where whoever asks has a say in it.
    pub(crate) coding: Option<Coding>,
    pub(crate) allow: Option<&'static str>,
    pub(crate) authenticate: bool,
}

impl OsbResponse {
    pub(crate) fn new(status: StatusCode, body: Map<String, Value>) -> Self {
        Self {
            status,
            body,
            rendered: None,
            retry_seconds: None,
            etag: None,
            coding: None,
            allow: None,
            authenticate: false,
        }
    }

    /// 200 with a body.
    pub(crate) fn ok(body: Map<String, Value>) -> Self {
        Self::new(StatusCode::OK, body)
    }

    /// 202: the platform asks again, and names the operation when it does. A member without a value is left away, because
    /// platforms take `null` for a malformed answer.
    pub(crate) fn accepted(operation: Option<&str>) -> Self {
        let member = operation.map(|id| ("operation".to_owned(), Value::from(id)));
        Self::new(StatusCode::ACCEPTED, member.into_iter().collect())
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let bytes = match self.rendered {
            Some(bytes) => bytes,
            None => Bytes::from(Value::Object(self.body).to_string()),
        };
        let mut response = Response::new(Full::new(bytes));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if self.status != StatusCode::NOT_MODIFIED {
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
        }
        if let Some(seconds) = self.retry_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(etag) = self.etag {
            headers.insert(header::ETAG, etag);
        }
        if let Some(coding) = self.coding {
            headers.insert(header::VARY, HeaderValue::from_name(ACCEPT_ENCODING));
            if coding == Coding::Gzip && self.status != StatusCode::NOT_MODIFIED {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if self.authenticate {
            headers.insert(header::WWW_AUTHENTICATE, CHALLENGE);
        }
        response
    }
}
