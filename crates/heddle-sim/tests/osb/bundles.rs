//! Bundles as platforms meet them: a catalog that is behind, a bundle that is swept meanwhile, a registry nobody has read yet.
//!
//! The catalog here is compiled from what is on the API server when a story begins, and then stands still: so a story decides
//! what the front does not know.

use std::sync::Arc;
use std::time::Duration;

use futures::future;
use heddle_api::offer::bundle::plan_id;
use heddle_api::{Bundle, BundleRevision, Registry};
use heddle_apiserver::CONTROLLERS;
use heddle_front::Settings;
use heddle_front::catalog::{self, LiveOffers, Rules};
use heddle_rt::Chance;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::world::{World, client, front_of, patch_status, tell_with};

const I: &str = "/v2/service_instances/i";
const SERVICE: &str = "id-of-db";

fn wanted(service_id: &str) -> Value {
    json!({
        "service_id": service_id, "plan_id": plan_id(SERVICE, "hub", "db", "small"),
        "organization_guid": "org", "space_guid": "space", "context": {"namespace": "team-a"},
        "parameters": {"size": 3},
    })
}

/// Puts a registry there, read or not.
async fn registry(world: &World, name: &str, read: bool) {
    let api: Api<Registry> = Api::all(world.users.clone());
    let object = json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry", "metadata": {"name": name},
        "spec": {"type": "apiv2", "url": "http://registry.example"},
    });
    let object = serde_json::from_value(object).unwrap();
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    if read {
        let status = json!({"convergedGeneration": created.metadata.generation});
        patch_status(&api, name, status).await;
    }
}

/// Puts the bundle `db` of the registry `hub` there, in one revision.
async fn bundle(world: &World) {
    let object = json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "BundleRevision", "metadata": {"name": "db-1"},
        "spec": {
            "bundle": "db", "registry": "hub", "image": "registry.example/org/db",
            "manifestDigest": "sha256:1", "configDigest": "sha256:2", "bundleVersion": "1.0.0", "runtime": 1,
            "description": {
                "version": "1.0", "name": "db", "description": "A database", "bindable": true,
                "plans": [{"name": "small", "parameters": [{"name": "size", "type": "int"}]}],
            },
        },
    });
    let revisions: Api<BundleRevision> = Api::all(world.users.clone());
    let revision = serde_json::from_value(object).unwrap();
    revisions
        .create(&PostParams::default(), &revision)
        .await
        .unwrap();
    let object = json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Bundle", "metadata": {"name": "db"},
        "spec": {"registry": "hub", "repository": "org/db", "track": "latest", "serviceID": SERVICE},
    });
    let bundles: Api<Bundle> = Api::all(world.users.clone());
    let bundle = serde_json::from_value(object).unwrap();
    bundles
        .create(&PostParams::default(), &bundle)
        .await
        .unwrap();
    patch_status(
        &bundles,
        "db",
        json!({"phase": "Live", "currentRevision": "db-1"}),
    )
    .await;
}

/// Gives the world a front with the catalog of what is there now.
async fn with_catalog(mut world: World, settings: Settings) -> World {
    let options = catalog::Options::new(world.clock.clone(), Chance::seeded(5), Rules::default());
    let (offers, following) = catalog::start(client(&world.server, CONTROLLERS), options);
    let ready: LiveOffers = offers.clone();
    future::select(following, Box::pin(async move { ready.ready().await })).await;
    let client = client(&world.server, CONTROLLERS);
    world.front = front_of(client, &world.clock, settings, Arc::new(offers));
    world
}

fn tell<F: Future<Output = ()>>(story: impl FnOnce(World) -> F) {
    tell_with(Settings::default(), story);
}

#[test]
fn an_instance_of_a_bundle_is_pinned_and_read_back() {
    tell(|world| async move {
        registry(&world, "hub", true).await;
        bundle(&world).await;
        let world = with_catalog(world, Settings::default()).await;
        let put = world
            .put(&format!("{I}?accepts_incomplete=true"), wanted(SERVICE))
            .await;
        assert_eq!(put.status, 202, "{put:?}");
        let instance = world.instance("team-a", "i").await;
        assert_eq!(instance.spec.revision_ref.unwrap().name, "db-1");
        assert_eq!(instance.spec.maintenance_info.unwrap().version, "1.0.0");
        let text = world.front.metrics_text();
        assert!(
            text.contains(
                r#"heddle_instances{registry="hub",bundle="hub-db",bundle_version="1.0.0"} 1"#
            ),
            "{text}"
        );
    });
}

#[test]
fn an_instance_is_taken_back_when_its_bundle_is_swept_meanwhile() {
    for gone in [false, true] {
        tell(|world| async move {
            registry(&world, "hub", true).await;
            bundle(&world).await;
            let world = with_catalog(world, Settings::default()).await;
            let bundles: Api<Bundle> = Api::all(world.users.clone());
            if gone {
                bundles
                    .delete("db", &DeleteParams::default())
                    .await
                    .unwrap();
            } else {
                patch_status(&bundles, "db", json!({"phase": "Sweeping"})).await;
            }
            let put = world
                .put(&format!("{I}?accepts_incomplete=true"), wanted(SERVICE))
                .await;
            assert_eq!(
                (put.status, &put.body["error"]),
                (400, &json!("ServiceWithdrawn")),
                "{put:?}"
            );
            let left = world.instance("team-a", "i").await;
            assert!(
                left.metadata.deletion_timestamp.is_some(),
                "its controller has to let it go"
            );
            let text = world.front.metrics_text();
            let line = r#"heddle_out_of_sync_total{code="ServiceWithdrawn"} 1"#;
            assert!(text.contains(line), "{text}");
        });
    }
}

