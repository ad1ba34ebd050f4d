//! Stories of registries: images come, change and go, and so do registries and those who use their bundles.

use std::sync::LazyLock;

use heddle_api::evidence::ImageName;
use heddle_api::offer::bundle::{Origin, service_id};
use heddle_api::registry::IdScheme;
use heddle_api::well_known::{SYNC_ANNOTATION, WITHDRAWN_ANNOTATION};
use heddle_api::{Bundle, BundleRevision, Registry, ServiceInstance, names};
use serde_json::{Value, json};

use super::{Act, Story, apply, delete, of};
use crate::bundles::registry::{Event, digest};

const HUB: &str = "hub";
const TEAM: &str = "team-a";

/// A registry that is read when somebody asks, and lets go of what nobody uses at once.
fn hub(more: Value) -> Act {
    let mut spec = json!({
        "type": "apiv2", "url": "http://registry.example", "whiteList": [".*"],
        // Longer than any story: an interval would be noise.
        "refreshIntervalSeconds": 10_000_000, "sweepGraceSeconds": 0, "revisionHistory": 0,
    });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    let resource = of::<Registry>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": HUB},
        "spec": spec,
    });
    Act::Apply {
        resource,
        namespace: None,
        object,
    }
}

fn happens(event: Event) -> Act {
    Act::Elsewhere {
        registry: HUB,
        event,
    }
}

fn push(version: &str) -> Act {
    happens(Event::push("acme/db", "latest", version))
}

fn remove() -> Act {
    happens(Event::remove("acme/db", "latest"))
}

/// Somebody asks for a reading.
fn sync(request: &str) -> Act {
    Act::Meddle {
        resource: of::<Registry>(),
        namespace: None,
        name: HUB,
        patch: json!({"metadata": {"annotations": {SYNC_ANNOTATION: request}}}),
    }
}

fn image() -> ImageName {
    ImageName {
        repository: "acme/db".to_owned(),
        track: "latest".to_owned(),
    }
}

fn bundle() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let image = image();
        names::bundle(HUB, &image.repository, &image.track)
    });
    &NAME
}

fn revision(version: &str) -> String {
    names::revision(bundle(), &digest("acme/db", version))
}

/// An instance that is pinned to a version, as the front writes it.
fn instance(name: &str, version: &str) -> Act {
    let origin = Origin {
        registry: HUB,
        repository: "acme/db",
        track: "latest",
        is_default_track: true,
    };
    let service = service_id(IdScheme::Uuid, &origin, "db");
    let pin = json!({
        "name": revision(version), "digest": digest("acme/db", version), "bundleVersion": version,
    });
    let spec = json!({
        "instanceID": name, "serviceID": service, "planID": "any", "revisionRef": pin,
    });
    apply::<ServiceInstance>(TEAM, name, spec)
}

fn withdrawn(value: Value) -> Act {
    Act::Meddle {
        resource: of::<Bundle>(),
        namespace: None,
        name: bundle(),
        patch: json!({"metadata": {"annotations": {WITHDRAWN_ANNOTATION: value}}}),
    }
}

/// What happens to a bundle that an instance uses.
fn in_use<const N: usize>(acts: [Act; N]) -> Vec<Act> {
    let used = [
        push("1"),
        hub(json!({})),
        Act::Rest,
        instance("i", "1"),
        Act::Rest,
    ];
    used.into_iter().chain(acts).collect()
}

/// What happens in registries, and what people do with what comes from there.
pub(super) fn stories_of_registries() -> Vec<Story> {
    static SECOND: LazyLock<String> = LazyLock::new(|| revision("2"));
    let story = |name, acts| Story {
        name,
        meshed: false,
        acts,
    };
    vec![
        story("a registry is read", vec![push("1"), hub(json!({}))]),
        story(
            "a bundle is removed from its registry and swept",
            vec![push("1"), hub(json!({})), Act::Rest, remove(), sync("1")],
        ),
        story(
            "a tag moves, and moves back",
            vec![
                push("1"),
                hub(json!({})),
                Act::Rest,
                push("2"),
                sync("1"),
                Act::Rest,
                push("1"),
                sync("2"),
            ],
        ),
        story(
            "a bundle is gone, used, and swept with its last instance",
            in_use([
                remove(),
                sync("1"),
                Act::Rest,
                delete::<ServiceInstance>(Some(TEAM), "i"),
            ]),
        ),
        story(
            "a registry is removed while an instance uses it",
            in_use([
                delete::<Registry>(None, HUB),
                Act::Rest,
                delete::<ServiceInstance>(Some(TEAM), "i"),
            ]),
        ),
        story(
            "a registry is out of reach, hides, and comes back",
            vec![
                push("1"),
                hub(json!({"stalePolicy": {"mode": "hide"}})),
                Act::Rest,
                happens(Event::down()),
                sync("1"),
                Act::Rest,
                happens(Event::up()),
                sync("2"),
            ],
        ),
        story(
            // Not both in one story: a restart in between would make them again before the second is deleted.
            "somebody deletes a bundle, and a reading makes it again",
            vec![
                push("1"),
                hub(json!({})),
                Act::Rest,
                delete::<Bundle>(None, bundle()),
                Act::Rest,
                sync("1"),
            ],
        ),
        story(
            "somebody deletes a revision, and a reading makes it again",
            vec![
                push("2"),
                hub(json!({})),
                Act::Rest,
                delete::<BundleRevision>(None, &SECOND),
                Act::Rest,
                sync("1"),
            ],
        ),
        story(
            "a used bundle is withdrawn by hand and offered again",
            vec![
                push("1"),
                hub(json!({})),
                Act::Rest,
                instance("i", "1"),
                withdrawn(json!("true")),
                Act::Rest,
                withdrawn(Value::Null),
            ],
        ),
    ]
}
