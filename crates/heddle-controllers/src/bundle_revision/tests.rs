use std::collections::BTreeSet;

use heddle_api::bundle_source::FetchError;
use heddle_api::evidence::Credentials;
use heddle_api::well_known::FINALIZER;
use heddle_api::{Bundle, BundleRevision, Registry};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::keep::needed;
use super::observe::World;
use super::plan::{is_surplus, plan};
use super::status::status;
use crate::reconcile::Step;
use crate::usage::Usage;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn revision(number: i64) -> BundleRevision {
    serde_json::from_value(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "BundleRevision",
        "metadata": {
            "name": format!("r{number}"), "uid": format!("u{number}"), "resourceVersion": "1",
            "creationTimestamp": at(number).to_string(), "finalizers": [FINALIZER],
        },
        "spec": {
            "bundle": "b", "registry": "hub", "image": "r.example/acme/db",
            "manifestDigest": format!("d{number}"), "configDigest": "c", "description": {},
        },
    }))
    .unwrap()
}

fn instance(revision: &str) -> DynamicObject {
    let resource = ApiResource::erase::<heddle_api::ServiceInstance>(&());
    let data = json!({"spec": {"serviceID": "s", "revisionRef": {"name": revision}}});
    DynamicObject::new("i", &resource).within("team").data(data)
}

/// The world of revision `number` of ten, of which the last is current and `used` are in use.
fn world(number: i64, history: i32, used: &[&str]) -> World {
    let bundle: Bundle = serde_json::from_value(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Bundle", "metadata": {"name": "b"},
        "spec": {"registry": "hub", "repository": "acme/db", "track": "latest", "serviceID": "s"},
        "status": {"currentRevision": "r10", "seen": {"revision": "r10"}},
    }))
    .unwrap();
    let registry: Registry = serde_json::from_value(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry", "metadata": {"name": "hub"},
        "spec": {"type": "apiv2", "revisionHistory": history},
    }))
    .unwrap();
    let users: Vec<DynamicObject> = used.iter().map(|name| instance(name)).collect();
    World {
        revision: revision(number),
        bundle: Some(bundle),
        siblings: (1..=10).map(revision).collect(),
        registry: Some(registry),
        credentials: Ok(Credentials::None),
        used: BTreeSet::new(),
        usage: Some(Usage::of(&users)),
        is_kept: Some(false),
        trouble: None,
        is_released: false,
    }
}

fn kept(history: i32, used: &[&str]) -> Vec<i64> {
    let is_kept = |number: &i64| !is_surplus(&world(*number, history, used));
    (1..=10).filter(is_kept).collect()
}

#[test]
fn of_ten_revisions_the_current_the_used_and_the_newest_unused_are_kept() {
    assert_eq!(kept(0, &[]), [10]);
    assert_eq!(kept(1, &["r1"]), [1, 9, 10]);
    assert_eq!(kept(2, &["r1"]), [1, 8, 9, 10]);
    assert_eq!(kept(2, &["r9", "r3"]), [3, 7, 8, 9, 10]);
    assert_eq!(kept(100, &[]), (1..=10).collect::<Vec<_>>());
}

#[test]
fn without_its_bundle_a_revision_is_kept_for_its_users_only() {
    for (used, is_kept) in [(&["r1"][..], true), (&[], false)] {
        let mut world = world(1, 100, used);
        world.bundle = None;
        assert_eq!(!is_surplus(&world), is_kept);
    }
}

fn step_names(world: &World) -> Vec<&'static str> {
    plan(world).iter().map(Step::step_name).collect()
}

#[test]
fn nothing_is_removed_on_the_word_of_a_cache() {
    let mut unread = world(1, 0, &[]);
    unread.usage = None;
    assert!(step_names(&unread).is_empty());
    assert_eq!(step_names(&world(1, 0, &[])), ["delete"]);
}

#[test]
fn a_deleted_revision_waits_for_its_users_and_its_bundle() {
    let deleted = |number: i64, used: &[&str]| {
        let mut world = world(number, 0, used);
        world.revision.metadata.deletion_timestamp = Some(Time(at(99)));
        step_names(&world)
    };
    assert_eq!(deleted(1, &[]), ["release"]);
    assert!(deleted(1, &["r1"]).is_empty());
    assert!(deleted(10, &[]).is_empty(), "it is what new instances get");
}

fn cached(world: &World) -> (String, String) {
    let status: Value = status(world, at(100)).unwrap();
    let cached = &status["conditions"][0];
    assert_eq!(cached["type"], "Cached");
    let text = |key: &str| cached[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

#[test]
fn the_status_says_whether_the_image_is_kept_and_why_not() {
    let said = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    let mut world = world(10, 2, &["r10"]);
    assert_eq!(cached(&world), said("False", "NotFetched"));
    for (trouble, reason) in [
        (FetchError::Mismatch("x".to_owned()), "DigestMismatch"),
        (FetchError::Refused("x".to_owned()), "ImageRefused"),
        (FetchError::Unavailable("x".to_owned()), "FetchFailed"),
    ] {
        world.trouble = Some(trouble);
        assert_eq!(cached(&world), said("False", reason));
        // Somebody looks before the next attempt: it is still so.
        let told = serde_json::from_value(status(&world, at(100)).unwrap()).unwrap();
        let mut later = world.clone();
        later.revision.status = Some(told);
        later.trouble = None;
        assert_eq!(cached(&later), said("False", reason));
        later.usage = Some(Usage::default());
        assert_eq!(
            cached(&later),
            said("False", "NotFetched"),
            "nobody needs it any more"
        );
    }
    world.is_kept = Some(true);
    assert_eq!(cached(&world), said("True", ""));
    world.is_kept = None;
    assert_eq!(cached(&world), said("Unknown", "NoBundles"));
}

#[test]
fn images_are_needed_while_they_are_kept_or_in_use() {
    let mut kept = revision(1);
    kept.status =
        serde_json::from_value(json!({"conditions": [{"type": "Cached", "status": "True"}]}))
            .unwrap();
    let usage = Usage::of(&[instance("r2")]);
    let twin = {
        let mut twin = revision(4);
        twin.spec.manifest_digest = "d1".to_owned();
        twin.status.clone_from(&kept.status);
        twin
    };
    let needed = needed(&[kept, revision(2), revision(3), twin], &usage);
    assert_eq!(needed, ["d1", "d2"]);
}
