//! What the controllers promise about registries, bundles and revisions, on simulated time and the real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::bundle::{BundlePhase, MarkReason};
use heddle_api::offer::bundle::{Origin, service_id};
use heddle_api::registry::{IdScheme, RegistryStatus};
use heddle_api::sync_run::SyncCause;
use heddle_api::tombstone::{self, Tombstone};
use heddle_api::well_known::{
    APPROVED_ANNOTATION, RECORD_LABEL, SYNC_ANNOTATION, SYSTEM_NAMESPACE, WITHDRAWN_ANNOTATION,
};
use heddle_api::{Bundle, BundleRevision, Registry, ServiceInstance, SyncRun, names};
use heddle_controllers::{Metrics, Options};
use heddle_rt::Chance;
use heddle_sim::bundles::registry::{Event, TestRegistries, digest};
use heddle_sim::stage::{NAMESPACES, on_stage};
use k8s_openapi::api::core::v1::{ConfigMap, Event as Notice, Secret};
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::world::{TEAM, Users, condition};

/// An interval with its jitter.
const INTERVAL: Duration = Duration::from_secs(660);

struct World {
    users: Users,
    registries: TestRegistries,
    numbers: Metrics,
    restart: Arc<Notify>,
}

/// Tells a story in a fresh world in which the controllers run, and can be started anew.
fn tell<F: Future<Output = ()>>(story: impl FnOnce(World) -> F) {
    on_stage(&NAMESPACES, |stage| async move {
        let mut options = Options::new(stage.clock.clone(), Chance::seeded(2));
        let registries = TestRegistries::new(stage.clock.clone());
        options.bundles = Some(Arc::new(registries.clone()));
        let restart = Arc::new(Notify::new());
        let world = World {
            users: Users::new(stage.users(), &stage.clock),
            registries,
            numbers: options.numbers.clone(),
            restart: Arc::clone(&restart),
        };
        let lives = async {
            loop {
                let controllers = stage.controllers();
                tokio::select! {
                    () = heddle_controllers::run(controllers, options.clone()) => {}
                    () = restart.notified() => {}
                }
            }
        };
        stage.play(story(world), lives).await;
    });
}

/// What is left when a bundle, by its image, is looked at by those who use the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look {
    phase: BundlePhase,
    reason: Option<MarkReason>,
    version: Option<String>,
}

fn live(version: &str) -> Look {
    Look {
        phase: BundlePhase::Live,
        reason: None,
        version: Some(version.to_owned()),
    }
}

fn marked(reason: MarkReason, version: &str) -> Look {
    Look {
        phase: BundlePhase::Marked,
        reason: Some(reason),
        ..live(version)
    }
}

