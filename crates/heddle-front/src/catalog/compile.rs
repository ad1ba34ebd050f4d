//! From Applications to a catalog. Pure: the same Applications, in whatever order, give the same catalog.
//!
//! | | each service an offering | each Application an offering |
//! |---|---|---|
//! | offering | id and name of the service | id that a directory gave the Application, or one from its name |
//! | plan | one, `<service id>-plan`, called `default` | one per service, with its id and name |
//! | bindable | if the service has an API | plan by plan, in the same way |
//! | parameters | anything | the service's schema |
//!
//! Names are bent into what platforms' command lines take ([`offer::name`]). Texts that are longer than platforms take are cut
//! here, and a schema that is not sound by the rules of its own draft is not published: one of either would make a platform
//! refuse the whole catalog.

use std::sync::Arc;

use heddle_api::application::{Application, ENTRY_API, Entry, Service};
use heddle_api::offer::{self, Mode, OfferState, Register};
use heddle_api::smoke;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::{Backing, Catalog, Offering, Pace, Plan, Schemas};

/// How offerings are made of Applications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    pub mode: Mode,
    /// Tells platforms, by a label on the offering, that a namespace needs a service only once.
    pub provision_only_once: bool,
}

/// The longest description that platforms keep.
const DESCRIPTION_CHARS_MAX: usize = 10_000;
/// The most characters that all tags of an offering may have together.
const TAGS_CHARS_MAX: usize = 2_048;
/// Seconds that platforms wait for an operation.
pub(super) const POLLING_SECONDS: u32 = 3_600;

const PROVISION_ONLY_ONCE: &str = "provisionOnlyOnce";
const DOCUMENTATION_PER_PLAN: &str = "documentation-per-plan";

/// Compiles the catalog of these Applications, without any bundles.
pub fn compile<'a>(
    applications: impl IntoIterator<Item = &'a Application>,
    rules: Rules,
) -> Catalog {
    let mut offerings = offerings(applications, rules);
    offerings.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    Catalog {
        offerings,
        ..Catalog::default()
    }
}

/// What these Applications offer, in no order.
pub(super) fn offerings<'a>(
    applications: impl IntoIterator<Item = &'a Application>,
    rules: Rules,
) -> Vec<Arc<Offering>> {
    // What smoke tests make is offered to nobody.
    let offers = |one: &&Application| !smoke::is_part("", &one.name_any());
    let applications: Vec<&Application> = applications.into_iter().filter(offers).collect();
    let register = Register::of(rules.mode, applications.iter().copied());
    let mut offerings: Vec<Offering> = Vec::new();
    for application in applications {
        let standings = register.standings(application);
        let services = application.spec.services.iter().zip(standings);
        // What means somebody else's service is not known here at all.
        let kept = services.filter(|(_, lifecycle)| *lifecycle != OfferState::Displaced);
        let leaving = application.metadata.deletion_timestamp.is_some();
        let kept = kept.map(|(service, lifecycle)| Kept {
            application,
            service,
            withdrawn: leaving || lifecycle != OfferState::Offered,
        });
        match rules.mode {
            Mode::PerService => offerings.extend(kept.map(|kept| of_service(&kept, rules))),
            Mode::PerApplication => offerings.extend(of_application(application, kept)),
        }
    }
    offerings.into_iter().map(Arc::new).collect()
}

/// A service that keeps its id.
struct Kept<'a> {
    application: &'a Application,
    service: &'a Service,
    withdrawn: bool,
}

fn of_service(kept: &Kept<'_>, rules: Rules) -> Offering {
    let service = kept.service;
    let mut labels: Map<String, Value> = labels(&service.labels);
    if rules.provision_only_once {
        labels.insert(PROVISION_ONLY_ONCE.to_owned(), json!("true"));
    }
    let mut metadata = named_metadata(service);
    say(
        &mut metadata,
        "providerDisplayName",
        &service.provider_display_name,
    );
    say(
        &mut metadata,
        "longDescription",
        service.long_description.as_deref().unwrap_or_default(),
    );
    say(&mut metadata, "applicationServiceId", &service.id);
    metadata.insert("labels".to_owned(), labels.into());
    if let Some(label) = only_access_label(service) {
        metadata.insert("bindingLabels".to_owned(), json!({label: "true"}));
    }
    let plan = Plan {
        id: offer::plan_id(&service.id),
        name: "default".to_owned(),
        description: "Default plan".to_owned(),
        metadata: Map::from_iter([("displayName".to_owned(), json!("Default"))]),
        bindable: None,
        ..of_kept(kept)
    };
    Offering {
        id: service.id.clone(),
        name: offer::name(&service.name),
        description: described(&service.description, &service.display_name, &service.name),
        tags: tags(&service.tags),
        bindable: service.has_api(),
        metadata,
        plans: vec![plan],
        ..offering()
    }
}

