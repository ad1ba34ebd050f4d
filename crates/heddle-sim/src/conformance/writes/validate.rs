//! What the definition of a kind says about its objects: defaults, types, rules, and fields it does not know.

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::{Value, json};

use crate::conformance::subject::{config_maps, trigger_json, triggers};
use crate::conformance::wire::{APPLY, MERGE, WireResponse, call, patch, post, put};
use crate::conformance::{Scope, ensure_eq, group};

group!("writes":
    defaults_are_filled_in,
    what_the_schema_forbids_is_named,
    rules_over_values_are_enforced,
    rules_over_old_and_new_values_are_enforced,
    unknown_fields_are_refused_reported_or_dropped,
    duplicate_fields_are_reported,
    free_form_fields_are_kept_as_they_came,
);

async fn defaults_are_filled_in(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let created = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    ensure_eq!(created["spec"]["broker"], "default");
    // Also when a patch removes the field, and in what is written over it.
    let patched = patch(
        &client,
        &format!("{path}/a"),
        MERGE,
        &json!({"spec": {"broker": null}}),
    )
    .await?
    .accepted(200)?;
    ensure_eq!(patched["spec"]["broker"], "default");
    ensure_eq!(
        patched["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"],
    );
    Ok(())
}

async fn what_the_schema_forbids_is_named(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    for (spec, fragment) in [
        (json!({}), "spec.subscriber: Required value"),
        (
            json!({"subscriber": {"ref": {"kind": "Service"}}}),
            "spec.subscriber.ref.name: Required value",
        ),
        (
            json!({"subscriber": "http://orders.example"}),
            "spec.subscriber: Invalid value: \"string\": spec.subscriber in body must be of type object: \"string\"",
        ),
        (
            json!({"subscriber": {"uri": 7}}),
            "spec.subscriber.uri: Invalid value: \"integer\": spec.subscriber.uri in body must be of type string: \"integer\"",
        ),
        (
            json!({"subscriber": {"uri": "u"}, "delivery": {"backoffPolicy": "cubic"}}),
            "spec.delivery.backoffPolicy: Unsupported value: \"cubic\": supported values: \"linear\", \"exponential\"",
        ),
        (
            json!({"subscriber": {"uri": "u"}, "delivery": {"retry": -1}}),
            "spec.delivery.retry: Invalid value: -1: spec.delivery.retry in body should be greater than or equal to 0",
        ),
        (
            json!({"subscriber": {"uri": "u"}, "delivery": {"timeout": "5 min"}}),
            "spec.delivery.timeout in body should match",
        ),
        (
            json!({"subscriber": {"uri": ""}}),
            "spec.subscriber.uri in body should be at least 1 chars long",
        ),
        (
            json!({"subscriber": {"uri": "x".repeat(2049)}}),
            "spec.subscriber.uri: Too long: may not be more than 2048 bytes",
        ),
        (
            json!({"subscriber": {"uri": "u"}, "filters": {"exact": {}}}),
            "spec.filters: Invalid value: \"object\": spec.filters in body must be of type array: \"object\"",
        ),
    ] {
        let mut sent = trigger_json("a");
        sent["spec"] = spec.clone();
        let status = post(&client, &path, &sent)
            .await?
            .refused(422, "Invalid", fragment)
            .with_context(|| spec.to_string())?;
        ensure!(
            status
                .message
                .starts_with("Trigger.eventing.knative.dev \"a\" is invalid: "),
            "{:?} does not name the object",
            status.message
        );
        let details = status.details.context("no details")?;
        ensure_eq!(
            (details.name.as_str(), details.kind.as_str()),
            ("a", "Trigger")
        );
        ensure!(
            details
                .causes
                .iter()
                .any(|cause| fragment.starts_with(&cause.field) || fragment.contains(&cause.field)),
            "no cause names the field of {fragment:?}"
        );
    }
    // Several mistakes are reported together.
    let mut sent = trigger_json("a");
    sent["spec"] = json!({"subscriber": {"uri": 7}, "delivery": {"retry": "often"}});
    let status =
        post(&client, &path, &sent)
            .await?
            .refused(422, "Invalid", "spec.delivery.retry")?;
    ensure!(status.message.contains("spec.subscriber.uri"));
    Ok(())
}

async fn rules_over_values_are_enforced(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let mut sent = trigger_json("a");
    sent["spec"]["subscriber"] = json!({});
    let message = "spec.subscriber: Invalid value: a destination needs a ref, a uri, or both";
    let answer = post(&client, &path, &sent).await?;
    answer.refused(422, "Invalid", message)?;
    sent["spec"] = trigger_json("a")["spec"].take();
    sent["spec"]["filters"] =
        json!([{"exact": {"type": "a"}}, {"exact": {"type": "a"}, "cesql": "TRUE"}]);
    let message = "spec.filters[1]: Invalid value: a filter is written in one dialect";
    let answer = post(&client, &path, &sent).await?;
    answer.refused(422, "Invalid", message)?;
    Ok(())
}

