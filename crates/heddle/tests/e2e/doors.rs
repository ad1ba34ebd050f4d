//! What strangers learn and may do at the two listeners: nothing, whatever name or whichever headers they come with.

use std::collections::BTreeMap;

use http::{Request, StatusCode};

use crate::harness::{Answer, Server, read};

fn scrape_token(server: &Server) -> String {
    read(&server.data().join("metrics-token")).trim().to_owned()
}

async fn ask(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = headers
        .iter()
        .fold(Request::get(path), |request, (name, value)| {
            request.header(*name, *value)
        });
    server.send(request.body(Vec::new()).unwrap()).await
}

#[tokio::test]
async fn metrics_ask_for_a_token_that_is_good_for_nothing_else() {
    let server = Server::start().await;
    let refused = ask(&server, "/metrics", &[]).await;
    assert_eq!(refused.code, StatusCode::UNAUTHORIZED);
    assert!(refused.body.contains("metrics-token"), "{}", refused.body);
    assert!(!refused.body.contains("# TYPE"), "{}", refused.body);
    let wrong = ask(&server, "/metrics", &[("authorization", "Bearer x")]).await;
    assert_eq!(wrong.code, StatusCode::UNAUTHORIZED);

    let scraper = format!("Bearer {}", scrape_token(&server));
    for token in [&scraper, &format!("Bearer {}", server.token())] {
        let answer = ask(&server, "/metrics", &[("authorization", token)]).await;
        assert_eq!(answer.code, StatusCode::OK);
        assert!(answer.body.contains("# TYPE "), "{}", answer.body);
    }
    let scraper = [("authorization", scraper.as_str())];
    for path in [
        "/api/v1/namespaces",
        "/api/v1/secrets",
        "/heddle/v1/accounts",
    ] {
        let answer = ask(&server, path, &scraper).await;
        assert_eq!(
            answer.code,
            StatusCode::FORBIDDEN,
            "{path}: {}",
            answer.body
        );
    }
    let answer = ask(&server, "/v2/catalog", &scraper).await;
    assert_eq!(answer.code, StatusCode::UNAUTHORIZED, "{}", answer.body);
}

/// One request, byte by byte, over a plain connection.
pub(crate) async fn raw(base: &str, request: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let address = base.strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = heddle_rt::net::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_page_that_had_its_name_rebound_to_this_machine_is_answered_by_neither_listener() {
    let server = Server::start_with("info", &["--tls-name", "heddle.example.org"]).await;
    let port = server.control.rsplit(':').next().unwrap();
    let token = server.token();
    let cases = [
        ("127.0.0.1", true),
        ("localhost", true),
        ("[::1]", true),
        ("heddle.example.org", true),
        ("evil.example", false),
        ("localhost.evil.example", false),
        ("127.0.0.1.evil.example", false),
    ];
    for (host, known) in cases {
        for path in [
            "/livez",
            "/metrics",
            "/api/v1/namespaces",
            "/v2/catalog",
            "/ui/",
            "/heddle/v1/session",
            "/nothing",
        ] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
            );
            let answer = raw(&server.control, &request).await;
            let misdirected = answer.starts_with("HTTP/1.1 421 ");
            assert_eq!(misdirected, !known, "{host} {path}: {answer}");
            assert!(known || answer.contains("--tls-name"), "{answer}");
        }
        let request = format!(
            "POST /shop/events HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let answer = raw(&server.events, &request).await;
        let misdirected = answer.starts_with("HTTP/1.1 421 ");
        assert_eq!(misdirected, !known, "{host}: {answer}");
    }
    // A target that names its own host counts as much as the header.
    let absolute =
        "GET http://evil.example/livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer = raw(&server.control, absolute).await;
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
}

/// Sends a request whose body comes late, and another one behind it; gives what was answered to both.
async fn answers_to_late_body(server: &Server, base: &str, head: &str, next: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let address = base.strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = heddle_rt::net::connect(address).await.unwrap();
    let head = format!("{head}content-length: 1000\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // Meanwhile the server has seen the head, as far as anybody can tell.
    for _ in 0..5 {
        assert_eq!(server.get("/livez").await.code, StatusCode::OK);
    }
    let rest = format!("{}{next}connection: close\r\n\r\n", "x".repeat(1000));
    // Who was cut off may see that here or below.
    stream.write_all(rest.as_bytes()).await.ok();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).await.ok();
    String::from_utf8_lossy(&answers).into_owned()
}

