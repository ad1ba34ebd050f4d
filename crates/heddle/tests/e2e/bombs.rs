//! Values that are meant to hurt: nested without end, larger than any number, named like nothing that exists. Every door
//! answers them, and answers the next request.

use http::StatusCode;
use serde_json::{Value, json};

use crate::events::stage::{self, BROKER, TEAM};
use crate::events::wire::Wire;
use crate::harness::{Server, heddle, read, write};

const CONFIG_MAPS: &str = "/api/v1/namespaces/team-a/configmaps";

/// An answer is one that says no, or yes, and not that something broke.
async fn ask(server: &Server, method: &str, path: &str, kind: &str, body: &str) -> u16 {
    let headers = [("content-type", kind)];
    let answer = server.ask(method, path, &headers, body.as_bytes()).await;
    let status = answer.status();
    assert!(status < 500, "{method} {path}: {status} {}", answer.text());
    status
}

/// JSON that is nested this deep, in lists or in objects.
fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

fn deep() -> [String; 2] {
    [nested("[", "]", 100_000), nested("{\"a\":", "}", 100_000)]
}

#[tokio::test]
async fn values_nested_without_end_are_refused_at_every_door() {
    let server = stage::with_broker().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": TEAM}});
    let made = ask(
        &server,
        "POST",
        CONFIG_MAPS,
        "application/json",
        &map.to_string(),
    )
    .await;
    assert_eq!(made, 201);
    let one = format!("{CONFIG_MAPS}/m");
    let apply = format!("{one}?fieldManager=e2e");
    for deep in deep() {
        let body = format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"d\"}},\"data\":{deep}}}"
        );
        for (method, path, kind) in [
            ("POST", CONFIG_MAPS, "application/json"),
            ("POST", CONFIG_MAPS, "application/yaml"),
            ("PUT", &one, "application/json"),
            ("PATCH", &one, "application/merge-patch+json"),
            ("PATCH", &one, "application/strategic-merge-patch+json"),
            ("PATCH", &apply, "application/apply-patch+yaml"),
            ("DELETE", &one, "application/json"),
            ("POST", "/heddle/v1/explain", "application/json"),
            (
                "POST",
                "/heddle/v1/dead-letters/redrive",
                "application/json",
            ),
            ("PUT", "/v2/service_instances/i", "application/json"),
        ] {
            let status = ask(&server, method, path, kind, &body).await;
            assert!(
                (400..500).contains(&status),
                "{method} {path} {kind}: {status}"
            );
        }
        let patch = format!("[{{\"op\":\"add\",\"path\":\"/data\",\"value\":{deep}}}]");
        let status = ask(
            &server,
            "PATCH",
            &one,
            "application/json-patch+json",
            &patch,
        )
        .await;
        assert!((400..500).contains(&status), "{status}");
        for (kind, body) in [
            (
                "application/cloudevents+json",
                format!(
                    "{{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\",\"data\":{deep}}}"
                ),
            ),
            ("application/cloudevents-batch+json", deep.clone()),
        ] {
            let mut wire = Wire::to(&server.events);
            let answer = wire
                .ask("POST", BROKER, &[("content-type", kind)], body.as_bytes())
                .await
                .unwrap();
            assert!((400..500).contains(&answer.status()), "{}", answer.text());
        }
    }
    // Flow and block style of YAML, at the server and on the command line.
    let flow = format!("data: {}", nested("[", "]", 100_000));
    let block: String = (0..1_000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    for yaml in [&flow, &block] {
        let status = ask(
            &server,
            "PATCH",
            &apply,
            "application/apply-patch+yaml",
            yaml,
        )
        .await;
        assert!((400..500).contains(&status), "{status}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep.yaml");
        write(&file, yaml);
        let mut command = heddle();
        command
            .args(["apply", "-f"])
            .arg(&file)
            .env("KUBECONFIG", server.kubeconfig());
        let ended = command.output().unwrap();
        assert!(
            ended.status.code().is_some_and(|code| code != 0),
            "{ended:?}"
        );
    }
    // Nested by thousands of operations, each of them small.
    let level = [
        json!({"op": "add", "path": "/n", "value": {}}),
        json!({"op": "move", "from": "/data", "path": "/n/x"}),
        json!({"op": "move", "from": "/n", "path": "/data"}),
    ];
    let mut operations = vec![json!({"op": "add", "path": "/data", "value": {}})];
    operations.extend(level.iter().cycle().take(9_990).cloned());
    let operations = Value::Array(operations).to_string();
    let status = ask(
        &server,
        "PATCH",
        &one,
        "application/json-patch+json",
        &operations,
    )
    .await;
    assert!((400..500).contains(&status), "{status}");
    assert_eq!(server.get("/livez").await.code, StatusCode::OK);
}

const NUMBERS: [&str; 9] = [
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-1",
    "-9223372036854775808",
    "1e308",
    "-1e308",
    "NaN",
    "0.5",
];

