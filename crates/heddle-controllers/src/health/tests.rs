//! The judge by table, and what must hold of every verdict whatever the evidence.

use std::time::Duration;

use heddle_api::dataplane::{
    ConsumerReading, HeartbeatReading, LogReading, SlowHop, StuckHop, SubscriberReading,
};
use heddle_api::health::{
    ApplicationHealth, EventingStatus, HealthPlane, HealthStatus, NamespaceHealth, Verdict, state,
};
use jiff::Timestamp;

use super::evidence::*;
use super::{judge, roll_up};
use crate::pulse::{FailingObject, PulseReading};

fn ready(object: &str) -> PathObject {
    PathObject {
        object: object.to_owned(),
        state: ObjectState::Ready,
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn arriving() -> HeartbeatReading {
    HeartbeatReading {
        application: "shop".to_owned(),
        namespace: "team".to_owned(),
        interval: seconds(10),
        since: Some(seconds(300)),
        age: Some(seconds(4)),
        end_to_end: Some(Duration::from_millis(3)),
        misses: 0,
        hits: 30,
        ..HeartbeatReading::default()
    }
}

/// Everything is well, and everything is in use.
fn well() -> (ApplicationEvidence, SharedEvidence) {
    let trigger = TriggerEvidence {
        trigger: ready("trigger/team/orders"),
        reading: Some(ConsumerReading {
            key: "trigger/team/orders".to_owned(),
            matched: 5,
            delivered: 5,
            succeeded: Some(seconds(1)),
            ..ConsumerReading::default()
        }),
    };
    let pair = PairEvidence {
        namespace: "team".to_owned(),
        mapping: Some(ready("applicationmapping/team/shop")),
        failed_instance: None,
        flows: vec![ready("eventflow/team/one")],
        broker: Some(ready("broker/team/default")),
        link: Some(ready("subscription/kyma-integration/shop-team")),
        triggers: vec![trigger],
        probing: Probing::On(Some(Box::new(arriving()))),
    };
    let application = ApplicationEvidence {
        name: "shop".to_owned(),
        skipped: false,
        application: ready("application/shop"),
        source: ready("httpsource/kyma-integration/shop"),
        channel: ready("channel/kyma-integration/shop"),
        door: DoorWindow {
            accepted: 5,
            ..DoorWindow::default()
        },
        namespaces: vec![pair],
    };
    let shared = SharedEvidence {
        log: Some(LogReading::default()),
        routing: true,
        store: None,
        admission: Ok(()),
        pulses: vec![PulseReading {
            controller: "heddle-broker",
            ..PulseReading::default()
        }],
        canary: arriving(),
        edge: None,
        unaccounted: Vec::new(),
    };
    (application, shared)
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn judged(application: &ApplicationEvidence, shared: &SharedEvidence) -> Verdict {
    judge::pair(application, &application.namespaces[0], shared, None, now())
}

type Change = fn(&mut ApplicationEvidence, &mut SharedEvidence);

/// What is changed in a world that is well; the health of the pair, the plane that is named, the code, hop and object.
type Case = (
    Change,
    HealthStatus,
    Option<HealthPlane>,
    &'static str,
    &'static str,
    &'static str,
);

fn pair(application: &mut ApplicationEvidence) -> &mut PairEvidence {
    &mut application.namespaces[0]
}

fn heartbeat(application: &mut ApplicationEvidence) -> &mut HeartbeatReading {
    match &mut pair(application).probing {
        Probing::On(Some(reading)) => reading,
        other => panic!("{other:?}"),
    }
}

fn stuck(application: &mut ApplicationEvidence, hop: &str, object: &str) {
    let reading = heartbeat(application);
    reading.misses = 3;
    reading.age = Some(seconds(31));
    reading.hits = 0;
    reading.stuck = Some(StuckHop {
        hop: hop.to_owned(),
        object: object.to_owned(),
        why: "it was seen".to_owned(),
    });
}

/// A subscriber to which nothing was ever sent was tried so many seconds ago.
fn probed(application: &mut ApplicationEvidence, failed: Option<&str>, misses: u32, age: u64) {
    let reading = reading(application);
    reading.succeeded = None;
    reading.probe = Some(SubscriberReading {
        how: "tcp".to_owned(),
        interval: seconds(30),
        age: Some(seconds(age)),
        failed: failed.map(str::to_owned),
        misses,
    });
}

fn breaks(object: &mut PathObject) {
    object.state = ObjectState::NotReady("Broken: as was asked".to_owned());
}

fn fails(shared: &mut SharedEvidence, object: &str) {
    shared.pulses[0].failing_objects = vec![FailingObject {
        object: object.to_owned(),
        error: "no".to_owned(),
    }];
}

const CASES: &[Case] = {
    use HealthStatus::{Degraded, Healthy, Unhealthy, Unknown};
    const CONTROL: Option<HealthPlane> = Some(HealthPlane::Control);
    const DATA: Option<HealthPlane> = Some(HealthPlane::Data);
    const BENEATH: Option<HealthPlane> = Some(HealthPlane::Dependencies);
    &[
        (|_, _| {}, Healthy, None, "HeartbeatOK", "", ""),
        // What is said and what is measured disagree: what is measured decides.
        (
            |a, _| breaks(&mut a.channel),
            Degraded,
            CONTROL,
            "ControlPlaneStale",
            "channel",
            "channel/kyma-integration/shop",
        ),
        (
            |a, _| breaks(pair(a).broker.as_mut().unwrap()),
            Degraded,
            CONTROL,
            "ControlPlaneStale",
            "broker",
            "broker/team/default",
        ),
        (
            |a, _| stuck(a, "source", "httpsource/kyma-integration/shop"),
            Unhealthy,
            DATA,
            "SourceRefuses",
            "source",
            "httpsource/kyma-integration/shop",
        ),
        (
            |a, _| stuck(a, "channel", "channel/kyma-integration/shop"),
            Unhealthy,
            DATA,
            "ChannelNotWritten",
            "channel",
            "channel/kyma-integration/shop",
        ),
        (
            |a, _| stuck(a, "subscription", "subscription/kyma-integration/shop-team"),
            Unhealthy,
            DATA,
            "LinkBroken",
            "subscription",
            "subscription/kyma-integration/shop-team",
        ),
        (
            |a, _| stuck(a, "broker", "broker/team/default"),
            Unhealthy,
            DATA,
            "BrokerNotRouting",
            "broker",
            "broker/team/default",
        ),
        (
            |a, _| stuck(a, "trigger", "heartbeat/team/shop"),
            Unhealthy,
            DATA,
            "DispatchStalled",
            "trigger",
            "heartbeat/team/shop",
        ),
        (
            |a, _| stuck(a, "delivery", "heartbeat/team/shop"),
            Unhealthy,
            DATA,
            "DeliveryFailing",
            "delivery",
            "heartbeat/team/shop",
        ),
        (
            |a, _| heartbeat(a).age = Some(seconds(31)),
            Unknown,
            DATA,
            "HeartbeatStale",
            "",
            "",
        ),
        (
            |a, _| {
                heartbeat(a).age = Some(seconds(31));
                heartbeat(a).misses = 2;
            },
            Unhealthy,
            DATA,
            "HeartbeatMissing",
            "",
            "application/shop",
        ),
        // What goes with an Application is not the cause.
        (
            |a, _| {
                stuck(a, "source", "application/shop");
                a.application.state = ObjectState::Missing;
                a.channel.state = ObjectState::Missing;
                a.source.state = ObjectState::Missing;
            },
            Unhealthy,
            CONTROL,
            "ApplicationNotReady",
            "source",
            "application/shop",
        ),
        // Both say so: the object that is named is the cause.
        (
            |a, _| {
                stuck(a, "subscription", "x");
                breaks(pair(a).broker.as_mut().unwrap())
            },
            Unhealthy,
            CONTROL,
            "BrokerNotReady",
            "broker",
            "broker/team/default",
        ),
        (
            |a, _| {
                stuck(a, "subscription", "x");
                pair(a).link.as_mut().unwrap().state = ObjectState::Missing
            },
            Unhealthy,
            CONTROL,
            "LinkNotReady",
            "subscription",
            "subscription/kyma-integration/shop-team",
        ),
        (
            |a, _| {
                stuck(a, "source", "x");
                breaks(&mut a.source);
                breaks(&mut a.application)
            },
            Unhealthy,
            CONTROL,
            "SourceNotReady",
            "source",
            "httpsource/kyma-integration/shop",
        ),
        // Nothing is measured yet.
        (
            |a, _| pair(a).probing = Probing::On(None),
            Unknown,
            DATA,
            "HeartbeatPending",
            "",
            "",
        ),
        (
            |a, _| {
                heartbeat(a).age = None;
                heartbeat(a).misses = 2;
            },
            Unhealthy,
            DATA,
            "HeartbeatMissing",
            "",
            "application/shop",
        ),
        (
            |a, _| {
                heartbeat(a).age = None;
                heartbeat(a).since = Some(seconds(9))
            },
            Unknown,
            DATA,
            "HeartbeatPending",
            "",
            "",
        ),
        (
            |a, _| pair(a).probing = Probing::Off,
            Unknown,
            DATA,
            "HeartbeatDisabled",
            "",
            "",
        ),
        (
            |a, _| {
                pair(a).probing = Probing::Unneeded;
                pair(a).flows.clear()
            },
            Healthy,
            None,
            "NothingFlows",
            "",
            "",
        ),
        (
            |a, _| {
                pair(a).probing = Probing::Unneeded;
                breaks(pair(a).mapping.as_mut().unwrap())
            },
            Unhealthy,
            CONTROL,
            "MappingNotReady",
            "",
            "applicationmapping/team/shop",
        ),
        // It was removed, and flows of instances are still there.
        (
            |a, _| {
                pair(a).probing = Probing::Unneeded;
                pair(a).mapping.as_mut().unwrap().state = ObjectState::Missing;
                breaks(&mut pair(a).flows[0])
            },
            Unhealthy,
            CONTROL,
            "MappingNotReady",
            "",
            "applicationmapping/team/shop",
        ),
        (
            |a, _| {
                pair(a).probing = Probing::Unneeded;
                breaks(&mut pair(a).flows[0])
            },
            Unhealthy,
            CONTROL,
            "FlowNotReady",
            "",
            "eventflow/team/one",
        ),
        (
            |a, _| {
                pair(a).probing = Probing::Unneeded;
                pair(a).failed_instance = Some(PathObject {
                    object: "serviceinstance/team/one".to_owned(),
                    state: ObjectState::NotReady(String::new()),
                })
            },
            Unhealthy,
            CONTROL,
            "InstanceFailed",
            "",
            "serviceinstance/team/one",
        ),
        (
            |a, _| {
                pair(a).probing = Probing::Unneeded;
                a.channel.state = ObjectState::Missing
            },
            Unhealthy,
            CONTROL,
            "ChannelNotReady",
            "channel",
            "channel/kyma-integration/shop",
        ),
        (
            |a, _| {
                pair(a).probing = Probing::Unneeded;
                a.channel.state = ObjectState::Unobserved(String::new())
            },
            Unknown,
            CONTROL,
            "NotYetObserved",
            "channel",
            "channel/kyma-integration/shop",
        ),
        (
            |a, _| {
                a.skipped = true;
                breaks(&mut a.application);
                pair(a).probing = Probing::Unneeded
            },
            Healthy,
            None,
            "NothingFlows",
            "",
            "",
        ),
        (
            |a, _| heartbeat(a).end_to_end = Some(seconds(6)),
            Degraded,
            DATA,
            "HeartbeatSlow",
            "",
            "",
        ),
        (
            |a, _| {
                heartbeat(a).end_to_end = Some(seconds(6));
                heartbeat(a).slowest = Some(SlowHop {
                    hop: "broker".to_owned(),
                    object: "broker/team/default".to_owned(),
                    took: seconds(4),
                })
            },
            Degraded,
            DATA,
            "HeartbeatSlow",
            "broker",
            "broker/team/default",
        ),
        // Controllers.
        (
            |_, s| s.pulses[0].age = seconds(16),
            Unknown,
            CONTROL,
            "ControllerStalled",
            "",
            "controller/heddle-broker",
        ),
        (
            |_, s| s.pulses[0].waiting_for = seconds(16),
            Unknown,
            CONTROL,
            "ControllerStalled",
            "",
            "controller/heddle-broker",
        ),
        (
            |_, s| s.pulses[0].running_for = seconds(16),
            Unknown,
            CONTROL,
            "ControllerStalled",
            "",
            "controller/heddle-broker",
        ),
        (
            |_, s| s.pulses[0].failing = Some("no".to_owned()),
            Degraded,
            CONTROL,
            "ControllerFailing",
            "",
            "controller/heddle-broker",
        ),
        // What a controller fails for concerns those to whom it belongs.
        (
            |_, s| fails(s, "trigger/team/orders"),
            Degraded,
            CONTROL,
            "ControllerFailing",
            "",
            "controller/heddle-broker",
        ),
        (
            |_, s| fails(s, "trigger/other/orders"),
            Healthy,
            None,
            "HeartbeatOK",
            "",
            "",
        ),
        (
            |_, s| s.pulses.clear(),
            Unknown,
            CONTROL,
            "NotYetObserved",
            "",
            "",
        ),
        (
            |_, s| s.admission = Err("refused".to_owned()),
            Degraded,
            CONTROL,
            "AdmissionFailing",
            "",
            "admission",
        ),
        // What everything stands on.
        (|_, s| s.log = None, Unknown, BENEATH, "NotRouting", "", ""),
        (
            |_, s| s.routing = false,
            Unknown,
            DATA,
            "NotRouting",
            "",
            "",
        ),
        (
            |_, s| s.log.as_mut().unwrap().broken = Some("EIO".to_owned()),
            Unhealthy,
            BENEATH,
            "LogBroken",
            "",
            "log",
        ),
        (
            |_, s| s.log.as_mut().unwrap().refusing = Some("full".to_owned()),
            Unhealthy,
            BENEATH,
            "LogFull",
            "",
            "log",
        ),
        (
            |_, s| {
                let log = s.log.as_mut().unwrap();
                log.refusing = Some("full".to_owned());
                log.largest = Some("trigger/team/orders".to_owned());
            },
            Unhealthy,
            BENEATH,
            "LogFull",
            "",
            "trigger/team/orders",
        ),
        (
            |_, s| s.log.as_mut().unwrap().journal_stalled = Some("full".to_owned()),
            Unhealthy,
            BENEATH,
            "JournalStalled",
            "",
            "journal",
        ),
        (
            |_, s| s.log.as_mut().unwrap().used_ratio = Some(0.9),
            Degraded,
            BENEATH,
            "LogFilling",
            "",
            "log",
        ),
        (
            |_, s| s.log.as_mut().unwrap().damaged = 1,
            Degraded,
            BENEATH,
            "LogDamaged",
            "",
            "log",
        ),
        (
            |_, s| s.store = Some("full".to_owned()),
            Unhealthy,
            BENEATH,
            "StoreBroken",
            "",
            "store",
        ),
        (
            |_, s| s.log.as_mut().unwrap().unmatched_for = Some(seconds(31)),
            Unhealthy,
            DATA,
            "MatchingBehind",
            "broker",
            "scanner",
        ),
        (
            |_, s| s.unaccounted = vec!["trigger/team/orders".to_owned()],
            Unhealthy,
            DATA,
            "BalanceViolated",
            "",
            "trigger/team/orders",
        ),
        (
            |_, s| s.unaccounted = vec!["trigger/other/orders".to_owned()],
            Healthy,
            None,
            "HeartbeatOK",
            "",
            "",
        ),
    ]
};

#[test]
fn evidence_gives_the_verdict_and_names_the_culprit() {
    for (index, (change, health, plane, reason, hop, object)) in CASES.iter().enumerate() {
        let (mut application, mut shared) = well();
        change(&mut application, &mut shared);
        let verdict = judged(&application, &shared);
        let found = (
            verdict.health,
            verdict.plane,
            verdict.reason.as_str(),
            verdict.hop.as_deref().unwrap_or_default(),
            verdict.object.as_deref().unwrap_or_default(),
        );
        assert_eq!(
            found,
            (*health, *plane, *reason, *hop, *object),
            "case {index}"
        );
        if *health != HealthStatus::Healthy {
            assert!(!verdict.remedy.is_empty(), "case {index}: {verdict:?}");
        }
        assert_eq!(
            verdict.planes.user.health,
            HealthStatus::Healthy,
            "case {index}"
        );
    }
}

/// The change, and what the user plane says of it.
type UserCase = (fn(&mut ApplicationEvidence), HealthStatus, &'static str);

fn reading(application: &mut ApplicationEvidence) -> &mut ConsumerReading {
    pair(application).triggers[0].reading.as_mut().unwrap()
}

const USER_CASES: &[UserCase] = &[
    (
        |a| reading(a).failed = Some((seconds(1), "answered 500".to_owned())),
        HealthStatus::Unhealthy,
        "SubscriberFailing",
    ),
    (
        |a| {
            reading(a).failed = Some((seconds(900), "answered 500".to_owned()));
            reading(a).retrying = 1
        },
        HealthStatus::Unhealthy,
        "SubscriberFailing",
    ),
    (
        |a| reading(a).oldest_pending = Some(seconds(61)),
        HealthStatus::Degraded,
        "BacklogOld",
    ),
    (
        |a| reading(a).dead_letters = 2,
        HealthStatus::Degraded,
        "DeadLetters",
    ),
    (
        |a| reading(a).succeeded = None,
        HealthStatus::Unknown,
        "SubscriberUntried",
    ),
    (
        |a| pair(a).triggers[0].reading = None,
        HealthStatus::Unknown,
        "SubscriberUntried",
    ),
    (
        |a| breaks(&mut pair(a).triggers[0].trigger),
        HealthStatus::Unhealthy,
        "TriggerNotReady",
    ),
    (
        |a| reading(a).succeeded = Some(seconds(3601)),
        HealthStatus::Unknown,
        "SubscriberUntried",
    ),
    // A subscriber that is tried between events.
    (
        |a| probed(a, None, 0, 5),
        HealthStatus::Healthy,
        "Answering",
    ),
    (
        |a| probed(a, None, 0, 91),
        HealthStatus::Unknown,
        "SubscriberUntried",
    ),
    (
        |a| probed(a, Some("refused"), 2, 5),
        HealthStatus::Unknown,
        "SubscriberUntried",
    ),
    (
        |a| probed(a, Some("refused"), 3, 5),
        HealthStatus::Unhealthy,
        "SubscriberUnreachable",
    ),
    (
        |a| probed(a, Some("refused"), 3, 91),
        HealthStatus::Unknown,
        "SubscriberUntried",
    ),
    (
        |a| {
            probed(a, Some("refused"), 3, 5);
            reading(a).succeeded = Some(seconds(1));
        },
        HealthStatus::Healthy,
        "Delivering",
    ),
    (
        |a| pair(a).triggers.clear(),
        HealthStatus::Healthy,
        "NothingSubscribed",
    ),
    (
        |a| a.door.refused = 1,
        HealthStatus::Degraded,
        "PublisherRefused",
    ),
    (
        |a| a.door.unmatched = 5,
        HealthStatus::Degraded,
        "EventsUnmatched",
    ),
    (
        |a| a.door.unmatched = 4,
        HealthStatus::Healthy,
        "Delivering",
    ),
];

#[test]
fn what_users_bring_turns_their_plane_and_not_the_mesh() {
    for (index, (change, health, reason)) in USER_CASES.iter().enumerate() {
        let (mut application, shared) = well();
        change(&mut application);
        let verdict = judged(&application, &shared);
        let user = &verdict.planes.user;
        assert_eq!(
            (user.health, user.reason.as_str()),
            (*health, *reason),
            "case {index}"
        );
        assert_eq!(verdict.health, HealthStatus::Healthy, "case {index}");
    }
}

/// Ways to know less than before.
const REMOVALS: &[Change] = &[
    |a, _| {
        if let Probing::On(_) = pair(a).probing {
            pair(a).probing = Probing::On(None)
        }
    },
    |_, s| s.log = None,
    |_, s| s.routing = false,
    |_, s| s.pulses.clear(),
    |a, _| a.channel.state = ObjectState::Unobserved(String::new()),
    |a, _| a.application.state = ObjectState::Unobserved(String::new()),
    |a, _| {
        pair(a)
            .flows
            .iter_mut()
            .for_each(|flow| flow.state = ObjectState::Unobserved(String::new()))
    },
    |a, _| {
        if let Some(broker) = &mut pair(a).broker {
            broker.state = ObjectState::Unobserved(String::new())
        }
    },
    |a, _| {
        pair(a)
            .triggers
            .iter_mut()
            .for_each(|one| one.reading = None)
    },
    |a, _| {
        for one in &mut pair(a).triggers {
            if let Some(reading) = &mut one.reading {
                reading.probe = None;
            }
        }
    },
];

#[test]
fn knowing_less_never_makes_a_verdict_better() {
    let planes = |verdict: &Verdict| -> Vec<HealthStatus> {
        let mut all: Vec<HealthStatus> = verdict
            .planes
            .iter()
            .map(|(_, found)| found.health)
            .collect();
        all.push(verdict.health);
        all
    };
    for (index, (change, ..)) in CASES.iter().enumerate() {
        for (removal, remove) in REMOVALS.iter().enumerate() {
            let (mut application, mut shared) = well();
            change(&mut application, &mut shared);
            let before = planes(&judged(&application, &shared));
            remove(&mut application, &mut shared);
            let after = planes(&judged(&application, &shared));
            for (before, after) in before.iter().zip(&after) {
                // Not knowing is no better than knowing the worst.
                let holds = after >= before || *after == HealthStatus::Unknown;
                assert!(
                    holds,
                    "case {index}, removal {removal}: {before:?} became {after:?}"
                );
            }
        }
    }
}

#[test]
fn a_broken_way_is_mended_by_two_arrivals_and_the_time_stays_while_the_health_does() {
    let (mut application, shared) = well();
    stuck(&mut application, "delivery", "x");
    let broken = judged(&application, &shared);
    let later = |seconds: i64| Timestamp::from_second(now().as_second() + seconds).unwrap();
    let again = |application: &ApplicationEvidence, before: &Verdict, at: i64| {
        let pair = &application.namespaces[0];
        judge::pair(application, pair, &shared, Some(before), later(at))
    };
    let still = again(&application, &broken, 10);
    assert_eq!(
        (still.health, still.since),
        (HealthStatus::Unhealthy, now())
    );
    *heartbeat(&mut application) = HeartbeatReading {
        hits: 1,
        ..arriving()
    };
    let once = again(&application, &still, 20);
    assert_eq!((once.health, once.since), (HealthStatus::Unhealthy, now()));
    heartbeat(&mut application).hits = 2;
    let mended = again(&application, &once, 30);
    assert_eq!(
        (mended.health, mended.since),
        (HealthStatus::Healthy, later(30))
    );
    // One that does not come is no alarm yet.
    heartbeat(&mut application).misses = 1;
    heartbeat(&mut application).hits = 0;
    assert_eq!(
        again(&application, &mended, 40).health,
        HealthStatus::Healthy
    );
}

#[test]
fn only_what_was_reached_is_asked_for() {
    let reached = |change: fn(&mut PairEvidence)| {
        let (mut application, _) = well();
        change(pair(&mut application));
        judge::reached(
            &application,
            &application.namespaces[0],
            HealthStatus::Healthy,
        )
    };
    assert_eq!(reached(|_| {}), state::TRIGGERED);
    assert_eq!(reached(|pair| pair.triggers.clear()), state::ENABLED);
    assert_eq!(reached(|pair| breaks(&mut pair.flows[0])), state::BOUND);
    assert_eq!(
        reached(|pair| pair.flows.clear()),
        state::TRIGGERED,
        "linked by hand"
    );
    let unlinked = |pair: &mut PairEvidence| {
        pair.flows.clear();
        (pair.link, pair.broker) = (None, None);
    };
    assert_eq!(reached(unlinked), state::BOUND);
    assert_eq!(reached(|pair| pair.mapping = None), state::CREATED);
}

/// What is there and well of application, mapping, flows, link, Triggers and arriving heartbeats: `x` there, `-` not there,
/// `.` whichever. Of each combination exactly one line is true.
const STATES: &[(&str, u8)] = &[
    ("-.....", state::CREATED),
    // Nothing leads into the namespace.
    ("x---..", state::CREATED),
    // A flow without its mapping has not come far.
    ("x-x...", state::CREATED),
    ("xx--..", state::BOUND),
    // A link that somebody made by hand stands for mapping and flow.
    ("x.-xxx", state::TRIGGERED),
    ("x.-xx-", state::ENABLED),
    ("x.-x-.", state::ENABLED),
    // The link of a flow goes with the flow, which says when it is there.
    ("xxx.xx", state::TRIGGERED),
    ("xxx.x-", state::ENABLED),
    ("xxx.-.", state::ENABLED),
];

/// Everything is well as far as it is there. What is not there was never asked for, but the Application, which is missing.
fn with(present: [bool; 6]) -> (ApplicationEvidence, SharedEvidence) {
    let [application, mapping, flows, link, triggers, heartbeats] = present;
    let (mut evidence, shared) = well();
    if !application {
        for own in [
            &mut evidence.application,
            &mut evidence.source,
            &mut evidence.channel,
        ] {
            own.state = ObjectState::Missing;
        }
    }
    let pair = pair(&mut evidence);
    if !mapping {
        pair.mapping = None;
    }
    if !flows {
        pair.flows.clear();
    }
    if !link {
        pair.link = None;
    }
    if !flows && !link {
        pair.broker = None;
    }
    if !triggers {
        pair.triggers.clear();
    }
    if !heartbeats {
        pair.probing = Probing::On(None);
    }
    (evidence, shared)
}

#[test]
fn every_combination_of_what_is_there_has_its_state_and_nothing_else_is_demanded() {
    for combination in 0_u8..64 {
        let present: [bool; 6] = std::array::from_fn(|bit| combination & (1 << bit) != 0);
        let fits = |pattern: &str| {
            let mut marks = pattern.chars().zip(present);
            marks.all(|(mark, there)| mark == '.' || (mark == 'x') == there)
        };
        let lines: Vec<&(&str, u8)> = (STATES.iter())
            .filter(|(pattern, _)| fits(pattern))
            .collect();
        let [(pattern, expected)] = lines[..] else {
            panic!("{present:?} is told by {lines:?}");
        };
        let (evidence, shared) = with(present);
        let verdict = judged(&evidence, &shared);
        let data = verdict.planes.data.health;
        let pair = &evidence.namespaces[0];
        let reached = judge::reached(&evidence, pair, data);
        assert_eq!(reached, *expected, "{present:?} by {pattern}");
        let control = &verdict.planes.control;
        let [application, .., heartbeats] = present;
        match application {
            // What was not reached is not demanded.
            true => assert_eq!(control.health, HealthStatus::Healthy, "{present:?}"),
            false => assert_eq!(
                control.object.as_deref(),
                Some("application/shop"),
                "{present:?}"
            ),
        }
        let is_well = verdict.health == HealthStatus::Healthy;
        assert_eq!(is_well, application && heartbeats, "{present:?}");
    }
}

fn in_mesh(healths: &[HealthStatus], shared: &SharedEvidence) -> Verdict {
    let applications: Vec<ApplicationHealth> = healths
        .iter()
        .enumerate()
        .map(|(index, health)| ApplicationHealth {
            name: format!("app-{index}"),
            eventing: EventingStatus {
                verdict: Verdict {
                    health: *health,
                    reason: "Said".to_owned(),
                    ..Verdict::default()
                },
                ..EventingStatus::default()
            },
        })
        .collect();
    roll_up::mesh(applications.iter(), shared, None, now()).0
}

#[test]
fn the_mesh_is_as_well_as_what_all_share_and_most_of_its_applications() {
    use HealthStatus::{Degraded, Healthy, Unhealthy, Unknown};
    let (_, shared) = well();
    for (applications, health) in [
        (&[][..], Healthy),
        (&[Healthy, Healthy, Healthy], Healthy),
        (&[Healthy, Healthy, Unhealthy], Degraded),
        (&[Healthy, Degraded], Degraded),
        (&[Healthy, Unhealthy], Unhealthy),
        (&[Healthy, Unknown], Unknown),
    ] {
        let verdict = in_mesh(applications, &shared);
        assert_eq!(verdict.health, health, "{applications:?}");
        assert_eq!(verdict.reason == "Healthy", health == Healthy);
    }
    let mut silent = shared.clone();
    (silent.canary.age, silent.canary.misses) = (Some(seconds(40)), 2);
    let verdict = in_mesh(&[], &silent);
    assert_eq!(
        (verdict.health, verdict.reason.as_str()),
        (Unhealthy, "CanaryFailing")
    );
    let mut full = shared;
    full.log.as_mut().unwrap().refusing = Some("no room".to_owned());
    let verdict = in_mesh(&[Healthy], &full);
    assert_eq!(
        (verdict.health, verdict.reason.as_str()),
        (Unhealthy, "LogFull")
    );
}

#[test]
fn what_stops_publishers_elsewhere_is_told_of_the_mesh_and_of_no_namespace() {
    use heddle_api::dataplane::{EdgeFailure, EdgeReading};
    let (application, mut shared) = well();
    let at = |shared: &SharedEvidence| {
        let mesh = in_mesh(&[HealthStatus::Healthy], shared);
        let own = judge::application(&application, shared, None, now());
        let pair = judged(&application, shared);
        assert_eq!(
            (mesh.reason == "Healthy", own.hop),
            (mesh.hop.is_none(), mesh.hop.clone())
        );
        (mesh.health, own.health, pair.health, mesh)
    };
    shared.edge = Some(EdgeReading {
        listener: "events.example:443".to_owned(),
        interval: seconds(30),
        succeeded: Some(seconds(20)),
        failed: Some((
            EdgeFailure::CertificateExpired,
            "since yesterday".to_owned(),
        )),
        misses: 1,
    });
    let (mesh, own, pair, verdict) = at(&shared);
    assert_eq!(
        (mesh, own, pair),
        (
            HealthStatus::Unhealthy,
            HealthStatus::Unhealthy,
            HealthStatus::Healthy
        )
    );
    assert_eq!(verdict.reason, "EdgeCertificateExpired");
    assert_eq!(verdict.plane, Some(HealthPlane::Data));
    assert_eq!(verdict.hop.as_deref(), Some("edge"));
    assert_eq!(
        verdict.object.as_deref(),
        Some("certificate/events.example:443")
    );
    shared.edge.as_mut().unwrap().failed = None;
    assert_eq!(at(&shared).0, HealthStatus::Healthy);
    // Knowing less is no better.
    shared.edge.as_mut().unwrap().succeeded = None;
    let (mesh, own, pair, _) = at(&shared);
    assert_eq!(
        (mesh, own, pair),
        (
            HealthStatus::Unknown,
            HealthStatus::Unknown,
            HealthStatus::Healthy
        )
    );
}

#[test]
fn an_application_is_as_well_as_the_worst_of_its_namespaces() {
    let namespace = |name: &str, health: HealthStatus| NamespaceHealth {
        name: name.to_owned(),
        verdict: Verdict {
            health,
            message: "said".to_owned(),
            ..Verdict::default()
        },
        state: state::ENABLED,
        heartbeat: None,
    };
    let (application, shared) = well();
    let own = || judge::application(&application, &shared, None, now());
    let healths = [("a", HealthStatus::Healthy), ("b", HealthStatus::Unhealthy)];
    let namespaces = healths.map(|(name, health)| namespace(name, health));
    let status = roll_up::application(own(), namespaces.to_vec(), None, now());
    assert_eq!(status.verdict.health, HealthStatus::Unhealthy);
    assert_eq!(status.verdict.message, "in b: said");
    assert_eq!(status.state, state::ENABLED);
    let alone = roll_up::application(own(), Vec::new(), None, now());
    assert_eq!(
        (alone.verdict.health, alone.state),
        (HealthStatus::Healthy, state::CREATED)
    );
    // More than can be named: the worst are.
    let mut many: Vec<_> = (0..150)
        .map(|n| namespace(&format!("n{n:03}"), HealthStatus::Healthy))
        .collect();
    many[140].verdict.health = HealthStatus::Degraded;
    let status = roll_up::application(own(), many, None, now());
    assert_eq!(
        (status.namespaces.len(), status.namespaces_left_out),
        (100, 50)
    );
    assert_eq!(status.namespaces[0].name, "n140");
}
