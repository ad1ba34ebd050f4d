//! Every route that changes something leaves one line, whoever asks and however it ends; reads leave none.

use std::sync::atomic::AtomicUsize;

use axum::Router;
use axum::body::Body;
use axum::middleware;
use axum::routing::{MethodFilter, any, on};
use heddle_api::access::{Access, Right, Role, Scope};
use heddle_api::audit::{AuditLine, AuditPage, AuditQuery};
use heddle_apiserver::{ADMINS, Identity, Tokens};
use heddle_rt::vfs::Vfs as _;
use heddle_rt::{Chance, MemoryVfs};
use http::{Method, Request, StatusCode, header};
use tower::ServiceExt as _;

use super::doorway::{self, AuditDoorway};
use super::*;
use crate::door::{self, Entrance};
use crate::rights::{self, ROUTES};
use crate::session::PageSessions;
use crate::session::logins::Logins;
use crate::wire::Ground;

const SECRET: &str = "a-secret-in-a-body";

/// The listener with handlers that only count, a real resource API and real sessions.
struct AuditHouse {
    router: Router,
    log: AuditLog,
    vfs: MemoryVfs,
    carried_out: Arc<AtomicUsize>,
    ground: Ground,
    _tasks: Tasks,
}

fn somebody(user: &str, role: Role, scope: Scope) -> Access {
    Access {
        user: user.to_owned(),
        role,
        scope,
        payloads: false,
    }
}

async fn audit_house() -> AuditHouse {
    let vfs = MemoryVfs::new();
    let world = World {
        clock: Clock::simulated(jiff::Timestamp::UNIX_EPOCH),
        chance: Chance::seeded(1),
        vfs: vfs.shared(),
    };
    // The store is on a disk of its own, so that one can be full and the other not, and on threads of its own.
    let beside = World {
        clock: Clock::system(),
        chance: Chance::seeded(2),
        vfs: MemoryVfs::new().shared(),
    };
    let here = Scope::Namespaces(["team-a".to_owned()].into());
    let tokens = Tokens::default()
        .with("root", Identity::new("root", &[ADMINS]))
        .with(
            "viewer",
            Identity::of(&somebody("viewer", Role::Viewer, Scope::All)),
        )
        .with(
            "local",
            Identity::of(&somebody("local", Role::Administrator, here)),
        );
    let tasks = Tasks::new("test");
    let ground = Ground::open(&beside, Path::new("/data"), &tasks, tokens).await;
    let ground = ground.unwrap();
    let log = AuditLog::open(Path::new("/data"), &world, &tasks).unwrap();
    let carried_out = Arc::new(AtomicUsize::new(0));
    let counting = {
        let carried_out = carried_out.clone();
        move || async move {
            carried_out.fetch_add(1, Ordering::Relaxed);
            "done"
        }
    };
    let mut questions = Router::new();
    for row in ROUTES.iter().filter(|row| row.path != "/audit") {
        let method = MethodFilter::try_from(row.method.parse::<Method>().unwrap()).unwrap();
        questions = questions.route(row.path, on(method, counting.clone()));
    }
    let questions = questions
        .merge(question::router(log.clone()))
        .layer(middleware::from_fn(rights::guard));
    let server = ground.server.clone();
    let sessions = PageSessions::new(beside.clock.clone(), world.chance.clone(), 4333);
    let logins = Logins::new(&server, &sessions, None);
    let entrance = Entrance::new(
        &server,
        &sessions,
        tokio_util::sync::CancellationToken::new(),
    );
    let doorway = AuditDoorway {
        log: log.clone(),
        server: server.clone(),
    };
    let stuck = any(|| async {
        std::future::pending::<()>().await;
    });
    let router = Router::new()
        .route("/ui/stuck", stuck)
        .route("/v2/{*rest}", any(counting))
        .route_service("/api/{*rest}", server.remote())
        .route_service("/apis/{*rest}", server.remote())
        .merge(logins.clone().forms())
        .merge(logins.router())
        .nest_service("/heddle/v1", questions)
        .layer(middleware::from_fn_with_state(entrance, door::enter))
        .layer(middleware::from_fn_with_state(doorway, doorway::record));
    AuditHouse {
        router,
        log,
        vfs,
        carried_out,
        ground,
        _tasks: tasks,
    }
}

fn request(method: &str, path: &str, token: Option<&str>) -> Request<Body> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, "test/1")
        .header("x-request-id", "r-17");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let body =
        format!("{{\"metadata\": {{\"name\": \"made\"}}, \"data\": {{\"k\": \"{SECRET}\"}}}}");
    request.body(Body::from(body)).unwrap()
}

