//! What the controllers promise about instances and bindings, on simulated time and the real API server.
//!
//! Here the test is the OSB front: it writes what the front would have written, and reads what the front would have read.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use heddle_api::operation::{OperationKind, OperationProgress, OperationState};
use heddle_api::record::{About, Record};
use heddle_api::service_instance::Phase;
use heddle_api::well_known::{FINALIZER, RECORD_LABEL, SYSTEM_NAMESPACE};
use heddle_api::{
    Application, ApplicationMapping, EventFlow, ServiceBinding, ServiceInstance, names,
};
use heddle_controllers::Options;
use heddle_rt::{Chance, Clock};
use heddle_sim::plane::TestPlane;
use heddle_sim::stage::{NAMESPACES, on_stage, registry};
use heddle_sim::sweep::{
    Act, Outside, Story, bind, deprovision, provision, run_trial, shop, shop_mapping, unbind,
};
use heddle_sim::weather::Weather;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::{Value, json};

use crate::world::{self, TEAM, Users, with_plane};

struct World {
    users: Users,
    plane: TestPlane,
}

fn tell<F: Future<Output = ()>>(story: impl FnOnce(World) -> F) {
    world::tell(with_plane, |users, plane| story(World { users, plane }));
}

/// The same while so many of a hundred requests of the controllers fail.
fn tell_in<F: Future<Output = ()>>(
    percent: u64,
    seed: u64,
    story: impl FnOnce(World, Weather) -> F,
) {
    on_stage(&NAMESPACES, |stage| async move {
        let chance = Chance::seeded(seed);
        let weather = stage.bad_weather(chance.clone(), percent);
        let client = weather.client();
        let mut options = Options::new(stage.clock.clone(), chance);
        let plane = with_plane(&mut options);
        let users = Users::new(stage.users(), &stage.clock);
        let world = World { users, plane };
        let controllers = heddle_controllers::run(client, options);
        stage.play(story(world, weather), controllers).await;
    });
}

impl World {
    async fn all<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.users
            .team::<K>()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }

    /// An Application with a service of events and one with an API, of which nothing is installed if so asked.
    async fn shop(&self, skip: bool) {
        let service = |id: &str, entry: Value| {
            json!({
                "id": id, "name": id, "displayName": id, "description": id, "providerDisplayName": "acme", "entries": [entry],
            })
        };
        let keys = json!({"type": "Basic", "secretName": "keys"});
        let api = json!({"type": "API", "gatewayUrl": "http://prices.example:8080/v1", "credentials": keys});
        let services = [
            service("orders", json!({"type": "Events"})),
            service("prices", api),
        ];
        let spec = json!({"services": services, "skipInstallation": skip});
        self.users.apply::<Application>("", "shop", spec).await;
        self.keys().await;
    }

    /// The Secret that the API's credentials are taken from.
    async fn keys(&self) {
        let password = json!({"stringData": {"password": "hush"}});
        self.users
            .apply_fields::<Secret>("kyma-integration", "keys", password)
            .await;
    }

    fn integration_secrets(&self) -> Api<Secret> {
        Api::namespaced(self.users.client.clone(), "kyma-integration")
    }

    async fn mapping(&self) {
        let mapping = ApplicationMapping::new("shop", Default::default());
        self.users
            .team()
            .create(&PostParams::default(), &mapping)
            .await
            .unwrap();
    }

    async fn provision(&self, id: &str, service: &str) {
        let instance = json!({
            "metadata": {"name": names::instance(id), "finalizers": [FINALIZER]},
            "spec": {
                "instanceID": id, "serviceID": service, "planID": format!("{service}-plan"),
                "application": {"name": "shop", "serviceID": service},
                "operation": self.users.operation(&format!("make-{id}"), OperationKind::Provision),
            },
        });
        self.users
            .create(self.users.team::<ServiceInstance>(), instance)
            .await;
    }

    async fn bind(&self, id: &str, instance: &str) {
        let binding = json!({
            "metadata": {"name": names::binding(id), "finalizers": [FINALIZER]},
            "spec": {
                "bindingID": id, "instanceRef": {"name": names::instance(instance)},
                "serviceID": "prices", "planID": "prices-plan",
                "operation": self.users.operation(&format!("bind-{}", names::binding(id)), OperationKind::Bind),
            },
        });
        self.users
            .create(self.users.team::<ServiceBinding>(), binding)
            .await;
    }

    /// Accepts another operation, as one write.
    async fn accept<K>(&self, name: &str, id: &str, kind: OperationKind)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let patch = json!({"spec": {"operation": self.users.operation(id, kind)}});
        let params = PatchParams::default();
        self.users
            .team::<K>()
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    async fn instance(&self, id: &str) -> ServiceInstance {
        self.users.team().get(&names::instance(id)).await.unwrap()
    }

    /// Where an instance stands: the state of its operation, `Ready`, and the one word.
    async fn stand(&self, id: &str) -> (OperationProgress, bool, Phase) {
        let status = self.instance(id).await.status.unwrap();
        (
            status.operation.unwrap(),
            status.conditions.is_ready(),
            status.phase.unwrap(),
        )
    }

    async fn check(&self, id: &str, state: OperationState, ready: bool, phase: Phase) -> String {
        let (operation, is_ready, is_phase) = self.stand(id).await;
        let seen = (operation.state, is_ready, is_phase);
        assert_eq!(seen, (state, ready, phase), "{operation:?}");
        operation.description.unwrap_or_default()
    }

    async fn record(&self, about: About) -> Option<Record> {
        let records = Api::<ConfigMap>::namespaced(self.users.client.clone(), SYSTEM_NAMESPACE);
        let found = records.get_opt(&about.record_name(TEAM)).await.unwrap();
        found.as_ref().and_then(Record::from_config_map)
    }

    /// Waits until nothing of that kind is left in the namespace.
    async fn gone<K>(&self)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        for _ in 0..600 {
            if self.all::<K>().await.is_empty() {
                return;
            }
            self.users.clock.sleep(Duration::from_secs(1)).await;
        }
        panic!("still there: {:?}", self.all::<K>().await.first());
    }
}

