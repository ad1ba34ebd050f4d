//! Sessions in simulated time, and every route at the door for everybody who may come.

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::middleware;
use axum::routing::{MethodFilter, on};
use heddle_api::access::{Role, Scope};
use heddle_apiserver::{ADMINS, ApiServer, IssuedTokens, SCRAPERS, Tokens};
use heddle_rt::{MemoryVfs, Tasks};
use http::{Request, StatusCode, header};
use tower::ServiceExt as _;

use super::logins::Logins;
use super::*;
use crate::door::{self, Entrance};
use crate::rights::{self, ROUTES};
use crate::wire::{Ground, World};

const MINUTE: Duration = Duration::from_secs(60);

fn sessions() -> (PageSessions, Clock) {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let sessions = PageSessions::new(clock.clone(), Chance::seeded(1), 4333);
    (sessions, clock)
}

fn ada() -> TokenHolder {
    TokenHolder::lasting(Identity::new("ada", &[ADMINS]))
}

fn is_whole(sessions: &PageSessions, secrets: &SessionSecrets) -> bool {
    let shown = sessions.show(&[&secrets.cookie], Some(&secrets.page));
    match shown {
        ShownSession::Whole(logged_in) => {
            sessions.touch(&logged_in);
            true
        }
        _ => false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_when_it_is_idle_and_after_half_a_day() {
    let (sessions, clock) = sessions();
    let secrets = sessions.begin(&ada(), SessionKind::Whole).unwrap();
    clock.sleep(29 * MINUTE).await;
    assert!(is_whole(&sessions, &secrets));
    clock.sleep(30 * MINUTE).await;
    assert!(!is_whole(&sessions, &secrets), "it was idle");

    let secrets = sessions.begin(&ada(), SessionKind::Whole).unwrap();
    for _ in 0..47 {
        clock.sleep(15 * MINUTE).await;
        assert!(is_whole(&sessions, &secrets));
    }
    let (idle, ends) = sessions.ends(&secrets.logged_in).unwrap();
    assert_eq!(idle, ends, "nothing puts that off");
    clock.sleep(15 * MINUTE).await;
    assert!(!is_whole(&sessions, &secrets), "half a day is over");
    assert_eq!(sessions.ends(&secrets.logged_in), None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_session_whatever_ends_that() {
    let (sessions, clock) = sessions();
    let secrets = sessions.begin(&ada(), SessionKind::Whole).unwrap();
    let began = clock.monotonic();
    let use_it = async {
        clock.sleep(20 * MINUTE).await;
        sessions.touch(&secrets.logged_in);
    };
    tokio::join!(sessions.over(&secrets.logged_in), use_it);
    assert_eq!(clock.monotonic() - began, 50 * MINUTE, "idle");

    let holder = ada();
    let by_token = sessions.begin(&holder, SessionKind::Whole).unwrap();
    let out = sessions.begin(&holder, SessionKind::Reading).unwrap();
    let began = clock.monotonic();
    tokio::join!(sessions.over(&out.logged_in), async {
        sessions.end(&out.logged_in);
    });
    tokio::join!(sessions.over(&by_token.logged_in), async {
        holder.ended.cancel();
    });
    assert_eq!(clock.monotonic(), began, "at once");
    assert!(!is_whole(&sessions, &by_token));
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_with_its_token() {
    let (sessions, clock) = sessions();
    let mut holder = ada();
    holder.expires = Some(clock.now() + 10 * MINUTE);
    let secrets = sessions.begin(&holder, SessionKind::Whole).unwrap();
    let (_, ends) = sessions.ends(&secrets.logged_in).unwrap();
    assert_eq!(Some(ends), holder.expires);
    clock.sleep(10 * MINUTE).await;
    assert!(!is_whole(&sessions, &secrets));
}

/// Somebody with the role of ada.
fn somebody(user: &str) -> TokenHolder {
    let mut holder = ada();
    holder.identity.user = user.into();
    holder
}

#[tokio::test(start_paused = true)]
async fn of_too_many_the_one_goes_that_was_idle_longest() {
    let (sessions, clock) = sessions();
    let mut all = Vec::new();
    for number in 0..SESSIONS_MAX {
        let holder = somebody(&format!("user-{}", number / SESSIONS_EACH_MAX));
        all.push(sessions.begin(&holder, SessionKind::Whole).unwrap());
        clock.sleep(Duration::from_millis(1)).await;
    }
    assert!(is_whole(&sessions, &all[0]), "used just now");
    let one_more = sessions.begin(&ada(), SessionKind::Whole).unwrap();
    assert!(is_whole(&sessions, &all[0]) && is_whole(&sessions, &one_more));
    assert!(!is_whole(&sessions, &all[1]));
    assert_eq!(sessions.0.sessions.lock().len(), SESSIONS_MAX);
}

#[tokio::test(start_paused = true)]
async fn nobody_makes_the_sessions_of_others_go() {
    let (sessions, clock) = sessions();
    let hers = sessions.begin(&ada(), SessionKind::Whole).unwrap();
    clock.sleep(Duration::from_millis(1)).await;
    let mut his = Vec::new();
    for _ in 0..3 * SESSIONS_MAX {
        his.push(
            sessions
                .begin(&somebody("bob"), SessionKind::Whole)
                .unwrap(),
        );
        clock.sleep(Duration::from_millis(1)).await;
    }
    assert!(is_whole(&sessions, &hers));
    let his: Vec<_> = his.iter().filter(|one| is_whole(&sessions, one)).collect();
    assert_eq!(his.len(), SESSIONS_EACH_MAX);
    let mut codes = LoginCodes::default();
    codes.put("hers", ada(), clock.monotonic());
    for number in 0..1_000 {
        clock.sleep(Duration::from_millis(1)).await;
        codes.put(&number.to_string(), somebody("bob"), clock.monotonic());
    }
    assert!(codes.take("0", clock.monotonic()).is_none());
    assert!(codes.take("999", clock.monotonic()).is_some());
    assert!(codes.take("hers", clock.monotonic()).is_some());
}

#[tokio::test(start_paused = true)]
async fn half_a_session_is_none() {
    let (sessions, _) = sessions();
    let whole = sessions.begin(&ada(), SessionKind::Whole).unwrap();
    let other = sessions.begin(&ada(), SessionKind::Whole).unwrap();
    let reading = sessions.begin(&ada(), SessionKind::Reading).unwrap();
    let show = |cookies: &[&str], page| sessions.show(cookies, page);
    assert!(matches!(show(&[&whole.cookie], None), ShownSession::Half));
    let wrong = Some(other.page.as_str());
    assert!(matches!(show(&[&whole.cookie], wrong), ShownSession::Half));
    assert!(matches!(
        show(&[], Some(&whole.page)),
        ShownSession::Nothing
    ));
    assert!(matches!(
        show(&["x"], Some(&whole.page)),
        ShownSession::Nothing
    ));
    let both = show(&["x", &whole.cookie], Some(&whole.page));
    assert!(
        matches!(both, ShownSession::Whole(_)),
        "beside a stranger's cookie"
    );
    for page in [None, Some(""), Some(whole.page.as_str())] {
        assert!(matches!(
            show(&[&reading.cookie], page),
            ShownSession::Reading(_)
        ));
    }
}

/// A server without a mesh: whatever passes the table is answered.
struct House {
    router: Router,
    issued: IssuedTokens,
    _ground: Ground,
    _tasks: Tasks,
}

const TEAM_A: &str = "team-a";

async fn house() -> House {
    let world = World {
        clock: Clock::system(),
        chance: Chance::seeded(1),
        vfs: MemoryVfs::new().shared(),
    };
    let tokens = Tokens::default()
        .with("scraper", Identity::new("prometheus", &[SCRAPERS]))
        .with("root", Identity::new("root", &[ADMINS]));
    let tokens = everybody().iter().fold(tokens, |tokens, access| {
        tokens.with(&access.user, Identity::of(access))
    });
    let tasks = Tasks::new("test");
    let ground = Ground::open(&world, Path::new("/data"), &tasks, tokens).await;
    let ground = ground.unwrap();
    let server: ApiServer = ground.server.clone();
    let sessions = PageSessions::new(world.clock, world.chance, 4333);
    let mut questions = Router::new();
    for row in ROUTES {
        let method = MethodFilter::try_from(row.method.parse::<http::Method>().unwrap()).unwrap();
        questions = questions.route(row.path, on(method, answer));
    }
    let questions = questions.layer(middleware::from_fn(rights::guard));
    let logins = Logins::new(&server, &sessions, None);
    let entrance = Entrance::new(&server, &sessions, CancellationToken::new());
    let router = Router::new()
        .route("/ui/", axum::routing::any(page))
        .route("/ui/{*rest}", axum::routing::any(page))
        .route_service("/api/{*rest}", server.remote())
        .merge(logins.clone().forms())
        .merge(logins.router())
        .nest_service("/heddle/v1", questions)
        .layer(middleware::from_fn_with_state(entrance, door::enter));
    House {
        router,
        issued: server.issued(),
        _ground: ground,
        _tasks: tasks,
    }
}

async fn answer() -> &'static str {
    "asked"
}

/// Says what it was told of whoever asks.
async fn page(
    access: Option<axum::Extension<Access>>,
    visitor: axum::Extension<heddle_api::access::Visitor>,
) -> String {
    format!("{:?} {}", visitor.0, access.is_some())
}

/// Every role, in all namespaces and in one, with the data of events and without; the token of each is their name.
fn everybody() -> Vec<Access> {
    let mut all = Vec::new();
    for role in Role::ALL {
        for scope in [Scope::All, Scope::Namespaces([TEAM_A.to_owned()].into())] {
            let place = if scope == Scope::All { "all" } else { TEAM_A };
            let user = format!("{}-{place}", role.name());
            let plain = Access {
                user,
                role,
                scope,
                payloads: role == Role::Administrator,
            };
            if role != Role::Administrator {
                all.push(Access {
                    user: format!("{}-payloads", plain.user),
                    payloads: true,
                    ..plain.clone()
                });
            }
            all.push(plain);
        }
    }
    all
}

/// Addresses of the page, one of each kind.
const PAGES: &[&str] = &[
    "/ui/",
    "/ui/graph.svg",
    "/ui/find?q=x",
    "/ui/applications",
    "/ui/applications/shop",
    "/ui/triggers/team-a/orders",
    "/ui/triggers/team-a/orders/try",
    "/ui/types",
    "/ui/publish",
    "/ui/subscribe",
    "/ui/subscribe/try",
    "/ui/objects/registry/main",
    "/ui/objects/broker/team-a/default",
    "/ui/events",
    "/ui/events/1",
    "/ui/events/1/republish",
    "/ui/trace?id=x",
    "/ui/dead-letters",
    "/ui/dead-letters/preview",
    "/ui/dead-letters/x",
    "/ui/instances",
    "/ui/instances/team-a",
    "/ui/instances/team-a/one",
    "/ui/catalog",
    "/ui/catalog/team-a/shop",
    "/ui/registries",
    "/ui/checks",
    "/ui/audit",
    "/ui/help",
    "/ui/help/LinkBroken",
    "/ui/nowhere",
];

/// What somebody shows at the door.
#[derive(Clone, Debug, Default)]
struct Credentials {
    bearer: Option<String>,
    cookie: Option<String>,
    page: Option<String>,
}

impl House {
    async fn ask(&self, method: &str, path: &str, shown: &Credentials) -> (StatusCode, String) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = &shown.bearer {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(cookie) = &shown.cookie {
            request = request.header(header::COOKIE, format!("heddle-4333={cookie}"));
        }
        if let Some(page) = &shown.page {
            request = request.header(cookie::SESSION_HEADER, page);
        }
        let request = request
            .header("sec-fetch-site", "same-origin")
            .header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from("{}")).unwrap()).await
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, String) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let allowed = response.headers().keys();
        let mut allowed = allowed.filter(|name| name.as_str().starts_with("access-control-"));
        assert_eq!(allowed.next(), None, "no other origin reads this");
        let (status, cookie) = (response.status(), cookie_of(&response));
        let body = axum::body::to_bytes(response.into_body(), 1 << 20);
        let body = String::from_utf8(body.await.unwrap().to_vec()).unwrap();
        (status, format!("{body}{cookie}"))
    }

    /// Both halves.
    async fn log_in(&self, token: &str) -> Credentials {
        let body = serde_json::json!({"token": token}).to_string();
        let request = Request::post("/heddle/v1/session")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))
            .unwrap();
        let (status, body) = self.send(request).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        let (body, cookie) = body.split_once("\nheddle-4333=").unwrap();
        let told: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(told["user"], token);
        Credentials {
            bearer: None,
            cookie: cookie.split(';').next().map(str::to_owned),
            page: told["page"].as_str().map(str::to_owned),
        }
    }
}

