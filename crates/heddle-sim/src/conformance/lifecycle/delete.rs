//! Deleting: which object is meant, what holds it, and when it is gone.

use anyhow::{Context as _, Result, ensure};
use heddle_api::Trigger;
use kube::api::{
    DeleteParams, ListParams, ObjectList, Patch, PatchParams, PostParams, Preconditions,
};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{held, release};
use crate::conformance::subject::{labelled, trigger, trigger_json, triggers};
use crate::conformance::wire::{
    JSON_PATCH, MERGE, Watch, delete, get, patch, post, put, refused, version,
};
use crate::conformance::{PATIENCE, Scope, ensure_eq, group};

group!("lifecycle":
    a_deleted_object_is_gone,
    a_deletion_may_say_which_object_it_means,
    a_finalizer_holds_an_object,
    a_deletion_cannot_be_taken_back,
    an_object_being_deleted_gains_no_finalizer,
    the_last_finalizer_takes_the_object_along,
    an_object_without_finalizers_can_still_be_waited_for,
    a_collection_is_deleted_by_selector,
);

async fn a_deleted_object_is_gone(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let created = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let answer = delete(&client, &format!("{path}/a"), &json!({})).await?;
    let status = answer.accepted(200)?;
    ensure_eq!(status["kind"], "Status");
    ensure_eq!(status["status"], "Success");
    ensure_eq!(
        status["details"],
        json!({
            "name": "a", "group": "eventing.knative.dev", "kind": "triggers", "uid": created["metadata"]["uid"],
        }),
    );
    get(&client, &format!("{path}/a"))
        .await?
        .refused(404, "NotFound", "")?;
    let again = delete(&client, &format!("{path}/a"), &json!({})).await?;
    again.refused(
        404,
        "NotFound",
        "triggers.eventing.knative.dev \"a\" not found",
    )?;
    // The name is free again, for another object.
    let other = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    ensure!(other["metadata"]["uid"] != created["metadata"]["uid"]);
    Ok(())
}

async fn a_deletion_may_say_which_object_it_means(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let old = api.create(&PostParams::default(), &trigger("a")).await?;
    let new = api
        .patch(
            "a",
            &PatchParams::default(),
            &Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}})),
        )
        .await?;
    let with = |uid: Option<String>, resource_version: Option<String>| DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version,
        }),
        ..DeleteParams::default()
    };
    let other = Some("11111111-1111-1111-1111-111111111111".to_owned());
    let wrong = api.delete("a", &with(other, None)).await;
    refused(
        wrong,
        409,
        "Conflict",
        "the UID in the precondition (11111111-1111-1111-1111-111111111111) does not match the UID in record",
    )?;
    let stale = api.delete("a", &with(None, old.resource_version())).await;
    refused(
        stale,
        409,
        "Conflict",
        "does not match the ResourceVersion in record",
    )?;
    api.delete("a", &with(new.uid(), new.resource_version()))
        .await?;
    ensure!(api.get_opt("a").await?.is_none());
    Ok(())
}

async fn a_finalizer_holds_an_object(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    let created = held(&client, &scope, "a").await?;
    let deleting = delete(&client, &one, &json!({})).await?.accepted(200)?;
    ensure_eq!(deleting["kind"], "Trigger");
    ensure!(deleting["metadata"]["deletionTimestamp"].is_string());
    ensure_eq!(deleting["metadata"]["deletionGracePeriodSeconds"], 0);
    ensure_eq!(deleting["metadata"]["generation"], 2);
    ensure!(version(&deleting)? > version(&created)?);
    // Deleting again changes nothing.
    let again = delete(&client, &one, &json!({})).await?.accepted(200)?;
    ensure_eq!(
        again["metadata"]["resourceVersion"],
        deleting["metadata"]["resourceVersion"],
    );
    // The object can still be changed, and its status as well.
    let change = json!({"metadata": {"labels": {"tier": "gold"}}});
    patch(&client, &one, MERGE, &change).await?.accepted(200)?;
    let status = json!({"status": {"observedGeneration": 2}});
    patch(&client, &format!("{one}/status"), MERGE, &status)
        .await?
        .accepted(200)?;
    let taken = post(&client, &path, &trigger_json("a")).await?;
    taken.refused(409, "AlreadyExists", "")?;
    release(&client, &one).await
}

