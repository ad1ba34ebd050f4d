//! A registry that is gone, hangs, or lost its disk: nothing is forgotten, everything goes on.

use crate::harness::Server;
use crate::registry::Registry;
use crate::{Bundle, TEAM, catalog, shop, sync, until_offered};

const QUIET: &str = "exit 0";

fn until_ready(server: &Server, name: &str) -> String {
    server.heddle(&["get", "registry", name, "-o", "json"]).ok()
}

#[tokio::test]
async fn while_a_registry_is_stopped_or_frozen_its_offerings_stay_and_instances_work() {
    let mut registry = Registry::start().await;
    let server = shop(&registry).await;
    Bundle::new("steady", "1.0.0", QUIET).push(&server, &registry, "acme/steady:latest");
    sync(&server);
    until_offered(&server, "steady", true).await;
    server.provision(TEAM, "local-steady", "one", &[]);
    let before = catalog(&server);
    registry.freeze();
    let words = ["registry", "sync", "local", "--wait", "--timeout", "120"];
    let frozen = server.heddle(&words);
    assert_eq!(frozen.code, Some(1), "{frozen:?}");
    registry.thaw();
    registry.stop();
    let stopped = server.heddle(&words);
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert_eq!(catalog(&server), before, "not a byte has changed");
    assert!(until_ready(&server, "local").contains("Unreachable"));
    // What is kept can be had anew, too.
    server.provision(TEAM, "local-steady", "two", &[]);
    server.deprovision(TEAM, "one");
    server.deprovision(TEAM, "two");
    registry.launch().await;
    sync(&server);
    assert_eq!(catalog(&server), before);
}

#[tokio::test]
async fn a_registry_that_lost_its_disk_withdraws_nothing_until_somebody_approves() {
    let mut registry = Registry::start().await;
    let server = shop(&registry).await;
    let bundle = Bundle::new("many", "1.0.0", QUIET);
    for number in 0..6 {
        bundle.push(&server, &registry, &format!("acme/many-{number}:latest"));
    }
    sync(&server);
    until_offered(&server, "many-5", true).await;
    let before = catalog(&server);
    registry.stop();
    registry.lose_everything();
    registry.launch().await;
    let suspected = server.heddle(&["registry", "sync", "local", "--wait"]);
    assert!(
        until_ready(&server, "local").contains("SuspectedMassRemoval"),
        "{suspected:?}"
    );
    assert_eq!(catalog(&server), before, "not a byte has changed");
    server.heddle(&["registry", "approve", "local"]).ok();
    // They go one by one, and any of them may have the name that they all want.
    for number in 0..6 {
        until_offered(&server, &format!("many-{number}"), false).await;
    }
    let refused = server.heddle(&["provision", "local-many", "-n", TEAM, "--id", "late"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
}
