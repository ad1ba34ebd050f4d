use heddle_api::evidence::Credentials;
use heddle_api::registry::RegistrySpec;
use heddle_api::sync_run::SyncCause;
use heddle_api::well_known::{APPROVED_ANNOTATION, SYNC_ANNOTATION};
use serde_json::json;

use super::due::cause;
use super::opening::credentials;
use super::*;

fn registry(change: impl FnOnce(&mut Value)) -> Registry {
    let mut object = json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry",
        "metadata": {"name": "hub", "uid": "u", "resourceVersion": "1", "generation": 3},
        "spec": {"type": "apiv2", "url": "https://r.example:5000/v2"},
        "status": {"lastSyncRun": "run-1", "answeredRequest": "a"},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn memory() -> Memory {
    Memory {
        run: "run-1".to_owned(),
        cause: SyncCause::Interval,
        generation: Some(3),
        secret: Some("s1".to_owned()),
        approved: None,
        next: at(1_000),
    }
}

#[test]
fn a_registry_is_due_for_each_reason_and_for_no_other() {
    let due = |change: &dyn Fn(&mut Value), secret: &str, second: i64| {
        cause(&registry(change), Some(secret), Some(&memory()), at(second))
    };
    let annotated = |key: &'static str, value: &'static str| {
        move |object: &mut Value| object["metadata"]["annotations"] = json!({key: value})
    };
    assert_eq!(due(&|_| {}, "s1", 999), None);
    assert_eq!(due(&|_| {}, "s1", 1_000), Some(SyncCause::Interval));
    assert_eq!(due(&|_| {}, "s2", 0), Some(SyncCause::ConfigChange));
    let edited = |object: &mut Value| object["metadata"]["generation"] = json!(4);
    assert_eq!(due(&edited, "s1", 0), Some(SyncCause::ConfigChange));
    let asked = annotated(SYNC_ANNOTATION, "b");
    assert_eq!(due(&asked, "s1", 0), Some(SyncCause::Manual));
    assert_eq!(
        due(&annotated(SYNC_ANNOTATION, "a"), "s1", 0),
        None,
        "it is answered"
    );
    let leaving = |object: &mut Value| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        asked(object);
    };
    assert_eq!(due(&leaving, "s1", 5_000), None);
    // What came of the last reading was not written down.
    let lost = |object: &mut Value| object["status"]["lastSyncRun"] = json!("run-0");
    assert_eq!(due(&lost, "s1", 0), Some(SyncCause::Interval));
}

#[test]
fn a_process_that_remembers_nothing_reads_at_once() {
    let known = cause(&registry(|_| {}), None, None, at(0));
    assert_eq!(known, Some(SyncCause::Startup));
    let new = registry(|object| object["status"] = json!({}));
    assert_eq!(
        cause(&new, None, None, at(0)),
        Some(SyncCause::ConfigChange)
    );
}

#[test]
fn an_approval_is_tried_once() {
    let approved = registry(|object| {
        object["metadata"]["annotations"] = json!({APPROVED_ANNOTATION: "removal-1"});
        object["status"]["suspicion"] = json!({"id": "removal-1", "count": 9, "readings": 1});
    });
    let due = |memory: &Memory| cause(&approved, Some("s1"), Some(memory), at(0));
    assert_eq!(due(&memory()), Some(SyncCause::Manual));
    let tried = Memory {
        approved: Some("removal-1".to_owned()),
        ..memory()
    };
    assert_eq!(
        due(&tried),
        None,
        "it would be read in a circle if it cannot be reached"
    );
}

fn opened(data: Option<Value>) -> Result<Credentials, String> {
    let spec =
        json!({"type": "apiv2", "url": "https://r.example:5000/v2", "authSecretName": "pull"});
    let spec: RegistrySpec = serde_json::from_value(spec).unwrap();
    let secret = data.map(|data| {
        let secret = json!({"metadata": {"name": "pull"}, "data": data});
        serde_json::from_value::<Secret>(secret).unwrap()
    });
    credentials(&spec, secret.as_ref()).map_err(|trouble| match trouble {
        Trouble::AuthenticationFailed(text) => text,
        other => panic!("{other:?}"),
    })
}

/// Base64 as a Secret holds it.
fn encoded(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}

#[test]
fn every_form_of_credentials_is_read_from_a_secret() {
    let basic = Ok(Credentials::Basic {
        username: "u".to_owned(),
        password: "p:q".to_owned(),
    });
    let pair = json!({"username": encoded("u"), "password": encoded("p:q\n")});
    assert_eq!(opened(Some(pair)), basic);
    let token = json!({"token": encoded("t")});
    assert_eq!(opened(Some(token)), Ok(Credentials::Token("t".to_owned())));
    let config = |entry: Value| {
        let auths =
            json!({"auths": {"other.example": {"auth": "x"}, "https://r.example:5000/v1/": entry}});
        Some(json!({".dockerconfigjson": encoded(&auths.to_string())}))
    };
    assert_eq!(opened(config(json!({"auth": encoded("u:p:q")}))), basic);
    assert_eq!(
        opened(config(json!({"username": "u", "password": "p:q"}))),
        basic
    );
    let identity = config(json!({"identitytoken": "i", "auth": encoded("x:")}));
    assert_eq!(opened(identity), Ok(Credentials::Token("i".to_owned())));
}

#[test]
fn a_secret_that_does_not_serve_is_named_and_its_content_is_not() {
    let not_json = json!({".dockerconfigjson": encoded("hunter2")});
    let other = json!({"auths": {"other.example": {"auth": encoded("u:hunter2")}}});
    let other = json!({".dockerconfigjson": encoded(&other.to_string())});
    let broken = json!({"auths": {"r.example:5000": {"auth": "%hunter2"}}});
    let broken = json!({".dockerconfigjson": encoded(&broken.to_string())});
    for data in [
        None,
        Some(json!({})),
        Some(json!({"username": encoded("hunter2")})),
        Some(not_json),
        Some(other),
        Some(broken),
    ] {
        let why = opened(data).unwrap_err();
        assert!(why.contains("heddle-system/pull"), "{why}");
        assert!(!why.contains("hunter2"), "{why}");
    }
}
