//! What every story needs: resources applied and ready, events published, accounts that balance.

use heddle_api::ledger::{Account, Accounts, DeadLetterPage, Trace};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::subscriber::{Manner, Subscriber};
use super::wire::{Message, Wire};
use crate::harness::{Server, eventually_or_else};

/// The namespace most stories happen in.
pub(crate) const TEAM: &str = "team-a";
/// The door of the Broker that most stories use.
pub(crate) const BROKER: &str = "/broker/team-a/default";

/// A server with a namespace and a Broker in it.
pub(crate) async fn with_broker() -> Server {
    let server = Server::start().await;
    set_up(&server).await;
    server
}

/// The same for tests that make it work hard.
pub(crate) async fn with_busy_broker() -> Server {
    let server = Server::start_quietly().await;
    set_up(&server).await;
    server
}

/// The objects of `heddle demo`, which the README tells about.
const SHOP: &str = include_str!("../../../src/cmd/demo/shop.yaml");

/// The shop with everything in it ready.
pub(crate) async fn shop(subscriber: &Subscriber) -> Server {
    shop_on(Server::start().await, subscriber).await
}

/// The same on a server of the caller's.
pub(crate) async fn shop_on(server: Server, subscriber: &Subscriber) -> Server {
    let shop = SHOP.replace("SUBSCRIBERS", &subscriber.url(""));
    server.heddle_with(&["apply", "-f", "-"], &shop).ok();
    server.until_ready("applications", "shop").await;
    server.until_ready("subscriptions", "shop-team-a").await;
    for name in ["orders", "refunds"] {
        server.until_ready("triggers", name).await;
    }
    server
}

/// A namespace and a Broker in it.
pub(crate) async fn set_up(server: &Server) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}});
    server.apply(&namespace).await;
    server.apply(&broker("default")).await;
    server.until_ready("brokers", "default").await;
}

pub(crate) fn broker(name: &str) -> Value {
    json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
        "metadata": {"namespace": TEAM, "name": name},
    })
}

/// A Trigger on the default Broker; `spec` is put over what is usual.
pub(crate) fn trigger(name: &str, subscriber: &str, spec: Value) -> Value {
    let mut trigger = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {"namespace": TEAM, "name": name},
        "spec": {"broker": "default", "subscriber": {"uri": subscriber}},
    });
    for (key, value) in spec.as_object().unwrap() {
        trigger["spec"][key] = value.clone();
    }
    trigger
}

/// A Trigger whose subscriber refuses everything until it is told otherwise, and whose events go on being tried.
pub(crate) async fn refused_and_retried(server: &Server, subscriber: &Subscriber) {
    subscriber.behave("/", Manner::Status(503));
    let patient =
        json!({"delivery": {"retry": 1000, "backoffPolicy": "linear", "backoffDelay": "PT0.1S"}});
    let trigger = trigger("t", &subscriber.url("/"), patient);
    server.apply(&trigger).await;
    server.until_ready("triggers", "t").await;
}

/// A delivery policy that gives up soon.
pub(crate) fn impatient(retry: u32) -> Value {
    json!({"retry": retry, "backoffPolicy": "linear", "backoffDelay": "PT0.01S", "timeout": "PT20S"})
}

/// The headers of an event in binary mode.
pub(crate) fn event<'a>(id: &'a str, type_: &'a str) -> [(&'static str, &'a str); 4] {
    [
        ("ce-specversion", "1.0"),
        ("ce-id", id),
        ("ce-source", "/test"),
        ("ce-type", type_),
    ]
}

impl Server {
    /// Creates or changes an object of the mesh, as `kubectl apply --server-side` would.
    pub(crate) async fn apply(&self, object: &Value) {
        let path = format!("{}?fieldManager=e2e&force=true", path_of(object));
        let kind = ("content-type", "application/apply-patch+yaml");
        let body = serde_json::to_vec(object).unwrap();
        let answer = self.ask("PATCH", &path, &[kind], &body).await;
        assert!((200..300).contains(&answer.status()), "{}", answer.text());
    }

