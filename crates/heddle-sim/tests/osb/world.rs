//! A front, an API server, and the hand that plays controller.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use heddle_api::names;
use heddle_api::record::{About, Record};
use heddle_api::well_known::OSB_FRONT_ANNOTATION;
use heddle_api::{ServiceBinding, ServiceInstance};
use heddle_apiserver::{ADMINS, ApiServer, CONTROLLERS, Identity};
use heddle_front::catalog::{Backing, Catalog, Coding, Document, Offering, Pace, Plan, Schemas};
use heddle_front::{Credential, Credentials, Front, Offers, Options, Settings, Version};
use heddle_rt::{Chance, Clock, Tasks};
use heddle_sim::stage::{NAMESPACES, Stage, on_stage};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

/// `heddle:secret`.
pub(crate) const BASIC: &str = "Basic aGVkZGxlOnNlY3JldA==";

pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) users: Client,
    pub(crate) front: Front,
    pub(crate) clock: Clock,
}

/// What a platform was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn operation(&self) -> &str {
        self.body["operation"].as_str().unwrap()
    }
}

/// Tells a story in a fresh world, on simulated time.
pub(crate) fn tell<F: Future<Output = ()>>(story: impl FnOnce(World) -> F) {
    tell_with(Settings::default(), story);
}

pub(crate) fn tell_with<F: Future<Output = ()>>(
    settings: Settings,
    story: impl FnOnce(World) -> F,
) {
    let namespaces = [&NAMESPACES[..], &["team-b"]].concat();
    on_stage(&namespaces, |Stage { server, clock, .. }| async move {
        let users = client(&server, ADMINS);
        let front = front(client(&server, CONTROLLERS), &clock, settings);
        let world = World {
            server,
            users,
            front,
            clock,
        };
        story(world).await;
    });
}

pub(crate) fn client(server: &ApiServer, group: &str) -> Client {
    Client::new(
        server.in_process(Identity::new("test", &[group])),
        "default",
    )
}

/// A front as one of several: it shares nothing with others but the API server.
pub(crate) fn front(client: Client, clock: &Clock, settings: Settings) -> Front {
    front_of(
        client,
        clock,
        settings,
        Arc::new(Fixed(Arc::new(catalog()))),
    )
}

/// The same with another catalog.
pub(crate) fn front_of(
    client: Client,
    clock: &Clock,
    settings: Settings,
    offers: Arc<dyn Offers>,
) -> Front {
    let credentials = Credentials::new(|headers| {
        headers
            .get(http::header::AUTHORIZATION)
            .is_some_and(|value| value == "Bearer administrator")
    });
    let known = Credential {
        username: "heddle".to_owned(),
        password: "secret".to_owned(),
    };
    credentials.put("file", &[known]);
    Front::start(Options {
        client,
        clock: clock.clone(),
        chance: Chance::seeded(3),
        tasks: Tasks::new("front"),
        offers,
        credentials,
        settings,
    })
}

/// A catalog that stands still.
#[derive(Debug)]
struct Fixed(Arc<Catalog>);

impl Offers for Fixed {
    fn is_ready(&self) -> bool {
        true
    }
    fn catalog(&self) -> Arc<Catalog> {
        self.0.clone()
    }
    fn is_offered(&self, _: Option<&str>, _: &str, _: &str) -> bool {
        true
    }
    fn document(&self, _: Option<&str>, version: Version, coding: Coding) -> Document {
        let text = json!({"services": [], "for": version.to_string(), "room": "x".repeat(2000)});
        Document::coded(text.to_string(), coding)
    }
}

fn catalog() -> Catalog {
    let plan = |id: &str, pace| Plan {
        id: id.to_owned(),
        name: id.to_owned(),
        description: id.to_owned(),
        withdrawn: false,
        free: true,
        bindable: None,
        plan_updateable: None,
        binding_rotatable: true,
        requires_app: false,
        maximum_polling_duration: 3600,
        maintenance_version: None,
        metadata: Map::new(),
        schemas: Schemas {
            create: Some(json!({"properties": {"size": {"type": "integer"}}})),
            ..Schemas::default()
        },
        instances: pace,
        bindings: pace,
        backing: Backing::Application {
            name: "shop".to_owned(),
            service_id: "orders".to_owned(),
            events: true,
            api: true,
        },
    };
    Catalog {
        offerings: vec![Arc::new(Offering {
            id: "svc".to_owned(),
            name: "orders".to_owned(),
            bindable: true,
            plan_updateable: true,
            plans: vec![plan("prompt", Pace::Prompt), plan("patient", Pace::Patient)],
            ..Offering::default()
        })],
        ..Catalog::default()
    }
}

/// A body for `PUT` of an instance.
pub(crate) fn wanted(plan: &str, parameters: Value) -> Value {
    json!({
        "service_id": "svc", "plan_id": plan, "organization_guid": "org", "space_guid": "space", "parameters": parameters,
    })
}

pub(crate) const IDS: &str = "service_id=svc&plan_id=patient&accepts_incomplete=true";

