//! The events listener: who is it that publishes?
//!
//! ```text
//!   bearer token, in the header or as access_token in the query   the administrator, or an Application by its Secret, or
//!                                                                 this process itself by a token that it drew
//!   client certificate                                            an Application by its common name
//!   neither                                                       on loopback anybody, unless identity is required
//! ```
//! A loopback listener can only be reached by who is on this machine already, and not by a page in its browser, whose
//! requests name another host ([`Hosts`]). Credentials that nobody knows are refused even there: whoever shows some means
//! to be somebody. What each may publish is left to the mesh. At the paths of old Kyma's publish API refusals have its form,
//! and its probes are answered to whoever asks.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use heddle_api::ledger::ErrorBody;
use heddle_apiserver::{ADMINS, ApiServer, Tokens, impersonates};
use heddle_mesh::path::source::{Source, legacy};
use heddle_mesh::who::Who;
use heddle_rt::Clock;
use heddle_rt::net::hear_out::hear_out_short;
use heddle_rt::net::host::Hosts;
use heddle_rt::net::subject::Subject;
use heddle_rt::net::{DoorService, Peer};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::json;

use crate::publishers::Publishers;

/// The service behind the listener.
#[derive(Debug)]
pub(crate) struct EventsDoor {
    pub(crate) source: Source,
    pub(crate) server: ApiServer,
    pub(crate) publishers: Arc<Publishers>,
    /// Whether everybody must say who they are.
    pub(crate) asks_who: bool,
    /// What lets this process in with a synthetic event of its own.
    pub(crate) smoke: Tokens,
    /// What the probe from outside shows.
    pub(crate) probe: Tokens,
    /// The names this server is called by.
    pub(crate) hosts: Hosts,
}

/// Why nobody knows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    NoCredentials,
    Token,
    Certificate,
}

impl EventsDoor {
    /// What the listener asks, as often as somebody publishes: nothing is copied for a request.
    pub(crate) fn service(self) -> impl DoorService {
        let door = Arc::new(self);
        tower::service_fn(move |request| {
            let door = Arc::clone(&door);
            async move { Ok::<_, Infallible>(door.handle(request).await) }
        })
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match self.admit(&request) {
            Ok(who) => self.source.handle(&who, request).await,
            Err(answer) => {
                if let Some(refusal) = answer.extensions().get::<ErrorBody>() {
                    let status = answer.status();
                    self.source.turned_away(&request, status, refusal);
                }
                hear_out_short(request.into_body(), &Clock::system()).await;
                *answer
            }
        }
    }

    fn who<B>(&self, request: &Request<B>) -> Result<Who, Unknown> {
        let header = request.headers().get(header::AUTHORIZATION);
        if let Some(value) = header {
            return bearer(value)
                .and_then(|token| self.by_token(token))
                .ok_or(Unknown::Token);
        }
        if let Some(token) = query_token(request.uri().query()) {
            return self.by_token(token).ok_or(Unknown::Token);
        }
        let peer = request.extensions().get::<Peer>();
        if let Some(certificate) = peer.and_then(|peer| peer.certificate.as_ref()) {
            let subject = Subject::of(certificate);
            let who = subject.and_then(|subject| self.publishers.by_subject(&subject));
            return who.ok_or(Unknown::Certificate);
        }
        if self.asks_who {
            return Err(Unknown::NoCredentials);
        }
        Ok(Who::Anonymous)
    }

    fn by_token(&self, token: &str) -> Option<Who> {
        if let Some(who) = self.publishers.by_token(token) {
            return Some(who);
        }
        if self.smoke.identity(token).is_some() {
            return Some(Who::Prober);
        }
        if self.probe.identity(token).is_some() {
            return Some(Who::EdgeProber);
        }
        let value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
        let user = self.server.who(&headers)?;
        user.is_in(ADMINS).then_some(Who::Administrator)
    }
}

impl EventsDoor {
    /// Who may go on to publish; all others are answered here.
    fn admit<B>(&self, request: &Request<B>) -> Result<Who, Box<Response<Full<Bytes>>>> {
        let path = request.uri().path();
        if let Err(misdirected) = self.hosts.check(request.uri(), request.headers()) {
            return Err(Box::new(refuse(
                path,
                StatusCode::MISDIRECTED_REQUEST,
                heddle_api::refusals::MISDIRECTED,
                &misdirected.to_string(),
            )));
        }
        // Nobody publishes in the name of somebody else; to ignore the wish would be to let them.
        if impersonates(request.headers()) {
            let message = "Impersonate-* headers mean nothing to publishers; leave them out";
            let answer = refuse(path, StatusCode::FORBIDDEN, "forbidden", message);
            return Err(Box::new(answer));
        }
        // Whoever knows the token in that path needs no other credentials, and a probe none at all.
        let answer = self.source.consent(request);
        if let Some(answer) = answer.or_else(|| self.source.legacy_probe(request)) {
            return Err(Box::new(answer));
        }
        self.who(request)
            .map_err(|unknown| Box::new(unauthorized(path, unknown)))
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A token in the query, as the webhook specification allows.
fn query_token(query: Option<&str>) -> Option<&str> {
    let mut pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == "access_token")
        .map(|(_, token)| token)
}

fn unauthorized(path: &str, unknown: Unknown) -> Response<Full<Bytes>> {
    let message = match unknown {
        Unknown::NoCredentials => {
            "publishing here needs a bearer token or a client certificate; an Application's token is in the Secret \
             NAME-publisher in kyma-integration"
        }
        Unknown::Token => {
            "nobody has this token; an Application's is in the Secret NAME-publisher in kyma-integration"
        }
        Unknown::Certificate => {
            "this certificate is no Application's: its common name must be the Application's name or one of its client \
             ids, and its organisation and unit what the Application asks for"
        }
    };
    let mut response = refuse(path, StatusCode::UNAUTHORIZED, "unauthorized", message);
    let scheme = HeaderValue::from_static("Bearer");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, scheme);
    response
}

fn refuse(path: &str, status: StatusCode, code: &str, message: &str) -> Response<Full<Bytes>> {
    if let Some(response) = legacy::refuse_at(path, status, message) {
        return response;
    }
    let body = json!({"code": code, "message": message});
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    // So that it is remembered.
    response.extensions_mut().insert(ErrorBody {
        code: code.to_owned(),
        message: message.to_owned(),
        ..ErrorBody::default()
    });
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
