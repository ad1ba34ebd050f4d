//! The events listener: publishers on this machine may send without credentials, others may not.
//!
//! A loopback listener can only be reached by who is on this machine already. On any other address a publisher shows a
//! bearer token, in the header or, as the webhook specification wants it, as `access_token` in the query.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use heddle_apiserver::{ADMINS, ApiServer};
use heddle_mesh::path::source::Source;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::json;

use crate::config::is_loopback;

/// The service behind the listener.
#[derive(Clone, Debug)]
pub(crate) struct EventsDoor {
    source: Source,
    server: ApiServer,
    open: bool,
}

impl EventsDoor {
    pub(crate) fn new(source: Source, server: ApiServer, address: SocketAddr) -> Self {
        Self {
            source,
            server,
            open: is_loopback(address.ip()),
        }
    }

    fn admits(&self, request: &Request<Incoming>) -> bool {
        let who = |headers: &HeaderMap| {
            self.server
                .who(headers)
                .is_some_and(|who| who.is_in(ADMINS))
        };
        self.open
            || who(request.headers())
            || query_token(request.uri().query()).is_some_and(|headers| who(&headers))
    }
}

/// A token in the query, as if it stood in the header.
fn query_token(query: Option<&str>) -> Option<HeaderMap> {
    let pairs = query?.split('&');
    let token = pairs
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == "access_token")?
        .1;
    let value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    Some(HeaderMap::from_iter([(header::AUTHORIZATION, value)]))
}

impl tower::Service<Request<Incoming>> for EventsDoor {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        if !self.admits(&request) {
            return Box::pin(async { Ok(unauthorized()) });
        }
        let source = self.source.clone();
        Box::pin(async move { Ok(source.handle(request).await) })
    }
}

fn unauthorized() -> Response<Full<Bytes>> {
    let body = json!({"code": "unauthorized", "message": "publishing from another machine needs a bearer token"});
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}
