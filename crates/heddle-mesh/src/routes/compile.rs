//! Resources in, table out. No IO, no clock, and the same table whatever the order of the resources.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use heddle_api::dataplane::{HeartbeatTarget, Resources};
use heddle_api::duck::{DeliverySpec, Destination};
use heddle_api::filter::FilterSource;
use heddle_api::well_known::annotation;
use heddle_api::{Broker, Channel, Subscription, Trigger};
use jiff::Timestamp;
use kube::{Resource, ResourceExt as _};

use super::budget::{self, Budgets};
use super::doors::doors;
use super::fingerprint;
use super::grants::Grants;
use super::index::{Index, Posting};
use super::legacy;
use super::signing::{self, Signing, SigningSecrets};
use super::topology::{Topology, name_of, primary, stays};
use super::{ConsumerSpec, Entry, Feed, Rejected, Reply, Settings, Table, Target};
use crate::heartbeat::{self, broker_of, canary};
use crate::path::trigger::Predicate;

/// The table that these resources describe.
#[must_use]
pub fn compile(resources: &Resources) -> Table {
    recompile(resources, &Table::empty())
}

/// The same table as [`compile`] makes, sooner: filters that the table before knows are not read again.
#[must_use]
pub fn recompile(resources: &Resources, before: &Table) -> Table {
    recompile_with(resources, before, false)
}

/// The same, with the way of the canary if it is to have one.
pub(crate) fn recompile_with(resources: &Resources, before: &Table, canary: bool) -> Table {
    let grants = Grants::new(resources);
    let topology = Topology::new(resources, &grants, canary);
    let places = 0..u32::try_from(topology.names().len()).expect("places are counted in 32 bits");
    let reached: Vec<_> = places.map(|place| topology.reached_from(place)).collect();
    let feeds = topology.feeds(&reached);
    let mut compiler = TableCompiler {
        brokers: resources
            .brokers
            .iter()
            .map(|broker| (name_of(&**broker), &**broker))
            .collect(),
        channels: resources
            .channels
            .iter()
            .map(|channel| (name_of(&**channel), &**channel))
            .collect(),
        feed_hashes: feeds
            .iter()
            .map(|feeds| fingerprint::of_feeds(feeds))
            .collect(),
        feeds,
        topology: &topology,
        grants: &grants,
        signing_secrets: SigningSecrets::of(resources),
        before,
        consumers: BTreeMap::new(),
        costly: Vec::new(),
        links: HashMap::new(),
        rejected: Vec::new(),
        faults: grants.faults.clone(),
    };
    for trigger in resources.triggers.iter().filter(|one| stays(&***one)) {
        compiler.trigger(trigger);
    }
    for subscription in resources.subscriptions.iter().filter(|one| stays(&***one)) {
        compiler.subscription(subscription);
    }
    compiler.keep_to_budgets();
    let canary = canary.then(canary::target);
    for target in resources.heartbeats.iter().chain(canary.as_ref()) {
        compiler.heartbeats(target);
    }
    let audiences = compiler.audiences();
    let entries = topology.names().iter().zip(&reached);
    let entries = entries.map(|(name, reached)| {
        let mut reach: Box<[u32]> = reached.iter().map(|reached| reached.place).collect();
        reach.sort_unstable();
        let entry = Entry {
            name: name.clone(),
            audience: reach.iter().map(|place| audiences[*place as usize]).sum(),
            reach,
        };
        (name.clone(), entry)
    });
    let links = std::mem::take(&mut compiler.links);
    let mut table = compiler.table();
    table.links = links;
    table.heartbeats = resources.heartbeats.as_slice().into();
    table.entries = entries.collect();
    table.doors = doors(resources, &topology);
    table.notices = legacy::notices(resources.applications.iter().map(|one| &**one));
    table.denied = topology.into_denied();
    table.grants = grants.publishers;
    table.leading = grants.leading;
    table
}

struct TableCompiler<'a> {
    topology: &'a Topology,
    grants: &'a Grants,
    signing_secrets: SigningSecrets<'a>,
    /// Per place.
    feeds: Vec<Arc<[Feed]>>,
    feed_hashes: Vec<u64>,
    brokers: BTreeMap<String, &'a Broker>,
    channels: BTreeMap<String, &'a Channel>,
    before: &'a Table,
    consumers: BTreeMap<Arc<str>, (u32, Arc<ConsumerSpec>)>,
    /// Those whose filters cost something, and since when they are there.
    costly: Vec<(Option<Timestamp>, Arc<str>, Arc<Predicate>)>,
    links: HashMap<String, (String, i64)>,
    rejected: Vec<Rejected>,
    faults: Vec<Rejected>,
}

