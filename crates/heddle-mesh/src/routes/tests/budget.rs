//! The filters of a namespace cost an event no more than so much, whoever writes them.

use heddle_api::filter::cost::NAMESPACE_COST_MAX;
use serde_json::{Value, json};

use super::super::budget::INDEXED_COST_FREE;
use super::matching::event;
use super::{Table, World};

/// An expression that reads the subject to its end, and what that costs: the operator, the attribute, the reading.
const SEARCH: &str = "subject LIKE '%a_b%'";
const SEARCH_COST: u32 = 34;

/// How many of these fit.
const FIT: u32 = NAMESPACE_COST_MAX / SEARCH_COST;

/// A trigger with this filter that was made so many seconds into the hour.
fn made_at(second: u32, cesql: &str) -> Value {
    let at = format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
    json!({"metadata": {"creationTimestamp": at}, "spec": {"filters": [{"cesql": cesql}]}})
}

fn rejected(table: &Table) -> Vec<&str> {
    let keys = table.rejected().iter().map(|rejected| &*rejected.key);
    keys.collect()
}

#[test]
fn who_came_last_is_left_out_and_told_why_and_nobody_else_is() {
    let mut world = World::default()
        .broker("team", "default", json!({}))
        .broker("other", "default", json!({}));
    // The names say the opposite of the age.
    for age in 0..FIT + 2 {
        let name = format!("t-{:03}", 999 - age);
        world = world.trigger("team", &name, made_at(age, SEARCH));
    }
    world = world.trigger("team", "simple", made_at(3000, "type = 'x'"));
    world = world.trigger("team", "all", json!({}));
    world = world.trigger("other", "t", made_at(3001, SEARCH));
    let table = world.compile();
    let last = [FIT + 1, FIT].map(|age| format!("trigger/team/t-{:03}", 999 - age));
    assert_eq!(rejected(&table), last);
    let reason = &table.rejected()[0].reason;
    assert!(
        reason.contains("in team, and no more than 8192"),
        "{reason}"
    );
    assert!(table.consumer("trigger/other/t").is_some());
    assert!(table.consumer("trigger/team/simple").is_some());
    let mut wanted = Vec::new();
    table.matches(
        "broker/team/default",
        &event(&[("subject", "xa.bx")]),
        &mut wanted,
    );
    assert_eq!(
        wanted.len() as u32,
        FIT + 1,
        "all that fit, and the one for everything"
    );
}

#[test]
fn filters_for_different_types_are_never_asked_about_the_same_event() {
    let mut world = World::default().broker("team", "default", json!({}));
    for number in 0..2 * FIT {
        let cesql = format!("type = 'type-{number}' AND {SEARCH}");
        world = world.trigger("team", &format!("t-{number}"), made_at(number, &cesql));
    }
    assert_eq!(rejected(&world.compile()), Vec::<&str>::new());
    for number in 0..2 * FIT {
        let cesql = format!("type IN ('same', 'other-{number}') AND {SEARCH}");
        world = world.trigger(
            "team",
            &format!("u-{number}"),
            made_at(1000 + number, &cesql),
        );
    }
    // What the index finds costs less, by the conditions that are free.
    let fit = NAMESPACE_COST_MAX / (SEARCH_COST + 3 - INDEXED_COST_FREE);
    let rejected = rejected(&world.compile()).len() as u32;
    assert_eq!(rejected, 2 * FIT - fit);
}

#[test]
fn the_same_are_left_out_whatever_the_order() {
    let mut triggers: Vec<(String, Value)> = (0..FIT + 20)
        .map(|age| (format!("t-{age}"), made_at(age % 7, SEARCH)))
        .collect();
    let table = |triggers: &[(String, Value)]| {
        let world = World::default().broker("team", "default", json!({}));
        let add = |world: World, (name, rest): &(String, Value)| {
            world.trigger("team", name, rest.clone())
        };
        triggers.iter().fold(world, add).compile()
    };
    let (there, back) = (table(&triggers), {
        triggers.reverse();
        table(&triggers)
    });
    assert_eq!(rejected(&there).len(), 20);
    assert_eq!(rejected(&there), rejected(&back));
}
