//! Tests of the manifest: what it keeps, and how it counts what was removed.

use heddle_rt::MemoryVfs;

use super::*;

#[test]
fn a_manifest_is_read_as_it_was_written_and_no_flipped_bit_is_believed() {
    let vfs = MemoryVfs::new();
    let dir = Path::new("/m");
    vfs.create_dir_all(dir).unwrap();
    assert_eq!(Manifest::load(&vfs, dir).unwrap(), None);
    let mut manifest = Manifest::new(9);
    (manifest.clean, manifest.floor, manifest.newest) = (true, 50, 40);
    manifest.sealed = 40;
    manifest.remove(3..5);
    manifest.remove(10..20);
    manifest.save(&vfs, dir).unwrap();
    let bytes = vfs.read(&Manifest::path(dir)).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut hurt = bytes.clone();
        hurt[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Manifest::decode(&hurt), Decoded::Damaged);
    }
    for len in 0..bytes.len() {
        assert_eq!(Manifest::decode(&bytes[..len]), Decoded::Damaged);
    }
    let loaded = Manifest::load(&vfs, dir).unwrap();
    assert_eq!(loaded, Some(Decoded::Fine(manifest)));
}

#[test]
fn what_was_removed_grows_together() {
    let mut manifest = Manifest::new(1);
    assert_eq!(manifest.removed_end(), 1);
    manifest.remove(5..8);
    manifest.remove(1..3);
    manifest.remove(3..5);
    manifest.remove(10..12);
    assert_eq!(manifest.removed, [1..8, 10..12]);
    assert!(manifest.has_removed(&(2..8)) && !manifest.has_removed(&(7..9)));
    assert_eq!(manifest.removed_end(), 12);
    assert_eq!(manifest.unexplained(1..8), []);
    assert_eq!(manifest.unexplained(4..20), [8..10, 12..20]);
    assert_eq!(manifest.unexplained(20..22), vec![20..22; 1]);
}
