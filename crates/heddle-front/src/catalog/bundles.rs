//! From Bundles and their revisions to offerings. Pure: what was put in, in whatever order, gives the same catalog.
//!
//! ```text
//!   BundleRevision ──once──> Revised ──┐
//!   Bundle, its registry's tag ────────┴──> Draft ──┐  only of what changed
//!   drafts of all bundles, offerings of all Applications ──┴──> Catalog: who has which id and name
//! ```
//! A bundle is offered as its current revision describes it. Plans that only older revisions have, and everything of a
//! bundle that is withdrawn, stay known. A bundle that cannot be offered is left out alone, and the catalog says why.
//!
//! Applications come first where an id or a name is wanted twice, and older bundles before younger ones. Of two that want
//! one id, one is left out; of two that want one name, one gets another.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use heddle_api::bundle::{Bundle, BundlePhase};
use heddle_api::bundle_revision::BundleRevision;
use heddle_api::description::{self, Description, PlanDescription, form_definition};
use heddle_api::offer::{self, bundle as ids};
use heddle_api::operation::RevisionReference;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::compile::{POLLING_SECONDS, cut, described, say, tags};
use super::{Backing, Catalog, LeftOut, Offering, Pace, Plan, Schemas, Withdrawal};

/// Everything that is known of bundles, taken apart as far as it can be without looking at others.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    revisions: BTreeMap<String, Kept>,
    /// Names of revisions by that of their bundle.
    of_bundle: HashMap<String, BTreeSet<String>>,
    drafts: BTreeMap<String, Draft>,
}

/// A revision, which never changes; another of the same name has another uid.
#[derive(Debug)]
struct Kept {
    uid: Option<String>,
    bundle: String,
    revised: Result<Arc<Revised>, String>,
}

/// What a revision says.
#[derive(Debug)]
struct Revised {
    created: Timestamp,
    reference: RevisionReference,
    image: String,
    description: Description,
    schemas: Vec<description::Schemas>,
}

/// A bundle by itself.
#[derive(Debug)]
struct Draft {
    since: Timestamp,
    service_id: String,
    /// As the current revision has it, or else the newest that can be read.
    offering: Option<Arc<Offering>>,
    /// Why it is not offered although it is not withdrawn.
    fault: Option<String>,
    current: Option<String>,
    /// As each revision has it.
    revisions: Vec<(String, Arc<Offering>)>,
    withdrawal: Option<Withdrawal>,
}

impl Bundles {
    /// Takes in a revision; the bundle whose draft is then out of date, if it is.
    pub(super) fn put_revision(&mut self, revision: &BundleRevision) -> Option<String> {
        let name = revision.name_any();
        let known = self.revisions.get(&name);
        if known.is_some_and(|known| known.uid.is_some() && known.uid == revision.metadata.uid) {
            return None;
        }
        self.remove_revision(&name);
        let bundle = revision.spec.bundle.clone();
        let of_bundle = self.of_bundle.entry(bundle.clone()).or_default();
        of_bundle.insert(name.clone());
        let kept = Kept {
            uid: revision.metadata.uid.clone(),
            bundle: bundle.clone(),
            revised: revised(revision).map(Arc::new),
        };
        self.revisions.insert(name, kept);
        Some(bundle)
    }

    /// Forgets a revision; the bundle whose draft is then out of date.
    pub(super) fn remove_revision(&mut self, name: &str) -> Option<String> {
        let bundle = self.revisions.remove(name)?.bundle;
        if let Some(names) = self.of_bundle.get_mut(&bundle) {
            names.remove(name);
            if names.is_empty() {
                self.of_bundle.remove(&bundle);
            }
        }
        Some(bundle)
    }

    /// Names of all revisions.
    pub(super) fn revisions(&self) -> BTreeSet<String> {
        self.revisions.keys().cloned().collect()
    }

