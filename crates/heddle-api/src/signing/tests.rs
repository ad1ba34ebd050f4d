//! Keys, their Secret, and what must not show itself.

use k8s_openapi::ByteString;
use serde_json::json;

use super::secret::{KEY, PREVIOUS_KEY, PREVIOUS_UNTIL};
use super::*;
use crate::Trigger;

fn shared() -> SigningKey {
    SigningKey::draw(SigningScheme::HmacSha256, |bytes| bytes.fill(7))
}

fn pair() -> SigningKey {
    SigningKey::draw(SigningScheme::Ed25519, |bytes| bytes.fill(9))
}

#[test]
fn a_key_is_read_as_it_was_written() {
    for (key, prefix) in [(shared(), "whsec_"), (pair(), "whsk_")] {
        let text = key.reveal();
        assert!(text.starts_with(prefix), "{prefix}");
        assert_eq!(SigningKey::parse(&text), Ok(key));
    }
    // A pair as some libraries write it: the seed is what counts.
    let long = format!("whsk_{}", BASE64_STANDARD.encode([9; 64]));
    assert_eq!(SigningKey::parse(&long), Ok(pair()));
}

#[test]
fn what_is_no_key_is_refused_without_being_repeated() {
    let encoded =
        |prefix: &str, bytes: usize| format!("{prefix}{}", BASE64_STANDARD.encode(vec![1; bytes]));
    for text in [
        String::new(),
        "whsec_".to_owned(),
        "whsec_not base64!".to_owned(),
        "hunter2".to_owned(),
        encoded("whsec_", 23),
        encoded("whsec_", 65),
        encoded("whsk_", 31),
        encoded("whsk_", 48),
        encoded("whpk_", 32),
        encoded("", 32),
    ] {
        let why = SigningKey::parse(&text).unwrap_err();
        assert!(text.len() < 8 || !why.contains(&text[7..]), "{why}");
    }
    for bytes in [24, 64] {
        assert!(SigningKey::parse(&encoded("whsec_", bytes)).is_ok());
    }
}

fn secret(value: &Value) -> SigningSecret {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "team-a", "name": "orders-signing", "ownerReferences": value["owners"]},
        "data": value["data"],
    });
    let secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(secret).unwrap();
    std::sync::Arc::new(secret).into()
}

fn trigger() -> Trigger {
    let metadata = json!({"namespace": "team-a", "name": "orders", "uid": "t-1"});
    serde_json::from_value(json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": metadata,
        "spec": {"broker": "default", "subscriber": {"uri": "http://s.example/"}},
    }))
    .unwrap()
}

fn data(keys: &SigningKeys) -> Value {
    serde_json::to_value(keys.data()).unwrap()
}

#[test]
fn a_secret_holds_what_was_put_into_it() {
    let until: Timestamp = "2026-07-01T12:00:00Z".parse().unwrap();
    for previous in [None, Some((pair(), until))] {
        let keys = SigningKeys {
            current: shared(),
            previous,
        };
        let found = secret(&json!({"data": data(&keys)})).keys_for(&trigger());
        assert_eq!(found, Ok(keys));
    }
}

#[test]
fn a_damaged_secret_says_which_entry_is_wrong() {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let good = shared().reveal();
    for (entries, part) in [
        (vec![], "no entry key"),
        (vec![(KEY, bytes("whsec_?"))], "entry key that is no key"),
        (vec![(KEY, ByteString(vec![0xff]))], "key that is no text"),
        (
            vec![(KEY, bytes(&good)), (PREVIOUS_KEY, bytes(&good))],
            "no previous-until",
        ),
        (
            vec![
                (KEY, bytes(&good)),
                (PREVIOUS_KEY, bytes(&good)),
                (PREVIOUS_UNTIL, bytes("soon")),
            ],
            "no time in RFC 3339",
        ),
    ] {
        let data: BTreeMap<_, _> = entries
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let why = SigningKeys::read(&data).unwrap_err();
        assert!(why.contains(part) && !why.contains(&good), "{why}");
    }
    let lines = BTreeMap::from([(KEY.to_owned(), bytes(&format!("{good}\n")))]);
    assert!(SigningKeys::read(&lines).is_ok(), "editors end lines");
}

#[test]
fn a_secret_of_a_trigger_that_is_gone_is_not_used_for_another() {
    let keys = SigningKeys {
        current: shared(),
        previous: None,
    };
    for (uid, good) in [("t-1", true), ("t-0", false)] {
        let owners = json!([{
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "name": "orders", "uid": uid,
        }]);
        let found = secret(&json!({"data": data(&keys), "owners": owners}));
        assert_eq!(found.keys_for(&trigger()).is_ok(), good, "{uid}");
    }
}

#[test]
fn nothing_that_is_secret_shows_itself() {
    let keys = SigningKeys {
        current: shared(),
        previous: Some((pair(), Timestamp::UNIX_EPOCH)),
    };
    let shown = format!("{keys:?} {:?}", secret(&json!({"data": data(&keys)})));
    for key in [shared(), pair()] {
        let (text, bytes) = (key.reveal(), format!("{:?}", key.bytes()));
        assert!(!shown.contains(&text[6..]) && !shown.contains(&bytes));
    }
    assert!(shown.contains("team-a/orders-signing"), "{shown}");
}

#[test]
fn an_annotation_that_makes_no_sense_is_not_taken_for_no() {
    let read = |value: &str| {
        is_wanted(Some(&BTreeMap::from([(
            annotation::SIGNING.to_owned(),
            value.to_owned(),
        )])))
    };
    assert_eq!(is_wanted(None), Ok(false));
    assert_eq!((read("true"), read("false")), (Ok(true), Ok(false)));
    for wrong in ["", "yes", "v1", "True"] {
        assert!(read(wrong).unwrap_err().contains("nothing is sent"));
    }
}

#[test]
fn an_overlap_is_a_bounded_time_or_none() {
    let seconds = |text: &str| overlap(text).map(|overlap| overlap.as_secs());
    assert_eq!(seconds("none"), Some(0));
    assert_eq!(seconds("90m"), Some(5400));
    assert_eq!(seconds("24h"), Some(86_400));
    assert_eq!(seconds("30d"), Some(30 * 86_400));
    for wrong in [
        "",
        "h",
        "0h",
        "24",
        "31d",
        "-1h",
        "+1h",
        "1.5h",
        "1w",
        "9é",
        "99999999999d",
    ] {
        assert_eq!(seconds(wrong), None, "{wrong}");
    }
}

#[test]
fn how_it_signs_is_told_in_words() {
    let facts = SigningFacts {
        secret: "team-a/orders-signing".to_owned(),
        keys: vec![
            SigningKeyFacts {
                scheme: SigningScheme::Ed25519,
                public_key: Some("whpk_abc".to_owned()),
                until: None,
            },
            SigningKeyFacts {
                scheme: SigningScheme::HmacSha256,
                public_key: None,
                until: Some(Timestamp::UNIX_EPOCH),
            },
        ],
    };
    assert_eq!(
        facts.in_words(),
        "with Ed25519 (v1a), which whpk_abc verifies, and HMAC-SHA256 (v1), until 1970-01-01T00:00:00Z by the key before; kept in Secret team-a/orders-signing"
    );
}
