//! The door of the control listener: who is it that asks?
//!
//! ```text
//!   Authorization: Bearer …                 whoever the token belongs to; cookies are not looked at
//!   cookie and X-Heddle-Session             whoever logged in, if they meant to (`session::origin`)
//!   cookie of a reading session             the same, for GET below /ui and for nothing else
//!   cookie alone                            nobody, and the page is told that there is a cookie
//! ```
//! What is found travels as extensions, which no peer can set: the `Identity` of the resource API, the [`Access`] that every
//! router decides by, and a [`Visitor`] for the page. Platforms at `/v2` bring credentials of their own and have none of this.
//!
//! Watches and streams have no end of their own, so they are given one: when the door closes. Whatever is sent piece by piece,
//! they as well as long lists and copies, ends when what it was opened with is no longer good; everything else is left to finish.

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use heddle_api::access::{Access, Visitor};
use heddle_apiserver::{ApiServer, Identity, impersonates};
use heddle_rt::net::Peer;
use http::{Method, StatusCode, header};
use tokio_util::sync::CancellationToken;

use crate::audit::noted::{AuditCaller, AuditSlip};
use crate::control::refuse;
use crate::session::{LoggedIn, PageSessions, ShownSession, cookie, origin};

/// What the page's script sends with what nobody asked for: a page that is left open looks again by itself.
const UNATTENDED: &str = "x-heddle-unattended";

/// What the door needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    server: ApiServer,
    sessions: PageSessions,
    closing: CancellationToken,
}

/// Who came in, and by what.
enum Entered {
    Nobody,
    CookieOnly,
    ByToken {
        identity: Identity,
        ended: CancellationToken,
        expires: Option<jiff::Timestamp>,
    },
    BySession(LoggedIn),
}

impl Entrance {
    /// `closing` is cancelled when the doors close.
    pub(crate) fn new(
        server: &ApiServer,
        sessions: &PageSessions,
        closing: CancellationToken,
    ) -> Self {
        Self {
            server: server.clone(),
            sessions: sessions.clone(),
            closing,
        }
    }

    fn look(&self, request: &Request) -> Entered {
        let headers = request.headers();
        if headers.contains_key(header::AUTHORIZATION) {
            // Whoever shows a token means to be the one it belongs to.
            return match self.server.holder(headers) {
                Some(holder) => Entered::ByToken {
                    identity: holder.identity,
                    ended: holder.ended,
                    expires: holder.expires,
                },
                None => Entered::Nobody,
            };
        }
        let is_tls = (request.extensions().get::<Peer>()).is_some_and(|peer| peer.tls);
        let cookies = cookie::values(headers, &self.sessions.cookie_name(is_tls));
        let page = headers.get(cookie::SESSION_HEADER);
        let page = page.and_then(|page| page.to_str().ok());
        let may_read = is_below_ui(request.uri().path()) && !origin::is_unsafe(request.method());
        match self.sessions.show(&cookies, page) {
            ShownSession::Nothing => Entered::Nobody,
            ShownSession::Reading(logged_in) if may_read => Entered::BySession(logged_in),
            ShownSession::Half | ShownSession::Reading(_) => Entered::CookieOnly,
            ShownSession::Whole(logged_in) => Entered::BySession(logged_in),
        }
    }
}

impl Entrance {
    /// Who it is, for the line that is written about a change: also whoever may not be whom they want to be.
    fn caller(&self, entered: &Entered, request: &Request) -> Option<AuditCaller> {
        let headers = request.headers();
        let (identity, session) = match entered {
            Entered::ByToken { identity, .. } => (identity.clone(), false),
            Entered::BySession(logged_in) => (logged_in.identity.clone(), true),
            Entered::Nobody => (self.server.token_owner(headers)?, false),
            Entered::CookieOnly => return None,
        };
        let owner = || self.server.token_owner(headers).map(|owner| owner.user);
        let acts = !session && impersonates(headers);
        let impersonator = acts.then(owner).flatten();
        let impersonator = impersonator.filter(|owner| *owner != identity.user);
        Some(AuditCaller {
            identity,
            impersonator,
            session,
        })
    }
}

