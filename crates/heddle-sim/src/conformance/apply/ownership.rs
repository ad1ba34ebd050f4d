//! Who owns what: how it is recorded, contested, taken over, shared and reset.

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::{Value, json};

use super::{apply, fields, manager, owners};
use crate::conformance::subject::{config_map_json, config_maps, trigger_json, triggers};
use crate::conformance::wire::{APPLY, JSON_PATCH, MERGE, get, patch, post, put};
use crate::conformance::{Scope, ensure_eq, group};

group!("apply":
    ownership_is_recorded_field_by_field,
    ordinary_writes_are_recorded_as_updates,
    an_ordinary_write_takes_fields_from_appliers,
    a_client_may_reset_ownership,
    status_is_owned_apart_from_spec,
    metadata_of_several_managers_merges,
    a_field_of_another_manager_is_a_conflict,
    force_takes_a_field_over,
    equal_values_are_shared,
);

async fn ownership_is_recorded_field_by_field(client: Client, scope: Scope) -> Result<()> {
    let mut object = trigger_json("a");
    object["metadata"]["labels"] = json!({"tier": "gold"});
    object["spec"]["filters"] = json!([{"cesql": "TRUE"}]);
    let created = apply(&client, &scope, "one", &object)
        .await?
        .accepted(201)?;
    let managers = created["metadata"]["managedFields"]
        .as_array()
        .context("no managers")?;
    ensure_eq!(managers.len(), 1);
    let entry = &managers[0];
    ensure_eq!(entry["manager"], "one");
    ensure_eq!(entry["operation"], "Apply");
    ensure_eq!(entry["apiVersion"], "eventing.knative.dev/v1");
    ensure_eq!(entry["fieldsType"], "FieldsV1");
    ensure_eq!(entry["subresource"], Value::Null);
    ensure!(entry["time"].is_string());
    // Defaults belong to nobody, an atomic list is one field.
    ensure_eq!(
        entry["fieldsV1"],
        json!({
            "f:metadata": {"f:labels": {"f:tier": {}}},
            "f:spec": {"f:filters": {}, "f:subscriber": {"f:uri": {}}},
        }),
    );
    Ok(())
}

async fn ordinary_writes_are_recorded_as_updates(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let created = post(
        &client,
        &format!("{path}?fieldManager=creator"),
        &trigger_json("a"),
    )
    .await?
    .accepted(201)?;
    let entry = manager(&created, "creator")?;
    ensure_eq!(entry["operation"], "Update");
    // What a creator is recorded for includes the defaults, and where maps begin.
    ensure_eq!(
        entry["fieldsV1"],
        json!({"f:spec": {".": {}, "f:broker": {}, "f:subscriber": {".": {}, "f:uri": {}}}}),
    );
    let one = format!("{path}/a");
    let patched = patch(
        &client,
        &format!("{one}?fieldManager=patcher"),
        MERGE,
        &json!({"metadata": {"annotations": {"heddle.dev/tier": "gold"}}, "spec": {"delivery": {"retry": 3}}}),
    )
    .await?
    .accepted(200)?;
    ensure_eq!(
        manager(&patched, "patcher")?["fieldsV1"],
        json!({
            "f:metadata": {"f:annotations": {".": {}, "f:heddle.dev/tier": {}}},
            "f:spec": {"f:delivery": {".": {}, "f:retry": {}}},
        }),
    );
    let status = patch(
        &client,
        &format!("{one}/status?fieldManager=patcher"),
        JSON_PATCH,
        &json!([{"op": "add", "path": "/status", "value": {"observedGeneration": 1}}]),
    )
    .await?
    .accepted(200)?;
    let entries = status["metadata"]["managedFields"]
        .as_array()
        .context("no managers")?;
    ensure_eq!(entries.len(), 3);
    ensure!(
        entries
            .iter()
            .any(|entry| entry["manager"] == "patcher" && entry["subresource"] == "status")
    );
    Ok(())
}

async fn an_ordinary_write_takes_fields_from_appliers(client: Client, scope: Scope) -> Result<()> {
    apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(201)?;
    let one = format!("{}/a", triggers(&scope));
    let change = json!({"spec": {"subscriber": {"uri": "http://edited.example"}}});
    let edited = patch(
        &client,
        &format!("{one}?fieldManager=editor"),
        MERGE,
        &change,
    )
    .await?
    .accepted(200)?;
    ensure_eq!(owners(&edited), ["editor"]);
    let answer = apply(&client, &scope, "one", &trigger_json("a")).await?;
    let fragment = "conflict with \"editor\" using eventing.knative.dev/v1";
    answer.refused(409, "Conflict", fragment)?;
    Ok(())
}

