//! What the facts mean: pure, the worst first.

use std::time::Duration;

use heddle_api::Condition;
use heddle_api::checks::{self, CheckFinding, CheckReport, DoctorCheck, FindingLevel};
use heddle_api::conditions::Status;
use heddle_api::forecast::{Forecast, ForecastEvent};
use heddle_api::ledger::{Account, Accounts, LogFacts, SERVING};
use jiff::Timestamp;

use super::flows::{self, Flows};
use crate::output::{age, count, span};

/// A backoff of the usual length is over by then; whoever waits longer waits for somebody.
const PENDING_AGE_MAX: Duration = Duration::from_secs(10 * 60);
/// What a matcher is behind while it is merely busy.
const UNMATCHED_MAX: u64 = 10_000;
/// A disk that is full before then needs somebody today.
const FULL_SOON: Duration = Duration::from_secs(86_400);
/// With less than so many times the room that events need, somebody should know.
const ROOM_PARTS: u64 = 2;

/// Everything that was found out.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Empty when the server is ready.
    pub(crate) unready_because: Vec<String>,
    /// Or why there are none.
    pub(crate) accounts: Result<Accounts, String>,
    /// How many objects were looked at.
    pub(crate) objects: u64,
    pub(crate) unready: Vec<Unready>,
    pub(crate) flows: Flows,
}

/// An object that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unready {
    pub(crate) object: String,
    /// Whether it is certain, or only not known to be ready.
    pub(crate) certain: bool,
    pub(crate) reason: String,
    /// Whether it is too early to hold that against anybody.
    pub(crate) settling: bool,
    /// The command that says more, where there is one.
    pub(crate) explained_by: Option<String>,
}

