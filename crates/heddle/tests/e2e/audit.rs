//! Who changed what, on the real server: one line for each change by whatever door, none lost by a kill, none for a read.

use std::collections::BTreeMap;

use base64::Engine as _;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Answer, Server, eventually};
use crate::writers::Writers;

const ACKNOWLEDGED: usize = 200;

/// Every line that is kept, newest first, that fits.
async fn lines(server: &Server, query: &str) -> Vec<Value> {
    let request = Request::get(format!("/heddle/v1/audit?{query}"))
        .header("accept", "application/jsonl")
        .body(Vec::new());
    let answer = server.admin(request.unwrap()).await;
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.body);
    let lines = answer.body.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn ask(server: &Server, method: &str, path: &str, id: &str, token: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("x-request-id", id);
    server.send(request.body(b"{}".to_vec()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_change_is_missing_after_a_kill() {
    let mut server = Server::start_quietly().await;
    for round in 0..2 {
        let writers = Writers::on(&server, &format!("r{round}")).await;
        let killer = async {
            writers.until_acknowledged(ACKNOWLEDGED).await;
            server.kill();
        };
        let (written, ()) = tokio::join!(writers.run(8), killer);
        server.launch().await;
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for line in lines(&server, "verb=create&outcome=done&object=configmap/*").await {
            let name = line["name"].as_str().unwrap().to_owned();
            *told.entry(name).or_default() += 1;
        }
        for name in written.acknowledged.keys() {
            assert_eq!(told.get(name), Some(&1), "{name} after round {round}");
        }
    }
}

/// The writes that a server says it serves, as method and path.
async fn writes(server: &Server) -> Vec<(&'static str, String)> {
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = admin_json(server, "/apis").await;
    for group in groups["groups"].as_array().unwrap() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        versions.push(format!("/apis/{version}"));
    }
    let mut writes = Vec::new();
    for version in versions {
        let resources = admin_json(server, &version).await;
        for resource in resources["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            if name.starts_with("selfsubject") {
                continue;
            }
            let (plural, part) = match name.split_once('/') {
                Some((plural, part)) => (plural, format!("/{part}")),
                None => (name, String::new()),
            };
            let collection = match resource["namespaced"] == true {
                true => format!("{version}/namespaces/team-x/{plural}"),
                false => format!("{version}/{plural}"),
            };
            for verb in resource["verbs"].as_array().unwrap() {
                let (method, path) = match verb.as_str().unwrap() {
                    "create" => ("POST", collection.clone()),
                    "update" => ("PUT", format!("{collection}/nothing{part}")),
                    "patch" => ("PATCH", format!("{collection}/nothing{part}")),
                    "delete" => ("DELETE", format!("{collection}/nothing{part}")),
                    _ => continue,
                };
                writes.push((method, path));
            }
        }
    }
    writes
}

async fn admin_json(server: &Server, path: &str) -> Value {
    let request = Request::get(path).body(Vec::new()).unwrap();
    server.admin(request).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_that_changes_something_leaves_one_line() {
    let server = Server::start().await;
    let viewer = server.heddle(&["token", "create", "vera", "--role", "viewer"]);
    let viewer = viewer.ok().trim().to_owned();
    eventually("the token is good", async || {
        let answer = ask(&server, "GET", "/heddle/v1/accounts", "read", &viewer).await;
        (answer.code == StatusCode::OK).then_some(())
    })
    .await;
    let mut writes = writes(&server).await;
    assert!(writes.len() > 60, "{}", writes.len());
    let others = [
        ("POST", "/heddle/v1/dead-letters/redrive"),
        ("POST", "/heddle/v1/dead-letters/discard"),
        ("POST", "/heddle/v1/dead-letters/1/try"),
        ("POST", "/heddle/v1/dead-letters/operations/1/stop"),
        ("POST", "/heddle/v1/bundles"),
        ("POST", "/heddle/v1/session"),
        ("DELETE", "/heddle/v1/session"),
        ("POST", "/heddle/v1/session/codes"),
        ("POST", "/heddle/v1/nothing"),
        ("POST", "/ui/nothing"),
        ("PUT", "/v2/service_instances/i"),
        ("PATCH", "/v2/service_instances/i"),
        ("DELETE", "/osb/team-x/v2/service_instances/i"),
        ("PUT", "/v2/service_instances/i/service_bindings/b"),
        ("DELETE", "/v2/service_instances/i/service_bindings/b"),
    ];
    writes.extend(others.map(|(method, path)| (method, path.to_owned())));
    let mut asked = BTreeMap::new();
    for (number, (method, path)) in writes.iter().enumerate() {
        for (who, token) in [("root", &server.token()), ("vera", &viewer)] {
            let id = format!("{who}-{number}");
            let answer = ask(&server, method, path, &id, token).await;
            asked.insert(id, (method, path, answer.code));
        }
    }
    for path in [
        "/api/v1/namespaces",
        "/heddle/v1/health",
        "/v2/catalog",
        "/ui/",
    ] {
        ask(&server, "GET", path, "read", &server.token()).await;
    }
    let kept = lines(&server, "").await;
    for (id, (method, path, code)) in &asked {
        let told: Vec<&Value> = kept
            .iter()
            .filter(|line| line["requestId"] == **id)
            .collect();
        assert_eq!(told.len(), 1, "{method} {path} {id}: {told:?}");
        assert_eq!(told[0]["status"], code.as_u16(), "{method} {path} {id}");
        assert_eq!(told[0]["address"], "127.0.0.1");
        if code.as_u16() == 403 && id.starts_with("vera") {
            assert_eq!(told[0]["user"], "vera", "{method} {path}");
            assert_eq!(told[0]["outcome"], "refused");
        }
    }
    let forbidden = asked
        .values()
        .filter(|(.., code)| *code == StatusCode::FORBIDDEN);
    assert!(forbidden.count() > 60);
    assert!(
        !kept.iter().any(|line| line["requestId"] == "read"),
        "reads leave none"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_is_told_with_whom_it_acts_for_and_an_event_is_none() {
    let server = Server::start().await;
    let examples = crate::harness::examples();
    server.heddle(&["apply", "-f", &examples]).ok();
    let credentials: Value = serde_json::from_str(&crate::harness::read(
        &server.data().join("osb-credentials.json"),
    ))
    .unwrap();
    let credential = credentials.get(0).unwrap_or(&credentials);
    let encode = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
    let text = |key: &str| credential[key].as_str().unwrap().to_owned();
    let basic = encode(format!("{}:{}", text("username"), text("password")));
    let person = encode(json!({"user_id": "jo"}).to_string());
    let request = Request::delete("/osb/team-a/v2/service_instances/none?service_id=s&plan_id=p")
        .header("authorization", format!("Basic {basic}"))
        .header("x-broker-api-version", "2.17")
        .header(
            "x-broker-api-originating-identity",
            format!("cloudfoundry {person}"),
        )
        .body(Vec::new());
    let answer = server.send(request.unwrap()).await;
    let told = lines(&server, "verb=deprovision").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["user"], text("username"));
    assert_eq!(told[0]["onBehalfOf"], "cloudfoundry jo");
    assert_eq!(told[0]["namespace"], "team-a");
    assert_eq!(told[0]["name"], "none");
    assert_eq!(told[0]["status"], answer.code.as_u16());

    let before = lines(&server, "").await.len();
    eventually("the channel is there", async || {
        let published = server.heddle(&["publish", "shop", "--type", "order.created"]);
        (published.code == Some(0)).then_some(())
    })
    .await;
    assert_eq!(lines(&server, "").await.len(), before, "events are data");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_tells_it_to_people_and_a_backup_holds_it() {
    let server = Server::start().await;
    server
        .heddle(&["apply", "-f", &crate::harness::examples()])
        .ok();
    let told = server
        .heddle(&["audit", "--object", "application/shop"])
        .ok();
    assert!(told.contains("heddle-admin"), "{told}");
    assert!(
        told.contains("127.0.0.1") && told.contains("done 201"),
        "{told}"
    );
    let page = server.heddle(&["audit", "-o", "json", "--limit", "1"]).ok();
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    let next = page["next"].to_string();
    let older = server
        .heddle(&["audit", "--after", &next, "-o", "jsonl"])
        .ok();
    assert!(!older.is_empty());
    let wrong = server.heddle(&["audit", "--since", "soon"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");

    let folder = tempfile::tempdir().unwrap();
    let (copy, restored) = (folder.path().join("copy"), folder.path().join("restored"));
    let [copy, restored] = [&copy, &restored].map(|path| path.to_str().unwrap().to_owned());
    server.heddle(&["backup", &copy]).ok();
    let all = lines(&server, "").await;
    let of_backup = all.iter().find(|line| line["verb"] == "backup");
    assert_eq!(
        of_backup.unwrap()["outcome"],
        "done",
        "a copy of everything is told"
    );
    server
        .heddle(&["restore", &copy, "--data-dir", &restored])
        .ok();
    let mut again = Server::keeping(restored.into());
    again.launch().await;
    let kept = lines(&again, "object=application/shop").await;
    assert_eq!(kept, lines(&server, "object=application/shop").await);
}
