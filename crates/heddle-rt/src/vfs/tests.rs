//! What both file systems promise, and what only the forgetful one does.

use super::*;

fn everywhere(check: impl Fn(&dyn Vfs, &Path)) {
    let memory = MemoryVfs::new();
    check(&memory, Path::new("/data"));
    let dir = tempfile::tempdir().unwrap();
    check(&DiskVfs, &dir.path().join("data"));
}

fn written(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Arc<dyn VfsFile> {
    let file = vfs.open(path, Open::or_create()).unwrap();
    file.write_at(0, bytes).unwrap();
    file
}

#[test]
fn files_are_written_read_listed_renamed_and_removed() {
    everywhere(|vfs, root| {
        let dir = root.join("a/b");
        vfs.create_dir_all(&dir).unwrap();
        vfs.create_dir_all(&dir).unwrap();
        let path = dir.join("x");
        assert_eq!(
            vfs.open(&path, Open::existing()).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        let file = written(vfs, &path, b"hello");
        file.set_len(8).unwrap();
        file.sync().unwrap();
        file.evict().unwrap();
        assert_eq!(vfs.read(&path).unwrap(), b"hello\0\0\0");
        let mut past_the_end = [0; 9];
        assert_eq!(
            file.read_at(0, &mut past_the_end).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        vfs.rename(&path, &dir.join("y")).unwrap();
        assert_eq!(vfs.list(&dir).unwrap(), ["y"]);
        vfs.remove(&dir.join("y")).unwrap();
        assert!(!vfs.exists(&dir.join("y")).unwrap());
        vfs.sync_dir(&dir).unwrap();
    });
}

#[test]
fn an_atomic_write_replaces_the_file_and_leaves_nothing_else() {
    everywhere(|vfs, root| {
        vfs.create_dir_all(root).unwrap();
        let path = root.join("config.json");
        vfs.write_atomic(&path, b"one", 0o600).unwrap();
        vfs.write_atomic(&path, b"2", 0o600).unwrap();
        assert_eq!(vfs.read(&path).unwrap(), b"2");
        assert_eq!(vfs.list(root).unwrap(), ["config.json"]);
    });
}

#[test]
fn a_lock_refuses_a_second_holder_until_it_is_dropped() {
    everywhere(|vfs, root| {
        vfs.create_dir_all(root).unwrap();
        let path = root.join("lock");
        let held = vfs.lock(&path).unwrap();
        assert_eq!(
            vfs.lock(&path).unwrap_err().kind(),
            io::ErrorKind::ResourceBusy
        );
        drop(held);
        assert!(vfs.lock(&path).is_ok());
    });
}

#[test]
fn power_loss_keeps_what_was_synced_and_only_that() {
    let vfs = MemoryVfs::new();
    let root = Path::new("/data");
    vfs.create_dir_all(root).unwrap();
    let file = written(&vfs, &root.join("x"), b"safe");
    file.sync().unwrap();
    vfs.sync_dir(root).unwrap();
    file.write_at(0, b"lost").unwrap();
    written(&vfs, &root.join("nameless"), b"synced")
        .sync()
        .unwrap();

    let after = vfs.power_loss(PowerLoss::LoseUnsynced);
    assert_eq!(after.read(&root.join("x")).unwrap(), b"safe");
    assert!(
        !after.exists(&root.join("nameless")).unwrap(),
        "its directory was not synced"
    );

    let killed = vfs.kill();
    assert_eq!(
        killed.read(&root.join("x")).unwrap(),
        b"lost",
        "the page cache outlives the process"
    );
    assert_eq!(
        killed
            .power_loss(PowerLoss::LoseUnsynced)
            .read(&root.join("x"))
            .unwrap(),
        b"safe"
    );
}

#[test]
fn arbitrary_power_loss_tears_and_reorders_unsynced_writes() {
    let vfs = MemoryVfs::new();
    let root = Path::new("/");
    vfs.create_dir_all(root).unwrap();
    let path = root.join("x");
    let file = written(&vfs, &path, &[0; 2048]);
    file.sync().unwrap();
    vfs.sync_dir(root).unwrap();
    file.write_at(0, &[1; 1024]).unwrap();
    file.write_at(1024, &[2; 1024]).unwrap();
    let outcomes: std::collections::BTreeSet<Vec<u8>> = (0..200)
        .map(|seed| {
            vfs.power_loss(PowerLoss::Arbitrary { seed })
                .read(&path)
                .unwrap()
        })
        .collect();
    let has = |check: &dyn Fn(&[u8]) -> bool| outcomes.iter().any(|bytes| check(bytes));
    assert!(
        has(&|bytes| bytes.iter().all(|byte| *byte == 0)),
        "everything lost"
    );
    assert!(
        has(&|bytes| bytes[..1024] == [1; 1024] && bytes[1024..] == [2; 1024]),
        "everything kept"
    );
    assert!(
        has(&|bytes| bytes[0] == 0 && bytes[2047] == 2),
        "the later write without the earlier"
    );
    assert!(
        has(&|bytes| bytes[..512] == [0; 512] && bytes[512..1024] == [1; 512]),
        "torn at a sector"
    );
    assert!(
        has(&|bytes| (1..512).any(|cut| bytes[cut - 1] == 1 && bytes[cut] == 0)),
        "torn inside a sector"
    );
}

#[test]
fn an_atomic_write_is_old_or_new_after_power_loss_at_every_operation() {
    let path = Path::new("/data/file");
    let run = |crash_after: u64| {
        let vfs = MemoryVfs::new();
        vfs.create_dir_all(Path::new("/data")).unwrap();
        vfs.write_atomic(path, b"old", 0o600).unwrap();
        let prepared = vfs.operations();
        vfs.crash_at(prepared.saturating_add(crash_after));
        let done = vfs.write_atomic(path, b"new bytes", 0o600).is_ok();
        let operations = vfs.operations() - prepared;
        (vfs, done, operations)
    };
    let (_, done, operations) = run(u64::MAX);
    assert!(done && operations == 5);
    for crash_after in 1..=operations + 1 {
        let (vfs, done, _) = run(crash_after);
        let policies = (0..40).map(|seed| PowerLoss::Arbitrary { seed });
        for how in policies.chain([PowerLoss::LoseUnsynced]) {
            let found = vfs.power_loss(how).read(path).unwrap();
            let right = found == b"new bytes" || (!done && found == b"old");
            assert!(right, "crash at {crash_after}, {how:?}: {found:?}");
        }
    }
}

#[test]
fn directories_are_safe_once_made_whatever_was_broken_off_before() {
    let path = Path::new("/a/b/c");
    for crash_at in 1..20 {
        let vfs = MemoryVfs::new();
        vfs.crash_at(crash_at);
        let done = vfs.create_dir_all(path).is_ok();
        let again = vfs.kill();
        again.create_dir_all(path).unwrap();
        for after in [&again, &vfs].into_iter().take(1 + usize::from(done)) {
            let left = after.power_loss(PowerLoss::LoseUnsynced);
            assert!(left.exists(path).unwrap(), "broken off at {crash_at}");
        }
    }
}

#[test]
fn a_directory_made_alone_is_safe_when_the_one_above_it_is_synced() {
    let vfs = MemoryVfs::new();
    let (above, path) = (Path::new("/a"), Path::new("/a/b"));
    assert_eq!(
        vfs.create_dir(path).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    vfs.create_dir_all(above).unwrap();
    vfs.create_dir(path).unwrap();
    assert_eq!(
        vfs.create_dir(path).unwrap_err().kind(),
        io::ErrorKind::AlreadyExists
    );
    let after = |vfs: &MemoryVfs| vfs.power_loss(PowerLoss::LoseUnsynced).exists(path);
    assert!(!after(&vfs).unwrap());
    vfs.sync_dir(above).unwrap();
    assert!(after(&vfs).unwrap());
}

#[test]
fn faults_hit_the_operation_they_were_planned_for() {
    let vfs = MemoryVfs::new();
    vfs.create_dir_all(Path::new("/")).unwrap();
    let path = Path::new("/x");
    let file = written(&vfs, path, b"first");
    file.sync().unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    vfs.fail_at(vfs.operations() + 2, Fault::Eio);
    file.write_at(0, b"later").unwrap();
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(
        vfs.power_loss(PowerLoss::LoseUnsynced).read(path).unwrap(),
        b"first",
        "a failed sync gave up on it"
    );
    assert_eq!(vfs.read(path).unwrap(), b"later");
    file.evict().unwrap();
    assert_eq!(vfs.read(path).unwrap(), b"first");
}

#[test]
fn a_full_disk_refuses_growth_until_there_is_room() {
    let vfs = MemoryVfs::new();
    vfs.create_dir_all(Path::new("/")).unwrap();
    let file = written(&vfs, Path::new("/x"), &[1; 100]);
    vfs.set_capacity(Some(150));
    file.write_at(0, &[2; 100]).unwrap();
    assert_eq!(
        file.set_len(151).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    assert_eq!(
        file.write_at(100, &[2; 51]).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    vfs.set_capacity(None);
    file.write_at(100, &[2; 51]).unwrap();
    assert_eq!(vfs.used_bytes(), 151);
}

#[test]
fn a_flipped_bit_shows_and_stays() {
    let vfs = MemoryVfs::new();
    vfs.create_dir_all(Path::new("/")).unwrap();
    vfs.write_atomic(Path::new("/x"), &[0, 0], 0o600).unwrap();
    vfs.flip_bit(Path::new("/x"), 9).unwrap();
    assert_eq!(
        vfs.power_loss(PowerLoss::LoseUnsynced)
            .read(Path::new("/x"))
            .unwrap(),
        [0, 2]
    );
    assert!(vfs.flip_bit(Path::new("/x"), 16).is_err());
}

#[test]
fn room_is_known_where_something_is_and_nowhere_else() {
    everywhere(|vfs, root| {
        assert!(vfs.space(root).is_err());
        vfs.create_dir_all(root).unwrap();
        let space = vfs.space(root).unwrap();
        assert!(space.free_bytes > 0 && space.free_bytes <= space.total_bytes);
    });
}

#[test]
fn a_small_disk_says_how_much_is_left_of_it() {
    let vfs = MemoryVfs::new();
    let root = Path::new("/data");
    vfs.create_dir_all(root).unwrap();
    written(&vfs, &root.join("x"), &[7; 300]);
    vfs.set_capacity(Some(1000));
    let space = |free_bytes, total_bytes| Space {
        free_bytes,
        total_bytes,
    };
    assert_eq!(vfs.space(root).unwrap(), space(700, 1000));
    vfs.set_capacity(Some(200));
    assert_eq!(vfs.space(root).unwrap(), space(0, 200));
}
