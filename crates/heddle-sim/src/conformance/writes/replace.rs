//! Replacing: nothing is lost to somebody else, nothing changes that must not, and nothing happens for nothing.

use anyhow::{Result, ensure};
use heddle_api::Trigger;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::conformance::subject::{
    config_map, config_map_json, config_maps, trigger, trigger_json, triggers,
};
use crate::conformance::wire::{
    APPLY, JSON_PATCH, MERGE, Watch, call, get, patch, post, put, refused, version,
};
use crate::conformance::{Scope, ensure_eq, group, own_labels};

group!("writes":
    a_stale_replace_is_refused,
    a_replace_of_a_custom_resource_names_its_version,
    another_uid_is_another_object,
    identity_survives_whatever_is_sent,
    status_and_spec_have_separate_doors,
    the_generation_counts_what_was_asked_for,
    a_dry_run_changes_nothing,
    a_write_that_changes_nothing_is_no_write,
);

async fn a_stale_replace_is_refused(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let created = api.create(&PostParams::default(), &trigger("a")).await?;
    let mut first = created.clone();
    first.spec.subscriber.uri = Some("http://first.example".to_owned());
    api.replace("a", &PostParams::default(), &first).await?;
    let mut second = created;
    second.spec.subscriber.uri = Some("http://second.example".to_owned());
    let message = "Operation cannot be fulfilled on triggers.eventing.knative.dev \"a\": \
                   the object has been modified; please apply your changes to the latest version and try again";
    let stale = api.replace("a", &PostParams::default(), &second).await;
    let status = refused(stale, 409, "Conflict", message)?;
    ensure_eq!(status.message, message);
    let stale = api
        .replace_status("a", &PostParams::default(), &second)
        .await;
    refused(stale, 409, "Conflict", message)?;
    ensure_eq!(
        api.get("a").await?.spec.subscriber.uri.as_deref(),
        Some("http://first.example"),
    );
    let absent = api
        .replace("b", &PostParams::default(), &trigger("b"))
        .await;
    ensure!(absent.is_err(), "a replace created an object");
    Ok(())
}

async fn a_replace_of_a_custom_resource_names_its_version(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    api.create(&PostParams::default(), &trigger("a")).await?;
    let blind = api
        .replace("a", &PostParams::default(), &trigger("a"))
        .await;
    let message = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    refused(blind, 422, "Invalid", message)?;
    // What Kubernetes itself defines may be overwritten blindly.
    let maps = scope.objects::<ConfigMap>(&client);
    let created = maps
        .create(&PostParams::default(), &config_map("a", "key", "1"))
        .await?;
    let replaced = maps
        .replace("a", &PostParams::default(), &config_map("a", "key", "2"))
        .await?;
    ensure_eq!(replaced.uid(), created.uid());
    ensure!(replaced.resource_version() != created.resource_version());
    Ok(())
}

