//! Watching: every change once, in order, from where the watcher says it stopped.

use anyhow::{Context as _, Result, ensure};
use heddle_api::Trigger;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::subject::{labelled, trigger, triggers};
use super::wire::{AS_TABLE, Watch, get, version};
use super::{Scope, ensure_eq, group};

group!("watch":
    changes_arrive_once_and_in_order,
    a_watch_resumes_exactly_after_the_version_it_names,
    a_deleted_object_carries_the_version_of_its_deletion,
    a_watch_without_a_version_starts_with_what_exists,
    entering_and_leaving_a_selector_looks_like_coming_and_going,
    a_watch_of_one_name_sees_nothing_else,
    a_streaming_list_says_where_its_beginning_ends,
    a_streaming_list_must_say_how_fresh_it_is,
    bookmarks_come_before_the_watch_ends,
    a_watch_ends_cleanly_when_its_time_is_up,
    history_is_replayed_or_said_to_be_gone,
    metadata_alone_can_be_watched,
    a_watched_table_names_its_columns_once,
    a_watch_across_namespaces_sees_this_one,
);

async fn changes_arrive_once_and_in_order(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let start = list_version(&client, &scope).await?;
    let mut watch = from(&client, &scope, &start).await?;
    api.create(&PostParams::default(), &trigger("a")).await?;
    api.create(&PostParams::default(), &trigger("b")).await?;
    label(&api, "a", "step", "1").await?;
    api.delete("b", &DeleteParams::default()).await?;
    label(&api, "a", "step", "2").await?;

    let mut last = start.parse()?;
    for expected in [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
        ("MODIFIED", "a"),
    ] {
        let frame = watch.next().await?;
        ensure_eq!(frame.brief(), expected);
        ensure!(
            frame.version()? > last,
            "{frame:?} is not newer than {last}"
        );
        last = frame.version()?;
    }
    Ok(())
}

async fn a_watch_resumes_exactly_after_the_version_it_names(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let start = list_version(&client, &scope).await?;
    let mut versions = vec![start];
    for name in ["a", "b", "c"] {
        let created = api.create(&PostParams::default(), &trigger(name)).await?;
        versions.push(created.resource_version().context("no version")?);
    }
    for (seen, version) in versions.iter().enumerate() {
        let mut watch = from(&client, &scope, version).await?;
        for name in &["a", "b", "c"][seen..] {
            ensure_eq!(watch.next().await?.brief(), ("ADDED", *name));
        }
    }
    Ok(())
}

async fn a_deleted_object_carries_the_version_of_its_deletion(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let created = api.create(&PostParams::default(), &trigger("a")).await?;
    let created = created.resource_version().context("no version")?;
    let mut watch = from(&client, &scope, &created).await?;
    api.delete("a", &DeleteParams::default()).await?;
    let frame = watch.next().await?;
    ensure_eq!(frame.brief(), ("DELETED", "a"));
    ensure!(frame.version()? > created.parse()?);
    ensure_eq!(frame.object["spec"]["broker"], "default");
    // Hence a watch that resumes there does not see the deletion again.
    let mut resumed = from(&client, &scope, &frame.version()?.to_string()).await?;
    api.create(&PostParams::default(), &trigger("b")).await?;
    ensure_eq!(resumed.next().await?.brief(), ("ADDED", "b"));
    Ok(())
}

async fn a_watch_without_a_version_starts_with_what_exists(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    for name in ["b", "a"] {
        api.create(&PostParams::default(), &trigger(name)).await?;
    }
    for query in ["", "resourceVersion=0", "resourceVersion="] {
        // Version 0 may be stale; listing first makes the server's state at least as new as the two objects.
        list_version(&client, &scope).await?;
        let mut watch = Watch::open(&client, &triggers(&scope), query).await?;
        let mut names = vec![
            watch.next().await?.brief().1.to_owned(),
            watch.next().await?.brief().1.to_owned(),
        ];
        names.sort();
        ensure_eq!(names, ["a", "b"]);
        label(&api, "a", "query", "seen").await?;
        ensure_eq!(watch.next().await?.brief(), ("MODIFIED", "a"));
        label(&api, "a", "query", "").await?;
    }
    Ok(())
}