impl AuditHouse {
    async fn ask(&self, method: &str, path: &str, token: Option<&str>) -> (StatusCode, String) {
        self.send(request(method, path, token)).await
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, String) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20);
        let body = body.await.unwrap().to_vec();
        (status, String::from_utf8(body).unwrap())
    }

    /// The lines since one, oldest first.
    fn since(&self, number: u64) -> Vec<AuditLine> {
        let mut search = self
            .log
            .journal()
            .search(AuditQuery::default(), u64::MAX, number);
        let mut lines = Vec::new();
        while search.next().is_some() {
            lines.extend(search.step().unwrap().lines);
        }
        lines.reverse();
        lines
    }

    /// The only line that a request leaves.
    async fn one(&self, method: &str, path: &str, token: Option<&str>) -> AuditLine {
        let before = self.log.journal().end();
        let (status, body) = self.ask(method, path, token).await;
        let mut lines = self.since(before);
        assert_eq!(lines.len(), 1, "{method} {path} {token:?} {status} {body}");
        let line = lines.remove(0);
        assert_eq!(line.entry.status, Some(status.as_u16()), "{path}");
        line
    }
}

#[tokio::test]
async fn every_question_that_changes_something_leaves_one_line_and_no_other_does() {
    let house = audit_house().await;
    let mut changes = 0;
    for row in ROUTES {
        let path = row.path.replace("{namespace}", "team-a");
        let path = path.replace(['{', '}'], "");
        let path = format!("/heddle/v1{path}");
        let asks_only = row.right == Right::Look || row.path == "/what-if";
        let is_change = row.method != "GET" && !asks_only || row.path == "/backup";
        for token in ["root", "viewer"] {
            let before = house.log.journal().end();
            let (status, _) = house.ask(row.method, &path, Some(token)).await;
            let lines = house.since(before);
            assert_eq!(lines.len(), usize::from(is_change), "{row:?} {token}");
            let Some(line) = lines.first() else { continue };
            changes += 1;
            let entry = &line.entry;
            assert_eq!(entry.user.as_deref(), Some(token));
            assert_eq!(entry.status, Some(status.as_u16()));
            assert_ne!(entry.verb, row.method.to_lowercase(), "{row:?} has a name");
            assert!(entry.kind.is_some(), "{row:?}");
            assert_eq!(entry.user_agent.as_deref(), Some("test/1"));
            assert_eq!(entry.request_id.as_deref(), Some("r-17"));
            let done = token == "root";
            assert_eq!(entry.outcome == AuditOutcome::Done, done, "{entry:?}");
        }
    }
    assert!(changes >= 14, "{changes}");
    let line = house
        .one("POST", "/heddle/v1/dead-letters/4-x/try", Some("root"))
        .await;
    assert_eq!(line.entry.object(), "deadletter/4-x");
    assert_eq!(line.entry.verb, "try");
    let path = "/heddle/v1/osb/team-a/v2/service_instances/i/service_bindings/b";
    let line = house.one("DELETE", path, Some("root")).await;
    assert_eq!(line.entry.object(), "servicebinding/team-a/b");
    assert_eq!(line.entry.verb, "unbind");
    // A route that nobody has told of is recorded all the same.
    let line = house
        .one("DELETE", "/heddle/v1/brand/new", Some("root"))
        .await;
    assert_eq!(
        (&*line.entry.verb, line.entry.status),
        ("delete", Some(404))
    );
}

/// Whatever kinds there are: create, update, patch, delete, also of the status.
#[tokio::test]
async fn every_write_to_every_kind_leaves_one_line() {
    let house = audit_house().await;
    let registry = house.ground.server.registry().resources();
    let mut kinds = 0;
    for resource in registry {
        let api = match &*resource.group {
            "" => format!("/api/{}", resource.version),
            group => format!("/apis/{group}/{}", resource.version),
        };
        let collection = match resource.namespaced {
            true => format!("{api}/namespaces/team-a/{}", resource.plural),
            false => format!("{api}/{}", resource.plural),
        };
        let object = format!("{collection}/made");
        let mut writes = vec![
            ("POST", collection.clone(), "create"),
            ("PUT", object.clone(), "update"),
            ("PATCH", object.clone(), "patch"),
            ("DELETE", object.clone(), "delete"),
            ("DELETE", collection, "deletecollection"),
        ];
        if resource.has_status {
            writes.push(("PATCH", format!("{object}/status"), "patch"));
        }
        for (method, path, verb) in writes {
            let line = house.one(method, &path, Some("viewer")).await;
            let entry = line.entry;
            assert_eq!(
                (entry.verb.as_str(), entry.status),
                (verb, Some(403)),
                "{path}"
            );
            assert_eq!(entry.reason.as_deref(), Some("Forbidden"));
            let kind = resource.kind.to_lowercase();
            assert_eq!(entry.kind.as_deref(), Some(&*kind));
            assert_eq!(entry.role.as_deref(), Some("viewer"));
        }
        kinds += 1;
    }
    assert!(kinds > 16, "{kinds}");
}

