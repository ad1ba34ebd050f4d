//! What users want of triggers, and the same as resources for the mesh.

use std::sync::Arc;

use heddle_api::dataplane::Resources;
use serde_json::json;

/// The types of all events.
pub(super) const TYPES: [&str; 3] = ["made", "paid", "sent"];

/// What users want of one trigger. Its name is its subscriber's host, too.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) name: String,
    pub(super) exists: bool,
    /// Its name has a place, so that it goes on where it was when it is made again.
    pub(super) known: bool,
    pub(super) uid: u64,
    pub(super) generation: u64,
    pub(super) type_: Option<&'static str>,
    pub(super) paused: bool,
    pub(super) ordered: bool,
    pub(super) retry: u64,
    /// Events that came while it did not exist.
    pub(super) gap: Vec<usize>,
}

impl Wish {
    /// A trigger for everything, in any order.
    pub(super) fn new(number: usize) -> Self {
        Self {
            name: format!("t{number}"),
            exists: true,
            known: true,
            uid: 0,
            generation: 1,
            type_: None,
            paused: false,
            ordered: false,
            retry: 30,
            gap: Vec::new(),
        }
    }

    pub(super) fn wants(&self, type_: &str) -> bool {
        self.type_.is_none_or(|wanted| wanted == type_)
    }
}

/// One broker and the triggers that exist.
pub(super) fn resources(wishes: &[Wish]) -> Resources {
    let broker = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
        "metadata": {"namespace": "ns", "name": "default", "uid": "b", "generation": 1}, "spec": {},
    });
    let broker = serde_json::from_value(broker).expect("a broker");
    let triggers = wishes.iter().filter(|wish| wish.exists).map(|wish| {
        let url = format!("http://{}/", wish.name);
        let order = if wish.ordered { "ordered" } else { "unordered" };
        let filter = wish
            .type_
            .map(|type_| json!({"attributes": {"type": type_}}));
        let trigger = json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
            "metadata": {
                "namespace": "ns", "name": wish.name,
                "uid": format!("{}-{}", wish.name, wish.uid), "generation": wish.generation,
                "annotations": {
                    "heddle.dev/paused": wish.paused.to_string(),
                    "heddle.dev/delivery-order": order,
                    "heddle.dev/max-in-flight": "8",
                },
            },
            "spec": {
                "broker": "default", "subscriber": {"uri": url}, "filter": filter,
                "delivery": {"timeout": "PT2S", "retry": wish.retry, "backoffDelay": "PT0.05S"},
            },
            "status": {"subscriberUri": url},
        });
        Arc::new(serde_json::from_value(trigger).expect("a trigger"))
    });
    Resources {
        brokers: vec![Arc::new(broker)],
        triggers: triggers.collect(),
        ..Resources::default()
    }
}
