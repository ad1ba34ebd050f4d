//! The way through the tutorial, and what happens when somebody trips on it.

use heddle_rt::{DiskVfs, Vfs as _};
use serde_json::Value;

use crate::harness::{eventually, read};
use crate::registry::Registry;
use crate::{Bundle, TEAM, instance, shop, sync, until_offered};

/// Keeps a count of its actions, and hands out what it was told.
const KEEPER: &str = r#"
echo "$1" >> /data/actions
case "$1" in
  provision) echo '{"size": "made"}' > /out/credentials.json; echo "half done" > /out/progress ;;
  bind) echo "{\"path\": \"$BUNDLE_DATA_PATH/actions\", \"version\": \"$BUNDLE_VERSION\"}" > /out/credentials.json ;;
  deprovision) cat /data/actions ;;
esac
"#;

#[tokio::test]
async fn a_bundle_goes_from_a_directory_to_credentials_and_away_again_without_its_registry() {
    let mut registry = Registry::start().await;
    let server = shop(&registry).await;
    Bundle::new("keeper", "1.0.0", KEEPER).push(&server, &registry, "acme/keeper:latest");
    sync(&server);
    until_offered(&server, "keeper", true).await;
    server.provision(TEAM, "local-keeper", "k", &[]);
    let words = ["bind", "k", "-n", TEAM, "--id", "b", "-o", "json"];
    let bound: Value = serde_json::from_str(&server.heddle(&words).ok()).unwrap();
    let credentials = &bound["credentials"];
    assert_eq!(credentials["version"], "1.0.0", "{bound}");
    let path = std::path::PathBuf::from(credentials["path"].as_str().unwrap());
    assert_eq!(read(&path), "provision\nbind\n");
    registry.stop();
    server.heddle(&["unbind", "k", "b", "-n", TEAM]).ok();
    assert_eq!(read(&path), "provision\nbind\nunbind\n");
    server.deprovision(TEAM, "k");
    eventually("the instance's directory goes", async || {
        (!path.exists()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_bundle_that_is_pushed_to_heddle_itself_needs_no_registry() {
    let registry = Registry::start().await;
    let server = shop(&registry).await;
    let bundle = Bundle::new("pushed", "1.0.0", KEEPER);
    server.heddle(&["bundle", "lint", bundle.path()]).ok();
    server
        .heddle(&["bundle", "push", bundle.path(), "--as", "acme/pushed"])
        .ok();
    until_offered(&server, "pushed", true).await;
    for _ in 0..3 {
        sync(&server);
    }
    until_offered(&server, "pushed", true).await;
    server.provision(TEAM, "push-pushed", "p", &[]);
    server.deprovision(TEAM, "p");
}

#[tokio::test]
async fn a_failed_action_says_why_and_is_removed_like_any_other() {
    let registry = Registry::start().await;
    let server = shop(&registry).await;
    let script = r#"case "$1" in provision) echo "no disks left" > /out/message; exit 3 ;; esac"#;
    Bundle::new("broken", "1.0.0", script).push(&server, &registry, "acme/broken:latest");
    sync(&server);
    until_offered(&server, "broken", true).await;
    let words = [
        "provision",
        "local-broken",
        "-n",
        TEAM,
        "--id",
        "x",
        "--wait",
        "--timeout",
        "60",
    ];
    let failed = server.heddle(&words);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.err.contains("no disks left"), "{failed:?}");
    let explained = server
        .heddle(&["explain", "instance", "x", "-n", TEAM])
        .ok();
    assert!(explained.contains("no disks left"), "{explained}");
    server.deprovision(TEAM, "x");
}

/// The server dies while an action runs. The action goes on, ends once, and the platform hears of it.
#[tokio::test]
async fn kill_minus_nine_during_an_action_does_not_run_it_twice() {
    let registry = Registry::start().await;
    let mut server = shop(&registry).await;
    let script = r#"
echo "$1" >> /data/actions
[ "$1" = provision ] && { echo waiting > /out/progress; sleep 3; echo '{"a": 1}' > /out/credentials.json; }
exit 0
"#;
    Bundle::new("slow", "1.0.0", script).push(&server, &registry, "acme/slow:latest");
    sync(&server);
    until_offered(&server, "slow", true).await;
    server
        .heddle(&["provision", "local-slow", "-n", TEAM, "--id", "s"])
        .ok();
    let operation = |server: &crate::harness::Server| {
        let found = instance(server, "s");
        let id = found["spec"]["operation"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let state = found["status"]["operation"]["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (id, state)
    };
    eventually("the action runs", async || {
        (!instance(&server, "s")["status"]["run"]["id"].is_null()).then_some(())
    })
    .await;
    let (before, _) = operation(&server);
    server.kill();
    server.launch().await;
    eventually("the operation ends", async || {
        (operation(&server).1 == "succeeded").then_some(())
    })
    .await;
    assert_eq!(operation(&server).0, before, "it is the same operation");
    let volumes = find(&server.data(), "actions");
    let [actions] = volumes.as_slice() else {
        panic!("{volumes:?}")
    };
    assert_eq!(read(actions), "provision\n", "it ran once");
    server.deprovision(TEAM, "s");
}

/// All files of that name below a directory.
fn find(folder: &std::path::Path, name: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(find(&path, name));
        } else if path.file_name().is_some_and(|file| file == name) && DiskVfs.read(&path).is_ok() {
            found.push(path);
        }
    }
    found
}
