//! Refusals are written down one by one while they are few, and counted when they are many. Pure: callers bring the time.
//!
//! ```text
//!   the first ten of a source in ten minutes   a line each
//!   those after them                           one line for all of them, with their number, when the time is over
//! ```
//! A source is, for strangers, an address; for whoever is known, the same refusal of the same thing. All strangers together
//! have [`STRANGERS_MAX`] lines of their own in that time and [`SOURCES_MAX`] counts, so what they can make the log keep is
//! bounded however many they are; beyond that they are one source. What was done is never counted, always written.

use std::collections::HashMap;
use std::time::Duration;

use heddle_api::audit::{AuditEntry, AuditOutcome};

/// How long refusals are counted together.
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// Lines of one source in that time.
const SINGLE_MAX: u64 = 10;
/// Lines of all strangers in that time, counts aside.
pub(crate) const STRANGERS_MAX: u64 = 32;
/// Lines of all who are known, counts aside.
const KNOWN_MAX: u64 = 1_000;
/// Addresses of strangers that are told apart.
pub(crate) const SOURCES_MAX: usize = 32;
/// Refusals of those who are known that are told apart.
const KNOWN_SOURCES_MAX: usize = 1_000;

/// Refusals of the last minutes.
#[derive(Debug, Default)]
pub(crate) struct RefusalCounts {
    /// When the first of them came, by the monotonic clock.
    began: Option<Duration>,
    now: Duration,
    strangers: RefusalSources,
    known: RefusalSources,
}

/// What sources of one sort may have together.
#[derive(Clone, Copy, Debug)]
struct RefusalBounds {
    written_max: u64,
    sources_max: usize,
}

const OF_STRANGERS: RefusalBounds = RefusalBounds {
    written_max: STRANGERS_MAX,
    sources_max: SOURCES_MAX,
};
const OF_KNOWN: RefusalBounds = RefusalBounds {
    written_max: KNOWN_MAX,
    sources_max: KNOWN_SOURCES_MAX,
};

#[derive(Debug, Default)]
struct RefusalSources {
    /// Lines written.
    written: u64,
    by_source: HashMap<String, RefusalCount>,
}

#[derive(Debug, Default)]
struct RefusalCount {
    written: u64,
    /// The last one that was not, with their number.
    more: Option<AuditEntry>,
}

impl RefusalCounts {
    /// What is to be written, because its time is over.
    pub(crate) fn over(&mut self, now: Duration) -> Vec<AuditEntry> {
        self.now = now;
        match self.began {
            Some(began) if now >= began.saturating_add(WINDOW) => self.all(),
            _ => Vec::new(),
        }
    }

    /// What is to be written, at the end.
    pub(crate) fn all(&mut self) -> Vec<AuditEntry> {
        self.began = None;
        let mut counted = std::mem::take(&mut self.strangers).counted();
        counted.extend(std::mem::take(&mut self.known).counted());
        counted
    }

    /// Gives back what is to be written at once.
    pub(crate) fn hear(&mut self, entry: AuditEntry) -> Option<AuditEntry> {
        let is_stranger = entry.user.is_none();
        if !is_stranger && entry.outcome != AuditOutcome::Refused {
            return Some(entry);
        }
        self.began.get_or_insert(self.now);
        match is_stranger {
            true => self.strangers.hear(address(&entry), entry, OF_STRANGERS),
            false => self.known.hear(refusal(&entry), entry, OF_KNOWN),
        }
    }
}

impl RefusalSources {
    fn hear(
        &mut self,
        source: String,
        entry: AuditEntry,
        bounds: RefusalBounds,
    ) -> Option<AuditEntry> {
        let is_new = !self.by_source.contains_key(&source);
        let source = match is_new && self.by_source.len() >= bounds.sources_max {
            true => String::new(),
            false => source,
        };
        let count = self.by_source.entry(source.clone()).or_default();
        if !source.is_empty() && count.written < SINGLE_MAX && self.written < bounds.written_max {
            count.written += 1;
            self.written += 1;
            return Some(entry);
        }
        let before = count.more.as_ref().map_or(0, |more| more.count);
        let mut more = entry;
        more.count = more.count.saturating_add(before);
        if source.is_empty() {
            // It stands for many.
            more.address = None;
        }
        count.more = Some(more);
        None
    }