/// The catalog of the front was behind: it pinned a revision that is collected.
#[test]
fn an_instance_is_taken_back_when_its_revision_is_gone_meanwhile() {
    tell(|world| async move {
        registry(&world, "hub", true).await;
        bundle(&world).await;
        let world = with_catalog(world, Settings::default()).await;
        let revisions: Api<BundleRevision> = Api::all(world.users.clone());
        let params = DeleteParams::default();
        revisions.delete("db-1", &params).await.unwrap();
        let put = world
            .put(&format!("{I}?accepts_incomplete=true"), wanted(SERVICE))
            .await;
        assert_eq!(
            (put.status, &put.body["error"]),
            (422, &json!("ConcurrencyError")),
            "{put:?}"
        );
        let left = world.instance("team-a", "i").await;
        assert!(left.metadata.deletion_timestamp.is_some());
    });
}

#[test]
fn a_mark_alone_does_not_take_back_what_was_accepted() {
    tell(|world| async move {
        registry(&world, "hub", true).await;
        bundle(&world).await;
        let world = with_catalog(world, Settings::default()).await;
        let bundles: Api<Bundle> = Api::all(world.users.clone());
        patch_status(&bundles, "db", json!({"phase": "Marked"})).await;
        let put = world
            .put(&format!("{I}?accepts_incomplete=true"), wanted(SERVICE))
            .await;
        assert_eq!(put.status, 202, "{put:?}");
    });
}

#[test]
fn what_a_registry_may_yet_have_is_accepted_and_told_what_it_waits_for() {
    let settings = Settings {
        awaiting_catalog_max: 2,
        ..Settings::default()
    };
    tell(|world| async move {
        registry(&world, "slow", false).await;
        let world = with_catalog(world, settings).await;
        let at = |id: &str| format!("/v2/service_instances/{id}?accepts_incomplete=true");
        let first = world.put(&at("a"), wanted("later")).await;
        assert_eq!(first.status, 202, "{first:?}");
        let again = world.put(&at("a"), wanted("later")).await;
        assert_eq!(
            (again.status, again.operation()),
            (202, first.operation()),
            "the same operation"
        );
        let other = world.put(&at("a"), wanted("another")).await;
        assert_eq!(other.status, 409, "{other:?}");
        let poll = world.get("/v2/service_instances/a/last_operation").await;
        assert_eq!(
            (poll.status, &poll.body["state"], &poll.body["description"]),
            (
                200,
                &json!("in progress"),
                &json!("waiting for registry slow to be read")
            )
        );
        assert!(poll.headers.contains_key("retry-after"));
        let alone = world.put("/v2/service_instances/b", wanted("later")).await;
        assert_eq!(
            (alone.status, &alone.body["error"]),
            (422, &json!("AsyncRequired"))
        );
        assert_eq!(world.put(&at("b"), wanted("later")).await.status, 202);
        let crowded = world.put(&at("c"), wanted("later")).await;
        assert_eq!(crowded.status, 429, "{crowded:?}");
        assert!(crowded.headers.contains_key("retry-after"));
        assert!(
            world
                .front
                .metrics_text()
                .contains("heddle_awaiting_catalog 2")
        );
        let query = "service_id=later&plan_id=x&accepts_incomplete=true";
        let removed = world
            .delete(&format!("/v2/service_instances/a?{query}"))
            .await;
        assert_eq!(removed.status, 202, "{removed:?}");
    });
}

#[test]
fn an_empty_catalog_is_not_shown_before_registries_had_a_moment() {
    tell(|world| async move {
        let world = with_catalog(world, Settings::default()).await;
        let none = world.get("/v2/catalog").await;
        assert_eq!(
            (none.status, none.body),
            (200, json!({"services": []})),
            "without registries there is nothing to wait for"
        );
        registry(&world, "slow", false).await;
        let world = with_catalog(world, Settings::default()).await;
        let early = world.get("/v2/catalog").await;
        assert_eq!(early.status, 503, "{early:?}");
        assert!(early.headers.contains_key("retry-after"));
        let text = early.body["description"].as_str().unwrap();
        assert!(text.contains("slow"), "{text}");
        world.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(world.get("/v2/catalog").await.status, 200, "not for ever");
        // One that knows a bundle from before shows it at once, whatever registries are doing.
        bundle(&world).await;
        let world = with_catalog(world, Settings::default()).await;
        let stored = world.get("/v2/catalog").await;
        assert_eq!(stored.status, 200);
        assert_eq!(stored.body["services"][0]["id"], json!(SERVICE));
    });
}
