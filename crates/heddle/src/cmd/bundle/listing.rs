//! Bundles with what belongs to them: names, revisions, and who uses them.

use std::collections::BTreeMap;

use heddle_api::bundle::{BundlePhase, condition};
use heddle_api::conditions::Status;
use heddle_api::evidence::ImageName;
use heddle_api::{Bundle, BundleRevision, ServiceBinding, ServiceInstance};
use http::{Request, StatusCode};
use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use crate::client::osb::Osb;
use crate::client::{Remote, objects};
use crate::failure::Failure;
use crate::osb::STANDINGS_PATH;
use crate::output::harmless;

/// So many characters of an id are enough to mean it.
const PREFIX_CHARS_MIN: usize = 6;
/// So many characters of an id are shown.
const SHORT_CHARS: usize = 8;
/// More candidates than this help nobody.
const CANDIDATES_MAX: usize = 10;

/// All bundles and their revisions.
#[derive(Debug, Default)]
pub(in crate::cmd) struct BundleList {
    pub(in crate::cmd) bundles: Vec<Bundle>,
    pub(in crate::cmd) revisions: BTreeMap<String, BundleRevision>,
    /// What the catalog makes of them, by their names; empty where there is none to ask.
    standings: BTreeMap<String, CatalogEntry>,
}

/// What the catalog makes of a bundle.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::cmd) struct CatalogEntry {
    /// The name of its offering.
    pub(in crate::cmd) name: Option<String>,
    /// Why it is not offered although it is not withdrawn.
    pub(in crate::cmd) left_out: Option<String>,
}

impl BundleList {
    pub(in crate::cmd) async fn fetch(remote: &Remote) -> anyhow::Result<Self> {
        let bundles = objects::all(remote, None).await?;
        let revisions: Vec<BundleRevision> = objects::all(remote, None).await?;
        Ok(Self {
            standings: standings(remote).await?,
            ..Self::new(bundles, revisions)
        })
    }

    pub(in crate::cmd) fn new(bundles: Vec<Bundle>, revisions: Vec<BundleRevision>) -> Self {
        let named = |revision: BundleRevision| (revision.name_any(), revision);
        Self {
            bundles,
            revisions: revisions.into_iter().map(named).collect(),
            standings: BTreeMap::new(),
        }
    }

    /// The revision that new instances get.
    pub(in crate::cmd) fn current(&self, bundle: &Bundle) -> Option<&BundleRevision> {
        let name = bundle.status.as_ref()?.current_revision.as_ref()?;
        self.revisions.get(name)
    }

    /// The name of its offering in the catalog. One that has none is known by what its author calls it, or by its
    /// repository while nobody knows.
    pub(in crate::cmd) fn name(&self, bundle: &Bundle) -> String {
        let standing = self.standings.get(&bundle.name_any());
        let offered = standing.and_then(|standing| standing.name.as_deref());
        let repository = &bundle.spec.repository;
        let last = repository.rsplit('/').next().unwrap_or(repository);
        let name = offered.or_else(|| self.described(bundle)).unwrap_or(last);
        name.to_owned()
    }

    /// What the bundle's author calls it.
    fn described(&self, bundle: &Bundle) -> Option<&str> {
        let current = self.current(bundle)?;
        current.spec.description.get("name")?.as_str()
    }

    /// Why the catalog leaves a bundle out that is not withdrawn, if it does.
    pub(in crate::cmd) fn left_out(&self, bundle: &Bundle) -> Option<&str> {
        let standing = self.standings.get(&bundle.name_any())?;
        standing.left_out.as_deref()
    }

    /// The bundle that a person means.
    pub(in crate::cmd) fn find(&self, word: &str) -> Result<Option<&Bundle>, Failure> {
        let exact = |bundle: &&Bundle| bundle.name_any() == word || bundle.spec.service_id == word;
        if let Some(bundle) = self.bundles.iter().find(exact) {
            return Ok(Some(bundle));
        }
        let called = |bundle: &&Bundle| {
            let (image, spec) = (image(bundle), &bundle.spec);
            let described = self.described(bundle) == Some(word);
            image == word || spec.repository == word || described || self.name(bundle) == word
        };
        let begins = |bundle: &&Bundle| {
            word.len() >= PREFIX_CHARS_MIN && bundle.spec.service_id.starts_with(word)
        };
        let mut found: Vec<&Bundle> = self.bundles.iter().filter(called).collect();
        if found.is_empty() {
            found = self.bundles.iter().filter(begins).collect();
        }
        match found.as_slice() {
            [] => Ok(None),
            [bundle] => Ok(Some(bundle)),
            several => {
                let candidate = |bundle: &&Bundle| {
                    format!("{} ({})", bundle.name_any(), harmless(&image(bundle)))
                };
                let shown = several.iter().take(CANDIDATES_MAX).map(candidate);
                let shown = shown.collect::<Vec<_>>().join(", ");
                let text = format!("`{word}` means several bundles: {shown}; name one of them");
                Err(Failure::Usage(text))
            }
        }
    }

    /// The same, or a failure; the catalog is asked as well, since it alone knows an offering that had to change its name.
    pub(in crate::cmd) async fn pick(
        &self,
        word: &str,
        remote: &Remote,
    ) -> anyhow::Result<&Bundle> {
        if let Some(bundle) = self.find(word)? {
            return Ok(bundle);
        }
        let services = Osb::of_server(remote).catalog().await.unwrap_or_default();
        let service = services
            .iter()
            .find(|service| service["name"] == word || service["id"] == word);
        let id = service.and_then(|service| service["id"].as_str());
        let Some(id) = id else {
            let text = format!("there is no bundle `{word}`; `heddle bundle ls` lists them");
            return Err(Failure::NotFound(text).into());
        };
        let bundle = self
            .bundles
            .iter()
            .find(|bundle| bundle.spec.service_id == id);
        Ok(bundle.ok_or_else(|| {
            let text = format!("`{word}` is a service of an Application; it has no bundle");
            Failure::NotFound(text)
        })?)
    }
}

