//! A world in which the controllers run, and the users who write into it and look.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::operation::OperationKind;
use heddle_controllers::Options;
use heddle_rt::{Chance, Clock};
use heddle_sim::plane::TestPlane;
use heddle_sim::stage::{NAMESPACES, on_stage};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

pub(crate) const TEAM: &str = "team-a";
/// Longer than every pause of the controllers but that of a drain, shorter than a resync, an interval of registries and
/// the grace of a minute.
pub(crate) const A_WHILE: Duration = Duration::from_secs(30);
/// What a platform grants: nine tenths of an hour.
const PATIENCE: SignedDuration = SignedDuration::from_secs(3240);

/// Whoever may do everything, at the API server of a fresh world. A namespace without a name is none.
#[derive(Clone)]
pub(crate) struct Users {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
}

/// Tells a story in a fresh world in which the controllers run, on simulated time. `provide` gives the controllers what
/// they are to have besides a client, and the story its hand on it.
pub(crate) fn tell<P, F: Future<Output = ()>>(
    provide: impl FnOnce(&mut Options) -> P,
    story: impl FnOnce(Users, P) -> F,
) {
    on_stage(&NAMESPACES, |stage| async move {
        let users = Users::new(stage.users(), &stage.clock);
        let mut options = Options::new(stage.clock.clone(), Chance::seeded(2));
        let provided = provide(&mut options);
        let controllers = heddle_controllers::run(stage.controllers(), options);
        stage.play(story(users, provided), controllers).await;
    });
}

/// Gives the controllers a mesh that the story can hold back.
pub(crate) fn with_plane(options: &mut Options) -> TestPlane {
    let plane = TestPlane::new(options.clock.clone());
    options.data_plane = Some(Arc::new(plane.clone()));
    plane
}

impl Users {
    pub(crate) fn new(client: Client, clock: &Clock) -> Self {
        let clock = clock.clone();
        Self { client, clock }
    }

    pub(crate) fn api<K: Resource<DynamicType = ()>>(&self, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<K>(&());
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    /// What the team's namespace has of a kind.
    pub(crate) fn team<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), TEAM)
    }

    pub(crate) async fn apply<K: Resource<DynamicType = ()>>(
        &self,
        namespace: &str,
        name: &str,
        spec: Value,
    ) {
        self.apply_fields::<K>(namespace, name, json!({"spec": spec}))
            .await;
    }

    pub(crate) async fn apply_fields<K: Resource<DynamicType = ()>>(
        &self,
        namespace: &str,
        name: &str,
        fields: Value,
    ) {
        let mut object = object::<K>(fields);
        object["metadata"] = json!({"name": name});
        let params = PatchParams::apply("user").force();
        let api = self.api::<K>(namespace);
        api.patch(name, &params, &Patch::Apply(&object))
            .await
            .unwrap();
    }

    pub(crate) async fn merge<K: Resource<DynamicType = ()>>(
        &self,
        namespace: &str,
        name: &str,
        patch: Value,
    ) {
        let api = self.api::<K>(namespace);
        api.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn delete<K: Resource<DynamicType = ()>>(&self, namespace: &str, name: &str) {
        let api = self.api::<K>(namespace);
        drop(api.delete(name, &Default::default()).await.unwrap());
    }

    /// Makes what is written as JSON; that it can be read as its type is checked on the way.
    pub(crate) async fn create<K>(&self, api: Api<K>, fields: Value)
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object::<K>(fields)).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// An operation as the front writes it when it is accepted now.
    pub(crate) fn operation(&self, id: &str, kind: OperationKind) -> Value {
        let now = self.clock.now();
        json!({
            "id": id, "kind": kind, "requestHash": "h",
            "acceptedAt": Time(now), "deadline": Time(now + PATIENCE),
        })
    }

    /// Until everything has come to rest.
    pub(crate) async fn rest(&self) {
        self.clock.sleep(A_WHILE).await;
    }
}

/// The JSON of an object of a kind, from its fields.
pub(crate) fn object<K: Resource<DynamicType = ()>>(mut fields: Value) -> Value {
    fields["apiVersion"] = json!(K::api_version(&()));
    fields["kind"] = json!(K::kind(&()));
    fields
}

/// A condition as `status` or `status:reason`, and `none` if there is no such condition.
pub(crate) fn condition(status: &Value, kind: &str) -> String {
    let conditions = status["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|c| c["type"] == kind));
    let Some(found) = found else {
        return "none".to_owned();
    };
    let value = found["status"].as_str().unwrap();
    match found["reason"].as_str() {
        Some(reason) => format!("{value}:{reason}"),
        None => value.to_owned(),
    }
}
