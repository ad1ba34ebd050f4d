//! Several teams in one mesh: whoever has a role in one namespace is told of what is theirs, and of nothing else.

use heddle_api::access::{Access, Role};
use heddle_api::ledger::Explanation;
use heddle_api::search::EventQuery;
use serde_json::{Value, json};

use crate::dead_letters::{ada, ask};
use crate::world::{Manner, World};

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
    assert_eq!(
        (status, own["terms"].as_array().map(Vec::len)),
        (200, Some(1))
    );
    let gone = explain(&world, viewer(), json!({"offset": 4711})).await;
    for (offset, what) in [
        (2, "of another namespace"),
        (3, "does not reach the broker"),
    ] {
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

/// Which events somebody is shown, the newest first.
async fn shown(world: &World, access: &Access) -> Vec<String> {
    let (status, page) = ask(world, Some(access.clone()), "/events", None).await;
    assert_eq!(status, 200, "{page}");
    let items = page["items"].as_array().unwrap().iter();
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    items.map(id).collect()
}

/// The link from the shop to a namespace is removed.
fn unlink(world: &mut World, namespace: &str) {
    let name = heddle_api::names::link_to("shop", namespace, "default");
    let is_it = |metadata: &kube::core::ObjectMeta| metadata.name.as_deref() == Some(&*name);
    let links = &mut world.resources.subscriptions;
    links.retain(|link| !is_it(&link.metadata));
}

#[tokio::test(start_paused = true)]
async fn an_event_is_shown_to_those_whom_it_could_reach_when_it_came() {
    let mut world = shop().await;
    world.linked("shop", "team-b");
    trigger(&mut world, "team-b", "theirs", json!({}));
    world.broker("team-a", "default");
    trigger(&mut world, "team-a", "mine", json!({}));
    world.route().await;
    publish(&world, SHOP, &["before"]).await;
    world.linked("shop", "team-a");
    world.route().await;
    publish(&world, SHOP, &["while"]).await;
    let reader = ada(Role::Viewer, &["team-a"], true);
    let query = EventQuery::parse("", world.clock.now()).unwrap();
    let visible = world.mesh.visible_to(&reader);
    let mut tail = world.mesh.tail(query, visible, "ada", None).unwrap();
    publish(&world, SHOP, &["watched"]).await;
    let step = tail.step().await.unwrap();
    assert_eq!(step.items.len(), 1);
    unlink(&mut world, "team-a");
    world.route().await;
    publish(&world, SHOP, &["after"]).await;
    for _ in 0..10 {
        assert!(
            tail.step().await.unwrap().items.is_empty(),
            "it was unlinked"
        );
    }
    assert_eq!(shown(&world, &reader).await, ["watched", "while"]);
    for (offset, id, status) in [(1, "before", 404), (2, "while", 200), (4, "after", 404)] {
        for path in [
            format!("/events/{offset}"),
            format!("/events/{offset}/data"),
        ] {
            let found = ask(&world, Some(reader.clone()), &path, None).await.0;
            assert_eq!(found, status, "{path}");
        }
        let (_, trace) = ask(
            &world,
            Some(reader.clone()),
            &format!("/trace?id={id}"),
            None,
        )
        .await;
        let traced = trace["events"].as_array().unwrap().len();
        assert_eq!(traced, usize::from(status == 200), "{id}");
        let tried = explain(&world, reader.clone(), json!({"offset": offset}))
            .await
            .0;
        assert_eq!(tried, 404, "nothing reaches the broker any more");
    }
    // A filter that is tried again while the link is there is tried on no more than that.
    world.linked("shop", "team-a");
    world.route().await;
    let (_, tried) = explain(&world, reader.clone(), json!({"last": 100})).await;
    assert_eq!(tried["examined"], 2, "{tried}");
    let all = ada(Role::Viewer, &[], false);
    assert_eq!(
        shown(&world, &all).await,
        ["after", "watched", "while", "before"]
    );
    let (_, tried) = explain(&world, all, json!({"last": 100})).await;
    assert_eq!(tried["examined"], 4, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_tried_on_nothing_that_came_before_the_link() {
    let mut world = shop().await;
    world.linked("shop", "team-b");
    trigger(&mut world, "team-b", "theirs", json!({}));
    world.broker("team-a", "default");
    trigger(&mut world, "team-a", "mine", json!({}));
    world.route().await;
    publish(&world, SHOP, &["earlier", "secret"]).await;
    publish(&world, "/broker/team-b/default", &["elsewhere"]).await;
    let linked_from = world.clock.now();
    world.linked("shop", "team-a");
    world.route().await;
    publish(&world, SHOP, &["while"]).await;
    let gone = json!({"delete": [{"kind": "Trigger", "namespace": "team-a", "name": "mine"}]});
    let (status, told) = ask(
        &world,
        Some(ada(Role::Operator, &["team-a"], false)),
        "/what-if",
        Some(gone.clone()),
    )
    .await;
    assert_eq!(status, 200, "{told}");
    let consumers = &told["consumers"];
    assert_eq!(
        (&told["examined"], &consumers[0]["lost"]),
        (&json!(1), &json!(1)),
        "{told}"
    );
    assert_eq!(told["from"], told["to"], "{told}");
    let from: jiff::Timestamp = told["from"].as_str().unwrap().parse().unwrap();
    assert!(from >= linked_from, "{told}");
    for hidden in ["earlier", "secret", "elsewhere", "team-b"] {
        assert!(
            !told.to_string().contains(&format!("\"{hidden}")),
            "{hidden}: {told}"
        );
    }
    let all = ada(Role::Operator, &[], false);
    let (_, told) = ask(&world, Some(all), "/what-if", Some(gone)).await;
    assert_eq!(told["examined"], 4, "{told}");
    assert_eq!(told["consumers"][0]["lost"], 3, "{told}");
}

/// Letters of a trigger whose subscriber refuses everything with this status, and the word `no`.
async fn refused(world: &mut World, namespace: &str, name: &str, status: u16, ids: &[&str]) {
    world.broker(namespace, "default");
    trigger(
        world,
        namespace,
        name,
        json!({"spec": {"delivery": {"retry": 0}}}),
    );
    world.manner(name, Manner::Answer(status));
    world.route().await;
    publish(world, &format!("/broker/{namespace}/default"), ids).await;
    let key = format!("trigger/{namespace}/{name}");
    let count = ids.len() as u64;
    let is_it = |world: &World| {
        let accounts = world.mesh.accounts(true).consumers;
        accounts
            .iter()
            .any(|one| one.consumer == key && one.dead_lettered == count)
    };
    world.until("dead letters", is_it).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_subscriber_said_is_for_those_who_may_read_data() {
    let mut world = World::in_memory().await;
    refused(&mut world, "team-a", "mine", 422, &["a1", "a2"]).await;
    let groups = async |payloads, by| {
        let access = Some(ada(Role::Viewer, &["team-a"], payloads));
        let path = format!("/dead-letters/groups?by={by}");
        let (status, body) = ask(&world, access, &path, None).await;
        assert_eq!((status, &body["total"]), (200, &json!(2)), "{body}");
        let group = &body["groups"][0];
        (group["key"].clone(), group["reason"].clone())
    };
    for by in ["cause", "type", "application"] {
        let (key, quoted) = groups(true, by).await;
        assert_eq!(quoted, "no", "{by}");
        assert_eq!(
            groups(false, by).await,
            (key, json!("the subscriber answered 422"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_trace_tells_of_dead_letters_and_losses_of_ones_own() {
    let mut world = World::in_memory().await;
    crate::ledger::keep_nothing(&mut world).await;
    refused(&mut world, "team-a", "mine", 500, &["same"]).await;
    refused(&mut world, "team-b", "theirs", 500, &["same", "secret-id"]).await;
    // Retention lets the events go; their dead letters stay.
    world.manner("theirs", Manner::Accept);
    for round in 1..=6 {
        let ids: Vec<String> = (0..60).map(|number| format!("{round}-{number}")).collect();
        let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
        publish(&world, "/broker/team-b/default", &ids).await;
        world.pass(60).await;
        world.mesh.tidy().await;
    }
    let losses = async |access: Access, query: &str| {
        let (_, trace) = ask(&world, Some(access), &format!("/trace?{query}"), None).await;
        assert_eq!(trace["events"], json!([]), "{trace}");
        trace["losses"].to_string()
    };
    for query in ["id=same", "id=same&source=/test"] {
        let all = losses(ada(Role::Viewer, &[], false), query).await;
        assert!(all.contains("dead-letters show 1 2"), "{all}");
        let own = losses(viewer(), query).await;
        assert!(own.contains("dead-letters show 1`"), "{own}");
    }
    assert_eq!(losses(viewer(), "id=secret-id").await, "null");
}

/// Somebody else's events with the same id are no reason not to find one's own.
#[tokio::test(start_paused = true)]
async fn neighbours_with_the_same_id_hide_nothing() {
    let mut world = World::in_memory().await;
    for namespace in ["team-a", "team-b"] {
        world.broker(namespace, "default");
    }
    world.route().await;
    let many = ["same"; 150];
    publish(&world, "/broker/team-b/default", &many).await;
    publish(&world, "/broker/team-a/default", &["same"]).await;
    publish(&world, "/broker/team-b/default", &many).await;
    for query in ["id=same", "id=same&source=/test"] {
        let path = format!("/trace?{query}");
        let (_, trace) = ask(&world, Some(viewer()), &path, None).await;
        assert_eq!(trace["events"][0]["offset"], 151, "{trace}");
        assert_eq!(trace["events"].as_array().map(Vec::len), Some(1));
        assert_eq!(trace["older"], Value::Null);
        // Whoever sees everything goes through all of them, page by page.
        let (mut seen, mut before) = (0, u64::MAX);
        loop {
            let path = format!("{path}&before={before}");
            let (_, trace) = ask(&world, None, &path, None).await;
            seen += trace["events"].as_array().unwrap().len();
            match trace["older"].as_u64() {
                Some(older) => before = older,
                None => break,
            }
        }
        assert_eq!(seen, 301, "{query}");
    }
}

/// The numbers in a body, wherever.
fn numbers(body: &Value) -> Vec<f64> {
    match body {
        Value::Number(number) => number.as_f64().into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Object(fields) => fields.values().flat_map(numbers).collect(),
        _ => Vec::new(),
    }
}

/// Every question there is, as somebody may ask it who knows the names of what others have.
fn all_questions() -> Vec<(&'static str, Option<Value>)> {
    let gets = [
        "/trace?id=secret-1",
        "/trace?id=secret-1&source=/test",
        "/trace?id=secret-1&before=100",
        "/dead-letters",
        "/dead-letters?id=secret-1&consumer=trigger/team-b/theirs",
        "/dead-letters/groups?by=cause",
        "/dead-letters/groups?by=type",
        "/dead-letters/groups?by=application",
        "/dead-letters/operations",
        "/dead-letters/operations/1",
        "/dead-letters/1",
        "/accounts",
        "/accounts?depth=tallied",
        "/accounts?verify=true",
        "/events",
        "/events?q=secret-1",
        "/events?q=1",
        "/events?q=place:1",
        "/events?q=data.a:1",
        "/events?q=text:secret",
        "/events?q=consumer:trigger/team-b/theirs",
        "/events?q=state:dead,waiting,delivered",
        "/events/1",
        "/events/1/data",
    ];
    let explain = |extra| ("/explain", Some(question(extra)));
    let posts = [
        ("/dead-letters/operations/1/stop", Some(json!({}))),
        ("/dead-letters/1/try", Some(json!({}))),
        (
            "/dead-letters/redrive",
            Some(json!({"all": true, "dryRun": true})),
        ),
        ("/dead-letters/redrive", Some(json!({"all": true}))),
        ("/dead-letters/discard", Some(json!({"names": ["1", "2"]}))),
        explain(json!({"last": 1000})),
        explain(json!({"offset": 1})),
        explain(json!({"against": "trigger/team-b/theirs", "last": 10})),
    ];
    gets.map(|path| (path, None))
        .into_iter()
        .chain(posts)
        .collect()
}

/// Of what others have nothing is told to anybody with a role elsewhere: no name, no id, no text, and no number either.
#[tokio::test(start_paused = true)]
async fn whoever_has_nothing_is_told_of_nothing() {
    let mut world = shop().await;
    world.linked("shop", "team-b");
    world.broker("team-a", "default");
    let ids: Vec<String> = (0..40).map(|number| format!("secret-{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
    refused(&mut world, "team-b", "theirs", 500, &ids).await;
    let paused = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}});
    trigger(&mut world, "team-b", "paused", paused);
    world.route().await;
    publish(&world, SHOP, &ids[..20]).await;
    world.pass(10).await;
    let begun = json!({"consumer": "trigger/team-b/theirs", "detach": true});
    let (status, _) = ask(&world, None, "/dead-letters/redrive", Some(begun)).await;
    assert_eq!(status, 202);
    world.pass(10).await;
    let strangers = Role::ALL.map(|role| ada(role, &["team-a"], true));
    for stranger in strangers.into_iter().chain([viewer()]) {
        for (path, body) in all_questions() {
            let asked = format!("{:?} {path} {body:?}", stranger.role);
            let (status, answer) = ask(&world, Some(stranger.clone()), path, body).await;
            assert!(status < 500, "{asked}: {status}");
            // What whoever asks said is no news to them.
            let text = answer.to_string().replace("trigger/team-b/theirs", "");
            for theirs in [
                "team-b", "secret", "theirs", "paused", "shop", "/test", "order.",
            ] {
                assert!(!text.contains(theirs), "{asked} tells {theirs}: {text}");
            }
            let told = numbers(&answer).into_iter().find(|number| *number != 0.0);
            assert_eq!(told, None, "{asked}: {text}");
        }
        for accept in ["application/jsonl", "application/cloudevents-batch+json"] {
            let (status, text) = crate::search::ask(&world, &stranger, "/events", accept).await;
            let has_digits = text.contains(|char: char| ('1'..='9').contains(&char));
            assert!(status == 403 || !has_digits, "{accept}: {text}");
        }
    }
    let query = EventQuery::parse("", world.clock.now()).unwrap();
    let visible = world.mesh.visible_to(&viewer());
    let mut tail = world.mesh.tail(query, visible, "ada", None).unwrap();
    publish(&world, SHOP, &ids[20..]).await;
    for _ in 0..5 {
        let step = tail.step().await.unwrap();
        assert_eq!(
            (step.items.len(), step.rate.unwrap_or_default().accepted),
            (0, 0)
        );
    }
}