fn instance(id: &str) -> About {
    About::Instance(id.to_owned())
}

#[test]
fn asked_for_and_taken_back_a_thousand_times_nothing_is_left() {
    tell(|world| async move {
        world.shop(false).await;
        world.mapping().await;
        for number in 0..1_000_u64 {
            let id = format!("i{number}");
            world
                .provision(&id, if number % 4 == 0 { "prices" } else { "orders" })
                .await;
            // From the same instant to long enough for everything to be made.
            world
                .users
                .clock
                .sleep(Duration::from_millis(number % 13 * 25))
                .await;
            let name = names::instance(&id);
            world
                .accept::<ServiceInstance>(&name, &format!("drop-{id}"), OperationKind::Deprovision)
                .await;
        }
        world.gone::<ServiceInstance>().await;
        assert!(world.all::<EventFlow>().await.is_empty());
        for number in 0..1_000 {
            let id = format!("i{number}");
            let operation = world
                .record(instance(&id))
                .await
                .unwrap()
                .operation
                .unwrap();
            assert_eq!(
                (operation.id, operation.state),
                (format!("drop-{id}"), OperationState::Succeeded)
            );
        }
    });
}

/// An instance every twenty seconds for an hour, half of them taken back at some time, while a fifth of all requests fail.
#[test]
fn an_hour_of_bad_weather_leaves_no_operation_undone_and_none_failed() {
    for seed in 1..=2 {
        tell_in(20, seed, |world, weather| async move {
            world.shop(false).await;
            world.mapping().await;
            let chance = Chance::seeded(seed);
            let mut kept = Vec::new();
            let mut taken_back = Vec::new();
            for number in 0..180 {
                let id = format!("i{number}");
                let service = ["orders", "prices"][usize::from(number % 4 == 0)];
                world.provision(&id, service).await;
                kept.push(id);
                if chance.below(2) == 0 {
                    let index = chance.below(kept.len() as u64);
                    let id = kept.swap_remove(usize::try_from(index).unwrap());
                    let (name, drop) = (names::instance(&id), format!("drop-{id}"));
                    let removal = OperationKind::Deprovision;
                    world.accept::<ServiceInstance>(&name, &drop, removal).await;
                    taken_back.push(id);
                }
                world.users.clock.sleep(Duration::from_secs(20)).await;
            }
            let struck = weather.clears_up();
            assert!(struck > 1_000, "there was little to get over: {struck}");
            world.users.clock.sleep(Duration::from_secs(600)).await;
            let here: Vec<String> = world
                .all::<ServiceInstance>()
                .await
                .iter()
                .map(|instance| instance.name_any())
                .collect();
            let mut expected: Vec<String> = kept.iter().map(|id| names::instance(id)).collect();
            expected.sort_unstable();
            assert_eq!(here, expected, "seed {seed}");
            for id in &kept {
                world
                    .check(id, OperationState::Succeeded, true, Phase::Running)
                    .await;
            }
            for id in taken_back {
                let record = world.record(instance(&id)).await.unwrap();
                let operation = record.operation.unwrap();
                let ended = (operation.id, operation.state);
                assert_eq!(ended, (format!("drop-{id}"), OperationState::Succeeded));
            }
            let flows = world.all::<EventFlow>().await;
            let mut flows: Vec<String> = flows.iter().map(|flow| flow.name_any()).collect();
            let mut of_events = kept.clone();
            of_events.retain(|id| id[1..].parse::<u64>().unwrap() % 4 != 0);
            flows.sort_unstable();
            of_events.sort_unstable();
            assert_eq!(flows, of_events, "seed {seed}: an API has no flow");
        });
    }
}