/// Tells who it is, and lets the request go on as theirs.
pub(crate) async fn enter(
    State(entrance): State<Entrance>,
    mut request: Request,
    next: Next,
) -> Response {
    let entered = entrance.look(&request);
    if let Some(slip) = request.extensions().get::<AuditSlip>()
        && let Some(caller) = entrance.caller(&entered, &request)
    {
        slip.fill_in(caller);
    }
    let is_watch = asks_for_watch(&request);
    let extensions = request.extensions_mut();
    let mut visitor = Visitor::Nobody;
    let ended = match entered {
        Entered::Nobody => None,
        Entered::CookieOnly => {
            visitor = Visitor::CookieOnly;
            None
        }
        Entered::ByToken {
            identity,
            ended,
            expires,
        } => {
            if let Some(access) = identity.access() {
                visitor = Visitor::Known;
                extensions.insert(access);
            }
            extensions.insert(identity);
            Some(EndOfAccess::Token { ended, expires })
        }
        Entered::BySession(logged_in) => {
            if let Err(refused) = origin::check(&request) {
                return *refused;
            }
            if impersonates(request.headers()) {
                let message = "Impersonate-* headers are for administrators with a bearer token; leave them out";
                return refuse(StatusCode::FORBIDDEN, "forbidden", message);
            }
            if is_use(&request) {
                entrance.sessions.touch(&logged_in);
            }
            visitor = Visitor::Known;
            let extensions = request.extensions_mut();
            extensions.insert::<Access>(logged_in.access.clone());
            extensions.insert(logged_in.identity.clone());
            extensions.insert(logged_in.clone());
            Some(EndOfAccess::Session(logged_in))
        }
    };
    request.extensions_mut().insert(visitor);
    let response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_endless = is_watch || kind.is_some_and(|kind| kind == "text/event-stream");
    // What is there as a whole has an end of its own, and so has a refusal.
    let is_whole = response.body().size_hint().exact().is_some();
    if is_whole || !response.status().is_success() {
        return response;
    }
    let over = async move {
        let closing = async {
            match is_endless {
                true => entrance.closing.cancelled().await,
                false => std::future::pending().await,
            }
        };
        let withdrawn = async {
            match ended {
                None => std::future::pending().await,
                Some(ended) => ended.reached(&entrance.sessions).await,
            }
        };
        tokio::select! {
            () = closing => {}
            () = withdrawn => {}
        }
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(over))))
}

/// When what somebody came in with is no longer good.
enum EndOfAccess {
    Token {
        ended: CancellationToken,
        expires: Option<jiff::Timestamp>,
    },
    Session(LoggedIn),
}

impl EndOfAccess {
    async fn reached(self, sessions: &PageSessions) {
        match self {
            Self::Token { ended, expires } => {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = sessions.until(expires) => {}
                }
            }
            Self::Session(logged_in) => sessions.over(&logged_in).await,
        }
    }
}

/// Whether a session is used by this request. A question about the session is none, and neither is what a page reads by itself.
fn is_use(request: &Request) -> bool {
    let reads_by_itself =
        request.headers().contains_key(UNATTENDED) && !origin::is_unsafe(request.method());
    !reads_by_itself && request.uri().path() != "/heddle/v1/session"
}

fn is_below_ui(path: &str) -> bool {
    path == "/ui" || path.starts_with("/ui/")
}

/// Read as those read it who answer: decoded, and on without a value.
fn asks_for_watch(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    *request.method() == Method::GET
        && pairs.any(|(key, value)| key == "watch" && !matches!(&*value, "false" | "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_one_however_it_is_spelled() {
        let asks = |method: Method, query: &str| {
            let uri = format!("/heddle/v1/events?{query}");
            let request = Request::builder().method(method).uri(uri);
            asks_for_watch(&request.body(Body::empty()).unwrap())
        };
        for query in ["watch=1", "w%61tch=1", "watch", "q=a&watch=true", "watch="] {
            assert!(asks(Method::GET, query), "{query}");
        }
        for query in ["", "watch=0", "watch=false", "watched=1", "q=watch"] {
            assert!(!asks(Method::GET, query), "{query}");
        }
        assert!(!asks(Method::POST, "watch=1"));
    }

    #[test]
    fn what_a_page_reads_by_itself_is_no_use_of_a_session_and_what_changes_something_is() {
        let uses = |method: Method, path: &str, by_itself: bool| {
            let mut request = Request::builder().method(method).uri(path);
            if by_itself {
                request = request.header(UNATTENDED, "1");
            }
            is_use(&request.body(Body::empty()).unwrap())
        };
        for path in ["/ui/", "/heddle/v1/stream", "/heddle/v1/events?watch=1"] {
            assert!(uses(Method::GET, path, false), "{path}");
            assert!(!uses(Method::GET, path, true), "{path}");
        }
        assert!(uses(Method::POST, "/heddle/v1/dead-letters/redrive", true));
        assert!(!uses(Method::GET, "/heddle/v1/session", false));
    }
}
