//! Places, the links between them, and what an event reaches from each.
//!
//! Links are walked breadth first and no place is entered twice, so circles end, and the way told for a place is a shortest
//! one; among equals, the link whose name comes first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use heddle_api::dataplane::Resources;
use heddle_api::duck::{Addressable, Destination};
use heddle_api::{Broker, Channel, Subscription};
use kube::{Resource, ResourceExt as _};

use super::grants::Grants;
use super::{DeniedLink, Feed, Target};
use crate::heartbeat::canary;

pub(super) struct Topology {
    /// Names of places to their numbers, which follow the order of the names.
    numbers: BTreeMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
    /// Addresses of places.
    addresses: BTreeMap<String, u32>,
    /// Per place, the links that start there: the name of the Subscription and where it leads.
    links: Vec<BTreeMap<String, u32>>,
    /// Links that nobody allows.
    denied: BTreeMap<String, DeniedLink>,
}

/// What an event that comes in at one place reaches.
pub(super) struct Reached {
    pub(super) place: u32,
    /// The hops from the entry up to and including the place.
    pub(super) via: Vec<String>,
}

impl Topology {
    pub(super) fn new(resources: &Resources, grants: &Grants, canary: bool) -> Self {
        let channels = resources
            .channels
            .iter()
            .filter(|channel| stays(&***channel));
        let brokers = resources.brokers.iter().filter(|broker| stays(&***broker));
        let channels = channels.map(|channel| (name_of(&**channel), channel_addresses(channel)));
        let brokers = brokers.map(|broker| (name_of(&**broker), broker_addresses(broker)));
        let canary_places = [canary::CHANNEL, canary::BROKER].into_iter();
        let canary_places = canary_places.filter(|_| canary);
        let places: BTreeMap<Arc<str>, Vec<String>> = channels
            .chain(brokers)
            .chain(canary_places.map(|name| (name.to_owned(), Vec::new())))
            .map(|(name, addresses)| (name.into(), addresses))
            .collect();

        let names: Vec<Arc<str>> = places.keys().cloned().collect();
        let numbered = || (0_u32..).zip(&places);
        let mut topology = Self {
            numbers: numbered()
                .map(|(number, (name, _))| (name.clone(), number))
                .collect(),
            addresses: numbered()
                .flat_map(|(number, (_, urls))| urls.iter().map(move |url| (url.clone(), number)))
                .collect(),
            links: vec![BTreeMap::new(); names.len()],
            denied: BTreeMap::new(),
            names,
        };
        for subscription in resources.subscriptions.iter().filter(|one| stays(&***one)) {
            if let (Some(from), Some(to)) = (
                topology.channel_of(subscription),
                topology.link_of(subscription),
            ) {
                let key = name_of(&**subscription);
                let [origin, place] = [from, to].map(|place| &*topology.names[place as usize]);
                match grants.leading.check([origin, &key], place) {
                    Ok(()) => drop(topology.links[from as usize].insert(key, to)),
                    Err(remedy) => {
                        let (from, to) = (origin.to_owned(), place.to_owned());
                        let denied = DeniedLink { from, to, remedy };
                        drop(topology.denied.insert(key, denied));
                    }
                }
            }
        }
        if let (Some(from), Some(to)) = (
            topology.place(canary::CHANNEL),
            topology.place(canary::BROKER),
        ) {
            topology.links[from as usize].insert(canary::LINK.to_owned(), to);
        }
        topology
    }

    /// Why a Subscription that leads from place to place is no link, if it is not.
    pub(super) fn denied(&self, key: &str) -> Option<&String> {
        self.denied.get(key).map(|denied| &denied.remedy)
    }