#[test]
fn an_operation_ends_at_its_deadline_and_the_work_does_not() {
    tell(|world| async move {
        world.shop(true).await;
        world.mapping().await;
        for id in ["before", "after", "given-up"] {
            world.provision(id, "orders").await;
        }
        world.users.rest().await;
        let line = world
            .check(
                "before",
                OperationState::InProgress,
                false,
                Phase::Provisioning,
            )
            .await;
        assert!(
            line.contains("EventFlow team-a/before is not ready: SourceMissing"),
            "{line}"
        );
        // One becomes ready in time.
        world.shop(false).await;
        world.users.rest().await;
        world
            .check("before", OperationState::Succeeded, true, Phase::Running)
            .await;
        world.shop(true).await;
        world.users.rest().await;
        world
            .check("before", OperationState::Succeeded, false, Phase::Degraded)
            .await;
        // The others are asked for anew, and are not.
        for id in ["after", "given-up"] {
            world
                .accept::<ServiceInstance>(id, &format!("again-{id}"), OperationKind::Provision)
                .await;
        }
        world.users.clock.sleep(Duration::from_secs(3_239)).await;
        let (operation, ..) = world.stand("after").await;
        assert_eq!(
            (operation.id.as_str(), operation.state),
            ("again-after", OperationState::InProgress)
        );
        world.users.clock.sleep(Duration::from_secs(2)).await;
        let line = world
            .check("after", OperationState::Failed, false, Phase::Failed)
            .await;
        assert!(line.contains("not done by"), "{line}");
        // One is given up, and goes; the other becomes ready after all.
        world
            .accept::<ServiceInstance>("given-up", "drop", OperationKind::Deprovision)
            .await;
        world.shop(false).await;
        world.users.rest().await;
        assert!(
            world
                .users
                .team::<ServiceInstance>()
                .get_opt("given-up")
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            world
                .users
                .team::<EventFlow>()
                .get_opt("given-up")
                .await
                .unwrap()
                .is_none()
        );
        world
            .check("after", OperationState::Failed, true, Phase::Running)
            .await;
        world
            .accept::<ServiceInstance>("after", "once-more", OperationKind::Provision)
            .await;
        world.users.rest().await;
        world
            .check("after", OperationState::Succeeded, true, Phase::Running)
            .await;
    });
}