#[tokio::test]
async fn who_is_refused_at_the_door_is_heard_out_and_may_go_on() {
    let server = Server::start().await;
    let control = "GET /livez HTTP/1.1\r\nhost: localhost\r\n";
    let events =
        "OPTIONS /shop/events HTTP/1.1\r\nhost: localhost\r\nwebhook-request-origin: x\r\n";
    let publish = "POST /shop/events HTTP/1.1\r\n";
    let create = "POST /api/v1/namespaces HTTP/1.1\r\n";
    let bind = "PUT /v2/service_instances/i HTTP/1.1\r\n";
    let cases = [
        (&server.events, publish, "host: evil.example\r\n", 421),
        (
            &server.events,
            publish,
            "host: localhost\r\nauthorization: Bearer x\r\n",
            401,
        ),
        (
            &server.events,
            publish,
            "host: localhost\r\nimpersonate-user: jane\r\n",
            403,
        ),
        // Behind the door, by the mesh.
        (
            &server.events,
            "POST /nowhere HTTP/1.1\r\n",
            "host: localhost\r\n",
            404,
        ),
        (
            &server.events,
            "PUT /shop/events HTTP/1.1\r\n",
            "host: localhost\r\n",
            405,
        ),
        (&server.events, publish, "host: localhost\r\n", 404),
        (&server.control, create, "host: evil.example\r\n", 421),
        (&server.control, create, "host: localhost\r\n", 401),
        (&server.control, bind, "host: localhost\r\n", 401),
    ];
    for (base, line, headers, status) in cases {
        let next = if *base == server.events {
            events
        } else {
            control
        };
        let answers = answers_to_late_body(&server, base, &format!("{line}{headers}"), next).await;
        let first = format!("HTTP/1.1 {status} ");
        assert!(answers.starts_with(&first), "{line}{headers}: {answers}");
        assert!(
            answers.contains("HTTP/1.1 200 "),
            "{line}{headers}: {answers}"
        );
    }
}

#[tokio::test]
async fn an_impersonating_proxy_makes_nobody_administrator_at_any_door() {
    let server = Server::start().await;
    let admin = format!("Bearer {}", server.token());
    let jane = [
        ("authorization", admin.as_str()),
        ("impersonate-user", "jane"),
    ];
    for path in [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/secrets",
        "/apis/applicationconnector.kyma-project.io/v1alpha1/applications",
        "/heddle/v1/accounts",
        "/metrics",
    ] {
        let own = ask(&server, path, &jane[..1]).await;
        assert_eq!(own.code, StatusCode::OK, "{path}: {}", own.body);
        let answer = ask(&server, path, &jane).await;
        assert_eq!(
            answer.code,
            StatusCode::FORBIDDEN,
            "{path}: {}",
            answer.body
        );
        assert!(answer.body.contains("jane"), "{path}: {}", answer.body);
    }
    let viewer = [
        jane[0],
        jane[1],
        ("impersonate-group", "system:heddle:viewers"),
    ];
    let seen = ask(&server, "/api/v1/namespaces", &viewer).await;
    assert_eq!(seen.code, StatusCode::OK, "{}", seen.body);
    let secret = ask(&server, "/api/v1/secrets", &viewer).await;
    assert_eq!(secret.code, StatusCode::FORBIDDEN, "{}", secret.body);

    // Platforms and publishers have no right to it either; nor is the wish ignored.
    let platform = ask(&server, "/v2/catalog", &jane).await;
    assert_eq!(platform.code, StatusCode::UNAUTHORIZED, "{}", platform.body);
    let known: serde_json::Value =
        serde_json::from_str(&read(&server.data().join("osb-credentials.json"))).unwrap();
    let pair = format!(
        "{}:{}",
        known["username"].as_str().unwrap(),
        known["password"].as_str().unwrap()
    );
    let basic = format!(
        "Basic {}",
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pair)
    );
    let version = ("x-broker-api-version", "2.17");
    let own = ask(
        &server,
        "/v2/catalog",
        &[("authorization", &basic), version],
    )
    .await;
    assert_eq!(own.code, StatusCode::OK, "{}", own.body);
    let platform = [("authorization", basic.as_str()), version, jane[1]];
    let platform = ask(&server, "/v2/catalog", &platform).await;
    assert_eq!(platform.code, StatusCode::FORBIDDEN, "{}", platform.body);
    let publish = "POST /broker/default/default HTTP/1.1\r\nhost: localhost\r\nimpersonate-user: jane\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let answer = raw(&server.events, publish).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

