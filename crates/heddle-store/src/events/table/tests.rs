//! Tests of tables: every question against a plain list.

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{Open, Vfs as _};

use super::*;

fn table_of(pairs: &[(u64, u64)], at: u64) -> (MemoryVfs, std::sync::Arc<dyn VfsFile>, Table) {
    let vfs = MemoryVfs::new();
    vfs.create_dir_all("/t".as_ref()).unwrap();
    let file = vfs.open("/t/table".as_ref(), Open::or_create()).unwrap();
    let mut bytes = Vec::new();
    write_table(&mut bytes, 42, pairs);
    let count = pairs.len() as u64;
    assert_eq!(bytes.len() as u64, table_bytes(count).unwrap());
    file.write_at(at, &bytes).unwrap();
    file.sync().unwrap();
    let table = Table {
        at,
        pairs: count,
        seed: 42,
    };
    (vfs, file, table)
}

#[test]
fn a_table_answers_as_a_list_does() {
    for count in [0, 1, 254, 255, 256, 600, 1300] {
        // Each key up to three times, and keys that are not there between them.
        let pairs: Vec<(u64, u64)> = (0..count).map(|n| (n / 3 * 2 + 1, n)).collect();
        let (_vfs, file, table) = table_of(&pairs, 100);
        for key in 0..count + 2 {
            let same = pairs.iter().filter(|(other, _)| *other == key);
            let expected: Vec<u64> = same.map(|(_, value)| *value).collect();
            assert_eq!(table.equal(&*file, key, 9).unwrap(), expected);
            let two: Vec<u64> = expected.iter().copied().take(2).collect();
            assert_eq!(table.equal(&*file, key, 2).unwrap(), two);
            let before = pairs.iter().rfind(|(other, _)| *other <= key).copied();
            assert_eq!(table.at_most(&*file, key).unwrap(), before, "{count} {key}");
        }
    }
}

#[test]
fn many_of_one_key_are_found_over_several_blocks() {
    let pairs: Vec<(u64, u64)> = (0..700).map(|n| (5, n)).collect();
    let (_vfs, file, table) = table_of(&pairs, 0);
    let all: Vec<u64> = (0..700).collect();
    assert_eq!(table.equal(&*file, 5, 1000).unwrap(), all);
    assert_eq!(table.at_most(&*file, 5).unwrap(), Some((5, 699)));
}

#[test]
fn a_damaged_block_a_block_of_another_table_and_a_cut_one_are_noticed() {
    let pairs: Vec<(u64, u64)> = (0..300).map(|n| (n, n)).collect();
    let (vfs, file, table) = table_of(&pairs, 0);
    let other = Table { seed: 43, ..table };
    assert!(matches!(
        other.equal(&*file, 1, 1),
        Err(Unreadable::Damaged(_))
    ));
    vfs.flip_bit("/t/table".as_ref(), (BLOCK_BYTES + 30) * 8)
        .unwrap();
    let answer = table.equal(&*file, 299, 1);
    assert!(matches!(answer, Err(Unreadable::Damaged(BLOCK_BYTES))));
    file.set_len(100).unwrap();
    assert!(matches!(
        table.equal(&*file, 1, 1),
        Err(Unreadable::Damaged(_))
    ));
}

#[test]
fn no_number_of_pairs_is_too_large_to_be_refused() {
    assert_eq!(table_bytes(u64::MAX), None);
    assert_eq!(table_bytes(u64::MAX / 16 + 1), None);
}