#[test]
fn a_mapping_is_waited_for_a_minute_and_welcome_later() {
    tell(|world| async move {
        world.shop(false).await;
        world.provision("i", "orders").await;
        world.users.clock.sleep(Duration::from_secs(58)).await;
        world
            .check("i", OperationState::InProgress, false, Phase::Provisioning)
            .await;
        assert!(world.all::<EventFlow>().await.is_empty());
        world.users.clock.sleep(Duration::from_secs(4)).await;
        let line = world
            .check("i", OperationState::Failed, false, Phase::Failed)
            .await;
        assert!(
            line.contains("ApplicationMapping team-a/shop does not exist"),
            "{line}"
        );
        world.mapping().await;
        world.users.rest().await;
        world
            .check("i", OperationState::Failed, true, Phase::Running)
            .await;
    });
}

#[test]
fn a_binding_waits_for_the_secret_that_it_hands_on_and_follows_it() {
    tell(|world| async move {
        world.shop(false).await;
        world.mapping().await;
        let keys = world.integration_secrets();
        keys.delete("keys", &DeleteParams::default()).await.unwrap();
        world.provision("i", "prices").await;
        world.bind("b", "i").await;
        world.users.rest().await;
        let bound = async || {
            let binding: ServiceBinding = world.users.team().get("b").await.unwrap();
            let status = binding.status.unwrap();
            let bound = status.conditions.find("Bound").unwrap().clone();
            let state = status.operation.unwrap().state;
            (state, bound.reason.unwrap_or_default(), bound.message)
        };
        let (state, reason, message) = bound().await;
        assert_eq!(
            (state, reason.as_str()),
            (OperationState::InProgress, "CredentialsMissing")
        );
        let message = message.unwrap();
        assert!(
            message.contains("Secret kyma-integration/keys"),
            "{message}"
        );
        assert!(
            world.all::<Secret>().await.is_empty(),
            "nothing is handed out"
        );
        world.keys().await;
        world.users.rest().await;
        assert_eq!(bound().await.0, OperationState::Succeeded);
        // What comes into the team's own namespace is followed as well.
        let own = json!({"metadata": {"name": "keys"}, "stringData": {"password": "own"}});
        let own: Secret = serde_json::from_value(own).unwrap();
        world
            .users
            .team()
            .create(&PostParams::default(), &own)
            .await
            .unwrap();
        world.users.rest().await;
        let secret: Secret = world.users.team().get("b").await.unwrap();
        let handed: Value = serde_json::from_slice(&secret.data.unwrap()["credentials"].0).unwrap();
        assert_eq!(handed["password"], "own");
    });
}

#[test]
fn a_binding_hands_out_what_its_api_needs_and_takes_it_back() {
    tell(|world| async move {
        world.shop(false).await;
        world.mapping().await;
        world.provision("i", "prices").await;
        world.bind("B/1", "i").await;
        world.users.rest().await;
        let name = names::binding("B/1");
        let binding: ServiceBinding = world.users.team().get(&name).await.unwrap();
        let status = binding.status.unwrap();
        assert_eq!(status.operation.unwrap().state, OperationState::Succeeded);
        assert_eq!(status.endpoints[0].host, "prices.example");
        let secret: Secret = world
            .users
            .team()
            .get(&status.secret_ref.unwrap().name)
            .await
            .unwrap();
        assert_eq!(secret.type_.as_deref(), Some("heddle.dev/credentials"));
        let handed: Value = serde_json::from_slice(&secret.data.unwrap()["credentials"].0).unwrap();
        let expected = json!({
            "GATEWAY_URL": "http://prices.example:8080/v1", "CREDENTIALS_TYPE": "Basic", "password": "hush",
        });
        assert_eq!(handed, expected);
        // Taken back by itself.
        world
            .accept::<ServiceBinding>(&name, "unbind", OperationKind::Unbind)
            .await;
        world.users.rest().await;
        assert!(
            world.all::<Secret>().await.is_empty()
                && world.all::<ServiceBinding>().await.is_empty()
        );
        let about = |binding: &str| About::Binding {
            instance: "i".to_owned(),
            binding: binding.to_owned(),
        };
        let record = world.record(about("B/1")).await.unwrap();
        assert_eq!(record.operation.unwrap().state, OperationState::Succeeded);
        // Taken back with its instance.
        world.bind("b2", "i").await;
        world.users.rest().await;
        assert_eq!(world.all::<Secret>().await.len(), 1);
        world
            .accept::<ServiceInstance>("i", "drop", OperationKind::Deprovision)
            .await;
        world.gone::<ServiceInstance>().await;
        assert!(
            world.all::<Secret>().await.is_empty()
                && world.all::<ServiceBinding>().await.is_empty()
        );
        assert_eq!(world.record(about("b2")).await.unwrap().operation, None);
        assert!(world.record(instance("i")).await.is_some());
    });
}