async fn a_client_may_reset_ownership(client: Client, scope: Scope) -> Result<()> {
    apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(201)?;
    let one = format!("{}/a", triggers(&scope));
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let without = patch(&client, &one, MERGE, &reset).await?.accepted(200)?;
    ensure_eq!(without["metadata"]["managedFields"], Value::Null);
    // An empty list, as clients send that never looked at it, changes nothing about ownership.
    let mut object = apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(200)?;
    ensure_eq!(
        fields(&object, "one")["f:spec"]["f:subscriber"],
        json!({"f:uri": {}})
    );
    object["metadata"]["managedFields"] = json!([]);
    let kept = put(&client, &one, &object).await?.accepted(200)?;
    ensure!(
        kept["metadata"]["managedFields"].is_array(),
        "ownership is gone"
    );
    // Entries that a client rewrites are honoured.
    let rename = json!([
        {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "renamed"},
    ]);
    let renamed = patch(&client, &one, JSON_PATCH, &rename)
        .await?
        .accepted(200)?;
    manager(&renamed, "renamed")?;
    let answer = patch(
        &client,
        &format!("{one}?fieldManager=one"),
        APPLY,
        &json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
            "metadata": {"name": "a", "managedFields": [{"manager": "x"}]},
        }),
    )
    .await?;
    answer.refused(400, "BadRequest", "metadata.managedFields must be nil")?;
    let read = get(&client, &one).await?.accepted(200)?;
    ensure_eq!(read, renamed);
    Ok(())
}

async fn status_is_owned_apart_from_spec(client: Client, scope: Scope) -> Result<()> {
    apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(201)?;
    let path = format!("{}/a/status", triggers(&scope));
    let status = |conditions: Value| {
        json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "a"},
            "status": {"conditions": conditions},
        })
    };
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let first = format!("{path}?fieldManager=one");
    let applied = patch(&client, &first, APPLY, &status(ready))
        .await?
        .accepted(200)?;
    let entries = applied["metadata"]["managedFields"]
        .as_array()
        .context("no managers")?;
    ensure_eq!(entries.len(), 2);
    let entry = entries
        .iter()
        .find(|entry| entry["subresource"] == "status")
        .context("no entry for the status")?;
    ensure_eq!(entry["manager"], "one");
    ensure_eq!(
        entry["fieldsV1"],
        json!({"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}, "f:type": {}}}}}),
    );
    // A second manager adds its own condition; the first one changes its own without touching it.
    let second = format!("{path}?fieldManager=two");
    let resolved = json!([{"type": "SubscriberResolved", "status": "True"}]);
    patch(&client, &second, APPLY, &status(resolved))
        .await?
        .accepted(200)?;
    let unready = json!([{"type": "Ready", "status": "False", "reason": "BrokerNotFound"}]);
    let both = patch(&client, &first, APPLY, &status(unready))
        .await?
        .accepted(200)?;
    ensure_eq!(
        both["status"]["conditions"],
        json!([
            {"type": "Ready", "status": "False", "reason": "BrokerNotFound"},
            {"type": "SubscriberResolved", "status": "True"},
        ]),
    );
    // Applying the spec again neither prunes the status nor may it set it.
    let mut spec = trigger_json("a");
    spec["status"] = json!({"subscriberUri": "http://evil.example/"});
    let spec = apply(&client, &scope, "one", &spec).await?.accepted(200)?;
    ensure_eq!(spec["status"], both["status"]);
    let answer = patch(
        &client,
        &format!("{}/absent/status?fieldManager=one", triggers(&scope)),
        APPLY,
        &json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "absent"},
            "status": {"observedGeneration": 1},
        }),
    )
    .await?;
    answer.refused(404, "NotFound", "\"absent\" not found")?;
    Ok(())
}

