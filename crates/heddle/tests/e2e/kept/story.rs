//! What a directory is kept with: resources, and an event in every state in which a server can leave one.

use std::collections::BTreeMap;

use heddle_api::ledger::{Account, DeadLetterDetail, EventState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::archive;
use crate::events::stage::{self, BROKER, TEAM, event, impatient, trigger};
use crate::events::subscriber::{Manner, Subscriber};
use crate::harness::{Server, eventually_or_else};

/// Nobody listens here, on whatever machine the directory is opened.
const NOWHERE: &str = "http://127.0.0.1:1/";
/// Each is the name of a Trigger, the only one that wants events of this type. The oldest is one that has not ended, so that
/// none of the others is old enough to be removed, however old the directory is.
const EVENTS: [(&str, &str); 7] = [
    ("waiting", "waiting-1"),
    ("delivered", "delivered-1"),
    ("dead", "dead-1"),
    ("retrying", "retrying-1"),
    ("dead", "dead-2"),
    ("delivered", "delivered-2"),
    ("waiting", "waiting-2"),
];
/// Lists of what was applied, and of what the controllers made of it.
const LISTS: [&str; 9] = [
    "/api/v1/namespaces",
    "/api/v1/namespaces/team-a/configmaps",
    "/api/v1/namespaces/kyma-integration/secrets",
    "/apis/applicationconnector.kyma-project.io/v1alpha1/applications",
    "/apis/applicationconnector.kyma-project.io/v1alpha1/applicationmappings",
    "/apis/eventing.knative.dev/v1/brokers",
    "/apis/eventing.knative.dev/v1/triggers",
    "/apis/messaging.knative.dev/v1/channels",
    "/apis/sources.kyma-project.io/v1alpha1/httpsources",
];

/// What the server that wrote a directory said about it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) version: String,
    /// The items of each list, without what controllers may write again at any time.
    pub(super) lists: BTreeMap<String, Vec<Value>>,
    /// By id: what each consumer that wanted the event made of it.
    pub(super) events: BTreeMap<String, BTreeMap<String, EventState>>,
    pub(super) dead_letters: Vec<DeadLetterDetail>,
    pub(super) accounts: Vec<Account>,
}

/// The bytes of an event: not text, so that nothing can have been made prettier on the way.
pub(super) fn body(id: &str) -> Vec<u8> {
    [&[0, 0xff, b'\n'], id.as_bytes(), &[0]].concat()
}

/// Makes a directory with everything in it, by the version that is being tested, and packs it.
pub(super) async fn make() -> Vec<u8> {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/dead", Manner::Status(500));
    subscriber.behave("/retrying", Manner::Status(503));
    let mut server = stage::with_broker().await;
    resources(&server).await;
    server.apply(&held("waiting", NOWHERE, "true")).await;
    server.until_held("waiting").await;
    for name in ["delivered", "dead", "retrying"] {
        let url = subscriber.url(&format!("/{name}"));
        server.apply_trigger(&wanting(name, &url)).await;
    }
    for (type_, id) in EVENTS {
        let mut headers = event(id, type_).to_vec();
        headers.push(("content-type", "application/octet-stream"));
        let mut wire = server.publisher();
        let answer = wire.ask("POST", BROKER, &headers, &body(id)).await.unwrap();
        assert_eq!(answer.status(), 202, "{}", answer.text());
    }
    subscriber.until_received("/delivered", 2).await;
    server.until_dead(2).await;
    let discard = ["dead-letters", "discard", "--id", "dead-2", "--yes"];
    server.heddle(&discard).ok();
    // From now on the one that is tried again is tried in vain, and on another machine nobody is troubled by it.
    subscriber.until_received("/retrying", 1).await;
    server.apply_trigger(&wanting("retrying", NOWHERE)).await;
    // What is kept has been recovered from a crash once, and then been closed in peace.
    server.kill();
    server.launch().await;
    settled(&server).await;
    let known = known(&server).await;
    assert_eq!(server.terminate().await.code(), Some(0));
    archive::pack(&server.data(), &serde_json::to_value(known).unwrap())
}

