//! What a client learns before it asks for anything: the version of the server, and its kinds.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::{Value, json};

use super::wire::{call, get, get_as};
use super::{Scope, ensure_eq, group};

group!("discovery":
    kinds_are_found_by_group_and_version,
    kinds_are_found_by_one_aggregated_request,
    the_definition_of_a_kind_can_be_read,
    schemas_say_which_parameters_a_write_takes,
    the_server_tells_its_version,
    the_root_lists_paths_and_a_slash_at_the_end_does_not_matter,
    callers_can_ask_who_they_are_and_what_they_may_do,
    the_second_version_of_the_schemas_defines_every_kind,
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
        "create delete deletecollection get list patch update watch"
            .split(' ')
            .collect::<Vec<_>>(),
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
    let content_type = answer.headers[CONTENT_TYPE].to_str()?.to_owned();
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

async fn the_root_lists_paths_and_a_slash_at_the_end_does_not_matter(
    client: Client,
    _: Scope,
) -> Result<()> {
    let root = get(&client, "/").await?.accepted(200)?;
    let paths = root["paths"].as_array().context("no paths")?;
    for path in [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/eventing.knative.dev",
        "/version",
    ] {
        ensure!(
            paths.iter().any(|listed| listed == path),
            "{path} is not in {paths:?}"
        );
    }
    for path in ["/version", "/api", "/apis"] {
        let with = get(&client, &format!("{path}/")).await?.accepted(200)?;
        ensure_eq!(with, get(&client, path).await?.accepted(200)?);
    }
    Ok(())
}

async fn callers_can_ask_who_they_are_and_what_they_may_do(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let ask = async |group: &str, kind: &str, spec: Value| -> Result<Value> {
        let path = format!("/apis/{group}/v1/{}s", kind.to_lowercase());
        let body = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec});
        let json = [(CONTENT_TYPE, "application/json")];
        let answer = call(&client, Method::POST, &path, &json, body.to_string()).await?;
        let answer = answer.accepted(201)?;
        ensure_eq!(answer["kind"], kind);
        Ok(answer["status"].clone())
    };
    let who = ask("authentication.k8s.io", "SelfSubjectReview", Value::Null).await?;
    ensure!(
        who["userInfo"]["username"].is_string(),
        "{who} names nobody"
    );
    let spec = json!({"namespace": scope.namespace});
    let rules = ask("authorization.k8s.io", "SelfSubjectRulesReview", spec).await?;
    ensure!(
        rules["resourceRules"]
            .as_array()
            .is_some_and(|rules| !rules.is_empty()),
        "{rules} allows nothing"
    );
    let spec = json!({"resourceAttributes": {
        "namespace": scope.namespace, "verb": "create", "group": "eventing.knative.dev", "resource": "triggers",
    }});
    let access = ask("authorization.k8s.io", "SelfSubjectAccessReview", spec).await?;
    ensure_eq!(access["allowed"], true);
    Ok(())
}

async fn the_second_version_of_the_schemas_defines_every_kind(
    client: Client,
    _: Scope,
) -> Result<()> {
    let document = get_as(&client, "/openapi/v2", "application/json")
        .await?
        .accepted(200)?;
    let definitions = document["definitions"]
        .as_object()
        .context("no definitions")?;
    for kind in ["Trigger", "Channel"] {
        let names = |definition: &&Value| {
            let kinds = definition["x-kubernetes-group-version-kind"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|named| named["kind"] == kind))
        };
        let definition = definitions.values().find(names);
        let definition = definition.with_context(|| format!("{kind} is not defined"))?;
        ensure!(
            definition["properties"]["spec"].is_object(),
            "{kind} has no spec"
        );
        let metadata = &definition["properties"]["metadata"]["$ref"];
        ensure_eq!(
            metadata.as_str(),
            Some("#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
        );
    }
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
