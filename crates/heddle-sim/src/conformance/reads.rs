//! Reading: single objects, lists and their pages, selectors, versions, and the forms a reader may ask for.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use heddle_api::Trigger;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, VersionMatch};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::subject::{config_map, config_maps, labelled, trigger, triggers};
use super::wire::{AS_TABLE, get, get_as, refused, version};
use super::{Scope, ensure_eq, group};

group!("reads":
    a_missing_object_is_named_in_the_refusal,
    a_list_has_a_version_and_its_items_their_kind,
    a_list_across_namespaces_sees_every_namespace,
    pages_come_from_one_snapshot,
    label_selectors_choose_by_every_operator,
    field_selectors_choose_by_name_and_namespace,
    a_selector_that_cannot_be_read_is_refused,
    a_list_is_at_least_as_new_as_the_version_asked_for,
    a_version_that_does_not_exist_yet_is_refused,
    a_table_shows_the_columns_of_the_kind,
    a_table_of_a_built_in_kind_shows_its_columns,
    metadata_alone_can_be_read,
    a_form_nobody_serves_is_refused,
    the_first_form_that_is_served_is_taken,
);

async fn a_missing_object_is_named_in_the_refusal(client: Client, scope: Scope) -> Result<()> {
    let custom = scope.objects::<Trigger>(&client).get("absent").await;
    let message = "triggers.eventing.knative.dev \"absent\" not found";
    let status = refused(custom, 404, "NotFound", message)?;
    ensure_eq!(status.message, message);
    let details = status.details.context("no details")?;
    ensure_eq!(
        (
            details.name.as_str(),
            details.group.as_str(),
            details.kind.as_str()
        ),
        ("absent", "eventing.knative.dev", "triggers"),
    );
    let built_in = scope.objects::<ConfigMap>(&client).get("absent").await;
    refused(built_in, 404, "NotFound", "configmaps \"absent\" not found")?;
    ensure!(
        scope
            .objects::<Trigger>(&client)
            .get_opt("absent")
            .await?
            .is_none()
    );
    Ok(())
}

async fn a_list_has_a_version_and_its_items_their_kind(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let empty = get(&client, &path).await?.accepted(200)?;
    ensure_eq!(empty["kind"], "TriggerList");
    ensure_eq!(empty["apiVersion"], "eventing.knative.dev/v1");
    ensure_eq!(empty["items"], json!([]));
    ensure!(version(&empty)? > 0);

    let created = create(&client, &scope, &["b", "a"]).await?;
    let list = get(&client, &path).await?.accepted(200)?;
    ensure_eq!(names(&list), ["a", "b"]);
    ensure_eq!(list["items"][0]["kind"], "Trigger");
    ensure_eq!(list["items"][0]["apiVersion"], "eventing.knative.dev/v1");
    for object in created {
        ensure!(version(&list)? >= object.resource_version().context("no version")?.parse()?);
    }
    let maps = get(&client, &config_maps(&scope)).await?.accepted(200)?;
    ensure_eq!(maps["kind"], "ConfigMapList");
    ensure_eq!(maps["apiVersion"], "v1");
    Ok(())
}

async fn a_list_across_namespaces_sees_every_namespace(client: Client, scope: Scope) -> Result<()> {
    let labels = [("conformance", scope.namespace.as_str())];
    let triggers = scope.objects::<Trigger>(&client);
    triggers
        .create(&PostParams::default(), &labelled("here", &labels))
        .await?;
    Api::<Trigger>::namespaced(client.clone(), "default")
        .create(
            &PostParams::default(),
            &labelled(&scope.unique("there"), &labels),
        )
        .await?;
    let all = Api::<Trigger>::all(client.clone());
    let chosen = ListParams::default().labels(&format!("conformance={}", scope.namespace));
    let found = all.list(&chosen).await?;
    Api::<Trigger>::namespaced(client, "default")
        .delete(&scope.unique("there"), &DeleteParams::default())
        .await?;
    let found: BTreeSet<_> = found.iter().filter_map(Trigger::namespace).collect();
    ensure_eq!(
        found,
        BTreeSet::from(["default".to_owned(), scope.namespace.clone()]),
    );
    Ok(())
}

