//! What a text of a filter would have to be so that it matches: values that were found, weighed by how many events have them
//! and by how little they differ from what was asked for. Pure.

use std::collections::HashMap;

use heddle_api::silence::FilterEdit;

use crate::path::trigger::{AskedText, TextPlace};

/// Values that are told apart; how a filter came to be mistyped is seen in the first few.
const VALUES_MAX: usize = 1_000;
/// A longer text is nobody's typing error, and comparing costs the product of two lengths.
const TEXT_CHARS_MAX: usize = 128;
/// By so much a start or an end that is meant may be longer or shorter than the one that was typed.
const SLACK_CHARS: usize = 2;
/// What each further difference takes away from how likely a change is.
const WEIGHT: f64 = 0.25;

/// Values that kept events from matching by one term alone, and how many events have each.
#[derive(Debug)]
pub(super) struct NearMisses {
    asked: AskedText,
    asked_chars: usize,
    found: HashMap<String, u64>,
}

/// A change, and how likely it is the one that was meant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WeighedEdit {
    pub(super) edit: FilterEdit,
    pub(super) weight: f64,
}

impl NearMisses {
    pub(super) fn new(asked: AskedText) -> Self {
        Self {
            asked_chars: asked.text.chars().count(),
            asked,
            found: HashMap::new(),
        }
    }

    pub(super) fn attribute(&self) -> &str {
        &self.asked.attribute
    }

    /// Counts an event that has this value. What does not matter for the comparison is left away.
    pub(super) fn count(&mut self, value: &str) {
        let kept = self.asked_chars + SLACK_CHARS;
        let part = match self.asked.place {
            TextPlace::Whole => value,
            TextPlace::Start => start(value, kept),
            TextPlace::End => end(value, kept),
        };
        let is_long = self.asked_chars > TEXT_CHARS_MAX || part.chars().count() > TEXT_CHARS_MAX;
        if let Some(count) = self.found.get_mut(part) {
            *count += 1;
        } else if !is_long && self.found.len() < VALUES_MAX {
            self.found.insert(part.to_owned(), 1);
        }
    }

    /// The most likely change, if any value is like what was asked for.
    pub(super) fn edit(&self) -> Option<WeighedEdit> {
        let candidates = self.found.keys().filter_map(|value| self.candidate(value));
        let weighed = candidates.map(|(instead, differences)| {
            let matches = self.matches(instead);
            let weight =
                matches as f64 * WEIGHT.powi(i32::try_from(differences).unwrap_or(i32::MAX));
            (weight, matches, instead)
        });
        // The same answer each time: of two that are alike the first in order.
        let best = weighed
            .max_by(|one, other| (one.0.total_cmp(&other.0)).then_with(|| other.2.cmp(one.2)));
        let (weight, matches, instead) = best?;
        let edit = FilterEdit {
            attribute: self.asked.attribute.to_string(),
            dialect: match self.asked.place {
                TextPlace::Whole => "exact",
                TextPlace::Start => "prefix",
                TextPlace::End => "suffix",
            }
            .to_owned(),
            asked: self.asked.text.to_string(),
            instead: instead.to_owned(),
            matches,
        };
        Some(WeighedEdit { edit, weight })
    }

    /// What of a value is most like what was asked for, and in how many letters it differs.
    fn candidate<'a>(&self, value: &'a str) -> Option<(&'a str, usize)> {
        let asked = &*self.asked.text;
        let lengths =
            self.asked_chars.saturating_sub(SLACK_CHARS).max(1)..=self.asked_chars + SLACK_CHARS;
        let parts: Vec<&str> = match self.asked.place {
            TextPlace::Whole => vec![value],
            TextPlace::Start => lengths.map(|length| start(value, length)).collect(),
            TextPlace::End => lengths.map(|length| end(value, length)).collect(),
        };
        let measured = parts
            .into_iter()
            .map(|part| (part, differences(asked, part)));
        // Of two that are alike the one that people write, which ends where a name does; then the shorter, which matches more.
        let order = |part: &str, differ| (differ, !self.ends_at_name(part), part.len());
        let (part, differ) = measured.min_by_key(|(part, differ)| order(part, *differ))?;
        let longer = self.asked_chars.max(part.chars().count());
        let is_like = differ > 0 && differ * 2 <= longer + SLACK_CHARS;
        (is_like && !part.is_empty()).then_some((part, differ))
    }

    /// Whether a start ends, or an end starts, with what stands between two names: a dot, a slash, a hyphen.
    fn ends_at_name(&self, part: &str) -> bool {
        let border = match self.asked.place {
            TextPlace::Whole => None,
            TextPlace::Start => part.chars().next_back(),
            TextPlace::End => part.chars().next(),
        };
        border.is_some_and(|border| !border.is_alphanumeric())
    }

    /// How many of the events would have matched.
    fn matches(&self, text: &str) -> u64 {
        let is_matched = |value: &str| match self.asked.place {
            TextPlace::Whole => value == text,
            TextPlace::Start => value.starts_with(text),
            TextPlace::End => value.ends_with(text),
        };
        let matched = self.found.iter().filter(|(value, _)| is_matched(value));
        matched.map(|(_, count)| count).sum()
    }
}

