use std::collections::BTreeMap;

use heddle_api::application::{Credentials, Entry, Service};
use heddle_api::operation::{OperationKind, OperationState};
use heddle_api::record::{About, Record};
use heddle_api::service_binding::{InstanceReference, ServiceBindingSpec};
use heddle_api::service_instance::{ServiceInstanceSpec, ServiceInstanceStatus};
use heddle_api::well_known::FINALIZER;
use heddle_api::{ServiceBinding, ServiceInstance};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::credentials::{Sources, credentials, endpoints};
use super::observe::World;
use super::{plan, status};
use crate::operation::fixtures::{ACCEPTED, DEADLINE, at, metadata, request};
use crate::reconcile::Step;
use crate::references::Target;

fn api(name: Option<&str>, url: &str, secret: Option<&str>) -> Entry {
    Entry {
        type_: "API".to_owned(),
        name: name.map(str::to_owned),
        gateway_url: Some(url.to_owned()),
        credentials: secret.map(|secret| Credentials {
            type_: "Basic".to_owned(),
            secret_name: secret.to_owned(),
            ..Credentials::default()
        }),
        ..Entry::default()
    }
}

fn service(entries: Vec<Entry>) -> Service {
    Service {
        id: "orders".to_owned(),
        name: "orders".to_owned(),
        entries,
        ..Service::default()
    }
}

fn sources(name: &str, pairs: &[(&str, &[u8])]) -> Sources {
    let bytes = |(key, value): &(&str, &[u8])| ((*key).to_owned(), ByteString(value.to_vec()));
    let data: BTreeMap<String, ByteString> = pairs.iter().map(bytes).collect();
    Sources(BTreeMap::from([(name.to_owned(), data)]))
}

fn world() -> World {
    let mut instance = ServiceInstance::new(
        "i",
        ServiceInstanceSpec {
            instance_id: "I/1".to_owned(),
            ..ServiceInstanceSpec::default()
        },
    );
    let ready =
        json!({"conditions": [{"type": "Ready", "status": "True"}], "observedGeneration": 2});
    let ready: ServiceInstanceStatus = serde_json::from_value(ready).unwrap();
    (instance.metadata.generation, instance.status) = (Some(2), Some(ready));
    let spec = ServiceBindingSpec {
        binding_id: "B/1".to_owned(),
        instance_ref: InstanceReference {
            name: "i".to_owned(),
        },
        operation: Some(request(OperationKind::Bind, "op-1")),
        ..ServiceBindingSpec::default()
    };
    let mut binding = ServiceBinding::new("b", spec);
    binding.metadata = metadata("b");
    binding.metadata.generation = None;
    World {
        binding,
        now: at(ACCEPTED),
        instance: Some(instance),
        service: Some(service(vec![api(
            None,
            "https://gw.example/orders",
            Some("keys"),
        )])),
        bundle: None,
        sources: sources("keys", &[("password", b"hush")]),
        secret: None,
        record: None,
        released: false,
        trouble: None,
    }
}

fn settle(world: &mut World) {
    for step in plan::plan(world) {
        let step_name = step.step_name();
        match step {
            Step::Apply { object, .. } if step_name == super::RECORD => {
                let object: ConfigMap = serde_json::from_value(object).unwrap();
                world.record = Record::from_config_map(&object);
            }
            Step::Apply { mut object, .. } => {
                object["metadata"]["uid"] = json!("secret-uid");
                world.absorb(step_name, serde_json::from_value(object).ok());
            }
            Step::Delete { .. } if step_name == super::DELETE => leave(&mut world.binding),
            Step::Delete { .. } => world.absorb(step_name, None),
            _ if step_name == super::RELEASE => world.released = true,
            _ => world.binding.finalizers_mut().push(FINALIZER.to_owned()),
        }
    }
}

fn leave<K: kube::Resource>(object: &mut K) {
    object.meta_mut().deletion_timestamp = Some(Time(at(ACCEPTED + 1)));
}

fn step_names(world: &World) -> Vec<&'static str> {
    plan::plan(world).iter().map(Step::step_name).collect()
}

fn look(world: &mut World, second: i64) -> (OperationState, String) {
    let status = status::status(world, at(second));
    world.binding.status = Some(status.clone());
    assert_eq!(status::status(world, at(second)), status);
    let ready = status.conditions.find("Ready").unwrap();
    let reason = ready.reason.clone().unwrap_or_default();
    (
        status.operation.unwrap().state,
        format!("{:?}:{reason}", ready.status),
    )
}