async fn rules_over_old_and_new_values_are_enforced(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let mut created = post(&client, &path, &trigger_json("a"))
        .await?
        .accepted(201)?;
    let one = format!("{path}/a");
    let message = "spec.broker: Invalid value: \"other\": broker is immutable";
    let answer = patch(&client, &one, MERGE, &json!({"spec": {"broker": "other"}})).await?;
    answer.refused(422, "Invalid", message)?;
    created["spec"]["broker"] = json!("other");
    let answer = put(&client, &one, &created).await?;
    answer.refused(422, "Invalid", message)?;
    let applied = json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "spec": {"broker": "other"}});
    let forced = format!("{one}?fieldManager=test&force=true");
    let answer = patch(&client, &forced, APPLY, &applied).await?;
    answer.refused(422, "Invalid", message)?;
    Ok(())
}

async fn unknown_fields_are_refused_reported_or_dropped(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let path = triggers(&scope);
    let sent = |name: &str| {
        let mut sent = trigger_json(name);
        sent["spec"]["colour"] = json!("blue");
        sent["spec"]["subscriber"]["shape"] = json!("round");
        sent
    };
    let answer = post(
        &client,
        &format!("{path}?fieldValidation=Strict"),
        &sent("a"),
    )
    .await?;
    let message = "strict decoding error: unknown field \"spec.colour\", unknown field \"spec.subscriber.shape\"";
    answer.refused(400, "BadRequest", message)?;
    let dropped = |answer: WireResponse| -> Result<()> {
        let created = answer.accepted(201)?;
        ensure_eq!(created["spec"]["colour"], Value::Null);
        ensure_eq!(created["spec"]["subscriber"]["shape"], Value::Null);
        Ok(())
    };
    for (name, query) in [("b", "?fieldValidation=Warn"), ("c", "")] {
        let answer = post(&client, &format!("{path}{query}"), &sent(name)).await?;
        ensure_eq!(
            answer.warnings()?,
            [
                "unknown field \"spec.colour\"",
                "unknown field \"spec.subscriber.shape\""
            ],
        );
        dropped(answer)?;
    }
    let answer = post(
        &client,
        &format!("{path}?fieldValidation=Ignore"),
        &sent("d"),
    )
    .await?;
    ensure!(answer.warnings()?.is_empty());
    dropped(answer)?;

    let strict = format!("{path}/b?fieldValidation=Strict");
    let change = json!({"spec": {"colour": "blue"}});
    let answer = patch(&client, &strict, MERGE, &change).await?;
    ensure!(
        answer.code >= 400
            && answer.body["message"]
                .as_str()
                .is_some_and(|text| text.contains("unknown field \"spec.colour\"")),
        "answered {} {}",
        answer.code,
        answer.body
    );
    let built_in = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "colour": "blue"}, "shape": "round",
    });
    let strict = format!("{}?fieldValidation=Strict", config_maps(&scope));
    let status = post(&client, &strict, &built_in).await?.refused(
        400,
        "BadRequest",
        "unknown field \"shape\"",
    )?;
    ensure!(status.message.contains("unknown field \"metadata.colour\""));
    Ok(())
}

async fn duplicate_fields_are_reported(client: Client, scope: Scope) -> Result<()> {
    let path = triggers(&scope);
    let text = trigger_json("a").to_string().replacen(
        "\"spec\":{",
        "\"spec\":{\"broker\":\"one\",\"broker\":\"two\",",
        1,
    );
    let strict = format!("{path}?fieldValidation=Strict");
    let answer = call(&client, http::Method::POST, &strict, &JSON, text.clone()).await?;
    answer.refused(400, "BadRequest", "duplicate field \"spec.broker\"")?;
    let answer = call(&client, http::Method::POST, &path, &JSON, text).await?;
    ensure_eq!(answer.warnings()?, ["duplicate field \"spec.broker\""]);
    // The last one counts.
    ensure_eq!(answer.accepted(201)?["spec"]["broker"], "two");
    Ok(())
}

async fn free_form_fields_are_kept_as_they_came(client: Client, scope: Scope) -> Result<()> {
    let path = format!(
        "/apis/messaging.knative.dev/v1/namespaces/{}/channels",
        scope.namespace
    );
    let settings = json!({"not": {"any": [{"a": {"b": "c"}}]}, "unheard": [1, 2.5, null, "x"]});
    let sent = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "metadata": {"name": "a"},
        "spec": {"channelTemplate": {"apiVersion": "example.com/v1", "kind": "Log", "spec": settings}},
    });
    let created = post(&client, &format!("{path}?fieldValidation=Strict"), &sent)
        .await?
        .accepted(201)?;
    ensure_eq!(created["spec"]["channelTemplate"]["spec"], settings);
    Ok(())
}

const JSON: [(http::HeaderName, &str); 1] = [(http::header::CONTENT_TYPE, "application/json")];
