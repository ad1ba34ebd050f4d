//! What a client learns before it asks for anything: the version of the server, and its kinds.

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::{Value, json};

use super::wire::{get, get_as};
use super::{Scope, ensure_eq, group};

group!("discovery":
    kinds_are_found_by_group_and_version,
    kinds_are_found_by_one_aggregated_request,
    the_definition_of_a_kind_can_be_read,
    schemas_say_which_parameters_a_write_takes,
    the_server_tells_its_version,
);

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

async fn kinds_are_found_by_group_and_version(client: Client, _: Scope) -> Result<()> {
    let groups = get(&client, "/apis").await?.accepted(200)?;
    ensure_eq!(groups["kind"], "APIGroupList");
    let group = named(&groups["groups"], "eventing.knative.dev")?;
    ensure_eq!(
        group["preferredVersion"],
        json!({"groupVersion": "eventing.knative.dev/v1", "version": "v1"}),
    );
    let alone = get(&client, "/apis/eventing.knative.dev")
        .await?
        .accepted(200)?;
    ensure_eq!(alone["versions"], group["versions"]);

    let list = get(&client, "/apis/eventing.knative.dev/v1")
        .await?
        .accepted(200)?;
    ensure_eq!(list["groupVersion"], "eventing.knative.dev/v1");
    let trigger = named(&list["resources"], "triggers")?;
    ensure_eq!(trigger["kind"], "Trigger");
    ensure_eq!(trigger["singularName"], "trigger");
    ensure_eq!(trigger["namespaced"], true);
    ensure_eq!(trigger["shortNames"], json!(["trg"]));
    ensure_eq!(
        trigger["categories"],
        json!(["all", "knative", "eventing", "heddle"]),
    );
    ensure_eq!(
        verbs(trigger),
        [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch"
        ],
    );
    let status = named(&list["resources"], "triggers/status")?;
    ensure_eq!(verbs(status), ["get", "patch", "update"]);

    let core = get(&client, "/api").await?.accepted(200)?;
    ensure_eq!(core["versions"], json!(["v1"]));
    let core = get(&client, "/api/v1").await?.accepted(200)?;
    let config_map = named(&core["resources"], "configmaps")?;
    ensure_eq!(config_map["shortNames"], json!(["cm"]));
    ensure_eq!(
        named(&core["resources"], "namespaces")?["namespaced"],
        false
    );
    Ok(())
}

async fn kinds_are_found_by_one_aggregated_request(client: Client, _: Scope) -> Result<()> {
    let answer = get_as(&client, "/apis", AGGREGATED).await?;
    let content_type = answer.headers[http::header::CONTENT_TYPE]
        .to_str()?
        .to_owned();
    ensure!(
        content_type.contains("as=APIGroupDiscoveryList") && content_type.contains("v=v2"),
        "the content type {content_type:?} does not tell the form"
    );
    let body = answer.accepted(200)?;
    ensure_eq!(body["kind"], "APIGroupDiscoveryList");
    let group = body["items"]
        .as_array()
        .context("no groups")?
        .iter()
        .find(|group| group["metadata"]["name"] == "eventing.knative.dev")
        .context("the group is missing")?;
    let trigger = group["versions"][0]["resources"]
        .as_array()
        .context("no resources")?
        .iter()
        .find(|resource| resource["resource"] == "triggers")
        .context("the resource is missing")?;
    ensure_eq!(trigger["scope"], "Namespaced");
    ensure_eq!(trigger["responseKind"]["kind"], "Trigger");
    ensure_eq!(trigger["singularResource"], "trigger");
    ensure_eq!(trigger["subresources"][0]["subresource"], "status");
    Ok(())
}

async fn the_definition_of_a_kind_can_be_read(client: Client, _: Scope) -> Result<()> {
    let path =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/triggers.eventing.knative.dev";
    let crd = get(&client, path).await?.accepted(200)?;
    ensure_eq!(crd["spec"]["names"]["plural"], "triggers");
    let conditions = crd["status"]["conditions"]
        .as_array()
        .context("no conditions")?;
    for expected in ["NamesAccepted", "Established"] {
        ensure!(
            conditions
                .iter()
                .any(|condition| condition["type"] == expected && condition["status"] == "True"),
            "{expected} is not true in {conditions:?}"
        );
    }
    Ok(())
}

async fn schemas_say_which_parameters_a_write_takes(client: Client, _: Scope) -> Result<()> {
    let index = get(&client, "/openapi/v3").await?.accepted(200)?;
    let url = index["paths"]["apis/eventing.knative.dev/v1"]["serverRelativeURL"]
        .as_str()
        .context("the group has no schema document")?;
    ensure!(
        url.starts_with("/openapi/v3/apis/eventing.knative.dev/v1?hash="),
        "{url:?} does not name what it is a hash of"
    );
    let document = get(&client, url).await?.accepted(200)?;
    let patch = &document["paths"]["/apis/eventing.knative.dev/v1/namespaces/{namespace}/triggers/{name}"]
        ["patch"];
    ensure_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "eventing.knative.dev", "kind": "Trigger", "version": "v1"}),
    );
    for parameter in ["dryRun", "fieldManager", "fieldValidation", "force"] {
        named(&patch["parameters"], parameter)?;
    }
    Ok(())
}

async fn the_server_tells_its_version(client: Client, _: Scope) -> Result<()> {
    let version = get(&client, "/version").await?.accepted(200)?;
    ensure!(
        version["gitVersion"]
            .as_str()
            .is_some_and(|text| text.starts_with("v1.")),
        "{version} is no version"
    );
    Ok(())
}

/// What can be done with a resource, in no particular order on the wire.
fn verbs(resource: &Value) -> Vec<&str> {
    let mut verbs: Vec<_> = resource["verbs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    verbs.sort_unstable();
    verbs
}

fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value> {
    list.as_array()
        .and_then(|items| items.iter().find(|item| item["name"] == name))
        .with_context(|| format!("no {name:?}"))
}
