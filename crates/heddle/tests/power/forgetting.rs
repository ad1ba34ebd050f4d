//! The disk itself: it keeps what was synced, and proves that it forgets the rest.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use heddle_rt::vfs::{DiskVfs, Open, PowerLoss, Vfs as _, VfsFile};

use crate::disk::Disk;
use crate::harness::{exists, read};

const SEEDS: u64 = 100;

fn written(path: &Path, text: &str) -> Arc<dyn VfsFile> {
    let file = DiskVfs.open(path, Open::or_create()).unwrap();
    file.write_at(0, text.as_bytes()).unwrap();
    file
}

#[test]
fn bytes_are_there_when_they_were_synced_and_gone_when_they_were_not() {
    let disk = Disk::mount();
    let (kept, empty) = (disk.path().join("kept"), disk.path().join("empty"));
    let file = written(&kept, "safe");
    file.sync().unwrap();
    written(&empty, "never synced");
    DiskVfs.sync_dir(disk.path()).unwrap();
    file.write_at(0, b"lost, and longer").unwrap();
    assert_eq!(read(&kept), "lost, and longer");
    assert_eq!(read(&empty), "never synced");

    disk.restore(PowerLoss::LoseUnsynced);
    assert_eq!(read(&kept), "safe");
    assert_eq!(read(&empty), "");
    let before = file.read_at(0, &mut [0; 4]);
    assert!(before.is_err(), "what was open belongs to the old world");
}

#[test]
fn names_are_there_when_their_directory_was_synced_and_gone_when_it_was_not() {
    let disk = Disk::mount();
    let at = |name: &str| disk.path().join(name);
    for name in ["removed", "renamed", "replaced"] {
        written(&at(name), name).sync().unwrap();
    }
    std::fs::create_dir(at("dir")).unwrap();
    DiskVfs.sync_dir(disk.path()).unwrap();

    written(&at("created"), "created").sync().unwrap();
    std::fs::create_dir(at("made")).unwrap();
    written(&at("made/inside"), "inside").sync().unwrap();
    DiskVfs.sync_dir(&at("made")).unwrap();
    written(&at("dir/inside"), "inside").sync().unwrap();
    DiskVfs.sync_dir(&at("dir")).unwrap();
    DiskVfs.remove(&at("removed")).unwrap();
    DiskVfs.rename(&at("renamed"), &at("replaced")).unwrap();
    assert_eq!(
        DiskVfs.list(disk.path()).unwrap(),
        ["created", "dir", "made", "replaced"]
    );
    assert_eq!(read(&at("replaced")), "renamed");

    disk.restore(PowerLoss::LoseUnsynced);
    assert_eq!(
        DiskVfs.list(disk.path()).unwrap(),
        ["dir", "removed", "renamed", "replaced"]
    );
    assert_eq!(read(&at("replaced")), "replaced");
    assert_eq!(read(&at("dir/inside")), "inside");

    DiskVfs.rename(&at("renamed"), &at("replaced")).unwrap();
    DiskVfs.sync_dir(disk.path()).unwrap();
    disk.restore(PowerLoss::LoseUnsynced);
    assert!(!exists(&at("renamed")));
    assert_eq!(read(&at("replaced")), "renamed");
}

#[test]
fn of_what_was_not_synced_all_nothing_or_a_part_is_left() {
    let disk = Disk::mount();
    let (path, new) = (disk.path().join("x"), disk.path().join("new"));
    let (mut found, mut bytes) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..SEEDS {
        DiskVfs.write_atomic(&path, b"old", 0o600).unwrap();
        written(&new, "new").sync().unwrap();
        DiskVfs.rename(&new, &path).unwrap();
        disk.restore(PowerLoss::Arbitrary { seed });
        found.insert(read(&path));

        DiskVfs.write_atomic(&path, &[b'-'; 1024], 0o600).unwrap();
        written(&path, &"+".repeat(1024));
        disk.restore(PowerLoss::Arbitrary { seed });
        bytes.insert(read(&path).matches('+').count());
    }
    assert_eq!(found, ["new", "old"].map(str::to_owned).into());
    assert!(bytes.contains(&0) && bytes.contains(&1024), "{bytes:?}");
    assert!(bytes.contains(&512), "torn at a sector: {bytes:?}");
    assert!(bytes.len() > 3, "torn anywhere: {bytes:?}");
}

#[test]
fn a_length_is_safe_when_it_was_synced() {
    let disk = Disk::mount();
    let path = disk.path().join("x");
    DiskVfs.write_atomic(&path, b"text", 0o600).unwrap();
    let open = || DiskVfs.open(&path, Open::existing()).unwrap();
    // Growing is `fallocate`, cutting is `ftruncate`.
    for (len, expected) in [(8, "text\0\0\0\0"), (2, "te")] {
        let file = open();
        file.set_len(len).unwrap();
        assert_eq!(read(&path), expected);
        disk.restore(PowerLoss::LoseUnsynced);
        assert_eq!(read(&path), "text");
    }
    let file = open();
    file.set_len(8).unwrap();
    file.sync().unwrap();
    disk.restore(PowerLoss::LoseUnsynced);
    assert_eq!(read(&path), "text\0\0\0\0");
}

#[test]
fn locks_and_exclusive_creation_exclude_and_open_files_outlive_their_names() {
    let disk = Disk::mount();
    let (lock, path) = (disk.path().join("lock"), disk.path().join("x"));
    let held = DiskVfs.lock(&lock).unwrap();
    let second = DiskVfs.lock(&lock).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::ResourceBusy);
    drop(held);
    assert!(DiskVfs.lock(&lock).is_ok());

    let create = || {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).open(&path)
    };
    assert!(create().is_ok());
    assert_eq!(create().unwrap_err().kind(), io::ErrorKind::AlreadyExists);

    let file = written(&path, "text");
    DiskVfs.remove(&path).unwrap();
    assert!(!exists(&path));
    let mut bytes = [0; 4];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"text");
    let room = rustix::fs::statvfs(disk.path()).unwrap();
    assert!(room.f_bavail > 0 && room.f_bavail <= room.f_blocks);
}

#[test]
fn whoever_uses_a_disk_without_power_waits_until_it_lets_go_and_has_done_nothing() {
    let disk = Disk::mount();
    let path = disk.path().join("x");
    DiskVfs.write_atomic(&path, b"first", 0o600).unwrap();
    let file = DiskVfs.open(&path, Open::existing()).unwrap();
    // One write and one sync more; the second write is the one without power.
    disk.cut_after(2);
    std::thread::scope(|scope| {
        let user = scope.spawn(|| {
            file.write_at(0, b"later").unwrap();
            file.sync().unwrap();
            file.write_at(0, b"never").and_then(|()| file.sync())
        });
        while !disk.is_dark() {
            std::thread::yield_now();
        }
        assert!(!user.is_finished());
        disk.let_go();
        assert!(user.join().unwrap().is_err());
    });
    disk.restore(PowerLoss::LoseUnsynced);
    assert_eq!(read(&path), "later");
}