#[tokio::test]
async fn a_line_names_what_was_made_and_holds_no_secret() {
    let house = audit_house().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let line = house.one("POST", maps, Some("root")).await;
    assert_eq!(line.entry.object(), "configmap/default/made");
    assert_eq!(line.entry.outcome, AuditOutcome::Done);
    assert!(line.entry.uid.is_some_and(|uid| uid.len() > 30));
    let line = house.one("POST", maps, Some("root")).await;
    assert_eq!(line.entry.reason.as_deref(), Some("AlreadyExists"));
    for path in [
        format!("{maps}/made?dryRun=All"),
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
    ] {
        let before = house.log.journal().end();
        let method = if path.contains("dryRun") {
            "DELETE"
        } else {
            "POST"
        };
        house.ask(method, &path, Some("root")).await;
        assert_eq!(house.since(before), [], "{path} changes nothing");
    }
    let line = house
        .one("DELETE", &format!("{maps}/made"), Some("root"))
        .await;
    assert_eq!(line.entry.object(), "configmap/default/made");

    let dir = Path::new("/data").join(journal::AUDIT);
    for name in house.vfs.list(&dir).unwrap() {
        let bytes = house.vfs.read(&dir.join(name)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(SECRET) && !text.contains("Bearer"));
    }
}

#[tokio::test]
async fn logging_in_and_out_and_acting_as_somebody_else_are_told() {
    let house = audit_house().await;
    let log_in = |token: &str| {
        let body = format!("{{\"token\": \"{token}\"}}");
        let request = Request::post("/heddle/v1/session")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body));
        house.send(request.unwrap())
    };
    let before = house.log.journal().end();
    log_in("viewer").await;
    log_in("wrong").await;
    house
        .ask("POST", "/heddle/v1/session/codes", Some("viewer"))
        .await;
    let told: Vec<_> = (house.since(before).into_iter())
        .map(|line| (line.entry.verb, line.entry.user, line.entry.outcome))
        .collect();
    let viewer = || Some("viewer".to_owned());
    assert_eq!(
        told,
        [
            ("login".to_owned(), viewer(), AuditOutcome::Done),
            ("login".to_owned(), None, AuditOutcome::Refused),
            ("code".to_owned(), viewer(), AuditOutcome::Done),
        ]
    );
    for (token, user, impersonator) in [
        ("root", "ada", Some("root")),
        // Whoever may not act as somebody else is told by the name they have.
        ("viewer", "viewer", None),
    ] {
        let before = house.log.journal().end();
        let mut request = request("POST", "/api/v1/namespaces/default/configmaps", Some(token));
        let headers = request.headers_mut();
        headers.insert("impersonate-user", "ada".parse().unwrap());
        headers.insert(
            "impersonate-group",
            "system:heddle:viewers".parse().unwrap(),
        );
        house.send(request).await;
        let line = house.since(before).remove(0);
        assert_eq!(line.entry.user.as_deref(), Some(user));
        assert_eq!(line.entry.impersonator.as_deref(), impersonator);
        assert_eq!(line.entry.status, Some(403));
    }
}

#[tokio::test]
async fn whoever_leaves_before_the_answer_leaves_a_line() {
    let house = audit_house().await;
    let before = house.log.journal().end();
    {
        let mut asking = std::pin::pin!(house.ask("POST", "/ui/stuck", Some("root")));
        assert!(
            futures::poll!(&mut asking).is_pending(),
            "there is no answer"
        );
    }
    let lines = house.since(before);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].entry.outcome, AuditOutcome::Interrupted);
    assert_eq!(lines[0].entry.user.as_deref(), Some("root"));
    assert_eq!(lines[0].entry.status, None);
}