    /// One request as the administrator.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Message {
        let token = format!("Bearer {}", self.token());
        let mut headers = headers.to_vec();
        headers.push(("authorization", &token));
        let mut wire = Wire::to(&self.control);
        wire.ask(method, path, &headers, body).await.unwrap()
    }

    /// An answer below `/heddle/v1/`.
    pub(crate) async fn question<T: DeserializeOwned>(&self, question: &str) -> T {
        let path = format!("/heddle/v1/{question}");
        let answer = self.ask("GET", &path, &[], b"").await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// A connection to the events listener.
    pub(crate) fn publisher(&self) -> Wire {
        Wire::to(&self.events)
    }

    /// Publishes an event that must be accepted.
    pub(crate) async fn publish(&self, door: &str, id: &str, type_: &str) {
        let mut wire = self.publisher();
        let answer = wire.ask("POST", door, &event(id, type_), b"").await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 202, "{}", answer.text());
    }

    /// Waits until an object says that it is ready, about its newest generation.
    pub(crate) async fn until_ready(&self, plural: &str, name: &str) -> Value {
        self.until_condition(plural, name, "Ready", "True").await
    }

    /// Waits until a condition of an object has a status; gives the condition.
    pub(crate) async fn until_condition(
        &self,
        plural: &str,
        name: &str,
        type_: &str,
        status: &str,
    ) -> Value {
        let path = object_path(plural, name);
        let what = format!("{plural}/{name} to be {type_}={status}");
        eventually_or_else(&what, async || {
            let object = self.ask("GET", &path, &[], b"").await.json();
            let of_now = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            let conditions = object["status"]["conditions"].as_array();
            let condition = conditions
                .into_iter()
                .flatten()
                .find(|condition| condition["type"] == type_);
            match condition {
                Some(condition) if of_now && condition["status"] == status => Ok(condition.clone()),
                _ => Err(object.to_string()),
            }
        })
        .await
    }

    /// Applies a Trigger and waits until every matching event from now on will be sent.
    pub(crate) async fn apply_trigger(&self, trigger: &Value) {
        self.apply(trigger).await;
        let name = trigger["metadata"]["name"].as_str().unwrap();
        self.until_ready("triggers", name).await;
    }

    /// Counted anew rather than remembered; they balance at any time.
    pub(crate) async fn accounts(&self) -> Accounts {
        let accounts: Accounts = self.question("accounts?verify=true").await;
        for account in &accounts.consumers {
            assert_eq!(account.difference(), 0, "{account:#?}");
        }
        accounts
    }

    /// The account of a Trigger.
    pub(crate) async fn account(&self, trigger: &str) -> Account {
        let accounts = self.accounts().await.consumers;
        account_of(&accounts, trigger).clone()
    }

    /// Waits until the mesh knows a Trigger and sends nothing for it; gives the reason.
    pub(crate) async fn until_held(&self, trigger: &str) -> String {
        let key = format!("trigger/{TEAM}/{trigger}");
        eventually_or_else(&format!("{key} to be held"), async || {
            let accounts = self.accounts().await.consumers;
            let found = accounts.iter().find(|account| account.consumer == key);
            let held = found.and_then(|account| account.held.clone());
            held.ok_or_else(|| format!("{found:#?}"))
        })
        .await
    }

    /// Waits until every event is matched and has ended everywhere.
    pub(crate) async fn until_quiet(&self) -> Accounts {
        eventually_or_else("every event to have ended", async || {
            let accounts = self.accounts().await;
            let quiet = accounts.matched_up_to == accounts.log.next
                && accounts
                    .consumers
                    .iter()
                    .all(|account| account.pending == 0);
            if quiet {
                return Ok(accounts);
            }
            Err(format!("{accounts:#?}"))
        })
        .await
    }

    /// Waits until so many dead letters rest.
    pub(crate) async fn until_dead(&self, total: u64) -> DeadLetterPage {
        eventually_or_else(&format!("{total} dead letters"), async || {
            let page: DeadLetterPage = self.question("dead-letters?limit=500").await;
            if page.total == total {
                return Ok(page);
            }
            Err(format!("{} rest", page.total))
        })
        .await
    }

    pub(crate) async fn trace(&self, id: &str) -> Trace {
        self.question(&format!("trace?id={id}")).await
    }
}

pub(crate) fn account_of<'a>(accounts: &'a [Account], trigger: &str) -> &'a Account {
    let key = format!("trigger/{TEAM}/{trigger}");
    let found = accounts.iter().find(|account| account.consumer == key);
    found.unwrap_or_else(|| panic!("no account of {key}"))
}

fn path_of(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap();
    let plural = match object["kind"].as_str().unwrap() {
        "Namespace" => return format!("/api/v1/namespaces/{name}"),
        "Application" => "applications",
        "Broker" => "brokers",
        "Trigger" => "triggers",
        "EventPolicy" => "eventpolicies",
        "Channel" => "channels",
        "ApplicationMapping" => "applicationmappings",
        other => panic!("no story has a {other}"),
    };
    object_path(plural, name)
}

/// Where an object of this kind is in the stories.
fn object_path(plural: &str, name: &str) -> String {
    match plural {
        "applications" => {
            format!("/apis/applicationconnector.kyma-project.io/v1alpha1/applications/{name}")
        }
        "applicationmappings" => format!(
            "/apis/applicationconnector.kyma-project.io/v1alpha1/namespaces/{TEAM}/applicationmappings/{name}"
        ),
        "eventflows" => format!("/apis/heddle.dev/v1alpha1/namespaces/{TEAM}/eventflows/{name}"),
        "eventpolicies" => {
            format!("/apis/eventing.knative.dev/v1alpha1/namespaces/{TEAM}/eventpolicies/{name}")
        }
        "channels" => format!("/apis/messaging.knative.dev/v1/namespaces/{TEAM}/channels/{name}"),
        "subscriptions" => format!(
            "/apis/messaging.knative.dev/v1/namespaces/kyma-integration/subscriptions/{name}"
        ),
        _ => format!("/apis/eventing.knative.dev/v1/namespaces/{TEAM}/{plural}/{name}"),
    }
}
