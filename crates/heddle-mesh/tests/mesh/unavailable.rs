//! Reads that fail and say nothing about what they should have read: no descriptors, no memory, a device that is busy.
//!
//! One story, told once undisturbed to count its looks at the disk, and then once per look and error: failing once, and
//! failing for a while. Everything ends as it does undisturbed.

use heddle_api::ledger::DeadLetterSelection;
use heddle_rt::vfs::Fault;
use serde_json::{Value, json};

use crate::world::{Manner, World};

const FAULTS: [Fault; 5] = [
    Fault::Emfile,
    Fault::Enfile,
    Fault::Enomem,
    Fault::Eio,
    Fault::Eintr,
];
/// How many looks in a row fail when they do for a while.
const WHILE: u64 = 25;
const EVENTS: usize = 30;

const TRIGGERS: [&str; 5] = ["paused", "retried", "redriven", "ordered", "dead"];

fn retrying(retry: u32, annotations: &Value) -> Value {
    json!({
        "metadata": {"annotations": annotations},
        "spec": {"delivery": {"retry": retry, "backoffDelay": "PT1S", "backoffPolicy": "linear"}},
    })
}

fn paused(is: bool) -> Value {
    retrying(3, &json!({"heddle.dev/paused": is.to_string()}))
}

fn everything() -> DeadLetterSelection {
    DeadLetterSelection {
        all: true,
        ..DeadLetterSelection::default()
    }
}

/// Pending, retrying and dead-lettered events, and a process that has none of them in memory.
async fn prepared() -> World {
    let mut world = World::on_disk_with_broker();
    world.trigger("paused", "p", paused(true));
    world.trigger("retried", "r", retrying(100, &json!({})));
    world.trigger("redriven", "v", retrying(3, &json!({})));
    let ordered = json!({"heddle.dev/delivery-order": "ordered"});
    world.trigger("ordered", "o", retrying(100, &ordered));
    world.trigger("dead", "d", retrying(3, &json!({})));
    for host in ["r", "v", "o", "d"] {
        world.manner(host, Manner::Answer(503));
    }
    world.route().await;
    world
        .publish_many((0..EVENTS).map(|number| format!("{number:02}")))
        .await;
    let rests = |world: &World, name: &str| world.account(name).dead_lettered == EVENTS as u64;
    world
        .until("dead letters", |world| {
            rests(world, "dead") && rests(world, "redriven")
        })
        .await;
    let redriven = DeadLetterSelection {
        consumer: Some("trigger/ns/redriven".to_owned()),
        ..DeadLetterSelection::default()
    };
    world.mesh.redrive(&redriven, "ann").await;
    world.stop().await;
    world
}

/// From the next process's first look at an event to the last.
async fn tell(world: &mut World) {
    for host in ["r", "v", "o", "d"] {
        world.manner(host, Manner::Accept);
    }
    world.trigger("paused", "p", paused(false));
    world.route().await;
    // Questions may be refused for a moment, and do no harm.
    for number in [0, 7, EVENTS - 1] {
        let id = format!("{number:02}");
        drop(world.mesh.trace(&id, "/test"));
        drop(world.mesh.trace_by_id(&id, 0..u64::MAX).await);
    }
    world.mesh.tidy().await;
    world.mesh.redrive(&everything(), "ann").await;
    for name in TRIGGERS {
        world
            .until(name, |world| {
                let account = world.account(name);
                account.delivered == EVENTS as u64 && account.pending == 0
            })
            .await;
    }
    world.mesh.tidy().await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs a suite says how long it may take"
)]
fn sweeps_all() -> bool {
    std::env::var("HEDDLE_SWEEP").is_ok_and(|share| share == "all")
}

fn judge(world: &World, context: &str) {
    for name in TRIGGERS {
        let account = world.account(name);
        assert_eq!(account.matched, EVENTS as u64, "{context}: {name}");
        assert_eq!(account.delivered, EVENTS as u64, "{context}: {name}");
        assert_eq!(account.dead_lettered, 0, "{context}: {name}");
    }
    let left = world.mesh.dead_letters(&everything(), 0, 100);
    assert_eq!(left.items.len(), 0, "{context}: {:?}", left.items);
    assert_eq!(world.mesh.accounts(true).log.damaged, 0, "{context}");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_once_or_for_a_while_ends_no_event() {
    let mut world = prepared().await;
    world.begin();
    let before = world.disk.as_ref().map_or(0, |disk| disk.looks());
    tell(&mut world).await;
    judge(&world, "undisturbed");
    let looks = before..world.disk.as_ref().map_or(0, |disk| disk.looks());
    assert!(
        looks.end - looks.start > 100,
        "{looks:?}: too few looks to say anything"
    );
    // An even share, with every error; with `HEDDLE_SWEEP=all` every look.
    let step = if sweeps_all() {
        1
    } else {
        (looks.end - looks.start) / 12 + 1
    };
    let mut failed = 0;
    for (number, look) in looks.clone().step_by(step as usize).enumerate() {
        for (kind, fault) in FAULTS.into_iter().enumerate() {
            let width = [1, WHILE][(number + kind) % 2];
            let context = format!("{fault:?} at looks {look} to {}", look + width);
            let mut world = prepared().await;
            world.begin();
            let own = world.disk.clone().expect("on disk");
            own.fail_looks(look..look + width, fault);
            tell(&mut world).await;
            judge(&world, &context);
            failed += 1;
            world.stop().await;
        }
    }
    assert!(failed >= 50, "only {failed} faults were tried");
}

#[tokio::test(start_paused = true)]
async fn while_the_log_cannot_be_read_everything_waits_and_says_why() {
    let mut world = prepared().await;
    world.begin();
    let disk = world.disk.clone().expect("on disk");
    for host in ["r", "v", "o", "d"] {
        world.manner(host, Manner::Accept);
    }
    world.route().await;
    disk.fail_looks(0..u64::MAX, Fault::Emfile);
    world.mesh.redrive(&everything(), "ann").await;
    world.pass(600).await;
    let held = world
        .mesh
        .accounts(false)
        .consumers
        .into_iter()
        .find(|account| account.consumer == "trigger/ns/dead")
        .and_then(|account| account.held);
    let held = held.expect("it says why nothing is sent");
    assert!(held.contains("cannot be read for now"), "{held}");
    assert_eq!(world.account("dead").dead_lettered, 0, "nothing ends");
    disk.fail_looks(0..0, Fault::Emfile);
    world
        .until("delivered", |world| {
            world.account("dead").delivered == EVENTS as u64
                && world.account("ordered").delivered == EVENTS as u64
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_cannot_be_opened_for_want_of_something_costs_no_attempt() {
    // No descriptors for the process, for the machine, and no memory.
    for number in [24, 23, 12] {
        let mut world = World::on_disk_with_broker();
        world.trigger("t", "a", retrying(0, &json!({})));
        world.manner("a", Manner::Exhausted(number));
        world.route().await;
        assert_eq!(world.publish("1", &[]).await, 202);
        world.pass(600).await;
        let account = world.account("t");
        let ended = (account.pending, account.dead_lettered);
        assert_eq!(ended, (1, 0), "{number}: {account:#?}");
        world.manner("a", Manner::Accept);
        world.until_delivered("t", 1).await;
    }
}
