//! What people type, and the resource they mean.

use serde_json::json;

use super::*;

/// A server with the ambiguities that exist in the field.
pub(crate) fn sample() -> Catalog {
    let entry = |plural: &str,
                 singular: &str,
                 kind: &str,
                 scope: &str,
                 short: &[&str],
                 categories: &[&str]| {
        json!({"resource": plural, "singularResource": singular, "scope": scope, "shortNames": short, "categories": categories,
               "responseKind": {"kind": kind}, "verbs": ["get", "list", "watch", "delete"]})
    };
    let group = |name: &str, versions: serde_json::Value| json!({"metadata": {"name": name}, "versions": versions});
    let version =
        |name: &str, resources: serde_json::Value| json!({"version": name, "resources": resources});
    let namespaced = "Namespaced";
    let groups = json!({"items": [
        group("", json!([version("v1", json!([
            entry("namespaces", "namespace", "Namespace", "Cluster", &["ns"], &[]),
            entry("events", "event", "Event", namespaced, &["ev"], &[]),
        ]))])),
        group("events.k8s.io", json!([version("v1", json!([entry("events", "event", "Event", namespaced, &["ev"], &[])]))])),
        group("messaging.knative.dev", json!([version("v1", json!([
            entry("channels", "channel", "Channel", namespaced, &["ch"], &["knative"]),
            entry("subscriptions", "subscription", "Subscription", namespaced, &["sub"], &["knative"]),
        ]))])),
        group("eventing.knative.dev", json!([
            version("v1", json!([entry("triggers", "trigger", "Trigger", namespaced, &[], &["knative"])])),
            version("v1beta1", json!([entry("triggers", "trigger", "Trigger", namespaced, &[], &["knative"])])),
        ])),
        group("eventing.kyma-project.io", json!([version("v1alpha1", json!([
            entry("subscriptions", "subscription", "Subscription", namespaced, &[], &[]),
        ]))])),
        group("a.example", json!([version("v1", json!([entry("jobs", "job", "Job", namespaced, &[], &[])]))])),
        group("b.example", json!([version("v1", json!([entry("jobs", "job", "Job", namespaced, &[], &[])]))])),
    ]});
    Catalog {
        resources: from_discovery(serde_json::from_value(groups).unwrap()),
    }
}

/// `word` means the resources `expected`, or is refused with a text that holds it.
fn check(word: &str, expected: &str) {
    let text = match sample().resolve(word) {
        Ok(found) => {
            let paths: Vec<String> = found
                .iter()
                .map(|r| format!("{}/{}", r.api.api_version, r.api.plural))
                .collect();
            paths.join(" ")
        }
        Err(failure) => failure.to_string(),
    };
    assert_eq!(text, expected, "for `{word}`");
}

#[test]
fn every_way_to_say_a_resource_means_the_same() {
    for word in [
        "channels",
        "channel",
        "Channel",
        "CHANNELS",
        "ch",
        "channels.messaging.knative.dev",
        "channel.v1.messaging.knative.dev",
    ] {
        check(word, "messaging.knative.dev/v1/channels");
    }
}

#[test]
fn the_preferred_version_is_meant_unless_another_is_named() {
    check("triggers", "eventing.knative.dev/v1/triggers");
    check(
        "triggers.eventing.knative.dev",
        "eventing.knative.dev/v1/triggers",
    );
    check(
        "triggers.v1beta1.eventing.knative.dev",
        "eventing.knative.dev/v1beta1/triggers",
    );
}

#[test]
fn the_core_group_wins_an_old_mesh_loses_and_every_other_tie_is_refused_with_the_full_names() {
    check("events", "v1/events");
    check("events.events.k8s.io", "events.k8s.io/v1/events");
    check("subscription", "messaging.knative.dev/v1/subscriptions");
    check(
        "job",
        "`job` is ambiguous; say jobs.a.example or jobs.b.example",
    );
    check(
        "subscriptions.eventing.kyma-project.io",
        "eventing.kyma-project.io/v1alpha1/subscriptions",
    );
}

#[test]
fn a_category_means_its_members_once() {
    check(
        "knative",
        "messaging.knative.dev/v1/channels messaging.knative.dev/v1/subscriptions eventing.knative.dev/v1/triggers",
    );
}

#[test]
fn an_unknown_word_is_answered_with_what_exists() {
    check(
        "pods",
        "the server has no resource called `pods`; it has channels, events, jobs, namespaces, subscriptions, triggers",
    );
}

#[test]
fn a_namespace_never_leaks_into_the_path_of_a_cluster_resource() {
    let catalog = sample();
    let namespaces = catalog.resolve("ns").unwrap()[0].requests(Some("team-a"));
    let request = namespaces.get("x", &Default::default()).unwrap();
    assert_eq!(request.uri().path(), "/api/v1/namespaces/x");
    let channels = catalog.resolve("ch").unwrap()[0].requests(Some("team-a"));
    let request = channels.get("x", &Default::default()).unwrap();
    assert_eq!(
        request.uri().path(),
        "/apis/messaging.knative.dev/v1/namespaces/team-a/channels/x"
    );
}
