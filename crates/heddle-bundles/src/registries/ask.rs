//! Questions and answers, as values.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;

use super::address::Address;
use super::pool::Line;

/// What a token server or an error may say.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// A question. It may carry a password in its body, so it cannot be printed.
#[derive(Clone)]
pub(super) struct RegistryRequest {
    pub(super) method: Method,
    pub(super) address: Address,
    pub(super) accept: Option<&'static str>,
    /// Headers that ask for an answer only if it is a new one.
    pub(super) conditions: HeaderMap,
    /// What a token has to allow.
    pub(super) scope: String,
    pub(super) content_type: Option<String>,
    pub(super) body: Bytes,
    /// The answer must not be larger.
    pub(super) bytes_max: u64,
}

impl RegistryRequest {
    pub(super) fn new(method: Method, address: Address, scope: &str) -> Self {
        Self {
            method,
            address,
            accept: None,
            conditions: HeaderMap::new(),
            scope: scope.to_owned(),
            content_type: None,
            body: Bytes::new(),
            bytes_max: SMALL_BYTES_MAX,
        }
    }

    pub(super) fn get(address: Address, scope: &str) -> Self {
        Self::new(Method::GET, address, scope)
    }
}

/// An answer, whatever it says.
#[derive(Clone, Debug)]
pub(super) struct RegistryResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl RegistryResponse {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// No answer, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// Nothing was heard.
    #[error("{0}")]
    Silent(String),
    /// Something was heard that is no whole answer.
    #[error("{0}")]
    Garbled(String),
}

/// An error with its causes, which hold what people want to know.
pub(super) fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The request that asks it on a connection.
pub(super) fn request(
    ask: &RegistryRequest,
    address: &Address,
    secret: Option<&HeaderValue>,
    line: &Line,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(ask.body.clone()));
    *request.method_mut() = ask.method.clone();
    let uri = match line {
        Line::Single(..) => address.path.clone(),
        Line::Shared(..) => address.to_string(),
    };
    // Both were taken from a URI, or made of names that were checked.
    *request.uri_mut() = uri.parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static("heddle"));
    if let Line::Single(..) = line
        && let Ok(host) = HeaderValue::from_str(&address.origin.authority())
    {
        headers.insert(HOST, host);
    }
    if let Some(accept) = ask.accept {
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
    }
    headers.extend(ask.conditions.clone());
    if let Some(content_type) = ask
        .content_type
        .as_deref()
        .and_then(|it| HeaderValue::from_str(it).ok())
    {
        headers.insert(CONTENT_TYPE, content_type);
    }
    if !matches!(ask.method, Method::GET | Method::HEAD) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(ask.body.len()));
    }
    if let Some(secret) = secret {
        headers.insert(AUTHORIZATION, secret.clone());
    }
    request
}
