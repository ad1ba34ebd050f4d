//! The server through a real client, with no socket: the shortest walk over every verb.

#![expect(clippy::unwrap_used, reason = "a test says what failed by failing")]

use std::sync::Arc;

use futures::StreamExt as _;
use heddle_apiserver::{
    ADMINS, ApiServer, CONTROLLERS, Identity, Limits, Options, Registry, Tokens,
};
use heddle_rt::{Chance, Clock, MemoryVfs};
use heddle_store::{Mode, Store};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, ResourceExt as _};
use serde_json::json;

async fn server() -> ApiServer {
    let clock = Clock::system();
    let registry = Registry::heddle().unwrap();
    let mut options = heddle_store::Options::new(MemoryVfs::new().shared(), "store", clock.clone());
    options.mode = Mode::Inline;
    let store = Store::open(options).unwrap();
    let options = Options {
        store,
        clock,
        chance: Chance::seeded(1),
        registry: Arc::new(registry),
        namespaces: vec!["default", "team-a"],
        tokens: Tokens::default(),
        limits: Limits::default(),
    };
    ApiServer::open(options).await.unwrap()
}

fn client(server: &ApiServer) -> Client {
    Client::new(
        server.in_process(Identity::new("admin", &[ADMINS])),
        "default",
    )
}

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"key": value}})).unwrap()
}

#[tokio::test]
async fn an_object_is_created_read_changed_and_deleted() {
    let server = server().await;
    let api: Api<ConfigMap> = Api::namespaced(client(&server), "team-a");
    let created = api
        .create(&PostParams::default(), &map("a", "1"))
        .await
        .unwrap();
    assert!(created.uid().is_some() && created.resource_version().is_some());
    let again = api
        .create(&PostParams::default(), &map("a", "1"))
        .await
        .unwrap_err();
    assert!(again.to_string().contains("already exists"), "{again}");
    let patch = json!({"data": {"key": "2"}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"other": "3"}});
    api.patch("a", &PatchParams::apply("me"), &Patch::Apply(&applied))
        .await
        .unwrap();
    let listed = api.list(&ListParams::default()).await.unwrap();
    let data = listed.items[0].data.clone().unwrap();
    assert_eq!((data["key"].as_str(), data["other"].as_str()), ("2", "3"));
    let mut stale = created;
    stale.data = Some([("key".to_owned(), "9".to_owned())].into());
    let refused = api
        .replace("a", &PostParams::default(), &stale)
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("has been modified"),
        "{refused}"
    );
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_read_only_kind_is_written_by_the_controllers_alone() {
    let server = server().await;
    let object = json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "EventActivation",
        "metadata": {"name": "a"}, "spec": {"displayName": "a", "sourceId": "shop"},
    });
    let resource = ApiResource::erase::<heddle_api::EventActivation>(&());
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let user: Api<DynamicObject> = Api::namespaced_with(client(&server), "team-a", &resource);
    let refused = user
        .create(&PostParams::default(), &object)
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403 && status.message.contains("change the objects")),
        "{refused}"
    );
    let trusted = Client::new(
        server.in_process(Identity::new("heddle", &[CONTROLLERS])),
        "default",
    );
    let trusted: Api<DynamicObject> = Api::namespaced_with(trusted, "team-a", &resource);
    trusted
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    assert_eq!(
        user.list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
}

