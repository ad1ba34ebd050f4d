//! Gathers evidence from the watches and the mesh. Nothing is asked of the API server.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::application::reason::INSTALLATION_SKIPPED;
use heddle_api::conditions::{Conditions, READY, Status};
use heddle_api::dataplane::{
    ConsumerReading, DoorReading, HeartbeatReading, HeartbeatTarget, MeshReading,
};
use heddle_api::event_flow::HealthCheck;
use heddle_api::operation::OperationState;
use heddle_api::smoke;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_api::{
    Application, ApplicationMapping, Broker, Channel, EventFlow, HTTPSource, ServiceInstance,
    Subscription, Trigger, event_flow, names,
};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt as _};

use super::evidence::{
    ApplicationEvidence, BrokerEvidence, DoorWindow, ObjectState, PairEvidence, PathObject,
    Probing, TriggerEvidence,
};
use crate::Watches;
use crate::referenced::{Readiness, Referenced};
use crate::routing::entry_of;
use crate::watch::sorted;

/// What the watches know of the kinds on the path.
pub(crate) struct PathStores {
    pub(super) applications: Store<Application>,
    mappings: Store<ApplicationMapping>,
    http_sources: Store<HTTPSource>,
    channels: Store<Channel>,
    subscriptions: Store<Subscription>,
    brokers: Store<Broker>,
    triggers: Store<Trigger>,
    flows: Store<EventFlow>,
    instances: Store<ServiceInstance>,
}

type FlowsByNamespace = BTreeMap<String, Vec<Arc<EventFlow>>>;

/// A Subscription from an application's Channel to the Broker of a namespace, whoever made it.
struct Link {
    subscription: Arc<Subscription>,
    broker: String,
}

type LinksByNamespace = BTreeMap<String, Link>;

/// What leads an application's events into one namespace.
#[derive(Clone, Copy, Default)]
struct Ways<'a> {
    mapping: Option<&'a Arc<ApplicationMapping>>,
    flows: &'a [Arc<EventFlow>],
    /// Counts only where there is no flow: a flow says itself what it is to be led by.
    link: Option<&'a Link>,
}

/// What was read once for all applications.
struct Indexed<'a> {
    /// By application, then by namespace.
    mappings: HashMap<String, BTreeMap<String, Arc<ApplicationMapping>>>,
    flows: HashMap<String, FlowsByNamespace>,
    links: HashMap<String, LinksByNamespace>,
    failed: HashMap<(String, String), PathObject>,
    /// By the Broker they choose from.
    triggers: HashMap<String, Vec<Arc<Trigger>>>,
    consumers: HashMap<&'a str, &'a ConsumerReading>,
    heartbeats: HashMap<(&'a str, &'a str), &'a HeartbeatReading>,
}

impl Indexed<'_> {
    /// The Triggers that choose from a Broker.
    fn triggers_of(&self, broker: &PathObject, namespace: &str) -> Vec<TriggerEvidence> {
        let triggers = self.triggers.get(&broker.object).into_iter().flatten();
        let triggers = triggers.map(|trigger| {
            let object = entry_of("trigger", namespace, &trigger.name_any());
            TriggerEvidence {
                reading: self.consumers.get(&*object).map(|one| (*one).clone()),
                trigger: seen(object, Some(&**trigger)),
            }
        });
        triggers.collect()
    }
}

impl PathStores {
    pub(crate) fn of(watches: &Watches) -> Self {
        Self {
            applications: watches.applications.store(),
            mappings: watches.mappings.store(),
            http_sources: watches.http_sources.store(),
            channels: watches.channels.store(),
            subscriptions: watches.subscriptions.store(),
            brokers: watches.brokers.store(),
            triggers: watches.triggers.store(),
            flows: watches.flows.store(),
            instances: watches.instances.store(),
        }
    }

