//! Links: one Subscription from an Application's Channel to a Broker of the namespace, whatever it is called.
//!
//! A link that somebody else made under the right labels is taken in as it stands, name and uid included, so that no event
//! is lost or doubled by replacing it. Where there are several, the one that was ours or came first stays.

use std::cmp::Reverse;

use heddle_api::broker::DEFAULT_NAME;
use heddle_api::duck::Destination;
use heddle_api::well_known::{
    APPLICATION_LABEL, BROKER_NAMESPACE_LABEL, INTEGRATION_NAMESPACE, MANAGED_BY, MANAGED_BY_LABEL,
};
use heddle_api::{Broker, Channel, Subscription, names};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::observe::World;
use super::wanted::Wanted;
use super::{LINK, is_controlled, is_leaving};
use crate::reconcile::Step;

/// Links that no flow needs, and all but one of those that do the same.
pub(super) fn unneeded(world: &World, wanted: &Wanted<'_>) -> Vec<Step> {
    let namespace = world.namespace.name_any();
    let is_kept = |link: &Subscription| {
        let mut pairs = wanted.links.union(&wanted.soon.links);
        let pair = pairs.find(|(application, broker)| {
            is_from(link, application) && leads_to(link, &namespace, broker)
        });
        match pair {
            Some((application, broker)) => chosen(world, application, broker)
                .is_some_and(|kept| kept.name_any() == link.name_any()),
            None => !goes_when_unneeded(link),
        }
    };
    let links = world.links.iter().filter(|link| !is_controlled(*link));
    links
        .filter(|link| !is_kept(link))
        .filter_map(|link| Step::remove(LINK, Some(link)))
        .collect()
}

/// What makes each needed link what it should be.
pub(super) fn needed(world: &World, wanted: &Wanted<'_>) -> Vec<Step> {
    let pairs = wanted.links.iter();
    pairs
        .filter_map(|(application, broker)| step(world, application, broker))
        .collect()
}

fn step(world: &World, application: &str, broker: &str) -> Option<Step> {
    let namespace = world.namespace.name_any();
    let live = chosen(world, application, broker);
    let name = names::link_to(application, &namespace, broker);
    let is_taken = |link: &&Subscription| link.name_any() == name;
    if live.is_none() && world.links.iter().any(|link| is_taken(&link)) {
        // What has the name is on its way out, or another controller's; either way it is not ours to write.
        return None;
    }
    match live {
        Some(live) if !goes_only_to(live, &namespace, broker) => {
            // Applying adds fields and takes back one's own; it cannot take away what another wrote.
            let subscriber = json!({
                "ref": reference(&namespace, broker), "uri": null, "CACerts": null, "audience": null,
            });
            let change = json!({"spec": {"subscriber": subscriber, "reply": null}});
            Step::swap(LINK, live, change)
        }
        live => {
            let channel = live.map_or_else(
                || {
                    json!({
                        "apiVersion": Channel::api_version(&()), "kind": Channel::kind(&()), "name": application,
                    })
                },
                // It never changes, so it has to be stated the way it was written.
                |live| serde_json::to_value(&live.spec.channel).unwrap_or_default(),
            );
            let wanted = json!({
                "apiVersion": Subscription::api_version(&()), "kind": Subscription::kind(&()),
                "metadata": {
                    "name": live.map_or(name, ResourceExt::name_any),
                    "namespace": INTEGRATION_NAMESPACE,
                    "labels": {
                        APPLICATION_LABEL: application,
                        BROKER_NAMESPACE_LABEL: namespace,
                        MANAGED_BY_LABEL: MANAGED_BY,
                    },
                },
                "spec": {"channel": channel, "subscriber": {"ref": reference(&namespace, broker)}},
            });
            Step::ensure(LINK, wanted, live)
        }
    }
}

fn reference(namespace: &str, broker: &str) -> Value {
    json!({
        "apiVersion": Broker::api_version(&()), "kind": Broker::kind(&()), "name": broker, "namespace": namespace,
    })
}

/// The link that stands for an Application and a Broker, if there is one.
fn chosen<'a>(world: &'a World, application: &str, broker: &str) -> Option<&'a Subscription> {
    let namespace = world.namespace.name_any();
    let links = world.links.iter().filter(|link| {
        is_from(link, application)
            && leads_to(link, &namespace, broker)
            && !is_leaving(*link)
            && !is_controlled(*link)
    });
    links.min_by_key(|link| {
        let age = link.creation_timestamp().map(|time| time.0);
        (Reverse(is_managed(*link)), age, link.name_any())
    })
}

/// Ours by its Channel; somebody else's only if its label says so too.
fn is_from(link: &Subscription, application: &str) -> bool {
    let channel = &link.spec.channel;
    let label = link.labels().get(APPLICATION_LABEL);
    channel.name == application
        && channel.kind == Channel::kind(&())
        && (is_managed(link) || label.is_some_and(|label| label == application))
}

/// Whether a link means that Broker. One that was made before Brokers could be referred to names an address instead, and
/// then it means the only Broker that there was.
fn leads_to(link: &Subscription, namespace: &str, broker: &str) -> bool {
    let subscriber = link.spec.subscriber.as_ref();
    match subscriber.and_then(|subscriber| subscriber.reference.as_ref()) {
        Some(reference) => {
            reference.kind == Broker::kind(&())
                && reference.name == broker
                && reference.namespace.as_deref() == Some(namespace)
        }
        None => broker == DEFAULT_NAME,
    }
}

/// Whether events go there and nowhere else.
pub(crate) fn goes_only_to(link: &Subscription, namespace: &str, broker: &str) -> bool {
    let plain = |subscriber: &Destination| {
        let reference = subscriber.reference.as_ref();
        reference.is_some() && subscriber.uri.is_none() && subscriber.ca_certs.is_none()
    };
    link.spec.reply.is_none()
        && link.spec.subscriber.as_ref().is_some_and(plain)
        && leads_to(link, namespace, broker)
}

/// Whether a link goes when nobody needs it. What nobody marked as heddle's stays, and so does what another controls.
pub(crate) fn goes_when_unneeded(link: &Subscription) -> bool {
    is_managed(link) && !is_controlled(link)
}

fn is_managed<K: Resource>(object: &K) -> bool {
    let manager = object.labels().get(MANAGED_BY_LABEL);
    manager.is_some_and(|manager| manager == MANAGED_BY)
}
