//! What somebody said about a group of dead letters: that its cause is known, or to be ignored, until when, and why.
//!
//! ```text
//!   POST   groups/{key}/mark   {"as": "known", "note": …, "until": …, "more": 0}
//!   DELETE groups/{key}/mark
//! ```
//! A mark hides nothing. It holds for the letters that were there, and for as many more as it says; with one beyond that, or
//! at its time, the group is open again, and says what it was marked as.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::is_zero;

/// `POST /heddle/v1/dead-letters/groups/{key}/mark`. The key is one of a group by cause, or the name of a letter in it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MarkRequest {
    #[serde(rename = "as")]
    pub kind: MarkKind,
    /// Why, for whoever wonders.
    pub note: String,
    /// Until then; a week from now if nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// So many more of them are expected, and do not open it again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// The last letter that was looked at; those behind it count as newer. The newest, if nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<String>,
}

/// What a group is marked as.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum MarkKind {
    /// Somebody knows the cause and sees to it.
    Known,
    /// Nobody needs to see to it.
    Ignored,
}

impl MarkKind {
    pub const ALL: [Self; 2] = [Self::Known, Self::Ignored];

    /// As in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Ignored => "ignored",
        }
    }
}

/// A mark, and whether it still holds.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct GroupMark {
    /// Of the group.
    pub key: String,
    #[serde(rename = "as")]
    pub kind: MarkKind,
    pub note: String,
    pub by: String,
    pub at: Timestamp,
    pub until: Timestamp,
    /// The name of the last letter that it is about.
    pub up_to: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// How many newer ones rest; no more than one beyond `more` are counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub newer: u64,
    /// Why it no longer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<MarkReopened>,
}

/// Why a mark no longer holds.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum MarkReopened {
    /// More letters came than it allows for.
    Recurred,
    /// Its time is over.
    Expired,
}

impl GroupMark {
    #[must_use]
    pub fn holds(&self) -> bool {
        self.reopened.is_none()
    }

    /// `known until …`, or what it was and why it is no longer; then by whom and why.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (word, by, note) = (self.kind.word(), &self.by, &self.note);
        let until = self.until.strftime("%Y-%m-%d %H:%M UTC");
        match self.reopened {
            None => format!("{word} until {until} ({by}): {note}"),
            Some(MarkReopened::Recurred) => format!("recurred; was {word} ({by}): {note}"),
            Some(MarkReopened::Expired) => {
                format!("open again; was {word} until {until} ({by}): {note}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_json() {
        for kind in MarkKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
    }

    #[test]
    fn a_mark_says_whether_it_holds_and_why_it_was_made() {
        let mut mark = GroupMark {
            key: "cause:trigger/a/b:ff".to_owned(),
            kind: MarkKind::Known,
            note: "fixed in 1.2".to_owned(),
            by: "ada".to_owned(),
            at: "2026-03-01T12:00:00Z".parse().unwrap(),
            until: "2026-03-08T12:00:00Z".parse().unwrap(),
            up_to: "7".to_owned(),
            more: 0,
            newer: 0,
            reopened: None,
        };
        assert!(mark.holds());
        let held = "known until 2026-03-08 12:00 UTC (ada): fixed in 1.2";
        assert_eq!(mark.in_words(), held);
        mark.reopened = Some(MarkReopened::Recurred);
        assert!(!mark.holds());
        assert!(mark.in_words().starts_with("recurred; was known"));
    }
}
