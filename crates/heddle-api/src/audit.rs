//! Who changed what: one line for each change that came in by a door, whatever became of it.
//!
//! A line says who asked, as whom, from where, what for and how it ended. It holds no body, no header but the few that are
//! named here, and no secret. Texts of strangers are cut where [`bounded`] says.
//!
//! [`AuditQuery`] picks lines; the server, the command line and the page have the same one. [`ChangeNote`] is what a handler
//! knows of a change and the door does not: it travels among the extensions of the answer.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::access::{Access, Right};
use crate::search::TextPattern;

/// Lines in one answer, at most.
pub const AUDIT_PAGE_MAX: u64 = 1_000;

/// By which way in a change came.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum AuditDoor {
    /// The resource API.
    Resources,
    /// What is below `/heddle/v1`.
    Questions,
    /// The Open Service Broker API.
    Broker,
    /// Logging in and out.
    Sessions,
    /// A form of the page.
    Page,
    /// A path that leads nowhere.
    Other,
    /// The log itself: that something is missing from it.
    Log,
}

/// How a change ended.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum AuditOutcome {
    /// It was carried out, or will be.
    Done,
    /// Nothing was changed: it was not allowed, or not possible.
    Refused,
    /// The server could not; whether something was changed is not known.
    Failed,
    /// Whoever asked left before the answer. It may have been carried out.
    Interrupted,
}

impl AuditOutcome {
    pub const ALL: [Self; 4] = [Self::Done, Self::Refused, Self::Failed, Self::Interrupted];

    /// What an answer with this status means.
    #[must_use]
    pub const fn of(status: u16) -> Self {
        match status {
            0..400 => Self::Done,
            400..500 => Self::Refused,
            _ => Self::Failed,
        }
    }

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What is kept of a change.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    pub door: AuditDoor,
    /// What was asked for: `create`, `patch`, `redrive`, `provision`, `login`…
    pub verb: String,
    /// In lower case: `trigger`, `deadletter`, `session`…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Method and path, without what follows the question mark.
    pub request: String,
    pub outcome: AuditOutcome,
    /// Of the answer; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why not, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In whose name; absent for strangers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Whose token it was, when they acted as somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonator: Option<String>,
    /// On whose behalf a platform asked, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// With a session instead of a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub session: bool,
    /// Where the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How many there were of this kind, when they were counted instead of written down one by one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

const fn one() -> u64 {
    1
}

const fn is_one(count: &u64) -> bool {
    *count == 1
}

impl AuditEntry {
    /// With nothing known but what was asked.
    #[must_use]
    pub fn new(door: AuditDoor, verb: &str, request: String) -> Self {
        Self {
            door,
            verb: verb.to_owned(),
            kind: None,
            namespace: None,
            name: None,
            uid: None,
            request,
            outcome: AuditOutcome::Interrupted,
            status: None,
            reason: None,
            user: None,
            role: None,
            groups: Vec::new(),
            impersonator: None,
            on_behalf_of: None,
            session: false,
            address: None,
            user_agent: None,
            request_id: None,
            count: 1,
        }
    }

    /// What it is about, as everywhere: `trigger/team-a/orders`, `application/shop`; what is not known of it is left out.
    #[must_use]
    pub fn object(&self) -> String {
        let parts = [&self.kind, &self.namespace, &self.name];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        parts.join("/")
    }
}

/// One line of the log.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AuditLine {
    /// Its place; no other line ever has it.
    pub number: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: AuditEntry,
}

/// The answer to a question for lines: the newest first.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    pub items: Vec<AuditLine>,
    /// Ask on with `after=` this; absent when all were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The newest line that was there when this was asked; `newer=` it for what came since.
    pub newest: u64,
    /// When the oldest line that is kept was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Timestamp>,
    /// Lines that cannot be read any more.
    #[serde(default)]
    pub damaged: u64,
    /// What is damaged, for people; at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    /// Why changes are refused at the moment, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Which lines. What is not said does not matter; `*` stands for anything in `user` and `object`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub user: Option<String>,
    pub verb: Option<String>,
    /// All of it, such as `trigger/team-a/orders`, or a name alone.
    pub object: Option<String>,
    pub namespace: Option<String>,
    pub outcome: Option<AuditOutcome>,
}

