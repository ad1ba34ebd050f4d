//! Who may do what when nobody configured anything.

use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use super::stage::{self, BROKER, event};
use super::wire::Wire;
use crate::harness::{Outcome, Server, heddle};

#[tokio::test]
async fn questions_about_events_need_the_token() {
    let server = Server::start().await;
    let mut wire = Wire::to(&server.control);
    let questions = [
        ("GET", "/heddle/v1/accounts"),
        ("GET", "/heddle/v1/trace?id=1"),
        ("GET", "/heddle/v1/dead-letters"),
        ("GET", "/heddle/v1/dead-letters/1"),
        ("POST", "/heddle/v1/dead-letters/redrive"),
        ("POST", "/heddle/v1/dead-letters/discard"),
        ("POST", "/heddle/v1/explain"),
        ("GET", "/heddle/v1/nothing"),
    ];
    for (method, path) in questions {
        for token in [
            None,
            Some("Bearer wrong"),
            Some("Bearer "),
            Some("Basic YTpi"),
        ] {
            let headers: Vec<(&str, &str)> = token
                .map(|token| ("authorization", token))
                .into_iter()
                .collect();
            let answer = wire
                .ask(method, path, &headers, b"{\"all\": true}")
                .await
                .unwrap();
            assert_eq!(
                answer.status(),
                401,
                "{method} {path} with {token:?}: {}",
                answer.text()
            );
            assert_eq!(answer.json()["code"], "unauthorized");
        }
    }
    let _: Value = server.question("accounts").await;
}

#[test]
fn an_events_listener_that_others_can_reach_needs_a_flag_and_the_refusal_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let refused = heddle()
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--events",
            "0.0.0.0:0",
            "--data-dir",
        ])
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    let refused = Outcome::of(refused);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("--allow-remote"), "{}", refused.err);
    assert!(
        !folder.path().join("data").exists(),
        "a refused start leaves nothing behind"
    );
}

/// A client that trusts the server's authority and shows no credentials of its own.
async fn stranger(server: &Server) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.unwrap();
    config.auth_info = Default::default();
    config.cluster_url = server.events.parse().unwrap();
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn publishing_from_elsewhere_needs_tls_and_the_token() {
    let server = Server::start_with("debug", &["--allow-remote", "--events", "0.0.0.0:0"]).await;
    stage::set_up(&server).await;
    assert!(server.events.starts_with("https://"), "{}", server.events);
    let client = stranger(&server).await;
    let publish = async |path: &str, token: Option<&str>| {
        let mut request = Request::post(path);
        for (name, value) in event("1", "ping") {
            request = request.header(name, value);
        }
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).unwrap();
        let response = client.send(request).await.unwrap();
        let status = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        status
    };
    let token = server.token();
    let in_query = |token: &str| format!("{BROKER}?access_token={token}");
    assert_eq!(publish(BROKER, None).await, 401);
    assert_eq!(publish(BROKER, Some("wrong")).await, 401);
    assert_eq!(publish(&in_query("wrong"), None).await, 401);
    assert_eq!(publish(BROKER, Some(&token)).await, 202);
    assert_eq!(publish(&in_query(&token), None).await, 202);

    let plain = server.events.replace("https://", "http://");
    let mut wire = Wire::to(&plain);
    let answer = wire.ask("POST", BROKER, &event("2", "ping"), b"").await;
    assert!(
        answer
            .as_ref()
            .map_or(true, |answer| answer.status() >= 400),
        "plain HTTP was served: {answer:?}"
    );
    let accounts = server.accounts().await;
    assert_eq!(accounts.log.next - accounts.log.first, 2);
}
