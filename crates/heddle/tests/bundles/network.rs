//! An action that may use the network, on the real server: it reaches what the server may reach, and not the server.

use serde_json::json;

use super::registry::Registry;
use super::{Bundle, TEAM, patch, shop, sync, until_offered};

#[tokio::test(flavor = "multi_thread")]
async fn an_action_with_the_network_reaches_others_and_not_heddle() {
    let registry = Registry::start().await;
    let server = shop(&registry).await;
    let actions = json!({"spec": {"actions": {"network": true}}});
    patch(
        &server,
        "/apis/heddle.dev/v1alpha1/registries/local",
        &actions,
    )
    .await;
    let script = format!(
        "[ $1 = provision ] || exit 0\n\
         busybox wget -q -O /data/registry {}/v2/ || exit 1\n\
         busybox wget -q -O - {}/livez && exit 2\n\
         busybox wget -q -O - {}/livez && exit 3\n\
         exit 0",
        registry.url(),
        server.control,
        server.events,
    );
    Bundle::new("caller", "1.0.0", &script).push(&server, &registry, "acme/caller:latest");
    sync(&server);
    until_offered(&server, "caller", true).await;
    server.provision(TEAM, "local-caller", "c", &[]);
    let log = server.heddle(&["logs", "c", "-n", TEAM]).ok();
    for url in [&server.control, &server.events] {
        let address = url.trim_start_matches("http://");
        let refused = format!("connection to {address} refused: heddle itself listens there");
        assert!(log.contains(&refused), "{log}");
    }
}
