//! Two kinds with lives of their own: notices (Kubernetes Events), served in two forms, and Leases.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::conformance::wire::{get, post};
use crate::conformance::{Scope, ensure_eq, group};

group!("lifecycle":
    an_event_is_the_same_in_both_forms,
    events_are_found_by_what_they_are_about,
    a_lease_keeps_microseconds,
);

async fn an_event_is_the_same_in_both_forms(client: Client, scope: Scope) -> Result<()> {
    let new_form = format!(
        "/apis/events.k8s.io/v1/namespaces/{}/events",
        scope.namespace
    );
    let core_form = format!("/api/v1/namespaces/{}/events", scope.namespace);
    let sent = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"},
        "eventTime": "2026-01-02T03:04:05.678901Z",
        "reportingController": "heddle.dev/conformance", "reportingInstance": "conformance-0",
        "action": "Checking", "reason": "Checked", "type": "Normal", "note": "all is well",
        "regarding": {
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "name": "orders", "namespace": scope.namespace,
        },
    });
    let created = post(&client, &new_form, &sent).await?.accepted(201)?;
    ensure_eq!(created["apiVersion"], "events.k8s.io/v1");
    ensure_eq!(created["eventTime"], "2026-01-02T03:04:05.678901Z");
    let core = get(&client, &format!("{core_form}/a"))
        .await?
        .accepted(200)?;
    ensure_eq!(core["apiVersion"], "v1");
    ensure_eq!(core["involvedObject"]["name"], "orders");
    ensure_eq!(core["message"], "all is well");
    ensure_eq!(core["reportingComponent"], "heddle.dev/conformance");
    ensure_eq!(core["reason"], "Checked");
    ensure_eq!(core["metadata"]["uid"], created["metadata"]["uid"]);

    let old = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "b"},
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": scope.namespace},
        "reason": "Changed", "message": "it was changed", "type": "Warning",
        "source": {"component": "old-controller"}, "count": 2,
        "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:05:05Z",
    });
    post(&client, &core_form, &old).await?.accepted(201)?;
    let new = get(&client, &format!("{new_form}/b"))
        .await?
        .accepted(200)?;
    ensure_eq!(new["regarding"]["name"], "settings");
    ensure_eq!(new["note"], "it was changed");
    ensure_eq!(new["deprecatedCount"], 2);
    ensure_eq!(new["deprecatedSource"]["component"], "old-controller");
    ensure_eq!(new["deprecatedLastTimestamp"], "2026-01-02T03:05:05Z");
    // The new form asks more of an event than the old one did.
    let mut bare = sent;
    bare["metadata"]["name"] = json!("c");
    bare["reportingController"] = json!("");
    let answer = post(&client, &new_form, &bare).await?;
    answer.refused(422, "Invalid", "reportingController: Required value")?;
    Ok(())
}

async fn events_are_found_by_what_they_are_about(client: Client, scope: Scope) -> Result<()> {
    let core_form = format!("/api/v1/namespaces/{}/events", scope.namespace);
    for (name, about) in [("a", "orders"), ("b", "billing")] {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": about, "namespace": scope.namespace},
            "reason": "Changed", "message": "it was changed", "type": "Normal",
        });
        post(&client, &core_form, &event).await?.accepted(201)?;
    }
    for (form, selector) in [
        ("/api/v1", "involvedObject.name%3Dorders"),
        (
            "/api/v1",
            "involvedObject.name%3Dorders,involvedObject.kind%3DConfigMap,type!%3DWarning",
        ),
        ("/apis/events.k8s.io/v1", "regarding.name%3Dorders"),
    ] {
        let path = format!(
            "{form}/namespaces/{}/events?fieldSelector={selector}",
            scope.namespace
        );
        let list = get(&client, &path).await?.accepted(200)?;
        let found: Vec<_> = list["items"]
            .as_array()
            .context("no items")?
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect();
        ensure!(found == ["a"], "{path} found {found:?}");
    }
    Ok(())
}

async fn a_lease_keeps_microseconds(client: Client, scope: Scope) -> Result<()> {
    let path = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        scope.namespace
    );
    let sent = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {
            "holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": "2026-01-02T03:04:05.000001Z", "renewTime": "2026-01-02T03:04:05.000000Z",
        },
    });
    let created = post(&client, &path, &sent).await?.accepted(201)?;
    ensure_eq!(created["spec"], sent["spec"]);
    let api = scope.objects::<Lease>(&client);
    let typed = api.get("a").await?;
    let replaced = api.replace("a", &PostParams::default(), &typed).await?;
    ensure_eq!(replaced.resource_version(), typed.resource_version());
    let mut wrong = sent;
    wrong["metadata"]["name"] = json!("b");
    wrong["spec"]["leaseDurationSeconds"] = json!(0);
    let answer = post(&client, &path, &wrong).await?;
    answer.refused(
        422,
        "Invalid",
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
    )?;
    Ok(())
}
