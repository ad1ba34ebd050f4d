//! Numbers about events, for Prometheus.
//!
//! Counters that the path touches are plain atomics; what can be read from the consumers is read when somebody asks. Names
//! are labels only where they are names of objects that exist, and no more of them than a bound: [`CONSUMERS_MAX`]
//! consumers, as many places, and a few Applications for each consumer. The rest are summed up under one.

mod answers;
mod by_application;
mod doors;
mod hops;
mod legacy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use heddle_api::dataplane::DoorReading;
use heddle_api::ledger::{Account, Accounts, SERVING};
use heddle_rt::metrics::sample;
use jiff::Timestamp;

use answers::{APPLICATIONS_MAX, OVERFLOW};
pub(crate) use answers::{Answers, application};
use by_application::ByApplication;
pub(crate) use doors::DoorKind;
use doors::Doors;
use hops::Hops;
pub(crate) use legacy::LegacyApi;
use legacy::LegacyUse;

/// Consumers shown one by one.
const CONSUMERS_MAX: usize = 1000;

/// What the path counts as it goes.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    published: Doors,
    unmatched: ByApplication,
    filtered: ByApplication,
    passed_on: AtomicU64,
    unencoded: AtomicU64,
    legacy: LegacyUse,
    hops: Hops,
}

/// What is read when somebody asks.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) accounts: &'a Accounts,
    /// In the order of the accounts.
    pub(crate) answers: &'a [Answers],
    /// The dead letters of each account, by the entry at which they came in.
    pub(crate) dead: &'a [BTreeMap<String, u64>],
    pub(crate) now: Timestamp,
}

impl Metrics {
    /// A publish was answered. `place` is where it went, if that exists.
    pub(crate) fn published(
        &self,
        door: DoorKind,
        place: Option<&Arc<str>>,
        status: u16,
        events: u64,
        took: Duration,
    ) {
        self.published.count(door, place, status, events);
        self.hops.published(took);
    }

    /// An event that came in at `entry` was offered to so many consumers, of which so many wanted it.
    pub(crate) fn matched(&self, entry: &str, offered: u64, wanted: u64) {
        if wanted == 0 {
            self.unmatched.add(entry, 1);
        }
        if offered > wanted {
            self.filtered.add(entry, offered - wanted);
        }
    }

    /// It was safe since then.
    pub(crate) fn matched_after(&self, safe_at: Timestamp, now: Timestamp) {
        self.hops.matched(safe_at, now);
    }

    /// An append took so long.
    pub(crate) fn appended(&self, took: Duration) {
        self.hops.appended(took);
    }

    /// What publishing to each Application came to, in the order of their names.
    pub(crate) fn door_readings(&self) -> Vec<DoorReading> {
        self.published.readings(&self.unmatched)
    }

    /// An event was appended to another place of this mesh.
    pub(crate) fn passed_on(&self) {
        self.passed_on.fetch_add(1, Ordering::Relaxed);
    }

    /// So many attributes came in headers that were not encoded as the binding asks.
    pub(crate) fn unencoded(&self, attributes: u64) {
        if attributes > 0 {
            self.unencoded.fetch_add(attributes, Ordering::Relaxed);
        }
    }

    /// A request to the publish API of old Kyma was answered. `place` is the Application's, if that exists.
    pub(crate) fn legacy(&self, place: Option<&str>, api: LegacyApi, status: u16) {
        self.legacy.count(place, api, status);
    }

    /// One of them was taken that not every old server would have taken.
    pub(crate) fn legacy_lenient(&self, place: Option<&str>) {
        self.legacy.lenient(place);
    }

    /// One of them published what was published already.
    pub(crate) fn legacy_repeated(&self, place: Option<&str>) {
        self.legacy.repeated(place);
    }

    /// The first attempt at an event begins.
    pub(crate) fn first_attempt(&self, safe_at: Timestamp, now: Timestamp) {
        self.hops.begun(safe_at, now);
    }

    pub(crate) fn attempted(&self, latency: Duration) {
        self.hops.attempted(latency);
    }

    /// An event is delivered that was no dead letter in between.
    pub(crate) fn delivered(&self, safe_at: Timestamp, now: Timestamp) {
        self.hops.delivered(safe_at, now);
    }

