//! Why did nothing arrive between two moments? The answer, and what people are told of it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::counted;
use crate::ledger::ExplainedEvent;

/// `GET /heddle/v1/silence?consumer=&since=&until=`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Silence {
    /// `trigger/team-a/orders`.
    pub consumer: String,
    pub since: Timestamp,
    pub until: Timestamp,
    /// The part of the log that was accepted in that time.
    pub from: u64,
    pub before: u64,
    /// Nothing before this place was looked at, where that would have been too much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_back_to: Option<u64>,
    /// Events that reached it, so that its filter decided; and how many of them it wanted.
    pub came: u64,
    pub matched: u64,
    /// Events that whoever asks may see and that led elsewhere.
    pub elsewhere: u64,
    /// Why its filter did not let the others pass: the fewest failing terms first, then the most events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<MissGroup>,
    /// The smallest changes that would have matched some of them, the most likely first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<FilterEdit>,
    /// Filters that came into force in that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<FilterRevision>,
    /// Why nothing is sent to it now, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// What of its namespace is not in force now, and why: links that no policy allows among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// Events that missed by the same terms.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MissGroup {
    /// All terms that do not hold; none stands for ways to miss that were too many to tell apart.
    pub terms: Vec<String>,
    pub count: u64,
    /// The newest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<ExplainedEvent>,
}

/// A text of the filter that would have matched if it were another.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FilterEdit {
    pub attribute: String,
    /// `exact`, `prefix` or `suffix`.
    pub dialect: String,
    /// As the filter has it.
    pub asked: String,
    /// What it would have to be.
    pub instead: String,
    /// How many events would have matched.
    pub matches: u64,
}

/// A filter that came into force.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FilterRevision {
    /// It decides from this place of the log on.
    pub from: u64,
    pub generation: i64,
    /// Its terms, in words.
    pub terms: Vec<String>,
}

impl FilterEdit {
    /// `93 events if type were "order.created.v2"`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let verb = match &*self.dialect {
            "prefix" => "had to start with",
            "suffix" => "had to end with",
            _ => "were",
        };
        format!(
            "{} if {} {verb} {:?} instead of {:?}",
            counted(self.matches, "event"),
            self.attribute,
            self.instead,
            self.asked
        )
    }
}

impl Silence {
    /// The most that can be said of it, the most likely first.
    #[must_use]
    pub fn in_words(&self) -> Vec<String> {
        let mut told = Vec::new();
        match (self.came, self.matched) {
            (0, _) if self.elsewhere == 0 => {
                told.push("nothing was published in that time that you may see".to_owned());
            }
            (0, _) => told.push(format!(
                "nothing reached it: {} in that time led elsewhere",
                counted(self.elsewhere, "event")
            )),
            (came, 0) => told.push(format!("{} reached it, and its filter let none pass", counted(came, "event"))),
            (came, matched) => told.push(format!(
                "{} reached it and {matched} passed its filter: what became of those, its account and their traces say",
                counted(came, "event")
            )),
        }
        let edits = self.edits.iter();
        told.extend(edits.map(|edit| format!("it would have been {}", edit.in_words())));
        told.extend(self.revisions.iter().map(|revision| {
            let terms = match revision.terms.is_empty() {
                true => "every event".to_owned(),
                false => revision.terms.join("; "),
            };
            format!(
                "from place {} of the log on its filter was generation {}: {terms}",
                revision.from, revision.generation
            )
        }));
        told.extend((self.held.iter()).map(|held| format!("nothing is sent to it now: {held}")));
        let faults = self.faults.iter();
        told.extend(faults.map(|fault| format!("not in force now: {fault}")));
        if let Some(place) = self.looked_back_to {
            told.push(format!(
                "nothing before place {place} of the log was looked at; ask for less time"
            ));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_likely_is_told_first() {
        let edit = FilterEdit {
            attribute: "type".to_owned(),
            dialect: "exact".to_owned(),
            asked: "order.created".to_owned(),
            instead: "order.created.v2".to_owned(),
            matches: 93,
        };
        let mut silence = Silence {
            came: 120,
            edits: vec![edit],
            held: Some("it is paused".to_owned()),
            ..Silence::default()
        };
        assert_eq!(
            silence.in_words(),
            [
                "120 events reached it, and its filter let none pass",
                "it would have been 93 events if type were \"order.created.v2\" instead of \"order.created\"",
                "nothing is sent to it now: it is paused",
            ]
        );
        silence = Silence::default();
        assert!(silence.in_words()[0].starts_with("nothing was published"));
        silence.elsewhere = 1;
        assert!(silence.in_words()[0].contains("1 event in that time led elsewhere"));
    }
}
