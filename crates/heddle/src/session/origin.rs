//! Whether a request that changes something was meant by whoever is logged in, or was sent by a page of somebody else.
//!
//! Browsers say where a request comes from and let no page lie about it. What a plain form of another page can send is refused
//! by its type as well. No answer has headers that would let another origin read it.

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode, Uri, header};

use crate::control::refuse;

const FETCH_SITE: &str = "sec-fetch-site";

/// Whether a request may change something.
pub(crate) fn is_unsafe(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Refuses what somebody's browser was made to send. For requests of a session.
pub(crate) fn check(request: &Request) -> Result<(), Box<Response>> {
    if !is_unsafe(request.method()) {
        return Ok(());
    }
    check_site(request.headers(), request.uri())?;
    let headers = request.headers();
    if request.body().is_end_stream() || is_json(headers) {
        return Ok(());
    }
    let message = "with a session, bodies are JSON: send Content-Type: application/json";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(Box::new(refuse(status, "not-json", message)))
}

/// Refuses what does not come from a page of this server.
pub(crate) fn check_site(headers: &HeaderMap, uri: &Uri) -> Result<(), Box<Response>> {
    if is_own_page(headers, uri) == Some(true) {
        return Ok(());
    }
    let message = "this request comes from no page of this server: it has neither Sec-Fetch-Site: same-origin nor an Origin that is its Host";
    let status = StatusCode::FORBIDDEN;
    Err(Box::new(refuse(status, "cross-origin", message)))
}

/// Refuses what comes from a page of somebody else; who says nothing is no browser.
pub(crate) fn check_foreign(headers: &HeaderMap, uri: &Uri) -> Result<(), Box<Response>> {
    match is_own_page(headers, uri) {
        Some(false) => check_site(headers, uri),
        _ => Ok(()),
    }
}

/// `None` when the request does not say where it comes from.
fn is_own_page(headers: &HeaderMap, uri: &Uri) -> Option<bool> {
    if let Some(site) = headers.get(FETCH_SITE) {
        return Some(site == "same-origin" || site == "none");
    }
    let origin = headers.get(header::ORIGIN)?.to_str().unwrap_or_default();
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.or_else(|| uri.authority().map(http::uri::Authority::as_str));
    let named = origin.split_once("://").map(|(_, named)| named);
    Some(named.is_some() && named == host)
}

/// Whether a body is of a type that no plain form can send.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json"
        || kind == "application/apply-patch+yaml"
        || (kind.starts_with("application/") && kind.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn asked(method: Method, headers: &[(&str, &str)], body: &'static str) -> StatusCode {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().unwrap();
            request.headers_mut().append(name, value.parse().unwrap());
        }
        match check(&request) {
            Ok(()) => StatusCode::OK,
            Err(refused) => refused.status(),
        }
    }

    #[test]
    fn what_another_page_sends_has_no_effect() {
        const HOST: (&str, &str) = ("host", "127.0.0.1:4333");
        const JSON: (&str, &str) = ("content-type", "application/json");
        let own = [
            &[("sec-fetch-site", "same-origin"), JSON][..],
            &[("sec-fetch-site", "none"), JSON],
            &[HOST, ("origin", "http://127.0.0.1:4333"), JSON],
        ];
        for headers in own {
            assert_eq!(
                asked(Method::POST, headers, "{}"),
                StatusCode::OK,
                "{headers:?}"
            );
        }
        let foreign = [
            &[][..],
            &[HOST, JSON],
            &[HOST, ("sec-fetch-site", "same-site"), JSON],
            &[HOST, ("sec-fetch-site", "cross-site"), JSON],
            &[
                HOST,
                ("sec-fetch-site", "cross-site"),
                ("origin", "http://127.0.0.1:4333"),
                JSON,
            ],
            &[HOST, ("origin", "http://127.0.0.1:4334"), JSON],
            &[HOST, ("origin", "null"), JSON],
            &[("origin", "null"), JSON],
        ];
        for headers in foreign {
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let answer = asked(method, headers, "{}");
                assert_eq!(answer, StatusCode::FORBIDDEN, "{headers:?}");
            }
            assert_eq!(asked(Method::GET, headers, ""), StatusCode::OK);
        }
    }

    #[test]
    fn a_body_that_a_form_can_send_is_refused() {
        const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
        ] {
            let headers = [OWN, ("content-type", kind)];
            let answer = asked(Method::POST, &headers, "{}");
            assert_eq!(answer, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        }
        for kind in [
            "application/json; charset=utf-8",
            "application/merge-patch+json",
        ] {
            let headers = [OWN, ("content-type", kind)];
            assert_eq!(
                asked(Method::PATCH, &headers, "{}"),
                StatusCode::OK,
                "{kind}"
            );
        }
        assert_eq!(asked(Method::DELETE, &[OWN], ""), StatusCode::OK);
    }
}
