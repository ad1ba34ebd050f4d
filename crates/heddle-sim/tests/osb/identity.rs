//! Which instance, which binding, which operation, which numbers a request is about.

use http::Method;
use serde_json::{Value, json};

use crate::world::{IDS, World, ask, request, tell, wanted};

const ASYNC: &str = "accepts_incomplete=true";
const ALL: &str = "/v2/service_instances/i";
const TEAM: &str = "/osb/team-a/v2/service_instances/i";

async fn put(world: &World, path: &str, body: Value) -> u16 {
    world.put(&format!("{path}?{ASYNC}"), body).await.status
}

#[test]
fn two_fronts_never_act_on_each_others_instance_of_the_same_id() {
    tell(|world| async move {
        let plain = || wanted("patient", json!({}));
        assert_eq!(put(&world, TEAM, plain()).await, 202);
        world.end_instance("team-a", "i", "succeeded").await;
        let version = world.version().await;
        // The front of all knows nothing of it, whatever it is asked.
        assert_eq!(world.get(ALL).await.status, 404);
        let poll = world.get(&format!("{ALL}/last_operation")).await;
        assert_eq!(poll.status, 404);
        let gone = world.delete(&format!("{ALL}?{IDS}")).await;
        assert_eq!(gone.status, 410);
        let change = json!({"service_id": "svc", "parameters": {"size": 2}});
        let patch = world
            .ask(Method::PATCH, &format!("{ALL}?{ASYNC}"), Some(change))
            .await;
        assert_eq!(patch.status, 404);
        let bound = json!({"service_id": "svc", "plan_id": "patient"});
        let path = format!("{ALL}/service_bindings/b");
        assert_eq!(put(&world, &path, bound.clone()).await, 404);
        assert_eq!(world.version().await, version, "nothing was written");
        // In the same namespace there is room for one of that id; elsewhere it is another's.
        let mut there = plain();
        there["context"] = json!({"namespace": "team-a"});
        let taken = world.put(&format!("{ALL}?{ASYNC}"), there).await;
        assert_eq!(
            (taken.status, &taken.body["error"]),
            (409, &json!("Conflict"))
        );
        assert_eq!(put(&world, ALL, plain()).await, 202);
        world.end_instance("default", "i", "succeeded").await;

        // Each removes its own, and hears of its own.
        let removal = world.delete(&format!("{ALL}?{IDS}")).await;
        assert_eq!(removal.status, 202);
        world.finish_removal("default", "i").await;
        assert_eq!(world.get(ALL).await.status, 404);
        assert_eq!(world.get(TEAM).await.status, 200, "it is still there");
        let poll = world.get(&format!("{TEAM}/last_operation")).await;
        assert_eq!(poll.body["state"], "succeeded");
        world.delete(&format!("{TEAM}?{IDS}")).await;
        world.finish_removal("team-a", "i").await;
        let poll = world.get(&format!("{ALL}/last_operation")).await;
        assert_eq!(poll.body["state"], "succeeded", "of its own removal");
    });
}

#[test]
fn bindings_of_another_front_are_unknown() {
    tell(|world| async move {
        put(&world, TEAM, wanted("patient", json!({}))).await;
        world.end_instance("team-a", "i", "succeeded").await;
        let body = json!({"service_id": "svc", "plan_id": "patient"});
        let own = format!("{TEAM}/service_bindings/b");
        assert_eq!(put(&world, &own, body).await, 202);
        world.end_binding("team-a", "b", "succeeded").await;
        let other = format!("{ALL}/service_bindings/b");
        assert_eq!(world.get(&other).await.status, 404);
        let poll = world.get(&format!("{other}/last_operation")).await;
        assert_eq!(poll.status, 404);
        assert_eq!(world.delete(&format!("{other}?{IDS}")).await.status, 410);
        assert_eq!(world.get(&own).await.status, 200);
    });
}

#[test]
fn what_was_removed_at_one_front_was_never_known_at_the_other() {
    for (own, namespace, other) in [(TEAM, "team-a", ALL), (ALL, "default", TEAM)] {
        tell(|world| async move {
            put(&world, own, wanted("patient", json!({}))).await;
            world.end_instance(namespace, "i", "succeeded").await;
            world.delete(&format!("{own}?{IDS}")).await;
            world.finish_removal(namespace, "i").await;
            let poll = world.get(&format!("{own}/last_operation")).await;
            assert_eq!(poll.body["state"], "succeeded", "{own}: {poll:?}");
            let poll = world.get(&format!("{other}/last_operation")).await;
            assert_eq!(poll.status, 404, "{other}: {poll:?}");
        });
    }
}

#[test]
fn a_binding_id_belongs_to_one_instance() {
    tell(|world| async move {
        for (id, namespace) in [("i", "default"), ("j", "default"), ("k", "team-a")] {
            let mut body = wanted("patient", json!({}));
            body["context"] = json!({"namespace": namespace});
            assert_eq!(
                put(&world, &format!("/v2/service_instances/{id}"), body).await,
                202
            );
            world.end_instance(namespace, id, "succeeded").await;
        }
        let body = || json!({"service_id": "svc", "plan_id": "patient"});
        let path = |id: &str| format!("/v2/service_instances/{id}/service_bindings/b");
        assert_eq!(put(&world, &path("i"), body()).await, 202);
        for other in ["j", "k"] {
            assert_eq!(put(&world, &path(other), body()).await, 409, "{other}");
        }
        assert_eq!(
            put(&world, &path("i"), body()).await,
            202,
            "its own goes on"
        );
    });
}

