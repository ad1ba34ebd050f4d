//! Wanted: what the flows of a namespace need, from nothing but them and what allows them.

use std::collections::{BTreeMap, BTreeSet};

use heddle_api::broker::{Claim, DEFAULT_NAME, LABEL_CLAIM_UID};
use heddle_api::conditions::Reason;
use heddle_api::event_flow::reason;
use heddle_api::well_known::FINALIZER;
use heddle_api::{ApplicationMapping, EventFlow};
use kube::{Resource as _, ResourceExt};

use super::observe::World;
use super::{is_leaving, label};

/// What an Application is called is also the value of a label; one with a longer name has no Channel either.
const LABEL_CHARS_MAX: usize = 63;

#[derive(Debug, Default)]
pub(super) struct Wanted<'a> {
    /// Who needs a Broker, by its name.
    pub claims: BTreeMap<&'a str, Vec<Claim>>,
    /// Whose events go to which Broker: Application and Broker.
    pub links: BTreeSet<(&'a str, &'a str)>,
    /// The flows of an Application, which have its policy in common.
    pub policies: BTreeMap<&'a str, Vec<&'a EventFlow>>,
    /// The flows of a service, which have its projection in common.
    pub activations: BTreeMap<&'a str, Vec<&'a EventFlow>>,
    /// What flows will need that are not held yet. Nothing is made for them, but what is there is not taken away.
    pub soon: Soon<'a>,
}

#[derive(Debug, Default)]
pub(super) struct Soon<'a> {
    pub links: BTreeSet<(&'a str, &'a str)>,
    pub applications: BTreeSet<&'a str>,
    pub services: BTreeSet<&'a str>,
    /// Uids of flows that go and whose link nobody needs but such a flow. Their claims stay until it has taken over: what
    /// they own would go with them.
    pub forebears: BTreeSet<String>,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(world: &'a World) -> Self {
        let mut wanted = Self::default();
        if is_leaving(&world.namespace) || label::is_disabled(&world.namespace) {
            return wanted;
        }
        if label::asks_for_broker(&world.namespace) {
            let claim = Claim {
                uid: LABEL_CLAIM_UID.to_owned(),
                ..Claim::default()
            };
            wanted.claims.insert(DEFAULT_NAME, vec![claim]);
        }
        for flow in world.flows.iter().filter(|flow| !is_leaving(*flow)) {
            wanted.add(world, flow);
        }
        let leaving = world.flows.iter().filter(|flow| is_leaving(*flow));
        let forebears = leaving.filter(|flow| wanted.is_awaited(flow));
        wanted.soon.forebears = forebears.filter_map(ResourceExt::uid).collect();
        wanted
    }

    fn is_awaited(&self, flow: &EventFlow) -> bool {
        let spec = &flow.spec;
        let pair = (spec.application.as_str(), spec.broker_ref.name.as_str());
        self.soon.links.contains(&pair) && !self.links.contains(&pair)
    }

    fn add(&mut self, world: &World, flow: &'a EventFlow) {
        let spec = &flow.spec;
        let (application, broker) = (spec.application.as_str(), spec.broker_ref.name.as_str());
        // What no Broker and no label can be called would be refused again and again, and everything behind it would wait.
        if !is_name(broker) {
            return;
        }
        if is_live(flow) {
            self.claims.entry(broker).or_default().push(claim(flow));
        }
        let mapping = (world.mappings.iter()).find(|mapping| mapping.name_any() == application);
        if allowed(mapping, flow).is_err() || application.len() > LABEL_CHARS_MAX {
            return;
        }
        let service = spec.service_id.as_str();
        if is_live(flow) {
            self.links.insert((application, broker));
            self.policies.entry(application).or_default().push(flow);
            self.activations.entry(service).or_default().push(flow);
        } else {
            self.soon.links.insert((application, broker));
            self.soon.applications.insert(application);
            self.soon.services.insert(service);
        }
    }
}

/// A flow counts from the moment it cannot vanish unseen to the moment it is to go.
pub(super) fn is_live(flow: &EventFlow) -> bool {
    !is_leaving(flow) && flow.finalizers().iter().any(|name| name == FINALIZER)
}

/// Whether a flow needs the link of another that goes.
pub(crate) fn succeeds(flow: &EventFlow, gone: &EventFlow) -> bool {
    let (mine, theirs) = (&flow.spec, &gone.spec);
    is_live(flow) && mine.application == theirs.application && mine.broker_ref == theirs.broker_ref
}

fn claim(flow: &EventFlow) -> Claim {
    Claim {
        uid: flow.uid().unwrap_or_default(),
        kind: Some(EventFlow::kind(&()).into_owned()),
        name: Some(flow.name_any()),
    }
}

/// Whether a mapping lets its namespace use the flow's service; if not, why.
pub(crate) fn allowed(
    mapping: Option<&ApplicationMapping>,
    flow: &EventFlow,
) -> Result<(), (Reason, String)> {
    let (namespace, spec) = (flow.namespace().unwrap_or_default(), &flow.spec);
    let (application, service) = (&spec.application, &spec.service_id);
    match mapping.filter(|mapping| !is_leaving(*mapping)) {
        None => Err((
            reason::MAPPING_MISSING,
            format!(
                "ApplicationMapping {namespace}/{application} does not exist; \
                 create it to let the namespace use the Application"
            ),
        )),
        Some(mapping) if !mapping.spec.enables(service) => Err((
            reason::SERVICE_NOT_ENABLED,
            format!(
                "ApplicationMapping {namespace}/{application} does not enable service {service}; \
                 add it to spec.services"
            ),
        )),
        Some(_) => Ok(()),
    }
}

/// Whether an object can have that name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_edge)
            && part.ends_with(is_edge)
            && part.chars().all(|c| is_edge(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}
