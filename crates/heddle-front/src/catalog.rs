//! The catalog: what can be provisioned, as a value.
//!
//! A catalog is compiled by a pure function from resources and swapped whole, so a request sees one state of it from
//! beginning to end. Being in the catalog means being known; being *offered* depends on the namespace that asks. What is
//! withdrawn stays known as long as the Application has it: it is shown to nobody and cannot be had anew, and instances of it
//! can be bound, changed and removed. What no Application has any more is not in the catalog either. Its instances are
//! pinned to what they need, so the front lets operations on them pass, and asks the catalog only about what is new.
//!
//! ```text
//!   Applications ──watch──> compile ──────────┐
//!   Bundles, revisions ──watch──> drafts ─────┴──> Catalog ──┬──> what a request looks up
//!   ApplicationMappings ──watch──> Enabled ──────────────────┴──> Document, per namespace, version and coding, with its ETag
//! ```
//! Bundles are offered in every namespace. What an instance of one is pinned to is known by its revision, so that the
//! instance is dealt with by the plan it was made with, whatever the plan of that id is today.

mod bundles;
mod census;
mod compile;
mod document;
mod enabled;
mod live;
mod mirror;
mod switch;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use heddle_api::bundle::MarkReason;
use heddle_api::operation::RevisionReference;
use jiff::Timestamp;
use serde_json::{Map, Value};

pub use census::Census;
pub use compile::{Rules, compile};
pub use document::{Coding, Document, Level};
pub use enabled::Enabled;
pub use live::{CatalogSnapshot, LiveOffers, Options, start};
pub use switch::{SwitchError, refuse_switch};

/// Everything that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Ordered by name and id.
    pub offerings: Vec<Arc<Offering>>,
    /// What the offering of a bundle was in each revision that there is, by the revision's name.
    pub revisions: BTreeMap<String, Arc<Offering>>,
    /// Bundles that are not offered any more, by the id of their offering; also those that are gone and remembered.
    pub withdrawn: BTreeMap<String, Withdrawal>,
    /// Bundles that cannot be offered, by their name.
    pub left_out: BTreeMap<String, LeftOut>,
    /// Names of registries that were not read yet as they are configured.
    pub unread: Vec<String>,
    /// Some registry was never read, and no bundle is known: this may be less than there is.
    pub is_fresh: bool,
}

/// What is known about a bundle that is not offered any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// Under which name it was offered.
    pub name: String,
    pub registry: String,
    pub since: Option<Timestamp>,
    pub reason: Option<MarkReason>,
}

/// A bundle that cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub service_id: String,
    pub why: String,
}

/// What became of a bundle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BundleListing<'a> {
    /// The name it is offered under, or was; `None` if no revision of it can be read.
    pub name: Option<&'a str>,
    /// Why it is not offered although it is not withdrawn.
    pub left_out: Option<&'a str>,
}