#[tokio::test]
async fn one_name_is_found_in_all_namespaces_or_in_one() {
    let client = client(&server().await);
    for (namespace, name) in [("default", "a"), ("team-a", "a"), ("team-a", "b")] {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        api.create(&PostParams::default(), &map(name, "1"))
            .await
            .unwrap();
    }
    let found = async |api: Api<ConfigMap>, fields: &str| {
        let listed = api.list(&ListParams::default().fields(fields)).await;
        let items = listed.unwrap().items;
        items
            .iter()
            .map(|map| format!("{}/{}", map.namespace().unwrap(), map.name_any()))
            .collect::<Vec<_>>()
    };
    let all = || Api::all(client.clone());
    assert_eq!(
        found(all(), "metadata.name=a").await,
        ["default/a", "team-a/a"]
    );
    assert_eq!(
        found(all(), "metadata.name=a,metadata.namespace!=default").await,
        ["team-a/a"]
    );
    assert_eq!(found(all(), "metadata.name!=a").await, ["team-a/b"]);
    assert!(
        found(all(), "metadata.name=a,metadata.name=b")
            .await
            .is_empty()
    );
    let one = Api::namespaced(client.clone(), "team-a");
    assert_eq!(found(one, "metadata.name=a").await, ["team-a/a"]);
}

#[tokio::test]
async fn the_lean_door_leaves_out_who_wrote_what_and_nothing_else() {
    let server = server().await;
    let identity = || Identity::new("admin", &[ADMINS]);
    let whole = Client::new(server.in_process(identity()), "default");
    let lean = Client::new(server.in_process(identity()).lean(), "default");
    let trigger: heddle_api::Trigger = serde_json::from_value(json!({
        "metadata": {"name": "t"},
        "spec": {"broker": "b", "subscriber": {"uri": "http://x.example/"}},
    }))
    .unwrap();
    let written = Api::<heddle_api::Trigger>::namespaced(lean.clone(), "team-a")
        .create(&PostParams::default(), &trigger)
        .await
        .unwrap();
    assert_eq!(written.metadata.managed_fields, None);
    let shown = async |client: &Client| {
        let api = Api::<heddle_api::Trigger>::namespaced(client.clone(), "team-a");
        let read = api.get("t").await.unwrap();
        let listed = api.list(&ListParams::default()).await.unwrap().items;
        let mut watch = std::pin::pin!(api.watch(&WatchParams::default(), "0").await.unwrap());
        let Some(Ok(WatchEvent::Added(watched))) = watch.next().await else {
            panic!("a watch from the beginning shows what is there");
        };
        [read, listed[0].clone(), watched]
    };
    let (full, slim) = (shown(&whole).await, shown(&lean).await);
    for (mut full, slim) in full.into_iter().zip(slim) {
        assert!(full.metadata.managed_fields.take().is_some());
        assert_eq!(
            serde_json::to_value(full).unwrap(),
            serde_json::to_value(slim).unwrap()
        );
    }
    // What does not know of the notes cannot take them away either.
    let mut changed = written;
    changed.spec.broker = "b".to_owned();
    changed
        .metadata
        .labels
        .get_or_insert_default()
        .insert("a".to_owned(), "b".to_owned());
    let api = Api::<heddle_api::Trigger>::namespaced(lean.clone(), "team-a");
    api.replace("t", &PostParams::default(), &changed)
        .await
        .unwrap();
    assert!(shown(&whole).await[0].metadata.managed_fields.is_some());
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(lean);
    namespaces
        .patch(
            "team-a",
            &PatchParams::default(),
            &Patch::Merge(&json!({"metadata": {"labels": {"a": "b"}}})),
        )
        .await
        .unwrap();
    let namespace = namespaces.get("team-a").await.unwrap();
    assert!(namespace.metadata.managed_fields.is_some());
}

#[tokio::test]
async fn a_replace_is_asked_for_its_name_then_its_object_then_its_version() {
    let server = server().await;
    let client = client(&server);
    let path = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers";
    let trigger = |name: &str| {
        json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": name},
            "spec": {"broker": "b", "subscriber": {"uri": "http://x.example/"}},
        })
    };
    let send = async |method: &str, path: &str, body: &serde_json::Value| {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).unwrap();
        client.request::<serde_json::Value>(request).await
    };
    let refused = async |path: &str, body: &serde_json::Value| match send("PUT", path, body).await {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("{other:?}"),
    };
    let named = refused(&format!("{path}/other"), &trigger("a")).await;
    assert_eq!(named.0, 400, "{named:?}");
    let missing = refused(&format!("{path}/a"), &trigger("a")).await;
    assert_eq!(missing.0, 404, "{missing:?}");
    send("POST", path, &trigger("a")).await.unwrap();
    let blind = refused(&format!("{path}/a"), &trigger("a")).await;
    assert_eq!(blind.0, 422, "{blind:?}");
    assert!(blind.1.contains("metadata.resourceVersion"), "{blind:?}");
}