    /// What is known of every application that exists or that something refers to, in the order of their names, and of every
    /// Broker that none of them leads to.
    pub(super) fn gather(
        &self,
        mesh: &MeshReading,
        door: impl Fn(&str) -> DoorWindow,
    ) -> (Vec<ApplicationEvidence>, Vec<BrokerEvidence>) {
        let indexed = self.index(mesh);
        let applications = self.applications.state();
        let mut known: BTreeSet<String> = applications.iter().map(|one| one.name_any()).collect();
        known.extend(indexed.mappings.keys().cloned());
        known.extend(indexed.flows.keys().cloned());
        known.extend(
            indexed
                .links
                .keys()
                .filter(|name| self.is_channel_of_application(name))
                .cloned(),
        );
        // Smoke tests judge themselves.
        known.retain(|name| !smoke::is_part("", name));
        let of = |name: String| self.application(name, &indexed, &door);
        let applications: Vec<ApplicationEvidence> = known.into_iter().map(of).collect();
        let brokers = self.brokers_alone(&applications, &indexed);
        (applications, brokers)
    }

    /// Brokers that exist or that a Trigger names, and that no application leads to, in the order of their names.
    fn brokers_alone(
        &self,
        applications: &[ApplicationEvidence],
        indexed: &Indexed<'_>,
    ) -> Vec<BrokerEvidence> {
        let pairs = applications.iter().flat_map(|one| &one.namespaces);
        let led_to: HashSet<&str> = pairs
            .filter_map(|pair| Some(&*pair.broker.as_ref()?.object))
            .collect();
        let existing = self.brokers.state().into_iter().filter(|one| stays(&**one));
        let existing = existing.map(|one| (one.namespace().unwrap_or_default(), one.name_any()));
        let named = indexed.triggers.values().filter_map(|all| all.first());
        let named = named.map(|one| (one.namespace().unwrap_or_default(), one.spec.broker.clone()));
        let mut names: BTreeSet<(String, String)> = existing.chain(named).collect();
        names.retain(|(namespace, name)| {
            let object = entry_of("broker", namespace, name);
            !smoke::is_part(namespace, name) && !led_to.contains(&*object)
        });
        let of = |(namespace, name): (String, String)| {
            let found = self.brokers.get(&ObjectRef::new(&name).within(&namespace));
            let broker = seen(entry_of("broker", &namespace, &name), found.as_deref());
            BrokerEvidence {
                triggers: indexed.triggers_of(&broker, &namespace),
                namespace,
                broker,
            }
        };
        names.into_iter().map(of).collect()
    }

    /// A Channel that no Application has is somebody's own.
    fn is_channel_of_application(&self, name: &str) -> bool {
        self.applications.get(&ObjectRef::new(name)).is_some()
    }