async fn entering_and_leaving_a_selector_looks_like_coming_and_going(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let start = list_version(&client, &scope).await?;
    let query = format!("resourceVersion={start}&labelSelector=tier%3Dgold");
    let mut watch = Watch::open(&client, &triggers(&scope), &query).await?;
    api.create(&PostParams::default(), &labelled("a", &[("tier", "tin")]))
        .await?;
    label(&api, "a", "tier", "gold").await?;
    label(&api, "a", "other", "1").await?;
    let left = label(&api, "a", "tier", "tin").await?;
    label(&api, "a", "other", "2").await?;
    label(&api, "a", "tier", "gold").await?;
    api.delete("a", &DeleteParams::default()).await?;
    for (kind, tier) in [
        ("ADDED", "gold"),
        ("MODIFIED", "gold"),
        ("DELETED", "gold"),
        ("ADDED", "gold"),
        ("DELETED", "gold"),
    ] {
        let frame = watch.next().await?;
        ensure_eq!(frame.brief(), (kind, "a"));
        // An object that left is shown as it was when it last matched, with the version at which it left.
        ensure_eq!(frame.object["metadata"]["labels"]["tier"], tier);
        if (kind, frame.object["metadata"]["labels"]["other"].as_str()) == ("DELETED", Some("1")) {
            ensure_eq!(Some(frame.version()?.to_string()), left.resource_version());
        }
    }
    Ok(())
}

async fn a_watch_of_one_name_sees_nothing_else(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let start = list_version(&client, &scope).await?;
    let query = format!("resourceVersion={start}&fieldSelector=metadata.name%3Db");
    let mut watch = Watch::open(&client, &triggers(&scope), &query).await?;
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &trigger(name)).await?;
    }
    api.delete("a", &DeleteParams::default()).await?;
    api.delete("b", &DeleteParams::default()).await?;
    ensure_eq!(watch.next().await?.brief(), ("ADDED", "b"));
    ensure_eq!(watch.next().await?.brief(), ("DELETED", "b"));
    Ok(())
}

async fn a_streaming_list_says_where_its_beginning_ends(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    for name in ["b", "a"] {
        api.create(&PostParams::default(), &trigger(name)).await?;
    }
    let list = list_version(&client, &scope).await?;
    for version in ["", "0", list.as_str()] {
        let query = format!(
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
             &resourceVersion={version}"
        );
        let mut watch = Watch::open(&client, &triggers(&scope), &query).await?;
        let mut names = Vec::new();
        let bookmark = loop {
            let frame = watch.next().await?;
            match frame.kind.as_str() {
                "ADDED" => names.push(frame.brief().1.to_owned()),
                "BOOKMARK" => break frame,
                _ => anyhow::bail!("{frame:?} before the end of the beginning"),
            }
        };
        names.sort();
        ensure_eq!(names, ["a", "b"]);
        ensure_eq!(
            bookmark.object["metadata"]["annotations"],
            json!({"k8s.io/initial-events-end": "true"}),
        );
        ensure_eq!(bookmark.object["kind"], "Trigger");
        ensure!(bookmark.version()? > 0);
        label(&api, "a", "version", &format!("v{version}")).await?;
        ensure_eq!(watch.next().await?.brief(), ("MODIFIED", "a"));
    }
    Ok(())
}

async fn a_streaming_list_must_say_how_fresh_it_is(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let unsaid = format!("{path}?watch=true&sendInitialEvents=true");
    let fragment = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    get(&client, &unsaid)
        .await?
        .refused(422, "Invalid", fragment)?;
    let no_watch = format!(
        "{path}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1"
    );
    let fragment = "sendInitialEvents is forbidden for list";
    get(&client, &no_watch)
        .await?
        .refused(422, "Invalid", fragment)?;
    let matching = format!("{path}?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1");
    let fragment =
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    get(&client, &matching)
        .await?
        .refused(422, "Invalid", fragment)?;
    Ok(())
}

async fn bookmarks_come_before_the_watch_ends(client: Client, scope: Scope) -> Result<()> {
    let start = list_version(&client, &scope).await?;
    let query = format!("resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=4");
    let mut watch = Watch::open(&client, &triggers(&scope), &query).await?;
    let frame = watch.next().await?;
    ensure_eq!(frame.kind, "BOOKMARK");
    ensure_eq!(frame.object["kind"], "Trigger");
    ensure_eq!(frame.object["apiVersion"], "eventing.knative.dev/v1");
    ensure!(frame.version()? >= start.parse()?);
    while let Some(frame) = watch.frame().await? {
        ensure_eq!(frame.kind, "BOOKMARK");
    }
    Ok(())
}

async fn a_watch_ends_cleanly_when_its_time_is_up(client: Client, scope: Scope) -> Result<()> {
    let start = list_version(&client, &scope).await?;
    let query = format!("resourceVersion={start}&timeoutSeconds=1");
    let mut watch = Watch::open(&client, &triggers(&scope), &query).await?;
    ensure!(watch.frame().await?.is_none(), "nothing happened");
    Ok(())
}

