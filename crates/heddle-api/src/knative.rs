//! The labels by which Knative's clients find definitions.
//!
//! They look for sources, channels and whatever has an address by labels of the CustomResourceDefinitions rather than by
//! name. Each kind here has those that Knative gives to its own.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every definition of Knative's.
const INSTALLED: &str = "knative.dev/crd-install";
/// Objects have `status.address`.
const ADDRESSABLE: &str = "duck.knative.dev/addressable";
/// Objects make events; `kn source list-types` shows them.
const SOURCE: &str = "duck.knative.dev/source";
/// Subscriptions can be made to objects; `kn channel list-types` shows them.
const SUBSCRIBABLE: &str = "messaging.knative.dev/subscribable";

fn labels(kind: &str) -> &'static [&'static str] {
    match kind {
        "Broker" => &[INSTALLED, ADDRESSABLE],
        "Channel" => &[INSTALLED, ADDRESSABLE, SUBSCRIBABLE],
        "HTTPSource" => &[SOURCE],
        "Subscription" | "Trigger" | "EventPolicy" => &[INSTALLED],
        _ => &[],
    }
}

/// Adds the labels of the definition's kind.
pub(crate) fn label(crd: &mut CustomResourceDefinition) {
    let labels = labels(&crd.spec.names.kind).iter();
    let labels: BTreeMap<String, String> = labels
        .map(|label| ((*label).to_owned(), "true".to_owned()))
        .collect();
    if !labels.is_empty() {
        crd.metadata.labels.get_or_insert_default().extend(labels);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_are_found_by_the_labels_that_clients_select_by() {
        let found = |label: &str| -> Vec<String> {
            let crds = crate::crds().into_iter();
            let labelled = crds.filter(|crd| {
                let labels = crd.metadata.labels.as_ref();
                labels.is_some_and(|labels| labels.get(label).is_some_and(|value| value == "true"))
            });
            labelled.map(|crd| crd.spec.names.kind).collect()
        };
        assert_eq!(found("messaging.knative.dev/subscribable"), ["Channel"]);
        assert_eq!(found("duck.knative.dev/source"), ["HTTPSource"]);
        assert_eq!(found("duck.knative.dev/addressable"), ["Channel", "Broker"]);
        assert_eq!(found("knative.dev/crd-install").len(), 5);
    }
}
