//! For the fuzzer: any bytes, taken for a record of the resource store.

use super::{
    Encoder, HEADER_BYTES, decode_key, decode_meta, decode_object, decode_tombstone, encode_key,
    encode_meta, encode_tombstone, reencode_object,
};
use crate::Key;
use crate::sample::Samples;

/// Any bytes are a record or are refused, also when their checksum holds. What is one stays the same when it is written again.
///
/// # Panics
/// When the promise does not hold.
pub fn record(soup: &[u8]) {
    let samples = Samples::default();
    let key = encode_key(&Key::new("triggers", "team-a", "orders"));
    drop(decode_object(&key, soup, &samples));
    drop(decode_tombstone(7, soup));
    decode_meta(soup).ok();
    if let Ok(key) = decode_key(soup) {
        assert_eq!(encode_key(&key), soup);
    }
    if let Ok(object) = decode_object(&key, &sealed(&key, soup), &samples) {
        let written = reencode_object(&object);
        let again = decode_object(&key, &written, &samples).expect("it was just written");
        assert_eq!(again, object);
    }
    if let Ok(tombstone) = decode_tombstone(7, &sealed(&7_u64.to_le_bytes(), soup)) {
        let written = encode_tombstone(&tombstone);
        let again = decode_tombstone(tombstone.version.get(), &written);
        assert_eq!(again, Ok(tombstone));
    }
    let whole = sealed(b"meta", soup);
    if let Ok(meta) = decode_meta(&whole)
        && meta.format <= super::FORMAT
    {
        assert_eq!(encode_meta(&meta), whole);
    }
}

/// With the header that makes it sound.
fn sealed(key: &[u8], payload: &[u8]) -> bytes::Bytes {
    let bytes = [&[0; HEADER_BYTES], payload].concat();
    Encoder { bytes }.seal(key)
}