    fn counted(self) -> Vec<AuditEntry> {
        let counts = self.by_source.into_values();
        counts.filter_map(|count| count.more).collect()
    }
}

fn address(entry: &AuditEntry) -> String {
    entry
        .address
        .clone()
        .unwrap_or_else(|| "unknown".to_owned())
}

fn refusal(entry: &AuditEntry) -> String {
    let user = entry.user.as_deref().unwrap_or_default();
    format!(
        "{user} {:?} {} {} {:?}",
        entry.door,
        entry.verb,
        entry.kind.as_deref().unwrap_or_default(),
        entry.status
    )
}

#[cfg(test)]
mod tests {
    use heddle_api::audit::AuditDoor;

    use super::*;

    fn refused(user: Option<&str>, address: &str, verb: &str) -> AuditEntry {
        let mut entry = AuditEntry::new(AuditDoor::Resources, verb, "POST /api".to_owned());
        entry.outcome = AuditOutcome::Refused;
        entry.status = Some(401);
        entry.user = user.map(str::to_owned);
        entry.address = Some(address.to_owned());
        entry
    }

    #[test]
    fn what_was_done_is_always_written() {
        let mut counts = RefusalCounts::default();
        for _ in 0..5_000 {
            let mut done = refused(Some("ada"), "::1", "create");
            done.outcome = AuditOutcome::Done;
            assert!(counts.hear(done).is_some());
        }
        assert_eq!(counts.all(), Vec::new());
    }

    #[test]
    fn of_many_refusals_the_first_are_written_and_the_rest_is_one_line() {
        let mut counts = RefusalCounts::default();
        assert_eq!(counts.over(Duration::ZERO), Vec::new());
        let hear = |counts: &mut RefusalCounts, user| {
            (0..1_000)
                .filter_map(|_| counts.hear(refused(user, "::1", "create")))
                .count()
        };
        for user in [None, Some("ada")] {
            assert_eq!(hear(&mut counts, user) as u64, SINGLE_MAX, "{user:?}");
        }
        // Another refusal of somebody who is known is not hidden by that.
        assert!(counts.hear(refused(Some("ada"), "::1", "delete")).is_some());
        let almost = WINDOW.saturating_sub(Duration::from_secs(1));
        assert_eq!(counts.over(almost), Vec::new());
        let over = counts.over(WINDOW);
        let told: Vec<u64> = over.iter().map(|entry| entry.count).collect();
        assert_eq!(told, [990, 990]);
        assert_eq!(counts.over(WINDOW), Vec::new(), "told once");
        assert_eq!(hear(&mut counts, None) as u64, SINGLE_MAX, "and anew");
    }

    /// However many strangers there are, and however they call themselves.
    #[test]
    fn strangers_have_so_many_lines_and_no_more() {
        let mut counts = RefusalCounts::default();
        let (mut lines, mut told) = (0, 0);
        for number in 0..100_000_u64 {
            let address = format!("10.0.{}.{}", number % 251, number % 13);
            lines += u64::from(counts.hear(refused(None, &address, "create")).is_some());
        }
        assert_eq!(lines, STRANGERS_MAX);
        let rest = counts.all();
        told += rest.iter().map(|entry| entry.count).sum::<u64>();
        assert!(rest.len() <= SOURCES_MAX + 1, "{}", rest.len());
        assert_eq!(lines + told, 100_000, "each is in one line");
        assert!(rest.iter().any(|entry| entry.address.is_none()));
    }
}
