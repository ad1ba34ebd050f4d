//! What is served: every resource, read once from its CustomResourceDefinition or from the built-in table.
//!
//! Discovery, OpenAPI, validation, tables and selectors all derive from this value; nothing else in the crate
//! knows a kind by name. The registry is immutable after start.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::jsonpath::JsonPath;
use crate::schema::Schema;
use crate::table::Columns;

mod absent;
mod admission;
mod builtin;

/// One served resource: names, shape, and the few ways in which kinds differ.
#[derive(Debug)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub has_status: bool,
    pub schema: Schema,
    /// The OpenAPI v3 schema as published, before compilation.
    pub openapi: Value,
    pub columns: Columns,
    /// `spec.foo` style names usable in a field selector, with the path that reads each.
    pub selectable: Vec<(String, JsonPath)>,
    /// The name under which objects are stored: two served forms may share one.
    pub storage: Arc<str>,
    pub nature: Nature,
    /// Rules that the schema cannot express.
    pub(crate) check: Option<admission::Check>,
    /// Defaults that the schema cannot express.
    pub(crate) defaults: Option<admission::Defaults>,
}

/// How a kind departs from an ordinary custom resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    Custom,
    /// Written only by heddle's own controllers; users may read it.
    Projection,
    /// Decoded into its real type before it is stored, so that what is accepted here is accepted on a cluster.
    BuiltIn(BuiltIn),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltIn {
    Namespace,
    Secret,
    ConfigMap,
    /// The core/v1 form, which is also the stored one.
    Event,
    /// The events.k8s.io/v1 form of the same objects.
    EventV1,
    Lease,
    /// Seeded at start, read-only.
    CustomResourceDefinition,
    /// A kind that only a cluster has: known, so that clients that ask for all of them go on, and always empty.
    Absent,
}

impl Resource {
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `triggers.eventing.knative.dev`, as messages name a resource.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `Trigger.eventing.knative.dev`, as validation messages name a kind.
    pub fn kind_qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    pub fn is(&self, builtin: BuiltIn) -> bool {
        self.nature == Nature::BuiltIn(builtin)
    }

    /// Custom resources insist on a resourceVersion in a replace; most built-ins allow a blind one.
    pub fn allows_blind_update(&self) -> bool {
        matches!(self.nature, Nature::BuiltIn(_))
    }

    pub fn verbs(&self) -> &'static [&'static str] {
        match self.nature {
            Nature::BuiltIn(BuiltIn::CustomResourceDefinition | BuiltIn::Absent) => {
                &["get", "list", "watch"]
            }
            // Namespaces go one at a time: each takes everything in it along.
            Nature::BuiltIn(BuiltIn::Namespace) => &[
                "create", "delete", "get", "list", "patch", "update", "watch",
            ],
            Nature::BuiltIn(_) => &[
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch",
            ],
            // The order in which a real server names the verbs of custom kinds.
            Nature::Custom | Nature::Projection => &[
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "create",
                "update",
                "watch",
            ],
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot serve {crd}: {why}")]
    Unusable { crd: String, why: String },
}

#[derive(Debug)]
pub struct Registry {
    /// Sorted by group, version, plural; discovery and OpenAPI walk it in this order.
    resources: Vec<Arc<Resource>>,
    by_path: BTreeMap<(String, String, String), Arc<Resource>>,
    crds: Vec<CustomResourceDefinition>,
}

impl Registry {
    /// The built-in kinds plus one resource per definition. `projections` names kinds that only heddle writes.
    pub fn new(crds: Vec<CustomResourceDefinition>, projections: &[String]) -> Result<Self, Error> {
        let mut resources = builtin::resources()?;
        resources.extend(absent::resources()?);
        for crd in &crds {
            resources.push(from_crd(crd, projections)?);
        }
        resources.sort_by(|a, b| {
            (&a.group, &a.version, &a.plural).cmp(&(&b.group, &b.version, &b.plural))
        });
        let resources: Vec<Arc<Resource>> = resources.into_iter().map(Arc::new).collect();
        let by_path = resources
            .iter()
            .map(|r| {
                (
                    (r.group.clone(), r.version.clone(), r.plural.clone()),
                    Arc::clone(r),
                )
            })
            .collect();
        Ok(Self {
            resources,
            by_path,
            crds,
        })
    }

    /// Every kind of heddle's own, with its projections, and those of old meshes.
    pub fn heddle() -> Result<Self, Error> {
        let projections: Vec<String> = heddle_api::read_only_kinds()
            .into_iter()
            .map(|crd| crd.spec.names.kind)
            .collect();
        let mut crds = heddle_api::crds();
        crds.extend(heddle_api::legacy_crds());
        Self::new(crds, &projections)
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    pub fn builtin(&self, builtin: BuiltIn) -> &Arc<Resource> {
        self.resources
            .iter()
            .find(|r| r.is(builtin))
            .expect("every built-in kind is registered")
    }

    /// The definitions behind the custom kinds, as clients may read them.
    pub fn crds(&self) -> &[CustomResourceDefinition] {
        &self.crds
    }

    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// The resources that own stored objects: each stored object belongs to exactly one of these.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter().filter(|r| !r.is(BuiltIn::EventV1))
    }

    pub fn by_storage(&self, storage: &str) -> Option<&Arc<Resource>> {
        self.stored().find(|r| &*r.storage == storage)
    }

    /// An object's own idea of what it is, resolved: used for owner references.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.resources
            .iter()
            .find(|r| r.kind == kind && r.api_version() == api_version)
    }
}

