//! Numbers, times and spans, as people read them.

use std::time::Duration;

use heddle_api::span;
use jiff::Timestamp;
use maud::{Markup, html};

/// `1204551` as `1,204,551`.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// In the unit that fits.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut rest = count as f64;
    let mut unit = "B";
    for next in units {
        if rest < 999.5 {
            break;
        }
        rest /= 1000.0;
        unit = next;
    }
    let decimals = usize::from(rest < 9.95);
    format!("{rest:.decimals$} {unit}")
}

/// How long ago; nothing is in the future, whatever two clocks say.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let age = Duration::try_from(now.duration_since(at)).unwrap_or_default();
    if age < Duration::from_secs(1) {
        return "just now".to_owned();
    }
    format!("{} ago", span(age))
}

/// A moment of the day, in UTC to the millisecond; the script shows the viewer's own time beside it.
pub(crate) fn time(at: Timestamp) -> Markup {
    let clock = at.strftime("%H:%M:%S%.3f").to_string();
    html! { time datetime=(at) title=(at) { (clock) } }
}

/// When something began, as a span until now.
pub(crate) fn since(at: Timestamp, now: Timestamp) -> Markup {
    html! { time data-ago datetime=(at) title=(at) { (ago(at, now)) } }
}

/// A span of seconds.
pub(crate) fn seconds(seconds: f64) -> String {
    span(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// At most so many characters, the rest as an ellipsis.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    let kept: String = text
        .chars()
        .take(characters_max.saturating_sub(1))
        .collect();
    kept + "…"
}

/// With a capital letter.
pub(crate) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_of_three() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1000), "1,000");
        assert_eq!(number(1_204_551), "1,204,551");
        assert_eq!(number(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn bytes_are_in_the_unit_that_fits() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1234), "1.2 kB");
        assert_eq!(bytes(48_211), "48 kB");
        assert_eq!(bytes(999_600), "1.0 MB");
        assert_eq!(bytes(u64::MAX), "18447 PB");
    }

    #[test]
    fn what_is_too_long_ends_with_an_ellipsis() {
        assert_eq!(shortened("orders", 6), "orders");
        assert_eq!(shortened("über-orders", 5), "über…");
    }
}