async fn another_uid_is_another_object(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let mut created = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    created["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    let answer = put(&client, &format!("{path}/a"), &created).await?;
    answer.refused(409, "Conflict", "Precondition failed: UID in precondition")?;
    // By a patch it is either a precondition or a field that must not change; in no case is it done.
    let other = json!({"metadata": {"uid": "11111111-1111-1111-1111-111111111111"}});
    let answer = patch(&client, &format!("{path}/a"), MERGE, &other).await?;
    ensure!(
        matches!(answer.code, 409 | 422),
        "answered {} {}",
        answer.code,
        answer.body
    );
    Ok(())
}

async fn identity_survives_whatever_is_sent(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let created = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let mut sent = trigger_json("a");
    sent["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    sent["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    sent["metadata"]["generation"] = json!(50);
    sent["metadata"]["labels"] = json!({"new": "label"});
    let replaced = put(&client, &format!("{path}/a"), &sent)
        .await?
        .accepted(200)?;
    for kept in [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
    ] {
        ensure_eq!(replaced["metadata"][kept], created["metadata"][kept]);
    }
    ensure_eq!(replaced["metadata"]["labels"]["new"], "label");
    let mut ended = replaced;
    ended["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let answer = put(&client, &format!("{path}/a"), &ended).await?;
    let fragment =
        "metadata.deletionTimestamp: Invalid value: \"2001-01-01T00:00:00Z\": field is immutable";
    answer.refused(422, "Invalid", fragment)?;
    Ok(())
}

async fn status_and_spec_have_separate_doors(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let both = json!({
        "metadata": {"labels": {"tier": "gold"}},
        "spec": {"subscriber": {"uri": "http://other.example"}},
        "status": {"subscriberUri": "http://orders.example/"},
    });
    let status = patch(&client, &format!("{one}/status"), MERGE, &both)
        .await?
        .accepted(200)?;
    ensure_eq!(status["status"]["subscriberUri"], "http://orders.example/");
    ensure_eq!(status["spec"]["subscriber"]["uri"], "http://orders.example");
    ensure_eq!(own_labels(&status), Value::Null);
    ensure_eq!(status["metadata"]["generation"], 1);

    let mut whole = status;
    whole["status"] = json!({"subscriberUri": "http://evil.example/"});
    whole["metadata"]["labels"] = json!({"tier": "gold"});
    let spec = put(&client, &one, &whole).await?.accepted(200)?;
    ensure_eq!(spec["status"]["subscriberUri"], "http://orders.example/");
    ensure_eq!(spec["metadata"]["labels"]["tier"], "gold");

    let mut replacement = spec;
    replacement["status"] = json!({"subscriberUri": "http://new.example/"});
    replacement["spec"]["subscriber"]["uri"] = json!("http://other.example");
    let replaced = put(&client, &format!("{one}/status"), &replacement)
        .await?
        .accepted(200)?;
    ensure_eq!(replaced["status"]["subscriberUri"], "http://new.example/");
    ensure_eq!(
        replaced["spec"]["subscriber"]["uri"],
        "http://orders.example"
    );
    let read = get(&client, &format!("{one}/status"))
        .await?
        .accepted(200)?;
    ensure_eq!(read, replaced);

    // The schema rules here as well.
    let wrong = json!({"status": {"conditions": [{"type": "Ready", "status": "Perhaps"}]}});
    let answer = patch(&client, &format!("{one}/status"), MERGE, &wrong).await?;
    answer.refused(
        422,
        "Invalid",
        "status.conditions[0].status: Unsupported value: \"Perhaps\"",
    )?;
    Ok(())
}

async fn the_generation_counts_what_was_asked_for(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    for (path, change, generation) in [
        (&one, json!({"metadata": {"labels": {"a": "b"}}}), 1),
        (
            &one,
            json!({"spec": {"subscriber": {"uri": "http://b.example"}}}),
            2,
        ),
        (
            &format!("{one}/status"),
            json!({"status": {"observedGeneration": 2}}),
            2,
        ),
        (
            &one,
            json!({"spec": {"subscriber": {"uri": "http://b.example"}}}),
            2,
        ),
        (&one, json!({"spec": {"delivery": {"retry": 3}}}), 3),
    ] {
        let patched = patch(&client, path, MERGE, &change).await?.accepted(200)?;
        ensure!(
            patched["metadata"]["generation"] == generation,
            "{change} led to generation {}",
            patched["metadata"]["generation"]
        );
    }
    let map = post(
        &client,
        &config_maps(&scope),
        &config_map_json("a", json!({"key": "value"})),
    )
    .await?
    .accepted(201)?;
    ensure_eq!(map["metadata"]["generation"], Value::Null);
    Ok(())
}

async fn a_dry_run_changes_nothing(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    let created = post(&client, &format!("{path}?dryRun=All"), &trigger_json("a"))
        .await?
        .accepted(201)?;
    ensure_eq!(created["spec"]["broker"], "default");
    ensure!(created["metadata"]["uid"].is_string());
    get(&client, &one).await?.refused(404, "NotFound", "")?;

    let real = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let answer = post(&client, &format!("{path}?dryRun=All"), &trigger_json("a")).await?;
    answer.refused(409, "AlreadyExists", "")?;
    let mut changed = real.clone();
    changed["metadata"]["labels"] = json!({"tier": "gold"});
    for dry in [
        put(&client, &format!("{one}?dryRun=All"), &changed).await?,
        patch(&client, &format!("{one}?dryRun=All"), MERGE, &changed).await?,
        patch(
            &client,
            &format!("{one}?dryRun=All&fieldManager=test"),
            APPLY,
            &json!({
                "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
                "metadata": {"labels": {"tier": "gold"}},
            }),
        )
        .await?,
    ] {
        let dry = dry.accepted(200)?;
        ensure_eq!(dry["metadata"]["labels"]["tier"], "gold");
    }
    let status = json!({"status": {"observedGeneration": 1}});
    patch(&client, &format!("{one}/status?dryRun=All"), MERGE, &status)
        .await?
        .accepted(200)?;
    // A deletion is told by its query, or by its body, which then alone counts.
    for (path, body) in [
        (format!("{one}?dryRun=All"), ""),
        (one.clone(), r#"{"dryRun": ["All"]}"#),
        (format!("{path}?dryRun=All"), ""),
    ] {
        call(&client, http::Method::DELETE, &path, &JSON, body)
            .await?
            .accepted(200)?;
    }
    ensure_eq!(get(&client, &one).await?.accepted(200)?, real);
    Ok(())
}

async fn a_write_that_changes_nothing_is_no_write(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    let apply = format!("{one}?fieldManager=test");
    let created = patch(&client, &apply, APPLY, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let query = format!("resourceVersion={}", version(&created)?);
    let mut watch = Watch::open(&client, &path, &query).await?;
    let again = [
        patch(&client, &apply, APPLY, &trigger_json("a")).await?,
        put(&client, &one, &created).await?,
        put(&client, &format!("{one}/status"), &created).await?,
        patch(&client, &one, MERGE, &json!({})).await?,
        patch(
            &client,
            &one,
            MERGE,
            &json!({"spec": {"broker": "default"}}),
        )
        .await?,
        patch(&client, &one, JSON_PATCH, &json!([])).await?,
    ];
    for answer in again {
        let same = answer.accepted(200)?;
        ensure_eq!(
            same["metadata"]["resourceVersion"],
            created["metadata"]["resourceVersion"],
        );
    }
    // The next thing a watcher hears of is the next real change.
    let change = json!({"metadata": {"labels": {"tier": "gold"}}});
    patch(&client, &one, MERGE, &change).await?.accepted(200)?;
    let frame = watch.next().await?;
    ensure_eq!(frame.object["metadata"]["labels"]["tier"], "gold");
    Ok(())
}

const JSON: [(http::HeaderName, &str); 1] = [(http::header::CONTENT_TYPE, "application/json")];