    /// Names of all bundles that have a draft.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.drafts.keys().cloned().collect()
    }

    /// Makes the draft of a bundle anew. `default_track` is the tag that its registry follows in every repository.
    pub(super) fn redraft(&mut self, name: &str, bundle: Option<&Bundle>, default_track: &str) {
        let Some(bundle) = bundle else {
            self.drafts.remove(name);
            return;
        };
        let names = self.of_bundle.get(name).into_iter().flatten();
        let kept: Vec<(&String, &Kept)> = names
            .filter_map(|name| self.revisions.get_key_value(name))
            .collect();
        let draft = draft(bundle, default_track, &kept);
        self.drafts.insert(name.to_owned(), draft);
    }

    /// The catalog of these and of what Applications offer.
    pub(super) fn assemble(&self, applications: &[Arc<Offering>]) -> Catalog {
        let mut catalog = Catalog::default();
        let is_offered = |offering: &&Arc<Offering>| offering.plans.iter().any(|p| !p.withdrawn);
        let mut taken = Taken {
            ids: applications
                .iter()
                .map(|one| (one.id.as_str(), IdOwner::Application(&one.name)))
                .collect(),
            names: applications
                .iter()
                .filter(is_offered)
                .map(|one| Cow::Borrowed(one.name.as_str()))
                .collect(),
            plans: HashSet::new(),
        };
        catalog.offerings.extend(applications.iter().cloned());
        let mut drafts: Vec<(&String, &Draft)> = self.drafts.iter().collect();
        drafts.sort_by_key(|(name, draft)| (draft.since, *name));
        for (bundle, draft) in drafts {
            draft.enter(bundle, &mut taken, &mut catalog);
        }
        let offerings = &mut catalog.offerings;
        offerings.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        catalog
    }
}

/// Who has an id.
#[derive(Clone, Copy)]
enum IdOwner<'a> {
    /// An Application's service of that name.
    Application(&'a str),
    /// The Bundle of that name.
    Bundle(&'a str),
}

impl fmt::Display for IdOwner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application(name) => write!(f, "the Application's service {name}"),
            Self::Bundle(name) => write!(f, "Bundle {name}, which is older,"),
        }
    }
}

/// What somebody has already. All of it is gone through whenever anything changes, so nothing is copied.
struct Taken<'a> {
    ids: HashMap<&'a str, IdOwner<'a>>,
    names: HashSet<Cow<'a, str>>,
    /// Ids of plans, as far as two can be the same by anything but copying.
    plans: HashSet<&'a str>,
}

impl Draft {
    fn enter<'a>(&'a self, bundle: &'a str, taken: &mut Taken<'a>, catalog: &mut Catalog) {
        let leave_out = |catalog: &mut Catalog, why: String| {
            let left_out = LeftOut {
                service_id: self.service_id.clone(),
                why,
            };
            catalog.left_out.insert(bundle.to_owned(), left_out);
        };
        if let Some(owner) = taken.ids.get(self.service_id.as_str()) {
            let why = format!(
                "{owner} has the same id and comes first: remove one of the two, or read one from a registry with ids of the \
                 scheme uuid"
            );
            return leave_out(catalog, why);
        }
        taken.ids.insert(&self.service_id, IdOwner::Bundle(bundle));
        if let Some(withdrawal) = &self.withdrawal {
            let (id, withdrawal) = (self.service_id.clone(), withdrawal.clone());
            catalog.withdrawn.insert(id, withdrawal);
        }
        if let Some(why) = &self.fault {
            leave_out(catalog, why.clone());
        }
        let Some(drafted) = &self.offering else {
            return;
        };
        let mut offering = Arc::clone(drafted);
        if self.is_offered() {
            // The older broker made ids of plans from names alone, with no sign between them.
            let short = |plan: &&Plan| plan.id.len() == MD5_CHARS;
            let mut short = drafted.plans.iter().filter(short);
            if let Some(plan) = short.find(|plan| !taken.plans.insert(&plan.id)) {
                let why = format!(
                    "plan {} has the id of another bundle's: use ids of the scheme uuid",
                    plan.name
                );
                leave_out(catalog, why);
                offering = Arc::new(withdrawn(drafted));
            } else if !taken.names.insert(Cow::Borrowed(&drafted.name)) {
                let apart = ids::told_apart(&offering.name, &self.service_id);
                taken.names.insert(Cow::Owned(apart.clone()));
                Arc::make_mut(&mut offering).name = apart;
            }
        }
        for (name, revision) in &self.revisions {
            let known = if self.current.as_ref() == Some(name) {
                &offering
            } else {
                revision
            };
            catalog.revisions.insert(name.clone(), Arc::clone(known));
        }
        catalog.offerings.push(offering);
    }

    fn is_offered(&self) -> bool {
        self.fault.is_none() && self.withdrawal.is_none()
    }
}

/// How long the older broker's ids are.
const MD5_CHARS: usize = 32;

/// Takes a revision apart. What is wrong with it was found when it was read from its registry, unless rules have changed
/// since; whether its patterns suit the engine that will match them is found out here.
fn revised(revision: &BundleRevision) -> Result<Revised, String> {
    let spec = &revision.spec;
    let description = Description::of(&spec.description)?;
    let schemas: Vec<description::Schemas> = description
        .plans
        .iter()
        .map(PlanDescription::schemas)
        .collect();
    for (plan, schemas) in description.plans.iter().zip(&schemas) {
        for schema in [&schemas.create, &schemas.update, &schemas.bind] {
            jsonschema::options().build(schema).map_err(|error| {
                let why = error.masked().to_string();
                format!("the parameters of plan {} make no schema: {why}", plan.name)
            })?;
        }
    }
    let created = revision.metadata.creation_timestamp.as_ref();
    Ok(Revised {
        created: created.map_or(Timestamp::MAX, |time| time.0),
        reference: RevisionReference {
            name: revision.name_any(),
            digest: spec.manifest_digest.clone(),
            bundle_version: spec.bundle_version.clone(),
        },
        image: format!("{}@{}", spec.image, spec.manifest_digest),
        description,
        schemas,
    })
}

