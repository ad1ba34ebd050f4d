//! Several teams in one mesh: whoever has a role in one namespace is told of what is theirs, and of nothing else.

use heddle_api::access::{Access, Role};
use heddle_api::ledger::Explanation;
use serde_json::{Value, json};

use crate::dead_letters::{ada, ask};
use crate::world::World;

/// Where events of the Application come in.
const SHOP: &str = "/channel/kyma-integration/shop";

/// A trigger in a namespace, whose subscriber is the host of the same name. `extra` is merged into the object.
fn trigger(world: &mut World, namespace: &str, name: &str, extra: Value) {
    let mut object = json!({"metadata": {"namespace": namespace}});
    crate::world::merge(&mut object, extra);
    world.trigger(name, name, object);
}

/// The Application `shop` and nothing bound to it.
async fn shop() -> World {
    let mut world = World::in_memory().await;
    world.application("shop");
    world
}

async fn publish(world: &World, path: &str, ids: &[&str]) {
    for id in ids {
        assert_eq!(world.publish_at(path, id, &[]).await, 202, "{path} {id}");
    }
}

fn viewer() -> Access {
    ada(Role::Viewer, &["team-a"], false)
}

fn question(extra: Value) -> Value {
    let mut question = json!({
        "entry": "broker/team-a/default", "last": 0, "filters": [{"exact": {"subject": "x"}}],
    });
    crate::world::merge(&mut question, extra);
    question
}

async fn explain(world: &World, access: Access, extra: Value) -> (u16, Value) {
    ask(world, Some(access), "/explain", Some(question(extra))).await
}

#[tokio::test(start_paused = true)]
async fn a_filter_is_tried_on_nothing_that_others_have() {
    let mut world = World::in_memory().await;
    world.broker("team-a", "default");
    world.broker("team-a", "quiet");
    world.broker("team-b", "default");
    trigger(&mut world, "team-a", "mine", json!({}));
    trigger(&mut world, "team-b", "theirs", json!({}));
    world.route().await;
    publish(&world, "/broker/team-a/default", &["a1"]).await;
    publish(&world, "/broker/team-b/default", &["secret-id"]).await;
    publish(&world, "/broker/team-a/quiet", &["a3"]).await;
    let (status, own) = explain(&world, viewer(), json!({"offset": 1})).await;
    assert_eq!((status, own["terms"].as_array().map(Vec::len)), (200, Some(1)));
    let gone = explain(&world, viewer(), json!({"offset": 4711})).await;
    for (offset, what) in [(2, "of another namespace"), (3, "does not reach the broker")] {
        let (status, body) = explain(&world, viewer(), json!({"offset": offset})).await;
        let mut expected = gone.1.to_string();
        expected = expected.replace("4711", &offset.to_string());
        assert_eq!((status, body.to_string()), (404, expected), "{what}");
    }
    let against = |key: &str| json!({"against": key, "last": 10});
    let (status, own) = explain(&world, viewer(), against("trigger/team-a/mine")).await;
    assert_eq!((status, &own["difference"]["lost"]), (200, &json!(1)));
    let (status, theirs) = explain(&world, viewer(), against("trigger/team-b/theirs")).await;
    let (_, nobodys) = explain(&world, viewer(), against("trigger/team-b/nobody")).await;
    let nobodys = nobodys.to_string().replace("nobody", "theirs");
    assert_eq!((status, theirs.to_string()), (404, nobodys));
    // Whoever looks everywhere may ask about any event, by any filter in force.
    let all = json!({"offset": 2, "against": "trigger/team-b/theirs", "last": 10});
    let (status, answer) = explain(&world, ada(Role::Viewer, &[], false), all).await;
    let answer: Explanation = serde_json::from_value(answer).unwrap();
    assert_eq!((status, answer.examined, answer.terms.len()), (200, 1, 1));
}
