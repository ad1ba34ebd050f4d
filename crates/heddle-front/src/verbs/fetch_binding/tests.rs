//! What is seen of a binding.

use super::*;
use crate::verbs::testing::{binding, members, now};
use heddle_api::service_binding::Endpoint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

#[test]
fn a_binding_is_seen_only_while_it_is_in_force() {
    assert!(visible(None, "b").is_err());
    for lifecycle in [
        Lifecycle::Making,
        Lifecycle::MakeFailed,
        Lifecycle::Removing,
        Lifecycle::RemoveFailed,
    ] {
        assert_eq!(
            visible(Some(&binding("prompt", lifecycle)), "b")
                .unwrap_err()
                .status(),
            404,
            "{lifecycle:?}"
        );
    }
    assert!(visible(Some(&binding("prompt", Lifecycle::Ready)), "b").is_ok());
}

#[test]
fn members_appear_with_the_version_that_knows_them_and_only_when_they_hold_something() {
    let mut live = binding("prompt", Lifecycle::Ready);
    let credentials = || members(json!({"GATEWAY_URL": "http://g"}));
    assert_eq!(
        Value::from(shown(&live, credentials(), Version::NEWEST)),
        json!({"credentials": {"GATEWAY_URL": "http://g"}})
    );
    let status = live.status.as_mut().unwrap();
    status.endpoints = vec![Endpoint {
        host: "g".to_owned(),
        ports: vec!["80".to_owned()],
        protocol: Protocol::Tcp,
    }];
    status.expires_at = Some(Time(now()));
    let keys = |version| {
        shown(&live, credentials(), version)
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(Version::V2_14), ["credentials"]);
    assert_eq!(keys(Version::V2_15), ["credentials", "endpoints"]);
    assert_eq!(
        keys(Version::V2_16),
        ["credentials", "endpoints", "metadata"]
    );
    let body = Value::from(shown(&live, credentials(), Version::V2_16));
    assert_eq!(
        body["metadata"],
        json!({"expires_at": "2027-01-15T08:00:00.0Z"})
    );
    assert_eq!(
        body["endpoints"],
        json!([{"host": "g", "ports": ["80"], "protocol": "tcp"}])
    );
}
