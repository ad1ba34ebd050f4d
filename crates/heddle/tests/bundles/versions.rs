//! Versions: an instance keeps the one it was made with, whatever becomes of the tag, until it is told to change.

use serde_json::Value;

use crate::harness::{Server, read};
use crate::registry::Registry;
use crate::{Bundle, TEAM, instance, shop, sync, until_offered};

/// Writes down which version does what.
const SCRIBE: &str = r#"echo "$1 $BUNDLE_VERSION" >> /data/log; echo "{\"log\": \"$BUNDLE_DATA_PATH/log\"}" > /out/credentials.json"#;

fn bind(server: &Server, id: &str, binding: &str) -> std::path::PathBuf {
    let words = ["bind", id, "-n", TEAM, "--id", binding, "-o", "json"];
    let bound: Value = serde_json::from_str(&server.heddle(&words).ok()).unwrap();
    bound["credentials"]["log"].as_str().unwrap().into()
}

#[tokio::test]
async fn an_instance_keeps_its_version_through_a_new_push_and_a_swept_registry() {
    let mut registry = Registry::start().await;
    let server = shop(&registry).await;
    Bundle::new("scribe", "1.0.0", SCRIBE).push(&server, &registry, "acme/scribe:latest");
    sync(&server);
    until_offered(&server, "scribe", true).await;
    server.provision(TEAM, "local-scribe", "first", &[]);
    Bundle::new("scribe", "1.1.0", SCRIBE).push(&server, &registry, "acme/scribe:latest");
    sync(&server);
    until_offered(&server, "1.1.0", true).await;
    server.provision(TEAM, "local-scribe", "second", &[]);
    let counted = server.heddle(&["health", "inventory", "-o", "json"]).ok();
    let counted: Value = serde_json::from_str(&counted).unwrap();
    let mut items = counted["objects"].as_array().unwrap().iter();
    let runs = items.find(|item| item["name"] == "SyncRun").unwrap();
    assert!(runs["counts"]["healthy"].as_u64() >= Some(2), "{runs}");
    assert_eq!(
        instance(&server, "first")["spec"]["revisionRef"]["bundleVersion"],
        "1.0.0"
    );
    assert_eq!(
        instance(&server, "second")["spec"]["revisionRef"]["bundleVersion"],
        "1.1.0"
    );
    registry.stop();
    registry.collect_garbage();
    let log = bind(&server, "first", "b1");
    assert_eq!(read(&log), "provision 1.0.0\nbind 1.0.0\n");
    let log = bind(&server, "second", "b2");
    assert_eq!(read(&log), "provision 1.1.0\nbind 1.1.0\n");
    let versions = server.heddle(&["inventory", "-A", "--by-version"]).ok();
    assert!(
        versions.contains("1.0.0") && versions.contains("1.1.0"),
        "{versions}"
    );
    server.deprovision(TEAM, "first");
    server.deprovision(TEAM, "second");
}
