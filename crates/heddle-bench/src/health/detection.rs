//! How soon is a fault known? Those that can be made from outside, each at an Application of its own.
//!
//! What goes wrong in the middle of the mesh cannot be brought about from here; a simulation does that, with a clock of its own.

use std::net::SocketAddr;

use heddle_api::health::NamespaceHealth;
use heddle_api::well_known::annotation::SUBSCRIBER_PROBE;
use heddle_api::{Broker, EventPolicy, Trigger};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::super::applications::{self, BROKER, NAMESPACE};
use super::super::mesh::publish_one;
use super::super::report::{Goal, Row, Unit};
use super::super::{programs, wire};
use super::HealthBench;
use super::stage::Stage;

/// A fault is known by then: three intervals of heartbeats and the time to judge.
const SECONDS_MAX: f64 = 35.0;

/// One way to break something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutsideFault {
    /// An event is sent to a subscriber that is not there.
    SubscriberDown,
    /// The same for one that is tried between events and gets none.
    IdleSubscriberDown,
    /// A filter lets nothing of what is published pass.
    NothingMatches,
    /// What is published is no event.
    PublisherRefused,
    /// The leave to lead events is taken away.
    LinkForbidden,
    BrokerGone,
}

impl OutsideFault {
    /// In the order in which they are tried: the last one breaks it for all.
    const ALL: [Self; 6] = [
        Self::SubscriberDown,
        Self::IdleSubscriberDown,
        Self::NothingMatches,
        Self::PublisherRefused,
        Self::LinkForbidden,
        Self::BrokerGone,
    ];

    const fn words(self) -> &'static str {
        match self {
            Self::SubscriberDown => "a subscriber that is down",
            Self::IdleSubscriberDown => "an idle subscriber that is down, tried between events",
            Self::NothingMatches => "events that no trigger wants",
            Self::PublisherRefused => "a publisher that is refused",
            Self::LinkForbidden => "a link that is forbidden",
            Self::BrokerGone => "a broker that is gone",
        }
    }

    /// What has to be said of it.
    const fn code(self) -> &'static str {
        match self {
            Self::SubscriberDown => "SubscriberFailing",
            Self::IdleSubscriberDown => "SubscriberUnreachable",
            Self::NothingMatches => "EventsUnmatched",
            Self::PublisherRefused => "PublisherRefused",
            Self::LinkForbidden => "LinkBroken",
            Self::BrokerGone => "BrokerNotRouting",
        }
    }

    /// The Trigger that it takes. All of them are looked at for all Applications, so each is there for its own fault only.
    fn trigger(self, name: &str, nobody: SocketAddr) -> Option<Value> {
        let nothing = json!({"attributes": {"type": "heddle.bench.never"}});
        let (filter, annotations) = match self {
            Self::SubscriberDown => (json!({"attributes": {}}), json!({})),
            Self::IdleSubscriberDown => (nothing, json!({SUBSCRIBER_PROBE: "tcp"})),
            Self::NothingMatches => (nothing, json!({})),
            Self::PublisherRefused | Self::LinkForbidden | Self::BrokerGone => return None,
        };
        Some(json!({
            "metadata": {"name": name, "annotations": annotations},
            "spec": {
                "broker": BROKER, "filter": filter,
                "subscriber": {"uri": format!("http://{nobody}/")},
            },
        }))
    }
}

pub(super) async fn run(health: &mut HealthBench<'_>) -> anyhow::Result<()> {
    let count = u32::try_from(OutsideFault::ALL.len())?;
    let stage = Stage::start(health, "detection", &[], count).await?;
    let nobody = programs::unused_address().await?;
    let triggers: Api<Trigger> = Api::namespaced(stage.client.clone(), NAMESPACE);
    for (number, fault) in (0..).zip(OutsideFault::ALL) {
        let application = applications::name(number);
        let trigger = fault.trigger(&application, nobody);
        let has_trigger = trigger.is_some();
        if let Some(trigger) = trigger {
            applications::create_in::<Trigger>(&stage.client, NAMESPACE, trigger).await?;
        }
        inject(&stage, fault, &application).await?;
        let path = format!("/heddle/v1/health/applications/{application}/namespaces/{NAMESPACE}");
        let took = stage
            .until(fault.words(), async |stage| {
                let found: NamespaceHealth = stage.ask(&path).await?;
                let mut planes = found.verdict.planes.iter();
                let is_told = planes.any(|(_, plane)| plane.reason == fault.code());
                Ok(is_told.then_some(()))
            })
            .await?;
        let name = format!("known: {}", fault.words());
        let row = Row::figure(name, took.as_secs_f64(), Unit::Seconds);
        health.row(row.goal(Goal::AtMost(SECONDS_MAX)));
        if has_trigger {
            triggers
                .delete(&application, &DeleteParams::default())
                .await?;
        }
    }
    Ok(())
}

async fn inject(stage: &Stage<'_>, fault: OutsideFault, application: &str) -> anyhow::Result<()> {
    let path = format!("/{application}/events");
    let remove = DeleteParams::default();
    match fault {
        OutsideFault::IdleSubscriberDown => {}
        OutsideFault::SubscriberDown | OutsideFault::NothingMatches => {
            // A Trigger takes part from the next event on, so it has to be in force.
            stage.until_trigger_ready(application).await?;
            publish_one(stage.server.events, &path).await?;
        }
        OutsideFault::PublisherRefused => {
            wire::ask(stage.server.events, "POST", &path).await?;
        }
        OutsideFault::LinkForbidden => {
            let policies: Api<EventPolicy> = Api::namespaced(stage.client.clone(), NAMESPACE);
            policies.delete(application, &remove).await?;
        }
        OutsideFault::BrokerGone => {
            let brokers: Api<Broker> = Api::namespaced(stage.client.clone(), NAMESPACE);
            brokers.delete(BROKER, &remove).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use heddle_api::health::catalogue;

    use super::*;

    #[test]
    fn what_is_waited_for_is_something_that_health_can_say() {
        for fault in OutsideFault::ALL {
            assert!(catalogue::find(fault.code()).is_some(), "{fault:?}");
        }
    }
}
