//! What is wrong is refused with the right code and a `Status` that says what to change; nothing
//! of it is stored, and nothing secret is said.

use http::{Method, Request, StatusCode};
use serde_json::json;

use crate::harness::{Answer, Server};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TRIGGERS: &str = "/apis/eventing.knative.dev/v1/namespaces/default/triggers";
const JSON: &str = "application/json";

struct Case {
    server: Server,
}

impl Case {
    async fn new() -> Self {
        Self {
            server: Server::start().await,
        }
    }

    async fn request(&self, method: Method, path: &str, kind: &str, body: &[u8]) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind);
        self.server
            .admin(request.body(body.to_vec()).unwrap())
            .await
    }

    /// The request is refused with `code` and a Status whose message holds every one of `words`.
    #[track_caller]
    fn refused(&self, answer: &Answer, code: StatusCode, words: &[&str]) {
        assert_eq!(answer.code, code, "{}", answer.body);
        let status = answer.json();
        assert_eq!(
            (&status["kind"], &status["status"], &status["code"]),
            (&json!("Status"), &json!("Failure"), &json!(code.as_u16()))
        );
        let message = status["message"].as_str().unwrap();
        for word in words {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
        assert!(
            !answer.body.contains(&self.server.token()),
            "the token leaked: {}",
            answer.body
        );
        assert!(
            !answer
                .body
                .contains(&self.server.data().display().to_string()),
            "a path leaked: {}",
            answer.body
        );
        assert!(
            !answer.body.contains(".rs:"),
            "a source line leaked: {}",
            answer.body
        );
    }

    async fn nothing_stored(&self, path: &str) {
        let request = Request::get(path).body(Vec::new()).unwrap();
        let list = self.server.admin(request).await.json();
        assert_eq!(list["items"], json!([]), "something was stored");
    }
}

#[tokio::test]
async fn malformed_bodies() {
    let case = Case::new().await;
    let yaml = "application/yaml";
    for (kind, body) in [
        (JSON, "{"),
        (JSON, ""),
        (JSON, "[]"),
        (JSON, "\"text\""),
        (
            JSON,
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": 7}",
        ),
        (
            JSON,
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"x\", \"labels\": []}}",
        ),
        (yaml, "a: [1,"),
        (yaml, "\t- x"),
        (yaml, "a: &a [*a, *a]"),
    ] {
        let answer = case
            .request(Method::POST, CONFIG_MAPS, kind, body.as_bytes())
            .await;
        assert!(answer.code.is_client_error(), "{body}: {answer:?}");
        case.refused(&answer, answer.code, &[]);
    }
    let invalid_utf8 = case
        .request(Method::POST, CONFIG_MAPS, JSON, b"{\"kind\": \"\xff\"}")
        .await;
    case.refused(&invalid_utf8, StatusCode::BAD_REQUEST, &[]);
    case.nothing_stored(CONFIG_MAPS).await;
}

#[tokio::test]
async fn bodies_without_measure() {
    let case = Case::new().await;
    let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"k": "x".repeat(4 << 20)}});
    let answer = case
        .request(
            Method::POST,
            CONFIG_MAPS,
            JSON,
            large.to_string().as_bytes(),
        )
        .await;
    case.refused(&answer, StatusCode::PAYLOAD_TOO_LARGE, &[]);
    for (kind, deep) in [
        (
            JSON,
            format!(
                "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"x\":{}{}}}",
                "[".repeat(10_000),
                "]".repeat(10_000)
            ),
        ),
        (
            "application/yaml",
            format!("x: {}{}", "[".repeat(10_000), "]".repeat(10_000)),
        ),
    ] {
        let answer = case
            .request(Method::POST, CONFIG_MAPS, kind, deep.as_bytes())
            .await;
        case.refused(&answer, StatusCode::BAD_REQUEST, &[]);
    }
    case.nothing_stored(CONFIG_MAPS).await;
    assert_eq!(case.server.get("/livez").await.code, StatusCode::OK);
}

