//! Logging in and out, over HTTP.
//!
//! ```text
//!   POST   /heddle/v1/session {token|code}    {user, role, namespaces, payloads, page, idleUntil, endsAt}, and the cookie
//!   GET    /heddle/v1/session                 the same about whoever asks, without the page's half
//!   DELETE /heddle/v1/session                 log out
//!   POST   /heddle/v1/session/codes           {code, expiresAt}: a login for a link; with a bearer token only
//!   POST   /ui/login  token=…[&next=/ui/…]    log in without script: 303, and the cookie of a session for reading
//!   POST   /ui/logout                         and out again: 303
//! ```
//! `namespaces` is `["*"]` for all of them. Tokens and codes come in bodies, which are nowhere logged.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use heddle_api::access::{Access, Scope};
use heddle_api::audit::ChangeNote;
use heddle_apiserver::{ApiServer, TokenHolder};
use heddle_rt::net::Peer;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};

use super::codes::CODE_LIFE;
use super::{LoggedIn, PageSessions, SECRET_BYTES, SessionKind, SessionSecrets, cookie, origin};
use crate::control::refuse;

/// The longest body: a token, and where to go next.
const LOGIN_BYTES_MAX: usize = 8 << 10;
/// What logging in needs.
#[derive(Clone, Debug)]
pub(crate) struct Logins {
    server: ApiServer,
    sessions: PageSessions,
    /// What stands before the paths of the page.
    base: String,
}

/// What somebody shows to log in: one of the two.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginRequest {
    token: Option<String>,
    code: Option<String>,
}

/// Who somebody is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionInfo<'a> {
    user: &'a str,
    role: &'a str,
    namespaces: Vec<&'a str>,
    payloads: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<String>,
}

impl Logins {
    pub(crate) fn new(server: &ApiServer, sessions: &PageSessions, base: Option<&str>) -> Self {
        Self {
            server: server.clone(),
            sessions: sessions.clone(),
            base: base.unwrap_or_default().to_owned(),
        }
    }

    /// The routes, for a router of any state.
    pub(crate) fn router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        let router = Router::new()
            .route(
                "/heddle/v1/session",
                get(who_am_i).post(log_in).delete(log_out),
            )
            .route("/heddle/v1/session/codes", post(make_code))
            .layer(DefaultBodyLimit::max(LOGIN_BYTES_MAX));
        router.with_state(self)
    }

    /// Those that are part of the page. All that they answer has its headers, refusals too.
    pub(crate) fn forms<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        let router = Router::new()
            .route("/ui/login", post(log_in_by_form))
            .route("/ui/logout", post(log_out_by_form))
            .layer(DefaultBodyLimit::max(LOGIN_BYTES_MAX))
            .layer(middleware::map_response(heddle_ui::guarded));
        router.with_state(self)
    }

    /// Where somebody goes who named no page.
    fn home(&self) -> String {
        format!("{}/ui/", self.base)
    }

    /// The way in once more, which says what was wrong.
    fn again(&self, fault: &str, next: &str) -> String {
        let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        format!("{}login?fault={fault}&next={next}", self.home())
    }

    /// Whether somebody may be sent there: a page of this server, and nothing that a browser reads as another place.
    fn is_page(&self, next: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        let rest = next.strip_prefix(&self.base);
        rest.is_some_and(|rest| rest.starts_with("/ui/") && !rest.contains("//"))
            && next.bytes().all(plain)
    }

    /// Logs somebody in, or says why not.
    fn begin(
        &self,
        request: &LoginRequest,
        from: IpAddr,
        kind: SessionKind,
    ) -> Result<SessionSecrets, Box<Response>> {
        let table = &*self.sessions.0;
        let now = table.clock.monotonic();
        if let Some(wait) = table.attempts.lock().wait(from, now) {
            return Err(Box::new(too_many(wait)));
        }
        let holder = match (&request.token, &request.code) {
            (Some(token), None) => self.server.holder_of(token.trim()),
            (None, Some(code)) => table.codes.lock().take(code.trim(), now),
            _ => {
                let message = "log in with {\"token\": …} or with {\"code\": …}";
                let refused = refuse(StatusCode::BAD_REQUEST, "invalid-login", message);
                return Err(Box::new(refused));
            }
        };
        let Some(holder) = holder else {
            table.attempts.lock().wrong(from, now);
            let message = match request.code {
                Some(_) => {
                    "this code was used already or is older than a minute; `heddle ui` makes another"
                }
                None => "this token is not known here, was taken back or has expired",
            };
            let refused = refuse(StatusCode::UNAUTHORIZED, "unauthorized", message);
            return Err(Box::new(refused));
        };
        self.sessions
            .begin(&holder, kind)
            .ok_or_else(|| Box::new(no_role(&holder)))
    }
}

