//! Signed deliveries, verified by code that is not what signed them: HMAC written out from its definition, and Ed25519 by
//! the verifying half of a library. Both refuse what the specification says is to be refused.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heddle_api::dataplane::Held;
use heddle_api::ledger::{DeadLetterSelection, EventState};
use heddle_api::signing::{SigningKey, SigningKeys, SigningScheme, SigningSecret};
use heddle_mesh::path::delivery::signing::verification_key;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::world::{Manner, Received, World, merge};

/// How old, or new, a verifier lets a message be.
const TOLERANCE_S: i64 = 300;

fn key(scheme: SigningScheme, chance: u8) -> SigningKey {
    SigningKey::draw(scheme, |bytes| bytes.fill(chance))
}

fn shared(chance: u8) -> SigningKey {
    key(SigningScheme::HmacSha256, chance)
}

fn secret(trigger: &str, data: &Value) -> SigningSecret {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "heddle.dev/signing-key",
        "metadata": {"namespace": "ns", "name": format!("{trigger}-signing")}, "data": data,
    });
    Arc::new(serde_json::from_value::<Secret>(secret).unwrap()).into()
}

fn holding(current: SigningKey, previous: Option<(SigningKey, Timestamp)>) -> Value {
    serde_json::to_value(SigningKeys { current, previous }.data()).unwrap()
}

fn signs(extra: Value) -> Value {
    let mut trigger = json!({"metadata": {"annotations": {"heddle.dev/signing": "true"}}});
    merge(&mut trigger, extra);
    trigger
}

/// A world with a trigger `t` that signs with this key, and its subscriber `a`.
async fn signing(current: &SigningKey) -> World {
    let mut world = World::with_broker();
    world.trigger("t", "a", signs(json!({})));
    hold(&mut world, holding(current.clone(), None));
    world.route().await;
    world
}

/// What the Secret of `t` holds from the next table on.
fn hold(world: &mut World, data: Value) {
    world.resources.signing_secrets = vec![secret("t", &data)];
}

fn header<'a>(delivery: &'a Received, name: &str) -> &'a str {
    let mut all = delivery.headers.get_all(name).iter();
    let value = all.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(all.next().is_none(), "{name} is there once");
    value.to_str().unwrap()
}

fn is_signed(delivery: &Received) -> bool {
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let found = names.map(|name| delivery.headers.contains_key(name));
    assert!(found == [true; 3] || found == [false; 3], "{found:?}");
    found[0]
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

/// What a subscriber does with `whsec_…` or `whpk_…`.
fn verify(delivery: &Received, key: &str, now: Timestamp) -> Result<(), &'static str> {
    let stamp: i64 = header(delivery, "webhook-timestamp").parse().unwrap();
    if (now.as_second() - stamp).abs() > TOLERANCE_S {
        return Err("too old or too new");
    }
    let id = header(delivery, "webhook-id");
    let text = [format!("{id}.{stamp}.").as_bytes(), &delivery.body].concat();
    let (prefix, key) = key.split_once('_').unwrap();
    let key = BASE64_STANDARD.decode(key).unwrap();
    let matches = |signature: &str| {
        let (version, signature) = signature.split_once(',').unwrap();
        let signature = BASE64_STANDARD.decode(signature).unwrap();
        match (prefix, version) {
            ("whsec", "v1") => signature == hmac(&key, &text),
            ("whpk", "v1a") => UnparsedPublicKey::new(&ED25519, &key)
                .verify(&text, &signature)
                .is_ok(),
            _ => false,
        }
    };
    let mut signatures = header(delivery, "webhook-signature").split(' ');
    signatures
        .any(matches)
        .then_some(())
        .ok_or("no signature is right")
}

