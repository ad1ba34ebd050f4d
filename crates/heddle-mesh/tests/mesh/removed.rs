//! Directories that somebody removes, or puts others in the place of, while the mesh runs.
//!
//! Files that are open go on working after their names are gone, so nothing fails: what is accepted then is lost at the next
//! start. It is noticed by looking whether the directories are still the ones that were opened.

use std::path::{Path, PathBuf};

use heddle_rt::vfs::{MemoryVfs, Vfs as _};
use serde_json::json;

use crate::world::World;

/// How long it may take until somebody notices, in seconds.
const NOTICED_WITHIN: u64 = 31;
const DIRS: [&str; 3] = ["log", "journal", "journal-mirror"];

async fn running() -> (World, MemoryVfs, PathBuf) {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "a", json!({}));
    world.route().await;
    assert_eq!(world.publish("before", &[]).await, 202);
    world.until_delivered("t", 1).await;
    world.pass(NOTICED_WITHIN).await;
    assert!(!world.mesh.is_broken(), "nothing is wrong yet");
    let disk = world.disk.clone().expect("on disk");
    let dir = Path::new(crate::world::EVENTS_DIR).to_owned();
    (world, disk, dir)
}

fn remove(disk: &MemoryVfs, dir: &Path) {
    let names = disk.list(dir).unwrap();
    assert!(!names.is_empty(), "{}: nothing to remove", dir.display());
    for name in names {
        disk.remove(&dir.join(name)).unwrap();
    }
}

async fn is_noticed(world: &World, what: &str) {
    world.pass(NOTICED_WITHIN).await;
    assert!(world.mesh.is_broken(), "{what}: nobody noticed");
    let why = world.mesh.health().unwrap_err().to_string();
    assert!(why.contains("removed"), "{what}: {why}");
    let answer = world.publish(what, &[]).await;
    assert!((500..600).contains(&answer), "{what}: {answer}");
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_is_removed_under_a_running_mesh_is_noticed() {
    for gone in DIRS.iter().map(|dir| vec![*dir]).chain([DIRS.to_vec()]) {
        let (world, disk, dir) = running().await;
        for name in &gone {
            remove(&disk, &dir.join(name));
        }
        is_noticed(&world, &gone.join("-")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_directory_in_the_place_of_one_is_noticed() {
    for (name, other) in DIRS.iter().zip(DIRS.iter().cycle().skip(1)) {
        let (world, disk, dir) = running().await;
        let (place, strange) = (dir.join(name), dir.join(other));
        remove(&disk, &place);
        for file in disk.list(&strange).unwrap() {
            let bytes = disk.read(&strange.join(&file)).unwrap();
            let written = disk.write_atomic(&place.join(&file), &bytes, 0o600);
            written.unwrap();
        }
        is_noticed(&world, name).await;
    }
}