async fn log_in(
    State(logins): State<Logins>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    uri: Uri,
    body: Bytes,
) -> Response {
    if let Err(refused) = origin::check_foreign(&headers, &uri) {
        return *refused;
    }
    if !origin::is_json(&headers) {
        let message = "send Content-Type: application/json";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", message);
    }
    let Ok(request) = serde_json::from_slice::<LoginRequest>(&body) else {
        let message = "log in with {\"token\": …} or with {\"code\": …}";
        return refuse(StatusCode::BAD_REQUEST, "invalid-login", message);
    };
    let from = Address::of(peer);
    let secrets = match logins.begin(&request, from.ip, SessionKind::Whole) {
        Ok(secrets) => secrets,
        Err(refused) => return *refused,
    };
    let ends = logins.sessions.ends(&secrets.logged_in);
    let mut info = SessionInfo::of(&secrets.logged_in.access);
    info.page = Some(&secrets.page);
    info.tell_ends(ends);
    let cookie = logins.sessions.set_cookie(&secrets.cookie, from.is_tls);
    let mut response = private_json(StatusCode::CREATED, &info, Some(cookie));
    response.extensions_mut().insert(secrets.logged_in);
    response
}

async fn who_am_i(
    State(logins): State<Logins>,
    access: Option<Extension<Access>>,
    logged_in: Option<Extension<LoggedIn>>,
) -> Response {
    let Some(Extension(access)) = access else {
        return nobody();
    };
    let mut info = SessionInfo::of(&access);
    if let Some(Extension(logged_in)) = logged_in {
        info.tell_ends(logins.sessions.ends(&logged_in));
    }
    private_json(StatusCode::OK, &info, None)
}

async fn log_out(
    State(logins): State<Logins>,
    peer: Option<Extension<Peer>>,
    logged_in: Option<Extension<LoggedIn>>,
) -> Response {
    let Some(Extension(logged_in)) = logged_in else {
        return nobody();
    };
    logins.sessions.end(&logged_in);
    let from = Address::of(peer);
    let cookie = logins.sessions.set_cookie("", from.is_tls);
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}

async fn make_code(State(logins): State<Logins>, headers: HeaderMap) -> Response {
    // A session must not make more of itself.
    let Some(holder) = logins.server.holder(&headers) else {
        return nobody();
    };
    if holder.identity.access().is_none() {
        return no_role(&holder);
    }
    let table = &*logins.sessions.0;
    let code = table.chance.token(SECRET_BYTES);
    let now = table.clock.monotonic();
    table.codes.lock().put(&code, holder, now);
    let expires = table.clock.now().saturating_add(CODE_LIFE);
    let expires = expires.map(|at| at.to_string()).unwrap_or_default();
    let body = serde_json::json!({"code": code, "expiresAt": expires});
    private_json(StatusCode::CREATED, &body, None)
}

