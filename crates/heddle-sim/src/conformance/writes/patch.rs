//! Patching, in the three ways that describe a change rather than a wish.

use anyhow::{Result, ensure};
use heddle_api::Trigger;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::conformance::subject::{config_map_json, config_maps, trigger, trigger_json, triggers};
use crate::conformance::wire::{JSON_PATCH, MERGE, STRATEGIC, get, patch, post, refused};
use crate::conformance::{Scope, ensure_eq, group, own_labels};

group!("writes":
    a_merge_patch_merges_and_removes,
    a_json_patch_does_all_or_nothing,
    a_json_patch_may_test_for_absence,
    a_strategic_patch_is_for_built_in_kinds_only,
    a_patch_may_name_the_version_it_is_for,
);

async fn a_merge_patch_merges_and_removes(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let mut sent = trigger("a");
    sent.metadata.annotations =
        Some([("keep".into(), "1".into()), ("drop".into(), "2".into())].into());
    api.create(&PostParams::default(), &sent).await?;
    let change = json!({
        "metadata": {"annotations": {"drop": null, "absent": null, "new": "3"}},
        "spec": {"filters": [{"exact": {"type": "order.created"}}]},
    });
    let patched = api
        .patch("a", &PatchParams::default(), &Patch::Merge(&change))
        .await?;
    ensure_eq!(
        patched
            .annotations()
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>(),
        ["keep", "new"],
    );
    ensure_eq!(patched.spec.filters.len(), 1);
    let change = json!({"spec": {"filters": [{"cesql": "TRUE"}]}});
    let patched = api
        .patch("a", &PatchParams::default(), &Patch::Merge(&change))
        .await?;
    ensure_eq!(patched.spec.filters.len(), 1);
    ensure_eq!(patched.spec.filters[0].cesql.as_deref(), Some("TRUE"));
    let absent = api
        .patch("absent", &PatchParams::default(), &Patch::Merge(&change))
        .await;
    refused(absent, 404, "NotFound", "\"absent\" not found")?;
    let renamed = api
        .patch(
            "a",
            &PatchParams::default(),
            &Patch::Merge(&json!({"metadata": {"name": "b"}})),
        )
        .await;
    refused(
        renamed,
        400,
        "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
    )?;
    Ok(())
}

async fn a_json_patch_does_all_or_nothing(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let patched = patch(
        &client,
        &one,
        JSON_PATCH,
        &json!([
            {"op": "test", "path": "/spec/broker", "value": "default"},
            {"op": "add", "path": "/metadata/labels", "value": {"a~b": "1"}},
            {"op": "add", "path": "/spec/filters", "value": [{"cesql": "TRUE"}]},
            {"op": "add", "path": "/spec/filters/-", "value": {"cesql": "FALSE"}},
            {"op": "copy", "from": "/spec/subscriber", "path": "/spec/delivery/deadLetterSink"},
        ]),
    )
    .await?;
    // Copying into an object that is not there fails, and takes everything before it along.
    ensure!(patched.code >= 400, "answered {}", patched.code);
    let unchanged = get(&client, &one).await?.accepted(200)?;
    ensure_eq!(own_labels(&unchanged), Value::Null);
    let patched = patch(
        &client,
        &one,
        JSON_PATCH,
        &json!([
            {"op": "add", "path": "/metadata/labels", "value": {"tier": "1"}},
            {"op": "add", "path": "/spec/filters", "value": [{"exact": {"type": "a", "subject": "b"}}]},
            {"op": "add", "path": "/spec/filters/-", "value": {"cesql": "FALSE"}},
            {"op": "replace", "path": "/spec/subscriber/uri", "value": "http://new.example"},
            {"op": "remove", "path": "/metadata/labels/tier"},
            {"op": "move", "from": "/spec/filters/0/exact/type", "path": "/metadata/labels/moved"},
        ]),
    )
    .await?
    .accepted(200)?;
    let filters = json!([{"exact": {"subject": "b"}}, {"cesql": "FALSE"}]);
    ensure_eq!(patched["spec"]["filters"], filters);
    ensure_eq!(patched["spec"]["subscriber"]["uri"], "http://new.example");
    ensure_eq!(own_labels(&patched), json!({"moved": "a"}));
    let failed = json!([{"op": "test", "path": "/spec/broker", "value": "other"}]);
    let answer = patch(&client, &one, JSON_PATCH, &failed).await?;
    answer.refused(422, "Invalid", "")?;
    Ok(())
}

async fn a_json_patch_may_test_for_absence(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let add = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["heddle.dev/test"]},
    ]);
    let patched = patch(&client, &one, JSON_PATCH, &add)
        .await?
        .accepted(200)?;
    ensure_eq!(
        patched["metadata"]["finalizers"],
        json!(["heddle.dev/test"])
    );
    // Now it is there, so the same test fails.
    let answer = patch(&client, &one, JSON_PATCH, &add).await?;
    answer.refused(422, "Invalid", "")?;
    let remove = json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "heddle.dev/test"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    let patched = patch(&client, &one, JSON_PATCH, &remove)
        .await?
        .accepted(200)?;
    ensure_eq!(patched["metadata"]["finalizers"], Value::Null);
    Ok(())
}

async fn a_strategic_patch_is_for_built_in_kinds_only(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let change = json!({"metadata": {"labels": {"tier": "gold"}}});
    let answer = patch(&client, &format!("{path}/a"), STRATEGIC, &change).await?;
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    answer.refused(415, "UnsupportedMediaType", message)?;

    let path = config_maps(&scope);
    let mut sent = config_map_json("a", json!({"keep": "1", "drop": "2"}));
    sent["metadata"]["finalizers"] = json!(["heddle.dev/one"]);
    post(&client, &path, &sent).await?.accepted(201)?;
    let change = json!({
        "data": {"drop": null, "new": "3"},
        "metadata": {"labels": {"tier": "gold"}, "finalizers": ["heddle.dev/two"]},
    });
    let patched = patch(&client, &format!("{path}/a"), STRATEGIC, &change)
        .await?
        .accepted(200)?;
    ensure_eq!(patched["data"], json!({"keep": "1", "new": "3"}));
    // Finalizers are a set: a strategic patch adds to them where a merge patch would replace them.
    ensure_eq!(
        patched["metadata"]["finalizers"].as_array().map(Vec::len),
        Some(2)
    );
    let change = json!({"metadata": {"finalizers": null}});
    let patched = patch(&client, &format!("{path}/a"), STRATEGIC, &change)
        .await?
        .accepted(200)?;
    ensure_eq!(patched["metadata"]["finalizers"], Value::Null);
    let replaced = patch(
        &client,
        &format!("{path}/a"),
        STRATEGIC,
        &json!({"data": {"$patch": "replace", "only": "4"}}),
    )
    .await?
    .accepted(200)?;
    ensure_eq!(replaced["data"], json!({"only": "4"}));
    Ok(())
}

async fn a_patch_may_name_the_version_it_is_for(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    let created = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let change = |label: &str| {
        json!({"metadata": {
            "resourceVersion": created["metadata"]["resourceVersion"],
            "labels": {"tier": label},
        }})
    };
    patch(&client, &one, MERGE, &change("gold"))
        .await?
        .accepted(200)?;
    let answer = patch(&client, &one, MERGE, &change("tin")).await?;
    answer.refused(409, "Conflict", "the object has been modified")?;
    Ok(())
}
