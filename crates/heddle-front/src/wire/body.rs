//! The body of a request: bounded, JSON, and an object.

use bytes::Bytes;
use heddle_rt::net::receive::{Intake, NotReceived, receive};
use http::{Extensions, HeaderMap, header};
use serde_json::{Map, Value};

use super::numbers::{self, Exact};
use crate::error::OsbError;

/// The longest body. An object that keeps it must fit into one request to an API server.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// What was sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    pub(crate) members: Map<String, Value>,
    /// The same with numbers as they were written, where a float cannot hold one of them.
    written: Option<Map<String, Value>>,
}

impl From<Map<String, Value>> for Body {
    fn from(members: Map<String, Value>) -> Self {
        Self {
            members,
            written: None,
        }
    }
}

impl Body {
    /// One member, if a number in it is more than a float can hold.
    pub(crate) fn exact(&self, member: &str) -> Exact {
        let written = self.written.as_ref().and_then(|all| all.get(member));
        let plain = self.members.get(member);
        Exact::new(written.filter(|written| Some(*written) != plain))
    }
}

/// On whose account bodies are received: all platforms have one together.
const ACCOUNT: &str = "osb";

/// Reads all of it.
pub(crate) async fn read<B>(
    headers: &HeaderMap,
    extensions: &Extensions,
    body: B,
) -> Result<Body, OsbError>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    check_type(headers)?;
    let account = Intake::of(extensions).map(|intake| intake.account_of(ACCOUNT));
    let received = receive(body, BYTES_MAX, account).await;
    let received = received.map_err(|error| match error {
        NotReceived::TooLarge(limit) => OsbError::TooLarge { limit },
        NotReceived::Broken(_) => OsbError::Invalid("the body broke off".to_owned()),
        NotReceived::TooSlow => OsbError::TooSlow,
        NotReceived::NoRoom => OsbError::Unavailable,
    })?;
    parse(&received.bytes)
}

/// Who says nothing about the type is taken at their word that this is OSB.
fn check_type(headers: &HeaderMap) -> Result<(), OsbError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let text = value.to_str().unwrap_or_default();
    let essence = text
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if json {
        return Ok(());
    }
    Err(OsbError::Invalid(
        "the Content-Type is not application/json".to_owned(),
    ))
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Body, OsbError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(members)) => Ok(Body {
            members,
            written: numbers::written(bytes),
        }),
        Ok(_) => Err(OsbError::Invalid(
            "the body is not a JSON object".to_owned(),
        )),
        // The parser's own text names a place and never quotes what stands there.
        Err(error) => Err(OsbError::Invalid(format!(
            "the body is not JSON: line {}, column {}",
            error.line(),
            error.column()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http_body_util::Full;

    async fn status(kind: Option<&'static str>, body: &'static [u8]) -> u16 {
        let headers = kind.map(|kind| (header::CONTENT_TYPE, HeaderValue::from_static(kind)));
        let headers = headers.into_iter().collect();
        match read(
            &headers,
            &Extensions::new(),
            Full::new(Bytes::from_static(body)),
        )
        .await
        {
            Ok(_) => 200,
            Err(error) => error.status().as_u16(),
        }
    }

    #[tokio::test]
    async fn only_a_bounded_json_object_is_a_body() {
        for body in [&b"{"[..], b"[]", b"\"x\"", b"", b"null", b"{}{}", b"\xff"] {
            assert_eq!(
                status(Some("application/json"), body).await,
                400,
                "{body:?}"
            );
        }
        for kind in [
            Some("application/json"),
            Some("Application/JSON; charset=utf-8"),
            Some("application/x+json"),
            None,
        ] {
            assert_eq!(status(kind, b"{\"x-foo\":{}}").await, 200, "{kind:?}");
        }
        assert_eq!(status(Some("text/plain"), b"{}").await, 400);
        let long: &'static [u8] = vec![b' '; BYTES_MAX + 1].leak();
        assert_eq!(status(None, long).await, 413);
    }
}
