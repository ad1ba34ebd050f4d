//! What an apply makes of an object: fields appear, change and go away with those who applied them.

use anyhow::{Result, ensure};
use heddle_api::Trigger;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{apply, fields, owners};
use crate::conformance::subject::{
    brokers, config_map, config_maps, trigger, trigger_json, triggers,
};
use crate::conformance::wire::{APPLY, MERGE, delete, patch, refused};
use crate::conformance::{Scope, ensure_eq, group, own_labels};

group!("apply":
    applying_creates_or_updates,
    a_manager_must_give_its_name,
    what_is_no_longer_applied_goes_away,
    what_others_own_stays,
    entries_of_keyed_lists_have_owners,
    members_of_sets_have_owners,
    atomic_lists_are_owned_whole,
    maps_are_owned_by_entry,
    applied_objects_are_validated_and_must_be_complete,
    built_in_kinds_are_applied_alike,
);

async fn applying_creates_or_updates(client: Client, scope: Scope) -> Result<()> {
    let mut object = trigger_json("a");
    let created = apply(&client, &scope, "one", &object)
        .await?
        .accepted(201)?;
    ensure_eq!(created["spec"]["broker"], "default");
    ensure_eq!(created["metadata"]["generation"], 1);
    object["spec"]["subscriber"]["uri"] = json!("http://new.example");
    let updated = apply(&client, &scope, "one", &object)
        .await?
        .accepted(200)?;
    ensure_eq!(updated["metadata"]["uid"], created["metadata"]["uid"]);
    ensure_eq!(updated["metadata"]["generation"], 2);
    ensure_eq!(updated["spec"]["subscriber"]["uri"], "http://new.example");
    // The uid and the version of an apply are preconditions.
    object["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    object["spec"]["subscriber"]["uri"] = json!("http://newer.example");
    let answer = apply(&client, &scope, "one", &object).await?;
    answer.refused(409, "Conflict", "the object has been modified")?;
    let mut absent = trigger_json("absent");
    absent["metadata"]["uid"] = created["metadata"]["uid"].clone();
    let answer = apply(&client, &scope, "one", &absent).await?;
    answer.refused(409, "Conflict", "uid mismatch")?;
    Ok(())
}

async fn a_manager_must_give_its_name(client: Client, scope: Scope) -> Result<()> {
    let path = format!("{}/a", triggers(&scope));
    let answer = patch(&client, &path, APPLY, &trigger_json("a")).await?;
    let fragment = "fieldManager: Required value: is required for apply patch";
    ensure!(
        answer.code == 400 || answer.code == 422,
        "answered {}",
        answer.code
    );
    ensure!(
        answer.body["message"]
            .as_str()
            .is_some_and(|message| message.contains(fragment)),
        "{} does not say what is missing",
        answer.body
    );
    let forced = format!("{path}?fieldManager=one&force=true");
    let answer = patch(&client, &forced, MERGE, &json!({})).await?;
    answer.refused(
        422,
        "Invalid",
        "force: Forbidden: may not be specified for non-apply patch",
    )?;
    Ok(())
}

async fn what_is_no_longer_applied_goes_away(client: Client, scope: Scope) -> Result<()> {
    let mut object = trigger_json("a");
    object["metadata"]["labels"] = json!({"tier": "gold"});
    object["metadata"]["annotations"] = json!({"heddle.dev/a": "1", "heddle.dev/b": "2"});
    object["spec"]["delivery"] = json!({"retry": 3, "timeout": "PT5S"});
    object["spec"]["filters"] = json!([{"cesql": "TRUE"}]);
    apply(&client, &scope, "one", &object)
        .await?
        .accepted(201)?;
    let mut less = trigger_json("a");
    less["metadata"]["annotations"] = json!({"heddle.dev/b": "2"});
    less["spec"]["delivery"] = json!({"retry": 3});
    let pruned = apply(&client, &scope, "one", &less).await?.accepted(200)?;
    ensure_eq!(own_labels(&pruned), Value::Null);
    ensure_eq!(
        pruned["metadata"]["annotations"],
        json!({"heddle.dev/b": "2"})
    );
    ensure_eq!(pruned["spec"]["delivery"], json!({"retry": 3}));
    ensure_eq!(pruned["spec"]["filters"], Value::Null);
    Ok(())
}

async fn what_others_own_stays(client: Client, scope: Scope) -> Result<()> {
    let mut object = trigger_json("a");
    object["spec"]["delivery"] = json!({"retry": 3, "timeout": "PT5S"});
    apply(&client, &scope, "one", &object)
        .await?
        .accepted(201)?;
    let shares = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "a"},
        "spec": {"delivery": {"retry": 3, "backoffPolicy": "linear"}},
    });
    apply(&client, &scope, "two", &shares)
        .await?
        .accepted(200)?;
    let less = apply(&client, &scope, "one", &trigger_json("a"))
        .await?
        .accepted(200)?;
    ensure_eq!(
        less["spec"]["delivery"],
        json!({"retry": 3, "backoffPolicy": "linear"}),
    );
    let nothing = json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "a"}});
    let gone = apply(&client, &scope, "two", &nothing)
        .await?
        .accepted(200)?;
    ensure_eq!(gone["spec"]["delivery"], Value::Null);
    ensure_eq!(owners(&gone), ["one"]);
    Ok(())
}

