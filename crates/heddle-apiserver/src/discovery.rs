//! `/api`, `/apis` and below: what is served, in the legacy and in the aggregated form.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::registry::{self, Registry, Resource};
use crate::reviews::{self, REVIEWS};

pub(crate) const AGGREGATED_MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

type Versions<'a> = BTreeMap<&'a str, Vec<&'a Arc<Resource>>>;

/// All groups but the core one, in the order in which clients look through them: asked for `subscriptions`, they take the
/// first group that has such, which must not be one of an old mesh.
fn named_groups(served: &Registry) -> Vec<(&str, Versions<'_>)> {
    let groups = groups(served).into_iter();
    let mut named: Vec<_> = groups.filter(|(name, _)| !name.is_empty()).collect();
    named.sort_by_key(|(name, _)| (registry::is_of_an_old_mesh(name), *name));
    named
}

fn groups(registry: &Registry) -> BTreeMap<&str, Versions<'_>> {
    let mut groups: BTreeMap<&str, Versions<'_>> = BTreeMap::new();
    for resource in registry.resources() {
        groups
            .entry(&resource.group)
            .or_default()
            .entry(&resource.version)
            .or_default()
            .push(resource);
    }
    for review in REVIEWS {
        let versions = groups.entry(review.group).or_default();
        versions.entry(reviews::VERSION).or_default();
    }
    groups
}

/// Newest and most stable first: v1 before v1alpha1.
fn preferred<'a>(versions: &Versions<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = versions.keys().copied().collect();
    names.sort_by_key(|name| (name.contains("alpha"), name.contains("beta"), *name));
    names
}

pub(crate) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    })
}

pub(crate) fn api_groups(registry: &Registry) -> Value {
    let groups = named_groups(registry);
    let groups: Vec<Value> = groups.iter().map(|(n, v)| group_json(n, v)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(crate) fn api_group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = groups(registry);
    let mut group = group_json(name, groups.get(name).filter(|_| !name.is_empty())?);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

fn group_json(name: &str, versions: &Versions<'_>) -> Value {
    let versions: Vec<Value> = preferred(versions)
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions[0]})
}

/// `APIResourceList` of one group version, or `None` if there is no such thing.
pub(crate) fn api_resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let groups = groups(registry);
    let resources = groups.get(group)?.get(version)?;
    let mut list = Vec::new();
    for resource in resources {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": resource.verbs(),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        list.push(entry);
        if resource.has_status {
            list.push(json!({
                "name": format!("{}/status", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": resource.kind, "verbs": status_verbs(resource),
            }));
        }
    }
    for review in REVIEWS.iter().filter(|review| review.group == group) {
        list.push(json!({
            "name": review.plural, "singularName": review.singular(), "namespaced": false,
            "kind": review.kind, "verbs": ["create"],
        }));
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}),
    )
}

fn status_verbs(resource: &Resource) -> &'static [&'static str] {
    if resource.verbs().contains(&"update") {
        &["get", "patch", "update"]
    } else {
        &["get"]
    }
}

/// The aggregated form: everything about the core group (`/api`) or about all others (`/apis`) in one answer.
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let mut items = Vec::new();
    let asked: Vec<(&str, Versions<'_>)> = if core {
        groups(registry).remove_entry("").into_iter().collect()
    } else {
        named_groups(registry)
    };
    for (name, versions) in &asked {
        let versions: Vec<Value> = preferred(versions)
            .iter()
            .map(|version| aggregated_version(name, version, &versions[version]))
            .collect();
        let metadata = if name.is_empty() {
            json!({"creationTimestamp": null})
        } else {
            json!({"name": name, "creationTimestamp": null})
        };
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_version(group: &str, version: &str, resources: &[&Arc<Resource>]) -> Value {
    let kind = |group: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let scope = |namespaced: bool| if namespaced { "Namespaced" } else { "Cluster" };
    let mut entries: Vec<Value> = Vec::new();
    for resource in resources {
        let mut entry = json!({
            "resource": resource.plural, "responseKind": kind(&resource.group, &resource.kind),
            "scope": scope(resource.namespaced), "singularResource": resource.singular, "verbs": resource.verbs(),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        if resource.has_status {
            entry["subresources"] = json!([{
                "subresource": "status", "responseKind": kind(&resource.group, &resource.kind),
                "verbs": status_verbs(resource),
            }]);
        }
        entries.push(entry);
    }
    for review in REVIEWS.iter().filter(|review| review.group == group) {
        entries.push(json!({
            "resource": review.plural, "responseKind": kind(group, review.kind),
            "scope": "Cluster", "singularResource": review.singular(), "verbs": ["create"],
        }));
    }
    json!({"version": version, "freshness": "Current", "resources": entries})
}

/// `/`: the paths that can be asked, for clients that find their way from there.
pub(crate) fn root(registry: &Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for (name, versions) in groups(registry) {
        let prefix = match name {
            "" => "/api".to_owned(),
            name => format!("/apis/{name}"),
        };
        paths.extend(versions.keys().map(|version| format!("{prefix}/{version}")));
        paths.push(prefix);
    }
    let others = [
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ];
    paths.extend(others.map(str::to_owned));
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}

pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": format!("v1.36.0+heddle.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