#[test]
fn a_binding_is_one_secret_of_its_own() {
    let mut world = world();
    assert_eq!(step_names(&world), [super::SECRET]);
    settle(&mut world);
    assert!(step_names(&world).is_empty());
    let secret = world.secret.clone().unwrap();
    assert_eq!(
        (secret.name_any(), secret.type_.as_deref()),
        ("b".to_owned(), Some("heddle.dev/credentials"))
    );
    assert_eq!(secret.owner_references()[0].uid, "u1");
    let bytes = &secret.data.as_ref().unwrap()["credentials"].0;
    let handed: Value = serde_json::from_slice(bytes).unwrap();
    let expected = json!({"GATEWAY_URL": "https://gw.example/orders", "CREDENTIALS_TYPE": "Basic", "password": "hush"});
    assert_eq!(handed, expected);
    assert_eq!(
        look(&mut world, ACCEPTED),
        (OperationState::Succeeded, "True:".to_owned())
    );
    let status = world.binding.status.clone().unwrap();
    assert_eq!(status.secret_ref.unwrap().name, "b");
    assert_eq!(
        (
            status.endpoints[0].host.as_str(),
            &status.endpoints[0].ports[..]
        ),
        ("gw.example", &["443".to_owned()][..])
    );
    assert_eq!((status.expires_at, status.renew_before), (None, None));
    // What was handed out stays while the instance dips or its Application is gone.
    world.instance.as_mut().unwrap().status = None;
    world.service = None;
    assert!(step_names(&world).is_empty());
    assert_eq!(look(&mut world, ACCEPTED + 5).0, OperationState::Succeeded);
    assert!(world.binding.status.as_ref().unwrap().secret_ref.is_some());
}

#[test]
fn a_binding_is_not_ready_while_a_secret_that_it_hands_on_is_missing() {
    let mut world = world();
    let there = std::mem::take(&mut world.sources);
    assert!(step_names(&world).is_empty(), "nothing is handed out");
    let (state, ready) = look(&mut world, ACCEPTED);
    assert_eq!(state, OperationState::InProgress);
    assert_eq!(ready, "False:CredentialsMissing");
    let status = world.binding.status.clone().unwrap();
    let message = status.conditions.find("Bound").unwrap().message.clone();
    let message = message.unwrap();
    for place in ["Secret kyma-integration/keys", "team-a/keys"] {
        assert!(message.contains(place), "{message}");
    }
    assert_eq!(status.sources, ["keys"]);
    let targets = super::targets(&world.binding);
    for place in ["kyma-integration", "team-a"] {
        assert!(targets.contains(&Target::of::<Secret>(place, "keys")));
    }
    world.sources = there;
    settle(&mut world);
    assert_eq!(look(&mut world, ACCEPTED).0, OperationState::Succeeded);
    // What was handed out stays; that its source went is said nevertheless.
    world.sources = Sources::default();
    assert!(step_names(&world).is_empty() && world.secret.is_some());
    assert_eq!(look(&mut world, ACCEPTED).1, "False:CredentialsMissing");
}

#[test]
fn nothing_secret_is_shown_to_whoever_looks_at_the_world_or_the_status() {
    let mut world = world();
    settle(&mut world);
    look(&mut world, ACCEPTED);
    let status = json!(world.binding.status);
    for text in [format!("{world:?}"), status.to_string()] {
        assert!(
            !text.contains("hush") && !text.contains("104, 117, 115, 104"),
            "{text}"
        );
    }
    let base64 = json!(ByteString(b"hush".to_vec()));
    assert!(!format!("{world:?}").contains(base64.as_str().unwrap()));
}

#[test]
fn several_apis_are_told_apart_by_the_names_of_their_entries() {
    let entries = vec![
        api(Some("Orders (v2)"), "https://a.example", Some("keys")),
        api(Some("orders  v2 "), "http://a.example:8080/x", None),
        api(None, "https://[::1]/", Some("absent")),
        api(Some("2nd"), "https://a.example/other", None),
        Entry {
            type_: "Events".to_owned(),
            ..Entry::default()
        },
    ];
    let service = service(entries);
    // The first key would be the Application's own, the second is not text.
    let sources = sources("keys", &[("GATEWAY_URL", b"evil"), ("key.bin", &[0xff, 0])]);
    let all = credentials(&service, &sources);
    let expected = json!({
        "ORDERS__V2__GATEWAY_URL": "https://a.example", "ORDERS__V2__CREDENTIALS_TYPE": "Basic", "ORDERS__V2__key.bin": "/wA=",
        "ORDERS__V2_GATEWAY_URL": "http://a.example:8080/x",
        "API_3_GATEWAY_URL": "https://[::1]/", "API_3_CREDENTIALS_TYPE": "Basic",
        "_2ND_GATEWAY_URL": "https://a.example/other",
    });
    assert_eq!(Value::Object(all), expected);
    let places = endpoints(&service).into_iter();
    let places: Vec<String> = places
        .map(|e| format!("{} {}", e.host, e.ports.join(",")))
        .collect();
    assert_eq!(places, ["a.example 443", "a.example 8080", "[::1] 443"]);
}