async fn entries_of_keyed_lists_have_owners(client: Client, scope: Scope) -> Result<()> {
    let broker = |claims: Value| {
        json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": {"name": "a"},
            "spec": {"claims": claims},
        })
    };
    let apply = |manager: &'static str, claims: Value| {
        let path = format!("{}/a?fieldManager={manager}", brokers(&scope));
        let client = client.clone();
        async move { patch(&client, &path, APPLY, &broker(claims)).await }
    };
    let created = apply("one", json!([{"uid": "1", "kind": "EventFlow"}]))
        .await?
        .accepted(201)?;
    ensure_eq!(
        fields(&created, "one")["f:spec"]["f:claims"],
        json!({"k:{\"uid\":\"1\"}": {".": {}, "f:kind": {}, "f:uid": {}}}),
    );
    let merged = apply("two", json!([{"uid": "2", "kind": "EventFlow"}]))
        .await?
        .accepted(200)?;
    ensure_eq!(
        merged["spec"]["claims"],
        json!([{"uid": "1", "kind": "EventFlow"}, {"uid": "2", "kind": "EventFlow"}]),
    );
    // A part of an entry may belong to somebody else than the rest of it.
    let named = apply("three", json!([{"uid": "1", "name": "orders"}]))
        .await?
        .accepted(200)?;
    ensure_eq!(named["spec"]["claims"][0]["name"], "orders");
    let answer = apply("three", json!([{"uid": "1", "kind": "Other"}])).await?;
    answer.refused(409, "Conflict", ".spec.claims[uid=\"1\"].kind")?;
    // The first manager lets go of its entry, of which the third still holds a part.
    let less = apply("one", json!([])).await?.accepted(200)?;
    ensure_eq!(
        less["spec"]["claims"],
        json!([{"uid": "1", "name": "orders"}, {"uid": "2", "kind": "EventFlow"}]),
    );
    let less = apply("three", json!([])).await?.accepted(200)?;
    ensure_eq!(
        less["spec"]["claims"],
        json!([{"uid": "2", "kind": "EventFlow"}])
    );
    let answer = apply("one", json!([{"uid": "1"}, {"uid": "1"}])).await?;
    ensure!(
        answer.code >= 400,
        "an entry was accepted twice: {}",
        answer.body
    );
    Ok(())
}

async fn members_of_sets_have_owners(client: Client, scope: Scope) -> Result<()> {
    let name = scope.unique("app");
    let path = format!("/apis/applicationconnector.kyma-project.io/v1alpha1/applications/{name}");
    let apply = |manager: &'static str, ids: Value| {
        let path = format!("{path}?fieldManager={manager}");
        let client = client.clone();
        let object = json!({
            "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name},
            "spec": {"compassMetadata": {"applicationId": "1", "authentication": {"clientIds": ids}}},
        });
        async move { patch(&client, &path, APPLY, &object).await }
    };
    let ids =
        |object: &Value| object["spec"]["compassMetadata"]["authentication"]["clientIds"].clone();
    let created = apply("one", json!(["a", "b"])).await?.accepted(201)?;
    ensure_eq!(
        fields(&created, "one")["f:spec"]["f:compassMetadata"]["f:authentication"]["f:clientIds"],
        json!({"v:\"a\"": {}, "v:\"b\"": {}}),
    );
    let merged = apply("two", json!(["c", "b"])).await?.accepted(200)?;
    let mut members: Vec<_> = ids(&merged).as_array().cloned().unwrap_or_default();
    members.sort_by_key(Value::to_string);
    ensure_eq!(Value::from(members), json!(["a", "b", "c"]));
    let less = apply("one", json!([])).await?.accepted(200)?;
    let mut members: Vec<_> = ids(&less).as_array().cloned().unwrap_or_default();
    members.sort_by_key(Value::to_string);
    ensure_eq!(Value::from(members), json!(["b", "c"]));
    delete(&client, &path, &json!({})).await?.accepted(200)?;
    Ok(())
}