impl TableCompiler<'_> {
    fn trigger(&mut self, trigger: &Trigger) {
        let key: Arc<str> = name_of(trigger).into();
        let filters = FilterSource::from(&trigger.spec);
        let Some(predicate) = self.predicate(&key, &filters) else {
            return;
        };
        let namespace = trigger.namespace().unwrap_or_default();
        let broker_name = format!("broker/{namespace}/{}", trigger.spec.broker);
        let Some(place) = self.topology.place(&broker_name) else {
            return;
        };
        let broker = self.brokers[&broker_name];
        let status = trigger.status.as_ref();
        let own = set(trigger.spec.delivery.as_ref());
        let delivery = own.or(broker.spec.delivery.as_ref());
        // Whose delivery it is, theirs is the resolved address.
        let trigger_sink = status.and_then(|status| status.dead_letter_sink_uri.as_ref());
        let broker_status = broker.status.as_ref();
        let broker_sink = broker_status.and_then(|status| status.dead_letter_sink_uri.as_ref());
        let (sink_url, sink_ca_certs) = if own.is_some() || broker_sink.is_none() {
            (
                trigger_sink,
                status.and_then(|status| status.dead_letter_sink_ca_certs.clone()),
            )
        } else {
            (
                broker_sink,
                broker_status.and_then(|status| status.dead_letter_sink_ca_certs.clone()),
            )
        };
        if budget::surcharge(&predicate) > 0 {
            let created = trigger.creation_timestamp().map(|time| time.0);
            self.costly.push((created, key.clone(), predicate.clone()));
        }
        let subscriber = &trigger.spec.subscriber;
        let subscriber_url = status.and_then(|status| status.subscriber_uri.as_ref());
        let resolved_certs = status.and_then(|status| status.subscriber_ca_certs.clone());
        let destination = self.topology.target(&namespace, subscriber, subscriber_url);
        let sink = self.sink(&namespace, delivery, sink_url);
        let signing = self.signing(trigger, &key, &destination);
        let consumer = ConsumerSpec {
            signing,
            destination: self.admitted_or_rejected(&key, place, destination),
            reply: Reply::Entry(self.topology.names()[place as usize].clone()),
            dead_letter_sink: sink.map(|sink| self.admitted(&key, place, sink)),
            delivery: delivery.cloned().unwrap_or_default(),
            ca_certs: resolved_certs.or_else(|| subscriber.ca_certs.clone()),
            dead_letter_ca_certs: sink_ca_certs.or_else(|| sink_certs(delivery)),
            ..self.consumer(trigger, key, place, predicate, filters)
        };
        self.add(place, consumer);
    }

    fn subscription(&mut self, subscription: &Subscription) {
        let Some(place) = self.topology.channel_of(subscription) else {
            return;
        };
        let (Some(destination), url) = primary(subscription) else {
            return;
        };
        if let Some(remedy) = self.topology.denied(&name_of(subscription)) {
            self.rejected.push(Rejected {
                key: name_of(subscription),
                reason: remedy.clone(),
            });
            return;
        }
        if self.topology.leads_to_a_place(subscription) {
            let uid = subscription.uid().unwrap_or_default();
            let generation = subscription.metadata.generation.unwrap_or_default();
            self.links.insert(name_of(subscription), (uid, generation));
            return;
        }
        if self.topology.is_link(subscription) {
            return;
        }
        let namespace = subscription.namespace().unwrap_or_default();
        let resolved = subscription
            .status
            .as_ref()
            .and_then(|status| status.physical_subscription.clone())
            .unwrap_or_default();
        let channel = self.channels[&*self.topology.names()[place as usize]];
        let own = set(subscription.spec.delivery.as_ref());
        let delivery = own.or(channel.spec.delivery.as_ref());
        let channel_status = channel.status.as_ref();
        let channel_sink = channel_status.and_then(|status| status.dead_letter_sink_uri.as_ref());
        let sink_url = match own {
            Some(_) => resolved.dead_letter_sink_uri.as_ref(),
            None => resolved.dead_letter_sink_uri.as_ref().or(channel_sink),
        };
        let key: Arc<str> = name_of(subscription).into();
        let (reply, resolved_certs) =
            match (&subscription.spec.subscriber, &subscription.spec.reply) {
                // Without a subscriber there is nobody who could answer.
                (None, _) => (Reply::None, resolved.reply_ca_certs),
                (Some(_), None) => (Reply::None, resolved.subscriber_ca_certs),
                (Some(_), Some(reply)) => {
                    let reply =
                        self.topology
                            .target(&namespace, reply, resolved.reply_uri.as_ref());
                    (
                        self.admitted(&key, place, reply).into(),
                        resolved.subscriber_ca_certs,
                    )
                }
            };
        let sink = self.sink(&namespace, delivery, sink_url);
        let everything = Arc::new(Predicate::everything());
        let consumer = ConsumerSpec {
            signing: signing::of_subscription(subscription),
            // It would be a link if it led to a place.
            destination: self.topology.target(&namespace, destination, url),
            reply,
            dead_letter_sink: sink.map(|sink| self.admitted(&key, place, sink)),
            delivery: delivery.cloned().unwrap_or_default(),
            ca_certs: resolved_certs.or_else(|| destination.ca_certs.clone()),
            dead_letter_ca_certs: resolved
                .dead_letter_sink_ca_certs
                .or_else(|| sink_certs(delivery)),
            ..self.consumer(
                subscription,
                key,
                place,
                everything,
                FilterSource::Everything,
            )
        };
        self.add(place, consumer);
    }

    /// How events of a trigger are signed. One whose events do not leave this mesh has nothing to sign.
    fn signing(&mut self, trigger: &Trigger, key: &Arc<str>, destination: &Target) -> Signing {
        let before = self.before.consumer(key).map(|(_, before)| &before.signing);
        let signing = self.signing_secrets.signing(trigger, before);
        if matches!(destination, Target::Entry(_)) && !matches!(signing, Signing::Unwanted) {
            let name = annotation::SIGNING;
            self.faults.push(Rejected {
                key: key.to_string(),
                reason: format!(
                    "annotation {name} is not taken into account: its events stay in this mesh, and nobody verifies them"
                ),
            });
            return Signing::Unwanted;
        }
        signing
    }

    /// The predicate, or nothing: a filter that cannot be understood lets nothing pass.
    fn predicate(&mut self, key: &Arc<str>, filters: &FilterSource) -> Option<Arc<Predicate>> {
        if let Some((_, before)) = self.before.consumer(key)
            && before.filters == *filters
        {
            return Some(before.predicate.clone());
        }
        match Predicate::compile(filters) {
            Ok(predicate) => Some(Arc::new(predicate)),
            Err(invalid) => {
                self.rejected.push(Rejected {
                    key: key.to_string(),
                    reason: invalid.to_string(),
                });
                None
            }
        }
    }

    /// What all consumers have in common; where events go is still to be said.
    fn consumer<K: Resource>(
        &mut self,
        object: &K,
        key: Arc<str>,
        place: u32,
        predicate: Arc<Predicate>,
        filters: FilterSource,
    ) -> ConsumerSpec {
        let faults = &mut self.faults;
        let settings = Settings::read(object.meta().annotations.as_ref(), |reason| {
            faults.push(Rejected {
                key: key.to_string(),
                reason,
            });
        });
        let place = place as usize;
        ConsumerSpec {
            key,
            uid: object.uid().unwrap_or_default(),
            generation: object.meta().generation.unwrap_or_default(),
            feeds: self.feeds[place].clone(),
            fingerprint: fingerprint::of_filters(self.feed_hashes[place], &filters),
            predicate,
            filters,
            destination: Target::Unresolved,
            reply: Reply::None,
            delivery: DeliverySpec::default(),
            dead_letter_sink: None,
            ca_certs: None,
            dead_letter_ca_certs: None,
            signing: Signing::Unwanted,
            settings,
        }
    }

    /// Whoever hears the heartbeats of an Application at a Broker, if that is a place. How they get there is not asked: a
    /// way that is missing is what they are to find.
    fn heartbeats(&mut self, target: &HeartbeatTarget) {
        let Some(place) = self.topology.place(&broker_of(target)) else {
            return;
        };
        let key: Arc<str> = heartbeat::key_of(&target.namespace, &target.application).into();
        let source = heartbeat::source_of(&target.application);
        let filters = FilterSource::Attributes(BTreeMap::from([
            ("source".to_owned(), source.clone()),
            ("type".to_owned(), heartbeat::TYPE.to_owned()),
        ]));
        let before = self.before.consumer(&key);
        let known = before.filter(|(_, before)| before.filters == filters);
        let predicate = match known {
            Some((_, before)) => Arc::clone(&before.predicate),
            None => Arc::new(Predicate::heartbeats_of(&source)),
        };
        let consumer = ConsumerSpec {
            key,
            uid: String::new(),
            generation: 0,
            feeds: self.feeds[place as usize].clone(),
            fingerprint: fingerprint::of_filters(self.feed_hashes[place as usize], &filters),
            predicate,
            filters,
            destination: Target::HeartbeatSink,
            reply: Reply::None,
            delivery: heartbeat::delivery(),
            dead_letter_sink: None,
            ca_certs: None,
            dead_letter_ca_certs: None,
            signing: Signing::Unwanted,
            settings: Settings::default(),
        };
        self.add(place, consumer);
    }

    fn sink(
        &self,
        namespace: &str,
        delivery: Option<&DeliverySpec>,
        url: Option<&String>,
    ) -> Option<Target> {
        let sink = delivery?.dead_letter_sink.as_ref()?;
        Some(self.topology.target(namespace, sink, url))
    }

    /// The same for what a consumer is there for. It stays in the table, so that its events are kept.
    fn admitted_or_rejected(&mut self, key: &Arc<str>, from: u32, target: Target) -> Target {
        let faults = self.faults.len();
        let target = self.admitted(key, from, target);
        self.rejected.extend(self.faults.drain(faults..));
        target
    }

    /// The target, unless it is a place of another namespace that lets nothing in from here.
    fn admitted(&mut self, key: &Arc<str>, from: u32, target: Target) -> Target {
        let Target::Entry(to) = &target else {
            return target;
        };
        let from = &*self.topology.names()[from as usize];
        match self.grants.leading.check([from, key], to) {
            Ok(()) => target,
            Err(reason) => {
                let key = key.to_string();
                self.faults.push(Rejected { key, reason });
                Target::Unresolved
            }
        }
    }

    fn add(&mut self, place: u32, consumer: ConsumerSpec) {
        self.consumers
            .insert(consumer.key.clone(), (place, Arc::new(consumer)));
    }

    /// Leaves out what would cost an event more than the filters of one namespace may. Who was there first stays.
    fn keep_to_budgets(&mut self) {
        let mut costly = std::mem::take(&mut self.costly);
        costly.sort_unstable_by(|(one, key, _), (other, other_key, _)| {
            (one, key).cmp(&(other, other_key))
        });
        let mut budgets = Budgets::default();
        for (_, key, predicate) in &costly {
            if let Err(reason) = budgets.add(key, predicate) {
                self.consumers.remove(key);
                let key = key.to_string();
                self.rejected.push(Rejected { key, reason });
            }
        }
    }

    /// How many consumers of users are at each place.
    fn audiences(&self) -> Vec<u32> {
        let mut audiences = vec![0; self.feeds.len()];
        let consumers = self.consumers.values();
        for (place, _) in consumers.filter(|(_, one)| !one.is_of_heartbeats()) {
            audiences[*place as usize] += 1;
        }
        audiences
    }

    fn table(mut self) -> Table {
        let numbered = || (0_u32..).zip(&self.consumers);
        let index = |of_heartbeats: bool| {
            let own = numbered()
                .filter(move |(_, (_, (_, one)))| one.is_of_heartbeats() == of_heartbeats);
            Index::new(own.map(|(number, (_, (place, consumer)))| {
                let posting = Posting {
                    place: *place,
                    consumer: number,
                };
                (posting, &*consumer.predicate)
            }))
        };
        let (index, heartbeat_index) = (index(false), index(true));
        let numbers = numbered()
            .map(|(number, (key, _))| (key.clone(), number))
            .collect();
        self.rejected.sort_by(|one, other| one.key.cmp(&other.key));
        self.faults.sort_by(|one, other| one.key.cmp(&other.key));
        Table {
            index,
            heartbeat_index,
            numbers,
            consumers: self
                .consumers
                .into_values()
                .map(|(_, consumer)| consumer)
                .collect(),
            rejected: self.rejected,
            faults: self.faults,
            ..Table::default()
        }
    }
}

impl From<Target> for Reply {
    fn from(target: Target) -> Self {
        match target {
            Target::Unresolved | Target::HeartbeatSink => Self::Unresolved,
            Target::Url(url) => Self::Url(url),
            Target::Entry(entry) => Self::Entry(entry),
        }
    }
}

/// Delivery settings count as a whole as soon as one of them is given.
fn set(delivery: Option<&DeliverySpec>) -> Option<&DeliverySpec> {
    delivery.filter(|delivery| **delivery != DeliverySpec::default())
}

fn sink_certs(delivery: Option<&DeliverySpec>) -> Option<String> {
    let sink: &Destination = delivery?.dead_letter_sink.as_ref()?;
    sink.ca_certs.clone()
}
