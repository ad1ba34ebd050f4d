//! What listeners are told while a shared watch keeps less than it was told.

use heddle_api::EventFlow;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

fn flow(name: &str, change: Value) -> EventFlow {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "team", "uid": name, "generation": 1, "labels": {"a": "b"}},
        "spec": {"application": "shop", "serviceID": "orders"},
    });
    json_patch::merge(&mut object, &change);
    serde_json::from_value(object).unwrap()
}

/// A shared watch of flows that keeps them trimmed, and what it tells.
fn shared_watch() -> (SharedWatch<EventFlow>, Arc<Mutex<Vec<String>>>) {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("nobody is asked"))
    });
    let client = Client::new(service, "default");
    let mut shared_watch = SharedWatch::new(&client).trimmed(crate::event_flow::trim);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&told);
    shared_watch.on_change(move |change: &Change<'_, EventFlow>| {
        let object = change.object();
        let status = object.status.as_ref().map_or("", |_| " with status");
        let what = match change {
            Change::Applied { old: None, .. } => "came",
            Change::Applied { .. } => "changed",
            Change::Deleted(_) => "went",
            Change::Listed(_) => "listed",
        };
        let written = if change.is_written() {
            ""
        } else {
            " unwritten"
        };
        let name = object.name_any();
        notes.lock().push(format!("{name} {what}{status}{written}"));
    });
    (shared_watch, told)
}

#[tokio::test]
async fn a_change_is_told_whole_and_kept_in_short() {
    let (mut shared_watch, told) = shared_watch();
    let status = json!({"status": {"observedGeneration": 1}});
    for event in [
        Event::Init,
        Event::InitApply(flow("a", json!({}))),
        Event::InitDone,
        Event::Apply(flow("a", status.clone())),
        Event::Apply(flow("a", json!({"metadata": {"labels": {"a": "c"}}}))),
        Event::Apply(flow(
            "a",
            json!({"metadata": {"labels": {"a": "c"}, "finalizers": ["x"]}}),
        )),
        Event::Apply(flow("b", status)),
    ] {
        shared_watch.take_in(event);
    }
    assert_eq!(
        std::mem::take(&mut *told.lock()),
        [
            "a listed",
            "a changed with status unwritten",
            "a changed",
            "a changed",
            "b came with status",
        ]
    );
    let kept = shared_watch
        .store()
        .get(&key_of(&flow("b", json!({}))))
        .unwrap();
    assert!(kept.status.is_none() && kept.metadata.labels.is_none());
    assert_eq!(kept.spec.application, "shop");
    shared_watch.take_in(Event::Delete(flow("b", json!({}))));
    for event in [Event::Init, Event::InitDone] {
        shared_watch.take_in(event);
    }
    assert_eq!(*told.lock(), ["b went", "a went"]);
    let keeping = shared_watch.keeping.unwrap();
    assert!(
        keeping.writings.is_empty(),
        "nothing is kept for what is gone"
    );
}

#[tokio::test]
async fn what_is_made_anew_under_an_old_name_counts_as_written() {
    let (mut shared_watch, told) = shared_watch();
    shared_watch.take_in(Event::Apply(flow("a", json!({}))));
    shared_watch.take_in(Event::Apply(flow("a", json!({"metadata": {"uid": "z"}}))));
    assert_eq!(*told.lock(), ["a came", "a changed"]);
}

#[tokio::test]
async fn whoever_looks_at_states_sees_them_whole_in_lists_too() {
    let (mut shared_watch, _) = shared_watch();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&seen);
    shared_watch.on_seen(move |flow: &EventFlow| {
        let status = flow.status.as_ref();
        let observed = status.and_then(|status| status.observed_generation);
        notes
            .lock()
            .push(format!("{} {observed:?}", flow.name_any()));
    });
    let status = |generation: i64| json!({"status": {"observedGeneration": generation}});
    for event in [
        Event::Init,
        Event::InitApply(flow("a", status(1))),
        Event::InitDone,
        Event::Apply(flow("a", status(2))),
        Event::Delete(flow("a", status(2))),
    ] {
        shared_watch.take_in(event);
    }
    assert_eq!(*seen.lock(), ["a Some(1)", "a Some(2)"]);
}