/// The form, without script.
async fn log_in_by_form(
    State(logins): State<Logins>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    uri: Uri,
    body: Bytes,
) -> Response {
    if let Err(refused) = origin::check_site(&headers, &uri) {
        return *refused;
    }
    let (mut request, mut next) = (
        LoginRequest {
            token: None,
            code: None,
        },
        logins.home(),
    );
    for (key, value) in form_urlencoded::parse(&body) {
        match &*key {
            "token" => request.token = Some(value.into_owned()),
            "next" if logins.is_page(&value) => next = value.into_owned(),
            _ => {}
        }
    }
    let from = Address::of(peer);
    match logins.begin(&request, from.ip, SessionKind::Reading) {
        Ok(secrets) => {
            let cookie = logins.sessions.set_cookie(&secrets.cookie, from.is_tls);
            let mut response = see_other(&next, Some(cookie));
            response.extensions_mut().insert(secrets.logged_in);
            response
        }
        Err(refused) => match fault(refused.status()) {
            Some(fault) => {
                let mut response = see_other(&logins.again(fault, &next), None);
                let note = refused.extensions().get::<ChangeNote>().cloned();
                response.extensions_mut().insert(ChangeNote {
                    status: Some(refused.status().as_u16()),
                    ..note.unwrap_or_default()
                });
                response
            }
            None => *refused,
        },
    }
}

/// What the way in says of a refusal.
fn fault(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED => Some("wrong"),
        StatusCode::TOO_MANY_REQUESTS => Some("busy"),
        StatusCode::FORBIDDEN => Some("norole"),
        _ => None,
    }
}

async fn log_out_by_form(
    State(logins): State<Logins>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    if let Err(refused) = origin::check_site(&headers, &uri) {
        return *refused;
    }
    let from = Address::of(peer);
    let name = logins.sessions.cookie_name(from.is_tls);
    let ended = logins.sessions.end_shown(&cookie::values(&headers, &name));
    let cookie = logins.sessions.set_cookie("", from.is_tls);
    let mut response = see_other(&logins.home(), Some(cookie));
    match ended {
        Some(logged_in) => drop(response.extensions_mut().insert(logged_in)),
        // Nobody was logged out.
        None => drop(response.extensions_mut().insert(ChangeNote::question())),
    }
    response
}

fn see_other(to: &str, cookie: Option<HeaderValue>) -> Response {
    let to = HeaderValue::try_from(to).unwrap_or(HeaderValue::from_static("/ui/"));
    let headers = [
        (header::LOCATION, to),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let mut response = (StatusCode::SEE_OTHER, headers).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Where a request comes from.
struct Address {
    ip: IpAddr,
    is_tls: bool,
}

impl Address {
    fn of(peer: Option<Extension<Peer>>) -> Self {
        match peer {
            Some(Extension(peer)) => Self {
                ip: peer.address.ip(),
                is_tls: peer.tls,
            },
            None => Self {
                ip: Ipv4Addr::UNSPECIFIED.into(),
                is_tls: false,
            },
        }
    }
}

impl<'a> SessionInfo<'a> {
    fn of(access: &'a Access) -> Self {
        Self {
            user: &access.user,
            role: access.role.name(),
            namespaces: match &access.scope {
                Scope::All => vec!["*"],
                Scope::Namespaces(names) => names.iter().map(String::as_str).collect(),
            },
            payloads: access.has(heddle_api::access::Right::Payloads),
            page: None,
            idle_until: None,
            ends_at: None,
        }
    }

    fn tell_ends(&mut self, ends: Option<(jiff::Timestamp, jiff::Timestamp)>) {
        self.idle_until = ends.map(|(idle, _)| idle.to_string());
        self.ends_at = ends.map(|(_, end)| end.to_string());
    }
}

fn private_json(
    status: StatusCode,
    body: &impl Serialize,
    cookie: Option<HeaderValue>,
) -> Response {
    let text = serde_json::to_vec(body).unwrap_or_default();
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let mut response = (status, headers, text).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn nobody() -> Response {
    let message = "log in first: POST /heddle/v1/session with a token, and send both halves of the session; or send a bearer token";
    refuse(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

fn no_role(holder: &TokenHolder) -> Response {
    let message = format!("{} has no role here", holder.identity.user);
    let mut response = refuse(StatusCode::FORBIDDEN, "forbidden", &message);
    response.extensions_mut().insert(ChangeNote {
        user: Some(holder.identity.user.to_string()),
        reason: Some("forbidden".into()),
        ..ChangeNote::default()
    });
    response
}

fn too_many(wait: Duration) -> Response {
    let seconds = wait.as_secs().max(1);
    let message = format!("too many wrong logins from this address; try again in {seconds} s");
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "too-many-logins", &message);
    let seconds = HeaderValue::from(seconds);
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    response
}
