//! What tests of instances and bindings begin with: an operation, accepted a while ago, on an object that its finalizer
//! holds.

use std::collections::BTreeSet;

use heddle_api::BundleRevision;
use heddle_api::action::RunState;
use heddle_api::operation::{OperationKind, OperationRequest, RevisionReference};
use heddle_api::well_known::FINALIZER;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Value, json};

use crate::actions::ActionDeps;

pub(crate) const ACCEPTED: i64 = 1_000_000;
pub(crate) const DEADLINE: i64 = ACCEPTED + 3_240;

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn request(kind: OperationKind, id: &str) -> OperationRequest {
    OperationRequest {
        id: id.to_owned(),
        kind,
        request_hash: "h".to_owned(),
        accepted_at: Time(at(ACCEPTED)),
        deadline: Some(Time(at(DEADLINE))),
    }
}

/// As a server has it, made when the operation was accepted.
pub(crate) fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("team-a".to_owned()),
        uid: Some("u1".to_owned()),
        resource_version: Some("7".to_owned()),
        generation: Some(1),
        creation_timestamp: Some(Time(at(ACCEPTED))),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    }
}

/// What an action on a revision needs, all of it there.
pub(crate) fn action_deps(reference: RevisionReference, pinned: BundleRevision) -> ActionDeps {
    ActionDeps {
        reference,
        pinned: Some(pinned),
        current: None,
        registry: None,
        kept: BTreeSet::from(["sha256:1".to_owned()]),
        run: Some(RunState::Unheard),
        credentials: None,
    }
}

/// The revision `r1` of the bundle `db`.
pub(crate) fn revision(plans: &Value) -> BundleRevision {
    let revision = json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "BundleRevision", "metadata": {"name": "r1"},
        "spec": {
            "bundle": "b", "registry": "hub", "image": "x", "manifestDigest": "sha256:1", "configDigest": "c",
            "description": {"name": "db", "plans": plans},
        },
    });
    serde_json::from_value(revision).unwrap()
}