/// A Trigger for events of the type that is called as it is. It gives up soon where it is to give up at all.
pub(super) fn wanting(name: &str, url: &str) -> Value {
    let delivery = match name {
        "retrying" => {
            json!({"retry": 1000, "backoffPolicy": "linear", "backoffDelay": "PT0.5S", "timeout": "PT20S"})
        }
        _ => impatient(1),
    };
    let filters = json!([{"exact": {"type": name}}]);
    trigger(name, url, json!({"filters": filters, "delivery": delivery}))
}

/// The same, paused or not.
pub(super) fn held(name: &str, url: &str, paused: &str) -> Value {
    let mut trigger = wanting(name, url);
    trigger["metadata"]["annotations"] = json!({"heddle.dev/paused": paused});
    trigger
}

async fn resources(server: &Server) {
    let service = json!({
        "id": "4ad9b1de-6f0c-4ed0-a1d7-21a0a1a2f4b1", "name": "orders", "displayName": "Orders",
        "description": "Tells of orders", "providerDisplayName": "Example Retail", "entries": [{"type": "Events"}],
    });
    let connector = "applicationconnector.kyma-project.io/v1alpha1";
    let shop = json!({
        "apiVersion": connector, "kind": "Application", "metadata": {"name": "shop"}, "spec": {"services": [service]},
    });
    server.apply(&shop).await;
    server.until_ready("applications", "shop").await;
    let mapping = json!({
        "apiVersion": connector, "kind": "ApplicationMapping", "metadata": {"namespace": TEAM, "name": "shop"}, "spec": {},
    });
    server.apply(&mapping).await;
    let notes = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": TEAM, "name": "notes"},
        "data": {"text": "kept 📌 as it was written"},
    });
    server
        .heddle_with(&["apply", "-f", "-"], &notes.to_string())
        .ok();
}

/// Waits until every event is where it is to be when the server ends.
async fn settled(server: &Server) {
    let rests = |state| !matches!(state, EventState::Pending | EventState::Delivering);
    eventually_or_else("every event to rest", async || {
        let states = states(server).await;
        let mut all = states.values().flat_map(BTreeMap::values).copied();
        match all.all(rests) && states.values().all(|consumers| consumers.len() == 1) {
            true => Ok(()),
            false => Err(format!("{states:#?}")),
        }
    })
    .await;
}

/// Everything that a server says about what the story left it with.
pub(super) async fn known(server: &Server) -> Known {
    let mut lists = BTreeMap::new();
    for path in LISTS {
        lists.insert(path.to_owned(), list(server, path).await);
    }
    let mut dead_letters = Vec::new();
    for letter in server.until_dead(1).await.items {
        let question = format!("dead-letters/{}", letter.name);
        dead_letters.push(server.question(&question).await);
    }
    Known {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        lists,
        events: states(server).await,
        dead_letters,
        accounts: server.accounts().await.consumers,
    }
}

/// What became of each event, by its trace.
pub(super) async fn states(server: &Server) -> BTreeMap<String, BTreeMap<String, EventState>> {
    let mut states = BTreeMap::new();
    for (_, id) in EVENTS {
        let trace = server.trace(id).await;
        assert_eq!(trace.losses, [""; 0], "{trace:#?}");
        let verdicts = trace.events.into_iter().flat_map(|event| event.verdicts);
        let wanted = verdicts.filter(|verdict| verdict.state != EventState::Filtered);
        let of_event = wanted.map(|verdict| (verdict.consumer, verdict.state));
        states.insert(id.to_owned(), of_event.collect());
    }
    states
}

/// All items of a list, without what controllers write again at any time.
pub(super) async fn list(server: &Server, path: &str) -> Vec<Value> {
    let mut list = server.ask("GET", path, &[], b"").await.json();
    let mut items = match list["items"].take() {
        Value::Array(items) => items,
        _ => panic!("{path} is no list: {list}"),
    };
    for item in &mut items {
        item.as_object_mut().unwrap().remove("status");
        let metadata = item["metadata"].as_object_mut().unwrap();
        for name in ["resourceVersion", "managedFields", "generation"] {
            metadata.remove(name);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove("heddle.dev/applied");
        }
    }
    items
}