#[test]
fn a_service_of_events_has_nothing_to_bind() {
    tell(|world| async move {
        world.shop(false).await;
        world.mapping().await;
        world.provision("i", "orders").await;
        world.bind("b", "i").await;
        world.users.rest().await;
        let binding: ServiceBinding = world.users.team().get("b").await.unwrap();
        let operation = binding.status.unwrap().operation.unwrap();
        assert_eq!(operation.state, OperationState::Failed);
        assert!(operation.description.unwrap().contains("has no API"));
        assert!(world.all::<Secret>().await.is_empty());
    });
}

#[test]
fn a_removal_tells_what_became_of_pending_events_and_every_step_is_news() {
    tell(|world| async move {
        world.shop(false).await;
        world.mapping().await;
        world.provision("i", "orders").await;
        world.users.rest().await;
        // Neither is needed to let go.
        let applications = Api::<Application>::all(world.users.client.clone());
        applications
            .delete("shop", &DeleteParams::default())
            .await
            .unwrap();
        world
            .users
            .team::<ApplicationMapping>()
            .delete("shop", &DeleteParams::default())
            .await
            .unwrap();
        world.users.rest().await;
        let (channel, broker) = ("channel/kyma-integration/shop", "broker/team-a/default");
        world.plane.set_pending(channel, broker, 3);
        world
            .accept::<ServiceInstance>("i", "drop", OperationKind::Deprovision)
            .await;
        // Two are delivered in time; the last is given up when the time is over.
        world.users.rest().await;
        world.plane.set_pending(channel, broker, 1);
        world.users.clock.sleep(Duration::from_secs(300)).await;
        world.gone::<ServiceInstance>().await;
        assert!(world.all::<EventFlow>().await.is_empty());
        let line = world
            .record(instance("i"))
            .await
            .unwrap()
            .operation
            .unwrap()
            .description
            .unwrap();
        assert!(
            line.contains("2 were delivered, 1 became dead letters, 0 were discarded"),
            "{line}"
        );
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for event in world.all::<Event>().await {
            if event.involved_object.kind.as_deref() == Some("ServiceInstance") {
                *reasons.entry(event.reason.unwrap_or_default()).or_default() += 1;
            }
        }
        for reason in [
            "ProvisionInProgress",
            "ProvisionSucceeded",
            "DeprovisionInProgress",
            "DeprovisionSucceeded",
        ] {
            assert_eq!(reasons.get(reason), Some(&1), "{reason} in {reasons:?}");
        }
    });
}

#[test]
fn a_namespace_full_of_instances_can_be_deleted() {
    tell(|world| async move {
        world.shop(false).await;
        world.mapping().await;
        world.provision("i", "orders").await;
        world.provision("j", "prices").await;
        world.bind("b", "j").await;
        world.users.rest().await;
        let namespaces = Api::<Namespace>::all(world.users.client.clone());
        namespaces
            .delete(TEAM, &DeleteParams::default())
            .await
            .unwrap();
        world.users.clock.sleep(Duration::from_secs(10)).await;
        assert!(namespaces.get_opt(TEAM).await.unwrap().is_none());
        for id in ["i", "j"] {
            assert_eq!(world.record(instance(id)).await.unwrap().operation, None);
        }
    });
}

