//! Numbers of things, in words.

use std::fmt::Display;

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
