//! Why nothing arrived: what came, by which terms it missed, and the smallest change that would have let it pass.

use std::time::Duration;

use heddle_api::access::{Access, Role};
use heddle_api::silence::Silence;
use serde_json::{Value, json};

use crate::dead_letters::{ada, ask};
use crate::world::World;

async fn silence(world: &World, access: Access, query: &str) -> (u16, Value) {
    world.mesh.settled().await;
    ask(world, Some(access), &format!("/silence?{query}"), None).await
}

async fn of(world: &World, trigger: &str) -> Silence {
    let query = format!("consumer=trigger/ns/{trigger}&since=1h");
    let (status, found) = silence(world, Access::administrator("ada"), &query).await;
    assert_eq!(status, 200, "{found}");
    serde_json::from_value(found).unwrap()
}

/// Numbers that are the same each time.
struct Seed(u64);

impl Seed {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// A text with one typing error: a letter too few, too many, another one, or two that changed places.
fn mistyped(text: &str, seed: &mut Seed) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let at = seed.below(letters.len());
    let other = char::from(b'a' + u8::try_from(seed.below(26)).unwrap());
    match seed.below(4) {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, other),
        2 => letters[at] = other,
        _ => letters.swap(at, (at + 1) % text.len()),
    }
    letters.into_iter().collect()
}

/// Types as people call them, and how often each comes.
const TYPES: [(&str, usize); 10] = [
    ("order.created.v1", 12),
    ("order.created.v2", 20),
    ("order.cancelled.v1", 6),
    ("order.paid.v1", 15),
    ("customer.registered.v1", 9),
    ("customer.deleted.v1", 3),
    ("com.example.invoice.settled", 30),
    ("com.example.invoice.overdue", 4),
    ("shipment-dispatched", 17),
    ("stock.level.changed", 25),
];
const STARTS: [&str; 4] = ["order.", "customer.", "com.example.", "shipment-"];
const ENDS: [&str; 4] = [".registered.v1", ".settled", "-dispatched", ".changed"];
const TYPOS: usize = 200;

