//! Which resources a server has, and which of them a word means.
//!
//! Built from the server's aggregated discovery. A word may be a plural, a singular, a short name
//! or a kind, optionally with `.group` or `.version.group`, or a category that means several. A
//! word that fits several groups is refused with the full names, except that the core group wins
//! and what is only kept of an old mesh loses: a deletion must never guess.

use anyhow::Context as _;
use heddle_api::legacy_subscription;
use http::Request;
use kube::client::APIGroupDiscoveryList;
use kube::core::ApiResource;
use kube::core::discovery::v2::ACCEPT_AGGREGATED_DISCOVERY_V2;

use super::Remote;
use crate::failure::Failure;

/// More names than this help nobody; a cluster has over sixty.
const SUGGESTIONS_MAX: usize = 40;

/// One resource the server has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resource {
    pub(crate) api: ApiResource,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    /// Whether this is the group's preferred version.
    preferred: bool,
}

impl Resource {
    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// `application.applicationconnector.kyma-project.io/shop`, as kubectl's `-o name` writes it.
    pub(crate) fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.kind_and_group())
    }

    /// `application.applicationconnector.kyma-project.io`.
    pub(crate) fn kind_and_group(&self) -> String {
        join_group(&self.api.kind.to_lowercase(), &self.api.group)
    }

    /// `applications.applicationconnector.kyma-project.io`, which is never ambiguous.
    pub(crate) fn full_name(&self) -> String {
        join_group(&self.api.plural, &self.api.group)
    }

    /// The requests of this resource; a namespace is ignored when the resource has none.
    pub(crate) fn requests(&self, namespace: Option<&str>) -> kube::core::Request {
        let namespace = namespace.filter(|_| self.namespaced);
        kube::core::Request::new(<kube::core::DynamicObject as kube::Resource>::url_path(
            &self.api, namespace,
        ))
    }

    fn is_called(&self, word: &str) -> bool {
        self.api.plural == word
            || self.singular == word
            || self.api.kind.eq_ignore_ascii_case(word)
            || self.short_names.iter().any(|short| short == word)
    }

    fn is_in(&self, group: Option<&str>) -> bool {
        let Some(group) = group else {
            return self.preferred;
        };
        let versioned = join_group(&self.api.version, &self.api.group);
        (self.preferred && self.api.group == group) || versioned == group
    }
}

fn join_group(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

/// Everything a server has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    resources: Vec<Resource>,
}

impl Catalog {
    /// Asks the server, two requests.
    pub(crate) async fn discover(remote: &Remote) -> anyhow::Result<Self> {
        let mut resources = Vec::new();
        for path in ["/api", "/apis"] {
            let request = Request::get(path)
                .header(http::header::ACCEPT, ACCEPT_AGGREGATED_DISCOVERY_V2)
                .body(Vec::new())?;
            let answer = remote.send(request).await?.ok("discovery")?;
            let groups: APIGroupDiscoveryList =
                serde_json::from_value(answer).with_context(|| {
                    format!("{path} of {} is no aggregated discovery", remote.place())
                })?;
            resources.extend(from_discovery(groups));
        }
        Ok(Self { resources })
    }

    /// The resource of a manifest.
    pub(crate) fn of_manifest(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.resources
            .iter()
            .find(|resource| resource.api.api_version == api_version && resource.api.kind == kind)
    }

    /// The resources a word means: one, or those of a category.
    pub(crate) fn resolve(&self, word: &str) -> Result<Vec<&Resource>, Failure> {
        let (name, group) = match word.split_once('.') {
            Some((name, group)) => (name.to_lowercase(), Some(group)),
            None => (word.to_lowercase(), None),
        };
        let named: Vec<&Resource> = self
            .resources
            .iter()
            .filter(|resource| resource.is_in(group) && resource.is_called(&name))
            .collect();
        let is_old = |resource: &&Resource| resource.api.group == legacy_subscription::GROUP;
        let named = match named.iter().all(is_old) {
            true => named,
            false => named
                .into_iter()
                .filter(|resource| !is_old(resource))
                .collect(),
        };
        match named.as_slice() {
            [] => self.category(word),
            [one] => Ok(vec![one]),
            many => many
                .iter()
                .find(|resource| resource.api.group.is_empty())
                .map(|core| vec![*core])
                .ok_or_else(|| {
                    let choices: Vec<String> =
                        many.iter().map(|resource| resource.full_name()).collect();
                    Failure::Usage(format!(
                        "`{word}` is ambiguous; say {}",
                        choices.join(" or ")
                    ))
                }),
        }
    }

    fn category(&self, word: &str) -> Result<Vec<&Resource>, Failure> {
        let members = |resource: &&Resource| {
            resource.preferred
                && resource.allows("list")
                && resource.categories.iter().any(|category| category == word)
        };
        let found: Vec<&Resource> = self.resources.iter().filter(members).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        Err(Failure::NotFound(format!(
            "the server has no resource called `{word}`{}",
            self.suggestion()
        )))
    }
}

impl Catalog {
    /// What there is instead, unless that would fill a screen.
    fn suggestion(&self) -> String {
        let shown = |resource: &&Resource| resource.preferred && resource.allows("list");
        let mut known: Vec<&str> = self
            .resources
            .iter()
            .filter(shown)
            .map(|resource| resource.api.plural.as_str())
            .collect();
        known.sort_unstable();
        known.dedup();
        if known.len() > SUGGESTIONS_MAX {
            String::new()
        } else {
            format!("; it has {}", known.join(", "))
        }
    }
}

fn from_discovery(groups: APIGroupDiscoveryList) -> Vec<Resource> {
    let mut resources: Vec<Resource> = Vec::new();
    for group in groups.items {
        let group_name = group
            .metadata
            .and_then(|metadata| metadata.name)
            .unwrap_or_default();
        let mut seen: Vec<String> = Vec::new();
        for version in group.versions {
            let version_name = version.version.unwrap_or_default();
            for entry in version.resources {
                let (Some(plural), Some(kind)) =
                    (entry.resource, entry.response_kind.and_then(|gvk| gvk.kind))
                else {
                    continue;
                };
                // Versions come in order of preference: the first that has a resource is preferred.
                let preferred = !seen.contains(&plural);
                seen.push(plural.clone());
                resources.push(Resource {
                    api: ApiResource {
                        api_version: if group_name.is_empty() {
                            version_name.clone()
                        } else {
                            format!("{group_name}/{version_name}")
                        },
                        group: group_name.clone(),
                        version: version_name.clone(),
                        kind,
                        plural,
                    },
                    singular: entry.singular_resource.unwrap_or_default(),
                    short_names: entry.short_names,
                    categories: entry.categories,
                    namespaced: entry.scope.as_deref() == Some("Namespaced"),
                    verbs: entry.verbs,
                    preferred,
                });
            }
        }
    }
    resources
}

#[cfg(test)]
pub(crate) mod tests;