#[tokio::test]
async fn a_patch_cannot_give_an_object_another_uid() {
    let server = server().await;
    let api: Api<ConfigMap> = Api::namespaced(client(&server), "team-a");
    api.create(&PostParams::default(), &map("a", "1"))
        .await
        .unwrap();
    let patch = Patch::Merge(json!({"metadata": {"uid": "another"}}));
    let refused = api
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap_err();
    let kube::Error::Api(status) = &refused else {
        panic!("{refused}")
    };
    assert_eq!(status.code, 422, "{status}");
    assert!(status.message.contains("metadata.uid"), "{status}");
}

#[tokio::test]
async fn an_apply_with_an_unknown_field_is_refused_even_if_only_warnings_are_asked_for() {
    let server = server().await;
    let api: Api<ConfigMap> = Api::namespaced(client(&server), "team-a");
    let patch = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "1"}, "colour": "red",
    });
    for validation in [None, Some(kube::api::ValidationDirective::Warn)] {
        let params = PatchParams {
            field_validation: validation,
            ..PatchParams::apply("test")
        };
        let refused = api.patch("a", &params, &Patch::Apply(&patch)).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("unknown field \"colour\""), "{refused}");
    }
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn only_a_dependent_whose_owners_are_known_to_be_gone_is_collected() {
    let server = server().await;
    let api: Api<ConfigMap> = Api::namespaced(client(&server), "team-a");
    let owned = |name: &str, api_version: &str, kind: &str| -> ConfigMap {
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": "x", "uid": "nobody"});
        serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": [owner]}}))
            .unwrap()
    };
    for object in [
        owned("kept", "example.com/v1", "Elsewhere"),
        owned("gone", "v1", "ConfigMap"),
    ] {
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let collected = async {
        while api.get_opt("gone").await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = collected => {}
        () = server.run_janitor() => unreachable!("the janitor runs for ever"),
    }
    assert!(api.get_opt("kept").await.unwrap().is_some());
}

/// Any kind, as a client without types sees it.
fn objects(server: &ApiServer, api_version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap();
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    Api::namespaced_with(client(server), "team-a", &resource)
}

fn dynamic(object: serde_json::Value) -> DynamicObject {
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn a_trigger_carries_the_label_of_its_broker_whatever_its_writer_says() {
    let server = server().await;
    let triggers = objects(&server, "eventing.knative.dev/v1", "Trigger", "triggers");
    let label = |trigger: &DynamicObject| trigger.labels()["eventing.knative.dev/broker"].clone();
    let trigger = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "orders"},
        "spec": {"broker": "default", "subscriber": {"uri": "http://127.0.0.1:1/"}},
    });
    let created = triggers
        .create(&PostParams::default(), &dynamic(trigger.clone()))
        .await
        .unwrap();
    assert_eq!(label(&created), "default");
    let without =
        json!({"metadata": {"labels": {"eventing.knative.dev/broker": null, "own": "1"}}});
    let patched = triggers
        .patch("orders", &PatchParams::default(), &Patch::Merge(without))
        .await
        .unwrap();
    assert_eq!(label(&patched), "default");
    assert_eq!(patched.labels()["own"], "1");
    let applied = triggers
        .patch(
            "orders",
            &PatchParams::apply("me").force(),
            &Patch::Apply(trigger),
        )
        .await
        .unwrap();
    assert_eq!(label(&applied), "default");
    let selected = ListParams::default().labels("eventing.knative.dev/broker=default");
    assert_eq!(triggers.list(&selected).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn what_nothing_is_required_of_may_be_left_out() {
    let server = server().await;
    let create = async |api_version: &str, kind: &str, plural: &str| {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "shop"}});
        objects(&server, api_version, kind, plural)
            .create(&PostParams::default(), &dynamic(object))
            .await
            .unwrap()
    };
    let group = "applicationconnector.kyma-project.io/v1alpha1";
    let mapping = create(group, "ApplicationMapping", "applicationmappings").await;
    // All services, which is not the same as none.
    assert_eq!(mapping.data["spec"], json!({}));
    let channel = create("messaging.knative.dev/v1", "Channel", "channels").await;
    let template = &channel.data["spec"]["channelTemplate"];
    assert_eq!(template["kind"], "InMemoryChannel");
    let broker = create("eventing.knative.dev/v1", "Broker", "brokers").await;
    assert_eq!(broker.data["spec"], json!({}));
}

