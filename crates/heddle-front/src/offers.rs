//! What the front needs to know of the catalog, and how a request looks at it.
//!
//! A request takes one catalog and keeps it to its end. *Known* and *offered* are two questions: whatever is
//! known can be bound, changed and removed, but only what is offered can be had anew.

use std::fmt::Debug;
use std::sync::Arc;

use heddle_api::bundle::MarkReason;
use heddle_api::operation::RevisionReference;

use crate::catalog::{
    Backing, Catalog, Census, Coding, Document, Level, LiveOffers, Offering, Pace, Plan, Withdrawal,
};
use crate::error::{Lapse, OsbError};
use crate::parameters::{ParameterAction, Validators};
use crate::version::Version;

/// Where the catalog comes from.
pub trait Offers: Debug + Send + Sync {
    /// Whether everything that can be offered has been read once.
    fn is_ready(&self) -> bool;

    /// Everything that is known, offered or withdrawn. Swapped whole: the same catalog is the same `Arc`.
    fn catalog(&self) -> Arc<Catalog>;

    /// Whether a plan can be had in a namespace, or in any.
    fn is_offered(&self, namespace: Option<&str>, service_id: &str, plan_id: &str) -> bool;

    /// The catalog as a platform of that version may read it. May take a while, and a processor.
    fn document(&self, namespace: Option<&str>, version: Version, coding: Coding) -> Document;

    /// The same, if it is at hand.
    fn rendered(
        &self,
        namespace: Option<&str>,
        version: Version,
        coding: Coding,
    ) -> Option<Document> {
        Some(self.document(namespace, version, coding))
    }

    /// Which instances there are; one that counts nobody, where nobody counts.
    fn census(&self) -> Census {
        Census::default()
    }
}

impl Offers for LiveOffers {
    fn is_ready(&self) -> bool {
        Self::is_ready(self)
    }

    fn catalog(&self) -> Arc<Catalog> {
        Self::catalog(self)
    }

    fn is_offered(&self, namespace: Option<&str>, service_id: &str, plan_id: &str) -> bool {
        Self::is_offered(self, namespace, service_id, plan_id)
    }

    fn document(&self, namespace: Option<&str>, version: Version, coding: Coding) -> Document {
        Self::document(self, namespace, Level::of_minor(version.minor()), coding)
    }

    fn rendered(
        &self,
        namespace: Option<&str>,
        version: Version,
        coding: Coding,
    ) -> Option<Document> {
        Self::rendered(self, namespace, Level::of_minor(version.minor()), coding)
    }

    fn census(&self) -> Census {
        Self::census(self).clone()
    }
}

/// The catalog, as one request sees it.
#[derive(Debug)]
pub(crate) struct CatalogView<'a> {
    offers: &'a dyn Offers,
    scope: Option<&'a str>,
    validators: &'a Validators,
    catalog: Arc<Catalog>,
}

impl<'a> CatalogView<'a> {
    pub(crate) fn new(
        offers: &'a dyn Offers,
        scope: Option<&'a str>,
        validators: &'a Validators,
    ) -> Self {
        Self {
            offers,
            scope,
            validators,
            catalog: offers.catalog(),
        }
    }

    /// A plan that is known.
    pub(crate) fn find(&self, service_id: &str, plan_id: &str) -> Option<(&Offering, &Plan)> {
        self.catalog.find(service_id, plan_id)
    }

    /// A plan as something is pinned to it, or else as it is known now.
    pub(crate) fn find_in(
        &self,
        revision: Option<&RevisionReference>,
        service_id: &str,
        plan_id: &str,
    ) -> Option<(&Offering, &Plan)> {
        self.catalog.find_in(revision, service_id, plan_id)
    }

    /// Names of registries that were not read yet as they are configured.
    pub(crate) fn unread(&self) -> &[String] {
        &self.catalog.unread
    }

    /// Whether a service that is not known may yet turn up in a registry.
    pub(crate) fn is_awaited(&self, service_id: &str) -> bool {
        self.offers.is_ready()
            && !self.catalog.unread.is_empty()
            && self.offering(service_id).is_none()
            && !self.catalog.withdrawn.contains_key(service_id)
            && self.left_out(service_id).is_none()
    }

    /// Name of the Bundle that stands behind a revision.
    pub(crate) fn bundle_of(&self, revision: &RevisionReference) -> Option<&str> {
        let offering = self.catalog.revisions.get(&revision.name)?;
        let mut plans = offering.plans.iter();
        plans.find_map(|plan| match &plan.backing {
            Backing::Bundle { bundle, .. } => Some(bundle.as_str()),
            Backing::Application { .. } => None,
        })
    }

    /// A refusal for what was withdrawn while it was asked for.
    pub(crate) fn withdrawn(&self, service_id: &str) -> OsbError {
        let withdrawal = self.catalog.withdrawn.get(service_id);
        let text = match (withdrawal, self.offering(service_id)) {
            (Some(withdrawal), _) => told_withdrawn(service_id, withdrawal),
            (None, offering) => {
                let name = offering.map_or(service_id, |offering| &offering.name);
                format!(
                    "service {name} ({service_id}) was withdrawn just now; fetch the catalog again"
                )
            }
        };
        let lapse = Lapse::ServiceWithdrawn;
        OsbError::OutOfSync { lapse, text }
    }

