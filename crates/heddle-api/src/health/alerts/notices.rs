//! Who is to be told that an alert fires, or does no longer: each change once, in its order, until it was taken.
//!
//! ```text
//!   alerts that fire ──> changes ──> waiting, oldest first ──taken──> forgotten
//!         └─ known to fire: what was said of each, so that a restart neither repeats nor forgets it
//! ```
//! All of it is one value that can be written down. A notice has the same id each time that it is sent.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::told::{AlertList, AlertState, ToldAlert};

/// The type of the event that tells of a change.
pub const TYPE: &str = "dev.heddle.alert.v1";
/// Where it comes from.
pub const SOURCE: &str = "/heddle/alerts";
/// Notices that wait to be taken. With more, those go first that cancel each other out, then the oldest.
const WAITING_MAX: usize = 1_000;

/// What changed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum AlertChange {
    Firing,
    Resolved,
}

impl AlertChange {
    const fn name(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}

/// One change that somebody is to be told.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AlertNotice {
    /// The same however often it is sent.
    pub id: String,
    pub change: AlertChange,
    /// When it was noticed.
    pub at: Timestamp,
    pub alert: ToldAlert,
}

/// What was told, and what is to be told.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct AlertNotices {
    /// Alerts that are known to fire, by rule and labels.
    firing: BTreeMap<String, ToldAlert>,
    waiting: VecDeque<AlertNotice>,
    /// Notices that were never taken, since there were too many.
    pub dropped: u64,
}

impl AlertNotices {
    /// Notices what changed since the last look; whether anything did. An alert that only holds, and does not fire yet, says
    /// nothing new, and neither does one that is gone as long as `may_resolve` is not set.
    pub fn look(&mut self, list: &AlertList, now: Timestamp, may_resolve: bool) -> bool {
        let held: BTreeMap<String, &ToldAlert> =
            list.items.iter().map(|alert| (key(alert), alert)).collect();
        let mut changes = Vec::new();
        for (key, alert) in &held {
            if alert.state == AlertState::Firing && !self.firing.contains_key(key) {
                self.firing.insert(key.clone(), (*alert).clone());
                changes.push((AlertChange::Firing, (*alert).clone()));
            }
        }
        if may_resolve {
            let known = std::mem::take(&mut self.firing);
            for (key, alert) in known {
                match held.contains_key(&key) {
                    true => drop(self.firing.insert(key, alert)),
                    false => changes.push((AlertChange::Resolved, alert)),
                }
            }
        }
        let any = !changes.is_empty();
        for (change, alert) in changes {
            self.wait(AlertNotice {
                id: id(change, &alert),
                change,
                at: now,
                alert,
            });
        }
        any
    }

    /// The oldest notice that nobody has taken.
    #[must_use]
    pub fn next(&self) -> Option<&AlertNotice> {
        self.waiting.front()
    }

    /// It was taken, or will never be.
    pub fn forget(&mut self, id: &str) {
        self.waiting.retain(|notice| notice.id != id);
    }

    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn wait(&mut self, notice: AlertNotice) {
        if self.waiting.len() >= WAITING_MAX {
            self.make_room();
        }
        self.waiting.push_back(notice);
    }

    /// An alert that fired and was resolved while nobody listened is the least that anybody misses.
    fn make_room(&mut self) {
        let resolved = self.waiting.iter();
        let resolved = resolved.filter(|notice| notice.change == AlertChange::Resolved);
        let over: BTreeSet<String> = resolved
            .map(|notice| id(AlertChange::Firing, &notice.alert))
            .collect();
        let over = self.waiting.iter().find(|notice| over.contains(&notice.id));
        let gone = match over {
            Some(firing) => vec![firing.id.clone(), id(AlertChange::Resolved, &firing.alert)],
            None => self
                .next()
                .map(|notice| notice.id.clone())
                .into_iter()
                .collect(),
        };
        let before = self.waiting.len();
        self.waiting.retain(|notice| !gone.contains(&notice.id));
        self.dropped += (before - self.waiting.len()) as u64;
    }
}

impl AlertNotice {
    /// As a CloudEvent in its JSON format.
    #[must_use]
    pub fn event(&self) -> Value {
        json!({
            "specversion": "1.0",
            "type": TYPE,
            "source": SOURCE,
            "id": self.id,
            "subject": self.alert.name,
            "time": self.at,
            "datacontenttype": "application/json",
            "data": {"change": self.change, "alert": self.alert},
        })
    }
}

/// What tells an alert from all others that may fire at the same time.
fn key(alert: &ToldAlert) -> String {
    json!([alert.name, alert.labels]).to_string()
}

/// Of the time since it holds there is one of each change.
fn id(change: AlertChange, alert: &ToldAlert) -> String {
    let digest = Sha256::digest(key(alert));
    let digest: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let since = alert.since.as_millisecond();
    format!("{}-{digest}-{since}-{}", alert.name, change.name())
}