/// What the catalog makes of bundles. A server that cannot be asked that is no reason to show nothing.
pub(in crate::cmd) async fn standings(
    remote: &Remote,
) -> anyhow::Result<BTreeMap<String, CatalogEntry>> {
    let request = Request::get(format!("/heddle/v1{STANDINGS_PATH}")).body(Vec::new())?;
    let answer = remote.send(request).await?;
    if answer.code != StatusCode::OK {
        return Ok(BTreeMap::new());
    }
    let told = answer.ok("catalog")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let standing = |(bundle, told): (&String, &Value)| {
        let standing = CatalogEntry {
            name: text(&told["name"]),
            left_out: text(&told["leftOut"]),
        };
        (bundle.clone(), standing)
    };
    let told = told.as_object().into_iter().flatten();
    Ok(told.map(standing).collect())
}

/// Repository and tag.
pub(in crate::cmd) fn image(bundle: &Bundle) -> String {
    let image = ImageName {
        repository: bundle.spec.repository.clone(),
        track: bundle.spec.track.clone(),
    };
    image.to_string()
}

/// The beginning of an id.
pub(in crate::cmd) fn short(id: &str) -> String {
    id.chars().take(SHORT_CHARS).collect()
}

pub(in crate::cmd) fn phase(bundle: &Bundle) -> BundlePhase {
    bundle
        .status
        .as_ref()
        .map(|status| status.phase)
        .unwrap_or_default()
}

/// Why a bundle is not as it could be, in one word, and since when that is so. Of a bundle that is well, since when it is
/// offered.
pub(in crate::cmd) fn reason(bundle: &Bundle) -> (Option<String>, Option<Timestamp>) {
    let status = bundle.status.clone().unwrap_or_default();
    if let Some(mark) = &status.mark {
        return (Some(format!("{:?}", mark.reason)), Some(mark.since.0));
    }
    let conditions = &status.conditions;
    let since = |condition: &heddle_api::Condition| {
        condition.last_transition_time.as_ref().map(|time| time.0)
    };
    for type_ in [condition::OFFERED, condition::REVISION_ACCEPTED] {
        if let Some(condition) = conditions.find(type_.name)
            && condition.status == Status::False
        {
            return (condition.reason.clone(), since(condition));
        }
    }
    if let Some(stale) = conditions.find(condition::STALE.name)
        && stale.status == Status::True
    {
        return (Some(condition::STALE.name.to_owned()), since(stale));
    }
    let offered = conditions.find(condition::OFFERED.name).and_then(since);
    let created = bundle
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0);
    (None, offered.or(created))
}

/// An instance or binding of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cmd) struct Reference {
    pub(in crate::cmd) namespace: String,
    /// `instance` or `binding`.
    pub(in crate::cmd) kind: &'static str,
    pub(in crate::cmd) id: String,
    /// The version it is pinned to.
    pub(in crate::cmd) version: Option<String>,
}

impl Reference {
    pub(in crate::cmd) fn to_json(&self) -> Value {
        json!({"namespace": self.namespace, "kind": self.kind, "id": self.id, "version": self.version})
    }

    /// `instance team-a/orders`.
    pub(in crate::cmd) fn shown(&self) -> String {
        harmless(&format!("{} {}/{}", self.kind, self.namespace, self.id))
    }
}

/// Everything that uses an offering, in all namespaces. Read as it is: an object that nobody can parse still counts.
pub(in crate::cmd) async fn references(
    service_id: &str,
    remote: &Remote,
) -> anyhow::Result<Vec<Reference>> {
    let kinds = [
        (
            "instance",
            "instanceID",
            ServiceInstance::url_path(&(), None),
        ),
        ("binding", "bindingID", ServiceBinding::url_path(&(), None)),
    ];
    let mut found = Vec::new();
    for (kind, id, path) in kinds {
        for object in objects::below(remote, &path, kind).await? {
            found.extend(reference(&object, service_id, kind, id));
        }
    }
    found.sort();
    Ok(found)
}

/// What names no offering may mean any of them.
fn reference(object: &Value, service_id: &str, kind: &'static str, id: &str) -> Option<Reference> {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let named = spec["serviceID"].as_str();
    if named.is_some_and(|named| named != service_id) {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let applied = &object["status"]["applied"]["revisionRef"]["bundleVersion"];
    let version = applied
        .as_str()
        .or_else(|| spec["revisionRef"]["bundleVersion"].as_str());
    let id = spec[id].as_str().or_else(|| metadata["name"].as_str());
    Some(Reference {
        namespace: text(&metadata["namespace"]),
        kind,
        id: id.unwrap_or_default().to_owned(),
        version: version.map(str::to_owned),
    })
}

/// `2 instances and 1 binding`.
pub(in crate::cmd) fn counted(references: &[Reference]) -> String {
    let of = |kind: &str| {
        let number = references
            .iter()
            .filter(|reference| reference.kind == kind)
            .count();
        (number > 0).then(|| crate::output::count(number as u64, kind))
    };
    let parts: Vec<String> = [of("instance"), of("binding")]
        .into_iter()
        .flatten()
        .collect();
    match parts.is_empty() {
        true => "nothing".to_owned(),
        false => parts.join(" and "),
    }
}
