//! Manifests as people write them are read without loss: what goes in comes out, field for field.

use heddle_api::filter::{Filter, Nested};
use heddle_api::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Every manifest of the tests and every example, by file, as the documents it holds.
fn documents() -> Vec<(String, Vec<Value>)> {
    macro_rules! files {
        ($($path:literal),* $(,)?) => {
            vec![$(($path.to_owned(), serde_saphyr::from_multiple(include_str!($path)).expect($path))),*]
        };
    }
    files![
        "manifests/application.yaml",
        "manifests/application_mapping.yaml",
        "manifests/broker.yaml",
        "manifests/channel.yaml",
        "manifests/event_activation.yaml",
        "manifests/event_policy.yaml",
        "manifests/heddle.yaml",
        "manifests/http_source.yaml",
        "manifests/subscription.yaml",
        "manifests/trigger.yaml",
        "../../../examples/shop.yaml",
    ]
}

/// Reads a document as `K`, writes it again and expects every member to be there still; defaults may have been added.
fn survives<K: Serialize + DeserializeOwned>(document: &Value) -> Result<(), String> {
    let object: K = serde_json::from_value(document.clone()).map_err(|error| error.to_string())?;
    let written = serde_json::to_value(&object).map_err(|error| error.to_string())?;
    missing("", document, &written)
        .map_or(Ok(()), |path| Err(format!("{path} was lost or changed")))
}

/// The path of the first member of `expected` that `found` lacks or has otherwise.
fn missing(path: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().find_map(|(key, value)| {
                missing(
                    &format!("{path}.{key}"),
                    value,
                    found.get(key).unwrap_or(&Value::Null),
                )
            })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => expected
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(index, (expected, found))| {
                missing(&format!("{path}[{index}]"), expected, found)
            }),
        _ => (expected != found).then(|| path.to_owned()),
    }
}

fn read(document: &Value) -> Result<(), String> {
    match document["kind"].as_str().unwrap_or_default() {
        "Application" => survives::<Application>(document),
        "ApplicationMapping" => survives::<ApplicationMapping>(document),
        "EventActivation" => survives::<EventActivation>(document),
        "HTTPSource" => survives::<HTTPSource>(document),
        "Channel" => survives::<Channel>(document),
        "Subscription" => survives::<Subscription>(document),
        "Broker" => survives::<Broker>(document),
        "Trigger" => survives::<Trigger>(document),
        "EventPolicy" => survives::<EventPolicy>(document),
        "EventFlow" => survives::<EventFlow>(document),
        "ServiceInstance" => survives::<ServiceInstance>(document),
        "ServiceBinding" => survives::<ServiceBinding>(document),
        "Registry" => survives::<Registry>(document),
        "Bundle" => survives::<Bundle>(document),
        "BundleRevision" => survives::<BundleRevision>(document),
        "SyncRun" => survives::<SyncRun>(document),
        "Namespace" => survives::<k8s_openapi::api::core::v1::Namespace>(document),
        other => Err(format!("no kind {other}")),
    }
}

#[test]
fn every_manifest_and_example_is_read_without_loss() {
    for (file, documents) in documents() {
        assert!(!documents.is_empty(), "{file} is empty");
        for document in documents {
            read(&document).unwrap_or_else(|error| {
                panic!(
                    "{file}: {} {}: {error}",
                    document["kind"], document["metadata"]
                )
            });
        }
    }
}

#[test]
fn every_kind_has_a_manifest() {
    let seen: Vec<Value> = documents()
        .into_iter()
        .flat_map(|(_, documents)| documents)
        .collect();
    for crd in crds() {
        let names = &crd.spec.names;
        let api_version = format!("{}/{}", crd.spec.group, crd.spec.versions[0].name);
        let found = seen.iter().any(|document| {
            document["kind"] == *names.kind && document["apiVersion"] == *api_version
        });
        assert!(found, "no manifest of {api_version} {}", names.kind);
    }
}

#[test]
fn absent_empty_and_filled_lists_of_services_stay_different() {
    let mapping = |services: Value| -> ApplicationMapping {
        let spec = if services == "absent" {
            serde_json::json!({})
        } else {
            serde_json::json!({"services": services})
        };
        let text = serde_json::json!({"metadata": {"name": "shop"}, "spec": spec});
        let read: ApplicationMapping = serde_json::from_value(text).unwrap();
        serde_json::from_value(serde_json::to_value(read).unwrap()).unwrap()
    };
    assert!(mapping("absent".into()).spec.enables("a"));
    assert!(mapping(Value::Null).spec.enables("a"));
    assert!(!mapping(serde_json::json!([])).spec.enables("a"));
    assert!(mapping(serde_json::json!([{"id": "a"}])).spec.enables("a"));
    assert!(!mapping(serde_json::json!([{"id": "b"}])).spec.enables("a"));
}

#[test]
fn what_a_manifest_leaves_out_gets_its_default() {
    let trigger: Trigger = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "t"}, "spec": {"subscriber": {"uri": "http://x"}}
    }))
    .unwrap();
    assert_eq!(trigger.spec.broker, "default");

    let flow: EventFlow = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "f"}, "spec": {"application": "shop", "serviceID": "s"}
    }))
    .unwrap();
    assert_eq!(flow.spec.broker_ref.name, "default");
    assert_eq!(
        (
            flow.spec.health_check.enabled,
            flow.spec.health_check.interval_seconds
        ),
        (true, 10)
    );
    assert_eq!(flow.spec.on_deprovision, event_flow::OnDeprovision::Drain);
}

#[test]
fn a_malformed_nested_filter_is_reported_and_does_not_hide_its_trigger() {
    let trigger: Trigger = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "t"},
        "spec": {"subscriber": {"uri": "http://x"}, "filters": [{"not": {"exact": "not a map"}}]}
    }))
    .unwrap();
    let nested = trigger.spec.filters[0].not.as_ref().unwrap();
    let error = nested.read().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"invalid nested filter {"exact":"not a map"}"#
    );
}

#[test]
fn nested_filters_are_read_to_any_depth() {
    let innermost = Filter {
        cesql: Some("EXISTS a".to_owned()),
        ..Filter::default()
    };
    let mut filter = innermost.clone();
    for _ in 0..20 {
        filter = Filter {
            not: Some(Nested::from(&filter)),
            ..Filter::default()
        };
    }
    for _ in 0..20 {
        filter = filter.not.unwrap().read().unwrap();
    }
    assert_eq!(filter, innermost);
}

#[test]
fn entries_decide_what_a_service_is() {
    let (_, documents) = documents().pop().unwrap();
    let shop: Application = serde_json::from_value(documents[0].clone()).unwrap();
    let facts: Vec<_> = shop
        .spec
        .services
        .iter()
        .map(|service| (service.sends_events(), service.has_api()))
        .collect();
    assert_eq!(facts, [(true, false), (false, true), (true, true)]);
}