/// One planted typing error: the filter, and what was meant.
fn planted(seed: &mut Seed) -> (Value, String) {
    loop {
        let (dialect, meant) = match seed.below(3) {
            0 => ("prefix", STARTS[seed.below(STARTS.len())]),
            1 => ("suffix", ENDS[seed.below(ENDS.len())]),
            _ => ("exact", TYPES[seed.below(TYPES.len())].0),
        };
        let typed = mistyped(meant, seed);
        let still_matches = TYPES.iter().any(|(type_, _)| match dialect {
            "prefix" => type_.starts_with(&typed),
            "suffix" => type_.ends_with(&typed),
            _ => *type_ == typed,
        });
        if !still_matches && !typed.is_empty() {
            return (json!({dialect: {"type": typed}}), meant.to_owned());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_typing_error_is_the_first_suggestion() {
    let mut world = World::with_broker();
    let mut seed = Seed(17);
    let mut meant = Vec::new();
    for number in 0..TYPOS {
        let (filter, text) = planted(&mut seed);
        // Every other trigger has a second term, which holds.
        let filters = match number % 2 {
            0 => json!([filter]),
            _ => json!([{"prefix": {"subject": "eu-"}}, filter]),
        };
        world.trigger(
            &format!("t{number}"),
            "a",
            json!({"spec": {"filters": filters}}),
        );
        meant.push((filter, text));
    }
    world.route().await;
    let mut id = 0;
    for (type_, count) in TYPES {
        for _ in 0..count {
            id += 1;
            let attributes = [("type", type_), ("subject", "eu-1")];
            assert_eq!(world.publish(&id.to_string(), &attributes).await, 202);
        }
    }
    let mut right = 0;
    for (number, (filter, text)) in meant.iter().enumerate() {
        let found = of(&world, &format!("t{number}")).await;
        assert_eq!((found.came, found.matched), (id, 0), "{filter}");
        let first = found.edits.first();
        match first.is_some_and(|edit| edit.instead == *text) {
            true => right += 1,
            false => println!("{filter}: meant {text:?}, told {first:?}"),
        }
    }
    assert!(right * 100 >= TYPOS * 95, "{right} of {TYPOS}");
}

#[tokio::test(start_paused = true)]
async fn misses_are_told_by_all_their_terms_the_nearest_first() {
    let mut world = World::with_broker();
    let filters = json!([{"exact": {"type": "order.paid"}}, {"all": [{"exact": {"subject": "eu"}}, {"prefix": {"source": "/"}}]}]);
    world.trigger("t", "a", json!({"spec": {"filters": filters}}));
    world.route().await;
    for (id, type_, subject) in [
        ("1", "user.created", "us"),
        ("2", "user.created", "us"),
        ("3", "order.paid", "us"),
        ("4", "order.paid", "eu"),
        ("5", "user.created", "us"),
    ] {
        let attributes = [("type", type_), ("subject", subject)];
        assert_eq!(world.publish(id, &attributes).await, 202);
    }
    let found = of(&world, "t").await;
    assert_eq!((found.came, found.matched, found.elsewhere), (5, 1, 0));
    let groups: Vec<(usize, u64, &str)> = (found.misses.iter())
        .map(|group| {
            (
                group.terms.len(),
                group.count,
                &*group.sample.as_ref().unwrap().id,
            )
        })
        .collect();
    assert_eq!(groups, [(1, 1, "3"), (2, 3, "5")], "{found:?}");
    assert_eq!(found.misses[0].terms, ["subject is \"eu\""]);
    let edit = &found.edits[0];
    assert_eq!(
        (&*edit.attribute, &*edit.instead, edit.matches),
        ("subject", "us", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_the_filters_of_it_and_what_holds_now_are_told() {
    let mut world = World::with_broker();
    let of_type = |type_: &str, generation: i64| json!({"metadata": {"generation": generation}, "spec": {"filters": [{"exact": {"type": type_}}]}});
    world.trigger("t", "a", of_type("order.created", 1));
    world.route().await;
    assert_eq!(world.publish("early", &[]).await, 202);
    world.clock.sleep(Duration::from_secs(3 * 3600)).await;
    let empty = of(&world, "t").await;
    assert_eq!((empty.came, empty.elsewhere), (0, 0), "{empty:?}");
    assert!(empty.in_words()[0].starts_with("nothing was published"));
    let mut paused = of_type("order.paid", 2);
    paused["metadata"]["annotations"] = json!({"heddle.dev/paused": "true"});
    world.trigger("t", "a", paused);
    world.broker("ns", "other");
    world.route().await;
    assert_eq!(world.publish("late", &[]).await, 202);
    assert_eq!(
        world.publish_at("/broker/ns/other", "beside", &[]).await,
        202
    );
    let found = of(&world, "t").await;
    assert_eq!(
        (found.came, found.matched, found.elsewhere),
        (1, 0, 1),
        "{found:?}"
    );
    let [revision] = &found.revisions[..] else {
        panic!("{found:?}")
    };
    assert_eq!(revision.generation, 2);
    assert!(found.held.is_some(), "{found:?}");
    // Until then the former filter decided.
    let query = "consumer=trigger/ns/t&since=4h&until=2h";
    let (_, before) = silence(&world, Access::administrator("ada"), query).await;
    assert_eq!(
        (&before["came"], &before["matched"]),
        (&json!(1), &json!(1))
    );
    for (query, status) in [
        ("since=1h", 400),
        ("consumer=trigger/ns/t&since=yesterday-ish", 400),
        ("consumer=trigger/ns/t&since=1h&until=2h", 400),
        ("consumer=trigger/ns/nobody", 404),
    ] {
        let (told, body) = silence(&world, Access::administrator("ada"), query).await;
        assert_eq!(told, status, "{query}: {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_learns_of_events_that_they_may_not_see() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.broker("secret", "default");
    world.route().await;
    assert_eq!(
        world
            .publish_at("/broker/secret/default", "hidden", &[])
            .await,
        202
    );
    let own = ada(Role::Viewer, &["ns"], false);
    let query = "consumer=trigger/ns/t&since=1h";
    let (status, found) = silence(&world, own, query).await;
    assert_eq!(
        (status, &found["came"], &found["elsewhere"]),
        (200, &json!(0), &json!(0))
    );
    let theirs = ada(Role::Viewer, &["secret"], false);
    assert_eq!(silence(&world, theirs, query).await.0, 404);
    let all = ada(Role::Viewer, &[], false);
    assert_eq!(silence(&world, all, query).await.1["elsewhere"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_no_policy_allows_is_told_to_those_whom_it_would_lead_to() {
    let mut world = World::in_memory().await;
    world.application("shop");
    world.linked("shop", "team-a");
    world.resources.policies.clear();
    world.trigger("t", "a", json!({"metadata": {"namespace": "team-a"}}));
    world.route().await;
    let path = "/channel/kyma-integration/shop";
    assert_eq!(world.publish_at(path, "lost", &[]).await, 202);
    let own = ada(Role::Viewer, &["team-a"], false);
    let query = "consumer=trigger/team-a/t&since=1h";
    let (status, found) = silence(&world, own, query).await;
    assert_eq!((status, &found["came"]), (200, &json!(0)), "{found}");
    let faults = found["faults"].to_string();
    assert!(faults.contains("subscription/kyma-integration/"), "{found}");
}