#[tokio::test]
async fn numbers_beyond_all_bounds_are_refused_or_cut_short_at_every_door() {
    let server = stage::with_broker().await;
    for number in NUMBERS {
        for path in [
            format!("{CONFIG_MAPS}?limit={number}"),
            format!("{CONFIG_MAPS}?timeoutSeconds={number}"),
            format!("{CONFIG_MAPS}?resourceVersion={number}&resourceVersionMatch=NotOlderThan"),
            format!("{CONFIG_MAPS}?limit=1&continue={number}"),
            format!("/heddle/v1/dead-letters?limit={number}&after={number}"),
            format!("/v2/service_instances/i/last_operation?operation={number}"),
        ] {
            let headers = [("x-broker-api-version", "2.17")];
            let answer = server.ask("GET", &path, &headers, b"").await;
            // 504 is how a version of the future is refused.
            let fine = answer.status() < 500 || answer.status() == 504;
            assert!(fine, "{path}: {} {}", answer.status(), answer.text());
        }
        // A watch goes on; its head is all that is asked for.
        let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds={number}");
        let head = watch_head(&server, &path).await;
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(status == 200 || status == 400, "{path}: {head}");
        let options = format!("{{\"gracePeriodSeconds\":{number}}}");
        ask(
            &server,
            "DELETE",
            &format!("{CONFIG_MAPS}/none"),
            "application/json",
            &options,
        )
        .await;
        let trigger = json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
            "metadata": {"name": "n", "namespace": TEAM, "annotations": {
                "heddle.dev/max-in-flight": number, "heddle.dev/backlog-bytes-max": format!("{number}Ti"),
                "heddle.dev/backlog-age-max": format!("P{number}D"),
            }},
            "spec": {"broker": "default", "subscriber": {"uri": "http://127.0.0.1:1"}, "delivery": {
                "timeout": format!("PT{number}S"), "backoffDelay": format!("P{number}D"), "retry": 0,
            }},
        });
        let path = format!(
            "/apis/eventing.knative.dev/v1/namespaces/{TEAM}/triggers/n?fieldManager=e&force=true"
        );
        ask(
            &server,
            "PATCH",
            &path,
            "application/apply-patch+yaml",
            &trigger.to_string(),
        )
        .await;
        let raw = trigger
            .to_string()
            .replace("\"retry\":0", &format!("\"retry\":{number}"));
        ask(
            &server,
            "PATCH",
            &path,
            "application/apply-patch+yaml",
            &raw,
        )
        .await;
        let event = [
            ("ce-specversion", "1.0"),
            ("ce-id", "1"),
            ("ce-source", "s"),
            ("ce-type", "t"),
            ("ce-knativebrokerttl", number),
        ];
        let mut wire = Wire::to(&server.events);
        let answer = wire.ask("POST", BROKER, &event, b"").await.unwrap();
        assert!(answer.status() < 500, "{number}: {}", answer.text());
    }
    assert_eq!(server.get("/livez").await.code, StatusCode::OK);
    assert_eq!(server.get("/readyz").await.code, StatusCode::OK);
}

/// The status line of the answer to a watch.
async fn watch_head(server: &Server, path: &str) -> String {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    let address = server
        .control
        .strip_prefix("http://")
        .unwrap()
        .parse()
        .unwrap();
    let mut stream = heddle_rt::net::connect(address).await.unwrap();
    let token = server.token();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut line = String::new();
    tokio::io::BufReader::new(stream)
        .read_line(&mut line)
        .await
        .unwrap();
    assert!(
        !line.is_empty(),
        "{path}: the connection was closed\n{}",
        server.log()
    );
    line
}

#[tokio::test]
async fn paths_that_do_not_exist_leave_nothing_in_the_metrics() {
    let server = stage::with_broker().await;
    let kind = "application/json";
    for number in 0..50 {
        let name = format!("zzgarbage{number}");
        for path in [
            format!("/api/v1/{name}"),
            format!("/api/v1/{name}?limit=x"),
            format!("/api/v1/namespaces/{name}/{name}/{name}?timeoutSeconds=-1"),
            format!("/apis/{name}/{name}/{name}?watch=x"),
            format!("/apis/eventing.knative.dev/{name}/triggers?limit=x"),
            format!("/{name}"),
            format!("/v2/{name}"),
            format!("/osb/{name}/v2/catalog"),
            format!("/heddle/v1/{name}"),
        ] {
            for method in ["GET", "POST", "DELETE", "BREW"] {
                ask(&server, method, &path, kind, "{}").await;
            }
        }
        for path in [
            format!("/{name}/events"),
            format!("/broker/{name}/{name}"),
            format!("/{name}"),
        ] {
            let mut wire = Wire::to(&server.events);
            wire.ask("POST", &path, &[("ce-type", &name)], b"")
                .await
                .unwrap();
        }
    }
    let metrics = server.metrics().await;
    let minted: Vec<&str> = metrics
        .lines()
        .filter(|line| line.contains("zzgarbage"))
        .collect();
    assert!(minted.is_empty(), "{minted:#?}");
    let token = read(&server.data().join("metrics-token"));
    assert!(!metrics.contains(token.trim()));
}
