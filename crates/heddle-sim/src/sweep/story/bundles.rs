//! Stories of bundles: instances and bindings whose actions run. What an action does, its instance says (see
//! [`crate::bundles::runs`]).

use heddle_api::well_known::FINALIZER;
use heddle_api::{BundleRevision, ServiceBinding, ServiceInstance};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use serde_json::{Value, json};

use super::broker::{deprovision, operation, unbind};
use super::{Act, Story, delete, of};
use crate::bundles::runs::description;

const TEAM: Option<&str> = Some("team-a");

fn reference(version: &str) -> Value {
    json!({"name": format!("db-{version}"), "digest": format!("sha256:{version}"), "bundleVersion": version})
}

fn revision(version: &str) -> Act {
    let resource = of::<BundleRevision>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": format!("db-{version}")},
        "spec": {
            "bundle": "db", "registry": "hub", "image": "registry.example/db",
            "manifestDigest": format!("sha256:{version}"), "configDigest": "sha256:c",
            "bundleVersion": version, "description": description("db"),
        },
    });
    Act::Apply {
        resource,
        namespace: None,
        object,
    }
}

fn provision(script: Value) -> Act {
    let resource = of::<ServiceInstance>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": "i", "namespace": "team-a", "finalizers": [FINALIZER]},
        "spec": {
            "instanceID": "i", "serviceID": "db", "planID": "small",
            "parameters": {"script": script}, "revisionRef": reference("1.0.0"),
            "operation": operation("provision-i", "provision"),
        },
    });
    Act::Apply {
        resource,
        namespace: TEAM,
        object,
    }
}

fn update(change: Value) -> Act {
    let mut spec = change;
    spec["operation"] = operation("update-i", "update");
    Act::Meddle {
        resource: of::<ServiceInstance>(),
        namespace: TEAM,
        name: "i",
        patch: json!({"spec": spec}),
    }
}

fn bind() -> Act {
    let resource = of::<ServiceBinding>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": "b", "namespace": "team-a", "finalizers": [FINALIZER]},
        "spec": {
            "bindingID": "b", "instanceRef": {"name": "i"}, "serviceID": "db", "planID": "small",
            "revisionRef": reference("1.0.0"), "operation": operation("bind-b", "bind"),
        },
    });
    Act::Apply {
        resource,
        namespace: TEAM,
        object,
    }
}

/// What platforms do with bundles. The instance comes before the revision it is pinned to, as after a restore: a revision
/// that nobody refers to may be let go.
pub(super) fn stories_of_bundles() -> Vec<Story> {
    let story = |name, acts| Story {
        name,
        meshed: false,
        acts,
    };
    let credentials = || {
        json!({
            "provision": {"credentials": {"admin": "secret"}},
            "bind": {"credentials": {"user": "b"}},
        })
    };
    vec![
        story(
            "a bundle is made, bound, given back and removed",
            vec![
                provision(credentials()),
                revision("1.0.0"),
                bind(),
                Act::Rest,
                unbind("b"),
                Act::Rest,
                deprovision("i"),
            ],
        ),
        story(
            "a bundle is made and bound",
            vec![
                provision(credentials()),
                revision("1.0.0"),
                Act::Rest,
                bind(),
            ],
        ),
        story(
            "a bundle is updated and upgraded",
            vec![
                provision(credentials()),
                revision("1.0.0"),
                Act::Rest,
                update(json!({
                    "parameters": {"size": 2}, "planID": "large", "revisionRef": reference("2.0.0"),
                })),
                revision("2.0.0"),
            ],
        ),
        story(
            "an upgrade of a bundle fails and it is removed",
            vec![
                provision(credentials()),
                revision("1.0.0"),
                Act::Rest,
                update(json!({
                    "parameters": {"script": {"update": {"code": 3, "message": "no room"}}},
                    "revisionRef": reference("2.0.0"),
                })),
                revision("2.0.0"),
                Act::Rest,
                deprovision("i"),
            ],
        ),
        story(
            "a bundle cannot be made",
            vec![
                provision(json!({"provision": {"code": 3, "message": "no room"}})),
                revision("1.0.0"),
                Act::Rest,
                deprovision("i"),
            ],
        ),
        story(
            "a bundle is removed with its binding",
            vec![
                provision(credentials()),
                revision("1.0.0"),
                bind(),
                Act::Rest,
                deprovision("i"),
            ],
        ),
        story(
            "a namespace with a bundle is deleted",
            vec![
                provision(credentials()),
                revision("1.0.0"),
                bind(),
                Act::Rest,
                delete::<Secret>(TEAM, "b"),
                delete::<Namespace>(None, "team-a"),
            ],
        ),
    ]
}