async fn atomic_lists_are_owned_whole(client: Client, scope: Scope) -> Result<()> {
    let mut object = trigger_json("a");
    object["spec"]["filters"] = json!([{"cesql": "TRUE"}, {"exact": {"type": "a"}}]);
    apply(&client, &scope, "one", &object)
        .await?
        .accepted(201)?;
    let other = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "a"},
        "spec": {"filters": [{"cesql": "FALSE"}]},
    });
    let answer = apply(&client, &scope, "two", &other).await?;
    answer.refused(409, "Conflict", "conflict with \"one\": .spec.filters")?;
    object["spec"]["filters"] = json!([{"exact": {"type": "b"}}]);
    let replaced = apply(&client, &scope, "one", &object)
        .await?
        .accepted(200)?;
    ensure_eq!(
        replaced["spec"]["filters"],
        json!([{"exact": {"type": "b"}}])
    );
    Ok(())
}

async fn maps_are_owned_by_entry(client: Client, scope: Scope) -> Result<()> {
    let mut object = trigger_json("a");
    object["spec"]["filter"] = json!({"attributes": {"type": "a", "source": "s"}});
    apply(&client, &scope, "one", &object)
        .await?
        .accepted(201)?;
    let other = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "a"},
        "spec": {"filter": {"attributes": {"subject": "x"}}},
    });
    apply(&client, &scope, "two", &other).await?.accepted(200)?;
    object["spec"]["filter"] = json!({"attributes": {"type": "a"}});
    let less = apply(&client, &scope, "one", &object)
        .await?
        .accepted(200)?;
    ensure_eq!(
        less["spec"]["filter"]["attributes"],
        json!({"type": "a", "subject": "x"}),
    );
    Ok(())
}

async fn applied_objects_are_validated_and_must_be_complete(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let nothing = json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "a"}, "spec": {}});
    let answer = apply(&client, &scope, "one", &nothing).await?;
    answer.refused(422, "Invalid", "spec.subscriber: Required value")?;
    let mut named = trigger_json("b");
    named["metadata"]["name"] = json!("b");
    let path = format!("{}/a?fieldManager=one", triggers(&scope));
    let answer = patch(&client, &path, APPLY, &named).await?;
    answer.refused(400, "BadRequest", "does not match the name on the URL")?;
    let mut kindless = trigger_json("a");
    kindless["kind"] = Value::Null;
    let answer = patch(&client, &path, APPLY, &kindless).await?;
    ensure!(
        matches!(answer.code, 400 | 422),
        "answered {} {}",
        answer.code,
        answer.body
    );
    let mut unknown = trigger_json("a");
    unknown["spec"]["colour"] = json!("blue");
    let strict = format!("{path}&fieldValidation=Strict");
    let answer = patch(&client, &strict, APPLY, &unknown).await?;
    ensure!(
        answer.code >= 400,
        "an unknown field was accepted: {}",
        answer.body
    );
    Ok(())
}

async fn built_in_kinds_are_applied_alike(client: Client, scope: Scope) -> Result<()> {
    let maps = scope.objects::<ConfigMap>(&client);
    let one = PatchParams::apply("one");
    let object = |key: &str, value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {key: value}});
    maps.patch("a", &one, &Patch::Apply(object("first", "1")))
        .await?;
    let two = PatchParams::apply("two");
    let both = maps
        .patch("a", &two, &Patch::Apply(object("second", "2")))
        .await?;
    ensure_eq!(both.data.map(|data| data.len()), Some(2));
    let conflict = maps
        .patch("a", &two, &Patch::Apply(object("first", "other")))
        .await;
    refused(
        conflict,
        409,
        "Conflict",
        "conflict with \"one\": .data.first",
    )?;
    let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let less = maps.patch("a", &one, &Patch::Apply(nothing)).await?;
    ensure_eq!(
        less.data
            .unwrap_or_default()
            .into_keys()
            .collect::<Vec<_>>(),
        ["second"],
    );
    // A typed client creates and then applies over its own creation.
    let api = scope.objects::<Trigger>(&client);
    api.create(&PostParams::default(), &trigger("typed"))
        .await?;
    let forced = PatchParams::apply("one").force();
    let applied = api
        .patch("typed", &forced, &Patch::Apply(trigger("typed")))
        .await?;
    ensure_eq!(applied.spec, trigger("typed").spec);
    maps.create(&PostParams::default(), &config_map("b", "key", "value"))
        .await?;
    let path = format!("{}/b?fieldManager=one", config_maps(&scope));
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"other": "1"}});
    let merged = patch(&client, &path, APPLY, &body).await?.accepted(200)?;
    ensure_eq!(merged["data"], json!({"key": "value", "other": "1"}));
    Ok(())
}
