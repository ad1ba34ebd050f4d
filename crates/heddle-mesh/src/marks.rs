//! Groups of dead letters that somebody marked: as known, or as to be ignored, with a note and until a time.
//!
//! A mark is a line of the journal, safe before anybody is told so. Whether it holds is worked out when somebody looks: not
//! once its time is over, and not with more newer letters at rest than it allows for. Nothing else changes: letters of a marked
//! group rest, are counted and can be taken as before.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use heddle_api::dead_letters::marks::{GroupMark, MarkKind, MarkReopened, MarkRequest};
use heddle_api::ledger::DeadLetterSelection;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::journal::JournalRecord;
use crate::journal::mark::{GroupMarkEntry, GroupMarks};
use crate::journal::positions::DeadLetterEntry;
use crate::ledger::Error;
use crate::mesh::Mesh;
use crate::path::dead_letter::picker::{CauseKey, GroupBy, Picker, cause_of, namespace_of};
use crate::path::dead_letter::walk::LetterWalk;
use crate::shared::Shared;

/// Marks in all, and of the groups of one namespace, so that nobody needs all places.
const MARKS_MAX: usize = 500;
const NAMESPACE_MARKS_MAX: usize = 100;
/// Characters of a note.
const NOTE_CHARS_MAX: usize = 500;
/// How long a mark holds if nobody says, and at most.
const HOLDS: Duration = Duration::from_secs(7 * 24 * 3600);
const HOLDS_MAX: Duration = Duration::from_secs(90 * 24 * 3600);
/// Newer letters that a mark may allow for: as many as one consumer may have.
const MORE_MAX: u64 = 10_000;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct MarkedGroups(Mutex<GroupMarks>);

impl MarkedGroups {
    /// As the last process left them.
    pub(crate) fn restored(marks: &GroupMarks) -> Self {
        Self(Mutex::new(marks.clone()))
    }

    fn write(&self, shared: &Shared, marks: &mut GroupMarks, entry: GroupMarkEntry) {
        marks.apply(&entry);
        shared.note(JournalRecord::Mark(Box::new(entry)));
    }

    /// Makes room for one more in a namespace: marks that are over, and those of groups that are gone, are forgotten.
    fn make_room(
        &self,
        shared: &Shared,
        marks: &mut GroupMarks,
        key: &CauseKey,
    ) -> Result<(), Error> {
        if marks.all.contains_key(&key.key()) {
            return Ok(());
        }
        let namespace = namespace_of(&key.consumer);
        let of_namespace = |marks: &GroupMarks| {
            let keys = marks.all.keys().filter_map(|key| CauseKey::read(key));
            keys.filter(|key| namespace_of(&key.consumer) == namespace)
                .count()
        };
        let is_full = |marks: &GroupMarks| {
            marks.all.len() >= MARKS_MAX || of_namespace(marks) >= NAMESPACE_MARKS_MAX
        };
        if !is_full(marks) {
            return Ok(());
        }
        let now = shared.clock.now();
        let over: Vec<GroupMarkEntry> = {
            let entries = marks.all.values();
            let over = entries.filter(|entry| entry.until <= now || !rests(shared, &entry.key));
            over.cloned().collect()
        };
        for mut entry in over {
            entry.kind = None;
            self.write(shared, marks, entry);
        }
        match is_full(marks) {
            true => Err(Error::Conflict(format!(
                "{NAMESPACE_MARKS_MAX} groups of dead letters of a namespace, and {MARKS_MAX} in all, can be marked; take a mark away first, or discard what is ignored"
            ))),
            false => Ok(()),
        }
    }
}

/// Whether any letter of a group is there.
fn rests(shared: &Shared, key: &str) -> bool {
    CauseKey::read(key).is_some_and(|key| newer(shared, &key, 0, 1) > 0)
}

/// How many letters of a group came behind one; no more than so many are counted.
fn newer(shared: &Shared, key: &CauseKey, up_to: u64, most: u64) -> u64 {
    let known = shared.consumers.read().by_key.get(&*key.consumer).cloned();
    let Some(consumer) = known else { return 0 };
    let letters = shared.dead.lock();
    let behind = letters.of_consumer(consumer.id, up_to);
    let own = behind.filter(|(_, rest)| cause_of(rest) == key.cause);
    own.take(usize::try_from(most).unwrap_or(usize::MAX))
        .count() as u64
}

fn shown(
    shared: &Shared,
    key: &CauseKey,
    entry: &GroupMarkEntry,
    now: Timestamp,
) -> Option<GroupMark> {
    let newer = newer(shared, key, entry.up_to, entry.more.saturating_add(1));
    let reopened = if newer > entry.more {
        Some(MarkReopened::Recurred)
    } else {
        (entry.until <= now).then_some(MarkReopened::Expired)
    };
    Some(GroupMark {
        key: entry.key.clone(),
        kind: entry.kind?,
        note: entry.note.clone(),
        by: entry.by.clone(),
        at: entry.at,
        until: entry.until,
        up_to: entry.up_to.to_string(),
        more: entry.more,
        newer,
        reopened,
    })
}

/// The marks that whoever asks may see, by consumer and cause.
#[derive(Debug, Default)]
pub(crate) struct SeenMarks(HashMap<String, HashMap<u64, GroupMark>>);

impl SeenMarks {
    /// The mark of the group that a letter is in.
    pub(crate) fn of(&self, rest: &DeadLetterEntry, consumer: &str) -> Option<&GroupMark> {
        // Most consumers have none, and what a cause is takes a moment to work out.
        self.0.get(consumer)?.get(&cause_of(rest))
    }