impl World {
    async fn annotate<K: Resource<DynamicType = ()>>(&self, name: &str, key: &str, value: Value) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.users.merge::<K>("", name, patch).await;
    }

    async fn all<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let api = Api::<K>::all(self.users.client.clone());
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// A registry with an interval of ten minutes.
    async fn registry(&self, name: &str, more: Value) {
        let mut spec = json!({"type": "apiv2", "url": "http://r.example", "whiteList": [".*"]});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.users.apply::<Registry>("", name, spec).await;
    }

    fn happens(&self, event: Event) {
        self.registries.happen("hub", event);
    }

    fn push(&self, repository: &str, version: &str) {
        self.happens(Event::push(repository, "latest", version));
    }

    async fn intervals(&self, count: u32) {
        for _ in 0..count {
            self.users.clock.sleep(INTERVAL).await;
        }
    }

    /// Asks for a reading, and waits for everything that comes of it.
    async fn sync(&self, request: &str) {
        self.annotate::<Registry>("hub", SYNC_ANNOTATION, json!(request))
            .await;
        self.users.rest().await;
        let answered = self.status("hub").await.answered_request;
        assert_eq!(answered.as_deref(), Some(request));
    }

    async fn status(&self, registry: &str) -> RegistryStatus {
        let api = Api::<Registry>::all(self.users.client.clone());
        api.get(registry).await.unwrap().status.unwrap_or_default()
    }

    /// All bundles, by repository and tag.
    async fn looks(&self) -> BTreeMap<String, Look> {
        let bundles = self.all::<Bundle>().await;
        let looks = bundles.into_iter().map(|bundle| {
            let status = bundle.status.unwrap_or_default();
            let look = Look {
                phase: status.phase,
                reason: status.mark.map(|mark| mark.reason),
                version: status.bundle_version,
            };
            (
                format!("{}:{}", bundle.spec.repository, bundle.spec.track),
                look,
            )
        });
        looks.collect()
    }

    async fn look(&self, repository: &str) -> Option<Look> {
        self.looks().await.remove(&format!("{repository}:latest"))
    }

    /// An instance that is pinned to a version of a bundle, as the front writes it.
    async fn instance(&self, name: &str, repository: &str, version: &str) {
        let bundle = names::bundle("hub", repository, "latest");
        let digest = digest(repository, version);
        let origin = Origin {
            registry: "hub",
            repository,
            track: "latest",
            is_default_track: true,
        };
        let spec = json!({
            "instanceID": name, "serviceID": service_id(IdScheme::Uuid, &origin, ""), "planID": "p",
            "revisionRef": {"name": names::revision(&bundle, &digest), "digest": digest},
        });
        self.users.apply::<ServiceInstance>(TEAM, name, spec).await;
    }

    /// Digests of all revisions.
    async fn revisions(&self) -> BTreeSet<String> {
        let revisions = self.all::<BundleRevision>().await;
        revisions
            .into_iter()
            .map(|revision| revision.spec.manifest_digest)
            .collect()
    }

    async fn condition<K: Resource<DynamicType = ()>>(&self, name: &str, type_: &str) -> String {
        let object = self.users.api::<K>("").get(name).await.unwrap();
        condition(&object.data["status"], type_)
    }

    /// Reasons of all Events so far.
    async fn news(&self) -> BTreeSet<String> {
        let api = Api::<Notice>::all(self.users.client.clone());
        let notices = api.list(&ListParams::default()).await.unwrap();
        notices
            .items
            .into_iter()
            .filter_map(|notice| notice.reason)
            .collect()
    }

    async fn tombstones(&self) -> Vec<Tombstone> {
        let api = Api::<ConfigMap>::namespaced(self.users.client.clone(), SYSTEM_NAMESPACE);
        let label = format!("{RECORD_LABEL}={}", tombstone::LABEL);
        let found = api
            .list(&ListParams::default().labels(&label))
            .await
            .unwrap();
        found
            .iter()
            .filter_map(Tombstone::from_config_map)
            .collect()
    }
}

fn name(repository: &str) -> String {
    names::bundle("hub", repository, "latest")
}

#[test]
fn what_is_in_a_registry_is_offered_and_a_quiet_registry_writes_no_bundles() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.push("acme/web", "2.0.0");
        world.registry("hub", json!({})).await;
        world.users.rest().await;
        let looks = world.looks().await;
        let expected = [
            ("acme/db:latest", live("1.0.0")),
            ("acme/web:latest", live("2.0.0")),
        ];
        assert_eq!(
            looks,
            expected.map(|(name, look)| (name.to_owned(), look)).into()
        );
        assert_eq!(world.condition::<Registry>("hub", "Ready").await, "True");
        assert_eq!(
            world.condition::<Bundle>(&name("acme/db"), "Ready").await,
            "True"
        );
        let versions = |bundles: Vec<Bundle>| -> Vec<_> {
            bundles
                .iter()
                .map(|bundle| bundle.resource_version())
                .collect()
        };
        let before = versions(world.all().await);
        let looks = world.registries.looks();
        world.intervals(25).await;
        assert_eq!(versions(world.all().await), before);
        assert_eq!(
            world.registries.looks(),
            looks,
            "nothing was looked at closely again"
        );
        assert!(world.registries.readings("hub") >= 24);
        assert_eq!(world.all::<SyncRun>().await.len(), 20);
        let status = world.status("hub").await;
        assert_eq!(
            (status.live_bundle_count, status.consecutive_failures),
            (Some(2), Some(0))
        );
        let text = world.numbers.text();
        assert!(
            text.contains("heddle_specs{registry=\"hub\",phase=\"live\"} 2\n"),
            "{text}"
        );
        assert!(
            text.contains("heddle_registry_up{registry=\"hub\"} 1\n"),
            "{text}"
        );
    });
}

