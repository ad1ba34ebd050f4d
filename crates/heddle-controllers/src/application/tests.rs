use heddle_api::application::{Application, ApplicationSpec, ApplicationStatus, RejectedService};
use heddle_api::channel::Channel;
use heddle_api::http_source::HTTPSource;
use heddle_rt::Chance;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt as _};
use serde_json::{Value, json};

use super::observe::World;
use super::publisher::Token;
use super::{CHANNEL, PUBLISHER, SOURCE, plan, status};
use crate::reconcile::Step;

fn world() -> World {
    let mut application = Application::new("shop", ApplicationSpec::default());
    application.metadata.uid = Some("u1".to_owned());
    application.metadata.generation = Some(3);
    World {
        application,
        source: None,
        channel: None,
        rejected: Vec::new(),
        publisher: None,
        fresh_token: Token::new(&Chance::seeded(1)),
        meshed: false,
        trouble: None,
    }
}

/// Carries the plan out the way a server would: what is applied exists afterwards.
fn settle(world: &mut World) {
    for step in plan::plan(world) {
        let step_name = step.step_name();
        match step {
            Step::Apply { mut object, .. } => {
                object["metadata"]["uid"] = json!(format!("uid-of-{step_name}"));
                let object: DynamicObject = serde_json::from_value(object).unwrap();
                world.absorb(step_name, Some(object));
            }
            Step::Delete { .. } => world.absorb(step_name, None),
            Step::Swap { .. } => unreachable!("an Application shares no field with anybody"),
            Step::Create { .. } | Step::Offer { .. } => unreachable!("its children are applied"),
        }
    }
}

fn step_names(world: &World) -> Vec<&'static str> {
    plan::plan(world).iter().map(Step::step_name).collect()
}

fn conditions(world: &World) -> Vec<String> {
    let status = status::status(world, Timestamp::UNIX_EPOCH).unwrap();
    let status: ApplicationStatus = serde_json::from_value(status).unwrap();
    let text =
        |reason: &Option<String>| reason.as_ref().map(|r| format!(":{r}")).unwrap_or_default();
    status
        .conditions
        .iter()
        .map(|c| format!("{}={:?}{}", c.type_, c.status, text(&c.reason)))
        .collect()
}

fn disown_channel(world: &mut World) {
    let channel = world.channel.as_mut().unwrap();
    channel.owner_references_mut().clear();
}

#[test]
fn an_application_gets_its_source_and_channel_and_then_rests() {
    let mut world = world();
    assert_eq!(step_names(&world), [SOURCE, CHANNEL, PUBLISHER]);
    settle(&mut world);
    assert!(
        step_names(&world).is_empty(),
        "a world at rest needs no step: {:?}",
        plan::plan(&world)
    );
    assert_eq!(
        conditions(&world),
        [
            "SourceProvided=True",
            "ChannelProvided=True",
            "ServicesValid=True",
            "Ready=True"
        ]
    );
    let source = world.source.unwrap();
    assert_eq!(source.spec.source, "shop");
    assert_eq!(source.namespace().as_deref(), Some("kyma-integration"));
    assert_eq!(source.owner_references()[0].uid, "u1");
}

#[test]
fn a_token_is_made_once_and_again_when_it_is_gone() {
    let mut world = world();
    settle(&mut world);
    let first = world.publisher.clone().unwrap();
    assert_eq!(first.name_any(), "shop-publisher");
    assert_eq!(first.type_.as_deref(), Some("heddle.dev/publisher-token"));
    assert_eq!(first.owner_references()[0].uid, "u1");
    let ByteString(token) = &first.data.as_ref().unwrap()["token"];
    assert_eq!(token.len(), 64, "256 bits in hexadecimal");
    let shown = format!("{:?}", world.fresh_token);
    assert!(!shown.contains(std::str::from_utf8(token).unwrap()));
    // Another round draws another token, and keeps the one that is there.
    world.fresh_token = Token::new(&Chance::seeded(2));
    assert!(step_names(&world).is_empty());
    world.publisher = None;
    assert_eq!(step_names(&world), [PUBLISHER]);
    settle(&mut world);
    assert_ne!(world.publisher.as_ref().unwrap().data, first.data);
    // One without a token is as good as none, and one that another object controls is left alone.
    world.publisher.as_mut().unwrap().data = None;
    assert_eq!(step_names(&world), [PUBLISHER]);
    for owner in world.publisher.as_mut().unwrap().owner_references_mut() {
        owner.uid = "another".to_owned();
    }
    assert!(step_names(&world).is_empty());
}

#[test]
fn drift_is_mended_and_foreign_additions_are_left() {
    let mut world = world();
    settle(&mut world);
    world
        .channel
        .as_mut()
        .unwrap()
        .labels_mut()
        .insert("team".to_owned(), "a".to_owned());
    assert!(step_names(&world).is_empty());
    world.source.as_mut().unwrap().spec.source = "other".to_owned();
    world
        .channel
        .as_mut()
        .unwrap()
        .labels_mut()
        .remove("application-name");
    assert_eq!(step_names(&world), [SOURCE, CHANNEL]);
}

#[test]
fn a_namesake_controlled_by_another_object_is_never_touched() {
    let mut world = world();
    settle(&mut world);
    for owner in world.source.as_mut().unwrap().owner_references_mut() {
        owner.uid = "another".to_owned();
    }
    assert!(step_names(&world).is_empty());
    assert_eq!(conditions(&world)[0], "SourceProvided=False:SourceTaken");
    assert_eq!(conditions(&world)[3], "Ready=False:SourceTaken");
}