#[test]
fn the_finalizers_of_others_are_theirs() {
    tell(|world| async move {
        world.shop(false).await;
        world.mapping().await;
        world.provision("i", "orders").await;
        let theirs = json!({"metadata": {"finalizers": [FINALIZER, "example.com/theirs"]}});
        let instances = world.users.team::<ServiceInstance>();
        instances
            .patch("i", &PatchParams::default(), &Patch::Merge(&theirs))
            .await
            .unwrap();
        world.users.rest().await;
        world
            .accept::<ServiceInstance>("i", "drop", OperationKind::Deprovision)
            .await;
        world.users.rest().await;
        let left = world.instance("i").await;
        assert_eq!(left.finalizers(), ["example.com/theirs"]);
        world
            .check("i", OperationState::Succeeded, false, Phase::Deprovisioning)
            .await;
        assert!(world.all::<EventFlow>().await.is_empty());
        assert!(world.record(instance("i")).await.is_some());
    });
}

#[test]
fn records_are_kept_for_a_week() {
    tell(|world| async move {
        let records = Api::<ConfigMap>::namespaced(world.users.client.clone(), SYSTEM_NAMESPACE);
        let gone = |id: &str, days: i64| Record {
            about: instance(id),
            namespace: TEAM.to_owned(),
            front: None,
            operation: None,
            gone_at: Time(world.users.clock.now() - SignedDuration::from_hours(24 * days)),
        };
        let mut foreign = gone("foreign", 30).to_config_map();
        foreign.metadata.labels = None;
        for object in [
            gone("old", 8).to_config_map(),
            gone("young", 6).to_config_map(),
            foreign,
        ] {
            records
                .create(&PostParams::default(), &object)
                .await
                .unwrap();
        }
        world
            .users
            .clock
            .sleep(Duration::from_secs(2 * 3_600))
            .await;
        let labelled = ListParams::default().labels(RECORD_LABEL);
        assert_eq!(records.list(&labelled).await.unwrap().items.len(), 1);
        assert!(world.record(instance("young")).await.is_some());
        assert!(world.record(instance("foreign")).await.is_some());
    });
}

fn controllers(client: Client, clock: Clock, chance: Chance, _: Outside) -> BoxFuture<'static, ()> {
    let options = Options {
        resync: heddle_sim::sweep::RESYNC,
        ..Options::new(clock, chance)
    };
    Box::pin(heddle_controllers::run(client, options))
}

fn ending(name: &'static str, acts: Vec<Act>) -> BTreeMap<String, Value> {
    let story = Story {
        name,
        meshed: false,
        acts,
    };
    let ending = run_trial(registry(), &story, controllers, None);
    assert_eq!(ending.noise, 0, "{name}: writes at the fixpoint");
    ending.objects
}

#[test]
fn whether_a_platform_never_repeats_itself_or_always_makes_no_difference() {
    let requests = [
        shop(),
        shop_mapping(),
        provision("i", "prices"),
        provision("j", "orders"),
        provision("k", "prices"),
        Act::Rest,
        bind("b", "i"),
        bind("c", "k"),
        Act::Rest,
        unbind("b"),
        deprovision("j"),
        deprovision("k"),
    ];
    let times = |count: usize| {
        let acts = requests
            .iter()
            .flat_map(|act| std::iter::repeat_n(act.clone(), count));
        ending("a platform", acts.collect())
    };
    let once = times(1);
    assert!(
        once.keys().any(|key| key.contains("gone-instance")),
        "{:?}",
        once.keys()
    );
    assert_eq!(once, times(3));
}

#[test]
fn what_is_restored_in_any_order_becomes_the_same() {
    let backup = || {
        vec![
            shop(),
            shop_mapping(),
            provision("i", "prices"),
            provision("j", "orders"),
            provision("k", "orders"),
            bind("b", "i"),
        ]
    };
    let reference = ending("restored in order", backup());
    assert!(
        reference
            .keys()
            .any(|key| key.contains("eventflows") && key.ends_with("/k")),
        "{:?}",
        reference.keys()
    );
    for seed in 0..24 {
        let chance = Chance::seeded(seed);
        let mut acts = backup();
        for last in (1..acts.len()).rev() {
            let other = usize::try_from(chance.below(last as u64 + 1)).unwrap();
            acts.swap(last, other);
        }
        assert_eq!(
            ending("restored in disorder", acts),
            reference,
            "seed {seed}"
        );
    }
}
