//! Requests that make no sense, and requests meant to hurt: each is refused with a Status, and the server stays well.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::{Value, json};

use super::subject::{config_map_json, config_maps, trigger_json, triggers};
use super::wire::{APPLY, JSON_PATCH, MERGE, call, delete, get, patch, post, put};
use super::{Scope, ensure_eq, group};

group!("bad_input":
    malformed_json_is_refused,
    the_wrong_kind_is_refused,
    a_name_or_namespace_that_contradicts_the_path_is_refused,
    an_unknown_path_is_not_found,
    a_method_that_is_not_served_is_refused,
    a_body_in_an_unknown_form_is_refused,
    an_oversized_body_is_refused,
    deep_nesting_is_refused_and_harmless,
    a_patch_that_cannot_be_read_is_refused,
    query_parameters_with_impossible_values_are_refused,
);

const JSON: [(http::HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

async fn malformed_json_is_refused(client: Client, scope: Scope) -> Result<()> {
    for path in [triggers(&scope), config_maps(&scope)] {
        for body in ["{", "", "[]", "{\"metadata\": {\"name\": }}", "\u{0}"] {
            let answer = call(&client, Method::POST, &path, &JSON, body).await?;
            answer
                .refused(400, "BadRequest", "")
                .with_context(|| format!("{body:?} sent to {path}"))?;
        }
    }
    // Something that says nothing has no kind, which matters only for kinds that Kubernetes does not define itself.
    let answer = call(&client, Method::POST, &triggers(&scope), &JSON, "{}").await?;
    answer.refused(400, "BadRequest", "Object 'Kind' is missing")?;
    let answer = call(&client, Method::POST, &config_maps(&scope), &JSON, "{}").await?;
    answer.refused(
        422,
        "Invalid",
        "metadata.name: Required value: name or generateName is required",
    )?;
    Ok(())
}

async fn the_wrong_kind_is_refused(client: Client, scope: Scope) -> Result<()> {
    let broker = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": {"name": "a"}, "spec": {},
    });
    let answer = post(&client, &triggers(&scope), &broker).await?;
    answer.refused(
        422,
        "Invalid",
        "kind: Invalid value: \"Broker\": must be Trigger",
    )?;
    let mut other = trigger_json("a");
    other["apiVersion"] = json!("eventing.knative.dev/v2");
    let answer = post(&client, &triggers(&scope), &other).await?;
    let fragment = "the API version in the data (eventing.knative.dev/v2) does not match the expected API version";
    answer.refused(400, "BadRequest", fragment)?;
    let answer = post(&client, &config_maps(&scope), &trigger_json("a")).await?;
    answer.refused(400, "BadRequest", "cannot be handled as a ConfigMap")?;
    // A number is no string, also where Kubernetes itself defines the kind.
    let number = config_map_json("a", json!({"key": 1}));
    let answer = post(&client, &config_maps(&scope), &number).await?;
    answer.refused(
        400,
        "BadRequest",
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap",
    )?;
    Ok(())
}

async fn a_name_or_namespace_that_contradicts_the_path_is_refused(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let path = triggers(&scope);
    let created = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let mut renamed = created.clone();
    renamed["metadata"]["name"] = json!("b");
    let answer = put(&client, &format!("{path}/a"), &renamed).await?;
    let fragment = "the name of the object (b) does not match the name on the URL (a)";
    answer.refused(400, "BadRequest", fragment)?;
    let mut moved = created;
    moved["metadata"]["namespace"] = json!("default");
    let answer = put(&client, &format!("{path}/a"), &moved).await?;
    let fragment =
        "the namespace of the provided object does not match the namespace sent on the request";
    answer.refused(400, "BadRequest", fragment)?;
    moved["metadata"] = json!({"name": "b", "namespace": "default"});
    let answer = post(&client, &path, &moved).await?;
    answer.refused(400, "BadRequest", fragment)?;
    Ok(())
}

async fn an_unknown_path_is_not_found(client: Client, scope: Scope) -> Result<()> {
    for path in [
        "/apis/eventing.knative.dev/v1/absents".to_owned(),
        "/apis/absent.example/v1/triggers".to_owned(),
        "/apis/eventing.knative.dev/v9/triggers".to_owned(),
        format!("{}/a/absent", triggers(&scope)),
    ] {
        let answer = get(&client, &path).await?;
        ensure!(
            answer.code == 404,
            "{path} answered {} {}",
            answer.code,
            answer.body
        );
    }
    Ok(())
}

