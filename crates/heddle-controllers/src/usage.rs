//! Who uses which bundle and which revision, told from instances and bindings as they are stored.
//!
//! What is in use is never removed, so doubt counts as use: of an object that does not say what it refers to, everything it
//! may refer to is in use, and nothing else. Objects are therefore read without their types: one that no longer fits its
//! kind is one more user, not the end of the list.
//!
//! Reading everybody is costly, so a cache ([`Known`]) is asked first: who is in it keeps what it uses without further
//! questions. Only that nobody is in it proves nothing.

use std::collections::BTreeSet;
use std::fmt::Debug;

use heddle_api::operation::RevisionReference;
use heddle_api::{BundleRevision, ServiceBinding, ServiceInstance};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource, ResourceExt as _};
use serde_json::Value;

use crate::Watches;
use crate::reconcile::{Ctx, Error};
use crate::references::{Index, Target};

/// Where revisions are named.
const PINS: [&str; 2] = ["/spec/revisionRef", "/status/applied/revisionRef"];

/// All users, at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage(Vec<User>);

#[derive(Debug, Clone)]
struct User {
    /// For people.
    what: String,
    /// Id of the offering; `None` if it cannot be told.
    service: Option<String>,
    /// Names of revisions; `None` if they cannot be told.
    revisions: Option<BTreeSet<String>>,
}

impl Usage {
    /// Everybody there is now: live, in all namespaces, whatever their state.
    pub(crate) async fn read(ctx: &Ctx) -> Result<Self, Error> {
        let mut users = list::<ServiceInstance>(ctx).await?;
        users.extend(list::<ServiceBinding>(ctx).await?);
        Ok(Self(users))
    }

    #[cfg(test)]
    pub(crate) fn of(objects: &[DynamicObject]) -> Self {
        Self(objects.iter().map(|object| user("", object)).collect())
    }

    /// Who may use the bundle with this offering, by name.
    pub(crate) fn of_service(&self, service: &str) -> Vec<&str> {
        let users = self.0.iter();
        let uses = |user: &&User| user.service.as_deref().is_none_or(|used| used == service);
        users.filter(uses).map(|user| user.what.as_str()).collect()
    }

    /// Who may use a revision of a bundle, by name. `service` is the bundle's offering, if the bundle is still known.
    pub(crate) fn of_revision(&self, revision: &str, service: Option<&str>) -> Vec<&str> {
        let uses = |user: &&User| match (&user.revisions, &user.service, service) {
            (Some(revisions), ..) => revisions.contains(revision),
            (None, Some(used), Some(service)) => used == service,
            (None, ..) => true,
        };
        let users = self.0.iter();
        users.filter(uses).map(|user| user.what.as_str()).collect()
    }
}

/// Users, as caches know them.
#[derive(Clone)]
pub(crate) struct Known {
    instances: Index<ServiceInstance>,
    bindings: Index<ServiceBinding>,
}

impl Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl Known {
    /// Follows instances and bindings from now on. Whoever is woken by them must be connected after this.
    pub(crate) fn new(watches: &mut Watches) -> Self {
        let known = Self {
            instances: Index::new(),
            bindings: Index::new(),
        };
        let index = known.instances.clone();
        (watches.instances).on_change(move |change| index.update(change, of_instance));
        let index = known.bindings.clone();
        (watches.bindings).on_change(move |change| index.update(change, of_binding));
        known
    }

    /// Whoever is known to use an offering or a revision, by name.
    pub(crate) fn of(&self, target: &Target) -> Vec<String> {
        let instances = self.instances.referring(target);
        let bindings = self.bindings.referring(target);
        let instances = instances
            .iter()
            .map(|user| format!("ServiceInstance {}", key(user)));
        let bindings = bindings
            .iter()
            .map(|user| format!("ServiceBinding {}", key(user)));
        instances.chain(bindings).collect()
    }
}

fn key<K: Resource<DynamicType = ()>>(object: &ObjectRef<K>) -> String {
    let namespace = object.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", object.name)
}

/// An offering, as something to refer to: its users name its id, not its bundle.
pub(crate) fn offering(service: &str) -> Target {
    Target::new("offering", "", service)
}

fn revision(pin: &RevisionReference) -> Target {
    Target::of::<BundleRevision>("", &pin.name)
}

/// What an instance uses.
pub(crate) fn of_instance(instance: &ServiceInstance) -> Vec<Target> {
    let applied = instance
        .status
        .as_ref()
        .and_then(|status| status.applied.as_ref());
    let applied = applied.and_then(|applied| applied.revision_ref.as_ref());
    let pins = instance.spec.revision_ref.iter().chain(applied);
    let mut uses: Vec<Target> = pins.map(revision).collect();
    uses.push(offering(&instance.spec.service_id));
    uses
}

/// What a binding uses.
pub(crate) fn of_binding(binding: &ServiceBinding) -> Vec<Target> {
    let mut uses: Vec<Target> = binding.spec.revision_ref.iter().map(revision).collect();
    uses.push(offering(&binding.spec.service_id));
    uses
}

async fn list<K: Resource<DynamicType = ()>>(ctx: &Ctx) -> Result<Vec<User>, Error> {
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::all_with(ctx.client.clone(), &resource);
    let found = api.list(&ListParams::default()).await?;
    let kind = &resource.kind;
    Ok(found.iter().map(|object| user(kind, object)).collect())
}

fn user(kind: &str, object: &DynamicObject) -> User {
    let namespace = object.namespace().unwrap_or_default();
    let service = object.data.pointer("/spec/serviceID");
    User {
        what: format!("{kind} {namespace}/{}", object.name_any()),
        service: service.and_then(Value::as_str).map(str::to_owned),
        revisions: named(&object.data),
    }
}

fn named(object: &Value) -> Option<BTreeSet<String>> {
    let pins = PINS.iter().filter_map(|path| object.pointer(path));
    let pins = pins.filter(|pin| !pin.is_null());
    pins.map(|pin| pin.get("name")?.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests;
