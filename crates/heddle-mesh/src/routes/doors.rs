//! The doors of Applications: open as soon as what stands behind them is there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use heddle_api::Application;
use heddle_api::dataplane::Resources;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use kube::ResourceExt as _;

use super::Door;
use super::topology::{Topology, name_of, stays};

pub(super) fn doors(resources: &Resources, topology: &Topology) -> HashMap<String, Door> {
    let sources: HashSet<String> = resources
        .http_sources
        .iter()
        .filter(|source| stays(&***source))
        .map(|source| name_of(&**source))
        .collect();
    let door = |application: &Arc<Application>| {
        let name = application.name_any();
        let entry = format!("channel/{INTEGRATION_NAMESPACE}/{name}");
        let source = format!("httpsource/{INTEGRATION_NAMESPACE}/{name}");
        let reason = if !stays(&**application) {
            format!("application {name} is being deleted")
        } else if application.spec.skip_installation {
            format!("application {name} asks for nothing to be set up (spec.skipInstallation)")
        } else if !sources.contains(&source) {
            format!("application {name} has no {source} yet")
        } else if let Some(place) = topology.place(&entry) {
            let entry = topology.names()[place as usize].clone();
            return (name, Door::Open { entry });
        } else {
            format!("application {name} has no {entry} yet")
        };
        (name, Door::NotReady { reason })
    };
    resources.applications.iter().map(door).collect()
}
