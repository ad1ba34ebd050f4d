//! Which Application stands behind an offering, for instances that do not say.
//!
//! The front pins each instance to its Application. An instance that somebody wrote by hand names only an offering and a
//! plan, and is pinned by the controller: to the oldest Application that offers them.

use heddle_api::Application;
use heddle_api::service_instance::ApplicationService;
use kube::ResourceExt as _;

use crate::references::Target;
use crate::watch::Change;

/// Not a kind, but referred to like one: the id of an offering or plan.
pub(super) const OFFER: &str = "offer";

/// What a change of an Application concerns: whoever refers to it, or to an id under which it may be asked for, before or
/// after the change.
pub(crate) fn offers(change: &Change<'_, Application>) -> Vec<Target> {
    let old = match change {
        Change::Applied { old: Some(old), .. } => stands_for(old),
        _ => Vec::new(),
    };
    let new = stands_for(change.object());
    let gone = old.into_iter().filter(|target| !new.contains(target));
    gone.chain(new.iter().cloned()).collect()
}

fn stands_for(application: &Application) -> Vec<Target> {
    let spec = &application.spec;
    let services = spec.services.iter().map(|service| service.id.as_str());
    let compass = spec.compass_metadata.iter();
    let whole = compass.map(|compass| compass.application_id.as_str());
    let ids = services.chain(whole).map(|id| Target::new(OFFER, "", id));
    let itself = Target::of::<Application>("", &application.name_any());
    std::iter::once(itself).chain(ids).collect()
}

/// What somebody refers to who knows only the ids of an offering and a plan.
pub(crate) fn wanted(service_id: &str, plan_id: &str) -> Vec<Target> {
    vec![
        Target::new(OFFER, "", service_id),
        Target::new(OFFER, "", plan_id),
    ]
}

/// The service that an offering and plan mean. Each service may be an offering of its own, or a plan of its Application.
pub(super) fn resolve(
    applications: &[Application],
    service_id: &str,
    plan_id: &str,
) -> Option<ApplicationService> {
    let mut live: Vec<&Application> = applications
        .iter()
        .filter(|application| application.metadata.deletion_timestamp.is_none())
        .collect();
    live.sort_by_key(|application| {
        let made = application.creation_timestamp().map(|time| time.0);
        (made, application.name_any())
    });
    let has = |application: &Application, id: &str| {
        application
            .spec
            .services
            .iter()
            .any(|service| service.id == id)
    };
    let whole = |application: &Application| {
        let compass = application.spec.compass_metadata.as_ref();
        compass.is_some_and(|compass| compass.application_id == service_id)
    };
    let pin = |application: &Application, id: &str| ApplicationService {
        name: application.name_any(),
        service_id: id.to_owned(),
    };
    let offering = live.iter().find(|application| has(application, service_id));
    let plan = || {
        live.iter()
            .find(|application| whole(application) && has(application, plan_id))
    };
    offering
        .map(|application| pin(application, service_id))
        .or_else(|| plan().map(|application| pin(application, plan_id)))
}
