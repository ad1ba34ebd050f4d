//! What is looked at, with how much of it there is and how well that is: counted when somebody asks.
//!
//! Every kind has a rule here, by a match without a rest: a kind without one does not compile.

use std::fmt;

use heddle_api::conditions::Status;
use heddle_api::dataplane::HeartbeatReading;
use heddle_api::health::inventory::{Inventory, InventoryItem};
use heddle_api::health::{HealthPlane, HealthStatus};
use heddle_api::{
    Application, ApplicationMapping, Broker, Bundle, BundleRevision, Channel, Conditions,
    EventActivation, EventFlow, EventPolicy, HTTPSource, Registry, ResourceKind, ServiceBinding,
    ServiceInstance, Subscription, SyncRun, Trigger,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt as _};

use super::evidence::TriggerEvidence;
use super::{Report, judge};
use crate::Watches;
use crate::referenced::{Readiness, Referenced as _};
use crate::watch::{SharedWatch, Watched};

/// The hops, and which part of the work each does.
const HOPS: [(&str, &str); 6] = [
    ("source", "takes events from publishers"),
    ("channel", "appends them to the log"),
    ("subscription", "leads them from the log into namespaces"),
    ("broker", "hands them to triggers"),
    ("trigger", "filters them"),
    ("delivery", "sends them"),
];
const HEARTBEATS: &str = "synthetic events that pass it";

/// Counts the objects of one kind.
type Tally = Box<dyn Fn(&mut InventoryItem) + Send + Sync>;

/// How the objects of each kind are counted.
pub(crate) struct KindTallies {
    kinds: Vec<(&'static str, HealthPlane, Option<Tally>)>,
    /// Records are many and none is watched: the API server knows how many there are.
    client: Client,
}

impl KindTallies {
    pub(crate) fn of(watches: &Watches, client: Client) -> Self {
        let mut all: Vec<_> = ResourceKind::ALL
            .iter()
            .map(|kind| (kind.name(), plane_of(*kind), rule(*kind, watches)))
            .collect();
        let namespaces = counting(&watches.namespaces, namespace_health);
        all.push(("Namespace", HealthPlane::Control, Some(namespaces)));
        Self { kinds: all, client }
    }