impl World {
    /// Asks as a platform of the newest version that asks again later.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        let request = request(method, path, body);
        ask(&self.front, request).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.ask(Method::PUT, path, Some(body)).await
    }

    /// Asks for an instance of the patient plan, by its path.
    pub(crate) async fn ask_for(&self, instance: &str) {
        let path = format!("{instance}?accepts_incomplete=true");
        self.put(&path, wanted("patient", json!({}))).await;
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.ask(Method::DELETE, path, None).await
    }

    pub(crate) fn instances(&self, namespace: &str) -> Api<ServiceInstance> {
        Api::namespaced(self.users.clone(), namespace)
    }

    pub(crate) fn bindings(&self, namespace: &str) -> Api<ServiceBinding> {
        Api::namespaced(self.users.clone(), namespace)
    }

    pub(crate) async fn instance(&self, namespace: &str, id: &str) -> ServiceInstance {
        self.instances(namespace)
            .get(&names::instance(id))
            .await
            .unwrap()
    }

    /// The version of everything: it grows with any write.
    pub(crate) async fn version(&self) -> String {
        let api: Api<ServiceInstance> = Api::all(self.users.clone());
        let list = api.list(&ListParams::default()).await.unwrap();
        list.metadata.resource_version.unwrap()
    }

    /// Ends the operation that was asked last, as the controller would.
    pub(crate) async fn end_instance(&self, namespace: &str, id: &str, state: &str) {
        let instance = self.instance(namespace, id).await;
        let asked = instance.spec.operation.clone().unwrap();
        let now = Time(self.clock.now());
        let mut status = json!({"operation": {
            "id": asked.id, "kind": asked.kind, "state": state, "description": "by hand", "finishedAt": now,
        }});
        if state == "succeeded" {
            status["applied"] =
                json!({"planID": instance.spec.plan_id, "parameters": instance.spec.parameters});
        }
        patch_status(&self.instances(namespace), &instance.name_any(), status).await;
    }

    /// Makes the credentials and ends the operation.
    pub(crate) async fn end_binding(&self, namespace: &str, id: &str, state: &str) {
        let api = self.bindings(namespace);
        let binding = api.get(&names::binding(id)).await.unwrap();
        let asked = binding.spec.operation.clone().unwrap();
        let text = json!({"GATEWAY_URL": format!("http://{id}")}).to_string();
        let mut secret = Secret {
            data: Some(BTreeMap::from([(
                "credentials".to_owned(),
                ByteString(text.into_bytes()),
            )])),
            ..Secret::default()
        };
        secret.metadata.name = Some(binding.name_any());
        let secrets: Api<Secret> = Api::namespaced(self.users.clone(), namespace);
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
        let status = json!({
            "operation": {"id": asked.id, "kind": asked.kind, "state": state, "finishedAt": Time(self.clock.now())},
            "secretRef": {"name": binding.name_any()},
        });
        patch_status(&api, &binding.name_any(), status).await;
    }

    /// Removes the Secret with a binding's credentials.
    pub(crate) async fn drop_secret(&self, namespace: &str, id: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.users.clone(), namespace);
        let name = names::binding(id);
        secrets
            .delete(&name, &kube::api::DeleteParams::default())
            .await
            .unwrap();
    }

    /// Finishes a removal: a record first, then the object.
    pub(crate) async fn finish_removal(&self, namespace: &str, id: &str) {
        let instance = self.instance(namespace, id).await;
        let asked = instance.spec.operation.clone().unwrap();
        let progress = json!({"id": asked.id, "kind": asked.kind, "state": "succeeded", "description": "all gone"});
        self.keep(&Record {
            about: About::Instance(id.to_owned()),
            namespace: namespace.to_owned(),
            front: instance.annotations().get(OSB_FRONT_ANNOTATION).cloned(),
            operation: serde_json::from_value(progress).unwrap(),
            gone_at: Time(self.clock.now()),
        })
        .await;
        self.drop_object(&self.instances(namespace), &instance.name_any())
            .await;
    }

    pub(crate) async fn finish_unbinding(&self, namespace: &str, id: &str) {
        self.drop_object(&self.bindings(namespace), &names::binding(id))
            .await;
    }

    async fn keep(&self, record: &Record) {
        let api: Api<ConfigMap> = Api::namespaced(self.users.clone(), "heddle-system");
        api.create(&PostParams::default(), &record.to_config_map())
            .await
            .unwrap();
    }

    async fn drop_object<K>(&self, api: &Api<K>, name: &str)
    where
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        api.delete(name, &kube::api::DeleteParams::default())
            .await
            .unwrap();
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        api.patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

pub(crate) async fn patch_status<K>(api: &Api<K>, name: &str, status: Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// A request with credentials and the newest version.
pub(crate) fn request(method: Method, path: &str, body: Option<Value>) -> Request<Full<Bytes>> {
    let bytes = body
        .map(|body| Bytes::from(body.to_string()))
        .unwrap_or_default();
    Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", BASIC)
        .header("x-broker-api-version", "2.17")
        .header("content-type", "application/json")
        .body(Full::new(bytes))
        .unwrap()
}

pub(crate) async fn ask(front: &Front, request: Request<Full<Bytes>>) -> Reply {
    let response = front.handle(request).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let body = if parts.status == StatusCode::NOT_MODIFIED {
        Value::Null
    } else {
        assert_eq!(parts.headers["content-type"], "application/json");
        match parts.headers.get("content-encoding") {
            Some(coding) if coding == "gzip" => {
                serde_json::from_reader(flate2::read::GzDecoder::new(&bytes[..])).unwrap()
            }
            coding => {
                assert_eq!(coding, None);
                serde_json::from_slice(&bytes).unwrap()
            }
        }
    };
    if parts.status != StatusCode::NOT_MODIFIED {
        assert!(body.is_object(), "every body is an object: {body}");
    }
    if parts.status.as_u16() >= 400 {
        for member in ["error", "description"] {
            assert!(
                body[member].as_str().is_some_and(|text| !text.is_empty()),
                "{body}"
            );
        }
    }
    Reply {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
    }
}
