//! For the fuzzer: any bytes, taken for a line of a recording.

use serde_json::Value;

use super::line::{ChannelRecord, EventRecord, decode};

/// Any bytes, as a line and as the record of one whose checksum is right: read, or refused with a reason.
///
/// # Panics
/// When the promise does not hold.
pub fn line(soup: &[u8]) {
    let right = std::str::from_utf8(soup).map(|text| {
        let crc = crc32c::crc32c(text.as_bytes());
        format!("{{\"crc32c\":\"{crc:08x}\",\"record\":{text}}}").into_bytes()
    });
    for line in [Ok(soup.to_vec()), right].into_iter().flatten() {
        for why in [
            decode::<Value>(&line).map(drop),
            decode::<ChannelRecord>(&line).map(drop),
            decode::<EventRecord>(&line)
                .and_then(|record| record.event(false))
                .map(drop),
        ] {
            if let Err(why) = why {
                assert!(!why.is_empty());
            }
        }
    }
}