#[test]
fn a_child_that_nobody_controls_is_taken_in() {
    let mut world = world();
    settle(&mut world);
    world
        .source
        .as_mut()
        .unwrap()
        .owner_references_mut()
        .clear();
    assert_eq!(step_names(&world), [SOURCE]);
    assert_eq!(conditions(&world)[0], "SourceProvided=False:SourceMissing");
}

#[test]
fn skipping_the_installation_removes_only_what_is_owned() {
    let mut world = world();
    settle(&mut world);
    world.application.spec.skip_installation = true;
    disown_channel(&mut world);
    let steps = plan::plan(&world);
    assert_eq!(step_names(&world), [SOURCE, PUBLISHER]);
    assert!(
        matches!(&steps[0], Step::Delete { uid, .. } if uid == "uid-of-source"),
        "{steps:?}"
    );
    assert_eq!(conditions(&world)[3], "Ready=False:InstallationSkipped");
}

#[test]
fn a_failed_step_is_told_in_the_condition() {
    let mut world = world();
    world.trouble = Some((
        SOURCE,
        "namespaces \"kyma-integration\" not found".to_owned(),
    ));
    let status = status::status(&world, Timestamp::UNIX_EPOCH).unwrap();
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("HTTPSource kyma-integration/shop"),
        "{message}"
    );
    assert!(
        message.contains("namespaces \"kyma-integration\" not found"),
        "{message}"
    );
    assert_eq!(status["observedGeneration"], json!(3));
}

#[test]
fn an_application_on_its_way_out_is_left_to_the_garbage_collector() {
    let mut world = world();
    world.application.metadata.deletion_timestamp = Some(
        k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH),
    );
    assert!(step_names(&world).is_empty());
    assert!(status::status(&world, Timestamp::UNIX_EPOCH).is_none());
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let mut world = world();
    settle(&mut world);
    let first: Value = status::status(&world, Timestamp::from_second(10).unwrap()).unwrap();
    world.application.status = serde_json::from_value(first.clone()).unwrap();
    let second = status::status(&world, Timestamp::from_second(99).unwrap()).unwrap();
    assert_eq!(first, second);
}

#[test]
fn rejected_services_are_told_and_do_not_make_the_application_unready() {
    let service = |id: &str, reason: &str| RejectedService {
        id: id.to_owned(),
        reason: reason.to_owned(),
        message: "because".to_owned(),
    };
    let check = |rejected: Vec<RejectedService>, reason: &str| {
        let mut world = world();
        settle(&mut world);
        world.rejected = rejected.clone();
        assert_eq!(
            conditions(&world)[2],
            format!("ServicesValid=False:{reason}")
        );
        assert_eq!(conditions(&world)[3], "Ready=True");
        let status = status::status(&world, Timestamp::UNIX_EPOCH).unwrap();
        let status: ApplicationStatus = serde_json::from_value(status).unwrap();
        assert_eq!(status.rejected_services, rejected);
    };
    check(vec![service("a", "NameTaken")], "NameTaken");
    let two = vec![service("a", "NameTaken"), service("b", "IdTaken")];
    check(two.clone(), "IdTaken");
    let three = [two, vec![service("c", "ServiceInvalid")]].concat();
    check(three, "ServiceInvalid");
}

#[test]
fn children_are_of_the_kinds_that_existing_manifests_use() {
    assert_eq!(
        HTTPSource::api_version(&()),
        "sources.kyma-project.io/v1alpha1"
    );
    assert_eq!(Channel::api_version(&()), "messaging.knative.dev/v1");
}

#[test]
fn a_child_wakes_the_same_key_as_the_application_itself() {
    let mut world = world();
    settle(&mut world);
    let own = ObjectRef::from_obj(&world.application);
    let woken = super::owner(world.source.as_ref().unwrap());
    // Equal, so that the two are one entry of the queue and never run at the same time.
    assert_eq!(woken, Some(own));
    disown_channel(&mut world);
    assert_eq!(super::owner(world.channel.as_ref().unwrap()), None);
}

#[test]
fn where_a_mesh_runs_an_application_is_as_ready_as_its_children() {
    let mut world = world();
    world.meshed = true;
    settle(&mut world);
    assert_eq!(
        conditions(&world)[..2],
        [
            "SourceProvided=Unknown:SourceNotReady",
            "ChannelProvided=Unknown:ChannelNotReady"
        ]
    );
    let status = |ready: &str| json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": ready, "reason": "Because"}]});
    let source = world.source.as_mut().unwrap();
    source.metadata.generation = Some(1);
    source.status = serde_json::from_value(status("True")).unwrap();
    let channel = world.channel.as_mut().unwrap();
    channel.metadata.generation = Some(1);
    channel.status = serde_json::from_value(status("False")).unwrap();
    assert_eq!(conditions(&world)[3], "Ready=False:ChannelNotReady");
    let channel = world.channel.as_mut().unwrap();
    channel.status = serde_json::from_value(status("True")).unwrap();
    assert_eq!(conditions(&world)[3], "Ready=True");
    // A status that speaks of an earlier generation says nothing about this one.
    world.channel.as_mut().unwrap().metadata.generation = Some(2);
    assert_eq!(conditions(&world)[3], "Ready=Unknown:ChannelNotReady");
}
