//! Who is believed to be whom.

use serde_json::json;

use super::*;

fn secret(application: &str, token: &str, change: serde_json::Value) -> Arc<Secret> {
    let mut secret = json!({
        "metadata": {
            "name": format!("{application}-publisher"),
            "ownerReferences": [{"apiVersion": "v1", "kind": "Application", "name": application, "uid": "u", "controller": true}],
        },
        "type": "heddle.dev/publisher-token",
        "data": {"token": k8s_openapi::ByteString(token.into())},
    });
    json_merge(&mut secret, change);
    Arc::new(serde_json::from_value(secret).unwrap())
}

fn json_merge(into: &mut serde_json::Value, from: serde_json::Value) {
    match (into, from) {
        (serde_json::Value::Object(into), serde_json::Value::Object(from)) => {
            for (key, value) in from {
                json_merge(into.entry(key).or_insert(serde_json::Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn application(name: &str, spec: serde_json::Value) -> Arc<Application> {
    let object = json!({"apiVersion": "v1", "kind": "Application", "metadata": {"name": name}, "spec": spec});
    Arc::new(serde_json::from_value(object).unwrap())
}

fn publishers(secrets: &[Arc<Secret>], applications: &[Arc<Application>]) -> Publishers {
    let publishers = Publishers::default();
    *publishers.known.write() = Arc::new(Known::new(secrets, applications));
    publishers
}

fn is(application: &str) -> Option<Who> {
    Some(Who::Application(application.into()))
}

#[test]
fn a_token_is_believed_only_from_a_secret_that_the_controller_keeps() {
    let known = publishers(
        &[
            secret("shop", "s3cret", json!({})),
            secret("a", "opaque", json!({"type": "Opaque"})),
            secret("b", "renamed", json!({"metadata": {"name": "other"}})),
            secret("c", "unowned", json!({"metadata": {"ownerReferences": []}})),
            secret(
                "d",
                "leaving",
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            ),
            secret("e", "", json!({})),
        ],
        &[],
    );
    assert_eq!(known.by_token("s3cret"), is("shop"));
    for stranger in ["S3cret", "opaque", "renamed", "unowned", "leaving", ""] {
        assert_eq!(known.by_token(stranger), None, "{stranger:?}");
    }
}

#[test]
fn a_certificate_names_the_application_or_a_client_id_and_what_it_asks_for() {
    let ids = |ids: &[&str]| json!({"compassMetadata": {"applicationId": "i", "authentication": {"clientIds": ids}}});
    let known = publishers(
        &[],
        &[
            application("shop", ids(&["id-1", "both", "crm"])),
            application("crm", ids(&["both"])),
            application("bank", json!({"tenant": "t", "group": "g"})),
        ],
    );
    let subject = |name: &str, organizations: &[&str], units: &[&str]| Subject {
        common_name: Some(name.to_owned()),
        organizations: organizations
            .iter()
            .map(|text| (*text).to_owned())
            .collect(),
        units: units.iter().map(|text| (*text).to_owned()).collect(),
    };
    for (name, organizations, units, expected) in [
        ("shop", &[][..], &[][..], is("shop")),
        ("id-1", &[], &[], is("shop")),
        ("both", &[], &[], None),
        // A name belongs to its Application, whoever else claims it.
        ("crm", &[], &[], is("crm")),
        ("nobody", &[], &[], None),
        ("bank", &["t"], &["g"], is("bank")),
        ("bank", &["x", "t"], &["g"], is("bank")),
        ("bank", &["t"], &[], None),
        ("bank", &["g"], &["t"], None),
        ("bank", &[], &[], None),
    ] {
        let found = known.by_subject(&subject(name, organizations, units));
        assert_eq!(found, expected, "{name} {organizations:?} {units:?}");
    }
    assert_eq!(known.by_subject(&Subject::default()), None);
}