impl Unready {
    /// Nothing, when the condition holds.
    pub(crate) fn unless_true(object: String, ready: Option<Condition>) -> Option<Self> {
        let ready = ready.unwrap_or_else(|| Condition {
            message: Some("no controller has looked at it yet".to_owned()),
            ..Condition::default()
        });
        if ready.status == Status::True {
            return None;
        }
        let words = [ready.reason, ready.message];
        Some(Self {
            object,
            certain: ready.status == Status::False,
            reason: words.into_iter().flatten().collect::<Vec<_>>().join(": "),
            settling: false,
            explained_by: None,
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(crate) check: DoctorCheck,
    pub(crate) level: FindingLevel,
    pub(crate) about: String,
    pub(crate) what: String,
    /// Empty when there is nothing to do.
    pub(crate) remedy: String,
}

impl Finding {
    pub(super) fn ok(check: DoctorCheck, about: &str, what: String) -> Self {
        Self::new(FindingLevel::Ok, check, about, what, "")
    }

    pub(super) fn bad(
        check: DoctorCheck,
        about: &str,
        what: String,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(FindingLevel::Bad, check, about, what, remedy)
    }

    fn warn(check: DoctorCheck, about: &str, what: String, remedy: impl Into<String>) -> Self {
        Self::new(FindingLevel::Warn, check, about, what, remedy)
    }

    fn new(
        level: FindingLevel,
        check: DoctorCheck,
        about: &str,
        what: String,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            check,
            level,
            about: about.to_owned(),
            what,
            remedy: remedy.into(),
        }
    }

    fn body(&self) -> CheckFinding {
        CheckFinding {
            id: self.check.id.to_owned(),
            category: self.check.category,
            level: self.level,
            about: self.about.clone(),
            what: self.what.clone(),
            remedy: self.remedy.clone(),
            link: self.check.link(),
        }
    }
}

/// The same, for machines.
pub(crate) fn report(facts: &Facts, now: Timestamp) -> CheckReport {
    let findings = of(facts, now);
    CheckReport {
        findings: findings.iter().map(Finding::body).collect(),
    }
}

/// All findings, the worst first, otherwise in the order of an event's way.
fn of(facts: &Facts, now: Timestamp) -> Vec<Finding> {
    let mut findings = server(&facts.unready_because);
    match &facts.accounts {
        Ok(accounts) => {
            // Whoever may see some namespaces only is not told of the log.
            if !accounts.log.is_untold() {
                findings.extend(log(&accounts.log));
                findings.push(matching(accounts));
            }
            findings.extend(balance(&accounts.consumers));
            findings.extend(
                accounts
                    .consumers
                    .iter()
                    .flat_map(|account| consumer(account, now)),
            );
        }
        Err(reason) => {
            let remedy = "nothing can be said about them; look at the server's log";
            let check = checks::ACCOUNTS_READABLE;
            findings.push(Finding::bad(check, "events", reason.clone(), remedy));
        }
    }
    findings.extend(objects(facts));
    findings.extend(flows::of(&facts.flows, now));
    findings.sort_by_key(|finding| finding.level);
    findings
}

fn server(unready_because: &[String]) -> Vec<Finding> {
    if unready_because.is_empty() {
        return vec![Finding::ok(
            checks::SERVER_READY,
            "server",
            "ready".to_owned(),
        )];
    }
    let remedy =
        "a full disk needs room, a failed one a restart; otherwise look at the server's log";
    let finding = |reason: &String| {
        let what = format!("not ready: {reason}");
        Finding::bad(checks::SERVER_READY, "server", what, remedy)
    };
    unready_because.iter().map(finding).collect()
}

fn log(log: &LogFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if log.health != SERVING {
        let what = format!("no event is accepted: {}", log.health);
        let remedy = "make room on the disk, or replace it and restart";
        findings.push(Finding::bad(checks::LOG_SERVING, "log", what, remedy));
    } else if let (Some(free), Some(needed)) = (log.free_bytes, log.needed_bytes)
        && free < needed.saturating_mul(ROOM_PARTS)
    {
        let what = format!(
            "{} MiB are free on its disk; with less than {} MiB events are refused",
            free >> 20,
            needed >> 20
        );
        let remedy = "make room; `heddle_kept_bytes` tells whose backlog keeps how much of the log";
        findings.push(Finding::warn(checks::LOG_ROOM, "log", what, remedy));
    }
    if let Some(full) = (log.disk_full.as_ref()).filter(|full| full.after() < FULL_SOON) {
        let what = full.in_words();
        let remedy = "make room, or publish less; `heddle_kept_bytes` tells whose backlog keeps how much of the log";
        findings.push(Finding::warn(checks::DISK_LASTS, "log", what, remedy));
    }
    if log.damaged > 0 {
        let what = format!("{} damaged and kept aside", count(log.damaged, "record"));
        findings.push(Finding::bad(checks::LOG_UNDAMAGED, "log", what, "the disk returned other bytes than were written: check it, and keep a copy of the data directory"));
    }
    if log.journal_lost > 0 {
        let what = format!(
            "{} of the journal lost in both copies; events whose end may have been in them were delivered again",
            count(log.journal_lost, "record")
        );
        let remedy = "check the disk; consumers that lost events are named below";
        let check = checks::JOURNAL_UNDAMAGED;
        findings.push(Finding::warn(check, "journal", what, remedy));
    }
    if findings.is_empty() {
        let what = format!(
            "serving, {} in {}, {} MiB, no damage",
            count(log.events, "event"),
            count(log.segments, "segment"),
            log.bytes >> 20
        );
        findings.push(Finding::ok(checks::LOG_SERVING, "log", what));
    }
    findings
}

fn matching(accounts: &Accounts) -> Finding {
    let behind = accounts.log.next.saturating_sub(accounts.matched_up_to);
    let what = format!("{} not matched with triggers yet", count(behind, "event"));
    if behind > UNMATCHED_MAX {
        let remedy = "ask again; if the number does not fall, the machine is too busy or matching has stopped";
        return Finding::warn(checks::MATCHING_UP_TO_DATE, "matching", what, remedy);
    }
    Finding::ok(checks::MATCHING_UP_TO_DATE, "matching", what)
}

/// Every matched event has ended or is pending, for everybody.
fn balance(consumers: &[Account]) -> Vec<Finding> {
    let off = consumers.iter().filter(|account| account.difference() != 0);
    let findings: Vec<Finding> = off
        .map(|account| {
            let what = format!(
                "{} of {} matched events are unaccounted for",
                account.difference(),
                account.matched
            );
            let remedy = "this must never happen: keep the data directory and report it";
            Finding::bad(checks::BALANCED, &account.consumer, what, remedy)
        })
        .collect();
    let lost = consumers.iter().filter(|account| account.lost > 0);
    let lost = lost.map(|account| {
        let what = format!(
            "nobody knows what became of {} of its {} events: the disk lost them",
            account.lost, account.matched
        );
        let remedy = "publish them again if they matter; `heddle trace` tells of each event that is still in the log";
        Finding::bad(checks::NOTHING_LOST, &account.consumer, what, remedy)
    });
    let findings: Vec<Finding> = findings.into_iter().chain(lost).collect();
    if !findings.is_empty() {
        return findings;
    }
    let matched: u64 = consumers.iter().map(|account| account.matched).sum();
    let what = format!(
        "{} for {}, all accounted for",
        count(matched, "matched event"),
        count(consumers.len() as u64, "consumer")
    );
    vec![Finding::ok(checks::BALANCED, "accounts", what)]
}

/// What one consumer suffers from.
fn consumer(account: &Account, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut warn = |check: DoctorCheck, what: String, remedy: String| {
        findings.push(Finding::warn(check, &account.consumer, what, remedy));
    };
    if let Some(held) = &account.held {
        let what = format!("nothing is sent: {held}");
        warn(
            checks::NOT_HELD,
            what,
            format!(
                "{} waiting; look at its conditions and its subscriber",
                count(account.pending, "event")
            ),
        );
    }
    if account.dead_letters > 0 {
        let what = format!("{} at rest", count(account.dead_letters, "dead letter"));
        warn(
            checks::NO_DEAD_LETTERS,
            what,
            dead_letters_command(&account.consumer),
        );
    }
    if let Some(dead) = forecast(account, ForecastEvent::DeadLettersBegin) {
        let what = dead.in_words();
        let name = account.consumer.split_once('/').map(|(_, name)| name);
        warn(
            checks::RETRIES_LAST,
            what,
            format!(
                "repair its subscriber, or keep the events until then: heddle trigger pause {}",
                name.unwrap_or_default()
            ),
        );
    }
    if account.dead_replies > 0 {
        let replies = match account.dead_replies {
            1 => "1 reply".to_owned(),
            more => format!("{more} replies"),
        };
        let what = format!("{replies} at rest that could not go on; the events were delivered");
        warn(
            checks::NO_DEAD_REPLIES,
            what,
            dead_letters_command(&account.consumer),
        );
    }
    let oldest = account.oldest_pending_at.map(|at| age(at, now));
    if let Some(oldest) = oldest.filter(|oldest| *oldest > PENDING_AGE_MAX) {
        let mut what = format!(
            "the oldest of {} has waited for {}",
            count(account.pending, "pending event"),
            span(oldest)
        );
        if let Some(done) = forecast(account, ForecastEvent::BacklogDone) {
            what.push_str(&format!("; {}", done.in_words()));
        }
        let to = account
            .destination
            .as_deref()
            .unwrap_or("a subscriber without an address");
        warn(
            checks::NOTHING_OLD,
            what,
            format!("it is meant for {to}; {} retrying", account.retrying),
        );
    }
    findings
}

/// What is expected of a consumer.
fn forecast(account: &Account, event: ForecastEvent) -> Option<&Forecast> {
    account
        .forecasts
        .iter()
        .find(|forecast| forecast.event == event)
}

/// `trigger/team-a/orders` as the filter of `heddle dead-letters list`.
fn dead_letters_command(consumer: &str) -> String {
    match consumer.split_once('/') {
        Some((kind @ ("trigger" | "subscription"), name)) => {
            format!("heddle dead-letters list --{kind} {name}")
        }
        _ => "heddle dead-letters list".to_owned(),
    }
}

fn objects(facts: &Facts) -> Vec<Finding> {
    let settling = facts.unready.iter().filter(|unready| unready.settling);
    let settling = settling.count() as u64;
    if facts.unready.len() as u64 == settling {
        let ready = facts.objects.saturating_sub(settling);
        let mut what = format!("{} ready", count(ready, "object"));
        if settling > 0 {
            what.push_str(&format!(", {} under way for less than a minute", settling));
        }
        return vec![Finding::ok(checks::OBJECTS_READY, "resources", what)];
    }
    let finding = |unready: &Unready| {
        let level = if unready.certain {
            FindingLevel::Bad
        } else {
            FindingLevel::Warn
        };
        let what = format!("not ready: {}", unready.reason);
        let explained = unready.explained_by.clone();
        let remedy = explained.unwrap_or_else(|| get_command(&unready.object));
        let check = checks::OBJECTS_READY;
        Finding::new(level, check, &unready.object, what, remedy)
    };
    let ripe = facts.unready.iter().filter(|unready| !unready.settling);
    ripe.map(finding).collect()
}

/// `trigger/team-a/orders` as what `heddle get` shows it with.
fn get_command(object: &str) -> String {
    let parts: Vec<&str> = object.split('/').collect();
    match parts.as_slice() {
        // Kyma's Subscription and Knative's share a name.
        ["subscription", namespace, name] => {
            format!("heddle get subscriptions.messaging.knative.dev/{name} -n {namespace} -o yaml")
        }
        [kind, namespace, name] => format!("heddle get {kind}/{name} -n {namespace} -o yaml"),
        _ => format!("heddle get {object} -o yaml"),
    }
}
