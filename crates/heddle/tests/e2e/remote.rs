//! Servers that others reach: who they are believed to be, what is sent to them, and which of several is meant.

use base64::Engine as _;
use serde_json::Value;

use crate::harness::{Outcome, Server, eventually, examples, heddle};

/// Publishes one event with these words, from a place where nothing is known of any server.
fn publish(server: &Server, kubeconfig: bool, words: &[&str]) -> Outcome {
    let port = server.events.rsplit_once(':').unwrap().1;
    let mut command = heddle();
    command
        .args(["publish", "shop", "--type", "order.created", "--events"])
        .arg(format!("https://localhost:{port}"))
        .args(words)
        .current_dir(server.data().parent().unwrap());
    if kubeconfig {
        command.env("KUBECONFIG", server.kubeconfig());
    }
    Outcome::of(command.output().unwrap())
}

/// A listener that asks is what one is that other machines reach.
async fn asking() -> Server {
    let server = Server::start_with("info", &["--events-require-identity"]).await;
    server.heddle(&["apply", "-f", &examples()]).ok();
    server
}

#[tokio::test]
async fn publishing_over_tls_trusts_the_kubeconfig_and_shows_a_token() {
    let server = asking().await;
    let accepted = eventually("the shop", async || {
        let outcome = publish(&server, true, &["--id", "1"]);
        (outcome.code == Some(0)).then_some(outcome.out)
    });
    assert_eq!(accepted.await, "1 accepted\n");

    // The token of the Application, in the place of the administrator's.
    let secret = [
        "get",
        "secret",
        "shop-publisher",
        "-n",
        "kyma-integration",
        "-o",
        "json",
    ];
    let secret: Value = serde_json::from_str(&server.heddle(&secret).ok()).unwrap();
    let token = secret["data"]["token"].as_str().unwrap();
    let token = base64::prelude::BASE64_STANDARD.decode(token).unwrap();
    let token = String::from_utf8(token).unwrap();
    publish(&server, true, &["--id", "2", "--token", &token]).ok();
    let wrong = publish(&server, true, &["--id", "3", "--token", "nobody's"]);
    assert_eq!(wrong.code, Some(5), "{wrong:?}");
}

#[tokio::test]
async fn a_listener_of_an_unknown_authority_is_told_nothing() {
    let (server, other) = (asking().await, Server::start().await);
    let strange = publish(&server, false, &["--token", "secret"]);
    assert_eq!(strange.code, Some(6), "{strange:?}");
    assert!(strange.err.contains("certificate"), "{strange:?}");
    let kubeconfig = other.kubeconfig();
    let known = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let strange = publish(&server, false, &known);
    assert_eq!(strange.code, Some(6), "{strange:?}");
}

#[tokio::test]
async fn what_was_typed_decides_which_server_is_meant() {
    let (server, other) = (Server::start().await, Server::start().await);
    let with_the_other_in_the_environment = |words: &[&str]| {
        let mut command = heddle();
        command.args(words).env("KUBECONFIG", other.kubeconfig());
        Outcome::of(
            command
                .arg("--data-dir")
                .arg(server.data())
                .output()
                .unwrap(),
        )
        .ok()
    };
    with_the_other_in_the_environment(&["apply", "-f", &examples()]);
    assert!(server.heddle(&["get", "app"]).ok().contains("shop"));
    assert!(!other.heddle(&["get", "app"]).ok().contains("shop"));
    let catalog = with_the_other_in_the_environment(&["catalog", "-n", "team-a"]);
    assert!(!catalog.is_empty());
    let doctor = with_the_other_in_the_environment(&["version"]);
    assert!(doctor.contains("server "), "{doctor}");
}

#[tokio::test]
async fn every_way_to_ask_for_the_version_has_the_same_answer() {
    let server = Server::start().await;
    let plain = Outcome::of(heddle().arg("--version").output().unwrap()).ok();
    let own = plain.trim_end().strip_prefix("heddle ").unwrap();
    let shown: Value =
        serde_json::from_str(&server.heddle(&["version", "-o", "json"]).ok()).unwrap();
    assert_eq!(shown["clientVersion"], own);
    assert_eq!(shown["serverVersion"], own);
    let text = server.heddle(&["version"]).ok();
    assert!(
        text.starts_with(&format!("heddle {own}\nserver {own}, as Kubernetes v")),
        "{text}"
    );
    assert_eq!(
        server.heddle(&["version", "-o", "name"]).ok(),
        format!("{own}\n")
    );
}