fn of_application<'a>(
    application: &Application,
    kept: impl Iterator<Item = Kept<'a>>,
) -> Option<Offering> {
    let mut plans: Vec<Plan> = kept.map(|kept| as_plan(&kept)).collect();
    if plans.is_empty() {
        return None;
    }
    plans.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    let (spec, name) = (&application.spec, application.name_any());
    let mut labels = labels(&spec.labels);
    labels.insert(DOCUMENTATION_PER_PLAN.to_owned(), json!("true"));
    let title = titled(spec.display_name.as_deref().unwrap_or_default(), &name);
    let mut metadata = Map::new();
    say(&mut metadata, "displayName", title);
    say(
        &mut metadata,
        "providerDisplayName",
        spec.provider_display_name.as_deref().unwrap_or_default(),
    );
    say(
        &mut metadata,
        "longDescription",
        spec.long_description.as_deref().unwrap_or_default(),
    );
    metadata.insert("labels".to_owned(), labels.into());
    Some(Offering {
        id: offer::offering_id(application),
        name: offer::name(&name),
        description: described(&spec.description, title, &name),
        tags: tags(&spec.tags),
        // Each plan says for itself.
        bindable: true,
        metadata,
        plans,
        ..offering()
    })
}

/// What is said about a service, beginning with what people call it.
fn named_metadata(service: &Service) -> Map<String, Value> {
    let mut metadata = Map::new();
    let title = titled(&service.display_name, &service.name);
    say(&mut metadata, "displayName", title);
    metadata
}

fn as_plan(kept: &Kept<'_>) -> Plan {
    let service = kept.service;
    let mut metadata = named_metadata(service);
    say(
        &mut metadata,
        "longDescription",
        service.long_description.as_deref().unwrap_or_default(),
    );
    say(&mut metadata, "applicationServiceId", &service.id);
    if let Some(label) = only_access_label(service) {
        metadata.insert("bindingLabels".to_owned(), json!({label: "true"}));
    }
    let schema = offer::parameter_schema(service).ok().flatten();
    Plan {
        id: service.id.clone(),
        name: offer::name(&service.name),
        description: described(&service.description, &service.display_name, &service.name),
        metadata,
        schemas: Schemas {
            create: schema.filter(jsonschema::meta::is_valid),
            ..Schemas::default()
        },
        ..of_kept(kept)
    }
}

/// What all offerings made of Applications have in common. Another plan is another service of the Application, so an instance
/// cannot change to it.
fn offering() -> Offering {
    Offering {
        plan_updateable: false,
        allow_context_updates: true,
        ..Offering::default()
    }
}

/// What follows from the entries of a service, whichever way it is offered.
fn of_kept(kept: &Kept<'_>) -> Plan {
    let (events, api) = (kept.service.sends_events(), kept.service.has_api());
    Plan {
        id: String::new(),
        name: String::new(),
        description: String::new(),
        withdrawn: kept.withdrawn,
        free: true,
        bindable: Some(api),
        plan_updateable: None,
        binding_rotatable: api,
        requires_app: false,
        maximum_polling_duration: POLLING_SECONDS,
        maintenance_version: None,
        metadata: Map::new(),
        schemas: Schemas::default(),
        // Events flow once a chain of objects is ready; for an API there is nothing to be made.
        instances: if events { Pace::Patient } else { Pace::Prompt },
        bindings: Pace::Prompt,
        backing: Backing::Application {
            name: kept.application.name_any(),
            service_id: kept.service.id.clone(),
            events,
            api,
        },
    }
}

/// The label that workloads need to reach the service, where there is one API and hence one such label.
fn only_access_label(service: &Service) -> Option<&str> {
    let is_api = |entry: &&Entry| entry.type_ == ENTRY_API;
    let mut apis = service.entries.iter().filter(is_api);
    match (apis.next(), apis.next()) {
        (Some(only), None) => only
            .access_label
            .as_deref()
            .filter(|label| !label.is_empty()),
        _ => None,
    }
}

fn labels(labels: &std::collections::BTreeMap<String, String>) -> Map<String, Value> {
    let labels = labels.iter();
    labels
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect()
}

/// Empty texts are left away: platforms refuse them.
pub(super) fn say(metadata: &mut Map<String, Value>, key: &str, text: &str) {
    if !text.is_empty() {
        metadata.insert(key.to_owned(), cut(text).into());
    }
}

fn titled<'a>(title: &'a str, name: &'a str) -> &'a str {
    if title.is_empty() { name } else { title }
}

pub(super) fn described(description: &str, title: &str, name: &str) -> String {
    cut(titled(description, titled(title, name)))
}

pub(super) fn cut(text: &str) -> String {
    if text.chars().count() <= DESCRIPTION_CHARS_MAX {
        return text.to_owned();
    }
    let kept = text.chars().take(DESCRIPTION_CHARS_MAX - 1);
    kept.chain(['…']).collect()
}

/// Tags as far as platforms take them; the first come first.
pub(super) fn tags(tags: &[String]) -> Vec<String> {
    let mut room = TAGS_CHARS_MAX;
    let fits = |tag: &&String| {
        let length = tag.chars().count();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let spoken = tags.iter().filter(|tag| !tag.is_empty());
    spoken.take_while(fits).cloned().collect()
}
