//! The life of a binding.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::world::{IDS, Reply, World, tell, wanted};

const I: &str = "/v2/service_instances/i";
const ASYNC: &str = "accepts_incomplete=true";

async fn ready(world: &World, plan: &str) {
    world
        .put(&format!("{I}?{ASYNC}"), wanted(plan, json!({})))
        .await;
    world.end_instance("default", "i", "succeeded").await;
}

async fn bind(world: &World, id: &str, body: Value) -> Reply {
    world
        .put(&format!("{I}/service_bindings/{id}?{ASYNC}"), body)
        .await
}

fn body() -> Value {
    json!({"service_id": "svc", "plan_id": "patient", "bind_resource": {"app_guid": "a"}})
}

#[test]
fn a_binding_is_made_fetched_and_removed() {
    tell(|world| async move {
        let path = format!("{I}/service_bindings/b");
        assert_eq!(
            bind(&world, "b", body()).await.status,
            404,
            "there is no instance"
        );
        world
            .put(&format!("{I}?{ASYNC}"), wanted("patient", json!({})))
            .await;
        assert_eq!(
            bind(&world, "b", body()).await.body["error"],
            "ConcurrencyError"
        );
        world.end_instance("default", "i", "succeeded").await;
        let made = bind(&world, "b", body()).await;
        assert_eq!(made.status, 202);
        assert_eq!(made.body.get("credentials"), None);
        assert_eq!(
            bind(&world, "b", body()).await.operation(),
            made.operation()
        );
        assert_eq!(world.get(&path).await.status, 404);
        assert_eq!(
            world.get(&format!("{path}/last_operation")).await.body["state"],
            "in progress"
        );
        world.end_binding("default", "b", "succeeded").await;
        assert_eq!(
            world.get(&format!("{path}/last_operation")).await.body["state"],
            "succeeded"
        );
        let credentials = json!({"credentials": {"GATEWAY_URL": "http://b"}});
        assert_eq!(world.get(&path).await.body, credentials);
        let again = bind(&world, "b", body()).await;
        assert_eq!((again.status, again.body), (200, credentials));
        let mut other = body();
        other["plan_id"] = json!("prompt");
        assert_eq!(bind(&world, "b", other).await.status, 409);

        let removal = world.delete(&format!("{path}?{IDS}")).await;
        assert_eq!(removal.status, 202);
        assert_eq!(
            world.delete(&format!("{path}?{IDS}")).await.operation(),
            removal.operation()
        );
        assert_eq!(
            bind(&world, "b", body()).await.body["error"],
            "ConcurrencyError"
        );
        world.finish_unbinding("default", "b").await;
        assert_eq!(world.delete(&format!("{path}?{IDS}")).await.status, 410);
        assert_eq!(world.get(&path).await.status, 404);
    });
}

#[test]
fn a_binding_outlives_its_instance_long_enough_to_be_removed() {
    tell(|world| async move {
        ready(&world, "patient").await;
        bind(&world, "b", body()).await;
        world.end_binding("default", "b", "succeeded").await;
        world.delete(&format!("{I}?{IDS}")).await;
        world.finish_removal("default", "i").await;
        let removal = world.delete(&format!("{I}/service_bindings/b?{IDS}")).await;
        assert_eq!(removal.status, 202);
        let of_another = world
            .delete(&format!("/v2/service_instances/j/service_bindings/b?{IDS}"))
            .await;
        assert_eq!(
            of_another.status, 410,
            "it is a binding of another instance"
        );
    });
}

#[test]
fn a_prompt_binding_is_answered_with_its_credentials() {
    tell(|world| async move {
        ready(&world, "prompt").await;
        let body = json!({"service_id": "svc", "plan_id": "prompt"});
        let path = format!("{I}/service_bindings/b");
        let (made, ()) = tokio::join!(world.put(&path, body), async {
            world.clock.sleep(Duration::from_secs(1)).await;
            world.end_binding("default", "b", "succeeded").await;
        });
        assert_eq!(
            (made.status, made.body),
            (201, json!({"credentials": {"GATEWAY_URL": "http://b"}}))
        );
    });
}

#[test]
fn a_rotation_makes_a_second_binding_beside_the_first() {
    tell(|world| async move {
        ready(&world, "patient").await;
        bind(&world, "a", body()).await;
        let rotation = json!({"predecessor_binding_id": "a"});
        assert_eq!(
            bind(&world, "b", rotation.clone()).await.status,
            400,
            "the first is not made yet"
        );
        world.end_binding("default", "a", "succeeded").await;
        assert_eq!(bind(&world, "b", rotation.clone()).await.status, 202);
        assert_eq!(bind(&world, "b", rotation.clone()).await.status, 202);
        world.end_binding("default", "b", "succeeded").await;
        assert_eq!(
            bind(&world, "b", rotation).await.body["credentials"]["GATEWAY_URL"],
            "http://b"
        );
        let binding = world.bindings("default").get("b").await.unwrap();
        assert_eq!(binding.spec.bind_resource["app_guid"], json!("a"));
        let first = world.get(&format!("{I}/service_bindings/a")).await;
        assert_eq!(first.body["credentials"]["GATEWAY_URL"], "http://a");
    });
}

#[test]
fn many_bindings_of_one_instance_are_made_at_once() {
    tell(|world| async move {
        ready(&world, "patient").await;
        let ids: Vec<String> = (0..50).map(|n| format!("b{n}")).collect();
        let replies = join_all(ids.iter().map(|id| bind(&world, id, body()))).await;
        assert!(replies.iter().all(|reply| reply.status == 202));
        let list = world
            .bindings("default")
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        assert_eq!(list.items.len(), 50);
    });
}