    /// The text that Prometheus reads, without the end mark.
    pub(crate) fn text(&self, reading: &Reading<'_>) -> String {
        let mut out = String::new();
        let accounts = reading.accounts;
        family(
            &mut out,
            "heddle_published",
            "counter",
            "Events by door, place and class of answer.",
        );
        self.published.write(&mut out);
        family(
            &mut out,
            "heddle_unmatched",
            "counter",
            "Events that nobody wanted, by the Application they came from.",
        );
        self.unmatched.write(&mut out, "heddle_unmatched_total");
        family(
            &mut out,
            "heddle_filtered",
            "counter",
            "Times that a filter turned an event down, by the Application it came from.",
        );
        self.filtered.write(&mut out, "heddle_filtered_total");
        for (name, help, count) in [
            (
                "heddle_link_appended",
                "Events passed on to another broker or channel.",
                &self.passed_on,
            ),
            (
                "heddle_attributes_unencoded",
                "Attributes in headers that were not percent-encoded and were read as they were sent.",
                &self.unencoded,
            ),
        ] {
            family(&mut out, name, "counter", help);
            let count = count.load(Ordering::Relaxed);
            sample(&mut out, &format!("{name}_total"), "", count);
        }
        self.legacy.write(&mut out);
        attempts(&mut out, &accounts.consumers, reading.answers);
        bad_replies(&mut out, &accounts.consumers, reading.answers);
        self.hops.write(&mut out);
        let log = &accounts.log;
        for (name, help, value) in [
            ("heddle_log_bytes", "Bytes of the event log.", log.bytes),
            ("heddle_log_events", "Events in the log.", log.events),
            (
                "heddle_log_damaged",
                "Records that are damaged and kept aside.",
                log.damaged,
            ),
            (
                "heddle_journal_lost_records",
                "Records of the journal that were lost in both copies.",
                log.journal_lost,
            ),
            (
                "heddle_log_unmatched_events",
                "Events that are safe and not matched yet.",
                log.next.saturating_sub(accounts.matched_up_to),
            ),
        ] {
            family(&mut out, name, "gauge", help);
            sample(&mut out, name, "", value);
        }
        if let (Some(free), Some(needed)) = (log.free_bytes, log.needed_bytes) {
            for (name, help, value) in [
                (
                    "heddle_log_free_bytes",
                    "Free on the disk of the event log at the last look.",
                    free,
                ),
                (
                    "heddle_log_needed_bytes",
                    "With less free than this, events are refused or soon will be.",
                    needed,
                ),
            ] {
                family(&mut out, name, "gauge", help);
                sample(&mut out, name, "", value);
            }
        }
        let name = "heddle_log_serving";
        family(&mut out, name, "gauge", "1 while events are accepted.");
        sample(&mut out, name, "", u8::from(log.health == SERVING));
        consumers(&mut out, &accounts.consumers, reading.now);
        dead_letters(&mut out, &accounts.consumers, reading.dead);
        out
    }
}

/// A number of an account.
type Of = fn(&Account) -> u64;

fn consumers(out: &mut String, accounts: &[Account], now: Timestamp) {
    let counters: [(&str, &str, Of); 6] = [
        (
            "heddle_matched",
            "Events a consumer's filter let pass.",
            |account| account.matched,
        ),
        (
            "heddle_sent_again",
            "Events of the log that somebody had sent again.",
            |account| account.sent_again,
        ),
        ("heddle_delivered", "Events delivered.", |account| {
            account.delivered
        }),
        (
            "heddle_expired",
            "Events ended by a declared policy.",
            |account| account.expired,
        ),
        (
            "heddle_removed",
            "Events ended by a named person.",
            |account| account.removed,
        ),
        (
            "heddle_lost",
            "Events that nobody knows the end of, because the disk lost it.",
            |account| account.lost,
        ),
    ];
    for (name, help, of) in counters {
        family(out, name, "counter", help);
        each(
            out,
            &format!("{name}_total"),
            accounts,
            of,
            u64::saturating_add,
        );
    }
    let gauges: [(&str, &str, Of); 7] = [
        (
            "heddle_pending",
            "Events that wait, are under way or are tried again.",
            |account| account.pending,
        ),
        ("heddle_in_flight", "Attempts under way.", |account| {
            account.in_flight
        }),
        (
            "heddle_retrying",
            "Events with a failed attempt.",
            |account| account.retrying,
        ),
        (
            "heddle_dead_replies",
            "Replies at rest that could not go on.",
            |account| account.dead_replies,
        ),
        (
            "heddle_kept_bytes",
            "Bytes of the log that unfinished events keep.",
            |account| account.kept_bytes,
        ),
        (
            "heddle_over_quota",
            "1 while events expire because the backlog is larger than its quota.",
            |account| u64::from(account.over_quota.is_some()),
        ),
        (
            "heddle_unaccounted",
            "Events that no account explains; anything but 0 is a fault.",
            |account| u64::try_from(account.difference().unsigned_abs()).unwrap_or(u64::MAX),
        ),
    ];
    for (name, help, of) in gauges {
        family(out, name, "gauge", help);
        each(out, name, accounts, of, u64::saturating_add);
    }
    let name = "heddle_oldest_pending_seconds";
    family(
        out,
        name,
        "gauge",
        "Age of the oldest event that has not ended.",
    );
    let age = |account: &Account| {
        let since = account.oldest_pending_at.unwrap_or(now);
        u64::try_from(now.duration_since(since).as_secs()).unwrap_or(0)
    };
    each(out, name, accounts, age, u64::max);
}

