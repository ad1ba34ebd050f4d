//! Signatures against vectors that other programs made, and what becomes of keys as time goes on.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

/// The example of the specification's libraries.
const SHARED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SHARED_SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
/// The first key of RFC 8032, and what OpenSSL signs with it.
const PAIR: &str = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const PAIR_PUBLIC: &str = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const PAIR_SIGNED: &str =
    "v1a,fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw==";

const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const SECONDS: i64 = 1_614_265_330;
const BODY: &[u8] = br#"{"test": 2432232314}"#;

fn trigger(uid: &str) -> Trigger {
    serde_json::from_value(json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {"namespace": "team-a", "name": "orders", "uid": uid},
        "spec": {"broker": "default", "subscriber": {"uri": "http://s.example/"}},
    }))
    .unwrap()
}

fn secret(entries: Value) -> SigningSecret {
    let entries = entries.as_object().unwrap().iter();
    let encoded = entries.map(|(name, value)| {
        let text = BASE64_STANDARD.encode(value.as_str().unwrap());
        (name.clone(), Value::String(text))
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "team-a", "name": "orders-signing"},
        "data": encoded.collect::<serde_json::Map<_, _>>(),
    });
    let secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(secret).unwrap();
    Arc::new(secret).into()
}

fn signer(entries: Value) -> Signer {
    Signer::new(&secret(entries), &trigger("t")).unwrap()
}

/// Something that signs.
pub(in crate::path::delivery) fn sample() -> Signer {
    signer(json!({"key": SHARED}))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn signed(signer: &Signer, body: &[u8], now: i64) -> String {
    signer.signatures(ID, &SECONDS.to_string(), body, at(now))
}

#[test]
fn signatures_are_those_that_other_programs_make() {
    let shared = signer(json!({"key": SHARED}));
    assert_eq!(signed(&shared, BODY, SECONDS), SHARED_SIGNED);
    let pair = signer(json!({"key": PAIR}));
    assert_eq!(signed(&pair, BODY, SECONDS), PAIR_SIGNED);
    for signer in [shared, pair] {
        let other = signed(&signer, br#"{"test": 2432232315}"#, SECONDS);
        assert_ne!(other, signed(&signer, BODY, SECONDS));
        assert!(!signed(&signer, b"", SECONDS).is_empty());
    }
}

#[test]
fn both_keys_sign_until_the_time_of_the_one_before_is_over() {
    let until = at(SECONDS + 60);
    let rotated = signer(json!({
        "key": PAIR, "previous-key": SHARED, "previous-until": until.to_string(),
    }));
    let both = format!("{PAIR_SIGNED} {SHARED_SIGNED}");
    for (now, expected) in [
        (SECONDS, &*both),
        (SECONDS + 59, &*both),
        (SECONDS + 60, PAIR_SIGNED),
        (SECONDS + 3600, PAIR_SIGNED),
    ] {
        assert_eq!(signed(&rotated, BODY, now), expected, "{now}");
        let told = rotated.facts(at(now));
        assert_eq!(told.keys.len(), expected.split(' ').count());
        assert_eq!(told.keys[0].public_key.as_deref(), Some(PAIR_PUBLIC));
        assert_eq!(told.keys[0].until, None);
        assert!(told.keys.iter().skip(1).all(|key| key.until == Some(until)));
        assert!(told.keys.iter().skip(1).all(|key| key.public_key.is_none()));
        assert_eq!(told.secret, "team-a/orders-signing");
    }
}

#[test]
fn headers_are_of_the_moment_at_which_they_are_written() {
    let signer = signer(json!({"key": SHARED}));
    let clock = Clock::simulated(at(SECONDS));
    let signing = MessageSigning {
        signer: &signer,
        id: ID,
        clock: &clock,
    };
    let headers = signing.headers(BODY);
    let text: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(
        text,
        [
            ("webhook-id", ID),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", SHARED_SIGNED),
        ]
    );
}

#[test]
fn a_message_is_called_the_same_in_every_process_and_by_no_text_of_a_publisher() {
    assert_eq!(
        message_id("/test", "1"),
        "msg_XEN98L4aDdB1SxNwU_lrhF3uqKazQX-QojuBCZc8ik0"
    );
    assert_ne!(message_id("/a", "bc"), message_id("/ab", "c"));
    for hostile in [
        "a.b",
        "\r\nwebhook-id: x",
        "",
        "ünïcode",
        &"x".repeat(10_000),
    ] {
        let id = message_id(hostile, hostile);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        assert!(id.len() == 47 && id.bytes().all(is_plain), "{id}");
    }
}

#[test]
fn what_a_subscriber_is_given_verifies_and_cannot_sign_where_that_is_possible() {
    let given = |text: &str| verification_key(&SigningKey::parse(text).unwrap()).unwrap();
    assert_eq!(given(SHARED), SHARED);
    assert_eq!(given(PAIR), PAIR_PUBLIC);
}

#[test]
fn keys_are_made_ready_again_only_when_they_changed() {
    let known = signer(json!({"key": SHARED}));
    assert!(known.is_of(&secret(json!({"key": SHARED})), &trigger("t")));
    assert!(!known.is_of(&secret(json!({"key": PAIR})), &trigger("t")));
    assert!(!known.is_of(&secret(json!({"key": SHARED})), &trigger("another")));
}

#[test]
fn no_key_shows_itself() {
    for key in [SHARED, PAIR] {
        let shown = format!("{:?}", signer(json!({"key": key})));
        assert_eq!(shown, "Signer(SigningSecret(team-a/orders-signing))");
    }
}
