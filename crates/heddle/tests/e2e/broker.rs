//! The service broker as its users have it: provision, receive, break, heal, kill, remove, and nothing is left.

mod osb_check;

use heddle_api::{EventActivation, EventFlow, EventPolicy, ServiceInstance, Subscription};
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::events::stage::{TEAM, trigger};
use crate::events::subscriber::Subscriber;
use crate::harness::{Server, eventually, read};

const ORDERS: &str = "11111111-1111-4111-8111-111111111111";
const RETURNS: &str = "22222222-2222-4222-8222-222222222222";
const API: &str = "33333333-3333-4333-8333-333333333333";

fn service(id: &str, name: &str, entry: Value) -> Value {
    json!({
        "id": id, "name": name, "displayName": name, "description": "of a shop", "providerDisplayName": "shop",
        "entries": [entry],
    })
}

fn application() -> Value {
    json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop"},
        "spec": {"services": [
            service(ORDERS, "orders", json!({"type": "Events"})),
            service(RETURNS, "returns", json!({"type": "Events"})),
            service(API, "api", json!({"type": "API", "gatewayUrl": "http://shop.example:8080/v1"})),
        ]},
    })
}

fn mapping() -> Value {
    json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "ApplicationMapping",
        "metadata": {"namespace": TEAM, "name": "shop"}, "spec": {},
    })
}

/// A namespace that may use a shop.
async fn shop() -> Server {
    let server = Server::start_quietly().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}});
    for object in [namespace, application(), mapping()] {
        server.apply(&object).await;
    }
    server.until_ready("applications", "shop").await;
    eventually("the catalog shows the shop", async || {
        let catalog = server.heddle(&["catalog", "-n", TEAM]).ok();
        catalog.contains("orders").then_some(())
    })
    .await;
    server
}

/// How many objects there are of what is made for flows.
async fn made(server: &Server) -> [usize; 5] {
    [
        server.all::<ServiceInstance>().await.len(),
        server.all::<EventFlow>().await.len(),
        server.all::<Subscription>().await.len(),
        server.all::<EventActivation>().await.len(),
        server.all::<EventPolicy>().await.len(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn two_services_of_an_application_deliver_an_event_once_until_both_are_gone() {
    let server = shop().await;
    let subscriber = Subscriber::start().await;
    server.provision(TEAM, "orders", "one", &[]);
    server.provision(TEAM, "returns", "two", &[]);
    server
        .apply_trigger(&trigger("all", &subscriber.url("/all"), json!({})))
        .await;
    assert_eq!(made(&server).await, [2, 2, 1, 2, 1]);
    let arrived = async |id: &str| {
        server.publish("/shop/events", id, "order.created").await;
        server.until_quiet().await;
        let ids = subscriber.ids("/all");
        ids.iter().filter(|known| *known == id).count()
    };
    assert_eq!(arrived("with-both").await, 1);
    server.deprovision(TEAM, "one");
    assert_eq!(arrived("with-one").await, 1);
    server.deprovision(TEAM, "two");
    assert_eq!(arrived("with-none").await, 0);
    assert_eq!(made(&server).await, [0; 5]);
    server.heddle(&["doctor"]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_breaks_is_mended_and_the_operation_stays_what_it_was() {
    let server = shop().await;
    server.provision(TEAM, "orders", "one", &[]);
    let client = server.client().await;
    let links: Api<Subscription> = Api::namespaced(client.clone(), "kyma-integration");
    let link = links
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .remove(0);
    let (name, uid) = (link.metadata.name.unwrap(), link.metadata.uid);
    links.delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("a new link", async || {
        let link = links.get_opt(&name).await.unwrap()?;
        (link.metadata.uid != uid).then_some(())
    })
    .await;
    server.until_ready("eventflows", "one").await;
    let explained = server
        .heddle(&["explain", "instance", "one", "-n", TEAM])
        .ok();
    assert!(explained.contains("provision succeeded"), "{explained}");
    server.deprovision(TEAM, "one");
}

/// Requests that are under way when the server dies.
const UNDER_WAY: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn accepted_requests_survive_the_server() {
    let mut server = shop().await;
    // Without a mapping nothing can be finished, so the operations are under way when the server dies.
    let words = ["delete", "applicationmapping/shop", "-n", TEAM];
    server.heddle(&words).ok();
    let pair = credentials(&server);
    let path = |id: usize| format!("/v2/service_instances/late-{id}?accepts_incomplete=true");
    let body = json!({
        "service_id": ORDERS, "plan_id": format!("{ORDERS}-plan"), "organization_guid": "o", "space_guid": "s",
        "context": {"platform": "test", "namespace": TEAM},
    });
    let mut operations = Vec::new();
    for id in 0..UNDER_WAY {
        let put = server.send(platform(&pair, "PUT", &path(id), &body)).await;
        assert_eq!(put.code.as_u16(), 202, "{}", put.json());
        operations.push(put.json()["operation"].as_str().unwrap().to_owned());
    }
    server.kill();
    server.launch().await;
    let state = async |id: usize| {
        let operation = &operations[id];
        let poll = format!("/v2/service_instances/late-{id}/last_operation?operation={operation}");
        let polled = server
            .send(platform(&pair, "GET", &poll, &Value::Null))
            .await;
        assert_eq!(polled.code.as_u16(), 200, "{}", polled.json());
        polled.json()["state"].as_str().unwrap().to_owned()
    };
    for (id, operation) in operations.iter().enumerate() {
        assert_eq!(state(id).await, "in progress");
        let again = server.send(platform(&pair, "PUT", &path(id), &body)).await;
        assert_eq!(again.json()["operation"], *operation, "{}", again.json());
    }
    server.apply(&mapping()).await;
    for id in 0..UNDER_WAY {
        eventually("the operation succeeds", async || {
            let state = state(id).await;
            assert_ne!(state, "failed");
            (state == "succeeded").then_some(())
        })
        .await;
    }
    // All are of one service, which is activated once.
    assert_eq!(made(&server).await, [UNDER_WAY, UNDER_WAY, 1, 1, 1]);
    server.deprovision(TEAM, "late-0");
}

/// The name and the password that platforms have.
fn account(server: &Server) -> (String, String) {
    let file: Value =
        serde_json::from_str(&read(&server.data().join("osb-credentials.json"))).unwrap();
    let text = |key: &str| file[key].as_str().unwrap().to_owned();
    (text("username"), text("password"))
}

fn credentials(server: &Server) -> String {
    use base64::Engine as _;
    let (username, password) = account(server);
    base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"))
}

fn platform(pair: &str, method: &str, path: &str, body: &Value) -> http::Request<Vec<u8>> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("Authorization", format!("Basic {pair}"))
        .header("X-Broker-API-Version", "2.17")
        .header("Content-Type", "application/json");
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    request.body(body).unwrap()
}