/// What `promtool check metrics` would say about the older text format, and what the format itself asks for.
fn lint(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut families: BTreeMap<&str, (&str, bool)> = BTreeMap::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap_or((help, ""));
            let twice = families.insert(name, ("", !help.is_empty())).is_some();
            faults.extend(twice.then(|| format!("{name} is described twice")));
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap_or((kind, ""));
            match families.get_mut(name) {
                Some(family) => family.0 = kind,
                None => faults.push(format!("{name} has no HELP before its TYPE")),
            }
        } else if line.starts_with('#') || line.is_empty() {
            faults.push(format!("what is this: {line:?}"));
        } else {
            let series = line.split([' ', '{']).next().unwrap_or_default();
            let parts = ["", "_bucket", "_sum", "_count"];
            let known = parts.iter().any(|part| {
                let family = series
                    .strip_suffix(part)
                    .and_then(|name| families.get(name));
                family.is_some_and(|(kind, _)| part.is_empty() != (*kind == "histogram"))
            });
            faults.extend((!known).then(|| format!("{series} belongs to no family")));
            let value = line.rsplit(' ').next().unwrap_or_default();
            faults.extend(
                value
                    .parse::<f64>()
                    .is_err()
                    .then(|| format!("no number: {line}")),
            );
        }
    }
    for (name, (kind, has_help)) in families {
        let is = |wrong: bool, what: &str| wrong.then(|| format!("{name}: {what}"));
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        // What every process tells has the names that Prometheus gave it.
        let known = name.starts_with("heddle_") || name.starts_with("process_");
        faults.extend(is(!has_help, "no help"));
        faults.extend(is(!plain || !known, "no name of ours"));
        faults.extend(is(
            !["counter", "gauge", "histogram"].contains(&kind),
            "no type",
        ));
        faults.extend(is(
            (kind == "counter") != name.ends_with("_total"),
            "_total is for counters, and they have it",
        ));
        let units = [
            "_ms",
            "_milliseconds",
            "_minutes",
            "_hours",
            "_kb",
            "_mb",
            "_kilobytes",
            "_megabytes",
            "_percent",
        ];
        let stem = name.strip_suffix("_total").unwrap_or(name);
        faults.extend(is(
            units.iter().any(|unit| stem.ends_with(unit)),
            "seconds and bytes are the units",
        ));
        faults.extend(is(
            kind == "histogram" && !name.ends_with("_seconds"),
            "a histogram of something else than seconds",
        ));
        faults.extend(is(
            ["gauge", "counter", "histogram"]
                .iter()
                .any(|kind| name.contains(kind)),
            "its type is in its name",
        ));
    }
    faults
}

#[tokio::test]
async fn metrics_are_told_in_the_format_that_is_asked_for() {
    let server = Server::start().await;
    let token = format!("Bearer {}", scrape_token(&server));
    let formats = [
        ("application/openmetrics-text; version=1.0.0", true),
        ("text/plain; version=0.0.4", false),
        ("*/*", false),
    ];
    for (accept, open) in formats {
        let answer = ask(
            &server,
            "/metrics",
            &[("authorization", &token), ("accept", accept)],
        )
        .await;
        assert_eq!(answer.code, StatusCode::OK);
        assert_eq!(answer.body.ends_with("# EOF\n"), open, "{accept}");
        let counter = "# TYPE heddle_api_requests_total counter\n";
        assert_eq!(answer.body.contains(counter), !open, "{accept}");
        assert!(
            answer.body.contains("\nheddle_api_requests_total{"),
            "{accept}"
        );
        if !open {
            assert_eq!(lint(&answer.body), Vec::<String>::new());
        }
    }
    let wrong = "# TYPE heddle_x counter\nheddle_x 1\n# HELP heddle_y_ms Y.\n# TYPE heddle_y_ms gauge\nheddle_y_ms x\n";
    assert_eq!(lint(wrong).len(), 4, "{:?}", lint(wrong));
}