#[test]
fn an_outage_of_a_hundred_intervals_changes_nothing_but_the_count() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world
            .registry("hub", json!({"refreshIntervalSeconds": 60}))
            .await;
        world.users.rest().await;
        let last = world.status("hub").await.last_success;
        world.happens(Event::down());
        world.sync("1").await;
        // Events are kept for an hour.
        assert!(world.news().await.contains("Unreachable"));
        while world.status("hub").await.consecutive_failures != Some(100) {
            world.users.clock.sleep(Duration::from_secs(10)).await;
            assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        }
        let status = world.status("hub").await;
        assert_eq!(status.last_success, last);
        assert_eq!(
            world.condition::<Registry>("hub", "Reachable").await,
            "False:Unreachable"
        );
        assert_eq!(
            world.condition::<Bundle>(&name("acme/db"), "Stale").await,
            "True"
        );
        world.happens(Event::up());
        world.users.clock.sleep(Duration::from_secs(70)).await;
        assert_eq!(world.status("hub").await.consecutive_failures, Some(0));
        assert_eq!(
            world.condition::<Bundle>(&name("acme/db"), "Stale").await,
            "False:RegistryFresh"
        );
        assert!(world.tombstones().await.is_empty());
    });
}

#[test]
fn a_registry_that_is_set_to_hide_hides_after_its_limit_and_deletes_nothing() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        let policy = json!({"mode": "hide", "hideAfterFailures": 3});
        world
            .registry(
                "hub",
                json!({"stalePolicy": policy, "sweepGraceSeconds": 0}),
            )
            .await;
        world.users.rest().await;
        let id = world.all::<Bundle>().await[0].spec.service_id.clone();
        world.happens(Event::down());
        for (failures, is_hidden) in [(1, false), (2, false), (3, true), (4, true)] {
            world.sync(&failures.to_string()).await;
            assert_eq!(
                world.status("hub").await.consecutive_failures,
                Some(failures)
            );
            let look = world.look("acme/db").await.unwrap();
            let expected = is_hidden.then_some(MarkReason::HiddenByStalePolicy);
            assert_eq!(look.reason, expected, "after {failures}");
        }
        world.intervals(20).await;
        assert_eq!(world.all::<Bundle>().await.len(), 1);
        world.happens(Event::up());
        world.sync("up").await;
        assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        assert_eq!(world.all::<Bundle>().await[0].spec.service_id, id);
    });
}

#[test]
fn storage_that_is_swapped_for_an_empty_one_is_not_believed_until_somebody_approves() {
    tell(|world| async move {
        let repositories: Vec<String> = (0..8).map(|number| format!("acme/r{number}")).collect();
        for repository in &repositories {
            world.push(repository, "1.0.0");
        }
        world
            .registry("hub", json!({"massRemoval": {"confirmations": 100}}))
            .await;
        world.users.rest().await;
        let before = world.looks().await;
        assert_eq!(before.len(), 8);
        world.happens(Event::Empty);
        for request in ["1", "2", "3"] {
            world.sync(request).await;
            assert_eq!(world.looks().await, before);
        }
        let suspicion = world.status("hub").await.suspicion.unwrap();
        assert_eq!((suspicion.count, suspicion.readings), (8, 3));
        let ready = world.condition::<Registry>("hub", "Ready").await;
        assert_eq!(ready, "False:SuspectedMassRemoval");
        assert!(world.news().await.contains("SuspectedMassRemoval"));
        world
            .annotate::<Registry>(
                "hub",
                APPROVED_ANNOTATION,
                json!("removal-of-something-else"),
            )
            .await;
        world.users.rest().await;
        assert_eq!(world.looks().await, before);
        world
            .annotate::<Registry>("hub", APPROVED_ANNOTATION, json!(suspicion.id))
            .await;
        world.users.rest().await;
        let looks = world.looks().await;
        let gone = marked(MarkReason::RemovedFromRegistry, "1.0.0");
        assert!(looks.values().all(|look| *look == gone), "{looks:?}");
        assert_eq!(world.status("hub").await.suspicion, None);
        assert_eq!(world.condition::<Registry>("hub", "Ready").await, "True");
        let text = world.numbers.text();
        assert!(
            text.contains("heddle_specs_marked_total{reason=\"RemovedFromRegistry\"} 8\n"),
            "{text}"
        );
    });
}

