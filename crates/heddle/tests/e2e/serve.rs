//! Starting, staying and ending.

use std::os::unix::fs::PermissionsExt as _;

use http::{Request, StatusCode};
use serde_json::json;

use crate::harness::{Outcome, Server, eventually, heddle, read};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(server: &Server, name: &str) {
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).to_string();
    let request = Request::post(CONFIG_MAPS)
        .header("content-type", "application/json")
        .body(body.into_bytes())
        .unwrap();
    let answer = server.admin(request).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.body);
}

async fn exists(server: &Server, name: &str) -> bool {
    let request = Request::get(format!("{CONFIG_MAPS}/{name}"))
        .body(Vec::new())
        .unwrap();
    server.admin(request).await.code == StatusCode::OK
}

#[tokio::test]
async fn the_files_for_clients_have_their_modes_and_are_kept_over_restarts() {
    let mut server = Server::start().await;
    let mode = |name: &str| {
        std::fs::metadata(server.data().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("admin.kubeconfig"), 0o600);
    assert_eq!(mode("osb-credentials.json"), 0o600);
    assert_eq!(mode("metrics-token"), 0o600);
    assert_eq!(mode("pki/ca.key"), 0o600);
    let credentials = read(&server.data().join("osb-credentials.json"));
    let parsed: serde_json::Value = serde_json::from_str(&credentials).unwrap();
    assert!(
        parsed["username"].is_string() && parsed["password"].as_str().unwrap().len() >= 32,
        "{parsed}"
    );
    let endpoints: serde_json::Value =
        serde_json::from_str(&read(&server.data().join("endpoints.json"))).unwrap();
    assert_eq!(
        endpoints,
        json!({"control": server.control, "events": server.events})
    );

    let scraping = read(&server.data().join("metrics-token"));
    let (token, authority, first) = (
        server.token(),
        read(&server.data().join("pki/ca.crt")),
        server.control.clone(),
    );
    assert!(server.terminate().await.success());
    server.launch().await;
    assert_eq!(server.token(), token);
    assert_eq!(read(&server.data().join("metrics-token")), scraping);
    assert_eq!(read(&server.data().join("pki/ca.crt")), authority);
    assert_eq!(
        read(&server.data().join("osb-credentials.json")),
        credentials
    );
    assert_ne!(
        server.control, first,
        "port 0 picks a free port, and the old one is not free yet"
    );
    // The kubeconfig follows the port: kubectl's way in still works.
    server.heddle(&["get", "namespaces"]).ok();
}

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused_and_harms_nothing() {
    let server = Server::start().await;
    let second = Outcome::of(
        server
            .command()
            .stderr(std::process::Stdio::piped())
            .output()
            .unwrap(),
    );
    assert_eq!(second.code, Some(4), "{second:?}");
    assert!(
        second.err.contains("is used by another heddle"),
        "{}",
        second.err
    );
    assert!(
        second.err.contains(&server.data().display().to_string()),
        "{}",
        second.err
    );
    create(&server, "still-here").await;
}

#[tokio::test]
async fn a_killed_server_comes_back_with_what_it_acknowledged() {
    let mut server = Server::start().await;
    create(&server, "kept").await;
    server.kill();
    server.launch().await;
    assert!(exists(&server, "kept").await);
}

#[tokio::test]
async fn a_signal_ends_it_cleanly_even_while_somebody_watches() {
    let mut server = Server::start().await;
    let mut watch = heddle()
        .args(["get", "configmaps", "-w"])
        .env("KUBECONFIG", server.kubeconfig())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the watch to be open", async || {
        has_watcher(&server).await.then_some(())
    })
    .await;
    let ended = server.terminate().await;
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(ended.code(), Some(0), "{}", server.log());
    assert!(!server.log().contains("were cut off"), "{}", server.log());
}

/// The metrics count those who watch, apart from heddle's own controllers that were there before.
async fn has_watcher(server: &Server) -> bool {
    let metrics = server.metrics().await;
    metrics
        .lines()
        .any(|line| line.contains("watch") && line.contains("configmaps"))
}

#[tokio::test]
async fn health_needs_no_credentials_and_unknown_paths_are_a_status() {
    let server = Server::start().await;
    for path in ["/livez", "/readyz", "/healthz"] {
        let answer = server.get(path).await;
        assert_eq!(
            (answer.code, answer.body.as_str()),
            (StatusCode::OK, "ok"),
            "{path}"
        );
    }
    // The list of paths names what there is, so it is not for strangers.
    assert_eq!(server.get("/").await.code, StatusCode::UNAUTHORIZED);
    for path in ["/nothing", "/apix", "/v3/catalog", "/livez/x"] {
        let answer = server.get(path).await;
        assert_eq!(answer.code, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(
            (answer.json()["kind"].clone(), answer.json()["code"].clone()),
            (json!("Status"), json!(404)),
            "{path}"
        );
    }
}

#[test]
fn an_address_that_others_can_reach_needs_a_flag_and_the_refusal_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let refused = heddle()
        .args(["serve", "--listen", "0.0.0.0:0", "--data-dir"])
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    let refused = Outcome::of(refused);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("--allow-remote"), "{}", refused.err);
    assert!(
        !folder.path().join("data").exists(),
        "a refused start leaves nothing behind"
    );
}

#[test]
fn the_effective_configuration_can_be_shown_without_starting() {
    let shown = heddle()
        .args(["serve", "--print-config", "--listen", "127.0.0.1:7"])
        .env("HEDDLE_LOG", "debug")
        .output()
        .unwrap();
    let shown = Outcome::of(shown).ok();
    assert!(
        shown.contains("listen: \"127.0.0.1:7\"  # from a flag\n"),
        "{shown}"
    );
    assert!(
        shown.contains("logFilter: \"debug\"  # from the environment\n"),
        "{shown}"
    );
    assert!(
        shown.contains("dataDir: \"./heddle-data\"  # default\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn the_ready_line_tells_people_what_to_do() {
    use std::io::BufRead as _;
    let folder = tempfile::tempdir().unwrap();
    let mut child = heddle()
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let first = lines.next().unwrap();
    let second = lines.find(|line| line.contains("KUBECONFIG")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        first.starts_with("heddle is ready at http://127.0.0.1:"),
        "{first}"
    );
    assert!(!first.contains('\x1b'), "no colours in a pipe");
    let heddle = std::path::Path::new(env!("CARGO_BIN_EXE_heddle"));
    assert_eq!(
        second.trim(),
        format!(
            "export PATH={}:$PATH KUBECONFIG={}",
            heddle.parent().unwrap().display(),
            folder.path().join("admin.kubeconfig").display()
        ),
        "nobody who started it with cargo has a command of that name"
    );
}

/// Huge pages, which the allocator asks for, double the memory of a server at rest.
#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::disallowed_methods,
    reason = "what the kernel tells is no file of ours and has no length"
)]
async fn a_server_takes_small_pages() {
    let server = Server::start().await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    assert!(status.contains("THP_enabled:\t0"), "{status}");
}