fn given(key: &SigningKey) -> String {
    verification_key(key).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_verifies_in_either_form_and_changed_it_does_not() {
    for scheme in [SigningScheme::HmacSha256, SigningScheme::Ed25519] {
        let (key, other) = (key(scheme, 1), key(scheme, 2));
        for format in ["binary", "json"] {
            let mut world = signing(&key).await;
            world.trigger(
                "t",
                "a",
                signs(json!({"spec": {"delivery": {"format": format}}})),
            );
            world.route().await;
            world.publish("1", &[("subject", "größer")]).await;
            world.publish_large("2", 100_000).await;
            world.until_delivered("t", 2).await;
            let now = world.clock.now();
            for mut delivery in world.deliveries("a") {
                let kind = delivery.headers.get("content-type");
                let kind = kind.map_or("", |kind| kind.to_str().unwrap());
                let is_json = kind.starts_with("application/cloudevents+json");
                assert_eq!(is_json, format == "json");
                assert_eq!(verify(&delivery, &given(&key), now), Ok(()));
                assert!(verify(&delivery, &given(&other), now).is_err());
                let mut body = delivery.body.to_vec();
                let last = body.len() - 1;
                body[last] ^= 1;
                delivery.body = body.into();
                assert!(verify(&delivery, &given(&key), now).is_err(), "{format}");
                delivery.body = bytes::Bytes::new();
                assert!(verify(&delivery, &given(&key), now).is_err(), "{format}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_has_its_own_time_and_the_same_id() {
    let key = shared(1);
    let mut world = signing(&key).await;
    let delivery = json!({"retry": 3, "backoffDelay": "PT400S", "backoffPolicy": "linear"});
    world.trigger("t", "a", signs(json!({"spec": {"delivery": delivery}})));
    world.manner("a", Manner::FailFirst(2));
    world.route().await;
    world.publish("1", &[]).await;
    world.publish("2", &[]).await;
    world.until_delivered("t", 2).await;
    let attempts = world.deliveries("a");
    let of = |id: &str| -> Vec<_> { attempts.iter().filter(|one| one.id == id).collect() };
    for id in ["1", "2"] {
        let own = of(id);
        assert_eq!(own.len(), 3);
        assert!(
            own.iter()
                .all(|one| header(one, "webhook-id") == header(own[0], "webhook-id"))
        );
        let stamps: Vec<i64> = own
            .iter()
            .map(|one| header(one, "webhook-timestamp").parse().unwrap())
            .collect();
        assert!(
            stamps.windows(2).all(|two| two[1] >= two[0] + 400),
            "{stamps:?}"
        );
        // What was heard of the first attempt is worth nothing by the time of the third.
        let now = world.clock.now();
        assert_eq!(verify(own[0], &given(&key), now), Err("too old or too new"));
        assert_eq!(verify(own[2], &given(&key), now), Ok(()));
    }
    assert_ne!(
        header(of("1")[0], "webhook-id"),
        header(of("2")[0], "webhook-id")
    );
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_is_signed_as_it_is() {
    let key = shared(1);
    let world = signing(&key).await;
    world.clock.set_by(SignedDuration::from_hours(-48));
    world.publish("1", &[]).await;
    world.until_delivered("t", 1).await;
    let now = world.clock.now();
    assert_eq!(verify(&world.deliveries("a")[0], &given(&key), now), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn two_keys_sign_while_they_are_rotated_and_the_old_one_ends_by_itself() {
    let (old, new) = (shared(1), key(SigningScheme::Ed25519, 2));
    let mut world = signing(&old).await;
    world.publish("1", &[]).await;
    world.until_delivered("t", 1).await;
    let until = world
        .clock
        .now()
        .saturating_add(Duration::from_secs(3600))
        .unwrap();
    hold(&mut world, holding(new.clone(), Some((old.clone(), until))));
    world.route().await;
    world.publish("2", &[]).await;
    world.until_delivered("t", 2).await;
    assert_eq!(world.account("t").signing.unwrap().keys.len(), 2);
    let now = world.clock.now();
    let verdicts = |delivery: &Received, now| {
        [&old, &new].map(|key| verify(delivery, &given(key), now).is_ok())
    };
    let deliveries = world.deliveries("a");
    assert_eq!(verdicts(&deliveries[0], now), [true, false]);
    assert_eq!(verdicts(&deliveries[1], now), [true, true]);
    // Nothing but the clock moves.
    world.pass(3600).await;
    world.publish("3", &[]).await;
    world.until_delivered("t", 3).await;
    let now = world.clock.now();
    assert_eq!(verdicts(&world.deliveries("a")[2], now), [false, true]);
    let told = world.account("t").signing.unwrap();
    assert_eq!(told.keys.len(), 1);
    assert_eq!(told.keys[0].public_key, Some(given(&new)));
}

#[tokio::test(start_paused = true)]
async fn without_a_key_nothing_is_sent_and_everything_is_kept() {
    let key = shared(1);
    let mut world = signing(&key).await;
    world.publish("0", &[]).await;
    world.until_delivered("t", 1).await;
    let broken = [
        vec![],
        vec![secret("t", &json!({}))],
        vec![secret(
            "t",
            &json!({"key": BASE64_STANDARD.encode("whsec_short")}),
        )],
        vec![secret("another", &holding(key.clone(), None))],
    ];
    for (number, secrets) in (1..).zip(broken) {
        world.resources.signing_secrets = secrets;
        world.route().await;
        let id = number.to_string();
        world.publish(&id, &[]).await;
        world.pass(3600).await;
        let held = world.mesh.consumer("trigger/ns/t").unwrap().held;
        let Some(Held::Unsigned(why)) = held else {
            panic!("{held:?}");
        };
        assert!(why.contains("Secret ns/t-signing "), "{why}");
        assert!(why.contains("heddle trigger sign ns/t"), "{why}");
        let account = world.account("t");
        assert_eq!(
            (account.pending, account.retrying),
            (number, 0),
            "no attempt was made"
        );
        assert_eq!((account.held, account.signing), (Some(why.clone()), None));
        let verdict = world.trace(&id).await.events.remove(0).verdicts.remove(0);
        assert_eq!(verdict.state, EventState::Waiting);
        assert!(verdict.reason.contains(&why), "{verdict:?}");
        assert_eq!(world.received("a").len(), 1, "nothing was sent");
    }
    hold(&mut world, holding(key.clone(), None));
    world.route().await;
    world.until_delivered("t", 5).await;
    let now = world.clock.now();
    for delivery in world.deliveries("a").iter().skip(1) {
        assert_eq!(verify(delivery, &given(&key), now), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_key_survives_a_crash_and_is_not_sent_without_it() {
    let key = shared(1);
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "a", signs(json!({})));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_pending("t", 1).await;
    world.mesh.settled().await;
    world.crash().await;
    world.route().await;
    world.pass(60).await;
    assert!(world.received("a").is_empty());
    hold(&mut world, holding(key.clone(), None));
    world.route().await;
    world.until_delivered("t", 1).await;
    let now = world.clock.now();
    assert_eq!(verify(&world.deliveries("a")[0], &given(&key), now), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_cannot_be_understood_sends_nothing_and_no_wish_signs_nothing() {
    for (value, sent) in [("maybe", false), ("false", true)] {
        let mut world = World::with_broker();
        let trigger = json!({"metadata": {"annotations": {"heddle.dev/signing": value}}});
        world.trigger("t", "a", trigger);
        hold(&mut world, holding(shared(1), None));
        world.route().await;
        world.publish("1", &[]).await;
        world.pass(60).await;
        assert_eq!(world.received("a").len(), usize::from(sent), "{value}");
        assert!(world.deliveries("a").iter().all(|one| !is_signed(one)));
        let held = world.mesh.consumer("trigger/ns/t").unwrap().held;
        assert_eq!(held.is_none(), sent, "{held:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_publishers_becomes_a_signature() {
    let forged = [
        ("webhook-id", "msg_forged"),
        ("webhook-timestamp", "1"),
        ("webhook-signature", "v1,forged"),
    ];
    let key = shared(1);
    let mut world = signing(&key).await;
    world.trigger("plain", "b", json!({}));
    world.route().await;
    assert_eq!(world.publish_with("1", &forged).await, 202);
    // As attributes they are not even names.
    for (name, value) in forged {
        assert_eq!(world.publish("2", &[(name, value)]).await, 400, "{name}");
    }
    let near = [
        ("webhookid", "msg_forged"),
        ("webhooksignature", "v1,forged"),
    ];
    assert_eq!(world.publish("3", &near).await, 202);
    world.until_delivered("t", 2).await;
    world.until_delivered("plain", 2).await;
    let now = world.clock.now();
    for delivery in world.deliveries("a") {
        assert!(is_signed(&delivery));
        assert_eq!(verify(&delivery, &given(&key), now), Ok(()));
        assert!(!header(&delivery, "webhook-signature").contains("forged"));
    }
    assert!(world.deliveries("b").iter().all(|one| !is_signed(one)));
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_sink_is_not_the_subscriber_and_gets_no_signature() {
    let key = shared(1);
    let mut world = signing(&key).await;
    let sink = json!({"deadLetterSink": {"uri": "http://sink/"}, "retry": 0});
    world.trigger(
        "t",
        "a",
        signs(json!({
            "spec": {"delivery": sink}, "status": {"deadLetterSinkUri": "http://sink/"},
        })),
    );
    world.manner("a", Manner::Answer(500));
    world.route().await;
    world.publish("1", &[]).await;
    world
        .until("the sink has it", |world| {
            !world.received("sink").is_empty()
        })
        .await;
    assert!(!is_signed(&world.deliveries("sink")[0]));
    assert!(is_signed(&world.deliveries("a")[0]));
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_that_is_redriven_is_signed_and_called_as_before() {
    let key = shared(1);
    let mut world = signing(&key).await;
    let delivery = json!({"spec": {"delivery": {"retry": 0}}});
    world.trigger("t", "a", signs(delivery));
    world.manner("a", Manner::Answer(500));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_dead_lettered("t", 1).await;
    world.mesh.settled().await;
    let first = header(&world.deliveries("a")[0], "webhook-id").to_owned();
    world.subscribers.forget();
    world.manner("a", Manner::Accept);
    let everything = DeadLetterSelection {
        all: true,
        ..DeadLetterSelection::default()
    };
    assert_eq!(world.mesh.redrive(&everything, "me").await.count, 1);
    world
        .until("it is delivered", |world| !world.received("a").is_empty())
        .await;
    let now = world.clock.now();
    assert_eq!(verify(&world.deliveries("a")[0], &given(&key), now), Ok(()));
    let again = &world.deliveries("a")[0];
    assert_eq!(
        header(again, "webhook-id"),
        first,
        "the same event is called the same"
    );
}

#[tokio::test(start_paused = true)]
async fn a_trigger_into_the_mesh_has_nothing_to_sign_and_says_so() {
    let mut world = World::on_disk();
    world.bridge(signs(json!({})));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_delivered("t", 1).await;
    let routed = world.mesh.consumer("trigger/ns/bridge").unwrap();
    assert_eq!(routed.held, None);
    let told = routed.faults.join("; ");
    assert!(told.contains("heddle.dev/signing"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_to_a_subscriber_are_signed_like_its_events() {
    let key = shared(1);
    let mut world = signing(&key).await;
    let probe = json!({"metadata": {"annotations": {"heddle.dev/subscriber-probe": "heartbeat"}}});
    world.trigger("t", "a", signs(probe.clone()));
    world.route().await;
    world
        .until("it was tried", |world| !world.received("a").is_empty())
        .await;
    let now = world.clock.now();
    assert_eq!(verify(&world.deliveries("a")[0], &given(&key), now), Ok(()));
    // Another key is used for the next one.
    let new = shared(2);
    hold(&mut world, holding(new.clone(), None));
    world.route().await;
    world.subscribers.forget();
    world
        .until("it was tried", |world| !world.received("a").is_empty())
        .await;
    let now = world.clock.now();
    assert_eq!(verify(&world.deliveries("a")[0], &given(&new), now), Ok(()));
}
