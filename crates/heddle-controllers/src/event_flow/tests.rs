use std::sync::Arc;
use std::time::Duration;

use heddle_api::Broker;
use heddle_api::conditions::Status;
use heddle_api::dataplane::{Fate, GivenUp};
use heddle_api::event_flow::{CONDITIONS, Ended, EventFlowStatus};
use heddle_api::well_known::FINALIZER;
use heddle_rt::{Chance, Clock};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::leaving::{self, Leaving, MeshState, Next};
use super::observe::{Parts, World};
use super::{EventFlows, claimants, link_key, plan, status, trim};
use crate::Options;
use crate::reconcile::{Ctx, Reconciler as _, Step};
use crate::watch::Change;
use crate::watch_cache::WatchCache;

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn ready() -> Value {
    json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]})
}

fn not_ready() -> Value {
    let ready =
        json!({"type": "Ready", "status": "False", "reason": "Broken", "message": "it is broken"});
    json!({"observedGeneration": 1, "conditions": [ready]})
}

/// A flow with everything it needs.
fn world() -> World {
    let meta = |name: &str, namespace: &str| json!({"name": name, "namespace": namespace, "generation": 1});
    let mut broker_status = ready();
    broker_status["address"] = json!({"url": "http://mesh/broker/team/default"});
    World {
        flow: object(json!({
            "apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow",
            "metadata": {
                "name": "flow", "namespace": "team", "uid": "uid-flow", "resourceVersion": "7",
                "generation": 3, "finalizers": ["theirs", FINALIZER],
            },
            "spec": {"application": "shop", "serviceID": "orders"},
        })),
        broker: Some(object(json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
            "metadata": meta("default", "team"),
            "spec": {"claims": [{"uid": "uid-flow", "kind": "EventFlow", "name": "flow"}]},
            "status": broker_status,
        }))),
        link: Some(object(json!({
            "apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
            "metadata": {
                "name": "link-shop-team", "namespace": "kyma-integration", "generation": 1,
                "labels": {"app.kubernetes.io/managed-by": "heddle"},
            },
            "spec": {
                "channel": {"kind": "Channel", "name": "shop"},
                "subscriber": {"ref": {"kind": "Broker", "name": "default", "namespace": "team"}},
            },
            "status": ready(),
        }))),
        parts: Parts {
            mapping: Some(object(json!({
                "apiVersion": "applicationconnector.kyma-project.io/v1alpha1",
                "kind": "ApplicationMapping", "metadata": meta("shop", "team"), "spec": {},
            }))),
            source: Some(object(json!({
                "apiVersion": "sources.kyma-project.io/v1alpha1", "kind": "HTTPSource",
                "metadata": meta("shop", "kyma-integration"), "spec": {"source": "shop"},
                "status": ready(),
            }))),
            channel: Some(object(json!({
                "apiVersion": "messaging.knative.dev/v1", "kind": "Channel",
                "metadata": meta("shop", "kyma-integration"), "spec": {}, "status": ready(),
            }))),
            activation: Some(object(json!({
                "apiVersion": "applicationconnector.kyma-project.io/v1alpha1",
                "kind": "EventActivation",
                "metadata": {
                    "name": "orders", "namespace": "team",
                    "ownerReferences": [{
                        "apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow", "name": "flow",
                        "uid": "uid-flow",
                    }],
                },
                "spec": {"sourceId": "shop"},
            }))),
            policy: Some(object(json!({
                "apiVersion": "eventing.knative.dev/v1alpha1", "kind": "EventPolicy",
                "metadata": meta("flow-shop", "team"),
                "spec": {
                    "to": [{"ref": {"kind": "Broker", "name": "default"}}],
                    "from": [{"ref": {
                        "kind": "Channel", "name": "shop", "namespace": "kyma-integration",
                    }}],
                },
            }))),
            is_disabled: false,
        },
        leaving: None,
        heartbeat: None,
        now: Timestamp::UNIX_EPOCH,
    }
}

fn status_of(world: &World) -> Option<EventFlowStatus> {
    status::status(world, Timestamp::UNIX_EPOCH).map(object)
}

