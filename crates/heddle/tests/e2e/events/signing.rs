//! Signed deliveries from the command that makes a key to the subscriber that verifies with it, by code of its own.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heddle_rt::Clock;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::stage::{self, BROKER, trigger};
use super::subscriber::Subscriber;
use super::wire::Message;
use crate::harness::{Server, eventually, eventually_or_else};

/// How old, or new, a verifier lets a message be.
const TOLERANCE_S: i64 = 300;
const SECRET: &str = "/api/v1/namespaces/team-a/secrets/orders-signing";
const TRIGGER: &str = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/orders";

/// A server with a trigger that nothing signs yet, and its subscriber.
async fn stage() -> (Server, Subscriber) {
    let (server, subscriber) = (stage::with_broker().await, Subscriber::start().await);
    let orders = trigger("orders", &subscriber.url("/orders"), json!({}));
    server.apply_trigger(&orders).await;
    (server, subscriber)
}

/// The key that a command tells, once.
fn sign(server: &Server, more: &[&str]) -> String {
    let words = [&["trigger", "sign", "team-a/orders"], more].concat();
    server.heddle(&words).ok().trim().to_owned()
}

/// HMAC as RFC 2104 has it, for keys no longer than a block.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let padded = |with: u8| -> Vec<u8> {
        let bytes = key.iter().copied().chain(std::iter::repeat(0));
        bytes.take(64).map(|byte| byte ^ with).collect()
    };
    let inner = Sha256::digest([&padded(0x36), text].concat());
    Sha256::digest([&padded(0x5c)[..], &inner].concat()).to_vec()
}

/// Whether a subscriber that has this secret believes a message.
fn verifies(message: &Message, secret: &str) -> bool {
    let stamp = message.header("webhook-timestamp").unwrap();
    let age = Clock::system().now().as_second() - stamp.parse::<i64>().unwrap();
    let id = message.header("webhook-id").unwrap();
    let text = [format!("{id}.{stamp}.").as_bytes(), &message.body].concat();
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap());
    let wanted = format!("v1,{}", BASE64_STANDARD.encode(hmac(&key.unwrap(), &text)));
    let mut signatures = message.header("webhook-signature").unwrap().split(' ');
    age.abs() <= TOLERANCE_S && signatures.any(|signature| signature == wanted)
}

/// Waits until the mesh signs with so many keys.
async fn until_signing(server: &Server, keys: usize) {
    eventually_or_else(&format!("{keys} keys that sign"), async || {
        let signing = server.account("orders").await.signing;
        let found = signing.as_ref().map_or(0, |signing| signing.keys.len());
        (found == keys)
            .then_some(())
            .ok_or_else(|| format!("{signing:?}"))
    })
    .await;
}

