//! What EventPolicies allow: links into a namespace from others, and publishers at its entries.
//!
//! A policy speaks about the Brokers and Channels of its own namespace. Who it allows is written in two ways, which mean
//! different things:
//!
//! ```text
//!   from.ref  Channel, Subscription, Broker, Trigger   events may be led from there to here by the mesh itself
//!             Application, HTTPSource                  the same from that application's channel, and it may publish here
//!   from.sub  application/NAME, application/*          it may publish here
//! ```
//! Filters are looked at for each event that is published. A link carries everything or nothing, so a policy with filters
//! allows no link. A policy that cannot be understood allows nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use heddle_api::EventPolicy;
use heddle_api::dataplane::Resources;
use heddle_api::event_policy::{
    LabelOperator, LabelRequirement, Publisher, Target, TargetSelector, application_subject,
};
use heddle_api::filter::FilterSource;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use kube::{Resource, ResourceExt as _};

use super::Rejected;
use super::topology::{name_of, stays};
use crate::path::trigger::Predicate;

/// One policy, as far as publishers at one entry are concerned.
#[derive(Clone, Debug)]
pub struct Grant {
    subjects: Arc<[Subject]>,
    /// Which events may be published.
    pub predicate: Arc<Predicate>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Is(Box<str>),
    StartsWith(Box<str>),
}

impl Grant {
    /// Whether it is about this subject.
    #[must_use]
    pub fn names(&self, subject: &str) -> bool {
        self.subjects.iter().any(|one| match one {
            Subject::Is(name) => **name == *subject,
            Subject::StartsWith(start) => subject.starts_with(&**start),
        })
    }
}

/// Where the mesh may lead events, as far as policies say so.
#[derive(Debug, Default)]
pub(super) struct Leading {
    /// Where to, and from where.
    allowed: HashSet<(Arc<str>, Arc<str>)>,
    /// What a policy would allow if it had no filters, and that policy.
    filtered: HashMap<(Arc<str>, Arc<str>), String>,
}

/// All that policies allow.
#[derive(Default)]
pub(super) struct Grants {
    pub(super) leading: Leading,
    pub(super) publishers: HashMap<Arc<str>, Vec<Grant>>,
    /// Policies that cannot be understood.
    pub(super) faults: Vec<Rejected>,
}

/// A Broker or Channel, as targets choose them.
struct Place<'a> {
    kind: &'static str,
    name: String,
    entry: Arc<str>,
    labels: &'a BTreeMap<String, String>,
}

impl Grants {
    pub(super) fn new(resources: &Resources) -> Self {
        let places = places(resources);
        let mut grants = Self::default();
        for policy in resources.policies.iter().filter(|one| stays(&***one)) {
            let namespace = policy.namespace().unwrap_or_default();
            let places = places.get(&namespace).map_or(&[][..], Vec::as_slice);
            grants.add(policy, &namespace, places);
        }
        grants
    }

    fn add(&mut self, policy: &EventPolicy, namespace: &str, places: &[Place<'_>]) {
        let filters = &policy.spec.filters;
        let predicate = match filters.as_slice() {
            [] => Predicate::everything(),
            _ => match Predicate::compile(&FilterSource::Filters(filters.clone())) {
                Ok(predicate) => predicate,
                Err(invalid) => {
                    let reason = format!("it allows nothing: {invalid}");
                    let key = name_of(policy);
                    return self.faults.push(Rejected { key, reason });
                }
            },
        };
        let from = &policy.spec.from;
        let origins: Vec<Arc<str>> = from
            .iter()
            .filter_map(|one| origin(one, namespace))
            .map(Arc::from)
            .collect();
        let subjects: Arc<[Subject]> = from
            .iter()
            .filter_map(|one| subject(one, namespace))
            .collect();
        let predicate = Arc::new(predicate);
        for place in places.iter().filter(|place| chosen(&policy.spec.to, place)) {
            for origin in &origins {
                let link = (Arc::clone(&place.entry), Arc::clone(origin));
                if filters.is_empty() {
                    self.leading.allowed.insert(link);
                } else {
                    self.leading.filtered.insert(link, policy.name_any());
                }
            }
            if !subjects.is_empty() {
                let grants = self.publishers.entry(Arc::clone(&place.entry)).or_default();
                grants.push(Grant {
                    subjects: Arc::clone(&subjects),
                    predicate: Arc::clone(&predicate),
                });
            }
        }
    }
}

impl Leading {
    /// Whether the mesh may lead events to `to`, coming from one of `origins`, the place they come from first. Within a
    /// namespace it always may. The error names the remedy.
    pub(super) fn check(&self, origins: [&str; 2], to: &str) -> Result<(), String> {
        let [from, by] = origins;
        let namespace = namespace_of(to);
        if namespace_of(from) == namespace {
            return Ok(());
        }
        let pair = |origin: &str| (Arc::from(to), Arc::from(origin));
        if origins
            .iter()
            .any(|origin| self.allowed.contains(&pair(origin)))
        {
            return Ok(());
        }
        let filtered = origins
            .iter()
            .find_map(|origin| self.filtered.get(&pair(origin)));
        let aside = filtered.map_or_else(String::new, |policy| {
            format!("; EventPolicy {namespace}/{policy} has filters, and what leads from place to place is allowed whole or not at all")
        });
        Err(format!(
            "{by} leads events from {from} to {to}, and no EventPolicy in {namespace} allows that: apply one there with \
             spec.to {} and spec.from {}{aside}",
            reference(to, false),
            reference(from, true),
        ))
    }
}

/// `broker/NAMESPACE/NAME` as a person writes it in a policy.
fn reference(entry: &str, with_namespace: bool) -> String {
    let mut parts = entry.splitn(3, '/');
    let (kind, namespace, name) = (parts.next(), parts.next(), parts.next());
    let kind = match kind {
        Some("channel") => "Channel",
        _ => "Broker",
    };
    let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
    if with_namespace {
        format!("ref {{kind: {kind}, namespace: {namespace}, name: {name}}}")
    } else {
        format!("ref {{kind: {kind}, name: {name}}}")
    }
}

pub(super) fn namespace_of(entry: &str) -> &str {
    entry.split('/').nth(1).unwrap_or_default()
}

/// The places of each namespace.
fn places(resources: &Resources) -> HashMap<String, Vec<Place<'_>>> {
    let mut places: HashMap<String, Vec<Place<'_>>> = HashMap::new();
    let channels = resources.channels.iter().filter(|one| stays(&***one));
    let brokers = resources.brokers.iter().filter(|one| stays(&***one));
    let mut add = |namespace: Option<String>, place| {
        places
            .entry(namespace.unwrap_or_default())
            .or_default()
            .push(place);
    };
    for channel in channels {
        add(channel.namespace(), Place::of("Channel", &**channel));
    }
    for broker in brokers {
        add(broker.namespace(), Place::of("Broker", &**broker));
    }
    places
}

