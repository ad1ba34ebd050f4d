//! The compiled table: from where an event came in to who wants it.
//!
//! ```text
//!   entry                    reach                           index                        predicate
//!   channel/ns/shop ──> itself, and every place  ──> consumers of these places ──> those that do want it
//!   broker/ns/default   that links lead to           that might want the event
//! ```
//! A *place* is a Channel or a Broker; each is an *entry* where events come in. A Subscription from a place to a place is a
//! *link*; everything else that receives events is a [`ConsumerSpec`] at one place. A table is made by [`compile`], which is
//! pure, and never changes. It promises that a consumer gets an event once however many links lead to it, and that
//! consumers which do not want an event cost it nothing. Swapping tables and following them are left to others.

mod affix;
mod budget;
mod compile;
mod doors;
mod fingerprint;
mod grants;
mod index;
mod legacy;
mod settings;
mod signing;
#[cfg(test)]
mod tests;
mod topology;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use heddle_api::access::namespace_of;
use heddle_api::attributes::Attributes;
use heddle_api::dataplane::HeartbeatTarget;
use heddle_api::duck::DeliverySpec;
use heddle_api::filter::FilterSource;

use crate::heartbeat::is_heartbeat;
use crate::path::trigger::Predicate;
use grants::Leading;
use index::Index;

pub(crate) use compile::recompile_with;
pub use compile::{compile, recompile};
pub use grants::Grant;
pub(crate) use settings::is_dns_name;
pub use settings::{Bound, Consent, ProbeKind, Settings, Start, Webhook};
pub use signing::Signing;

/// Who wants which events. Consumers are numbered in the order of their keys.
#[derive(Debug, Default)]
pub struct Table {
    consumers: Vec<Arc<ConsumerSpec>>,
    numbers: HashMap<Arc<str>, u32>,
    entries: HashMap<Arc<str>, Entry>,
    doors: HashMap<String, Door>,
    /// Subscriptions that lead from place to place, with the uid and generation they were compiled from.
    links: HashMap<String, (String, i64)>,
    /// What policies allow publishers, by entry.
    grants: HashMap<Arc<str>, Vec<Grant>>,
    /// What policies allow the mesh itself.
    leading: Leading,
    index: Index,
    /// The same of heartbeats, so that they and everything else cost each other nothing.
    heartbeat_index: Index,
    /// Where heartbeats are to arrive, without the canary.
    heartbeats: Arc<[HeartbeatTarget]>,
    /// Subscriptions that would lead from place to place if somebody allowed it.
    denied: BTreeMap<String, DeniedLink>,
    rejected: Vec<Rejected>,
    faults: Vec<Rejected>,
    /// What publishers of the old API are told about its end, by Application.
    notices: HashMap<String, legacy::EndNotice>,
    /// What Triggers ask for, once somebody wanted to know.
    asked_for: OnceLock<legacy::AskedFor>,
}

/// A Trigger, or a Subscription with a subscriber of its own.
#[derive(Clone, Debug)]
pub struct ConsumerSpec {
    /// `trigger/NAMESPACE/NAME` or `subscription/NAMESPACE/NAME`.
    pub key: Arc<str>,
    pub uid: String,
    pub generation: i64,
    /// Every entry from which an event can reach it, in the order of their names.
    pub feeds: Arc<[Feed]>,
    pub predicate: Arc<Predicate>,
    /// What the predicate was compiled from.
    pub filters: FilterSource,
    pub destination: Target,
    pub reply: Reply,
    pub delivery: DeliverySpec,
    /// Where undeliverable events go besides the internal store; `None` when nothing is configured.
    pub dead_letter_sink: Option<Target>,
    /// Certificates, in PEM, of the destination.
    pub ca_certs: Option<String>,
    /// Certificates, in PEM, of the dead-letter sink.
    pub dead_letter_ca_certs: Option<String>,
    pub settings: Settings,
    /// Whether, and with what, events are signed that are sent to the destination.
    pub signing: Signing,
    /// A hash of feeds and filters that no restart and no version changes: as long as it is the same, the same events are
    /// wanted.
    pub fingerprint: u64,
}

/// A link that leads where nobody allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeniedLink {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) remedy: String,
}

impl ConsumerSpec {
    /// Whether it is one of heddle's own, which hear heartbeats.
    #[must_use]
    pub fn is_of_heartbeats(&self) -> bool {
        self.predicate.is_of_heartbeats()
    }

    /// The place at which it listens: the one from which events come without a hop.
    fn place(&self) -> Option<&str> {
        let feed = self.feeds.iter().find(|feed| feed.via.is_empty())?;
        Some(&feed.entry)
    }
}

/// An entry from which events reach a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// `channel/NAMESPACE/NAME` or `broker/NAMESPACE/NAME`.
    pub entry: Arc<str>,
    /// The hops between the entry and the consumer.
    pub via: Vec<String>,
}

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// It has no address yet.
    Unresolved,
    Url(String),
    /// A place of this mesh: what goes there is appended, not sent.
    Entry(Arc<str>),
    /// Where heartbeats arrive; the mesh knows its address.
    HeartbeatSink,
}