/// The first so many characters.
fn start(text: &str, characters: usize) -> &str {
    let end = text.char_indices().nth(characters);
    end.map_or(text, |(end, _)| &text[..end])
}

/// The last so many characters.
fn end(text: &str, characters: usize) -> &str {
    if characters == 0 {
        return "";
    }
    let start = text.char_indices().rev().nth(characters - 1);
    start.map_or(text, |(start, _)| &text[start..])
}

/// In how many letters two texts differ: one more, one less, another one, or two that changed places.
pub(super) fn differences(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut last: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = Vec::with_capacity(other.len() + 1);
        current.push(row + 1);
        for (column, wanted) in other.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != wanted);
            let mut least = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let swapped =
                row > 0 && column > 0 && *letter == other[column - 1] && one[row - 1] == *wanted;
            if swapped {
                least = least.min(last[column - 1] + 1);
            }
            current.push(least);
        }
        last = above;
        above = current;
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(place: TextPlace, asked: &str, found: &[(&str, u64)]) -> Option<(String, u64)> {
        let mut misses = NearMisses::new(AskedText {
            attribute: "type".into(),
            text: asked.into(),
            place,
        });
        for (value, count) in found {
            (0..*count).for_each(|_| misses.count(value));
        }
        let found = misses.edit()?.edit;
        Some((found.instead, found.matches))
    }

    #[test]
    fn differences_are_those_that_people_make() {
        for (one, other, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("order", "order", 0),
            ("oredr", "order", 1),
            ("orderr", "order", 1),
            ("ordor", "order", 1),
            ("order", "üser", 3),
            ("created", "cancelled", 5),
        ] {
            assert_eq!(differences(one, other), expected, "{one} {other}");
            assert_eq!(differences(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn what_was_meant_is_frequent_and_like_what_was_typed() {
        use TextPlace::{End, Start, Whole};
        let some = |text: &str, count| Some((text.to_owned(), count));
        let types = [
            ("order.created", 93),
            ("order.cancelled", 200),
            ("user.created", 500),
            ("payment.settled", 2_000),
            ("order.creates", 1),
        ];
        assert_eq!(
            edit(Whole, "order.craeted", &types),
            some("order.created", 93)
        );
        assert_eq!(
            edit(Whole, "order.created.v2", &types),
            some("order.created", 93)
        );
        assert_eq!(edit(Start, "ordr.", &types), some("order.", 294));
        assert_eq!(edit(Start, "usr.", &types), some("user.", 500));
        assert_eq!(edit(End, ".setled", &types), some(".settled", 2_000));
        assert_eq!(edit(Start, "orderx", &types), some("order.", 294));
        assert_eq!(edit(Start, "order.x", &types), some("order.", 294));
        assert_eq!(edit(End, "x.settled", &types), some(".settled", 2_000));
        assert_eq!(edit(Whole, "invoice", &types), None, "nothing is like it");
        assert_eq!(edit(Whole, "x", &[]), None);
        assert_eq!(edit(Start, "ü", &[("ö.x", 2)]), some("ö", 2));
        let long = "x".repeat(TEXT_CHARS_MAX + 1);
        assert_eq!(edit(Whole, "x", &[(&long, 5)]), None);
    }

    #[test]
    fn values_are_told_apart_up_to_a_bound() {
        let mut misses = NearMisses::new(AskedText {
            attribute: "id".into(),
            text: "0".into(),
            place: TextPlace::Whole,
        });
        for number in 0..2 * VALUES_MAX {
            misses.count(&number.to_string());
        }
        assert_eq!(misses.found.len(), VALUES_MAX);
    }
}