impl AuditQuery {
    /// What can be said, as parameters and flags spell it.
    pub const KEYS: [&str; 7] = [
        "since",
        "until",
        "user",
        "verb",
        "object",
        "namespace",
        "outcome",
    ];

    /// Reads what somebody wrote for each key; says what cannot be understood, and what to write instead.
    pub fn read(
        mut written: impl FnMut(&str) -> Option<String>,
        now: Timestamp,
    ) -> Result<Self, String> {
        let mut moment = |key: &str| {
            let text = written(key);
            let read = text.map(|text| crate::search::moment(&text, now));
            read.transpose()
                .map_err(|how| format!("{key} is no time: {how}"))
        };
        let (since, until) = (moment("since")?, moment("until")?);
        let outcome = written("outcome").map(|text| {
            let known = AuditOutcome::ALL
                .into_iter()
                .find(|outcome| outcome.name() == text);
            known.ok_or_else(|| {
                let names = AuditOutcome::ALL.map(AuditOutcome::name).join(", ");
                format!("there is no outcome `{text}`; there are {names}")
            })
        });
        Ok(Self {
            since,
            until,
            user: written("user"),
            verb: written("verb"),
            object: written("object"),
            namespace: written("namespace"),
            outcome: outcome.transpose()?,
        })
    }

    /// Whether a line is one of those.
    #[must_use]
    pub fn matches(&self, line: &AuditLine) -> bool {
        let entry = &line.entry;
        let like = |wanted: &Option<String>, is: &dyn Fn(&TextPattern) -> bool| {
            wanted
                .as_ref()
                .is_none_or(|wanted| is(&TextPattern::glob(wanted)))
        };
        let named = |is: &TextPattern, text: &Option<String>| {
            text.as_ref().is_some_and(|text| is.matches(text))
        };
        let same = |wanted: &Option<String>, text: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == text
        };
        self.since.is_none_or(|since| line.at >= since)
            && self.until.is_none_or(|until| line.at < until)
            && self.outcome.is_none_or(|wanted| entry.outcome == wanted)
            && same(&self.verb, Some(&entry.verb))
            && same(&self.namespace, namespace_of_entry(entry))
            && like(&self.user, &|is| {
                named(is, &entry.user)
                    || named(is, &entry.impersonator)
                    || named(is, &entry.on_behalf_of)
            })
            && like(&self.object, &|is| {
                is.matches(&entry.object()) || named(is, &entry.name)
            })
    }
}

/// Where a change was made; a Namespace itself counts as within it.
fn namespace_of_entry(entry: &AuditEntry) -> Option<&str> {
    let itself = || {
        entry
            .name
            .as_deref()
            .filter(|_| entry.kind.as_deref() == Some("namespace"))
    };
    entry.namespace.as_deref().or_else(itself)
}

/// Whether somebody may see a line: administrators everywhere see all of them, those of a namespace what was done there.
#[must_use]
pub fn may_see(access: &Access, line: &AuditLine) -> bool {
    access.may(Right::Administer, namespace_of_entry(&line.entry))
}

/// What a handler tells of a change. What it does not know is left to the door.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeNote {
    pub verb: Option<&'static str>,
    pub kind: Option<Cow<'static, str>>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub uid: Option<String>,
    pub reason: Option<Cow<'static, str>>,
    pub user: Option<String>,
    pub on_behalf_of: Option<String>,
    /// What the answer means where it sends a browser on instead of saying it.
    pub status: Option<u16>,
    /// It was a question, or a rehearsal: nothing was meant to change.
    pub is_question: bool,
}

impl ChangeNote {
    /// Nothing was meant to change.
    #[must_use]
    pub fn question() -> Self {
        Self {
            is_question: true,
            ..Self::default()
        }
    }
}

/// As much of a text as is kept: so many bytes at most, and whole characters.
#[must_use]
pub fn bounded(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}