/// Where answers go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nobody asked for them.
    None,
    /// Somebody did, and has no address yet.
    Unresolved,
    Url(String),
    Entry(Arc<str>),
}

/// The door through which an Application publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Door {
    Open { entry: Arc<str> },
    NotReady { reason: String },
}

/// A place where events come in: every Channel and Broker that is not being deleted.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Arc<str>,
    /// The numbers of the places that an event from here reaches, itself included, in ascending order.
    reach: Box<[u32]>,
    /// How many consumers of users are at those places: whoever does not want an event from here has filtered it out.
    audience: u32,
}

/// An object that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The key of the consumer it is, or would have been.
    pub key: String,
    pub reason: String,
}

impl Table {
    /// A table that leads nowhere.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn consumers(&self) -> &[Arc<ConsumerSpec>] {
        &self.consumers
    }

    /// A consumer and its number.
    #[must_use]
    pub fn consumer(&self, key: &str) -> Option<(u32, &Arc<ConsumerSpec>)> {
        let number = *self.numbers.get(key)?;
        Some((number, &self.consumers[number as usize]))
    }

    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// How many consumers of users an event from an entry is offered to.
    pub(crate) fn audience(&self, entry: &str) -> u32 {
        self.entries.get(entry).map_or(0, |entry| entry.audience)
    }

    /// The uid and generation of a Subscription that is a link, not a consumer.
    #[must_use]
    pub fn link(&self, key: &str) -> Option<(&str, i64)> {
        let (uid, generation) = self.links.get(key)?;
        Some((uid, *generation))
    }

    /// What policies allow publishers at an entry. Who needs no policy is not told here.
    #[must_use]
    pub fn grants(&self, entry: &str) -> &[Grant] {
        self.grants.get(entry).map_or(&[], Vec::as_slice)
    }

    /// Whether a consumer may lead events to a place. The error names the remedy.
    pub fn may_lead(&self, consumer: &str, to: &str) -> Result<(), String> {
        let from = self
            .consumer(consumer)
            .and_then(|(_, consumer)| consumer.place())
            .ok_or_else(|| format!("{consumer} is not in the table in force"))?;
        self.leading.check([from, consumer], to)
    }

    /// The entries from which an event reaches a place, that place included, in the order of their names.
    #[must_use]
    pub fn reaching(&self, name: &str) -> Vec<Arc<str>> {
        let Some(target) = self.entries.get(name) else {
            return Vec::new();
        };
        // Reaching is transitive: whoever reaches a place reaches everything that place does, itself included.
        let reaches = |entry: &&Entry| target.reach.iter().all(|place| entry.reach.contains(place));
        let reaching = self.entries.values().filter(reaches);
        let mut names: Vec<Arc<str>> = reaching.map(|entry| Arc::clone(&entry.name)).collect();
        names.sort();
        names
    }

    /// The door of an Application; `None` when there is no such Application.
    #[must_use]
    pub fn application(&self, application: &str) -> Option<&Door> {
        self.doors.get(application)
    }

    /// What cannot be understood and is not in the table, or leads where nobody allows it and therefore leads nowhere.
    #[must_use]
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }

    /// Consumers that are in the table, but not quite as they ask for.
    #[must_use]
    pub fn faults(&self) -> &[Rejected] {
        &self.faults
    }

    /// Where heartbeats are to arrive, as it was asked for.
    pub(crate) fn heartbeats(&self) -> &Arc<[HeartbeatTarget]> {
        &self.heartbeats
    }

    /// The Subscription that would lead from one place to another if somebody allowed it, with the remedy.
    pub(crate) fn denied_link(&self, from: &str, to: &str) -> Option<(&str, &str)> {
        let mut denied = self.denied.iter();
        let found = denied.find(|(_, link)| link.from == from && link.to == to);
        found.map(|(key, link)| (key.as_str(), link.remedy.as_str()))
    }

    /// All of those, with their remedies.
    pub(crate) fn denied_links(&self) -> BTreeMap<String, String> {
        let denied = self.denied.iter();
        denied
            .map(|(key, link)| (key.clone(), link.remedy.clone()))
            .collect()
    }

    /// The Subscriptions that would lead into a namespace if somebody allowed it, each with the remedy.
    pub(crate) fn denied_into(&self, namespace: &str) -> impl Iterator<Item = (&str, &str)> {
        let leads_there = move |link: &DeniedLink| namespace_of(&link.to) == Some(namespace);
        let denied = self
            .denied
            .iter()
            .filter(move |(_, link)| leads_there(link));
        denied.map(|(key, link)| (key.as_str(), link.remedy.as_str()))
    }

    /// Puts the numbers of the consumers that want an event into `out`, which is emptied first, in ascending order.
    pub fn matches(&self, entry: &str, event: &dyn Attributes, out: &mut Vec<u32>) {
        out.clear();
        let Some(entry) = self.entries.get(entry) else {
            return;
        };
        let index = match is_heartbeat(event) {
            false => &self.index,
            true => &self.heartbeat_index,
        };
        index.candidates(&entry.reach, event, |number| {
            if self.consumers[number as usize].predicate.matches(event) {
                out.push(number);
            }
        });
        // A filter with alternatives may be found by more than one of them.
        out.sort_unstable();
        out.dedup();
    }
}