impl<'a> Place<'a> {
    fn of<K: Resource<DynamicType = ()>>(kind: &'static str, object: &'a K) -> Self {
        Self {
            kind,
            name: object.name_any(),
            entry: name_of(object).into(),
            labels: object.labels(),
        }
    }

    fn is(&self, kind: &str, api_version: Option<&str>) -> bool {
        let group = match self.kind {
            "Broker" => "eventing.knative.dev/",
            _ => "messaging.knative.dev/",
        };
        self.kind == kind && api_version.is_none_or(|version| version.starts_with(group))
    }
}

/// Whether a policy with these targets is about a place. Without targets it is about all places of its namespace.
fn chosen(targets: &[Target], place: &Place<'_>) -> bool {
    targets.is_empty()
        || targets
            .iter()
            .any(|target| match (&target.reference, &target.selector) {
                (Some(reference), _) => {
                    place.is(&reference.kind, reference.api_version.as_deref())
                        && place.name == reference.name
                }
                (None, Some(selector)) => selects(selector, place),
                (None, None) => false,
            })
}

fn selects(selector: &TargetSelector, place: &Place<'_>) -> bool {
    let kind = selector.kind.as_deref().unwrap_or(place.kind);
    place.is(kind, selector.api_version.as_deref())
        && selector
            .match_labels
            .iter()
            .all(|(key, value)| place.labels.get(key) == Some(value))
        && selector
            .match_expressions
            .iter()
            .all(|requirement| meets(place.labels, requirement))
}

fn meets(labels: &BTreeMap<String, String>, requirement: &LabelRequirement) -> bool {
    let found = labels.get(&requirement.key);
    match requirement.operator {
        LabelOperator::In => found.is_some_and(|value| requirement.values.contains(value)),
        LabelOperator::NotIn => found.is_none_or(|value| !requirement.values.contains(value)),
        LabelOperator::Exists => found.is_some(),
        LabelOperator::DoesNotExist => found.is_none(),
    }
}

/// From where a publisher lets the mesh lead events.
fn origin(publisher: &Publisher, namespace: &str) -> Option<String> {
    let reference = publisher.reference.as_ref()?;
    let namespace = reference.namespace.as_deref().unwrap_or(namespace);
    let word = match reference.kind.as_str() {
        "Channel" => "channel",
        "Broker" => "broker",
        "Subscription" => "subscription",
        "Trigger" => "trigger",
        _ => {
            let application = application(publisher, namespace)?;
            return Some(format!("channel/{INTEGRATION_NAMESPACE}/{application}"));
        }
    };
    Some(format!("{word}/{namespace}/{}", reference.name))
}

/// The Application that a publisher stands for, if it does.
fn application<'a>(publisher: &'a Publisher, namespace: &str) -> Option<&'a str> {
    let reference = publisher.reference.as_ref()?;
    let namespace = reference.namespace.as_deref().unwrap_or(namespace);
    match reference.kind.as_str() {
        "Application" => Some(&reference.name),
        "HTTPSource" if namespace == INTEGRATION_NAMESPACE => Some(&reference.name),
        _ => None,
    }
}

/// The identity that a publisher lets publish.
fn subject(publisher: &Publisher, namespace: &str) -> Option<Subject> {
    if let Some(application) = application(publisher, namespace) {
        return Some(Subject::Is(application_subject(application).into()));
    }
    let text = publisher.sub.as_deref()?;
    Some(match text.strip_suffix('*') {
        Some(start) => Subject::StartsWith(start.into()),
        None => Subject::Is(text.into()),
    })
}