/// Publishes an event and gives what came of it.
async fn delivered(server: &Server, subscriber: &Subscriber, id: &str) -> Message {
    let before = subscriber.received("/orders").len();
    server.publish(BROKER, id, "order.created").await;
    subscriber.until_received("/orders", before + 1).await;
    subscriber.received("/orders").remove(before)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_verifies_with_the_key_that_was_told_once() {
    let (server, subscriber) = stage().await;
    let plain = delivered(&server, &subscriber, "1").await;
    assert_eq!(plain.header("webhook-signature"), None);

    let first = sign(&server, &[]);
    until_signing(&server, 1).await;
    let mut signed = delivered(&server, &subscriber, "2").await;
    assert!(verifies(&signed, &first), "{signed:?}");
    signed.body.push(b' ');
    assert!(!verifies(&signed, &first));
    let again = server.heddle(&["trigger", "sign", "team-a/orders"]);
    assert_ne!(again.code, Some(0), "{again:?}");
    assert!(again.err.contains("--rotate"), "{again:?}");

    let second = sign(&server, &["--rotate", "--overlap", "1h"]);
    until_signing(&server, 2).await;
    let both = delivered(&server, &subscriber, "3").await;
    assert!(verifies(&both, &first) && verifies(&both, &second));
    let third = server.heddle(&["trigger", "sign", "team-a/orders", "--rotate"]);
    assert!(third.err.contains("room for two"), "{third:?}");

    let last = sign(&server, &["--rotate", "--overlap", "none"]);
    until_signing(&server, 1).await;
    let one = delivered(&server, &subscriber, "4").await;
    assert!(verifies(&one, &last), "{one:?}");
    assert!(!verifies(&one, &first) && !verifies(&one, &second));

    // Nobody is told but whoever asked, and whoever may read Secrets.
    let explained = server.heddle(&["explain", "trigger", "team-a/orders"]).ok();
    assert!(explained.contains("HMAC-SHA256 (v1)"), "{explained}");
    assert!(explained.contains("team-a/orders-signing"), "{explained}");
    let object = server.ask("GET", TRIGGER, &[], b"").await.text();
    let accounts = server.question::<Value>("accounts").await.to_string();
    let audit = server.heddle(&["audit", "-o", "json"]).ok();
    assert!(audit.contains("rotate-key"), "{audit}");
    let log = server.log();
    for key in [&first, &second, &last] {
        let bare = key.strip_prefix("whsec_").unwrap();
        let coded = BASE64_STANDARD.encode(key);
        for text in [&explained, &object, &accounts, &audit, &log] {
            assert!(!text.contains(bare) && !text.contains(&coded), "{text}");
        }
    }
    let secret = server.ask("GET", SECRET, &[], b"").await.json();
    assert_eq!(secret["data"]["key"], BASE64_STANDARD.encode(&last));
    assert_eq!(secret["type"], "heddle.dev/signing-key");

    server
        .heddle(&["trigger", "sign", "team-a/orders", "--off"])
        .ok();
    until_signing(&server, 0).await;
    let plain = delivered(&server, &subscriber, "5").await;
    assert_eq!(plain.header("webhook-signature"), None);
    assert_eq!(server.ask("GET", SECRET, &[], b"").await.status(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_secret_a_trigger_sends_nothing_and_says_what_to_do() {
    let (mut server, subscriber) = stage().await;
    let lost = sign(&server, &[]);
    until_signing(&server, 1).await;
    let deleted = server.ask("DELETE", SECRET, &[], b"").await;
    assert_eq!(deleted.status(), 200, "{}", deleted.text());
    let ready = server
        .until_condition("triggers", "orders", "SubscriptionReady", "False")
        .await;
    assert_eq!(ready["reason"], "SigningKeyUnreadable");
    let message = ready["message"].as_str().unwrap();
    assert!(
        message.contains("Secret team-a/orders-signing"),
        "{message}"
    );
    assert!(
        message.contains("heddle trigger sign team-a/orders"),
        "{message}"
    );
    server.publish(BROKER, "1", "order.created").await;
    let held = server.until_held("orders").await;
    assert!(held.contains("team-a/orders-signing"), "{held}");

    // Nor after a restart, at which no table is in force before the Secrets are known.
    server.kill();
    server.launch().await;
    server.until_held("orders").await;
    assert!(subscriber.received("/orders").is_empty());

    let key = sign(&server, &["--ed25519"]);
    assert!(key.starts_with("whpk_"), "what signs is told to nobody");
    subscriber.until_received("/orders", 1).await;
    let signed = subscriber.received("/orders").remove(0);
    let signature = signed.header("webhook-signature").unwrap();
    assert!(signature.starts_with("v1a,") && !signature.contains(' '));
    assert!(!verifies(&signed, &lost), "the old key is good for nothing");
    server.until_ready("triggers", "orders").await;
    let explained = server.heddle(&["explain", "trigger", "team-a/orders"]).ok();
    assert!(explained.contains(&key), "{explained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_operates_has_a_trigger_signed_and_reads_no_secret() {
    let (server, subscriber) = stage().await;
    let token = |name: &str, role: &str, namespace: &str| {
        let words = ["token", "create", name, "--role", role, "-n", namespace];
        server.heddle(&words).ok().trim().to_owned()
    };
    let operator = token("ops", "operator", "team-a");
    let viewer = token("vera", "viewer", "team-a");
    let stranger = token("eve", "operator", "team-b");
    let ask = async |token: &str, method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        server.send(request.body(Vec::new()).unwrap()).await
    };
    let path = |word: &str| format!("/heddle/v1/triggers/team-a/orders/{word}");
    eventually("the tokens are good", async || {
        for token in [&operator, &viewer, &stranger] {
            let answer = ask(token, "GET", "/heddle/v1/accounts").await;
            (answer.code == StatusCode::OK).then_some(())?;
        }
        Some(())
    })
    .await;
    for word in ["sign", "rotate-key", "unsign"] {
        for token in [&viewer, &stranger] {
            let answer = ask(token, "POST", &path(word)).await;
            assert_eq!(answer.code, StatusCode::FORBIDDEN, "{word} {}", answer.body);
        }
    }
    let made = ask(&operator, "POST", &path("sign")).await;
    assert_eq!(made.code, StatusCode::OK, "{}", made.body);
    let key = made.json()["key"].as_str().unwrap().to_owned();
    let read = ask(&operator, "GET", SECRET).await;
    assert_eq!(read.code, StatusCode::FORBIDDEN, "{}", read.body);
    until_signing(&server, 1).await;
    let signed = delivered(&server, &subscriber, "1").await;
    assert!(verifies(&signed, &key), "{signed:?}");
    // No name leads out of the namespace.
    for name in ["..%2Fsecrets%2Forders-signing", "%2E%2E", "none"] {
        let path = format!("/heddle/v1/triggers/team-a/{name}/sign");
        let answer = ask(&operator, "POST", &path).await;
        assert!(answer.code.is_client_error(), "{name} {}", answer.body);
    }
    // The Secret goes with its trigger.
    server.ask("DELETE", TRIGGER, &[], b"").await;
    eventually("the Secret is gone", async || {
        (server.ask("GET", SECRET, &[], b"").await.status() == 404).then_some(())
    })
    .await;
}