fn draft(bundle: &Bundle, default_track: &str, kept: &[(&String, &Kept)]) -> Draft {
    let spec = &bundle.spec;
    let origin = ids::Origin {
        registry: &spec.registry,
        repository: &spec.repository,
        track: &spec.track,
        is_default_track: spec.track == default_track,
    };
    let status = bundle.status.as_ref();
    let current = status.and_then(|status| status.current_revision.clone());
    let mut sound: Vec<&Arc<Revised>> = kept
        .iter()
        .filter_map(|(_, kept)| kept.revised.as_ref().ok())
        .collect();
    // The newest first: of two that have a plan which the current one has not, it is taken from there.
    sound.sort_by(|a, b| (b.created, &b.reference.name).cmp(&(a.created, &a.reference.name)));
    let is_current = |revised: &&&Arc<Revised>| Some(&revised.reference.name) == current.as_ref();
    let now = sound.iter().find(is_current).copied();
    let fault = match (&current, now) {
        (_, Some(_)) => None,
        (None, _) => Some(format!(
            "no image of it could be used yet; Bundle {} says what is wrong with the newest",
            bundle.name_any()
        )),
        (Some(name), None) => {
            let kept = kept.iter().find(|(kept, _)| *kept == name);
            Some(match kept.map(|(_, kept)| &kept.revised) {
                Some(Err(why)) => format!(
                    "its BundleRevision {name} cannot be offered: {why}; push an image with a description that can"
                ),
                _ => format!(
                    "its BundleRevision {name} is not there; `heddle registry sync {}` makes it again",
                    spec.registry
                ),
            })
        }
    };
    let phase = status.map_or(BundlePhase::Live, |status| status.phase);
    let leaving = bundle.metadata.deletion_timestamp.as_ref();
    let name_of = |revised: &Revised| ids::name(&origin, &revised.description.name);
    let basis = now.or_else(|| sound.first().copied());
    let withdrawal = (phase != BundlePhase::Live || leaving.is_some()).then(|| {
        let mark = status.and_then(|status| status.mark.as_ref());
        Withdrawal {
            name: basis.map_or_else(|| spec.repository.clone(), |revised| name_of(revised)),
            registry: spec.registry.clone(),
            since: mark.map(|mark| &mark.since).or(leaving).map(|time| time.0),
            reason: mark.map(|mark| mark.reason),
        }
    });
    let offered = fault.is_none() && withdrawal.is_none();
    let revisions: Vec<(String, Arc<Offering>)> = sound
        .iter()
        .map(|revised| {
            let name = revised.reference.name.clone();
            let withdrawn = !(offered && Some(&name) == current.as_ref());
            let offering = offering(bundle, &origin, revised, withdrawn);
            (name, Arc::new(offering))
        })
        .collect();
    let offering = basis.map(|basis| {
        let of = |name: &String| revisions.iter().find(|(other, _)| other == name);
        let (_, own) = of(&basis.reference.name).expect("every sound revision has an offering");
        with_older_plans(own, &revisions)
    });
    let created = bundle.metadata.creation_timestamp.as_ref();
    Draft {
        since: created.map_or(Timestamp::MAX, |time| time.0),
        service_id: spec.service_id.clone(),
        offering,
        fault: fault.filter(|_| withdrawal.is_none()),
        current,
        revisions,
        withdrawal,
    }
}

/// An offering with the plans that only other revisions have.
fn with_older_plans(own: &Arc<Offering>, revisions: &[(String, Arc<Offering>)]) -> Arc<Offering> {
    let mut ids: HashSet<&str> = own.plans.iter().map(|plan| plan.id.as_str()).collect();
    let others = revisions.iter().flat_map(|(_, offering)| &offering.plans);
    let missing: Vec<&Plan> = others.filter(|plan| ids.insert(&plan.id)).collect();
    if missing.is_empty() {
        return Arc::clone(own);
    }
    let mut offering = Offering::clone(own);
    offering.plans.extend(missing.into_iter().map(|plan| Plan {
        withdrawn: true,
        ..plan.clone()
    }));
    Arc::new(offering)
}

