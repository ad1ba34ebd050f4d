//! Which keys there are after each request, and what is refused.

use heddle_api::signing::SigningScheme;
use serde_json::json;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn key(chance: u8) -> SigningKey {
    SigningKey::draw(SigningScheme::HmacSha256, |bytes| bytes.fill(chance))
}

fn only(chance: u8) -> SigningKeys {
    SigningKeys {
        current: key(chance),
        previous: None,
    }
}

fn trigger(annotation: Option<&str>) -> Trigger {
    serde_json::from_value(json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {
            "namespace": "team-a", "name": "orders", "uid": "t-1",
            "annotations": annotation.map(|value| json!({"heddle.dev/signing": value})),
        },
        "spec": {"broker": "default", "subscriber": {"uri": "http://s.example/"}},
    }))
    .unwrap()
}

fn state(annotation: Option<&str>, secret: Option<Secret>) -> SigningState {
    SigningState {
        trigger: trigger(annotation),
        secret,
    }
}

/// The Secret that heddle makes.
fn secret(keys: &SigningKeys) -> Secret {
    state(None, None).secret_with(keys)
}

fn made(chance: u8) -> Option<Secret> {
    Some(secret(&only(chance)))
}

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

fn refusal<T: std::fmt::Debug>(done: Result<T, SigningRefusal>) -> String {
    let refused = done.unwrap_err();
    assert_eq!(refused.status, http::StatusCode::CONFLICT);
    refused.message
}

#[test]
fn a_trigger_that_signs_is_not_given_another_first_key() {
    let damaged = Some(Secret {
        data: None,
        ..secret(&only(1))
    });
    let mut of_another = made(1);
    for owner in of_another
        .iter_mut()
        .flat_map(|secret| secret.owner_references_mut())
    {
        "t-0".clone_into(&mut owner.uid);
    }
    for (annotation, secret, begins) in [
        (None, None, true),
        (Some("false"), None, true),
        (Some("true"), None, true),
        (Some("maybe"), None, true),
        (Some("true"), damaged, true),
        (Some("true"), of_another, true),
        (None, made(1), true),
        (Some("true"), made(1), false),
        (Some("maybe"), made(1), false),
    ] {
        let begun = state(annotation, secret).begin(key(2));
        match begins {
            true => assert_eq!(begun, Ok(only(2)), "{annotation:?}"),
            false => assert!(refusal(begun).contains("signed already")),
        }
    }
}

#[test]
fn what_heddle_did_not_make_is_left_as_it_is() {
    let mut ownerless = secret(&only(1));
    ownerless.metadata.owner_references = None;
    let foreign = Secret {
        type_: Some("Opaque".to_owned()),
        ..secret(&only(1))
    };
    for secret in [ownerless, foreign] {
        let state = state(Some("true"), Some(secret));
        assert!(refusal(state.begin(key(2))).contains("team-a/orders-signing was not made"));
        assert!(refusal(state.signing_keys()).contains("was not made"));
        assert!(state.own_secret().is_none(), "it is not removed either");
    }
    assert!(state(Some("true"), made(1)).own_secret().is_some());
}

#[test]
fn a_key_is_rotated_where_there_is_one() {
    assert!(refusal(state(None, made(1)).signing_keys()).contains("not signed"));
    assert!(refusal(state(Some("true"), None).signing_keys()).contains("does not exist"));
    assert_eq!(state(Some("true"), made(1)).signing_keys(), Ok(only(1)));
}

#[test]
fn the_key_before_signs_for_as_long_as_was_asked_for() {
    let later = now().saturating_add(HOUR).unwrap();
    let rotated = rotate(only(1), key(2), HOUR, now()).unwrap();
    let expected = SigningKeys {
        current: key(2),
        previous: Some((key(1), later)),
    };
    assert_eq!(rotated, expected);
    let told = refusal(rotate(rotated.clone(), key(3), HOUR, now()));
    assert!(told.contains(&later.to_string()), "{told}");
    assert_eq!(
        rotate(rotated.clone(), key(3), Duration::ZERO, now()),
        Ok(only(3)),
        "a key that is known to others ends at once"
    );
    let after = rotate(rotated, key(3), HOUR, later).unwrap();
    assert_eq!(after.current, key(3));
    assert_eq!(after.previous.unwrap().0, key(2));
}

#[test]
fn the_secret_goes_with_its_trigger_and_with_nobody_else() {
    let secret = secret(&only(1));
    assert_eq!(secret.name_any(), "orders-signing");
    assert_eq!(secret.namespace().as_deref(), Some("team-a"));
    assert_eq!(secret.labels()[MANAGED_BY_LABEL], MANAGED_BY);
    let owner = &secret.owner_references()[0];
    assert_eq!((&*owner.kind, &*owner.uid), ("Trigger", "t-1"));
    let mut live = secret.clone();
    live.metadata.resource_version = Some("17".to_owned());
    let next = state(Some("true"), Some(live)).secret_with(&only(2));
    assert_eq!(next.resource_version().as_deref(), Some("17"));
}