    fn index<'a>(&self, mesh: &'a MeshReading) -> Indexed<'a> {
        let mut mappings: HashMap<String, BTreeMap<_, _>> = HashMap::new();
        for mapping in self
            .mappings
            .state()
            .into_iter()
            .filter(|one| stays(&**one))
        {
            let namespace = mapping.namespace().unwrap_or_default();
            let of = mappings.entry(mapping.name_any()).or_default();
            of.insert(namespace, mapping);
        }
        let mut flows: HashMap<String, FlowsByNamespace> = HashMap::new();
        for flow in sorted(self.flows.state()) {
            if !stays(&*flow) {
                continue;
            }
            let namespace = flow.namespace().unwrap_or_default();
            let of = flows.entry(flow.spec.application.clone()).or_default();
            of.entry(namespace).or_default().push(flow);
        }
        let mut triggers: HashMap<String, Vec<Arc<Trigger>>> = HashMap::new();
        for trigger in sorted(self.triggers.state()) {
            if stays(&*trigger) {
                let namespace = trigger.namespace().unwrap_or_default();
                let broker = entry_of("broker", &namespace, &trigger.spec.broker);
                triggers.entry(broker).or_default().push(trigger);
            }
        }
        let mut links: HashMap<String, LinksByNamespace> = HashMap::new();
        for subscription in sorted(self.subscriptions.state()) {
            if let Some((application, namespace, broker)) = linked(&subscription) {
                let of = links.entry(application).or_default();
                let link = Link {
                    subscription,
                    broker,
                };
                of.entry(namespace).or_insert(link);
            }
        }
        Indexed {
            mappings,
            flows,
            links,
            failed: failed(sorted(self.instances.state())),
            triggers,
            consumers: mesh
                .consumers
                .iter()
                .map(|reading| (reading.key.as_str(), reading))
                .collect(),
            heartbeats: mesh
                .heartbeats
                .iter()
                .map(|reading| ((&*reading.application, &*reading.namespace), reading))
                .collect(),
        }
    }

    fn application(
        &self,
        name: String,
        indexed: &Indexed<'_>,
        door: &impl Fn(&str) -> DoorWindow,
    ) -> ApplicationEvidence {
        let application = self.applications.get(&ObjectRef::new(&name));
        let source = self.http_sources.get(&integration(&name));
        let channel = self.channels.get(&integration(&name));
        let (mappings, flows) = (indexed.mappings.get(&name), indexed.flows.get(&name));
        let links = indexed.links.get(&name);
        let namespaces: BTreeSet<&String> = mappings
            .into_iter()
            .flat_map(BTreeMap::keys)
            .chain(flows.into_iter().flat_map(BTreeMap::keys))
            .chain(links.into_iter().flat_map(BTreeMap::keys))
            .collect();
        let pairs = namespaces.into_iter().map(|namespace| {
            let flows = flows.and_then(|flows| flows.get(namespace));
            let ways = Ways {
                mapping: mappings.and_then(|mappings| mappings.get(namespace)),
                flows: flows.map(Vec::as_slice).unwrap_or_default(),
                link: links.and_then(|links| links.get(namespace)),
            };
            self.pair(&name, namespace, ways, indexed)
        });
        let pairs = pairs.collect();
        ApplicationEvidence {
            skipped: application.as_ref().is_some_and(|one| is_skipped(one)),
            application: seen(format!("application/{name}"), application.as_deref()),
            source: seen(
                entry_of("httpsource", INTEGRATION_NAMESPACE, &name),
                source.as_deref(),
            ),
            channel: seen(
                entry_of("channel", INTEGRATION_NAMESPACE, &name),
                channel.as_deref(),
            ),
            door: door(&name),
            namespaces: pairs,
            name,
        }
    }

    fn pair(
        &self,
        application: &str,
        namespace: &str,
        ways: Ways<'_>,
        indexed: &Indexed<'_>,
    ) -> PairEvidence {
        let Ways { flows, .. } = ways;
        let (broker, link) = self.way(application, namespace, ways);
        let triggers = broker
            .as_ref()
            .map(|broker| indexed.triggers_of(broker, namespace));
        let key = (application.to_owned(), namespace.to_owned());
        PairEvidence {
            namespace: namespace.to_owned(),
            mapping: mapping_of(application, namespace, ways.mapping, flows),
            failed_instance: indexed.failed.get(&key).cloned(),
            flows: flows.iter().map(|flow| flow_of(flow)).collect(),
            triggers: triggers.unwrap_or_default(),
            probing: probing(flows, ways.link, || {
                let reading = indexed.heartbeats.get(&(application, namespace));
                reading.map(|reading| (*reading).clone())
            }),
            broker,
            link,
        }
    }

    /// The Broker that events are led to, and what leads them there.
    fn way(
        &self,
        application: &str,
        namespace: &str,
        ways: Ways<'_>,
    ) -> (Option<PathObject>, Option<PathObject>) {
        let (broker, link) = match (ways.flows.first(), ways.link) {
            (Some(flow), _) => (
                flow.spec.broker_ref.name.clone(),
                link_name(flow, application, namespace),
            ),
            (None, Some(link)) => (link.broker.clone(), link.subscription.name_any()),
            (None, None) => return (None, None),
        };
        let found = self.brokers.get(&ObjectRef::new(&broker).within(namespace));
        let broker = seen(entry_of("broker", namespace, &broker), found.as_deref());
        let found = self.subscriptions.get(&integration(&link));
        let link = entry_of("subscription", INTEGRATION_NAMESPACE, &link);
        (Some(broker), Some(seen(link, found.as_deref())))
    }
}

