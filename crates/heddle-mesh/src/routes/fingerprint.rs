//! A hash of what decides which events a consumer wants.
//!
//! It is kept in the journal, so what is hashed, and how, must never change.

use heddle_api::filter::FilterSource;

use super::Feed;

/// FNV-1a, 64 bits.
const START: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(start: u64, text: &str) -> u64 {
    // No UTF-8 text contains the byte that ends each part.
    text.bytes().chain([0xff]).fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(super) fn of_feeds(feeds: &[Feed]) -> u64 {
    feeds.iter().fold(START, |start, feed| {
        let start = hash(start, &feed.entry);
        let start = feed.via.iter().fold(start, |start, hop| hash(start, hop));
        // An empty part ends each feed.
        hash(start, "")
    })
}

/// Feeds, by their hash, and filters.
pub(super) fn of_filters(start: u64, filters: &FilterSource) -> u64 {
    let text = serde_json::to_string(filters).expect("filters have string keys only");
    hash(start, &text)
}