async fn pages_come_from_one_snapshot(client: Client, scope: Scope) -> Result<()> {
    create(&client, &scope, &["a", "b", "c", "d", "e"]).await?;
    let path = triggers(&scope);
    let first = get(&client, &format!("{path}?limit=2"))
        .await?
        .accepted(200)?;
    ensure_eq!(names(&first), ["a", "b"]);
    ensure_eq!(first["metadata"]["remainingItemCount"], 3);

    // What happens meanwhile is not on later pages.
    create(&client, &scope, &["bb", "f"]).await?;
    scope
        .objects::<Trigger>(&client)
        .delete("d", &DeleteParams::default())
        .await?;

    let token = |page: &Value| {
        page["metadata"]["continue"]
            .as_str()
            .context("no continue token")
            .map(str::to_owned)
    };
    let second = format!("{path}?limit=2&continue={}", token(&first)?);
    let second = get(&client, &second).await?.accepted(200)?;
    ensure_eq!(names(&second), ["c", "d"]);
    ensure_eq!(second["metadata"]["remainingItemCount"], 1);
    let third = format!("{path}?limit=2&continue={}", token(&second)?);
    let third = get(&client, &third).await?.accepted(200)?;
    ensure_eq!(names(&third), ["e"]);
    ensure_eq!(third["metadata"]["remainingItemCount"], Value::Null);
    ensure!(
        third["metadata"]["continue"]
            .as_str()
            .is_none_or(str::is_empty),
        "the last page continues"
    );
    for page in [&second, &third] {
        ensure_eq!(
            page["metadata"]["resourceVersion"],
            first["metadata"]["resourceVersion"],
        );
    }
    let now = get(&client, &path).await?.accepted(200)?;
    ensure_eq!(names(&now), ["a", "b", "bb", "c", "e", "f"]);

    // How many remain is not counted when a selector would have to be applied to all of them.
    let chosen = get(&client, &format!("{path}?limit=1&labelSelector=!absent"))
        .await?
        .accepted(200)?;
    ensure_eq!(chosen["metadata"]["remainingItemCount"], Value::Null);
    token(&chosen)?;

    let garbage = get(&client, &format!("{path}?limit=2&continue=garbage")).await?;
    garbage.refused(400, "BadRequest", "continue key is not valid")?;
    Ok(())
}

async fn label_selectors_choose_by_every_operator(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    for (name, labels) in [
        ("bare", vec![]),
        ("blue", vec![("colour", "blue")]),
        ("green", vec![("colour", "green"), ("size", "10")]),
        ("red", vec![("colour", "red"), ("size", "")]),
    ] {
        api.create(&PostParams::default(), &labelled(name, &labels))
            .await?;
    }
    for (selector, expected) in [
        ("colour=blue", vec!["blue"]),
        ("colour==blue", vec!["blue"]),
        ("colour!=blue", vec!["bare", "green", "red"]),
        ("colour in (blue, red)", vec!["blue", "red"]),
        ("colour notin (blue,red)", vec!["bare", "green"]),
        ("colour", vec!["blue", "green", "red"]),
        ("!colour", vec!["bare"]),
        ("size=", vec!["red"]),
        ("size>9", vec!["green"]),
        ("size<9", vec![]),
        ("colour!=blue,colour", vec!["green", "red"]),
        ("colour,!size", vec!["blue"]),
        ("", vec!["bare", "blue", "green", "red"]),
    ] {
        let found = api.list(&ListParams::default().labels(selector)).await?;
        let found: Vec<_> = found.iter().map(Trigger::name_any).collect();
        ensure!(found == expected, "{selector:?} chose {found:?}");
    }
    Ok(())
}

async fn field_selectors_choose_by_name_and_namespace(client: Client, scope: Scope) -> Result<()> {
    create(&client, &scope, &["a", "b", "c"]).await?;
    let all = Api::<Trigger>::all(client);
    let here = format!("metadata.namespace={}", scope.namespace);
    for (selector, expected) in [
        (here.clone(), vec!["a", "b", "c"]),
        (format!("{here},metadata.name=b"), vec!["b"]),
        (format!("{here},metadata.name==b"), vec!["b"]),
        (format!("{here},metadata.name!=b"), vec!["a", "c"]),
        (format!("{here},metadata.name=absent"), vec![]),
    ] {
        let found = all.list(&ListParams::default().fields(&selector)).await?;
        let found: Vec<_> = found.iter().map(Trigger::name_any).collect();
        ensure!(found == expected, "{selector:?} chose {found:?}");
    }
    Ok(())
}