/// Whether a group is only there for migrations from it.
pub(crate) fn is_of_an_old_mesh(group: &str) -> bool {
    group == heddle_api::legacy_subscription::GROUP
}

fn from_crd(crd: &CustomResourceDefinition, projections: &[String]) -> Result<Resource, Error> {
    let name = crd.metadata.name.clone().unwrap_or_default();
    let unusable = |why: &str| Error::Unusable {
        crd: name.clone(),
        why: why.to_owned(),
    };
    let spec = &crd.spec;
    let version = spec
        .versions
        .iter()
        .find(|v| v.served && v.storage)
        .ok_or_else(|| unusable("no served storage version"))?;
    let openapi = version
        .schema
        .as_ref()
        .and_then(|s| s.open_api_v3_schema.as_ref())
        .map(serde_json::to_value)
        .transpose()
        .map_err(|e| unusable(&e.to_string()))?
        .ok_or_else(|| unusable("no schema"))?;
    let schema = Schema::compile(&openapi).map_err(|e| unusable(&e.to_string()))?;
    let columns = serde_json::to_value(
        version
            .additional_printer_columns
            .clone()
            .unwrap_or_default(),
    )
    .map_err(|e| unusable(&e.to_string()))?;
    let mut selectable = Vec::new();
    for field in version.selectable_fields.iter().flatten() {
        let path = JsonPath::parse(&field.json_path).map_err(|e| unusable(&e.to_string()))?;
        selectable.push((field.json_path.trim_start_matches('.').to_owned(), path));
    }
    let nature = if projections.contains(&spec.names.kind) {
        Nature::Projection
    } else {
        Nature::Custom
    };
    Ok(Resource {
        group: spec.group.clone(),
        version: version.name.clone(),
        kind: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
        singular: spec
            .names
            .singular
            .clone()
            .unwrap_or_else(|| spec.names.kind.to_lowercase()),
        short_names: spec.names.short_names.clone().unwrap_or_default(),
        categories: spec.names.categories.clone().unwrap_or_default(),
        namespaced: spec.scope == "Namespaced",
        has_status: version
            .subresources
            .as_ref()
            .is_some_and(|s| s.status.is_some()),
        schema,
        openapi,
        columns: Columns::compile(Some(&columns)).map_err(|e| unusable(&e.to_string()))?,
        selectable,
        storage: format!("{}.{}", spec.names.plural, spec.group).into(),
        nature,
        check: admission::check_of(&spec.group, &spec.names.kind),
        defaults: admission::defaults_of(&spec.group, &spec.names.kind),
    })
}
