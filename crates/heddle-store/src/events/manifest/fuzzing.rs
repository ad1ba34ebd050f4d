//! For the fuzzer: any bytes, taken for the manifest of a log.

use super::{Decoded, LAYOUT, MAGIC, Manifest};

/// Any bytes are a manifest or are damaged, also when their checksum holds. What is one can be asked, and written again.
///
/// # Panics
/// When the promise does not hold.
pub fn manifest(soup: &[u8]) {
    Manifest::decode(soup);
    let summed = [&LAYOUT.to_le_bytes()[..], soup].concat();
    let crc = crc32c::crc32c(&summed).to_le_bytes();
    let whole = [&MAGIC.to_le_bytes()[..], &crc, &summed].concat();
    let Decoded::Fine(mut manifest) = Manifest::decode(&whole) else {
        return;
    };
    assert_eq!(
        Manifest::decode(&manifest.encode()),
        Decoded::Fine(manifest.clone())
    );
    for range in [1..2, 1..u64::MAX, u64::MAX - 1..u64::MAX] {
        let left = manifest.unexplained(range.clone());
        let inside = |it: &std::ops::Range<u64>| range.start <= it.start && it.end <= range.end;
        assert!(left.iter().all(inside), "{left:?} of {range:?}");
    }
    manifest.remove(10..20);
    assert!(manifest.has_removed(&(10..20)) && manifest.removed_end() >= 20);
}
