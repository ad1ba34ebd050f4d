//! The `Retry-After` header: how long a destination asks to be left alone.
//!
//! Seconds or a date, as HTTP has it. What is neither says nothing; a date that has passed asks for no wait. How much of
//! a wait is granted is the [`RetryPolicy`](super::retry_policy::RetryPolicy)'s to say.

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use jiff::Timestamp;

/// The wait that `value` asks for, from `now` on.
#[must_use]
pub fn retry_after(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
    let text = value.to_str().ok()?.trim_ascii();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only a number that is too long does not parse, and it certainly means long.
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let wait = date.duration_since(SystemTime::from(now));
    Some(wait.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_nothing_else() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let table = [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("1000000000", Some(1_000_000_000)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("Sun, 01 Mar 2026 12:01:30 GMT", Some(90)),
            ("Sunday, 01-Mar-26 12:01:30 GMT", Some(90)),
            ("Sun Mar  1 12:01:30 2026", Some(90)),
            ("Sun, 01 Mar 2026 11:59:59 GMT", Some(0)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("", None),
            ("-5", None),
            ("1.5", None),
            ("+5", None),
            ("soon", None),
            ("Sun, 99 Mar 2026 12:01:30 GMT", None),
            ("2026-03-01T12:01:30Z", None),
        ];
        for (text, expected) in table {
            let value = HeaderValue::from_str(text).unwrap();
            let expected = expected.map(Duration::from_secs);
            assert_eq!(retry_after(&value, now), expected, "{text:?}");
        }
        let not_text = HeaderValue::from_bytes(b"\xff\xfe").unwrap();
        assert_eq!(retry_after(&not_text, now), None);
    }
}
