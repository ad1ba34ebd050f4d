//! Publishers, writers, and a plug that is pulled under them, again and again.
//!
//! The subscriber `/late` answers nothing while events are published, so whatever it is sent after
//! a power loss was on the disk before it. `/prompt` takes everything at once, so that outcomes are
//! written while the power goes as well.

use std::collections::BTreeSet;

use heddle_rt::Chance;
use heddle_rt::vfs::PowerLoss;
use serde_json::json;

use crate::load::{Load, Sent};
use crate::machine::Machine;
use crate::stage::{self, trigger};
use crate::subscriber::{Manner, Subscriber};
use crate::writers::{Stored, Writers, Written};

const CYCLES: usize = 10;
const PUBLISHERS: usize = 8;
const WRITERS: usize = 4;
const EVENTS_PER_CYCLE: usize = 100;
const OBJECTS_PER_CYCLE: usize = 20;
/// The power goes within so many operations: some groups of events, outcomes and objects.
const OPERATIONS: u64 = 40;
/// Fewer than any start has.
const OPERATIONS_OF_A_START: u64 = 12;

/// A machine, those who use it, and what it has promised them.
struct Story {
    subscriber: Subscriber,
    machine: Machine,
    sent: Sent,
    written: Written,
    /// The administrator's.
    token: String,
    /// Acknowledged, and never taken by `/late`.
    owed: BTreeSet<String>,
    /// How much `/late` had been sent when the power went.
    late_before: usize,
}

impl Story {
    async fn begin(chance: Chance) -> Self {
        let subscriber = Subscriber::start().await;
        let machine = Machine::with_broker(chance).await;
        for name in ["prompt", "late"] {
            let url = subscriber.url(&format!("/{name}"));
            let trigger = trigger(name, &url, json!({}));
            machine.server.apply_trigger(&trigger).await;
        }
        Self {
            token: machine.server.token(),
            subscriber,
            machine,
            sent: Sent::default(),
            written: Written::default(),
            owed: BTreeSet::new(),
            late_before: 0,
        }
    }

    /// Publishes and writes until enough is acknowledged, and then until the power goes.
    async fn work(&mut self, name: &str, lose_power: impl AsyncFnOnce(&mut Machine)) {
        self.subscriber.behave("/late", Manner::Hang);
        let load = Load::on(&self.machine.server.events, name);
        let writers = Writers::on(&self.machine.server, name).await;
        let plug = async {
            tokio::join!(
                load.until_acknowledged(EVENTS_PER_CYCLE),
                writers.until_acknowledged(OBJECTS_PER_CYCLE),
            );
            lose_power(&mut self.machine).await;
        };
        let (sent, written, ()) = tokio::join!(load.run(PUBLISHERS), writers.run(WRITERS), plug);
        self.late_before = self.subscriber.ids("/late").len();
        self.owed.extend(sent.acknowledged.iter().cloned());
        self.sent.add(sent);
        self.written.add(written);
    }

    /// When everything is delivered: which promises about events are broken, in words.
    async fn broken_about_events(&mut self) -> Vec<String> {
        self.machine.server.until_quiet().await;
        let prompt = self.subscriber.received("/prompt");
        let late = self.subscriber.received("/late");
        let mut broken = Vec::new();
        for message in prompt.iter().chain(&late) {
            let id = message.header("ce-id").unwrap();
            if !self.sent.tried.contains(id) {
                broken.push(format!("nobody sent {id}"));
            }
            if message.body != id.as_bytes() {
                broken.push(format!("event {id} came as {}", message.text()));
            }
        }
        let came = late[self.late_before..].iter();
        let came: BTreeSet<&str> = came.filter_map(|message| message.header("ce-id")).collect();
        for id in std::mem::take(&mut self.owed) {
            if !came.contains(id.as_str()) {
                broken.push(format!("event {id} never came"));
            }
        }
        broken
    }

    /// The same about objects.
    async fn broken_about_objects(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.machine.server.token() != self.token {
            broken.push("the token is another".to_owned());
        }
        let stored = Stored::on(&self.machine.server).await;
        for (name, version) in &self.written.acknowledged {
            let found = stored.versions.get(name);
            if found != Some(version) || *version > stored.newest {
                broken.push(format!(
                    "object {name} has {found:?} of {} and not {version}",
                    stored.newest
                ));
            }
        }
        let invented = |name: &&String| !self.written.tried.contains(*name);
        for name in stored.versions.keys().filter(invented) {
            broken.push(format!("nobody wrote {name}"));
        }
        broken
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_acknowledged_outlives_the_power_and_nothing_is_made_up() {
    let seed = crate::seed();
    eprintln!("HEDDLE_POWER_SEED={seed}");
    let chance = Chance::seeded(seed);
    let mut story = Story::begin(chance.clone()).await;
    let cycles = crate::times(CYCLES);
    for cycle in 1..=cycles {
        let unplug = async |machine: &mut Machine| machine.lose_power_within(OPERATIONS).await;
        story.work(&format!("c{cycle}"), unplug).await;
        if chance.below(2) == 0 {
            story.machine.server.spawn();
            let machine = &mut story.machine;
            machine.lose_power_within(OPERATIONS_OF_A_START).await;
        }
        // Now and then a backlog meets the next power loss.
        let delivered = cycle == cycles || chance.below(2) == 0;
        if delivered {
            story.subscriber.behave("/late", Manner::Accept);
        }
        story.machine.server.launch().await;
        let mut broken = story.broken_about_objects().await;
        if delivered {
            broken.extend(story.broken_about_events().await);
        }
        let log = story.machine.server.log();
        assert!(broken.is_empty(), "cycle {cycle}: {broken:#?}\n{log}");
        assert!(!log.contains("panicked"), "{log}");
        story.machine.server.heddle(&["doctor"]).ok();
    }
    story.sent.until_arrived(&story.subscriber, "/prompt").await;
    let accounts = story.machine.server.until_quiet().await;
    let (least, most) = (story.sent.acknowledged.len(), story.sent.tried.len());
    for name in ["prompt", "late"] {
        let account = stage::account_of(&accounts.consumers, name);
        let matched = usize::try_from(account.matched).unwrap();
        assert!(matched >= least && matched <= most, "{account:#?}");
        assert_eq!(account.delivered, account.matched, "{account:#?}");
    }
}

/// Without this, the test above might pass because nothing is ever lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_lies_about_syncing_is_found_out() {
    for folder in ["events", "store"] {
        let mut story = Story::begin(Chance::seeded(0)).await;
        story.machine.disk.lie_about(folder);
        let unplug = async |machine: &mut Machine| {
            machine.lose_power(0, PowerLoss::LoseUnsynced).await;
        };
        story.work("c", unplug).await;
        story.subscriber.behave("/late", Manner::Accept);
        story.machine.server.launch().await;
        let owed = story.owed.len();
        let found = (
            story.broken_about_events().await.len(),
            story.broken_about_objects().await.len(),
        );
        let expected = match folder {
            "events" => (owed, 0),
            _ => (0, story.written.acknowledged.len()),
        };
        assert_eq!(found, expected, "lies about {folder}");
    }
}