#[test]
fn two_entries_of_one_name_never_share_a_key() {
    let named = |name: &str| api(Some(name), "https://a.example", None);
    let entries = vec![
        named("orders"),
        named("orders"),
        named("orders 3"),
        named("Orders-3"),
        named("orders"),
    ];
    let all = credentials(&service(entries), &Sources::default());
    let keys: Vec<&String> = all.keys().collect();
    let expected = ["ORDERS_2", "ORDERS_3_4", "ORDERS_3", "ORDERS_5", "ORDERS"];
    assert_eq!(
        keys,
        expected
            .map(|name| format!("{name}_GATEWAY_URL"))
            .iter()
            .collect::<Vec<_>>()
    );
}

#[test]
fn endpoints_are_complete_or_not_told() {
    let url = |url: &str| api(Some(url), url, None);
    let told = |entries| endpoints(&service(entries)).len();
    assert_eq!(told(vec![url("https://a.example")]), 1);
    for odd in [
        "ftp://a.example",
        "a.example",
        "https://:80",
        "https://a.example:x",
        "https://",
    ] {
        assert_eq!(told(vec![url("https://a.example"), url(odd)]), 0, "{odd}");
    }
}

#[test]
fn a_binding_waits_for_its_instance_and_fails_where_waiting_is_no_use() {
    type Spoil = fn(&mut World);
    use OperationState::{Failed, InProgress};
    let table: [(Spoil, &str, OperationState, OperationState); 5] = [
        (
            |world| world.instance = None,
            "False:InstanceNotFound",
            InProgress,
            Failed,
        ),
        (
            |world| world.instance.as_mut().unwrap().metadata.generation = Some(3),
            "False:InstanceNotReady",
            InProgress,
            InProgress,
        ),
        (
            |world| leave(world.instance.as_mut().unwrap()),
            "False:InstanceNotReady",
            Failed,
            Failed,
        ),
        (
            |world| world.service.as_mut().unwrap().entries[0].type_ = "Events".to_owned(),
            "False:NotBindable",
            Failed,
            Failed,
        ),
        (
            |world| world.secret = Some(Secret::default()),
            "False:SecretTaken",
            InProgress,
            InProgress,
        ),
    ];
    for (spoil, ready, at_once, after_a_minute) in table {
        let mut world = world();
        spoil(&mut world);
        assert!(step_names(&world).is_empty(), "{ready}");
        assert_eq!(look(&mut world, ACCEPTED), (at_once, ready.to_owned()));
        assert_eq!(look(&mut world, ACCEPTED + 60).0, after_a_minute, "{ready}");
        assert_eq!(look(&mut world, DEADLINE).0, Failed, "{ready}");
        assert_eq!(status::requeue_after(&world, at(DEADLINE)), None);
    }
}

#[test]
fn unbinding_takes_the_secret_and_leaves_a_record() {
    let mut world = world();
    settle(&mut world);
    world.binding.metadata.finalizers = None;
    world.binding.spec.operation = Some(request(OperationKind::Unbind, "op-1"));
    assert_eq!(step_names(&world), [super::HOLD, super::DELETE]);
    settle(&mut world);
    assert_eq!(
        step_names(&world),
        [super::SECRET, super::RECORD, super::RELEASE]
    );
    settle(&mut world);
    assert_eq!(world.secret, None);
    assert_eq!(look(&mut world, ACCEPTED).0, OperationState::Succeeded);
    let record = world.record.clone().unwrap();
    let about = About::Binding {
        instance: "I/1".to_owned(),
        binding: "B/1".to_owned(),
    };
    assert_eq!(
        (record.about, record.operation.unwrap().state),
        (about, OperationState::Succeeded)
    );
    // Begun again after a crash, it says the same and needs neither instance nor Secret.
    world.instance = None;
    assert_eq!(step_names(&world), [super::RELEASE]);
}

#[test]
fn a_secret_of_somebody_else_survives_the_binding() {
    let mut world = world();
    world.secret = Some(Secret::default());
    leave(&mut world.binding);
    assert_eq!(step_names(&world), [super::RECORD, super::RELEASE]);
    settle(&mut world);
    assert_eq!(
        world.record.unwrap().operation,
        None,
        "nobody asked through OSB"
    );
}