impl Catalog {
    /// What became of each bundle, by its name.
    #[must_use]
    pub fn bundles(&self) -> BTreeMap<&str, BundleListing<'_>> {
        let mut bundles: BTreeMap<&str, BundleListing<'_>> = BTreeMap::new();
        for offering in &self.offerings {
            let backing = offering.plans.first().map(|plan| &plan.backing);
            if let Some(Backing::Bundle { bundle, .. }) = backing {
                bundles.entry(bundle).or_default().name = Some(&offering.name);
            }
        }
        for (bundle, left_out) in &self.left_out {
            bundles.entry(bundle).or_default().left_out = Some(&left_out.why);
        }
        bundles
    }

    /// A plan that is known, offered or not.
    #[must_use]
    pub fn find(&self, service_id: &str, plan_id: &str) -> Option<(&Offering, &Plan)> {
        let mut offerings = self.offerings.iter();
        let offering = offerings.find(|offering| offering.id == service_id)?;
        let plan = offering.plans.iter().find(|plan| plan.id == plan_id)?;
        Some((offering, plan))
    }

    /// A plan as a revision has it, or else as it is known now.
    #[must_use]
    pub fn find_in(
        &self,
        revision: Option<&RevisionReference>,
        service_id: &str,
        plan_id: &str,
    ) -> Option<(&Offering, &Plan)> {
        let offering = revision.and_then(|revision| self.revisions.get(&revision.name));
        let offering = offering.filter(|offering| offering.id == service_id);
        let pinned = offering.and_then(|offering| {
            let plan = offering.plans.iter().find(|plan| plan.id == plan_id)?;
            Some((&**offering, plan))
        });
        pinned.or_else(|| self.find(service_id, plan_id))
    }

    /// What a namespace with these mappings can have: offerings, each with the plans that are offered there and never
    /// without any.
    pub fn offered_in<'a>(
        &'a self,
        enabled: &'a Enabled,
    ) -> impl Iterator<Item = (&'a Offering, Vec<&'a Plan>)> {
        self.having(move |plan| enabled.enables(&plan.backing))
    }

    /// What can be had somewhere.
    pub fn offered(&self) -> impl Iterator<Item = (&Offering, Vec<&Plan>)> {
        self.having(|_| true)
    }

    fn having(
        &self,
        wanted: impl Fn(&Plan) -> bool,
    ) -> impl Iterator<Item = (&Offering, Vec<&Plan>)> {
        self.offerings.iter().filter_map(move |offering| {
            let plans = offering.plans.iter();
            let plans: Vec<&Plan> = plans
                .filter(|plan| !plan.withdrawn && wanted(plan))
                .collect();
            (!plans.is_empty()).then_some((&**offering, plans))
        })
    }
}

/// One offering: an OSB service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offering {
    /// Stable over restarts and re-imports.
    pub id: String,
    /// Unique among what is offered.
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub requires: Vec<String>,
    pub bindable: bool,
    pub plan_updateable: bool,
    pub allow_context_updates: bool,
    pub metadata: Map<String, Value>,
    pub plans: Vec<Plan>,
}

/// One plan of an offering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Stable, and unique over the whole catalog.
    pub id: String,
    /// Unique in its offering.
    pub name: String,
    pub description: String,
    /// It is not offered any more, or not for now: there is nothing new of it, and its instances go on.
    pub withdrawn: bool,
    pub free: bool,
    /// Absent means what the offering says.
    pub bindable: Option<bool>,
    /// Absent means what the offering says.
    pub plan_updateable: Option<bool>,
    pub binding_rotatable: bool,
    /// The platform must name the application that a binding is for.
    pub requires_app: bool,
    /// Seconds after which the platform gives an operation up; ours ends earlier.
    pub maximum_polling_duration: u32,
    /// Version of the implementation, for maintenance updates.
    pub maintenance_version: Option<String>,
    pub metadata: Map<String, Value>,
    /// JSON schemas of parameters.
    pub schemas: Schemas,
    /// Whether an instance can be made while the platform waits.
    pub instances: Pace,
    /// The same for bindings.
    pub bindings: Pace,
    pub backing: Backing,
}

/// JSON schemas of the parameters of each request; absent means that anything goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schemas {
    pub create: Option<Value>,
    pub update: Option<Value>,
    pub bind: Option<Value>,
}

/// How long an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It is done in a moment; the platform may wait for it.
    Prompt,
    /// It may take longer than a request; the platform must agree to ask again.
    Patient,
}

/// What stands behind a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// A service of an Application.
    Application {
        name: String,
        service_id: String,
        /// Provisioning it makes events flow.
        events: bool,
        /// It has an API, and so something to bind.
        api: bool,
    },
    /// A plan of a bundle.
    Bundle {
        /// Name of the Bundle.
        bundle: String,
        registry: String,
        /// What the bundle's author calls the plan.
        plan: String,
        /// The revision that describes it so.
        revision: RevisionReference,
        /// Ids of plans that an instance may change to.
        updates_to: Vec<String>,
    },
}

impl Backing {
    /// The revision, where there is one.
    #[must_use]
    pub fn revision(&self) -> Option<&RevisionReference> {
        match self {
            Self::Application { .. } => None,
            Self::Bundle { revision, .. } => Some(revision),
        }
    }
}
