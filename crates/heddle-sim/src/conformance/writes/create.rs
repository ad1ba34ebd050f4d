//! Creating: identity, names and namespaces.

use anyhow::{Context as _, Result, ensure};
use heddle_api::Trigger;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::conformance::subject::{brokers, config_map, trigger, trigger_json, triggers};
use crate::conformance::wire::{get, post, put, refused, version};
use crate::conformance::{Scope, ensure_eq, group};

group!("writes":
    a_created_object_gets_an_identity,
    a_generated_name_is_unique,
    a_name_is_created_once,
    creating_needs_a_namespace,
    names_labels_and_annotations_are_checked,
    a_secret_takes_plain_text,
);

async fn a_created_object_gets_an_identity(client: Client, scope: Scope) -> Result<()> {
    let mut sent = trigger_json("a");
    sent["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    sent["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    sent["metadata"]["generation"] = json!(7);
    sent["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    sent["metadata"]["selfLink"] = json!("/somewhere");
    sent["status"] = json!({"subscriberUri": "http://orders.example/"});
    let created = post(&client, &triggers(&scope), &sent)
        .await?
        .accepted(201)?;
    let metadata = &created["metadata"];
    ensure_eq!(metadata["name"], "a");
    ensure_eq!(metadata["namespace"], scope.namespace.as_str());
    ensure_eq!(metadata["generation"], 1);
    let uid = metadata["uid"].as_str().context("no uid")?;
    ensure!(uid.len() == 36 && uid != "11111111-1111-1111-1111-111111111111");
    let time = metadata["creationTimestamp"].as_str().context("no time")?;
    ensure!(
        time.len() == 20 && time.ends_with('Z') && !time.starts_with("2001"),
        "{time:?} is no time in whole seconds"
    );
    ensure!(version(&created)? > 0);
    ensure_eq!(metadata["deletionTimestamp"], Value::Null);
    ensure_eq!(metadata["selfLink"], Value::Null);
    ensure_eq!(created["status"], Value::Null);
    let read = get(&client, &format!("{}/a", triggers(&scope)))
        .await?
        .accepted(200)?;
    ensure_eq!(read, created);
    let mut versioned = trigger_json("b");
    versioned["metadata"]["resourceVersion"] = json!("1");
    let answer = post(&client, &triggers(&scope), &versioned).await?;
    let fragment = "resourceVersion should not be set on objects to be created";
    ensure!(
        answer.code >= 400
            && answer.body["message"]
                .as_str()
                .unwrap_or_default()
                .contains(fragment),
        "answered {} {}",
        answer.code,
        answer.body
    );
    Ok(())
}

async fn a_generated_name_is_unique(client: Client, scope: Scope) -> Result<()> {
    let mut sent = trigger_json("");
    sent["metadata"] = json!({"generateName": "orders-"});
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let created = post(&client, &triggers(&scope), &sent)
            .await?
            .accepted(201)?;
        let name = created["metadata"]["name"].as_str().context("no name")?;
        ensure!(
            name.len() == "orders-".len() + 5 && name.starts_with("orders-"),
            "{name:?} does not look generated"
        );
        ensure_eq!(created["metadata"]["generateName"], "orders-");
        names.insert(name.to_owned());
    }
    ensure_eq!(names.len(), 5);
    sent["metadata"] = json!({});
    let answer = post(&client, &triggers(&scope), &sent).await?;
    answer.refused(422, "Invalid", "name or generateName is required")?;
    Ok(())
}

async fn a_name_is_created_once(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    api.create(&PostParams::default(), &trigger("a")).await?;
    let again = api.create(&PostParams::default(), &trigger("a")).await;
    let message = "triggers.eventing.knative.dev \"a\" already exists";
    let status = refused(again, 409, "AlreadyExists", message)?;
    ensure_eq!(status.message, message);
    Ok(())
}

async fn creating_needs_a_namespace(client: Client, scope: Scope) -> Result<()> {
    let absent = scope.unique("absent");
    let custom = Api::<Trigger>::namespaced(client.clone(), &absent)
        .create(&PostParams::default(), &trigger("a"))
        .await;
    let message = format!("namespaces \"{absent}\" not found");
    refused(custom, 404, "NotFound", &message)?;
    let built_in = Api::<ConfigMap>::namespaced(client, &absent)
        .create(&PostParams::default(), &config_map("a", "key", "value"))
        .await;
    refused(built_in, 404, "NotFound", &message)?;
    Ok(())
}

async fn names_labels_and_annotations_are_checked(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    for name in [
        "Upper",
        "under_score",
        "-dash",
        "dot..dot",
        &"x".repeat(254),
    ] {
        let answer = post(&client, &path, &trigger_json(name)).await?;
        answer
            .refused(422, "Invalid", "metadata.name: Invalid value")
            .with_context(|| format!("name {name:?}"))?;
    }
    for (metadata, fragment) in [
        (
            json!({"labels": {"key": "no spaces"}}),
            "metadata.labels: Invalid value: \"no spaces\"",
        ),
        (
            json!({"labels": {"-bad": "value"}}),
            "metadata.labels: Invalid value: \"-bad\"",
        ),
        (
            json!({"labels": {"key": "x".repeat(64)}}),
            "must be no more than 63 bytes",
        ),
        (
            json!({"annotations": {"not a key": "any value is fine"}}),
            "metadata.annotations: Invalid value: \"not a key\"",
        ),
        (
            json!({"annotations": {"big": "x".repeat(300 * 1024)}}),
            "metadata.annotations: Too long",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": ""}]}),
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ),
    ] {
        let mut sent = trigger_json("a");
        sent["metadata"] = metadata;
        sent["metadata"]["name"] = json!("a");
        let answer = post(&client, &path, &sent).await?;
        answer.refused(422, "Invalid", fragment)?;
    }
    Ok(())
}

async fn a_secret_takes_plain_text(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Secret>(&client);
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "a"}, "stringData": {"password": "hunter2"}, "data": {"user": "YW5uYQ=="},
    }))?;
    let created = api.create(&PostParams::default(), &secret).await?;
    ensure_eq!(created.string_data, None);
    ensure_eq!(created.type_.as_deref(), Some("Opaque"));
    let data = created.data.context("no data")?;
    ensure_eq!(data["password"].0, b"hunter2");
    ensure_eq!(data["user"].0, b"anna");
    let path = format!("/api/v1/namespaces/{}/secrets", scope.namespace);
    let garbage = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "data": {"user": "not base64!"},
    });
    let answer = post(&client, &path, &garbage).await?;
    answer.refused(400, "BadRequest", "")?;
    let mut immutable = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}, "immutable": true,
        "stringData": {"key": "value"},
    });
    post(&client, &path, &immutable).await?.accepted(201)?;
    immutable["stringData"]["key"] = json!("other");
    let answer = put(&client, &format!("{path}/c"), &immutable).await?;
    answer.refused(422, "Invalid", "field is immutable when `immutable` is set")?;
    // An empty Broker is valid: nothing in it is required.
    let broker = json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": {"name": "a"}, "spec": {}});
    post(&client, &brokers(&scope), &broker)
        .await?
        .accepted(201)?;
    Ok(())
}
