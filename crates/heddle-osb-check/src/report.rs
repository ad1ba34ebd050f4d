//! What became of a run: every rule that was asked for with its outcome, and how a program reads it.
//!
//! Both renderings are pure. Whatever a broker answered may stand in a message, so each of them is safe for any text.

mod json;
mod junit;

use std::time::Duration;

use jiff::Timestamp;

use crate::ConformanceRule;

/// Every rule that was asked for, in order, also when asking ended early.
#[derive(Debug)]
pub struct Report {
    pub address: String,
    pub started: Timestamp,
    pub elapsed: Duration,
    pub results: Vec<CheckResult>,
    /// Why nothing could be asked at all.
    pub not_started: Option<anyhow::Error>,
    /// Why the rules behind some point were not asked, in words.
    pub interruption: Option<String>,
    /// What was made and could not be removed, and why.
    pub leftovers: Vec<String>,
}

/// How one rule fared.
#[derive(Debug, Clone)]
pub struct CheckResult {
    pub rule: ConformanceRule,
    pub outcome: Outcome,
    pub elapsed: Duration,
}

/// What a broker does about a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Kept,
    /// And what showed it.
    Broken(String),
    /// The catalog has no plan to try it on; what the plan would be like.
    NotApplicable(&'static str),
    /// The broker was not there to be asked, and why.
    NotAsked(String),
}

/// How many rules ended in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    pub kept: u64,
    pub broken: u64,
    pub not_applicable: u64,
    pub not_asked: u64,
}

impl Report {
    #[must_use]
    pub fn counts(&self) -> OutcomeCounts {
        OutcomeCounts::of(&self.results)
    }

    /// For test reporters: JUnit's XML, a suite for each group.
    #[must_use]
    pub fn junit(&self) -> String {
        junit::render(self)
    }

    /// For programs; the shape is described in the README of this crate and only grows.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        json::render(self)
    }
}

impl OutcomeCounts {
    fn of<'a>(results: impl IntoIterator<Item = &'a CheckResult>) -> Self {
        let mut counts = Self::default();
        for result in results {
            *match result.outcome {
                Outcome::Kept => &mut counts.kept,
                Outcome::Broken(_) => &mut counts.broken,
                Outcome::NotApplicable(_) => &mut counts.not_applicable,
                Outcome::NotAsked(_) => &mut counts.not_asked,
            } += 1;
        }
        counts
    }

    /// What reporters call skipped: nobody found out.
    #[must_use]
    pub fn skipped(self) -> u64 {
        self.not_applicable + self.not_asked
    }
}

impl Outcome {
    /// What there is to say about it.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Kept => None,
            Self::Broken(why) => Some(why.clone()),
            Self::NotApplicable(what) => Some(format!("the catalog has no plan {what}")),
            Self::NotAsked(why) => Some(format!("not asked: {why}")),
        }
    }
}

#[cfg(test)]
mod tests;
