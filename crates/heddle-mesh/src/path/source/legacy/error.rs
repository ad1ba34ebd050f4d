//! Refusals in the two forms that publishers of the old API know.
//!
//! ```text
//!   {"code", "error"}                                   who, where and how: 401, 403, 404, 405, 421
//!   {"status", "type", "message", "moreInfo"|"details"} what was sent, and what this server cannot do now
//! ```
//! Types and messages are part of that API and stay as they are. What to do is in `error` and `moreInfo`. Whoever may come
//! again is told when, always.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use heddle_api::ledger::ErrorBody;
use heddle_api::refusals as code;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};

use super::super::refusal::PublishError;

/// How long to wait where nothing better is known.
const AFTER_UNAVAILABLE: Duration = Duration::from_secs(10);

pub(super) const NOT_FOUND: &str = "Requested resource could not be found.";
pub(super) const METHOD_NOT_ALLOWED: &str = "Method not allowed.";
const TOO_LARGE: &str = "http: request body too large";
const BAD_PAYLOAD: &str = "Bad payload syntax";

/// Why a call of the old API was refused.
#[derive(Debug)]
pub(super) struct LegacyError {
    pub(super) status: StatusCode,
    retry_after: Option<Duration>,
    /// What the native door says in its place, or else the type that this API has for it.
    code: Cow<'static, str>,
    body: Value,
}

impl LegacyError {
    /// In the form of those that stand at the gate.
    pub(super) fn at_the_gate(status: StatusCode, error: &str) -> Self {
        Self {
            status,
            retry_after: None,
            code: Cow::Borrowed(match status {
                StatusCode::METHOD_NOT_ALLOWED => code::METHOD_NOT_ALLOWED,
                _ => code::NO_SUCH_PATH,
            }),
            body: json!({"code": status.as_u16(), "error": error}),
        }
    }

    fn api(status: StatusCode, type_: &'static str, message: &str, more_info: &str) -> Self {
        Self {
            status,
            retry_after: None,
            code: Cow::Borrowed(type_),
            body: json!({
                "status": status.as_u16(), "type": type_, "message": message, "moreInfo": more_info,
            }),
        }
    }

    pub(super) fn bad_payload(more_info: &str) -> Self {
        Self::api(
            StatusCode::BAD_REQUEST,
            "bad_payload_syntax",
            BAD_PAYLOAD,
            more_info,
        )
    }

    pub(super) fn empty() -> Self {
        Self::bad_payload(BAD_PAYLOAD)
    }

    pub(super) fn too_large() -> Self {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Self::api(
            status,
            "request_body_too_large",
            "Request body too large",
            TOO_LARGE,
        )
    }

    /// What could not be looked up now.
    pub(super) fn unavailable(more_info: &str) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::api(
            status,
            "service_unavailable",
            "Service unavailable",
            more_info,
        )
        .after(AFTER_UNAVAILABLE)
    }

    /// Too many at once.
    pub(super) fn busy(more_info: &str) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self::api(status, "too_many_requests", "Too many requests", more_info)
            .after(Duration::from_secs(1))
    }

    fn violation(message: &str, detail: Value) -> Self {
        let status = StatusCode::BAD_REQUEST;
        Self {
            status,
            retry_after: None,
            code: Cow::Borrowed("validation_violation"),
            body: json!({
                "status": status.as_u16(), "type": "validation_violation", "message": message,
                "details": [detail],
            }),
        }
    }

    pub(super) fn missing(field: &str) -> Self {
        let message = "Missing field";
        let detail = json!({"field": field, "type": "missing_field", "message": message});
        Self::violation(message, detail)
    }

    pub(super) fn invalid(field: &str) -> Self {
        let message = "Invalid field";
        let detail = json!({"field": field, "type": "invalid_field", "message": message});
        Self::violation(message, detail)
    }

    pub(super) fn too_long(field: &str, length_max: usize) -> Self {
        let message = "Invalid field";
        let more_info = format!("Field length must be at max: {length_max}");
        let detail = json!({
            "field": field, "type": "invalid_field_length", "message": message, "moreInfo": more_info,
        });
        Self::violation(message, detail)
    }

    pub(super) fn missing_source() -> Self {
        let message =
            "Either provide 'Source-Id' header or specify 'source-id' in the json payload";
        let detail = json!({
            "field": "source-id/Source-Id", "type": "missing_field/missing_header", "message": message,
        });
        Self::violation(message, detail)
    }

    fn after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// The same as the native door would tell it, for the list of what was refused.
    pub(super) fn told(&self) -> ErrorBody {
        let detail = &self.body["details"][0];
        let texts = [
            &self.body["error"],
            &self.body["moreInfo"],
            &detail["moreInfo"],
            &detail["message"],
        ];
        let message = texts.into_iter().find_map(Value::as_str);
        ErrorBody {
            code: self.code.clone().into_owned(),
            message: message.unwrap_or_default().to_owned(),
            attribute: detail["field"].as_str().map(str::to_owned),
            ..ErrorBody::default()
        }
    }

    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let mut response = in_json(self.status, &self.body);
        if let Some(pause) = self.retry_after {
            let pause = HeaderValue::from(pause.as_secs());
            response.headers_mut().insert(header::RETRY_AFTER, pause);
        }
        response
    }
}

/// What the native door would answer, in the old form.
impl From<PublishError> for LegacyError {
    fn from(refused: PublishError) -> Self {
        let retry_after = refused.retry_after();
        let (status, told) = refused.into_parts();
        let message = told.message;
        let mut error = match status.as_u16() {
            401 | 403 | 404 | 405 | 421 => Self::at_the_gate(status, &message),
            400 => Self::bad_payload(&message),
            408 => Self::api(status, "request_timeout", "Request timeout", &message),
            413 => Self::api(
                status,
                "request_body_too_large",
                "Request body too large",
                &message,
            ),
            429 => Self::busy(&message),
            503 => Self::unavailable(&message),
            507 => Self::api(
                status,
                "insufficient_storage",
                "Insufficient storage",
                &message,
            )
            .after(AFTER_UNAVAILABLE),
            _ => Self::api(status, "internal_server", "internal_server", &message),
        };
        error.code = Cow::Owned(told.code);
        match retry_after {
            Some(pause) => error.after(pause),
            None => error,
        }
    }
}

pub(super) fn in_json(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