#[test]
fn many_disappearances_are_believed_after_equal_readings() {
    tell(|world| async move {
        for number in 0..6 {
            world.push(&format!("acme/r{number}"), "1.0.0");
        }
        world.registry("hub", json!({})).await;
        world.users.rest().await;
        world.happens(Event::Empty);
        for (request, live_count) in [("1", 6), ("2", 6), ("3", 0)] {
            world.sync(request).await;
            let looks = world.looks().await;
            let live = looks
                .values()
                .filter(|look| look.phase == BundlePhase::Live);
            assert_eq!(live.count(), live_count, "after {request}");
        }
    });
}

#[test]
fn a_tag_that_moves_gives_a_new_revision_and_pinned_ones_stay() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.registry("hub", json!({"revisionHistory": 0})).await;
        world.users.rest().await;
        world.instance("i", "acme/db", "1.0.0").await;
        world.users.rest().await;
        let first = digest("acme/db", "1.0.0");
        assert_eq!(world.registries.kept(), [first.clone()].into());
        world.push("acme/db", "1.1.0");
        world.happens(Event::CollectGarbage);
        world.sync("1").await;
        assert_eq!(world.look("acme/db").await, Some(live("1.1.0")));
        let both: BTreeSet<String> = ["1.0.0", "1.1.0"].map(|v| digest("acme/db", v)).into();
        assert_eq!(world.revisions().await, both);
        world.intervals(10).await;
        assert!(
            world.registries.kept().contains(&first),
            "its instance needs it"
        );
        // The same content under the tag again is no news, and the other revision is of no use.
        world.push("acme/db", "1.0.0");
        world.sync("2").await;
        assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        assert_eq!(world.revisions().await, [first].into());
    });
}

#[test]
fn a_bundle_is_offered_at_every_moment_of_a_change() {
    tell(|world| async move {
        world.push("acme/db", "0");
        world.registry("hub", json!({"revisionHistory": 0})).await;
        world.users.rest().await;
        for version in 1..=20 {
            world.push("acme/db", &version.to_string());
            let request = json!(version.to_string());
            world
                .annotate::<Registry>("hub", SYNC_ANNOTATION, request)
                .await;
            let (old, new) = (live(&(version - 1).to_string()), live(&version.to_string()));
            let mut turns = 0;
            let mut last = old.clone();
            for _ in 0..500 {
                let look = world.look("acme/db").await.unwrap();
                assert!(look == old || look == new, "{look:?}");
                let bundle = world.all::<Bundle>().await.remove(0).status.unwrap();
                let revision = bundle.current_revision.unwrap();
                assert!(
                    world
                        .users
                        .api::<BundleRevision>("")
                        .get_opt(&revision)
                        .await
                        .unwrap()
                        .is_some()
                );
                turns += usize::from(look != last);
                last = look;
                world.users.clock.sleep(Duration::from_millis(3)).await;
            }
            assert_eq!((turns, last), (1, new), "it turns once");
        }
    });
}

