//! When there is too little room, and who notices how soon.

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::Open;

use super::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

#[test]
fn the_usual_reserve_is_a_small_part_of_the_disk_and_never_most_of_it() {
    for (total, expected) in [
        (100 * MIB, 25 * MIB),
        (2 * GIB, 256 * MIB),
        (100 * GIB, 2 * GIB),
        (u64::MAX, 4 * GIB),
    ] {
        assert_eq!(Reserve::Usual.bytes(total), expected, "{total}");
    }
    assert_eq!(Reserve::Bytes(7).bytes(100), 7);
}

/// A disk of 10,000 bytes of which so many are used.
struct Disk(MemoryVfs);

impl Disk {
    fn new() -> Self {
        let vfs = MemoryVfs::new();
        vfs.create_dir_all(Path::new("/data")).unwrap();
        vfs.set_capacity(Some(10_000));
        Self(vfs)
    }

    fn used(&self, bytes: u64) {
        let file = self.0.open(Path::new("/data/x"), Open::or_create());
        file.unwrap().set_len(bytes).unwrap();
    }

    fn gate(&self, clock: &Clock, reserve: u64) -> RoomGate {
        let reserve = Reserve::Bytes(reserve);
        RoomGate::new(&self.0, "/data".into(), clock.clone(), reserve)
    }
}

fn clock() -> Clock {
    Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn nobody_looks_until_a_segment_was_begun() {
    let (disk, clock) = (Disk::new(), clock());
    let gate = disk.gate(&clock, 800);
    disk.used(9_500);
    assert_eq!(gate.pass(&disk.0, 0), Ok(()));
    let room = gate.pass(&disk.0, 1).unwrap_err();
    assert_eq!((room.free_bytes, room.needed_bytes), (500, 900));
    assert_eq!(room.missing_bytes(), 400);
}

#[tokio::test(start_paused = true)]
async fn freed_room_is_noticed_within_a_second_and_only_with_some_to_spare() {
    let (disk, clock) = (Disk::new(), clock());
    disk.used(9_500);
    let gate = disk.gate(&clock, 800);
    let mut room = gate.room();
    assert!(room.borrow_and_update().low, "it looked when it was opened");
    disk.used(9_150);
    clock.sleep(LOOK_AGAIN).await;
    assert!(gate.pass(&disk.0, 0).is_err(), "it would be low again soon");
    assert!(!room.has_changed().unwrap());
    disk.used(9_000);
    assert!(gate.pass(&disk.0, 0).is_err(), "the last look is not old");
    clock.sleep(LOOK_AGAIN).await;
    assert_eq!(gate.pass(&disk.0, 0), Ok(()));
    assert!(room.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn without_a_reserve_nothing_is_refused() {
    let (disk, clock) = (Disk::new(), clock());
    disk.used(10_000);
    let gate = disk.gate(&clock, 0);
    assert_eq!(gate.pass(&disk.0, 1), Ok(()));
}
