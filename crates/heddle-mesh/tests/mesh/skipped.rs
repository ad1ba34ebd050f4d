//! A copy of a directory that goes on as a restored backup does: far above every offset that was given out after it.

use heddle_mesh::log::{Lookup, Reserve, embedded};
use serde_json::{Value, json};

use crate::world::{World, log_options};

/// More than anybody accepts between two backups.
const STEP: u64 = 1 << 32;

fn paused(is: bool) -> Value {
    json!({"metadata": {"annotations": {"heddle.dev/paused": is.to_string()}}})
}

/// Lets the next process over the world's disk begin above all offsets.
fn skip(world: &World) -> u64 {
    let disk = world.disk.as_ref().expect("on disk");
    let options = log_options(&world.clock, disk, Reserve::default());
    embedded::skip_offsets(&options).unwrap()
}

#[tokio::test(start_paused = true)]
async fn offsets_go_on_above_all_and_what_waits_is_delivered() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "a", paused(true));
    world.route().await;
    world
        .publish_many((0..20).map(|number| number.to_string()))
        .await;
    let used = world.log.bounds().end;
    // Twice, as somebody who restores a backup of what was restored.
    for times in 1..=2 {
        world.stop().await;
        let next = skip(&world);
        assert!(next >= used + times * STEP, "{next}");
        world.begin();
        world.trigger("t", "a", paused(true));
        world.route().await;
        assert_eq!(world.publish(&format!("after-{times}"), &[]).await, 202);
        assert_eq!(world.log.bounds().end, next + 1);
        // What somebody noted of an event that is not in the copy.
        assert!(matches!(world.log.get(used + 7), Ok(Lookup::Gone)));
    }
    world.trigger("t", "a", paused(false));
    world.route().await;
    world.until_delivered("t", 22).await;
    let accounts = world.mesh.accounts(true);
    assert_eq!((accounts.log.damaged, accounts.log.journal_lost), (0, 0));
    let account = world.account("t");
    assert_eq!(
        (account.matched, account.difference()),
        (22, 0),
        "nothing is missing: {account:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_never_had_an_event_goes_on_too() {
    let mut world = World::on_disk();
    world.stop().await;
    let next = skip(&world);
    assert!(next > STEP, "{next}");
    world.begin();
    world.broker("ns", "default");
    world.trigger("t", "a", json!({}));
    world.route().await;
    assert_eq!(world.publish("first", &[]).await, 202);
    world.until_delivered("t", 1).await;
}