    /// Counts what is not watched, of which none is well or unwell.
    pub(super) async fn count_records(&self, inventory: &mut Inventory) {
        let runs = ResourceKind::SyncRun.name();
        let mut items = inventory.objects.iter_mut();
        let Some(item) = items.find(|item| item.name == runs) else {
            return;
        };
        match counted(&Api::<SyncRun>::all(self.client.clone())).await {
            Ok(count) => item.counts.healthy = count,
            Err(error) => item.reason = Some(format!("they cannot be counted: {error}")),
        }
    }
}

/// How many objects there are, without reading them.
async fn counted(api: &Api<SyncRun>) -> Result<u32, kube::Error> {
    let page = api.list_metadata(&ListParams::default().limit(1)).await?;
    let rest = page.metadata.remaining_item_count.unwrap_or_default();
    let rest = u32::try_from(rest).unwrap_or(u32::MAX);
    let first = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
    Ok(first.saturating_add(rest))
}

/// The rule of each kind; `None` for records, of which none is unwell.
fn rule(kind: ResourceKind, watches: &Watches) -> Option<Tally> {
    match kind {
        ResourceKind::Application => Some(by_condition(&watches.applications)),
        ResourceKind::ApplicationMapping => Some(by_condition(&watches.mappings)),
        ResourceKind::EventActivation => Some(by_condition(&watches.activations)),
        ResourceKind::HTTPSource => Some(by_condition(&watches.http_sources)),
        ResourceKind::Channel => Some(by_condition(&watches.channels)),
        ResourceKind::Subscription => Some(by_condition(&watches.subscriptions)),
        ResourceKind::Broker => Some(by_condition(&watches.brokers)),
        ResourceKind::Trigger => Some(by_condition(&watches.triggers)),
        ResourceKind::EventPolicy => Some(by_condition(&watches.policies)),
        ResourceKind::EventFlow => Some(by_condition(&watches.flows)),
        ResourceKind::ServiceInstance => Some(by_condition(&watches.instances)),
        ResourceKind::ServiceBinding => Some(by_condition(&watches.bindings)),
        ResourceKind::Registry => Some(by_condition(&watches.registries)),
        ResourceKind::Bundle => Some(by_condition(&watches.bundles)),
        ResourceKind::BundleRevision => Some(by_condition(&watches.revisions)),
        ResourceKind::SyncRun => None,
    }
}

/// Whose fault it is when objects of a kind are not ready.
fn plane_of(kind: ResourceKind) -> HealthPlane {
    match kind {
        ResourceKind::Trigger => HealthPlane::User,
        _ => HealthPlane::Control,
    }
}

/// A kind whose objects say by conditions how they are.
trait Conditioned: Resource<DynamicType = ()> {
    fn readiness(&self) -> Readiness;
}

macro_rules! conditioned {
    ($($kind:ty),*) => {
        $(impl Conditioned for $kind {
            fn readiness(&self) -> Readiness {
                let (status, generation) = (self.status.as_ref(), self.metadata.generation);
                let (nothing, seen) = (Conditions::default(), status.and_then(|one| one.observed_generation));
                let conditions = status.map_or(&nothing, |status| &status.conditions);
                Readiness::new(conditions, seen, generation)
            }
        })*
    };
}

conditioned!(
    Application,
    ApplicationMapping,
    EventActivation,
    HTTPSource,
    Channel,
    Subscription,
    Trigger,
    EventPolicy,
    EventFlow,
    ServiceInstance,
    ServiceBinding,
    Registry,
    Bundle,
    BundleRevision
);

impl Conditioned for Broker {
    fn readiness(&self) -> Readiness {
        self.referenced_state().ready
    }
}

fn by_condition<K: Conditioned + Watched>(watch: &SharedWatch<K>) -> Tally {
    counting(watch, |object: &K| {
        let ready = object.readiness();
        let health = match ready.status {
            Status::True => HealthStatus::Healthy,
            Status::False => HealthStatus::Unhealthy,
            Status::Unknown => HealthStatus::Unknown,
        };
        (health, ready.why)
    })
}

/// A namespace that is on its way out takes nothing new.
fn namespace_health(namespace: &Namespace) -> (HealthStatus, String) {
    match namespace.metadata.deletion_timestamp {
        None => (HealthStatus::Healthy, String::new()),
        Some(_) => (HealthStatus::Degraded, "it is being deleted".to_owned()),
    }
}

fn counting<K: Watched>(
    watch: &SharedWatch<K>,
    judge: impl Fn(&K) -> (HealthStatus, String) + Send + Sync + 'static,
) -> Tally {
    let store = watch.store();
    Box::new(move |item| {
        for object in store.state() {
            let (health, why) = judge(&object);
            item.add(health, || {
                let name = match object.namespace() {
                    Some(namespace) => format!("{namespace}/{}", object.name_any()),
                    None => object.name_any(),
                };
                format!("{name}: {why}")
            });
        }
    })
}

/// Everything, as it is now.
pub(super) fn of(report: &Report, tallies: Option<&KindTallies>) -> Inventory {
    let mut objects = Vec::new();
    for (name, plane, tally) in tallies.into_iter().flat_map(|tallies| &tallies.kinds) {
        let judged_by = match tally {
            Some(_) => "its conditions",
            None => "nothing: it is a record of what was",
        };
        let mut item = InventoryItem::new(name, *plane, judged_by);
        if let Some(tally) = tally {
            tally(&mut item);
        }
        objects.push(item);
    }
    objects.push(subscribers(report));
    let mut components = hops(report);
    components.extend(controllers(report));
    components.extend(beneath(report));
    Inventory {
        at: report.mesh.at,
        objects,
        components,
    }
}

/// Whoever triggers send to, once each however many applications reach it.
fn subscribers(report: &Report) -> InventoryItem {
    let by = "what becomes of the events it is sent";
    let mut item = InventoryItem::new("subscriber", HealthPlane::User, by);
    let pairs = report.evidence.iter().flat_map(|one| &one.namespaces);
    let mut triggers: Vec<&TriggerEvidence> = pairs.flat_map(|pair| &pair.triggers).collect();
    triggers.sort_by(|one, other| one.trigger.object.cmp(&other.trigger.object));
    triggers.dedup_by(|one, other| one.trigger.object == other.trigger.object);
    for trigger in triggers {
        let found = judge::trigger(trigger);
        item.add(found.health, || {
            format!("{}: {}", trigger.trigger.object, found.reason)
        });
    }
    item
}

fn hops(report: &Report) -> Vec<InventoryItem> {
    let reading = &report.reading;
    let ways: Vec<&HeartbeatReading> = reading
        .heartbeats
        .iter()
        .chain(std::iter::once(&reading.canary))
        .filter(|way| !way.interval.is_zero())
        .collect();
    let stuck_at = |way: &HeartbeatReading| {
        let stuck = way
            .stuck
            .as_ref()
            .filter(|_| way.misses >= judge::MISSES_MAX)?;
        HOPS.iter().position(|(hop, _)| *hop == stuck.hop)
    };
    let hop = |(index, (name, does)): (usize, &(&str, &str))| {
        let judged_by = format!("{HEARTBEATS}; it {does}");
        let mut item = InventoryItem::new(name, HealthPlane::Data, &judged_by);
        for way in &ways {
            let health = match stuck_at(way) {
                Some(at) if at == index => HealthStatus::Unhealthy,
                // What is stuck earlier says nothing about what comes later.
                Some(at) if at < index => HealthStatus::Unknown,
                _ if way.age.is_none() || report.silent => HealthStatus::Unknown,
                _ => HealthStatus::Healthy,
            };
            item.add(health, || match &way.stuck {
                Some(stuck) => format!("{}: {}", stuck.object, stuck.why),
                None => "no synthetic event has arrived yet".to_owned(),
            });
        }
        item
    };
    HOPS.iter().enumerate().map(hop).collect()
}

fn controllers(report: &Report) -> Vec<InventoryItem> {
    let pulse = "its pulse: whether it is at work, and whether it keeps failing";
    let mut items: Vec<InventoryItem> = (report.pulses.iter())
        .map(|reading| {
            let mut item = InventoryItem::new(reading.controller, HealthPlane::Control, pulse);
            let (health, why) = match &reading.failing {
                _ if reading.is_stalled() || report.silent => {
                    (HealthStatus::Unknown, "it is not at work".to_owned())
                }
                Some(error) => (HealthStatus::Degraded, error.clone()),
                None => (HealthStatus::Healthy, String::new()),
            };
            item.add(health, || why);
            item
        })
        .collect();
    let trial = "a Trigger that is offered every thirty seconds and not kept";
    items.push(part(
        "admission",
        HealthPlane::Control,
        trial,
        report,
        report.admission.clone(),
    ));
    items
}

/// What everything stands on.
fn beneath(report: &Report) -> Vec<InventoryItem> {
    let (log, plane) = (&report.reading.log, HealthPlane::Dependencies);
    let refusing = log.broken.clone().or_else(|| log.refusing.clone());
    let routing = (!report.reading.routing).then(|| "no table is in force".to_owned());
    vec![
        part(
            "log",
            plane,
            "whether events can be appended",
            report,
            refusing,
        ),
        part(
            "journal",
            plane,
            "whether outcomes can be written down",
            report,
            log.journal_stalled.clone(),
        ),
        part(
            "store",
            plane,
            "whether resources can be written",
            report,
            report.reading.store.clone(),
        ),
        part(
            "routing table",
            plane,
            "whether one is in force",
            report,
            routing,
        ),
    ]
}

/// Something of which there is one: well unless there is something to say against it.
fn part(
    name: &str,
    plane: HealthPlane,
    judged_by: &str,
    report: &Report,
    against: Option<String>,
) -> InventoryItem {
    let mut item = InventoryItem::new(name, plane, judged_by);
    let unjudged = report.silent || report.judged.is_zero();
    let (health, why) = match against {
        _ if unjudged => (HealthStatus::Unknown, "nobody has looked".to_owned()),
        Some(why) => (HealthStatus::Unhealthy, why),
        None => (HealthStatus::Healthy, String::new()),
    };
    item.add(health, || why);
    item
}

impl fmt::Debug for KindTallies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.kinds.iter().map(|(name, ..)| name);
        f.debug_list().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use heddle_api::dataplane::{MeshReading, StuckHop};