async fn a_method_that_is_not_served_is_refused(client: Client, scope: Scope) -> Result<()> {
    post(&client, &triggers(&scope), &trigger_json("a"))
        .await?
        .accepted(201)?;
    let path = config_maps(&scope);
    for (method, path) in [
        (Method::PUT, path.clone()),
        (Method::PATCH, path.clone()),
        (Method::POST, format!("{path}/a")),
        (Method::POST, "/api/v1/configmaps".to_owned()),
        (Method::DELETE, format!("{}/a/status", triggers(&scope))),
    ] {
        let answer = call(&client, method.clone(), &path, &JSON, "{}").await?;
        answer
            .refused(405, "MethodNotAllowed", "")
            .with_context(|| format!("{method} {path}"))?;
    }
    Ok(())
}

async fn a_body_in_an_unknown_form_is_refused(client: Client, scope: Scope) -> Result<()> {
    let form = [(CONTENT_TYPE, "text/csv")];
    let path = triggers(&scope);
    let answer = call(&client, Method::POST, &path, &form, "a,b").await?;
    answer.refused(415, "UnsupportedMediaType", "application/json")?;
    post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let answer = call(&client, Method::PATCH, &format!("{path}/a"), &form, "a,b").await?;
    answer.refused(415, "UnsupportedMediaType", "application/merge-patch+json")?;
    Ok(())
}

async fn an_oversized_body_is_refused(client: Client, scope: Scope) -> Result<()> {
    let path = config_maps(&scope);
    let huge = config_map_json("a", json!({"key": "x".repeat(4 * 1024 * 1024)}));
    let answer = post(&client, &path, &huge).await?;
    answer.refused(413, "RequestEntityTooLarge", "")?;
    let fits = config_map_json("a", json!({"key": "x".repeat(512 * 1024)}));
    post(&client, &path, &fits).await?.accepted(201)?;
    Ok(())
}

async fn deep_nesting_is_refused_and_harmless(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let depth = 20_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let text = trigger_json("a").to_string();
    let body = text.replacen(
        "\"http://orders.example\"",
        &format!("\"http://orders.example\",\"audience\":{deep}"),
        1,
    );
    let answer = call(&client, Method::POST, &path, &JSON, body).await?;
    ensure!(
        (400..500).contains(&answer.code) && answer.body["kind"] == "Status",
        "answered {} {}",
        answer.code,
        answer.body
    );
    post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    Ok(())
}

async fn a_patch_that_cannot_be_read_is_refused(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let one = format!("{path}/a");
    for (content_type, body) in [
        (MERGE, "{"),
        (MERGE, "[]"),
        (JSON_PATCH, "{}"),
        (JSON_PATCH, r#"[{"op": "add"}]"#),
        (JSON_PATCH, r#"[{"op": "conjure", "path": "/spec"}]"#),
        (APPLY, "{"),
    ] {
        let one = format!("{one}?fieldManager=test");
        let headers = [(CONTENT_TYPE, content_type)];
        let answer = call(&client, Method::PATCH, &one, &headers, body).await?;
        ensure!(
            matches!(answer.code, 400 | 422) && answer.body["kind"] == "Status",
            "{content_type} {body:?} was answered {} {}",
            answer.code,
            answer.body
        );
    }
    let many = vec![json!({"op": "test", "path": "/kind", "value": "Trigger"}); 10_001];
    let answer = patch(&client, &one, JSON_PATCH, &Value::from(many)).await?;
    let fragment = "The allowed maximum operations in a JSON patch is 10000";
    answer.refused(413, "RequestEntityTooLarge", fragment)?;
    let unchanged = get(&client, &one).await?.accepted(200)?;
    ensure_eq!(unchanged["metadata"]["generation"], 1);
    Ok(())
}

async fn query_parameters_with_impossible_values_are_refused(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let path = triggers(&scope);
    for (query, fragment) in [
        ("dryRun=Some", "dryRun: Unsupported value"),
        ("fieldValidation=Loud", "fieldValidation: Unsupported value"),
        (
            &format!("fieldManager={}", "x".repeat(129)),
            "Too long: may not be more than 128 bytes",
        ),
        ("fieldManager=%01", "invalid character U+0001"),
    ] {
        let answer = post(&client, &format!("{path}?{query}"), &trigger_json("a")).await?;
        answer
            .refused(422, "Invalid", fragment)
            .with_context(|| query.to_owned())?;
    }
    for query in ["limit=many", "timeoutSeconds=soon"] {
        let answer = get(&client, &format!("{path}?{query}")).await?;
        answer
            .refused(400, "BadRequest", "")
            .with_context(|| query.to_owned())?;
    }
    let sideways = json!({"propagationPolicy": "Sideways"});
    let answer = delete(&client, &format!("{path}/a"), &sideways).await?;
    answer.refused(
        422,
        "Invalid",
        "propagationPolicy: Unsupported value: \"Sideways\"",
    )?;
    Ok(())
}
