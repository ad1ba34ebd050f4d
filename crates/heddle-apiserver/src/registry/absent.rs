//! Kinds that a cluster has and heddle does not, as empty lists.
//!
//! Some commands ask a server for these without looking whether it has them, and give up when one is unknown: `kubectl
//! cluster-info` for Services, `kubectl apply --prune` for everything below. They can be read, there is never one of
//! them, and writing one is refused with the reason.

use serde_json::json;

use super::builtin::object_schema;
use super::{BuiltIn, Error, Nature, Resource};
use crate::schema::Schema;
use crate::table::Columns;

/// Group, version, kind, plural, and whether they live in namespaces. What `apply --prune` looks at by default, in kubectl of
/// today and of 1.20.
const KINDS: [(&str, &str, &str, &str, bool); 15] = [
    ("", "v1", "Endpoints", "endpoints", true),
    ("", "v1", "PersistentVolume", "persistentvolumes", false),
    (
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        true,
    ),
    ("", "v1", "Pod", "pods", true),
    (
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        true,
    ),
    ("", "v1", "Service", "services", true),
    ("apps", "v1", "DaemonSet", "daemonsets", true),
    ("apps", "v1", "Deployment", "deployments", true),
    ("apps", "v1", "ReplicaSet", "replicasets", true),
    ("apps", "v1", "StatefulSet", "statefulsets", true),
    ("batch", "v1", "CronJob", "cronjobs", true),
    ("batch", "v1", "Job", "jobs", true),
    ("batch", "v1beta1", "CronJob", "cronjobs", true),
    ("extensions", "v1beta1", "Ingress", "ingresses", true),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", true),
];

pub(super) fn resources() -> Result<Vec<Resource>, Error> {
    let resource = |(group, version, kind, plural, namespaced): (&str, &str, &str, &str, bool)| {
        let description = format!("{kind} is a kind of clusters; heddle keeps none.");
        let openapi = object_schema(&description, json!({}));
        let schema = Schema::compile(&openapi).map_err(|error| Error::Unusable {
            crd: plural.to_owned(),
            why: error.to_string(),
        })?;
        Ok(Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced,
            has_status: false,
            schema,
            openapi,
            columns: Columns::built_in(kind),
            selectable: Vec::new(),
            storage: format!("{plural}.{group}").trim_end_matches('.').into(),
            nature: Nature::BuiltIn(BuiltIn::Absent),
            check: None,
            defaults: None,
        })
    };
    KINDS.into_iter().map(resource).collect()
}
