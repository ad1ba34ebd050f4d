//! What the mappings of one namespace enable.

use std::collections::{BTreeMap, BTreeSet};

use heddle_api::application_mapping::ApplicationMapping;
use kube::ResourceExt as _;

use super::Backing;

/// The Applications that a namespace may use, wholly or in part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enabled {
    /// By Application; without a list, all of its services.
    services: BTreeMap<String, Option<BTreeSet<String>>>,
}

impl Enabled {
    /// What these mappings, which are all of one namespace, enable together. One that is being deleted enables nothing.
    pub fn by<'a>(mappings: impl IntoIterator<Item = &'a ApplicationMapping>) -> Self {
        let living = |mapping: &&ApplicationMapping| mapping.metadata.deletion_timestamp.is_none();
        let services = mappings.into_iter().filter(living).map(|mapping| {
            let listed = mapping.spec.services.as_ref();
            let listed = listed.map(|listed| listed.iter().map(|one| one.id.clone()).collect());
            (mapping.name_any(), listed)
        });
        Self {
            services: services.collect(),
        }
    }

    /// Whether the namespace may use what stands behind a plan. Bundles need no mapping.
    #[must_use]
    pub fn enables(&self, backing: &Backing) -> bool {
        let (name, service_id) = match backing {
            Backing::Application {
                name, service_id, ..
            } => (name, service_id),
            Backing::Bundle { .. } => return true,
        };
        let services = self.services.get(name);
        services.is_some_and(|listed| listed.as_ref().is_none_or(|ids| ids.contains(service_id)))
    }
}
