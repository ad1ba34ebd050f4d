//! Applications whose events are led into a namespace, so that each of them has heartbeats.
//!
//! They are declared through the resource API like anybody's: an Application, the leave to lead its events, and the link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_api::{Application, Broker, EventPolicy, Subscription};
use heddle_rt::{OnError, Tasks};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Where their events go.
pub(super) const NAMESPACE: &str = "bench";
pub(super) const BROKER: &str = "default";

/// How many objects are created at once.
const CREATORS: u32 = 32;

/// The name of one of them.
pub(super) fn name(number: u32) -> String {
    format!("app-{number:04}")
}

/// Declares a namespace, its Broker and so many Applications that are linked to it. They become ready afterwards.
pub(super) async fn declare(client: &Client, count: u32) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    create(&namespaces, json!({"metadata": {"name": NAMESPACE}})).await?;
    create_in::<Broker>(
        client,
        NAMESPACE,
        json!({"metadata": {"name": BROKER}, "spec": {}}),
    )
    .await?;
    let (tasks, next) = (Tasks::new("creators"), Arc::new(AtomicU32::new(0)));
    for creator in 0..CREATORS.min(count) {
        let (client, next) = (client.clone(), Arc::clone(&next));
        tasks.spawn(&format!("creator-{creator}"), OnError::Report, async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<(), anyhow::Error>(());
                }
                declare_one(&client, &name(number)).await?;
            }
        });
    }
    tasks.join().await;
    match tasks.failures().into_iter().next() {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

async fn declare_one(client: &Client, name: &str) -> anyhow::Result<()> {
    let applications: Api<Application> = Api::all(client.clone());
    let application = json!({"metadata": {"name": name}, "spec": {"services": []}});
    create(&applications, application).await?;
    let channel = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": name,
        "namespace": INTEGRATION_NAMESPACE,
    });
    let policy = json!({"metadata": {"name": name}, "spec": {"from": [{"ref": channel}]}});
    create_in::<EventPolicy>(client, NAMESPACE, policy).await?;
    let link = json!({
        "metadata": {"name": link(name)},
        "spec": {
            "channel": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": name},
            "subscriber": {"ref": {
                "apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "namespace": NAMESPACE, "name": BROKER,
            }},
        },
    });
    create_in::<Subscription>(client, INTEGRATION_NAMESPACE, link).await
}

/// The name of what leads an Application's events there.
fn link(application: &str) -> String {
    format!("{application}-{NAMESPACE}")
}

/// Creates an object in a namespace.
pub(super) async fn create_in<K>(
    client: &Client,
    namespace: &str,
    object: Value,
) -> anyhow::Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    create(&api, object).await
}

async fn create<K>(api: &Api<K>, mut object: Value) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    let object = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}