/// Where synthetic events are to arrive: wherever a flow was once linked and stays, whatever has become of its way since, and
/// wherever somebody else's link leads.
pub(crate) fn targets(
    flows: &[Arc<EventFlow>],
    subscriptions: &[Arc<Subscription>],
) -> Vec<HeartbeatTarget> {
    let mut targets: BTreeMap<(String, String), HeartbeatTarget> = BTreeMap::new();
    let mut flowing: BTreeSet<(String, String)> = BTreeSet::new();
    for flow in flows.iter().filter(|flow| stays(&***flow)) {
        let namespace = flow.namespace().unwrap_or_default();
        flowing.insert((flow.spec.application.clone(), namespace));
    }
    for subscription in subscriptions {
        if let Some((application, namespace, broker)) = linked(subscription) {
            let key = (application.clone(), namespace.clone());
            if !flowing.contains(&key) {
                let interval = interval(&HealthCheck::default());
                let target = HeartbeatTarget {
                    application,
                    namespace,
                    broker,
                    interval,
                };
                targets.entry(key).or_insert(target);
            }
        }
    }
    for target in flows.iter().filter_map(|flow| target(flow)) {
        let key = (target.application.clone(), target.namespace.clone());
        let known = targets.entry(key).or_insert_with(|| target.clone());
        known.interval = known.interval.min(target.interval);
    }
    targets.into_values().collect()
}

/// The target of one flow, if it has one.
pub(crate) fn target(flow: &EventFlow) -> Option<HeartbeatTarget> {
    let check = &flow.spec.health_check;
    if !stays(flow) || !check.enabled || !was_linked(flow) {
        return None;
    }
    Some(HeartbeatTarget {
        application: flow.spec.application.clone(),
        namespace: flow.namespace().unwrap_or_default(),
        broker: flow.spec.broker_ref.name.clone(),
        interval: interval(check),
    })
}

fn interval(check: &HealthCheck) -> Duration {
    Duration::from_secs(u64::try_from(check.interval_seconds).unwrap_or(1).max(1))
}

/// The application, the namespace and the Broker that a Subscription connects, if it does.
fn linked(subscription: &Subscription) -> Option<(String, String, String)> {
    let spec = &subscription.spec;
    let to = spec.subscriber.as_ref()?.reference.as_ref()?;
    let is_link = stays(subscription)
        && subscription.namespace().as_deref() == Some(INTEGRATION_NAMESPACE)
        && spec.channel.kind == Channel::kind(&())
        && to.kind == Broker::kind(&());
    let namespace = to.namespace.clone().filter(|_| is_link)?;
    Some((spec.channel.name.clone(), namespace, to.name.clone()))
}

/// Whether the flow's link was ready once.
fn was_linked(flow: &EventFlow) -> bool {
    let conditions = flow.status.as_ref().map(|status| &status.conditions);
    conditions.is_some_and(|conditions| {
        conditions.is_true(event_flow::condition::LINK_READY.name)
            || conditions
                .find(event_flow::condition::HEARTBEAT_OK.name)
                .is_some()
    })
}

fn probing(
    flows: &[Arc<EventFlow>],
    link: Option<&Link>,
    reading: impl FnOnce() -> Option<HeartbeatReading>,
) -> Probing {
    let by_hand = flows.is_empty() && link.is_some();
    if by_hand || flows.iter().any(|flow| target(flow).is_some()) {
        return Probing::On(reading().map(Box::new));
    }
    let off = |flow: &Arc<EventFlow>| !flow.spec.health_check.enabled;
    if !flows.is_empty() && flows.iter().all(off) {
        return Probing::Off;
    }
    Probing::Unneeded
}

fn link_name(flow: &EventFlow, application: &str, namespace: &str) -> String {
    let taken_in = flow
        .status
        .as_ref()
        .and_then(|status| status.link_name.clone());
    taken_in.unwrap_or_else(|| names::link_to(application, namespace, &flow.spec.broker_ref.name))
}