#[test]
fn an_operation_that_is_named_is_the_one_that_is_told_about() {
    tell(|world| async move {
        let path = format!("{TEAM}?{ASYNC}");
        let poll = async |operation: &str| {
            let asked = format!("{TEAM}/last_operation?operation={operation}");
            world.get(&asked).await.body["state"].clone()
        };
        let made = world
            .put(&path, wanted("patient", json!({"size": 1})))
            .await;
        world.end_instance("team-a", "i", "succeeded").await;
        let change = json!({"service_id": "svc", "parameters": {"size": 2}});
        let changed = world.ask(Method::PATCH, &path, Some(change)).await;
        assert_eq!(poll(made.operation()).await, "succeeded");
        assert_eq!(poll(changed.operation()).await, "in progress");
        assert_eq!(poll("unheard-of").await, "in progress", "the last one");
        world.end_instance("team-a", "i", "failed").await;
        let change = json!({"service_id": "svc", "parameters": {"size": 3}});
        let again = world.ask(Method::PATCH, &path, Some(change)).await;
        assert_eq!(poll(changed.operation()).await, "failed");
        assert_eq!(poll(made.operation()).await, "succeeded");
        assert_eq!(poll(again.operation()).await, "in progress");
    });
}

#[test]
fn making_that_is_called_off_has_failed_while_the_removal_goes_on() {
    tell(|world| async move {
        let path = format!("{TEAM}?{ASYNC}");
        let made = world.put(&path, wanted("patient", json!({}))).await;
        let removal = world.delete(&format!("{TEAM}?{IDS}")).await;
        for (operation, state) in [
            (made.operation(), "failed"),
            (removal.operation(), "in progress"),
        ] {
            let asked = format!("{TEAM}/last_operation?operation={operation}");
            assert_eq!(world.get(&asked).await.body["state"], state, "{operation}");
        }
    });
}

#[test]
fn an_operation_that_had_begun_and_is_called_off_has_failed() {
    tell(|world| async move {
        let made = world
            .put(&format!("{TEAM}?{ASYNC}"), wanted("patient", json!({})))
            .await;
        world.end_instance("team-a", "i", "inProgress").await;
        world.delete(&format!("{TEAM}?{IDS}")).await;
        let asked = format!("{TEAM}/last_operation?operation={}", made.operation());
        let poll = world.get(&asked).await;
        assert_eq!(poll.body["state"], "failed", "{poll:?}");
    });
}

#[test]
fn only_so_many_operations_are_remembered() {
    tell(|world| async move {
        let path = format!("{TEAM}?{ASYNC}");
        world
            .put(&path, wanted("patient", json!({"size": 0})))
            .await;
        for size in 1..20 {
            world.end_instance("team-a", "i", "succeeded").await;
            let change = json!({"service_id": "svc", "parameters": {"size": size}});
            let reply = world.ask(Method::PATCH, &path, Some(change)).await;
            assert_eq!(reply.status, 202, "{reply:?}");
        }
        let instance = world.instance("team-a", "i").await;
        let kept = instance.spec.earlier_operations.len();
        assert_eq!(kept, heddle_api::operation::EARLIER_OPERATIONS_MAX);
    });
}

/// A `PUT` whose parameters have this number, as it is written.
async fn put_number(world: &World, path: &str, body: &Value, number: &str) -> u16 {
    let text = body.to_string().replace("\"NUMBER\"", number);
    let mut sent = request(Method::PUT, &format!("{path}?{ASYNC}"), None);
    *sent.body_mut() = text.into_bytes().into();
    ask(&world.front, sent).await.status
}

#[test]
fn numbers_are_compared_to_the_last_digit() {
    tell(|world| async move {
        let body = wanted("patient", json!({"n": "NUMBER"}));
        let put = async |number: &str| put_number(&world, TEAM, &body, number).await;
        assert_eq!(put("18446744073709551617").await, 202);
        assert_eq!(put("18446744073709551617").await, 202, "a repeat");
        assert_eq!(
            put("1.8446744073709551617e19").await,
            202,
            "spelled otherwise"
        );
        for other in ["18446744073709551616", "18446744073709552000"] {
            assert_eq!(put(other).await, 409, "{other}");
        }
        world.end_instance("team-a", "i", "succeeded").await;
        assert_eq!(put("18446744073709551617").await, 200);
        assert_eq!(put("18446744073709551618").await, 409);

        let bind = format!("{TEAM}/service_bindings/b");
        let body =
            json!({"service_id": "svc", "plan_id": "patient", "parameters": {"n": "NUMBER"}});
        let put = async |number: &str| put_number(&world, &bind, &body, number).await;
        assert_eq!(put("18446744073709551617").await, 202);
        assert_eq!(put("18446744073709551617").await, 202);
        assert_eq!(put("18446744073709551616").await, 409);
    });
}