    /// As what a letter counts, if its group is marked and the mark holds.
    pub(crate) fn kind_of(&self, rest: &DeadLetterEntry, consumer: &str) -> Option<MarkKind> {
        let mark = self.of(rest, consumer)?;
        mark.holds().then_some(mark.kind)
    }
}

impl Mesh {
    /// The group by cause that a key, or the name of a letter in it, speaks of.
    pub(crate) fn cause_key(&self, text: &str) -> Option<CauseKey> {
        let Ok(name) = text.parse() else {
            return CauseKey::read(text);
        };
        let consumer = self.dead_letter_consumer(text)?;
        let letters = self.shared.dead.lock();
        let rest = letters.get(name).filter(|rest| !rest.left)?;
        CauseKey::read(&GroupBy::Cause.key(rest, &consumer))
    }

    /// The marks of groups within some namespaces.
    pub(crate) async fn seen_marks(&self, within: Option<&BTreeSet<String>>) -> SeenMarks {
        let entries: Vec<GroupMarkEntry> =
            self.shared.marks.0.lock().all.values().cloned().collect();
        let now = self.shared.clock.now();
        let mut seen = SeenMarks::default();
        for entry in entries {
            let Some(key) = CauseKey::read(&entry.key) else {
                continue;
            };
            if within.is_some_and(|within| !within.contains(namespace_of(&key.consumer))) {
                continue;
            }
            if let Some(mark) = shown(&self.shared, &key, &entry, now) {
                seen.0
                    .entry(key.consumer)
                    .or_default()
                    .insert(key.cause, mark);
            }
            // Each looked at the letters of a consumer while nobody else could.
            tokio::task::yield_now().await;
        }
        seen
    }

    /// Marks a group on somebody's behalf; answers when that is safe.
    pub(crate) async fn mark_group(
        &self,
        key: &CauseKey,
        request: &MarkRequest,
        by: &str,
    ) -> Result<GroupMark, Error> {
        let shared = &self.shared;
        let now = shared.clock.now();
        let (note, until) = (note(&request.note)?, until(request, now)?);
        if request.more > MORE_MAX {
            return Err(Error::Invalid(format!("`more` is at most {MORE_MAX}")));
        }
        let newest = self.newest_of(key).await.ok_or_else(|| gone(key))?;
        let up_to = match &request.up_to {
            Some(name) => name.parse().map_err(|_| {
                Error::Invalid(
                    "`upTo` is the name of a dead letter, as the group's `sample` is".to_owned(),
                )
            })?,
            None => newest,
        };
        let entry = GroupMarkEntry {
            key: key.key(),
            kind: Some(request.kind),
            at: now,
            by: by.to_owned(),
            note,
            until,
            up_to: newest.min(up_to),
            more: request.more,
        };
        {
            let mut marks = shared.marks.0.lock();
            shared.marks.make_room(shared, &mut marks, key)?;
            shared.marks.write(shared, &mut marks, entry.clone());
        }
        shared.settled().await;
        shown(shared, key, &entry, now).ok_or_else(|| gone(key))
    }

    /// Takes the mark of a group away; answers when that is safe, and what it was.
    pub(crate) async fn unmark_group(&self, key: &CauseKey, by: &str) -> Result<GroupMark, Error> {
        let shared = &self.shared;
        let now = shared.clock.now();
        let former = {
            let mut marks = shared.marks.0.lock();
            let former = marks.all.get(&key.key()).cloned();
            let former = former.ok_or_else(|| {
                Error::NotFound(format!(
                    "the group {} of dead letters is not marked",
                    key.key()
                ))
            })?;
            let end = GroupMarkEntry {
                kind: None,
                at: now,
                by: by.to_owned(),
                note: String::new(),
                ..former.clone()
            };
            shared.marks.write(shared, &mut marks, end);
            former
        };
        shared.settled().await;
        shown(shared, key, &former, now).ok_or_else(|| gone(key))
    }

    /// The name of the newest letter of a group.
    async fn newest_of(&self, key: &CauseKey) -> Option<u64> {
        let selection = DeadLetterSelection {
            group: Some(key.key()),
            ..DeadLetterSelection::default()
        };
        let picker = Picker::new(&selection, None);
        let mut newest = None;
        let walk = LetterWalk::new(&self.shared, &picker);
        walk.all(|met| newest = newest.max(Some(met.name))).await;
        newest
    }
}

fn gone(key: &CauseKey) -> Error {
    Error::NotFound(format!(
        "no dead letter rests in the group {}; `heddle dead-letters list --by cause -o json` has the keys of those there are",
        key.key()
    ))
}

fn note(text: &str) -> Result<String, Error> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > NOTE_CHARS_MAX {
        return Err(Error::Invalid(format!(
            "`note` says why, in 1 to {NOTE_CHARS_MAX} characters"
        )));
    }
    Ok(text.to_owned())
}

fn until(request: &MarkRequest, now: Timestamp) -> Result<Timestamp, Error> {
    let later = |span: Duration| now.saturating_add(span).unwrap_or(Timestamp::MAX);
    let until = request.until.unwrap_or_else(|| later(HOLDS));
    match until > now && until <= later(HOLDS_MAX) {
        true => Ok(until),
        false => Err(Error::Invalid(format!(
            "`until` is a time to come, at most {} days from now",
            HOLDS_MAX.as_secs() / 86_400
        ))),
    }
}