#[test]
fn of_ten_pushes_the_current_the_pinned_and_the_history_are_kept() {
    tell(|world| async move {
        world.push("acme/db", "0");
        world.registry("hub", json!({"revisionHistory": 1})).await;
        world.users.rest().await;
        world.instance("i", "acme/db", "0").await;
        for version in 1..10 {
            world.push("acme/db", &version.to_string());
            world.sync(&version.to_string()).await;
        }
        let kept = ["0", "8", "9"].map(|version| digest("acme/db", version));
        assert_eq!(world.revisions().await, kept.into());
        world.users.delete::<ServiceInstance>(TEAM, "i").await;
        world.users.rest().await;
        let kept = ["8", "9"].map(|version| digest("acme/db", version));
        assert_eq!(world.revisions().await, kept.into());
        world.intervals(8).await;
        assert!(world.registries.kept().is_empty(), "nobody needs any image");
    });
}

#[test]
fn what_is_gone_is_withdrawn_kept_while_it_is_used_and_swept_then() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world
            .registry("hub", json!({"sweepGraceSeconds": 100}))
            .await;
        world.users.rest().await;
        world.instance("i", "acme/db", "1.0.0").await;
        world.happens(Event::remove("acme/db", "latest"));
        world.sync("1").await;
        let gone = marked(MarkReason::RemovedFromRegistry, "1.0.0");
        assert_eq!(world.look("acme/db").await, Some(gone.clone()));
        world.intervals(20).await;
        assert_eq!(world.look("acme/db").await, Some(gone));
        let before = world.users.clock.now();
        world.users.delete::<ServiceInstance>(TEAM, "i").await;
        while world.look("acme/db").await.is_some() {
            world.users.clock.sleep(Duration::from_millis(100)).await;
        }
        let took = world.users.clock.now().duration_since(before);
        assert!(took < jiff::SignedDuration::from_secs(2), "{took}");
        let tombstones = world.tombstones().await;
        let [tombstone] = &tombstones[..] else {
            panic!("{tombstones:?}");
        };
        assert_eq!(tombstone.reason, MarkReason::RemovedFromRegistry);
        assert_eq!((&*tombstone.name, &*tombstone.registry), ("hub-db", "hub"));
        world.users.rest().await;
        assert!(world.revisions().await.is_empty());
        assert!(world.news().await.contains("Sweeping"));
        let text = world.numbers.text();
        assert!(text.contains("heddle_specs_deleted_total 1\n"), "{text}");
    });
}

#[test]
fn what_nobody_uses_is_swept_after_its_grace_and_not_before() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world
            .registry("hub", json!({"sweepGraceSeconds": 300}))
            .await;
        world.users.rest().await;
        world.happens(Event::remove("acme/db", "latest"));
        world.sync("1").await;
        world.users.clock.sleep(Duration::from_secs(260)).await;
        assert!(world.look("acme/db").await.is_some());
        world.users.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(world.look("acme/db").await, None);
    });
}

#[test]
fn a_bundle_that_comes_back_is_the_same_one() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world
            .registry("hub", json!({"removalConfirmations": 2}))
            .await;
        world.users.rest().await;
        let uid = world.all::<Bundle>().await[0].uid();
        world.happens(Event::remove("acme/db", "latest"));
        world.sync("1").await;
        assert_eq!(
            world.look("acme/db").await,
            Some(live("1.0.0")),
            "once proves nothing yet"
        );
        world.sync("2").await;
        let gone = marked(MarkReason::RemovedFromRegistry, "1.0.0");
        assert_eq!(world.look("acme/db").await, Some(gone));
        world.push("acme/db", "1.0.0");
        world.sync("3").await;
        assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        assert_eq!(world.all::<Bundle>().await[0].uid(), uid);
    });
}