fn cookie_of(response: &http::Response<Body>) -> String {
    let cookie = response.headers().get(header::SET_COOKIE);
    let cookie = cookie.map(|cookie| format!("\n{}", cookie.to_str().unwrap()));
    cookie.unwrap_or_default()
}

/// Every row × role × namespace × kind of credential.
#[tokio::test]
async fn every_route_is_open_to_those_who_may_and_show_it_whole() {
    let house = house().await;
    for access in everybody() {
        let bearer = Credentials {
            bearer: Some(access.user.clone()),
            ..Credentials::default()
        };
        let both = house.log_in(&access.user).await;
        let (mut cookie_only, mut header_only) = (both.clone(), both.clone());
        cookie_only.page = None;
        header_only.cookie = None;
        let wrong = Credentials {
            bearer: Some("wrong".to_owned()),
            ..both.clone()
        };
        let strangers = [
            Credentials::default(),
            wrong,
            cookie_only.clone(),
            header_only,
        ];
        for row in ROUTES {
            for namespace in [TEAM_A, "team-b"] {
                let path = row.path.replace("{namespace}", namespace);
                let method = row.method.parse().unwrap();
                let may = rights::check(&access, &method, &path, "").is_ok();
                let path = format!("/heddle/v1{path}");
                for shown in [&bearer, &both] {
                    let (status, body) = house.ask(row.method, &path, shown).await;
                    let expected = if may {
                        StatusCode::OK
                    } else {
                        StatusCode::FORBIDDEN
                    };
                    assert_eq!(status, expected, "{access:?} {path} {shown:?} {body}");
                }
                for shown in &strangers {
                    let (status, _) = house.ask(row.method, &path, shown).await;
                    assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} {shown:?}");
                }
            }
        }
        let data = house.ask("GET", "/heddle/v1/events/1/data", &both).await.0;
        assert_eq!(data == StatusCode::OK, access.payloads, "{access:?} {data}");
        let path = "/api/v1/namespaces/team-a/configmaps";
        for shown in [&bearer, &both] {
            let (status, body) = house.ask("GET", path, shown).await;
            assert_eq!(status, StatusCode::OK, "{access:?} {body}");
        }
        let (status, _) = house.ask("GET", path, &cookie_only).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let (_, seen) = house.ask("GET", "/ui/", &cookie_only).await;
        assert_eq!(seen, "CookieOnly false");
        let (_, seen) = house.ask("GET", "/ui/", &both).await;
        assert_eq!(seen, "Known true");
    }
}

