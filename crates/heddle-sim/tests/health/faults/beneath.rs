//! Disks that are full, fail or decay, and a process that is killed.

use std::path::Path;

use bytes::Bytes;
use futures::FutureExt as _;
use heddle_api::Application;
use heddle_api::health::HealthPlane;
use heddle_mesh::who::Who;
use heddle_rt::vfs::{Fault, MemoryVfs, Vfs as _};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Culprit, FaultCase, on};
use crate::network::Manner;
use crate::world::World;

/// So many operations of the disk fail; one of them is a sync.
const FAILING_OPERATIONS: u64 = 20;

fn beneath(object: &str) -> Option<Culprit> {
    on(HealthPlane::Dependencies, "", object)
}

async fn publish_what_is_kept(world: &World) {
    for number in 0..20 {
        world.publish_large(&format!("kept-{number}")).await;
    }
}

pub(super) fn cases() -> Vec<FaultCase> {
    vec![
        FaultCase::new(
            "the disk of the events is full, and a subscriber keeps what is on it",
            beneath("trigger/team-a/orders"),
            |world| {
                async {
                    world.network.behave("orders.example", Manner::Hang);
                    publish_what_is_kept(world).await;
                    world.fill().await;
                }
                .boxed()
            },
            |world| {
                async {
                    world.network.heal();
                    world.events_disk().set_capacity(None);
                }
                .boxed()
            },
        )
        .compared_as("A disk or a quota is full"),
        FaultCase::new(
            "the disk of the events is full, and nobody keeps anything",
            beneath("log"),
            |world| async { world.fill().await }.boxed(),
            |world| async { world.events_disk().set_capacity(None) }.boxed(),
        ),
        FaultCase::new(
            "the disk of the events fails to make something safe",
            beneath("log"),
            |world| {
                async {
                    fail(&world.events_disk());
                    world.publish("shop", "unsafe", "order.created").await;
                }
                .boxed()
            },
            |world| async { world.kill(None).await }.boxed(),
        )
        .tracing("unsafe"),
        FaultCase::new(
            "records of the log decay while no process looks",
            beneath("log"),
            |world| {
                async {
                    world.network.behave("orders.example", Manner::Down);
                    publish_what_is_kept(world).await;
                    world.mesh().settled().await;
                    world.kill(Some(decay)).await;
                }
                .boxed()
            },
            |_| async {}.boxed(),
        )
        .for_good(),
        FaultCase::new(
            "the disk of the resources fails to make something safe",
            beneath("store"),
            |world| {
                async {
                    fail(&world.resources_disk);
                    let api = world.users.api::<Application>("");
                    let patch = json!({"metadata": {"annotations": {"lost": "yes"}}});
                    let patch = Patch::Merge(&patch);
                    let written = api.patch("depot", &PatchParams::default(), &patch).await;
                    assert!(written.is_err(), "a failed disk takes no objects");
                }
                .boxed()
            },
            |_| async {}.boxed(),
        )
        .for_good(),
    ]
}

/// The next operations of a disk fail.
fn fail(disk: &MemoryVfs) {
    let next = disk.operations() + 1;
    for operation in next..next + FAILING_OPERATIONS {
        disk.fail_at(operation, Fault::Eio);
    }
}

/// Flips a bit of an event that was published early.
fn decay(disk: &MemoryVfs) {
    let log = Path::new("/mesh/log");
    let text = b"\"kept-1\"";
    for name in disk.list(log).unwrap() {
        let path = log.join(name);
        let bytes = disk.read(&path).unwrap();
        let found = bytes.windows(text.len()).position(|some| some == text);
        if let Some(at) = found {
            return disk.flip_bit(&path, (at as u64 + 2) * 8).unwrap();
        }
    }
    panic!("the event is in the log");
}

impl World {
    async fn publish_large(&self, id: &str) -> u16 {
        let data = json!({"id": id, "room": "x".repeat(1000)});
        let data = Bytes::from(data.to_string());
        let event = self.event("shop", id, "order.created", data);
        self.send(&Who::Anonymous, event).await
    }

    /// Nothing more has room on the disk of the events.
    async fn fill(&self) {
        let disk = self.events_disk();
        disk.set_capacity(Some(disk.used_bytes()));
        for number in 0..100 {
            if self.publish_large(&format!("fill-{number}")).await == 507 {
                return;
            }
        }
        panic!("a full disk takes no events");
    }
}