#[test]
fn a_registry_that_is_removed_goes_with_the_last_user_of_its_bundles() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.push("acme/web", "1.0.0");
        world.registry("hub", json!({})).await;
        world.users.rest().await;
        world.instance("i", "acme/db", "1.0.0").await;
        world.users.rest().await;
        world.users.delete::<Registry>("", "hub").await;
        world.users.rest().await;
        let looks = world.looks().await;
        let removed = marked(MarkReason::RegistryRemoved, "1.0.0");
        assert_eq!(looks, [("acme/db:latest".to_owned(), removed)].into());
        assert_eq!(world.all::<Registry>().await.len(), 1, "it is held");
        assert_eq!(
            world.registries.kept().len(),
            1,
            "its actions run without it"
        );
        world.users.delete::<ServiceInstance>(TEAM, "i").await;
        world.users.rest().await;
        assert!(world.looks().await.is_empty());
        assert!(world.all::<Registry>().await.is_empty());
        assert!(world.revisions().await.is_empty());
        world.users.clock.sleep(INTERVAL).await;
        assert!(world.all::<SyncRun>().await.is_empty());
    });
}

#[test]
fn what_is_seen_in_one_registry_says_nothing_about_another() {
    tell(|world| async move {
        for registry in ["hub", "other"] {
            for number in 0..4 {
                let event = Event::push(&format!("acme/r{number}"), "latest", "1.0.0");
                world.registries.happen(registry, event);
            }
            world.registry(registry, json!({})).await;
        }
        world.users.rest().await;
        let of_other = |bundles: Vec<Bundle>| -> Vec<Bundle> {
            bundles
                .into_iter()
                .filter(|b| b.spec.registry == "other")
                .collect()
        };
        let before = of_other(world.all().await);
        assert_eq!(before.len(), 4);
        world.happens(Event::Empty);
        // One that never answers keeps nobody waiting.
        world.happens(Event::Takes(Duration::from_secs(20)));
        world.sync("1").await;
        let all = world.all::<Bundle>().await;
        let is_marked = |b: &&Bundle| b.status.as_ref().unwrap().phase == BundlePhase::Marked;
        assert_eq!(all.iter().filter(is_marked).count(), 4);
        assert_eq!(of_other(all), before);
    });
}

#[test]
fn a_secret_opens_a_registry_and_its_change_is_tried_at_once() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.happens(Event::Password(Some("new".to_owned())));
        world
            .registry("hub", json!({"authSecretName": "pull"}))
            .await;
        world.users.rest().await;
        let reachable = || world.condition::<Registry>("hub", "Reachable");
        assert_eq!(reachable().await, "False:AuthenticationFailed");
        let registry = world.users.api::<Registry>("").get("hub").await.unwrap();
        assert!(
            registry.data.to_string().contains("heddle-system/pull"),
            "it is named"
        );
        let secret =
            |password: &str| json!({"stringData": {"username": "u", "password": password}});
        world
            .users
            .apply_fields::<Secret>(SYSTEM_NAMESPACE, "pull", secret("old"))
            .await;
        world.users.rest().await;
        assert_eq!(reachable().await, "False:AuthenticationFailed");
        assert_eq!(world.status("hub").await.consecutive_failures, Some(2));
        world
            .users
            .apply_fields::<Secret>(SYSTEM_NAMESPACE, "pull", secret("new"))
            .await;
        world.users.rest().await;
        assert_eq!(reachable().await, "True");
        assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        world.happens(Event::Password(Some("newer".to_owned())));
        world.sync("1").await;
        assert_eq!(reachable().await, "False:AuthenticationFailed");
        assert_eq!(
            world.look("acme/db").await,
            Some(live("1.0.0")),
            "nothing is withdrawn"
        );
    });
}

#[test]
fn however_often_somebody_asks_two_readings_answer() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.happens(Event::Takes(Duration::from_secs(5)));
        world.registry("hub", json!({})).await;
        world.users.rest().await;
        let before = world.registries.readings("hub");
        for number in 0..50 {
            let request = format!("request-{number}");
            world
                .annotate::<Registry>("hub", SYNC_ANNOTATION, json!(request))
                .await;
            world.users.clock.sleep(Duration::from_millis(90)).await;
        }
        world.users.rest().await;
        let readings = world.registries.readings("hub") - before;
        assert!((1..=2).contains(&readings), "{readings} readings");
        assert_eq!(world.registries.overlaps(), 0);
        let answered = world.status("hub").await.answered_request;
        assert_eq!(answered.as_deref(), Some("request-49"));
    });
}