async fn a_deletion_cannot_be_taken_back(client: Client, scope: Scope) -> Result<()> {
    let one = format!("{}/a", triggers(&scope));
    held(&client, &scope, "a").await?;
    let mut deleting = delete(&client, &one, &json!({})).await?.accepted(200)?;
    let time = deleting["metadata"]["deletionTimestamp"].clone();
    if let Some(metadata) = deleting["metadata"].as_object_mut() {
        metadata.remove("deletionTimestamp");
        metadata.remove("deletionGracePeriodSeconds");
    }
    let replaced = put(&client, &one, &deleting).await?.accepted(200)?;
    ensure_eq!(replaced["metadata"]["deletionTimestamp"], time);
    let change = json!({"metadata": {"deletionTimestamp": null}});
    let patched = patch(&client, &one, MERGE, &change).await?.accepted(200)?;
    ensure_eq!(patched["metadata"]["deletionTimestamp"], time);
    release(&client, &one).await
}

async fn an_object_being_deleted_gains_no_finalizer(client: Client, scope: Scope) -> Result<()> {
    let one = format!("{}/a", triggers(&scope));
    held(&client, &scope, "a").await?;
    delete(&client, &one, &json!({})).await?.accepted(200)?;
    let add = json!({"metadata": {"finalizers": ["heddle.dev/test", "heddle.dev/late"]}});
    let answer = patch(&client, &one, MERGE, &add).await?;
    answer.refused(
        422,
        "Invalid",
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted",
    )?;
    release(&client, &one).await
}

async fn the_last_finalizer_takes_the_object_along(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let one = format!("{path}/a");
    let mut sent = trigger_json("a");
    sent["metadata"]["finalizers"] = json!(["heddle.dev/one", "heddle.dev/two"]);
    post(&client, &path, &sent).await?.accepted(201)?;
    let deleting = delete(&client, &one, &json!({})).await?.accepted(200)?;
    let query = format!("resourceVersion={}", version(&deleting)?);
    let mut watch = Watch::open(&client, &path, &query).await?;
    let remove = json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "heddle.dev/one"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    let one_left = patch(&client, &one, JSON_PATCH, &remove)
        .await?
        .accepted(200)?;
    ensure_eq!(
        one_left["metadata"]["finalizers"],
        json!(["heddle.dev/two"])
    );
    let last = json!({"metadata": {"finalizers": null}});
    let gone = patch(&client, &one, MERGE, &last).await?.accepted(200)?;
    ensure_eq!(gone["metadata"]["finalizers"], Value::Null);
    get(&client, &one).await?.refused(404, "NotFound", "")?;
    ensure_eq!(watch.next().await?.brief(), ("MODIFIED", "a"));
    let frame = watch.next().await?;
    ensure_eq!(frame.brief(), ("DELETED", "a"));
    ensure!(frame.version()? > version(&one_left)?);
    Ok(())
}

/// `await_condition` on a deletion, as controllers and `kubectl wait` use it.
async fn an_object_without_finalizers_can_still_be_waited_for(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let created = api.create(&PostParams::default(), &trigger("a")).await?;
    let uid = created.uid().context("no uid")?;
    let gone = await_condition(api.clone(), "a", conditions::is_deleted(&uid));
    let delete = async {
        api.delete("a", &DeleteParams::default()).await?;
        anyhow::Ok(())
    };
    let (gone, deleted) = futures::future::join(tokio::time::timeout(PATIENCE, gone), delete).await;
    deleted?;
    gone.context("the deletion was not seen")??;
    Ok(())
}

async fn a_collection_is_deleted_by_selector(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    for (name, tier) in [("a", "gold"), ("b", "tin"), ("c", "gold"), ("d", "tin")] {
        api.create(&PostParams::default(), &labelled(name, &[("tier", tier)]))
            .await?;
    }
    held(&client, &scope, "held").await?;
    let path = triggers(&scope);
    let answer = delete(
        &client,
        &format!("{path}?labelSelector=tier%3Dgold"),
        &json!({}),
    )
    .await?;
    let list = answer.accepted(200)?;
    ensure_eq!(list["kind"], "TriggerList");
    let names =
        |list: ObjectList<Trigger>| -> Vec<String> { list.iter().map(Trigger::name_any).collect() };
    let left = names(api.list(&ListParams::default()).await?);
    ensure_eq!(left, ["b", "d", "held"]);
    let one = ListParams::default().fields("metadata.name=b");
    api.delete_collection(&DeleteParams::default(), &one)
        .await?;
    let left = names(api.list(&ListParams::default()).await?);
    ensure_eq!(left, ["d", "held"]);
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    let left = api.list(&ListParams::default()).await?;
    ensure_eq!(left.items.len(), 1);
    ensure!(left.items[0].metadata.deletion_timestamp.is_some());
    release(&client, &format!("{path}/held")).await
}
