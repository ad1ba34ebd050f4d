//! What clients other than kubectl and kube-rs do first, and give up on when it is not answered.

use http::{Request, StatusCode};
use serde_json::Value;

use crate::harness::Server;

#[tokio::test]
async fn a_slash_at_the_end_changes_nothing_and_the_root_lists_paths() {
    let server = Server::start().await;
    let get = async |path: &str| {
        let request = Request::get(path).body(Vec::new()).unwrap();
        let answer = server.admin(request).await;
        assert_eq!(answer.code, StatusCode::OK, "{path}: {}", answer.body);
        answer.json()
    };
    for path in ["/version", "/api", "/apis"] {
        assert_eq!(get(&format!("{path}/")).await, get(path).await);
    }
    let root = get("/").await;
    let paths = root["paths"].as_array().unwrap();
    for path in ["/api/v1", "/apis/eventing.knative.dev/v1", "/openapi/v2"] {
        assert!(paths.iter().any(|listed| listed == path), "{path}: {root}");
    }
}

#[tokio::test]
async fn a_watch_that_wants_a_websocket_is_told_at_once_to_use_http() {
    let server = Server::start().await;
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let path = "/api/v1/namespaces/default/configmaps";
    let watch = format!("{path}?watch=true");
    // An answer that had no end, as a watch has none, would not be read to its end here.
    let answer = server.ask("GET", &watch, &upgrade, b"").await;
    // Clients such as fabric8's watch by plain HTTP after a 503, and after no other refusal.
    assert_eq!(answer.status(), 503, "{}", answer.text());
    assert!(answer.header("retry-after").is_none());
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["kind"], "Status");
    // The same without a wish to watch is an ordinary request.
    let answer = server.ask("GET", path, &upgrade, b"").await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

#[tokio::test]
async fn openapi_is_told_in_the_form_that_is_asked_for() {
    let server = Server::start().await;
    let ask = async |accept: &str| {
        let answer = server
            .ask("GET", "/openapi/v2", &[("accept", accept)], b"")
            .await;
        assert_eq!(answer.status(), 200, "{accept}");
        answer
    };
    // As Terraform asks, and as somebody who takes anything.
    for accept in ["application/json", "*/*"] {
        let answer = ask(accept).await;
        let document: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(document["swagger"], "2.0");
        assert!(document["definitions"].as_object().unwrap().len() > 20);
    }
    // As a kubectl asks that knows no third version. It gives up on anything else.
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = ask(protobuf).await;
    let kind = answer.header("content-type").unwrap();
    assert_eq!(
        kind,
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    );
    // The first field of the message is the version of the document.
    assert!(answer.body.starts_with(b"\x0a\x032.0"));
    let holds = |text: &str| {
        answer
            .body
            .windows(text.len())
            .any(|it| it == text.as_bytes())
    };
    assert!(holds("dryRun") && holds("eventing.knative.dev"));
}