#[test]
fn a_reading_that_a_crash_ended_is_interrupted_and_followed_by_another() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.happens(Event::Takes(Duration::from_secs(20)));
        world.registry("hub", json!({})).await;
        world.users.clock.sleep(Duration::from_secs(10)).await;
        world.restart.notify_one();
        world.users.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        let ends = |run: &SyncRun| {
            let status = run.status.clone().unwrap_or_default();
            let completed = status.conditions.find("Completed").cloned().unwrap();
            (run.spec.cause, completed.reason)
        };
        let runs: Vec<_> = world.all::<SyncRun>().await.iter().map(ends).collect();
        assert_eq!(runs.len(), 2, "{runs:?}");
        assert!(
            runs.contains(&(SyncCause::ConfigChange, Some("Interrupted".to_owned()))),
            "{runs:?}"
        );
        assert!(runs.contains(&(SyncCause::ConfigChange, None)), "{runs:?}");
        // From now on it is known, and a restart is a start.
        world.restart.notify_one();
        world.users.clock.sleep(Duration::from_secs(60)).await;
        let runs: Vec<_> = world.all::<SyncRun>().await.iter().map(ends).collect();
        assert!(runs.contains(&(SyncCause::Startup, None)), "{runs:?}");
    });
}

#[test]
fn an_unusable_image_is_told_and_the_last_good_one_stays() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.registry("hub", json!({})).await;
        world.users.rest().await;
        world.happens(Event::PushBroken {
            repository: "acme/db".to_owned(),
            tag: "latest".to_owned(),
        });
        world.sync("1").await;
        assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        let bundle = name("acme/db");
        let accepted = || world.condition::<Bundle>(&bundle, "RevisionAccepted");
        assert_eq!(accepted().await, "False:RevisionRejected");
        assert_eq!(world.condition::<Bundle>(&bundle, "Ready").await, "True");
        assert!(world.news().await.contains("RevisionRejected"));
        world.push("acme/db", "1.1.0");
        world.sync("2").await;
        assert_eq!(accepted().await, "True");
        assert_eq!(world.look("acme/db").await, Some(live("1.1.0")));
    });
}

#[test]
fn what_nobody_can_tell_changes_nothing() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.push("acme/web", "1.0.0");
        world.registry("hub", json!({})).await;
        world.users.rest().await;
        world.happens(Event::Muddle {
            repository: "acme/db".to_owned(),
            on: true,
        });
        world.happens(Event::remove("acme/db", "latest"));
        world.push("acme/web", "1.1.0");
        for request in ["1", "2", "3"] {
            world.sync(request).await;
            assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        }
        assert_eq!(world.look("acme/web").await, Some(live("1.1.0")));
        let run = world.status("hub").await.last_sync_run.unwrap();
        let run = Api::<SyncRun>::all(world.users.client.clone())
            .get(&run)
            .await
            .unwrap();
        let status = run.status.unwrap();
        assert_eq!((status.present, status.unknown), (Some(1), Some(1)));
        assert_eq!(status.errors[0].image, "acme/db:latest");
    });
}

#[test]
fn named_tags_are_offerings_of_their_own_and_settings_withdraw_them() {
    tell(|world| async move {
        for (tag, version) in [
            ("latest", "3.0.0"),
            ("v1.0", "1.0.0"),
            ("v2.0", "2.0.0"),
            ("other", "9.0.0"),
        ] {
            world.happens(Event::push("acme/hello", tag, version));
        }
        let tags = |named: &[&str]| {
            let named: Vec<Value> = named
                .iter()
                .map(|tag| json!({"image": "hello", "tag": tag}))
                .collect();
            json!({"tags": {"default": "latest", "named": named}})
        };
        world.registry("hub", tags(&["v1.0", "v2.0"])).await;
        world.users.rest().await;
        let looks = world.looks().await;
        let offered: Vec<&str> = looks.keys().map(String::as_str).collect();
        assert_eq!(
            offered,
            ["acme/hello:latest", "acme/hello:v1.0", "acme/hello:v2.0"]
        );
        let bundles = world.all::<Bundle>().await;
        let ids: BTreeSet<&str> = bundles.iter().map(|b| b.spec.service_id.as_str()).collect();
        assert_eq!(ids.len(), 3);
        world.registry("hub", tags(&["v2.0"])).await;
        world.users.rest().await;
        let looks = world.looks().await;
        assert_eq!(
            looks["acme/hello:v1.0"],
            marked(MarkReason::Filtered, "1.0.0")
        );
        assert_eq!(looks["acme/hello:v2.0"], live("2.0.0"));
        let status = world.status("hub").await;
        assert_eq!(status.converged_generation, status.observed_generation);
    });
}

