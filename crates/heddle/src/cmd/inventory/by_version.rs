//! `heddle inventory --by-version`: which versions of bundles are in use, and which of them the catalog has left behind.
//!
//! An instance is counted under the revision that is in force, not under the one an update is on its way to.

use std::collections::BTreeMap;

use heddle_api::bundle::BundlePhase;
use heddle_api::operation::RevisionReference;
use heddle_api::{Bundle, ServiceInstance};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::client::Remote;
use crate::cmd::bundle::listing::{BundleList, image, phase};
use crate::output::{ReportFormat, Table, harmless};
use crate::terminal::Terminal;

/// So much of a digest is shown where an image has no version.
const DIGEST_CHARS: usize = 19;

/// All instances of one revision of one bundle.
#[derive(Debug, PartialEq)]
struct Group {
    registry: String,
    name: String,
    image: String,
    version: Option<String>,
    digest: String,
    /// What new instances get; `None` when there are no new ones.
    catalog: Option<String>,
    behind: bool,
    /// Namespace and id.
    instances: Vec<(String, String)>,
}

pub(super) async fn show(
    instances: &[ServiceInstance],
    output: ReportFormat,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let bundle_list = BundleList::fetch(remote).await?;
    let groups = groups(instances, &bundle_list);
    if groups.is_empty() && output == ReportFormat::Table {
        terminal.note("no instance of a bundle");
        return Ok(());
    }
    let report: Vec<Value> = groups.iter().map(Group::to_json).collect();
    let colour = terminal.colour_out;
    let text = output.render(&report, |_| table(&groups, colour));
    Ok(terminal.print(&text)?)
}

/// The revision in force; none before the instance is pinned, and none for services of Applications.
fn in_force(instance: &ServiceInstance) -> Option<&RevisionReference> {
    let applied = instance.status.as_ref().and_then(|s| s.applied.as_ref());
    let applied = applied.and_then(|applied| applied.revision_ref.as_ref());
    applied.or(instance.spec.revision_ref.as_ref())
}

fn groups(instances: &[ServiceInstance], bundle_list: &BundleList) -> Vec<Group> {
    let bundles: BTreeMap<&str, &Bundle> = bundle_list
        .bundles
        .iter()
        .map(|bundle| (bundle.spec.service_id.as_str(), bundle))
        .collect();
    let mut groups: BTreeMap<(&str, &str), Group> = BTreeMap::new();
    for instance in instances {
        let Some(pin) = in_force(instance) else {
            continue;
        };
        let service = instance.spec.service_id.as_str();
        let bundle = bundles.get(service).copied();
        let group = groups
            .entry((service, &pin.name))
            .or_insert_with(|| Group::new(service, pin, bundle, bundle_list));
        let namespace = instance.namespace().unwrap_or_default();
        group
            .instances
            .push((namespace, instance.spec.instance_id.clone()));
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    for group in &mut groups {
        group.instances.sort();
    }
    let key = |group: &Group| {
        let version = group.version.clone().unwrap_or_default();
        (
            group.registry.clone(),
            group.image.clone(),
            version,
            group.digest.clone(),
        )
    };
    groups.sort_by_key(key);
    groups
}

impl Group {
    fn new(
        service: &str,
        pin: &RevisionReference,
        bundle: Option<&Bundle>,
        bundle_list: &BundleList,
    ) -> Self {
        let revision = bundle_list.revisions.get(&pin.name);
        let registry = bundle
            .map(|bundle| &bundle.spec.registry)
            .or_else(|| revision.map(|revision| &revision.spec.registry));
        let offered = bundle.filter(|bundle| phase(bundle) == BundlePhase::Live);
        let current = offered.and_then(|bundle| bundle.status.as_ref());
        let current_name = current.and_then(|status| status.current_revision.as_ref());
        let catalog = current_name.map(|name| {
            let digest = bundle_list
                .revisions
                .get(name)
                .map(|found| found.spec.manifest_digest.clone());
            let version = current.and_then(|status| status.bundle_version.clone());
            version.unwrap_or_else(|| short(&digest.unwrap_or_default()))
        });
        Self {
            registry: registry.cloned().unwrap_or_default(),
            name: bundle.map_or_else(|| service.to_owned(), |bundle| bundle_list.name(bundle)),
            image: bundle.map(image).unwrap_or_default(),
            version: pin.bundle_version.clone(),
            digest: pin.digest.clone(),
            catalog,
            behind: current_name.is_some_and(|name| *name != pin.name),
            instances: Vec::new(),
        }
    }

    fn to_json(&self) -> Value {
        let instance =
            |(namespace, id): &(String, String)| json!({"namespace": namespace, "id": id});
        json!({
            "registry": self.registry, "bundle": self.name, "image": self.image, "version": self.version,
            "digest": self.digest, "catalog": self.catalog, "behind": self.behind,
            "instances": self.instances.iter().map(instance).collect::<Vec<_>>(),
        })
    }
}

fn short(digest: &str) -> String {
    digest.chars().take(DIGEST_CHARS).collect()
}

fn table(groups: &[Group], colour: bool) -> String {
    let headers = [
        "REGISTRY",
        "BUNDLE",
        "IMAGE",
        "VERSION",
        "CATALOG",
        "INSTANCES",
        "BEHIND",
    ];
    let or_none = |text: &str| match text {
        "" => "<none>".to_owned(),
        text => harmless(text),
    };
    let row = |group: &Group| {
        let id = |(namespace, id): &(String, String)| format!("{namespace}/{id}");
        let behind = group.instances.iter().filter(|_| group.behind).map(id);
        let version = group
            .version
            .clone()
            .unwrap_or_else(|| short(&group.digest));
        vec![
            or_none(&group.registry),
            harmless(&group.name),
            or_none(&group.image),
            or_none(&version),
            or_none(group.catalog.as_deref().unwrap_or("withdrawn")),
            group.instances.len().to_string(),
            or_none(&behind.collect::<Vec<_>>().join(", ")),
        ]
    };
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: groups.iter().map(row).collect(),
    };
    table.page(colour)
}

#[cfg(test)]
mod tests;
