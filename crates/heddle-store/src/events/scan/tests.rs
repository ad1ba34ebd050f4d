//! Tests of the walk: what counts as a record, and what does not however much it looks like one.

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{Open, Vfs as _};

use super::super::format::{payload_checksum, write_record};
use super::*;

const MARK: u32 = 0x5eed_0001;

/// Records with these offsets, chained as they come.
fn records(offsets: &[u64], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chain = 0;
    for offset in offsets {
        chain = append(&mut bytes, *offset, chain, payload);
    }
    bytes
}

fn append(bytes: &mut Vec<u8>, offset: u64, chain: u32, payload: &[u8]) -> u32 {
    let parts = [payload, b"".as_slice()];
    let head = Head {
        crc: payload_checksum(&parts),
        length: u32::try_from(payload.len()).unwrap(),
        chain,
        offset,
        at: 0,
        key: 0,
        stream: 0,
        index: 0,
        more: 0,
    };
    write_record(bytes, MARK, &head, &parts)
}

/// `3` for a record, `4..6` for a hole, through windows of a few sizes.
fn told(bytes: &[u8], offsets: Range<u64>) -> Vec<String> {
    let tell = |window_bytes| {
        let vfs = MemoryVfs::new();
        vfs.create_dir_all("/s".as_ref()).unwrap();
        let file = vfs.open("/s/s".as_ref(), Open::or_create()).unwrap();
        file.write_at(0, bytes).unwrap();
        let mut scanner = Scanner::new(Scope {
            file: &*file,
            mark: MARK,
            positions: 0..bytes.len() as u64,
            offsets: offsets.clone(),
            chain: Some(0),
            window_bytes,
        });
        let mut told = Vec::new();
        while let Some(found) = scanner.next().unwrap() {
            told.push(match found {
                Found::Record(located) => located.head.offset.to_string(),
                Found::Hole(hole) => format!("{:?}", hole.offsets),
            });
        }
        told
    };
    let whole = tell(1 << 20);
    for window_bytes in [1, 64, 100] {
        assert_eq!(tell(window_bytes), whole);
    }
    whole
}

#[test]
fn sound_records_are_found_up_to_the_limit() {
    let bytes = records(&[3, 4, 5], b"payload");
    assert_eq!(told(&bytes, 3..u64::MAX), ["3", "4", "5"]);
    assert_eq!(told(&bytes, 3..5), ["3", "4"]);
    assert_eq!(told(&[], 3..5), [""; 0]);
}

#[test]
fn a_damaged_record_is_a_hole_between_its_neighbours() {
    let mut bytes = records(&[1, 2, 3], b"payload");
    bytes[64 + 57] ^= 1;
    assert_eq!(told(&bytes, 1..u64::MAX), ["1", "2..3", "3"]);
}

#[test]
fn a_length_that_lies_does_not_swallow_the_records_behind() {
    let mut bytes = records(&[1, 2, 3, 4], b"payload");
    bytes[64 + 8] = 200;
    assert_eq!(told(&bytes, 1..u64::MAX), ["1", "2..3", "3", "4"]);
}

#[test]
fn a_record_of_the_future_does_not_fit_into_the_hole_before_it() {
    let mut bytes = records(&[1, 2], b"payload");
    bytes[64 + 57] ^= 1;
    append(&mut bytes, 900, 0, b"payload");
    assert_eq!(told(&bytes, 1..u64::MAX), ["1"]);
}

#[test]
fn a_stale_record_does_not_chain() {
    let mut bytes = records(&[1, 2], b"payload");
    // As if the second place still held what was there before.
    let mut stale = Vec::new();
    append(&mut stale, 2, 0xdead, b"payload");
    bytes.truncate(64);
    bytes.extend(stale);
    assert_eq!(told(&bytes, 1..u64::MAX), ["1"]);
}

#[test]
fn zeroes_and_what_follows_them_are_told_apart() {
    let mut bytes = records(&[1], b"payload");
    bytes.resize(5000, 0);
    assert_eq!(told(&bytes, 1..u64::MAX), ["1"]);
    let mut chain = 0;
    for offset in [40, 41] {
        chain = append(&mut bytes, offset, chain, b"payload");
    }
    assert_eq!(told(&bytes, 1..u64::MAX), ["1", "2..40", "40", "41"]);
}
