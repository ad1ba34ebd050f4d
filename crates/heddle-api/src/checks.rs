//! What `heddle doctor` looks at: one table of checks, each with an id that is never given to another.
//!
//! A finding is made by a check of this table and by nothing else; the reference in `docs/reference/checks.md` is written from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a check is about.
#[derive(
    Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum CheckCategory {
    /// The process.
    Server,
    /// The log, the journal and the accounts.
    Events,
    /// Triggers and Subscriptions, and whom they send to.
    Consumers,
    /// Objects and their conditions.
    Resources,
    /// What flows need and share.
    Flows,
    /// What platforms asked for.
    Operations,
}

impl CheckCategory {
    /// All of them, in the order of an event's way.
    pub const ALL: [Self; 6] = [
        Self::Server,
        Self::Events,
        Self::Consumers,
        Self::Resources,
        Self::Flows,
        Self::Operations,
    ];

    /// As it is spelled on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Events => "events",
            Self::Consumers => "consumers",
            Self::Resources => "resources",
            Self::Flows => "flows",
            Self::Operations => "operations",
        }
    }
}

/// One thing that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoctorCheck {
    /// `HD-` and three digits.
    pub id: &'static str,
    pub category: CheckCategory,
    /// What must hold.
    pub holds: &'static str,
    /// What it means when it does not.
    pub otherwise: &'static str,
}

impl DoctorCheck {
    /// Where it is explained, below the root of the documentation.
    #[must_use]
    pub fn link(&self) -> String {
        format!("docs/reference/checks.md#{}", self.id.to_lowercase())
    }
}

/// How bad a finding is.
#[derive(
    Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum FindingLevel {
    /// Somebody must act.
    Bad,
    /// Somebody should look.
    Warn,
    /// All is well.
    Ok,
}

/// What a check found, for machines.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckFinding {
    /// Id of the check.
    pub id: String,
    pub category: CheckCategory,
    pub level: FindingLevel,
    /// The object, or the part of the server.
    pub about: String,
    /// What was found.
    pub what: String,
    /// What to do; empty when there is nothing to do.
    pub remedy: String,
    /// Where the check is explained.
    pub link: String,
}

/// Everything that was found.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// The worst first.
    pub findings: Vec<CheckFinding>,
}

macro_rules! checks {
    ($($name:ident = $id:literal $category:ident $holds:literal, $otherwise:literal;)*) => {
        $(#[doc = $holds] pub const $name: DoctorCheck = DoctorCheck {
            id: $id, category: CheckCategory::$category, holds: $holds, otherwise: $otherwise,
        };)*

        /// All checks, by their ids.
        pub const ALL: &[DoctorCheck] = &[$($name),*];
    };
}

checks! {
    SERVER_READY = "HD-001" Server "The server is ready for work.",
        "The disk of the resources or of the events is full or has failed, or a part has not started yet; `/readyz` says the same.";
    ACCOUNTS_READABLE = "HD-010" Events "The accounts of events can be read.",
        "Nothing can be said about events; the log of the server tells why.";
    LOG_SERVING = "HD-011" Events "Events are accepted.",
        "The disk of the events is full or has failed, and publishers are refused. What was accepted is safe.";
    LOG_ROOM = "HD-012" Events "There is at least twice the room that events need.",
        "Events are refused before long unless somebody makes room or a backlog shrinks.";
    LOG_UNDAMAGED = "HD-013" Events "No record of the log is damaged.",
        "The disk returned other bytes than were written. Damaged records are kept aside; all others are served.";
    JOURNAL_UNDAMAGED = "HD-014" Events "The journal has lost nothing.",
        "Records were unreadable in both copies; events whose end may have been in them were delivered again.";
    MATCHING_UP_TO_DATE = "HD-015" Events "Matching keeps up with publishing.",
        "Events are safe and wait to be matched with triggers: the machine is too busy, or matching has stopped.";
    BALANCED = "HD-016" Events "Every matched event is delivered, dead-lettered, expired, removed or pending.",
        "An event may have ended in no way at all, which is a fault of heddle.";
    NOTHING_LOST = "HD-017" Events "The disk has lost no event.",
        "Nobody knows what became of some events: the journal lost it, and the log no longer has them.";
    DISK_LASTS = "HD-018" Events "The disk of the events is not full within a day if it goes on so.",
        "Room was taken for some minutes so fast that events are refused before long.";
    NOT_HELD = "HD-020" Consumers "Whatever waits is sent.",
        "A consumer is paused, or its subscriber is gone or has not consented, or outcomes cannot be written down.";
    NO_DEAD_LETTERS = "HD-021" Consumers "No event rests as a dead letter.",
        "Attempts were given up; the events are kept until somebody redrives or discards them.";
    NO_DEAD_REPLIES = "HD-022" Consumers "No reply rests.",
        "Events were delivered, and what their subscriber answered could not go on.";
    NOTHING_OLD = "HD-023" Consumers "No event has waited for ten minutes.",
        "A subscriber is slow or fails, and its events are tried again with growing pauses.";
    RETRIES_LAST = "HD-024" Consumers "No event runs out of attempts.",
        "Attempts at an event fail; when it has no more left, it becomes a dead letter.";
    OBJECTS_READY = "HD-030" Resources "Every object is ready.",
        "A condition of the object says what is missing.";
    BROKER_THERE = "HD-040" Flows "A namespace with a flow has the Broker that the flow asks for.",
        "Controllers did not make it; their errors are in the log of the server.";
    ONE_LINK = "HD-041" Flows "One link leads from an application to a namespace.",
        "With several of them events arrive more than once.";
    NO_LINK_LEFT = "HD-042" Flows "No link outlives its flows.",
        "Events go where nobody asks for them any more.";
    LINK_THERE = "HD-043" Flows "A flow that is ready has its link.",
        "The flow says that events arrive, and none can. That is a fault of heddle.";
    NO_ACTIVATION_LEFT = "HD-044" Flows "No EventActivation outlives its flows.",
        "It shows what is no longer there.";
    NO_POLICY_LEFT = "HD-045" Flows "No EventPolicy of heddle outlives its flows.",
        "It lets in what is no longer there.";
    OPERATIONS_END = "HD-050" Operations "An accepted operation ends by its deadline.",
        "Controllers do not run, or something that the operation needs never comes.";
    GENERATIONS_EXIST = "HD-051" Operations "No status speaks of a generation that does not exist.",
        "That is a fault of heddle.";
}

/// The check with that id.
#[must_use]
pub fn find(id: &str) -> Option<&'static DoctorCheck> {
    ALL.iter().find(|check| check.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_in_order_and_of_one_form() {
        let ids: Vec<&str> = ALL.iter().map(|check| check.id).collect();
        let sorted: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids, sorted.into_iter().collect::<Vec<_>>());
        for check in ALL {
            let digits = check.id.strip_prefix("HD-").unwrap();
            assert!(
                digits.len() == 3 && digits.parse::<u16>().is_ok(),
                "{digits}"
            );
            assert_eq!(find(check.id), Some(check));
            assert!(check.link().ends_with(&check.id.to_lowercase()));
        }
        for category in CheckCategory::ALL {
            assert!(ALL.iter().any(|check| check.category == category));
        }
    }
}