    /// Why a bundle with that service cannot be offered, if it is that.
    fn left_out(&self, service_id: &str) -> Option<&str> {
        let mut left_out = self.catalog.left_out.values();
        let found = left_out.find(|left_out| left_out.service_id == service_id)?;
        Some(&found.why)
    }

    /// A plan by its id alone, which is unique over the catalog.
    pub(crate) fn plan(&self, plan_id: &str) -> Option<&Plan> {
        let mut plans = self
            .catalog
            .offerings
            .iter()
            .flat_map(|offering| &offering.plans);
        plans.find(|plan| plan.id == plan_id)
    }

    /// A plan that can be had anew.
    pub(crate) fn offered(
        &self,
        service_id: &str,
        plan_id: &str,
    ) -> Result<(&Offering, &Plan), OsbError> {
        match self.find(service_id, plan_id) {
            Some(found) if self.offers.is_offered(self.scope, service_id, plan_id) => Ok(found),
            found => Err(self.why_not(service_id, plan_id, found.is_some())),
        }
    }

    /// A refusal for what is not known or not offered. Before everything was read once, nobody can say that it is not.
    pub(crate) fn why_not(&self, service_id: &str, plan_id: &str, known: bool) -> OsbError {
        if !self.offers.is_ready() {
            return OsbError::Busy("the catalog has not been read yet".to_owned());
        }
        if self.catalog.withdrawn.contains_key(service_id) {
            return self.withdrawn(service_id);
        }
        if let Some(why) = self.left_out(service_id) {
            return OsbError::NotOffered(format!(
                "service {service_id} cannot be offered for now: {why}"
            ));
        }
        if let Some((offering, plan)) = self.find(service_id, plan_id)
            && let Backing::Bundle { registry, .. } = &plan.backing
        {
            let text = format!(
                "plan {} ({plan_id}) of service {} in registry {registry} is withdrawn: the bundle has it no longer; fetch the catalog again and choose another",
                plan.name, offering.name
            );
            let lapse = Lapse::PlanWithdrawn;
            return OsbError::OutOfSync { lapse, text };
        }
        if known {
            let place = self.scope.map_or_else(String::new, |namespace| {
                format!(" in namespace {namespace}; an ApplicationMapping there would offer it")
            });
            return OsbError::NotOffered(format!(
                "plan {plan_id} of service {service_id} is not offered{place}"
            ));
        }
        let (lapse, text) = match (self.offering(service_id), self.plan(plan_id)) {
            (None, _) => (
                Lapse::ServiceUnknown,
                format!(
                    "service {service_id} is in no registry and no Application; fetch the catalog again"
                ),
            ),
            (Some(_), Some(_)) => (
                Lapse::PlanUnknown,
                format!("plan {plan_id} belongs to another service than {service_id}"),
            ),
            (Some(offering), None) => (
                Lapse::PlanUnknown,
                format!(
                    "service {} ({service_id}) has no plan {plan_id}; fetch the catalog again",
                    offering.name
                ),
            ),
        };
        OsbError::OutOfSync { lapse, text }
    }

    /// Whether parameters are as the plan wants them; a plan that is not known any more wants nothing.
    pub(crate) fn check(
        &self,
        plan: Option<&Plan>,
        action: ParameterAction,
        parameters: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), OsbError> {
        let Some(plan) = plan else { return Ok(()) };
        self.validators
            .check(&self.catalog, plan, action, parameters)
            .map_err(OsbError::Invalid)
    }

    fn offering(&self, service_id: &str) -> Option<&Offering> {
        let mut offerings = self.catalog.offerings.iter();
        let offering = offerings.find(|offering| offering.id == service_id)?;
        Some(offering)
    }
}

fn told_withdrawn(service_id: &str, withdrawal: &Withdrawal) -> String {
    let Withdrawal {
        name,
        registry,
        since,
        reason,
    } = withdrawal;
    let when = since.map_or_else(String::new, |since| format!(" at {since}"));
    let why = reason.map_or("it is being removed", |reason| match reason {
        MarkReason::RemovedFromRegistry => "its repository is gone",
        MarkReason::TagRemoved => "its tag is gone",
        MarkReason::NotABundle => "its image is no bundle any more",
        MarkReason::Filtered => "the registry's settings do not admit it any more",
        MarkReason::RegistryRemoved => "the registry was removed",
        MarkReason::Admin => "an administrator withdrew it",
        MarkReason::HiddenByStalePolicy => {
            "the registry cannot be read; it comes back when the registry does"
        }
    });
    format!(
        "service {name} ({service_id}) of registry {registry} was withdrawn{when}: {why}; fetch the catalog again"
    )
}

/// Refuses a platform that does not ask again where it would have to. A plan that is not known any more demands nothing.
pub(crate) fn check_pace(
    pace: Option<Pace>,
    asynchronous: bool,
    what: impl FnOnce() -> String,
) -> Result<(), OsbError> {
    if pace == Some(Pace::Patient) && !asynchronous {
        return Err(OsbError::AsyncRequired { what: what() });
    }
    Ok(())
}