/// How attempts were answered. What was never answered so has no line.
fn attempts(out: &mut String, accounts: &[Account], answers: &[Answers]) {
    let name = "heddle_attempts";
    family(
        out,
        name,
        "counter",
        "Attempts to deliver by class of answer.",
    );
    let name = format!("{name}_total");
    each_answers(accounts, answers, |of, answers| {
        for (application, class, count) in answers.iter() {
            let labels = format!("app=\"{application}\",{of},code=\"{class}\"");
            sample(out, &name, &labels, count);
        }
    });
}

/// The answers of each consumer with its labels; those beyond the bound in one.
fn each_answers(accounts: &[Account], answers: &[Answers], mut write: impl FnMut(&str, &Answers)) {
    let shown = accounts.len().min(CONSUMERS_MAX);
    for (account, answers) in accounts.iter().zip(answers).take(shown) {
        write(&labels(account), answers);
    }
    let mut rest = Answers::default();
    answers.iter().skip(shown).for_each(|one| rest.absorb(one));
    write(BEYOND, &rest);
}

/// Replies that could not go on, by what is wrong with them. What never happened has no line.
fn bad_replies(out: &mut String, accounts: &[Account], answers: &[Answers]) {
    let name = "heddle_bad_replies";
    family(
        out,
        name,
        "counter",
        "Replies of subscribers that could not go on, by reason.",
    );
    let name = format!("{name}_total");
    each_answers(accounts, answers, |of, answers| {
        for (fault, count) in answers.bad_replies() {
            let labels = format!("{of},reason=\"{}\"", fault.label());
            sample(out, &name, &labels, count);
        }
    });
}

/// What rests, by the Application it came from. A consumer without dead letters has one line, with 0.
fn dead_letters(out: &mut String, accounts: &[Account], dead: &[BTreeMap<String, u64>]) {
    let name = "heddle_dead_letters";
    family(out, name, "gauge", "Events at rest.");
    let mut write = |of: &str, application: &str, count: u64| {
        sample(out, name, &format!("app=\"{application}\",{of}"), count);
    };
    let shown = accounts.len().min(CONSUMERS_MAX);
    for (account, dead) in accounts.iter().zip(dead).take(shown) {
        let of = labels(account);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (entry, count) in dead {
            let application = application(entry);
            let full = counts.len() >= APPLICATIONS_MAX && !counts.contains_key(application);
            let application = if full { OVERFLOW } else { application };
            *counts.entry(application).or_default() += count;
        }
        if counts.is_empty() {
            counts.insert("", 0);
        }
        for (application, count) in counts {
            write(&of, application, count);
        }
    }
    if accounts.len() > shown {
        let rest = dead.iter().skip(shown).flat_map(BTreeMap::values).sum();
        write(BEYOND, "", rest);
    }
}

/// One line for each consumer; what goes beyond the bound is put together by `with`.
fn each(
    out: &mut String,
    name: &str,
    accounts: &[Account],
    of: impl Fn(&Account) -> u64,
    with: impl Fn(u64, u64) -> u64,
) {
    let (shown, rest) = accounts.split_at(accounts.len().min(CONSUMERS_MAX));
    for account in shown {
        sample(out, name, &labels(account), of(account));
    }
    if let Some(rest) = rest.iter().map(of).reduce(with) {
        sample(out, name, BEYOND, rest);
    }
}

/// All consumers beyond the bound.
const BEYOND: &str = "kind=\"\",ns=\"\",trigger=\"_overflow\"";

/// A consumer's name, as labels.
fn labels(account: &Account) -> String {
    let mut parts = account.consumer.splitn(3, '/');
    let mut part = || parts.next().unwrap_or_default();
    let (kind, namespace, consumer) = (part(), part(), part());
    format!("kind=\"{kind}\",ns=\"{namespace}\",trigger=\"{consumer}\"")
}

/// Type first, as these families have always been written.
fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}").ok();
}