#[tokio::test]
async fn objects_that_break_their_schema() {
    let case = Case::new().await;
    let trigger = |name: &str, spec: serde_json::Value| {
        json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": name}, "spec": spec}).to_string()
    };
    let strict = format!("{TRIGGERS}?fieldValidation=Strict");
    let subscriber = json!({"uri": "http://127.0.0.1:1/"});
    let unknown = trigger("a", json!({"subscriber": subscriber, "brokre": "x"}));
    let answer = case
        .request(Method::POST, &strict, JSON, unknown.as_bytes())
        .await;
    case.refused(
        &answer,
        StatusCode::BAD_REQUEST,
        &["unknown field", "spec.brokre"],
    );
    let missing = trigger("a", json!({}));
    let answer = case
        .request(Method::POST, TRIGGERS, JSON, missing.as_bytes())
        .await;
    case.refused(
        &answer,
        StatusCode::UNPROCESSABLE_ENTITY,
        &["spec.subscriber", "Required"],
    );
    let wrong = trigger("a", json!({"subscriber": subscriber, "broker": 7}));
    let answer = case
        .request(Method::POST, TRIGGERS, JSON, wrong.as_bytes())
        .await;
    assert!(answer.code.is_client_error(), "{answer:?}");
    case.refused(&answer, answer.code, &["spec.broker"]);
    let name = trigger("Not_A_Name", json!({"subscriber": subscriber}));
    let answer = case
        .request(Method::POST, TRIGGERS, JSON, name.as_bytes())
        .await;
    case.refused(
        &answer,
        StatusCode::UNPROCESSABLE_ENTITY,
        &["metadata.name", "Not_A_Name"],
    );
    let number = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": {"k": 7}}).to_string();
    let answer = case
        .request(Method::POST, CONFIG_MAPS, JSON, number.as_bytes())
        .await;
    assert!(answer.code.is_client_error(), "{answer:?}");
    case.nothing_stored(TRIGGERS).await;
    case.nothing_stored(CONFIG_MAPS).await;
}

#[tokio::test]
async fn places_and_kinds_that_do_not_exist() {
    let case = Case::new().await;
    let get = |path: &str| Request::get(path).body(Vec::new()).unwrap();
    for path in [
        "/api/v1/nodes",
        "/apis/no.such.group/v1/things",
        "/api/v2",
        "/openapi/v9",
        "/api/v1/namespaces/default/configmaps/x/scale",
    ] {
        let answer = case.server.admin(get(path)).await;
        assert_eq!(
            answer.code,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            answer.body
        );
    }
    let answer = case
        .server
        .admin(get(&format!("{CONFIG_MAPS}/nobody")))
        .await;
    case.refused(&answer, StatusCode::NOT_FOUND, &["configmaps", "nobody"]);
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).to_string();
    let answer = case
        .request(
            Method::POST,
            "/api/v1/namespaces/nowhere/configmaps",
            JSON,
            body.as_bytes(),
        )
        .await;
    case.refused(&answer, StatusCode::NOT_FOUND, &["nowhere"]);
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}).to_string();
    let answer = case
        .request(Method::POST, CONFIG_MAPS, JSON, secret.as_bytes())
        .await;
    case.refused(&answer, StatusCode::BAD_REQUEST, &["Secret"]);
    let answer = case.request(Method::POST, "/version", JSON, b"{}").await;
    case.refused(&answer, StatusCode::METHOD_NOT_ALLOWED, &[]);
}

#[tokio::test]
async fn questions_that_cannot_be_understood() {
    let case = Case::new().await;
    for query in [
        "labelSelector=a%20in%20(",
        "labelSelector=%3D%3Dx",
        "fieldSelector=spec.nope%3D1",
        "fieldSelector=metadata.name",
        "limit=many",
        "continue=garbage",
        "resourceVersion=abc",
        "watch=true&resourceVersion=abc",
        "watch=true&sendInitialEvents=true",
    ] {
        let answer = case
            .server
            .admin(
                Request::get(format!("{CONFIG_MAPS}?{query}"))
                    .body(Vec::new())
                    .unwrap(),
            )
            .await;
        assert!(answer.code.is_client_error(), "{query}: {answer:?}");
        case.refused(&answer, answer.code, &[]);
    }
}

#[tokio::test]
async fn media_types_nobody_speaks() {
    let case = Case::new().await;
    let answer = case
        .request(Method::POST, CONFIG_MAPS, "text/html", b"<p>")
        .await;
    case.refused(
        &answer,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        &["application/json"],
    );
    let answer = case
        .request(Method::PATCH, &format!("{CONFIG_MAPS}/a"), JSON, b"{}")
        .await;
    case.refused(
        &answer,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        &["application/merge-patch+json"],
    );
    let request = Request::get(CONFIG_MAPS)
        .header("accept", "image/png")
        .body(Vec::new())
        .unwrap();
    let answer = case.server.admin(request).await;
    case.refused(&answer, StatusCode::NOT_ACCEPTABLE, &[]);
}

#[tokio::test]
async fn callers_without_the_right_token() {
    let case = Case::new().await;
    let token = case.server.token();
    let almost = format!("Bearer {}x", &token[..token.len() - 1]);
    let swapped = format!("Basic {token}");
    for value in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        almost.as_str(),
        swapped.as_str(),
        "Bearer \u{e9}",
    ] {
        for path in [
            "/api/v1/namespaces/default/secrets",
            "/apis",
            "/openapi/v3",
            "/version",
        ] {
            let request = Request::get(path)
                .header("authorization", value.as_bytes())
                .body(Vec::new())
                .unwrap();
            let answer = case.server.send(request).await;
            case.refused(&answer, StatusCode::UNAUTHORIZED, &[]);
        }
    }
    let none = case.server.get("/api/v1/namespaces").await;
    case.refused(&none, StatusCode::UNAUTHORIZED, &[]);
    assert!(
        !case.server.log().contains(&token),
        "the log holds the token"
    );
}