/// One thing that can be wrong: what is done to the world, which conditions turn for which reason, and what people read.
type Cause = (
    fn(&mut World),
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

const CAUSES: &[Cause] = &[
    (
        |world| world.parts.mapping = None,
        &[("Allowed", "MappingMissing")],
        &[
            "ApplicationMapping team/shop",
            "does not exist",
            "create it",
        ],
    ),
    (
        |world| world.parts.mapping.as_mut().unwrap().spec.services = Some(Vec::new()),
        &[("Allowed", "ServiceNotEnabled")],
        &[
            "ApplicationMapping team/shop",
            "orders",
            "add it to spec.services",
        ],
    ),
    (
        |world| world.parts.source = None,
        &[("SourceReady", "SourceMissing")],
        &[
            "HTTPSource kyma-integration/shop",
            "does not exist",
            "Application shop",
        ],
    ),
    (
        |world| {
            let other = json!({"kind": "Queue", "name": "orders"});
            world.flow.spec.source_ref = Some(object(other));
        },
        &[("SourceReady", "SourceMissing")],
        &["Queue orders", "spec.sourceRef"],
    ),
    (
        |world| world.parts.source.as_mut().unwrap().status = Some(object(not_ready())),
        &[("SourceReady", "SourceNotReady")],
        &["HTTPSource kyma-integration/shop", "Broken: it is broken"],
    ),
    (
        |world| world.parts.channel = None,
        &[("ChannelReady", "ChannelMissing")],
        &[
            "Channel kyma-integration/shop",
            "does not exist",
            "Application shop",
        ],
    ),
    (
        |world| world.parts.channel.as_mut().unwrap().status = Some(object(not_ready())),
        &[("ChannelReady", "ChannelNotReady")],
        &["Channel kyma-integration/shop", "Broken: it is broken"],
    ),
    (
        |world| world.parts.activation = None,
        &[("ActivationProjected", "ProjectionFailed")],
        &["EventActivation team/orders", "without help"],
    ),
    (
        |world| {
            let activation = world.parts.activation.as_mut().unwrap();
            activation.metadata.owner_references = None;
        },
        &[("ActivationProjected", "ProjectionFailed")],
        &["EventActivation team/orders", "without help"],
    ),
    (
        |world| world.link = None,
        &[("LinkReady", "LinkMissing")],
        &[
            "Subscription kyma-integration/link-shop-team",
            "without help",
        ],
    ),
    (
        |world| {
            let link = world.link.as_mut().unwrap();
            link.spec.subscriber = Some(object(json!({"uri": "http://elsewhere.example/"})));
        },
        &[("LinkReady", "LinkNotReady")],
        &[
            "Subscription kyma-integration/link-shop-team",
            "Broker team/default",
            "delete it",
        ],
    ),
    (
        |world| world.link.as_mut().unwrap().status = Some(object(not_ready())),
        &[("LinkReady", "LinkNotReady")],
        &[
            "Subscription kyma-integration/link-shop-team",
            "Broken: it is broken",
        ],
    ),
    (
        |world| world.broker = None,
        &[("BrokerReady", "BrokerMissing")],
        &["Broker team/default", "does not exist", "without help"],
    ),
    (
        |world| {
            let broker = world.broker.as_mut().unwrap();
            broker.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        },
        &[("BrokerReady", "BrokerMissing")],
        &["Broker team/default", "being removed", "without help"],
    ),
    (
        |world| world.broker.as_mut().unwrap().spec.claims.clear(),
        &[("BrokerReady", "BrokerNotReady")],
        &["Broker team/default", "not claimed by the flow", "no help"],
    ),
    (
        |world| world.broker.as_mut().unwrap().status = Some(object(not_ready())),
        &[("BrokerReady", "BrokerNotReady")],
        &["Broker team/default", "Broken: it is broken"],
    ),
    (
        |world| {
            world.broker = None;
            world.parts.is_disabled = true;
        },
        &[("BrokerReady", "InjectionDisabled")],
        &[
            "knative-eventing-injection",
            "namespace team",
            "remove the label",
        ],
    ),
    (
        |world| {
            world.broker = None;
            world.flow.spec.broker_ref.name = "No Broker".to_owned();
        },
        &[
            ("LinkReady", "LinkNotReady"),
            ("BrokerReady", "BrokerMissing"),
            ("PolicyReady", "PolicyNotReady"),
        ],
        &["No Broker", "correct spec.brokerRef.name"],
    ),
    (
        |world| world.parts.policy = None,
        &[("PolicyReady", "PolicyNotReady")],
        &["EventPolicy team/flow-shop", "without help"],
    ),
    (
        |world| world.parts.policy.as_mut().unwrap().spec.from.clear(),
        &[("PolicyReady", "PolicyNotReady")],
        &["EventPolicy team/flow-shop", "without help"],
    ),
];

#[test]
fn a_flow_with_everything_it_needs_is_ready_and_says_where_events_go() {
    let status = status_of(&world()).unwrap();
    assert!(status.conditions.is_ready(), "{status:#?}");
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(
        status.sink_uri.as_deref(),
        Some("http://mesh/broker/team/default")
    );
    assert_eq!(status.pending, None);
}

#[test]
fn each_condition_of_a_flow_has_its_causes_and_names_object_expectation_and_remedy() {
    for (number, (change, expected, needles)) in CAUSES.iter().enumerate() {
        let mut world = world();
        change(&mut world);
        let status = status_of(&world).unwrap();
        let unmet: Vec<(&str, &str)> = (status.conditions.iter())
            .filter(|c| c.status != Status::True && c.type_ != "Ready")
            .map(|c| (c.type_.as_str(), c.reason.as_deref().unwrap()))
            .collect();
        assert_eq!(unmet, *expected, "cause {number}");
        assert!(!status.conditions.is_ready(), "cause {number}");
        let messages: Vec<&str> = (status.conditions.iter())
            .filter_map(|c| c.message.as_deref())
            .collect();
        for needle in *needles {
            assert!(
                messages.iter().any(|message| message.contains(needle)),
                "cause {number}: {needle:?} is not in {messages:?}"
            );
        }
    }
}

#[test]
fn every_reason_that_a_flow_may_give_is_given_by_some_cause() {
    let declared = CONDITIONS.dependents.iter().flat_map(|c| c.reasons);
    for reason in declared {
        assert!(
            CAUSES
                .iter()
                .any(|(_, given, _)| given.iter().any(|(_, name)| *name == reason.name)),
            "{} is never given",
            reason.name
        );
    }
}

#[test]
fn a_flow_turns_ready_once() {
    let mut world = world();
    assert!(status::turns_ready(&world));
    world.flow.status = status_of(&world);
    assert!(!status::turns_ready(&world), "it is so already");
    world.flow.status = None;
    world.link = None;
    assert!(!status::turns_ready(&world));
}

/// What the watches show may be gone by now, and an operation that ended well with it would stay so.
#[tokio::test]
async fn a_flow_that_only_the_watches_show_as_ready_is_not_ready() {
    let World {
        flow,
        broker,
        link,
        parts,
        ..
    } = world();
    let cache = WatchCache::default()
        .containing(broker.unwrap())
        .containing(link.unwrap())
        .containing(parts.mapping.unwrap())
        .containing(parts.source.unwrap())
        .containing(parts.channel.unwrap())
        .containing(parts.activation.unwrap())
        .containing(parts.policy.unwrap());
    let empty = tower::service_fn(async |_: http::Request<Body>| {
        let status = json!({"status": "Failure", "reason": "NotFound", "code": 404, "message": "nothing is there"});
        let answer = http::Response::builder().status(404);
        answer.body(Body::from(status.to_string().into_bytes()))
    });
    let options = Options::new(Clock::system(), Chance::seeded(1));
    let ctx = Ctx::new(Client::new(empty, "default"), options, cache, "test");
    let flows = EventFlows::default();
    let mut known = flow.clone();
    known.status = status_of(&world());
    let world = flows.observe(&ctx, known).await.unwrap();
    assert!(
        status_of(&world).unwrap().conditions.is_ready(),
        "the watches say so"
    );
    let world = flows.observe(&ctx, flow).await.unwrap();
    assert!(!status_of(&world).unwrap().conditions.is_ready());
}

#[test]
fn a_claim_of_a_namesake_is_another() {
    let broker = |uid: &str| {
        let mut broker = world().broker.unwrap();
        broker.spec.claims[0].uid = uid.to_owned();
        Arc::new(broker)
    };
    let (old, new) = (broker("uid-flow"), broker("uid-namesake"));
    let woken = |new: &Arc<Broker>| {
        let change = Change::between(Some(&old), new);
        claimants(&change)
    };
    assert!(woken(&old).is_empty());
    assert!(woken(&new).iter().all(|flow| flow.name == "flow") && !woken(&new).is_empty());
}

#[test]
fn a_link_that_was_there_before_is_remembered_by_its_name() {
    let mut world = world();
    let link_of = |world: &mut World| {
        world.flow.status = status_of(world);
        (
            world.flow.status.clone().unwrap().link_name,
            link_key(&trim(&world.flow)),
        )
    };
    let own = "subscription/kyma-integration/link-shop-team";
    assert_eq!(link_of(&mut world), (None, own.to_owned()));
    world.link.as_mut().unwrap().metadata.name = Some("earlier".to_owned());
    let earlier = (
        Some("earlier".to_owned()),
        "subscription/kyma-integration/earlier".to_owned(),
    );
    assert_eq!(link_of(&mut world), earlier);
    let link = world.link.take();
    assert_eq!(link_of(&mut world), earlier, "the mesh may still have it");
    world.link = link;
    world.link.as_mut().unwrap().metadata.name = Some("link-shop-team".to_owned());
    assert_eq!(link_of(&mut world), (None, own.to_owned()));
}

#[test]
fn what_is_unknown_of_a_part_is_unknown_of_the_flow() {
    let mut world = world();
    world.link.as_mut().unwrap().status = None;
    let status = status_of(&world).unwrap();
    let link = status.conditions.find("LinkReady").unwrap();
    assert_eq!(link.status, Status::Unknown);
    assert!(!status.conditions.is_ready());
}

#[test]
fn a_status_at_rest_does_not_change_with_time() {
    let mut world = world();
    let first = status::status(&world, Timestamp::from_second(10).unwrap()).unwrap();
    world.flow.status = Some(object(first.clone()));
    let second = status::status(&world, Timestamp::from_second(99).unwrap()).unwrap();
    assert_eq!(first, second);
}

#[test]
fn a_flow_is_held_once_and_foreign_finalizers_stay() {
    let mut world = world();
    assert_eq!(plan::plan(&world), []);
    world.flow.metadata.finalizers = Some(vec!["theirs".to_owned()]);
    let [Step::Swap { patch, .. }] = &plan::plan(&world)[..] else {
        panic!("it is held by a swap");
    };
    assert_eq!(
        patch["metadata"]["finalizers"],
        json!(["theirs", FINALIZER])
    );
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
}

/// A flow whose removal began `seconds` ago and that is cut off, with so many events pending.
fn leaving(seconds: i64, pending: u64) -> World {
    let mut world = world();
    let began = Timestamp::from_second(1_000).unwrap();
    world.flow.metadata.deletion_timestamp = Some(Time(began));
    world.now = Timestamp::from_second(1_000 + seconds).unwrap();
    world.broker.as_mut().unwrap().spec.claims.clear();
    world.link = None;
    world.leaving = Some(Leaving {
        ends_with_namespace: false,
        is_succeeded: false,
        mesh: Some(MeshState {
            is_linked: false,
            pending,
        }),
        given_up: None,
    });
    world
}

fn set(world: &mut World, word: &str) {
    world.flow.spec.on_deprovision = object(json!(word));
}

#[test]
fn a_flow_that_goes_waits_for_its_claim_its_link_and_the_table() {
    let with = |change: fn(&mut World)| {
        let mut world = leaving(0, 5);
        change(&mut world);
        leaving::next(&world).unwrap()
    };
    assert_eq!(leaving::next(&world()), None);
    assert_eq!(with(|_| ()), Next::Drain);
    assert_eq!(
        with(|w| w.broker = world().broker),
        Next::AwaitRemoval,
        "still claimed"
    );
    assert_eq!(with(|w| w.link = world().link), Next::AwaitRemoval);
    assert_eq!(
        with(|w| {
            w.link = world().link;
            w.leaving.as_mut().unwrap().is_succeeded = true;
        }),
        Next::WriteDown,
        "the link is another flow's, so nothing is cut off"
    );
    assert_eq!(
        with(|w| {
            w.link = world().link;
            w.link.as_mut().unwrap().metadata.labels = None;
        }),
        Next::WriteDown,
        "nobody takes away what is not heddle's"
    );
    assert_eq!(with(|w| w.broker = None), Next::Drain);
    let linked = |w: &mut World| {
        let mesh = w.leaving.as_mut().unwrap().mesh.as_mut();
        mesh.unwrap().is_linked = true;
    };
    assert_eq!(with(linked), Next::AwaitTable);
    let mut late = leaving(300, 0);
    linked(&mut late);
    assert_eq!(
        leaving::next(&late),
        Some(Next::WriteDown),
        "no wait is endless"
    );
    assert_eq!(
        with(|w| w.leaving.as_mut().unwrap().mesh = None),
        Next::WriteDown,
        "without a mesh nothing was let in"
    );
    assert_eq!(
        with(|w| w.flow.metadata.finalizers = Some(vec!["theirs".to_owned()])),
        Next::Nothing
    );
}

#[test]
fn what_is_pending_ends_as_the_flow_asks() {
    let next = |word: &str, seconds, pending| {
        let mut world = leaving(seconds, pending);
        set(&mut world, word);
        leaving::next(&world).unwrap()
    };
    assert_eq!(next("drain", 299, 1), Next::Drain);
    assert_eq!(next("drain", 300, 1), Next::GiveUp(Fate::DeadLetter));
    assert_eq!(next("drain", 3, 0), Next::WriteDown);
    assert_eq!(next("deadLetter", 0, 1), Next::GiveUp(Fate::DeadLetter));
    assert_eq!(next("discard", 0, 1), Next::GiveUp(Fate::Discard));
    assert_eq!(next("discard", 0, 0), Next::WriteDown);
    let mut ending = leaving(0, 1);
    ending.leaving.as_mut().unwrap().ends_with_namespace = true;
    assert_eq!(
        leaving::next(&ending),
        Some(Next::GiveUp(Fate::DeadLetter)),
        "nobody is left to take events in a namespace that goes"
    );
}

#[test]
fn what_became_of_pending_events_is_written_down_before_the_flow_is_let_go() {
    let mut world = leaving(0, 5);
    world.flow.status = status_of(&self::world());
    let ready = world.flow.status.clone().unwrap().conditions;
    let status = status_of(&world).unwrap();
    assert_eq!((status.pending, status.ended), (Some(5), None));
    assert_eq!(plan::plan(&world), [], "it is not let go yet");

    // Three are delivered in time, two are given up.
    let mut late = leaving(300, 2);
    late.flow.status = Some(status.clone());
    late.leaving.as_mut().unwrap().given_up = Some(GivenUp {
        dead_lettered: 2,
        discarded: 0,
    });
    let ended = Ended {
        delivered: 3,
        dead_lettered: 2,
        discarded: 0,
    };
    let given_up = status_of(&late).unwrap();
    assert_eq!(given_up.ended, Some(ended));
    assert_eq!(given_up.conditions, ready, "conditions stay as they were");

    let mut drained = leaving(9, 0);
    drained.flow.status = Some(status);
    let all = status_of(&drained).unwrap();
    assert_eq!(all.ended.unwrap().delivered, 5);

    drained.flow.status = Some(all);
    assert_eq!(leaving::next(&drained), Some(Next::LetGo));
    let [Step::Swap { patch, .. }] = &plan::plan(&drained)[..] else {
        panic!("it is let go by a swap");
    };
    assert_eq!(patch["metadata"]["finalizers"], json!(["theirs"]));
}

#[test]
fn a_count_is_looked_at_again_less_and_less_often_and_never_past_the_end() {
    let again = |seconds: i64| {
        let world = leaving(seconds, 1);
        leaving::requeue_after(&world, world.now)
    };
    assert_eq!(again(0), Some(Duration::from_secs(1)));
    assert_eq!(again(20), Some(Duration::from_secs(5)));
    assert_eq!(again(200), Some(Duration::from_secs(15)));
    assert_eq!(again(297), Some(Duration::from_secs(3)));
    assert_eq!(
        leaving::requeue_after(&world(), Timestamp::UNIX_EPOCH),
        None
    );
}