#[tokio::test]
async fn kinds_of_clusters_are_empty_and_say_why_they_stay_so() {
    let server = server().await;
    let pods = objects(&server, "apps/v1", "Deployment", "deployments");
    let listed = pods.list(&ListParams::default()).await.unwrap();
    assert!(listed.items.is_empty());
    let pod = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}});
    let refused = pods.create(&PostParams::default(), &dynamic(pod)).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("deployments.apps are not kept here"),
        "{refused}"
    );
    let core: Api<k8s_openapi::api::core::v1::Service> = Api::all(client(&server));
    assert!(
        core.list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn subscriptions_of_an_old_mesh_are_kept_as_they_were() {
    let server = server().await;
    let api = objects(
        &server,
        "eventing.kyma-project.io/v1alpha1",
        "Subscription",
        "subscriptions",
    );
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut object = json!({
            "apiVersion": "eventing.kyma-project.io/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "shop", "finalizers": ["subscription.finalizers.kyma-project.io"]},
            "spec": {
                "endpoint": "http://lambda.team-a:8080/", "include_subscription_name_header": true,
                "event_type": "order.created", "event_type_version": "v1", "source_id": "ec-prod",
            },
        });
        change(&mut object["spec"]);
        dynamic(object)
    };
    let refused: [(&str, serde_json::Value); 8] = [
        ("endpoint", json!("ftp://x")),
        ("endpoint", json!(format!("http://{}", "x".repeat(506)))),
        ("event_type", json!("")),
        ("event_type", json!("order..created")),
        ("event_type_version", json!("v1234")),
        ("event_type_version", json!("v-1")),
        ("source_id", json!("")),
        ("source_id", json!("x".repeat(254))),
    ];
    for (field, value) in refused {
        let object = with(&|spec| spec[field] = value.clone());
        let refused = api.create(&PostParams::default(), &object).await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(&format!("spec.{field}")), "{text}");
    }
    let created = api.create(&PostParams::default(), &with(&|_| ())).await;
    let created = created.unwrap();
    assert_eq!(created.data["spec"], with(&|_| ()).data["spec"]);
    let status = json!({"status": {"conditions": [
        {"type": "is-ready", "status": "True", "last_transition_time": "2020-01-02T03:04:05Z"},
    ]}});
    let patched = api
        .patch_status("shop", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    assert_eq!(patched.data["status"], status["status"]);
    let legacy: heddle_api::LegacySubscription =
        serde_json::from_value(serde_json::to_value(&patched).unwrap()).unwrap();
    assert!(legacy.holds("is-ready") && !legacy.holds("events-activated"));
    let groups = client(&server).list_api_groups().await.unwrap().groups;
    let last = groups.last().map(|group| group.name.as_str());
    assert_eq!(
        last,
        Some("eventing.kyma-project.io"),
        "other subscriptions come first"
    );
}