#[test]
fn somebody_may_withdraw_and_delete_but_not_under_those_who_use_it() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.registry("hub", json!({"sweepGraceSeconds": 0})).await;
        world.users.rest().await;
        world.instance("i", "acme/db", "1.0.0").await;
        world.users.rest().await;
        let bundle = name("acme/db");
        world
            .annotate::<Bundle>(&bundle, WITHDRAWN_ANNOTATION, json!("true"))
            .await;
        world.users.rest().await;
        assert_eq!(
            world.look("acme/db").await,
            Some(marked(MarkReason::Admin, "1.0.0"))
        );
        world
            .annotate::<Bundle>(&bundle, WITHDRAWN_ANNOTATION, Value::Null)
            .await;
        world.users.rest().await;
        assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
        world.users.delete::<Bundle>("", &bundle).await;
        world.intervals(3).await;
        assert_eq!(
            world.look("acme/db").await,
            Some(marked(MarkReason::Admin, "1.0.0"))
        );
        let object = world.users.api::<Bundle>("").get(&bundle).await.unwrap();
        assert!(
            object.data.to_string().contains("ServiceInstance team-a/i"),
            "it says what it waits for"
        );
        world.users.delete::<ServiceInstance>(TEAM, "i").await;
        world.users.rest().await;
        assert_eq!(world.look("acme/db").await, None);
        world.sync("1").await;
        assert_eq!(
            world.look("acme/db").await,
            Some(live("1.0.0")),
            "it is still in the registry"
        );
    });
}

#[test]
fn two_images_of_one_name_do_not_take_each_others_place() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.registry("hub", json!({"idScheme": "asb-md5"})).await;
        world.users.rest().await;
        world.push("rival/db", "2.0.0");
        world.sync("1").await;
        let offered = async |repository: &str| {
            world
                .condition::<Bundle>(&name(repository), "Offered")
                .await
        };
        assert_eq!(offered("acme/db").await, "True");
        assert_eq!(offered("rival/db").await, "False:NameTaken");
        assert!(world.news().await.contains("NameTaken"));
        world.happens(Event::remove("acme/db", "latest"));
        world.sync("2").await;
        assert_eq!(offered("rival/db").await, "True");
    });
}

#[test]
fn a_revision_that_somebody_removed_is_made_again() {
    tell(|world| async move {
        world.push("acme/db", "1.0.0");
        world.registry("hub", json!({})).await;
        world.users.rest().await;
        world.instance("i", "acme/db", "1.0.0").await;
        world.users.rest().await;
        let revision = names::revision(&name("acme/db"), &digest("acme/db", "1.0.0"));
        world.users.delete::<BundleRevision>("", &revision).await;
        world.users.rest().await;
        assert_eq!(world.revisions().await.len(), 1, "its instance keeps it");
        let bundle = name("acme/db");
        assert_eq!(
            world.condition::<Bundle>(&bundle, "Offered").await,
            "False:NoValidRevision"
        );
        world.users.delete::<ServiceInstance>(TEAM, "i").await;
        world.users.rest().await;
        assert!(world.revisions().await.is_empty());
        world.sync("1").await;
        assert_eq!(world.revisions().await.len(), 1);
        assert_eq!(world.look("acme/db").await, Some(live("1.0.0")));
    });
}