    use super::*;

    fn way(stuck: Option<&str>) -> HeartbeatReading {
        HeartbeatReading {
            interval: Duration::from_secs(10),
            age: Some(Duration::from_secs(1)),
            misses: 3 * u32::from(stuck.is_some()),
            stuck: stuck.map(|hop| StuckHop {
                hop: hop.to_owned(),
                object: format!("{hop}/a/b"),
                why: "no answer".to_owned(),
            }),
            ..HeartbeatReading::default()
        }
    }

    fn report(heartbeats: Vec<HeartbeatReading>) -> Report {
        Report {
            judged: Duration::from_secs(1),
            reading: Arc::new(MeshReading {
                routing: true,
                heartbeats,
                ..MeshReading::default()
            }),
            ..Report::default()
        }
    }

    fn item<'a>(items: &'a [InventoryItem], name: &str) -> &'a InventoryItem {
        items.iter().find(|item| item.name == name).unwrap()
    }

    #[test]
    fn a_hop_where_events_are_stuck_is_told_and_those_behind_it_are_unknown() {
        let found = of(&report(vec![way(Some("broker")), way(None)]), None);
        let health = |name: &str| item(&found.components, name).health;
        assert_eq!(health("channel"), Some(HealthStatus::Healthy));
        assert_eq!(health("broker"), Some(HealthStatus::Degraded));
        assert_eq!(health("delivery"), Some(HealthStatus::Unknown));
        let broker = item(&found.components, "broker");
        assert_eq!(broker.reason.as_deref(), Some("broker/a/b: no answer"));
        let all = of(&report(vec![way(Some("broker"))]), None);
        let health = item(&all.components, "broker").health;
        assert_eq!(health, Some(HealthStatus::Unhealthy));
    }

    #[test]
    fn what_nobody_judges_is_unknown_and_what_is_not_there_has_no_health() {
        let unjudged = of(&Report::default(), None);
        let log = item(&unjudged.components, "log");
        assert_eq!(log.health, Some(HealthStatus::Unknown));
        assert_eq!(item(&unjudged.components, "source").health, None);
        assert_eq!(item(&unjudged.objects, "subscriber").health, None);
        let judged = of(&report(Vec::new()), None);
        let log = item(&judged.components, "log");
        assert_eq!(log.health, Some(HealthStatus::Healthy));
    }
}