#[tokio::test]
async fn strangers_who_knock_often_are_counted() {
    let house = audit_house().await;
    for _ in 0..500 {
        let (status, _) = house.ask("POST", "/heddle/v1/smoke", None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    let single = house.since(0).len();
    assert!(single <= 10, "{single}");
    house.log.close().await;
    let lines = house.since(0);
    let told: u64 = lines.iter().map(|line| line.entry.count).sum();
    assert_eq!((lines.len(), told), (single + 1, 500));
}

#[tokio::test]
async fn nothing_is_changed_that_cannot_be_recorded_but_what_makes_room() {
    let house = audit_house().await;
    let smoke = "/heddle/v1/smoke";
    assert_eq!(
        house.ask("POST", smoke, Some("root")).await.0,
        StatusCode::OK
    );
    let carried_out = || house.carried_out.load(Ordering::Relaxed);
    assert_eq!(carried_out(), 1);

    house.vfs.set_capacity(Some(house.vfs.used_bytes()));
    // The one that finds out has been carried out, and is not called done.
    let (status, body) = house.ask("POST", smoke, Some("root")).await;
    assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE);
    assert!(body.contains("it was carried out"), "{body}");
    let (status, body) = house.ask("POST", smoke, Some("root")).await;
    assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE);
    assert!(
        body.contains("nothing was changed") && body.contains("make room"),
        "{body}"
    );
    assert_eq!(carried_out(), 2);
    let discard = "/heddle/v1/dead-letters/discard";
    assert_eq!(
        house.ask("POST", discard, Some("root")).await.0,
        StatusCode::OK
    );
    assert_eq!(carried_out(), 3);
    let (status, _) = house.ask("POST", smoke, None).await;
    assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE, "whoever it is");
    let (status, _) = house
        .ask("GET", "/heddle/v1/accounts", Some("viewer"))
        .await;
    assert_eq!(status, StatusCode::OK, "reads go on");

    house.vfs.set_capacity(None);
    let before = house.log.journal().end();
    let mut refused = 0;
    while house.ask("POST", smoke, Some("root")).await.0 != StatusCode::OK {
        refused += 1;
        house.log.0.clock.sleep(TRY_EVERY / 10).await;
    }
    let lines = house.since(before);
    let verbs: Vec<&str> = lines.iter().map(|line| &*line.entry.verb).collect();
    assert_eq!(verbs, ["resume", "test"]);
    let missing = lines[0].entry.count;
    assert_eq!(missing, 4 + refused, "they are missing, or were refused");
}

#[tokio::test]
async fn lines_are_told_to_those_who_administer_where_they_were_made() {
    let house = audit_house().await;
    for namespace in ["team-a", "team-b"] {
        for _ in 0..3 {
            let path = format!("/api/v1/namespaces/{namespace}/configmaps/x");
            house.ask("DELETE", &path, Some("root")).await;
        }
    }
    let page = async |query: &str, token| -> AuditPage {
        let path = format!("/heddle/v1/audit{query}");
        let (status, body) = house.ask("GET", &path, Some(token)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    assert_eq!(page("", "root").await.items.len(), 6);
    let local = page("", "local").await;
    assert_eq!(local.items.len(), 3);
    let elsewhere = |line: &AuditLine| line.entry.namespace.as_deref() != Some("team-a");
    assert!(!local.items.iter().any(elsewhere));
    for (query, token) in [("", "viewer"), ("?namespace=team-b", "local")] {
        let path = format!("/heddle/v1/audit{query}");
        assert_eq!(
            house.ask("GET", &path, Some(token)).await.0,
            StatusCode::FORBIDDEN
        );
    }
    for wrong in [
        "?since=soon",
        "?limit=0",
        "?after=x",
        "?outcome=x",
        "?format=xml",
    ] {
        let path = format!("/heddle/v1/audit{wrong}");
        assert_eq!(
            house.ask("GET", &path, Some("root")).await.0,
            StatusCode::BAD_REQUEST
        );
    }
    // Page after page, and each line once.
    let (mut after, mut numbers) = (String::new(), Vec::new());
    loop {
        let page = page(&format!("?limit=2&verb=delete{after}"), "root").await;
        numbers.extend(page.items.iter().map(|line| line.number));
        let Some(next) = page.next else { break };
        after = format!("&after={next}");
    }
    assert_eq!(numbers, [6, 5, 4, 3, 2, 1]);
    let newer = page("?newer=4", "root").await;
    assert_eq!(newer.items.len(), 2);
    assert_eq!(newer.newest, 6);
    let (_, lines) = house
        .ask(
            "GET",
            "/heddle/v1/audit?format=jsonl&namespace=team-b",
            Some("root"),
        )
        .await;
    let lines: Vec<AuditLine> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
}