async fn a_selector_that_cannot_be_read_is_refused(client: Client, scope: Scope) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    for (selector, fragment) in [
        ("colour in blue", "unable to parse requirement"),
        ("colour=blue,", "found '', expected: identifier after ','"),
        (
            "=blue",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        ("colour=not/valid", "unable to parse requirement"),
    ] {
        let result = api.list(&ListParams::default().labels(selector)).await;
        refused(result, 400, "BadRequest", fragment)
            .with_context(|| format!("label selector {selector:?}"))?;
    }
    let by_broker = ListParams::default().fields("spec.broker=default");
    let fragment = "field label not supported: spec.broker";
    refused(api.list(&by_broker).await, 400, "BadRequest", fragment)?;
    let unknown = scope
        .objects::<ConfigMap>(&client)
        .list(&ListParams::default().fields("data.key=value"))
        .await;
    refused(
        unknown,
        400,
        "BadRequest",
        "\"data.key\" is not a known field selector",
    )?;
    let garbage = api
        .list(&ListParams::default().fields("metadata.name"))
        .await;
    refused(garbage, 400, "BadRequest", "invalid selector")?;
    Ok(())
}

async fn a_list_is_at_least_as_new_as_the_version_asked_for(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    let first = create(&client, &scope, &["a"]).await?.remove(0);
    let at_first = first.resource_version().context("no version")?;
    create(&client, &scope, &["b"]).await?;

    let list = |version: &str, rule| ListParams {
        resource_version: Some(version.to_owned()),
        version_match: rule,
        ..ListParams::default()
    };
    // Any version may be stale, but it is a state that existed.
    let any = api.list(&list("0", None)).await?;
    ensure!(any.items.len() <= 2);
    let newer = api
        .list(&list(&at_first, Some(VersionMatch::NotOlderThan)))
        .await?;
    ensure!(newer.iter().any(|trigger| trigger.name_any() == "a"));
    // A server need not keep old states, but it must not pass off another one as the one asked for.
    match api.list(&list(&at_first, Some(VersionMatch::Exact))).await {
        Ok(exact) => {
            let names: Vec<_> = exact.iter().map(Trigger::name_any).collect();
            ensure_eq!(names, ["a"]);
            ensure_eq!(exact.metadata.resource_version, Some(at_first));
        }
        gone => {
            refused(gone, 410, "Expired", "too old")?;
        }
    }

    let path = triggers(&scope);
    let alone = get(&client, &format!("{path}?resourceVersionMatch=Exact")).await?;
    let fragment = "resourceVersionMatch is forbidden unless resourceVersion is provided";
    alone.refused(422, "Invalid", fragment)?;
    let any = format!("{path}?resourceVersionMatch=Exact&resourceVersion=0");
    let fragment = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
    get(&client, &any)
        .await?
        .refused(422, "Invalid", fragment)?;
    let unknown = format!("{path}?resourceVersionMatch=Newest&resourceVersion=1");
    get(&client, &unknown)
        .await?
        .refused(422, "Invalid", "Unsupported value: \"Newest\"")?;
    let garbage = format!("{path}?resourceVersion=garbage");
    get(&client, &garbage)
        .await?
        .refused(400, "BadRequest", "garbage")?;
    Ok(())
}

async fn a_version_that_does_not_exist_yet_is_refused(client: Client, scope: Scope) -> Result<()> {
    let object = create(&client, &scope, &["a"]).await?.remove(0);
    let now: u64 = object.resource_version().context("no version")?.parse()?;
    let future = now + 1_000_000_000;
    let path = triggers(&scope);
    let list = format!("{path}?resourceVersion={future}&resourceVersionMatch=NotOlderThan");
    let fragment = format!("Too large resource version: {future}");
    let status = get(&client, &list)
        .await?
        .refused(504, "Timeout", &fragment)?;
    let details = status.details.context("no details")?;
    ensure_eq!(details.causes[0].reason, "ResourceVersionTooLarge");
    ensure_eq!(details.retry_after_seconds, 1);
    let one = format!("{path}/a?resourceVersion={future}");
    get(&client, &one)
        .await?
        .refused(504, "Timeout", &fragment)?;
    Ok(())
}

