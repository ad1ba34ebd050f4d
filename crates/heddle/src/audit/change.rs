//! Which requests are changes, and what each is called: from method and path alone, so that it is known of all of them.
//!
//! ```text
//!   GET, HEAD, OPTIONS              reads, and not recorded; but for a backup, which holds everything there is
//!   POST that is a question         likewise: its row in `rights` needs no more than the right to look
//!   reviews, and dry runs           likewise
//!   everything else                 a change, whether it leads somewhere or not
//! ```

use heddle_api::access::Right;
use heddle_api::audit::{AuditDoor, AuditEntry, ChangeNote, bounded};
use heddle_apiserver::ApiServer;
use http::{Method, Uri};

use super::Unrecordable;
use crate::rights;
use crate::session::origin;

const QUESTIONS: &str = "/heddle/v1";
/// What is read and recorded all the same.
const BACKUP: &str = "/heddle/v1/backup";

/// What needs the right to make a change, and makes none.
const WHAT_IF: &str = "/what-if";
/// The same on the page.
const PAGE_TRIAL: &str = "/ui/what-if/try";

/// The longest path that is kept whole; names of objects are shorter.
const REQUEST_BYTES_MAX: usize = 512;

/// What questions are called whose path does not say it: path below `/heddle/v1`, verb, kind.
const NAMED: [(&str, &str, &str); 3] = [
    ("/backup", "backup", "backup"),
    ("/bundles", "push", "bundle"),
    ("/smoke", "test", "smoketest"),
];

/// A request that changes something, before anybody has looked at it.
#[derive(Clone, Debug)]
pub(crate) struct AuditedChange {
    pub(crate) entry: AuditEntry,
    pub(crate) need: RecordNeed,
}

/// Whether a change is carried out that cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordNeed {
    Always,
    /// It makes room: with a full disk it is the way out.
    UnlessFull,
    /// It changes nothing that lasts: a login, or a backup.
    Never,
}

impl RecordNeed {
    fn of(door: AuditDoor, method: &Method, verb: &str) -> Self {
        match (door, verb) {
            (AuditDoor::Sessions, _) | (AuditDoor::Questions, "backup") => Self::Never,
            (AuditDoor::Questions, "discard" | "stop") => Self::UnlessFull,
            (AuditDoor::Resources, _) if *method == Method::DELETE => Self::UnlessFull,
            _ => Self::Always,
        }
    }

    /// Whether it waits until lines can be written again.
    pub(crate) fn forbids(self, fault: &Unrecordable) -> bool {
        match self {
            Self::Always => true,
            Self::UnlessFull => *fault != Unrecordable::Full,
            Self::Never => false,
        }
    }
}

impl AuditedChange {
    /// What a request is about, if it is a change.
    pub(crate) fn of(server: &ApiServer, method: &Method, uri: &Uri) -> Option<Self> {
        let path = uri.path();
        let is_backup = *method == Method::GET && path == BACKUP;
        if !origin::is_unsafe(method) && !is_backup {
            return None;
        }
        let (door, note) = match door_of(path) {
            AuditDoor::Resources => (AuditDoor::Resources, server.asked_change(method, uri)),
            AuditDoor::Questions => (AuditDoor::Questions, question(method, path)),
            AuditDoor::Sessions => (AuditDoor::Sessions, session(method, path)),
            AuditDoor::Page if path == PAGE_TRIAL => (AuditDoor::Page, ChangeNote::question()),
            door => (door, ChangeNote::default()),
        };
        if note.is_question {
            return None;
        }
        let verb = method.as_str().to_ascii_lowercase();
        let request = bounded(&format!("{method} {path}"), REQUEST_BYTES_MAX);
        let mut entry = AuditEntry::new(door, &bounded(&verb, 32), request);
        add(&mut entry, note);
        let need = RecordNeed::of(door, method, &entry.verb);
        Some(Self { entry, need })
    }
}

fn door_of(path: &str) -> AuditDoor {
    let mut parts = path.split('/').skip(1);
    match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        ("api" | "apis" | "openapi" | "version" | "", ..) => AuditDoor::Resources,
        ("v2" | "osb", ..) => AuditDoor::Broker,
        ("heddle", Some("v1"), Some("session")) | ("ui", Some("login" | "logout"), None) => {
            AuditDoor::Sessions
        }
        ("heddle", ..) => AuditDoor::Questions,
        ("ui", ..) => AuditDoor::Page,
        _ => AuditDoor::Other,
    }
}

