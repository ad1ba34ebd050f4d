//! For the fuzzer: any bytes, taken for the headers with which a destination asks to wait or consents.

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;

use super::said::{self, Said};
use crate::path::delivery::retry_after::retry_after;
use crate::routes::Webhook;

/// Three lines: how long to wait, whose events are allowed, and at what rate.
///
/// # Panics
/// When the promise does not hold.
pub fn headers(soup: &[u8]) {
    let mut lines = soup.split(|byte| *byte == b'\n');
    let mut headers = HeaderMap::new();
    for name in [
        "retry-after",
        "webhook-allowed-origin",
        "webhook-allowed-rate",
    ] {
        if let Some(Ok(value)) = lines.next().map(HeaderValue::from_bytes) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    if let Some(value) = headers.get("retry-after") {
        for now in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
            let _wait = retry_after(value, now);
        }
    }
    let webhook = Webhook {
        origin: "heddle.example.com".to_owned(),
        rate: Some(60),
    };
    match said::read(200, &headers, &webhook) {
        Said::Yes { rate } => assert!(rate.is_none_or(|rate| rate > 0)),
        Said::No(why) | Said::Nothing(why) => assert!(!why.is_empty() && why.len() < 1024),
    }
}