fn withdrawn(offering: &Offering) -> Offering {
    let mut offering = offering.clone();
    for plan in &mut offering.plans {
        plan.withdrawn = true;
    }
    offering
}

/// What a bundle is offered as in a revision.
fn offering(
    bundle: &Bundle,
    origin: &ids::Origin<'_>,
    revised: &Revised,
    withdrawn: bool,
) -> Offering {
    let description = &revised.description;
    let mut metadata = author_metadata(&description.metadata);
    let title = text(&metadata, "displayName").unwrap_or(&description.name);
    let title = ids::display_name(origin, title);
    let long = text(&metadata, "longDescription").unwrap_or_default();
    let sentence = described(&description.description, long, &title);
    say(&mut metadata, "displayName", &title);
    let version = revised.reference.bundle_version.as_deref();
    say(&mut metadata, "bundleVersion", version.unwrap_or_default());
    say(&mut metadata, "image", &revised.image);
    say(&mut metadata, "registry", origin.registry);
    say(&mut metadata, "track", origin.track);
    say(&mut metadata, "revision", &revised.reference.name);
    let mut names = HashSet::new();
    let plans = description.plans.iter().zip(&revised.schemas);
    let plans: Vec<Plan> = plans
        .map(|(described, schemas)| {
            let mut plan = plan(bundle, revised, described, schemas);
            // Two names may look the same once they suit a command line.
            if !names.insert(plan.name.clone()) {
                plan.name = ids::told_apart(&plan.name, &described.name);
            }
            Plan { withdrawn, ..plan }
        })
        .collect();
    Offering {
        id: bundle.spec.service_id.clone(),
        name: ids::name(origin, &description.name),
        description: sentence,
        tags: tags(&description.tags),
        requires: Vec::new(),
        bindable: description.bindable,
        plan_updateable: description
            .plans
            .iter()
            .any(|plan| !plan.updates_to.is_empty()),
        allow_context_updates: true,
        metadata,
        plans,
    }
}

fn plan(
    bundle: &Bundle,
    revised: &Revised,
    described: &PlanDescription,
    schemas: &description::Schemas,
) -> Plan {
    let spec = &bundle.spec;
    let (name, description) = (&revised.description.name, &revised.description);
    let id = |plan: &str| ids::plan_id(&spec.service_id, &spec.registry, name, plan);
    let bindable = described.bindable.unwrap_or(description.bindable);
    let mut metadata = author_metadata(&described.metadata);
    let title = text(&metadata, "displayName")
        .unwrap_or(&described.name)
        .to_owned();
    say(&mut metadata, "displayName", &title);
    let form = |parameters| json!({"openshift_form_definition": form_definition(parameters)});
    let updatable: Vec<description::Parameter> = described
        .parameters
        .iter()
        .filter(|parameter| parameter.updatable)
        .cloned()
        .collect();
    let forms = json!({
        "service_instance": {"create": form(&described.parameters), "update": form(&updatable)},
        "service_binding": {"create": form(&described.bind_parameters)},
    });
    metadata.insert("schemas".to_owned(), forms);
    let version = revised.reference.bundle_version.as_deref();
    Plan {
        id: id(&described.name),
        name: offer::name(&described.name),
        description: super::compile::described(&described.description, "", &title),
        withdrawn: false,
        free: described.free.unwrap_or(true),
        bindable: described.bindable,
        plan_updateable: Some(!described.updates_to.is_empty()),
        // A successor is a binding like any other, made by the bundle's own action.
        binding_rotatable: bindable,
        requires_app: false,
        maximum_polling_duration: POLLING_SECONDS,
        maintenance_version: version.and_then(ids::maintenance_version),
        metadata,
        schemas: Schemas {
            create: Some(schemas.create.clone()),
            update: Some(schemas.update.clone()),
            bind: bindable.then(|| schemas.bind.clone()),
        },
        // An action may take as long as its registry allows; one that hands out credentials is mostly done in a moment.
        instances: Pace::Patient,
        bindings: Pace::Prompt,
        backing: Backing::Bundle {
            bundle: bundle.name_any(),
            registry: spec.registry.clone(),
            plan: described.name.clone(),
            revision: revised.reference.clone(),
            updates_to: described.updates_to.iter().map(|plan| id(plan)).collect(),
        },
    }
}

/// What an author says for consoles, without what platforms refuse: empty texts and members without a value.
fn author_metadata(given: &Map<String, Value>) -> Map<String, Value> {
    let spoken = given.iter().filter_map(|(key, value)| match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some((key.clone(), cut(text).into())),
        value => Some((key.clone(), value.clone())),
    });
    spoken.collect()
}

fn text<'a>(metadata: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    metadata.get(key).and_then(Value::as_str)
}
