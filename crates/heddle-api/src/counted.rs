//! Numbers of things and spans of time, in words.

use std::fmt::Display;
use std::time::Duration;

/// `1 event`, `2 events`, `3 registries`. The noun is regular.
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    if number == N::from(1) {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{number} {stem}ies"),
        _ => format!("{number} {noun}s"),
    }
}

/// The same with a verb behind it that only tells one from many: `1 binding goes`, `2 bindings go`.
pub fn counted_that<N>(number: N, noun: &str, one: &str, many: &str) -> String
where
    N: Display + PartialEq + From<u8>,
{
    let verb = if number == N::from(1) { one } else { many };
    format!("{} {verb}", counted(number, noun))
}

/// How long something took, in the unit that fits.
#[must_use]
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration.as_millis() < 10 => format!("{:.2} ms", duration.as_secs_f64() * 1000.0),
        0 => format!("{} ms", duration.as_millis()),
        1..=9 => format!("{:.1} s", duration.as_secs_f64()),
        10..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_everything_else_is_many() {
        assert_eq!(counted(0_u64, "event"), "0 events");
        assert_eq!(counted(1_u64, "event"), "1 event");
        assert_eq!(counted(2_usize, "dead letter"), "2 dead letters");
        assert_eq!(counted(3_i64, "registry"), "3 registries");
        assert_eq!(counted(2_u32, "day"), "2 days");
        assert_eq!(counted_that(1_u64, "object", "is", "are"), "1 object is");
        assert_eq!(counted_that(2_u64, "object", "is", "are"), "2 objects are");
    }
}