    pub(super) fn into_denied(self) -> BTreeMap<String, DeniedLink> {
        self.denied
    }

    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    pub(super) fn place(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The Channel that a Subscription listens to. It is always one of the same namespace.
    pub(super) fn channel_of(&self, subscription: &Subscription) -> Option<u32> {
        let namespace = subscription.namespace().unwrap_or_default();
        let reference = &subscription.spec.channel;
        let elsewhere = reference
            .namespace
            .as_ref()
            .is_some_and(|other| *other != namespace);
        if elsewhere || reference.kind != "Channel" {
            return None;
        }
        self.place(&format!("channel/{namespace}/{}", reference.name))
    }

    /// The place that a Subscription leads to, if it is a link. Without a subscriber, answers are the events themselves.
    fn link_of(&self, subscription: &Subscription) -> Option<u32> {
        let (destination, url) = primary(subscription);
        match self.target(&subscription.namespace()?, destination?, url) {
            Target::Entry(name) => self.place(&name),
            Target::Url(_) | Target::Unresolved | Target::HeartbeatSink => None,
        }
    }

    /// Whether it is a link to a place that exists.
    pub(super) fn leads_to_a_place(&self, subscription: &Subscription) -> bool {
        self.link_of(subscription).is_some()
    }

    /// Whether a Subscription leads to a place, be it one that does not exist yet: then it never is a consumer.
    pub(super) fn is_link(&self, subscription: &Subscription) -> bool {
        let (destination, url) = primary(subscription);
        let names_a_place = destination.is_some_and(|one| {
            let namespace = subscription.namespace().unwrap_or_default();
            place_named(&namespace, one).is_some()
        });
        self.link_of(subscription).is_some() || (names_a_place && url.is_none())
    }

    /// Where a destination leads, given the address that it was resolved to.
    pub(super) fn target(
        &self,
        namespace: &str,
        destination: &Destination,
        url: Option<&String>,
    ) -> Target {
        let named = place_named(namespace, destination).and_then(|name| self.place(&name));
        let addressed = || url.and_then(|url| self.addresses.get(url).copied());
        match (named.or_else(addressed), url) {
            (Some(place), _) => Target::Entry(self.names[place as usize].clone()),
            (None, Some(url)) => Target::Url(url.clone()),
            (None, None) => Target::Unresolved,
        }
    }

    /// Every place that an event reaches from `entry`, which is the first.
    pub(super) fn reached_from(&self, entry: u32) -> Vec<Reached> {
        let mut seen = vec![false; self.names.len()];
        seen[entry as usize] = true;
        let mut waiting = VecDeque::from([Reached {
            place: entry,
            via: Vec::new(),
        }]);
        let mut reached = Vec::new();
        while let Some(here) = waiting.pop_front() {
            for (link, to) in &self.links[here.place as usize] {
                if !std::mem::replace(&mut seen[*to as usize], true) {
                    let mut via = here.via.clone();
                    via.extend([link.clone(), self.names[*to as usize].to_string()]);
                    waiting.push_back(Reached { place: *to, via });
                }
            }
            reached.push(here);
        }
        reached
    }

    /// Per place, every entry from which events reach it, in the order of their names.
    pub(super) fn feeds(&self, reached: &[Vec<Reached>]) -> Vec<Arc<[Feed]>> {
        let mut feeds: Vec<Vec<Feed>> = vec![Vec::new(); self.names.len()];
        for (entry, places) in self.names.iter().zip(reached) {
            for Reached { place, via } in places {
                feeds[*place as usize].push(Feed {
                    entry: entry.clone(),
                    via: via.clone(),
                });
            }
        }
        feeds.into_iter().map(Arc::from).collect()
    }
}

/// What a Subscription sends events to, and the address it was resolved to.
pub(super) fn primary(subscription: &Subscription) -> (Option<&Destination>, Option<&String>) {
    let resolved = subscription
        .status
        .as_ref()
        .and_then(|status| status.physical_subscription.as_ref());
    match &subscription.spec.subscriber {
        Some(subscriber) => (
            Some(subscriber),
            resolved.and_then(|resolved| resolved.subscriber_uri.as_ref()),
        ),
        None => (
            subscription.spec.reply.as_ref(),
            resolved.and_then(|resolved| resolved.reply_uri.as_ref()),
        ),
    }
}

/// `KIND/NAMESPACE/NAME`, as consumers and entries are called.
pub(super) fn name_of<K: Resource<DynamicType = ()>>(object: &K) -> String {
    format!(
        "{}/{}/{}",
        K::kind(&()).to_ascii_lowercase(),
        object.namespace().unwrap_or_default(),
        object.name_any()
    )
}

/// Whether an object is not being deleted.
pub(super) fn stays<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_none()
}

/// The place that a destination names. With a `uri` beside the `ref` it means something behind that place's address.
fn place_named(namespace: &str, destination: &Destination) -> Option<String> {
    let reference = destination.reference.as_ref()?;
    if destination.uri.is_some() {
        return None;
    }
    let (kind, group) = match reference.kind.as_str() {
        "Broker" => ("broker", "eventing.knative.dev/"),
        "Channel" => ("channel", "messaging.knative.dev/"),
        _ => return None,
    };
    let version = reference.api_version.as_deref();
    if version.is_some_and(|version| !version.starts_with(group)) {
        return None;
    }
    let namespace = reference.namespace.as_deref().unwrap_or(namespace);
    Some(format!("{kind}/{namespace}/{}", reference.name))
}

fn channel_addresses(channel: &Channel) -> Vec<String> {
    channel.status.as_ref().map_or_else(Vec::new, |status| {
        urls(status.address.as_ref(), &status.addresses)
    })
}

fn broker_addresses(broker: &Broker) -> Vec<String> {
    broker.status.as_ref().map_or_else(Vec::new, |status| {
        urls(status.address.as_ref(), &status.addresses)
    })
}

fn urls(address: Option<&Addressable>, addresses: &[Addressable]) -> Vec<String> {
    let all = address.into_iter().chain(addresses);
    all.filter_map(|one| one.url.clone()).collect()
}