fn mapping_of(
    application: &str,
    namespace: &str,
    mapping: Option<&Arc<ApplicationMapping>>,
    flows: &[Arc<EventFlow>],
) -> Option<PathObject> {
    let object = entry_of("applicationmapping", namespace, application);
    match mapping {
        None if flows.is_empty() => None,
        None => Some(PathObject {
            object,
            state: ObjectState::Missing,
        }),
        Some(mapping) => {
            let status = mapping.status.as_ref();
            let ready = status.map_or_else(
                || Readiness::new(&Conditions::default(), None, mapping.metadata.generation),
                |status| {
                    let observed = status.observed_generation;
                    Readiness::new(&status.conditions, observed, mapping.metadata.generation)
                },
            );
            let state = of_readiness(ready);
            Some(PathObject { object, state })
        }
    }
}

/// Of a flow only `Ready` is kept by its watch, and that it is current is not.
fn flow_of(flow: &EventFlow) -> PathObject {
    let namespace = flow.namespace().unwrap_or_default();
    let conditions = flow.status.as_ref().map(|status| &status.conditions);
    let ready = conditions.and_then(|conditions| conditions.find(READY));
    let words = |ready: &heddle_api::Condition| {
        let words = [&ready.reason, &ready.message];
        let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
        words.join(": ")
    };
    let state = match ready {
        None => ObjectState::Unobserved("it has no conditions yet".to_owned()),
        Some(ready) => match ready.status {
            Status::True => ObjectState::Ready,
            Status::False => ObjectState::NotReady(words(ready)),
            Status::Unknown => ObjectState::Unobserved(words(ready)),
        },
    };
    PathObject {
        object: entry_of("eventflow", &namespace, &flow.name_any()),
        state,
    }
}

/// Instances of an application's services whose operation failed, by application and namespace; the first of each.
fn failed(instances: Vec<Arc<ServiceInstance>>) -> HashMap<(String, String), PathObject> {
    let mut failed = HashMap::new();
    for instance in instances {
        let operation = instance
            .status
            .as_ref()
            .and_then(|status| status.operation.as_ref());
        let Some(operation) = operation.filter(|one| one.state == OperationState::Failed) else {
            continue;
        };
        let Some(pin) = instance
            .spec
            .application
            .as_ref()
            .filter(|_| stays(&*instance))
        else {
            continue;
        };
        let namespace = instance.namespace().unwrap_or_default();
        let object = PathObject {
            object: entry_of("serviceinstance", &namespace, &instance.name_any()),
            state: ObjectState::NotReady(operation.description.clone().unwrap_or_default()),
        };
        failed
            .entry((pin.name.clone(), namespace))
            .or_insert(object);
    }
    failed
}

fn is_skipped(application: &Application) -> bool {
    let skipped = |reason: &String| reason == INSTALLATION_SKIPPED.name;
    let conditions = application.status.as_ref().map(|status| &status.conditions);
    let ready = conditions.and_then(|conditions| conditions.find(READY));
    application.spec.skip_installation
        && ready.is_some_and(|ready| ready.reason.as_ref().is_some_and(skipped))
}

/// One object of the path, as it says itself.
fn seen<K: Referenced>(object: String, found: Option<&K>) -> PathObject {
    let Some(found) = found.filter(|found| stays(*found)) else {
        let state = ObjectState::Missing;
        return PathObject { object, state };
    };
    let state = of_readiness(found.referenced_state().ready);
    PathObject { object, state }
}

fn of_readiness(ready: Readiness) -> ObjectState {
    match ready.status {
        Status::True => ObjectState::Ready,
        Status::False => ObjectState::NotReady(ready.why),
        Status::Unknown => ObjectState::Unobserved(ready.why),
    }
}

fn stays<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_none()
}

fn integration<K: Resource<DynamicType = ()>>(name: &str) -> ObjectRef<K> {
    ObjectRef::new(name).within(INTEGRATION_NAMESPACE)
}

/// What publishing came to between two readings of the same door.
pub(super) fn between(earlier: Option<&DoorReading>, later: &DoorReading) -> DoorWindow {
    let zero = DoorReading::default();
    let earlier = earlier.unwrap_or(&zero);
    DoorWindow {
        accepted: later.accepted.saturating_sub(earlier.accepted),
        refused: later.refused.saturating_sub(earlier.refused),
        unmatched: later.unmatched.saturating_sub(earlier.unmatched),
    }
}
