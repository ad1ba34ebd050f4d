//! People with tokens of their own, at the real server: what they may, until it is taken back.

use http::{Request, StatusCode};

use crate::harness::{Answer, Server, eventually};

async fn ask(server: &Server, token: &str, path: &str) -> Answer {
    let request = Request::get(path).header("authorization", format!("Bearer {token}"));
    server.send(request.body(Vec::new()).unwrap()).await
}

fn make(server: &Server, args: &[&str]) -> String {
    let args: Vec<&str> = ["token", "create"].iter().chain(args).copied().collect();
    server.heddle(&args).ok().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lets_somebody_in_as_far_as_it_says_until_it_is_revoked() {
    let server = Server::start().await;
    server
        .heddle(&["apply", "-f", &crate::harness::examples()])
        .ok();
    let viewer = make(&server, &["ada", "--role", "viewer"]);
    let scoped = make(
        &server,
        &["bob", "--role", "operator", "-n", "team-a", "--ttl", "1d"],
    );
    for token in [&viewer, &scoped] {
        eventually("the token is good", async || {
            let answer = ask(&server, token, "/heddle/v1/accounts").await;
            (answer.code == StatusCode::OK).then_some(())
        })
        .await;
        let answer = ask(&server, token, "/api/v1/namespaces/team-a/secrets").await;
        assert_eq!(answer.code, StatusCode::FORBIDDEN, "{}", answer.body);
        let answer = ask(&server, token, "/heddle/v1/backup").await;
        assert_eq!(answer.code, StatusCode::FORBIDDEN, "{}", answer.body);
    }
    let path = "/apis/eventing.knative.dev/v1/triggers";
    assert_eq!(ask(&server, &viewer, path).await.code, StatusCode::OK);
    assert_eq!(
        ask(&server, &scoped, path).await.code,
        StatusCode::FORBIDDEN
    );
    let path = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers";
    assert_eq!(ask(&server, &scoped, path).await.code, StatusCode::OK);

    let listed = server.heddle(&["token", "list"]).ok();
    assert!(listed.contains("ada: viewer everywhere"), "{listed}");
    assert!(
        listed.contains("bob: operator in team-a, until"),
        "{listed}"
    );
    let kept = server.heddle(&["get", "secrets", "-n", "heddle-system", "-o", "json"]);
    assert!(
        !kept.ok().contains(&viewer),
        "the token itself is kept nowhere"
    );

    server.heddle(&["token", "revoke", "ada"]).ok();
    eventually("the token is good no longer", async || {
        let answer = ask(&server, &viewer, "/heddle/v1/accounts").await;
        (answer.code == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
    assert_eq!(
        ask(&server, &scoped, "/heddle/v1/accounts").await.code,
        StatusCode::OK
    );
    let refused = server.heddle(&["token", "revoke", "ada"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_in_data_is_shown_to_administrators_only() {
    let secret = "4711-0815";
    let mut server = Server::start().await;
    server
        .heddle(&["apply", "-f", &crate::harness::examples()])
        .ok();
    let token = make(&server, &["olga", "--role", "operator", "--payloads"]);
    let data = format!(r#"{{"card":{{"number":"{secret}","kind":"debit"}}}}"#);
    let publish = [
        "publish",
        "--broker",
        "team-a/default",
        "--id",
        "paid",
        "--type",
        "order.paid",
        "--data",
        &data,
    ];
    eventually("it comes in", async || {
        (server.heddle(&publish).code == Some(0)).then_some(())
    })
    .await;
    server.terminate().await;
    server.launch_configured("uiMask: [/card/number]\n").await;
    for path in ["/heddle/v1/events/1", "/heddle/v1/events/1/data"] {
        eventually("the token is good again", async || {
            let answer = ask(&server, &token, path).await;
            (answer.code == StatusCode::OK).then_some(())
        })
        .await;
        let shown = ask(&server, &token, path).await.body;
        assert!(
            shown.contains("debit") && !shown.contains(secret),
            "{shown}"
        );
    }
    let all = server.heddle(&["events", "show", "1"]).ok();
    assert!(all.contains(secret), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_page_has_nothing_of_it_and_answers_questions_all_the_same() {
    let server = Server::start_with("warn", &["--no-ui"]).await;
    for (method, path) in [
        ("GET", "/ui"),
        ("GET", "/ui/"),
        ("GET", "/ui/login"),
        ("POST", "/ui/login"),
        ("POST", "/ui/logout"),
        ("GET", "/ui/events?q=a"),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("sec-fetch-site", "same-origin");
        let answer = server.send(request.body(Vec::new()).unwrap()).await;
        assert_eq!(answer.code, StatusCode::NOT_FOUND, "{method} {path}");
    }
    // A browser that asks for the root is led nowhere.
    let root = Request::get("/").header("accept", "text/html");
    let root = server.send(root.body(Vec::new()).unwrap()).await;
    assert_ne!(root.code, StatusCode::SEE_OTHER, "{}", root.body);
    let health = ask(&server, &server.token(), "/heddle/v1/health").await;
    assert_eq!(health.code, StatusCode::OK, "{}", health.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_logs_in_once_and_is_in_no_log() {
    let server = Server::start_with("debug", &[]).await;
    let link = server.heddle(&["ui", "--no-open"]).ok();
    let (page, code) = link.trim().split_once("#code=").unwrap();
    assert_eq!(page, format!("{}/ui/", server.control));
    let log_in = async || {
        let body = serde_json::json!({"code": code}).to_string();
        let request =
            Request::post("/heddle/v1/session").header("content-type", "application/json");
        server.send(request.body(body.into_bytes()).unwrap()).await
    };
    let answer = log_in().await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.body);
    let told = answer.json();
    assert_eq!(told["role"], "administrator");
    assert_eq!(log_in().await.code, StatusCode::UNAUTHORIZED, "again");
    let log = server.log();
    for secret in [code, told["page"].as_str().unwrap(), &server.token()] {
        assert!(!log.contains(secret), "{log}");
    }
}
