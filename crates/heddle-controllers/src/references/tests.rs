use std::sync::Arc;

use heddle_api::{Broker, Trigger};
use kube::Resource as _;
use serde_json::json;

use super::{Index, Target};
use crate::watch::Change;

fn trigger(name: &str, broker: &str) -> Arc<Trigger> {
    let trigger = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"broker": broker, "subscriber": {"uri": "http://s.example/"}},
    });
    Arc::new(serde_json::from_value(trigger).unwrap())
}

fn targets(trigger: &Trigger) -> Vec<Target> {
    vec![Target::of::<Broker>("ns", &trigger.spec.broker)]
}

fn found(index: &Index<Trigger>, broker: &str) -> Vec<String> {
    let mut broker = Broker::new(broker, Default::default());
    broker.meta_mut().namespace = Some("ns".to_owned());
    let referrers = index.referrers(&broker);
    referrers.into_iter().map(|key| key.name).collect()
}

#[test]
fn referrers_are_found_by_what_they_refer_to_now() {
    let index = Index::new();
    let (a, b) = (trigger("a", "x"), trigger("b", "x"));
    index.update(&Change::Listed(&b), targets);
    index.update(&Change::between(None, &a), targets);
    assert_eq!(found(&index, "x"), ["a", "b"]);
    let moved = trigger("a", "y");
    let old = Some(&a);
    index.update(&Change::between(old, &moved), targets);
    assert_eq!(
        (found(&index, "x"), found(&index, "y")),
        (vec!["b".to_owned()], vec!["a".to_owned()])
    );
    index.update(&Change::Deleted(&b), targets);
    index.update(&Change::Deleted(&moved), targets);
    assert!(found(&index, "x").is_empty());
    let maps = index.0.lock();
    assert!(
        maps.targets.is_empty() && maps.referrers.is_empty(),
        "nothing is kept for what is gone"
    );
}