/// What a question below `/heddle/v1` is called: the last word of its path, about what the first one names.
fn question(method: &Method, path: &str) -> ChangeNote {
    let path = path.strip_prefix(QUESTIONS).unwrap_or(path);
    if let Some((_, verb, kind)) = NAMED.iter().find(|(known, ..)| *known == path) {
        return named(verb, kind);
    }
    if path.starts_with("/osb/") {
        return as_platform(method, path);
    }
    let Some(row) = rights::row(method, path) else {
        return ChangeNote::default();
    };
    if *method == Method::POST && (row.right == Right::Look || path == WHAT_IF) {
        return ChangeNote::question();
    }
    let mut note = ChangeNote::default();
    for (wanted, found) in row.path.split('/').zip(path.split('/')).skip(1) {
        match wanted {
            "{namespace}" => note.namespace = Some(found.to_owned()),
            wanted if wanted.starts_with('{') => note.name = Some(found.to_owned()),
            wanted => {
                note.kind.get_or_insert_with(|| kind_of(wanted).into());
                note.verb = Some(wanted);
            }
        }
    }
    if note.verb == Some("mark") && *method == Method::DELETE {
        note.verb = Some("unmark");
    }
    if path.contains("/operations/") {
        note.kind = Some("operation".into());
    }
    note
}

/// What people ask in the protocol of platforms, called as platforms' requests are.
fn as_platform(method: &Method, path: &str) -> ChangeNote {
    let parts: Vec<&str> = path.split('/').skip(2).collect();
    let (kind, name) = match parts[..] {
        [_, _, _, instance] => ("serviceinstance", instance),
        [_, _, _, _, _, binding] => ("servicebinding", binding),
        _ => return ChangeNote::default(),
    };
    let verb = match (method.as_str(), kind) {
        ("PUT", "serviceinstance") => "provision",
        ("PATCH", _) => "update",
        ("DELETE", "serviceinstance") => "deprovision",
        ("PUT", _) => "bind",
        ("DELETE", _) => "unbind",
        _ => return ChangeNote::default(),
    };
    ChangeNote {
        verb: Some(verb),
        kind: Some(kind.into()),
        namespace: Some(parts[0].to_owned()),
        name: Some(name.to_owned()),
        ..ChangeNote::default()
    }
}

/// As everywhere else: `dead-letters` are of kind `deadletter`.
fn kind_of(word: &str) -> String {
    let word = word.replace('-', "");
    word.strip_suffix('s').unwrap_or(&word).to_owned()
}

fn session(method: &Method, path: &str) -> ChangeNote {
    match (method.as_str(), path) {
        ("DELETE", _) | (_, "/ui/logout") => named("logout", "session"),
        (_, "/heddle/v1/session/codes") => named("code", "session"),
        _ => named("login", "session"),
    }
}

fn named(verb: &'static str, kind: &'static str) -> ChangeNote {
    ChangeNote {
        verb: Some(verb),
        kind: Some(kind.into()),
        ..ChangeNote::default()
    }
}

/// The longest name, namespace, user or word that is kept whole.
const TEXT_BYTES_MAX: usize = 256;

/// Adds what is told of a change; what is not told stays as it was.
pub(super) fn add(entry: &mut AuditEntry, note: ChangeNote) {
    let put = |to: &mut Option<String>, text: Option<&str>| {
        if let Some(text) = text {
            *to = Some(bounded(text, TEXT_BYTES_MAX));
        }
    };
    if let Some(verb) = note.verb {
        verb.clone_into(&mut entry.verb);
    }
    put(&mut entry.kind, note.kind.as_deref());
    put(&mut entry.namespace, note.namespace.as_deref());
    put(&mut entry.name, note.name.as_deref());
    put(&mut entry.uid, note.uid.as_deref());
    put(&mut entry.reason, note.reason.as_deref());
    put(&mut entry.user, note.user.as_deref());
    put(&mut entry.on_behalf_of, note.on_behalf_of.as_deref());
}