async fn metadata_of_several_managers_merges(client: Client, scope: Scope) -> Result<()> {
    let maps = config_maps(&scope);
    let x = post(&client, &maps, &config_map_json("x", json!({})))
        .await?
        .accepted(201)?;
    let y = post(&client, &maps, &config_map_json("y", json!({})))
        .await?
        .accepted(201)?;
    let owned_by = |owner: &Value| {
        let (name, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}])
    };
    let mut object = trigger_json("a");
    object["metadata"]["finalizers"] = json!(["heddle.dev/one"]);
    object["metadata"]["ownerReferences"] = owned_by(&x);
    apply(&client, &scope, "one", &object)
        .await?
        .accepted(201)?;
    let other = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {
            "name": "a",
            "finalizers": ["heddle.dev/two"],
            "ownerReferences": owned_by(&y),
        },
    });
    let merged = apply(&client, &scope, "two", &other).await?.accepted(200)?;
    ensure_eq!(
        merged["metadata"]["finalizers"],
        json!(["heddle.dev/one", "heddle.dev/two"]),
    );
    ensure_eq!(
        merged["metadata"]["ownerReferences"]
            .as_array()
            .map(Vec::len),
        Some(2),
    );
    let key = format!("k:{{\"uid\":{}}}", y["metadata"]["uid"]);
    ensure_eq!(
        fields(&merged, "two")["f:metadata"],
        json!({
            "f:finalizers": {"v:\"heddle.dev/two\"": {}},
            "f:ownerReferences": {key: {}},
        }),
    );
    let less = apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(200)?;
    ensure_eq!(less["metadata"]["finalizers"], json!(["heddle.dev/two"]));
    ensure_eq!(less["metadata"]["ownerReferences"][0]["name"], "y");
    patch(
        &client,
        &format!("{}/a", triggers(&scope)),
        MERGE,
        &json!({"metadata": {"finalizers": null}}),
    )
    .await?
    .accepted(200)?;
    Ok(())
}

async fn a_field_of_another_manager_is_a_conflict(client: Client, scope: Scope) -> Result<()> {
    apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(201)?;
    let mut other = trigger_json("a");
    other["spec"]["subscriber"]["uri"] = json!("http://other.example");
    let status = apply(&client, &scope, "two", &other).await?.refused(
        409,
        "Conflict",
        "Apply failed with 1 conflict: conflict with \"one\": .spec.subscriber.uri",
    )?;
    let causes = status.details.context("no details")?.causes;
    ensure_eq!(causes.len(), 1);
    ensure_eq!(causes[0].reason, "FieldManagerConflict");
    ensure_eq!(causes[0].field, ".spec.subscriber.uri");
    ensure_eq!(causes[0].message, "conflict with \"one\"");
    // Against several fields and managers, all are named.
    let mut labels = trigger_json("a");
    labels["metadata"]["labels"] = json!({"tier": "gold"});
    labels["spec"] = json!({});
    apply(&client, &scope, "three", &labels)
        .await?
        .accepted(200)?;
    other["metadata"]["labels"] = json!({"tier": "tin"});
    let status = apply(&client, &scope, "two", &other)
        .await?
        .refused(409, "Conflict", "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.subscriber.uri\nconflicts with \"three\":\n- .metadata.labels.tier")?;
    ensure_eq!(status.details.context("no details")?.causes.len(), 2);
    Ok(())
}

async fn force_takes_a_field_over(client: Client, scope: Scope) -> Result<()> {
    apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(201)?;
    let mut other = trigger_json("a");
    other["spec"]["subscriber"]["uri"] = json!("http://other.example");
    let forced = format!("{}/a?fieldManager=two&force=true", triggers(&scope));
    let taken = patch(&client, &forced, APPLY, &other)
        .await?
        .accepted(200)?;
    ensure_eq!(taken["spec"]["subscriber"]["uri"], "http://other.example");
    ensure_eq!(
        fields(&taken, "two")["f:spec"]["f:subscriber"],
        json!({"f:uri": {}})
    );
    ensure_eq!(owners(&taken), ["two"]);
    Ok(())
}

async fn equal_values_are_shared(client: Client, scope: Scope) -> Result<()> {
    apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(201)?;
    let shared = apply(&client, &scope, "two", &trigger_json("a"))
        .await?
        .accepted(200)?;
    ensure_eq!(owners(&shared), ["one", "two"]);
    let mut other = trigger_json("a");
    other["spec"]["subscriber"]["uri"] = json!("http://other.example");
    let answer = apply(&client, &scope, "one", &other).await?;
    answer.refused(409, "Conflict", "conflict with \"two\"")?;
    Ok(())
}