#[tokio::test]
async fn what_was_taken_back_or_has_expired_opens_nothing() {
    let house = house().await;
    let given = Identity::new("given", &[ADMINS]);
    let give = |expires| {
        let tokens = [(digest("given"), (given.clone(), expires))];
        house.issued.replace(tokens.into());
    };
    let bearer = Credentials {
        bearer: Some("given".to_owned()),
        ..Credentials::default()
    };
    let path = "/heddle/v1/trace";
    give(None);
    let both = house.log_in("given").await;
    for shown in [&bearer, &both] {
        assert_eq!(house.ask("GET", path, shown).await.0, StatusCode::OK);
    }
    give(Some(Timestamp::UNIX_EPOCH));
    for shown in [&bearer, &both] {
        let (status, _) = house.ask("GET", path, shown).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{shown:?}");
    }
    give(None);
    let both = house.log_in("given").await;
    let (status, cookie) = house.ask("DELETE", "/heddle/v1/session", &both).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(cookie.ends_with("Max-Age=0"), "{cookie}");
    assert_eq!(
        house.ask("GET", path, &both).await.0,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_code_logs_in_once_and_only_a_token_makes_one() {
    let house = house().await;
    let token = Credentials {
        bearer: Some("viewer-all".to_owned()),
        ..Credentials::default()
    };
    let codes = "/heddle/v1/session/codes";
    let (status, body) = house.ask("POST", codes, &token).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    let told: serde_json::Value = serde_json::from_str(&body).unwrap();
    let code = serde_json::json!({"code": told["code"]}).to_string();
    let log_in = || {
        let request =
            Request::post("/heddle/v1/session").header(header::CONTENT_TYPE, "application/json");
        house.send(request.body(Body::from(code.clone())).unwrap())
    };
    let (status, body) = log_in().await;
    assert_eq!(status, StatusCode::CREATED);
    assert!(
        body.contains(r#""role":"viewer","namespaces":["*"],"payloads":false"#),
        "{body}"
    );
    assert_eq!(log_in().await.0, StatusCode::UNAUTHORIZED, "again");
    let session = house.log_in("viewer-all").await;
    for shown in [session, Credentials::default()] {
        let (status, _) = house.ask("POST", codes, &shown).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{shown:?}");
    }
}

#[tokio::test]
async fn the_plain_form_gives_what_reads_pages_and_nothing_else() {
    let house = house().await;
    let form = |body: &'static str, site: &'static str| {
        let request = Request::post("/ui/login")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("sec-fetch-site", site);
        request.body(Body::from(body)).unwrap()
    };
    let foreign = house.send(form("token=root", "cross-site")).await;
    assert_eq!(foreign.0, StatusCode::FORBIDDEN);
    let foreign = house.router.clone();
    let foreign = foreign.oneshot(form("token=root", "cross-site")).await;
    let headers = foreign.unwrap().headers().clone();
    assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let wrong = form("token=nobody&next=/ui/events%3Fq%3Da%26b", "same-origin");
    let wrong = house.router.clone().oneshot(wrong).await.unwrap();
    assert_eq!(wrong.status(), StatusCode::SEE_OTHER);
    let again = "/ui/login?fault=wrong&next=%2Fui%2Fevents%3Fq%3Da%26b";
    assert_eq!(wrong.headers()[header::LOCATION], again);
    assert_eq!(wrong.headers().get(header::SET_COOKIE), None);
    for (next, to) in [
        ("", "/ui/"),
        ("&next=/ui/events%3Ftype%3Dx", "/ui/events?type=x"),
        ("&next=//evil.example/ui/", "/ui/"),
        ("&next=/ui//evil.example", "/ui/"),
        ("&next=https://evil.example/", "/ui/"),
        ("&next=/ui/%5Cevil", "/ui/"),
        ("&next=/ui/%0d%0aX: y", "/ui/"),
        ("&next=/api/", "/ui/"),
    ] {
        let body: &'static str = Box::leak(format!("token=root{next}").into_boxed_str());
        let response = house.router.clone().oneshot(form(body, "same-origin"));
        let response = response.await.unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        assert_eq!(response.headers()[header::LOCATION], to, "{next}");
    }
    let (_, cookie) = house.send(form("token=root", "same-origin")).await;
    let cookie = cookie.trim().trim_start_matches("heddle-4333=");
    let shown = Credentials {
        cookie: cookie.split(';').next().map(str::to_owned),
        ..Credentials::default()
    };
    for path in PAGES {
        assert_eq!(house.ask("GET", path, &shown).await.1, "Known true");
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let (_, seen) = house.ask(method, path, &shown).await;
            assert_eq!(seen, "CookieOnly false", "{method} {path}");
        }
    }
    for row in ROUTES {
        let path = row.path.replace("{namespace}", TEAM_A);
        let (status, _) = house
            .ask(row.method, &format!("/heddle/v1{path}"), &shown)
            .await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
    }
    for path in [
        "/heddle/v1/trace",
        "/api/v1/namespaces",
        "/heddle/v1/session",
    ] {
        let (status, _) = house.ask("GET", path, &shown).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let (status, _) = house.ask("POST", "/ui/logout", &shown).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(house.ask("GET", "/ui/", &shown).await.1, "Nobody false");
}

#[tokio::test]
async fn who_guesses_has_to_wait() {
    let house = house().await;
    let guess = |token: &str| {
        let body = serde_json::json!({"token": token}).to_string();
        let request =
            Request::post("/heddle/v1/session").header(header::CONTENT_TYPE, "application/json");
        house.send(request.body(Body::from(body)).unwrap())
    };
    assert_eq!(guess("scraper").await.0, StatusCode::FORBIDDEN, "no role");
    for _ in 0..10 {
        assert_eq!(guess("wrong").await.0, StatusCode::UNAUTHORIZED);
    }
    for token in ["wrong", "root"] {
        assert_eq!(guess(token).await.0, StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn a_session_is_refused_to_pages_of_others() {
    let house = house().await;
    let both = house.log_in("root").await;
    let request = |site: &str, kind: &str| {
        Request::post("/heddle/v1/dead-letters/redrive")
            .header(
                header::COOKIE,
                format!("heddle-4333={}", both.cookie.as_ref().unwrap()),
            )
            .header(cookie::SESSION_HEADER, both.page.as_ref().unwrap())
            .header("sec-fetch-site", site)
            .header(header::CONTENT_TYPE, kind)
            .body(Body::from("{}"))
            .unwrap()
    };
    let json = "application/json";
    assert_eq!(
        house.send(request("same-origin", json)).await.0,
        StatusCode::OK
    );
    let foreign = house.send(request("same-site", json)).await;
    assert_eq!(foreign.0, StatusCode::FORBIDDEN);
    let form = house.send(request("same-origin", "text/plain")).await;
    assert_eq!(form.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}