async fn a_table_shows_the_columns_of_the_kind(client: Client, scope: Scope) -> Result<()> {
    create(&client, &scope, &["a"]).await?;
    let path = triggers(&scope);
    let status = json!({
        "status": {
            "subscriberUri": "http://orders.example/",
            "conditions": [{"type": "Ready", "status": "False", "reason": "BrokerNotFound"}],
        },
    });
    let one = format!("{path}/a");
    super::wire::patch(
        &client,
        &format!("{one}/status"),
        super::wire::MERGE,
        &status,
    )
    .await?
    .accepted(200)?;
    let table = get_as(&client, &path, AS_TABLE).await?.accepted(200)?;
    ensure_eq!(table["kind"], "Table");
    ensure_eq!(table["apiVersion"], "meta.k8s.io/v1");
    ensure!(version(&table)? > 0);
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .context("no columns")?
        .iter()
        .map(|column| (column["name"].as_str(), column["type"].as_str()))
        .collect();
    ensure_eq!(
        columns,
        [
            (Some("Name"), Some("string")),
            (Some("Broker"), Some("string")),
            (Some("Subscriber_URI"), Some("string")),
            (Some("Age"), Some("date")),
            (Some("Ready"), Some("string")),
            (Some("Reason"), Some("string")),
        ],
    );
    let cells = &table["rows"][0]["cells"];
    ensure_eq!(cells[0], "a");
    ensure_eq!(cells[1], "default");
    ensure_eq!(cells[2], "http://orders.example/");
    ensure_eq!(cells[4], "False");
    ensure_eq!(cells[5], "BrokerNotFound");
    // Without being asked, a row carries the metadata of its object; the whole object and nothing on request.
    ensure_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    ensure_eq!(table["rows"][0]["object"]["metadata"]["name"], "a");
    let whole = get_as(&client, &format!("{one}?includeObject=Object"), AS_TABLE).await?;
    let whole = whole.accepted(200)?;
    ensure_eq!(whole["rows"][0]["object"]["kind"], "Trigger");
    ensure_eq!(whole["rows"][0]["object"]["spec"]["broker"], "default");
    let none = get_as(&client, &format!("{one}?includeObject=None"), AS_TABLE).await?;
    let none = none.accepted(200)?;
    ensure_eq!(none["rows"][0]["cells"][0], "a");
    ensure_eq!(none["rows"][0]["object"], Value::Null);
    Ok(())
}

async fn a_table_of_a_built_in_kind_shows_its_columns(client: Client, scope: Scope) -> Result<()> {
    scope
        .objects::<ConfigMap>(&client)
        .create(&PostParams::default(), &config_map("a", "key", "value"))
        .await?;
    let table = get_as(&client, &config_maps(&scope), AS_TABLE)
        .await?
        .accepted(200)?;
    let columns = table["columnDefinitions"]
        .as_array()
        .context("no columns")?;
    let columns: Vec<_> = columns
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    ensure_eq!(columns, ["Name", "Data", "Age"]);
    ensure_eq!(table["rows"][0]["cells"][0], "a");
    ensure_eq!(table["rows"][0]["cells"][1], 1);
    Ok(())
}

async fn metadata_alone_can_be_read(client: Client, scope: Scope) -> Result<()> {
    let created = create(&client, &scope, &["a"]).await?.remove(0);
    let api = scope.objects::<Trigger>(&client);
    let one = api.get_metadata("a").await?;
    ensure_eq!(one.metadata, created.metadata);
    let list = api.list_metadata(&ListParams::default()).await?;
    ensure_eq!(list.items.len(), 1);
    ensure_eq!(list.items[0].metadata, created.metadata);
    ensure!(
        list.metadata
            .resource_version
            .is_some_and(|text| !text.is_empty())
    );
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let raw = get_as(&client, &triggers(&scope), accept)
        .await?
        .accepted(200)?;
    ensure_eq!(raw["kind"], "PartialObjectMetadataList");
    ensure_eq!(raw["apiVersion"], "meta.k8s.io/v1");
    ensure_eq!(raw["items"][0]["spec"], Value::Null);
    Ok(())
}

async fn a_form_nobody_serves_is_refused(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    for accept in [
        "text/html",
        "application/json;as=Chart;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v9",
    ] {
        let answer = get_as(&client, &path, accept).await?;
        ensure!(
            answer.code == 406 && answer.body["reason"] == "NotAcceptable",
            "{accept:?} was answered {} {}",
            answer.code,
            answer.body
        );
    }
    Ok(())
}

async fn the_first_form_that_is_served_is_taken(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    for (accept, kind) in [
        ("*/*", "TriggerList"),
        ("application/*", "TriggerList"),
        ("text/html, application/json", "TriggerList"),
        (
            "application/json;as=Chart;g=meta.k8s.io;v=v1,application/json",
            "TriggerList",
        ),
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            "Table",
        ),
    ] {
        let list = get_as(&client, &path, accept).await?.accepted(200)?;
        ensure!(list["kind"] == kind, "{accept:?} got {}", list["kind"]);
    }
    Ok(())
}

async fn create(client: &Client, scope: &Scope, names: &[&str]) -> Result<Vec<Trigger>> {
    let api = scope.objects::<Trigger>(client);
    let mut created = Vec::new();
    for name in names {
        created.push(api.create(&PostParams::default(), &trigger(name)).await?);
    }
    Ok(created)
}

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect()
}
