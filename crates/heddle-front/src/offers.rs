//! What the front needs to know of the catalog, and how a request looks at it.
//!
//! A request takes one catalog from the shelf and keeps it to its end. *Known* and *offered* are two questions: whatever is
//! known can be bound, changed and removed, but only what is offered can be had anew.

use std::fmt::Debug;
use std::sync::Arc;

use crate::catalog::{Catalog, Document, Level, LiveOffers, Offering, Pace, Plan};
use crate::error::Refusal;
use crate::parameters::{Action, Validators};
use crate::version::Version;

/// Where the catalog comes from.
pub trait Offers: Debug + Send + Sync {
    /// Whether everything that can be offered has been read once.
    fn is_ready(&self) -> bool;

    /// Everything that is known, offered or withdrawn. Swapped whole: the same catalog is the same `Arc`.
    fn catalog(&self) -> Arc<Catalog>;

    /// Whether a plan can be had in a namespace, or in any.
    fn is_offered(&self, namespace: Option<&str>, service_id: &str, plan_id: &str) -> bool;

    /// The catalog as a platform of that version may read it.
    fn document(&self, namespace: Option<&str>, version: Version) -> Document;
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

    fn document(&self, namespace: Option<&str>, version: Version) -> Document {
        Self::document(self, namespace, Level::of_minor(version.minor()))
    }
}

/// The catalog, as one request sees it.
#[derive(Debug)]
pub(crate) struct Shelf<'a> {
    offers: &'a dyn Offers,
    scope: Option<&'a str>,
    validators: &'a Validators,
    catalog: Arc<Catalog>,
}

impl<'a> Shelf<'a> {
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
    ) -> Result<(&Offering, &Plan), Refusal> {
        match self.find(service_id, plan_id) {
            Some(found) if self.offers.is_offered(self.scope, service_id, plan_id) => Ok(found),
            found => Err(self.why_not(service_id, plan_id, found.is_some())),
        }
    }

    /// A refusal for what is not known or not offered. Before everything was read once, nobody can say that it is not.
    pub(crate) fn why_not(&self, service_id: &str, plan_id: &str, known: bool) -> Refusal {
        if !self.offers.is_ready() {
            return Refusal::Busy("the catalog has not been read yet".to_owned());
        }
        if known {
            let place = self.scope.map_or_else(String::new, |namespace| {
                format!(" in namespace {namespace}; an ApplicationMapping there would offer it")
            });
            return Refusal::NotOffered(format!(
                "plan {plan_id} of service {service_id} is not offered{place}"
            ));
        }
        let text = match (self.offering(service_id), self.plan(plan_id)) {
            (None, _) => format!("service {service_id} is not in the catalog"),
            (Some(_), Some(_)) => {
                format!("plan {plan_id} belongs to another service than {service_id}")
            }
            (Some(_), None) => {
                format!("plan {plan_id} of service {service_id} is not in the catalog")
            }
        };
        Refusal::NotOffered(text)
    }

    /// Whether parameters are as the plan wants them; a plan that is not known any more wants nothing.
    pub(crate) fn check(
        &self,
        plan: Option<&Plan>,
        action: Action,
        parameters: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), Refusal> {
        let Some(plan) = plan else { return Ok(()) };
        self.validators
            .check(&self.catalog, plan, action, parameters)
            .map_err(Refusal::Invalid)
    }

    fn offering(&self, service_id: &str) -> Option<&Offering> {
        self.catalog
            .offerings
            .iter()
            .find(|offering| offering.id == service_id)
    }
}

/// Refuses a platform that does not ask again where it would have to. A plan that is not known any more demands nothing.
pub(crate) fn check_pace(
    pace: Option<Pace>,
    asynchronous: bool,
    what: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    if pace == Some(Pace::Patient) && !asynchronous {
        return Err(Refusal::AsyncRequired { what: what() });
    }
    Ok(())
}