/// A server may keep as much history as it likes; what it no longer has it must not pass over in silence.
async fn history_is_replayed_or_said_to_be_gone(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    api.create(&PostParams::default(), &trigger("a")).await?;
    label(&api, "a", "step", "1").await?;
    api.delete("a", &DeleteParams::default()).await?;
    let mut watch = from(&client, &scope, "1").await?;
    let first = watch.next().await?;
    if first.kind == "ERROR" {
        ensure_eq!(first.object["kind"], "Status");
        ensure_eq!(first.object["code"], 410);
        ensure_eq!(first.object["reason"], "Expired");
        ensure!(
            first.object["message"]
                .as_str()
                .is_some_and(|message| message.starts_with("too old resource version")),
            "{} does not say what is wrong",
            first.object
        );
        ensure!(watch.frame().await?.is_none(), "the watch goes on");
        return Ok(());
    }
    ensure_eq!(first.brief(), ("ADDED", "a"));
    ensure_eq!(watch.next().await?.brief(), ("MODIFIED", "a"));
    ensure_eq!(watch.next().await?.brief(), ("DELETED", "a"));
    Ok(())
}

async fn metadata_alone_can_be_watched(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let start = list_version(&client, &scope).await?;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let query = format!("resourceVersion={start}");
    let mut watch = Watch::open_as(&client, &triggers(&scope), &query, accept).await?;
    let created = api
        .create(&PostParams::default(), &labelled("a", &[("tier", "gold")]))
        .await?;
    api.delete("a", &DeleteParams::default()).await?;
    let frame = watch.next().await?;
    ensure_eq!(frame.brief(), ("ADDED", "a"));
    ensure_eq!(frame.object["kind"], "PartialObjectMetadata");
    ensure_eq!(frame.object["apiVersion"], "meta.k8s.io/v1");
    ensure_eq!(frame.object["metadata"]["labels"]["tier"], "gold");
    ensure_eq!(
        frame.object["metadata"]["uid"].as_str(),
        created.metadata.uid.as_deref(),
    );
    ensure_eq!(frame.object["spec"], Value::Null);
    ensure_eq!(watch.next().await?.brief(), ("DELETED", "a"));
    Ok(())
}

async fn a_watched_table_names_its_columns_once(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let start = list_version(&client, &scope).await?;
    let query = format!("resourceVersion={start}");
    let mut watch = Watch::open_as(&client, &triggers(&scope), &query, AS_TABLE).await?;
    api.create(&PostParams::default(), &trigger("a")).await?;
    api.create(&PostParams::default(), &trigger("b")).await?;
    let first = watch.next().await?;
    ensure_eq!(first.kind, "ADDED");
    ensure_eq!(first.object["kind"], "Table");
    ensure_eq!(first.object["columnDefinitions"][1]["name"], "Broker");
    ensure_eq!(first.object["rows"][0]["cells"][0], "a");
    ensure_eq!(first.object["rows"][0]["object"]["metadata"]["name"], "a");
    let second = watch.next().await?;
    ensure_eq!(second.object["columnDefinitions"], Value::Null);
    ensure_eq!(second.object["rows"][0]["cells"][0], "b");
    Ok(())
}

async fn a_watch_across_namespaces_sees_this_one(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let start = list_version(&client, &scope).await?;
    let query = format!(
        "resourceVersion={start}&fieldSelector=metadata.namespace%3D{}",
        scope.namespace
    );
    let mut watch = Watch::open(&client, "/apis/eventing.knative.dev/v1/triggers", &query).await?;
    api.create(&PostParams::default(), &trigger("a")).await?;
    let frame = watch.next().await?;
    ensure_eq!(frame.brief(), ("ADDED", "a"));
    ensure_eq!(
        frame.object["metadata"]["namespace"],
        scope.namespace.as_str()
    );
    Ok(())
}

async fn list_version(client: &Client, scope: &Scope) -> Result<String> {
    let list = get(client, &triggers(scope)).await?.accepted(200)?;
    Ok(version(&list)?.to_string())
}

async fn from(client: &Client, scope: &Scope, version: &str) -> Result<Watch> {
    let query = format!("resourceVersion={version}");
    Watch::open(client, &triggers(scope), &query).await
}

async fn label(api: &Api<Trigger>, name: &str, key: &str, value: &str) -> Result<Trigger> {
    let patch = json!({"metadata": {"labels": {key: value}}});
    Ok(api
        .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await?)
}
