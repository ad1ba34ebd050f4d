//! What tests of bundles share: a registry with one bundle in two revisions, as watches bring it.

use heddle_api::bundle::{Bundle, BundlePhase, BundleSpec, BundleStatus, Mark, MarkReason};
use heddle_api::bundle_revision::{BundleRevision, BundleRevisionSpec};
use heddle_api::registry::{Registry, RegistryStatus};
use heddle_api::tombstone::Tombstone;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::{LiveOffers, Rules};

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn metadata(name: &str, created: i64) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        uid: Some(format!("uid-of-{name}")),
        generation: Some(1),
        creation_timestamp: Some(at(created)),
        ..ObjectMeta::default()
    }
}

/// A fresh list of a kind.
pub(crate) fn list<K: Clone>(objects: &[K]) -> Vec<Event<K>> {
    let mut events = vec![Event::Init];
    events.extend(objects.iter().cloned().map(Event::InitApply));
    events.push(Event::InitDone);
    events
}

/// A registry that was read completely, or never.
pub(crate) fn registry(name: &str, converged: bool) -> Registry {
    let mut registry: Registry = serde_json::from_value(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry", "metadata": {},
        "spec": {"type": "apiv2", "url": "http://registry.example"},
    }))
    .unwrap();
    registry.metadata = metadata(name, 0);
    registry.status = converged.then(|| RegistryStatus {
        converged_generation: Some(1),
        ..RegistryStatus::default()
    });
    registry
}

/// A bundle of the registry `hub`, offered under its name as the id.
pub(crate) fn bundle(name: &str, created: i64, current: &str) -> Bundle {
    let spec = BundleSpec {
        registry: "hub".to_owned(),
        repository: format!("org/{name}"),
        track: "latest".to_owned(),
        service_id: format!("id-of-{name}"),
    };
    let mut bundle = Bundle::new(name, spec);
    bundle.metadata = metadata(name, created);
    bundle.status = Some(BundleStatus {
        current_revision: Some(current.to_owned()),
        ..BundleStatus::default()
    });
    bundle
}

pub(crate) fn marked(mut bundle: Bundle, phase: BundlePhase) -> Bundle {
    let status = bundle.status.get_or_insert_default();
    status.phase = phase;
    status.mark = Some(Mark {
        reason: MarkReason::TagRemoved,
        since: at(1_800_000_000),
        sync_run: None,
    });
    bundle
}

/// A revision of a bundle, with that description.
pub(crate) fn revision(
    bundle: &str,
    name: &str,
    created: i64,
    version: &str,
    description: Value,
) -> BundleRevision {
    let spec = BundleRevisionSpec {
        bundle: bundle.to_owned(),
        registry: "hub".to_owned(),
        image: format!("registry.example/org/{bundle}"),
        manifest_digest: format!("sha256:{name}"),
        config_digest: format!("sha256:config-{name}"),
        bundle_version: Some(version.to_owned()),
        version_source: None,
        runtime: 1,
        description: description.as_object().unwrap().clone(),
    };
    let mut revision = BundleRevision::new(name, spec);
    revision.metadata = metadata(name, created);
    revision
}

/// A description with plans of these names; `size` is a number that may change, and only `small` leads somewhere.
pub(crate) fn described(name: &str, plans: &[&str]) -> Value {
    let plans: Vec<Value> = plans
        .iter()
        .map(|plan| {
            let to: &[&str] = if *plan == "small" { &["large"] } else { &[] };
            json!({
                "name": plan, "description": format!("A {plan} one"), "free": true, "updates_to": to,
                "parameters": [
                    {"name": "size", "type": "int", "updatable": true, "default": 1},
                    {"name": "secret", "type": "string", "display_type": "password"},
                ],
                "bind_parameters": [{"name": "role", "type": "enum", "enum": ["reader", "writer"]}],
            })
        })
        .collect();
    json!({
        "version": "1.0", "name": name, "description": format!("What {name} does"), "bindable": true, "async": "optional",
        "tags": ["database"], "plans": plans,
        "metadata": {"displayName": "A database", "documentationUrl": "http://docs.example", "imageUrl": ""},
    })
}

/// What is remembered of a bundle that was swept.
pub(crate) fn tombstone(service_id: &str) -> Tombstone {
    Tombstone {
        service_id: service_id.to_owned(),
        name: format!("hub-{service_id}"),
        registry: "hub".to_owned(),
        image: "org/gone:latest".to_owned(),
        reason: MarkReason::RemovedFromRegistry,
        withdrawn_at: at(1_700_000_000),
        gone_at: at(1_700_000_600),
    }
}

/// `db` of the registry `hub`: in version 1.0.0, its first revision, it had the plans `small`, `large` and `old`; in 2.0.0,
/// its current one, `small` takes no `size` below 10 and `old` is no more. `gone` was swept.
pub(crate) fn offers(db: Bundle) -> LiveOffers {
    let offers = LiveOffers::new(Rules::default());
    let mut newer = described("db", &["small", "large"]);
    newer["plans"][0]["parameters"][0]["minimum"] = json!(10);
    offers.take_applications(list(&[]));
    offers.take_mappings(list(&[]));
    offers.take_registries(list(&[registry("hub", true)]));
    offers.take_revisions(list(&[
        revision(
            "db",
            "db-1",
            10,
            "1.0.0",
            described("db", &["small", "large", "old"]),
        ),
        revision("db", "db-2", 20, "2.0.0", newer),
    ]));
    offers.take_bundles(list(&[db]));
    offers.take_tombstones(list(&[tombstone("id-of-gone").to_config_map()]));
    assert!(offers.is_ready());
    offers
}

/// Id of a plan of `db`.
pub(crate) fn plan_id(plan: &str) -> String {
    heddle_api::offer::bundle::plan_id("id-of-db", "hub", "db", plan)
}
