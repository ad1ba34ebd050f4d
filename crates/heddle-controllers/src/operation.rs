//! The way of an operation from accepted to its end, for instances and bindings alike. Pure.
//!
//! ```text
//!   accepted (spec) ──> in progress ──> succeeded     what was asked for is so
//!                            └────────> failed        its time is over, or somebody has to act first
//! ```
//! An end is an end: once told to a platform it is not taken back. It ends the operation, not the work. Controllers go on
//! making what the spec asks for, and a later operation finds it made.

mod subject;

use std::time::Duration;

use heddle_api::conditions::{
    Condition, ConditionSet, ConditionType, Conditions, READY, Reason, Status,
};
use heddle_api::operation::{
    GRACE_SECONDS, OperationKind, OperationProgress, OperationRequest, OperationState,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::reconcile::{Error, StepName};

pub(crate) use subject::{OperationSubject, operation_subject};

/// How long something that only people can put right may be wrong before an operation fails for it.
pub(crate) const GRACE: SignedDuration = SignedDuration::from_secs(GRACE_SECONDS);

/// A description is one line for people; some platforms keep no more than this.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// How things stand for an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fulfilment {
    /// What was asked for is so.
    Done(Option<String>),
    /// Not yet; whatever it waits for wakes the controller.
    Waiting(String),
    /// Not before somebody acts; fails once that lasted for [`GRACE`].
    Refused { since: Timestamp, why: String },
    /// Not yet, and not for longer than this after it was accepted.
    Within { limit: SignedDuration, why: String },
    /// Never.
    Hopeless(String),
}

/// What a failed operation leaves behind; only told where OSB wants to hear it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FailureReport {
    /// The instance works nevertheless.
    pub usable: bool,
    /// Asking again may help.
    pub repeatable: bool,
}

/// An accepted operation in the time it was given.
#[derive(Debug, Clone)]
pub(crate) struct Accepted<'a> {
    request: &'a OperationRequest,
    accepted: Timestamp,
    deadline: Option<Timestamp>,
}

impl<'a> Accepted<'a> {
    /// The operation of an object. An object that was made after its operation was accepted comes from a backup: its
    /// operation has all its time again.
    pub(crate) fn new(request: &'a OperationRequest, meta: &ObjectMeta) -> Self {
        let asked = request.accepted_at.0;
        let made = meta
            .creation_timestamp
            .as_ref()
            .map_or(asked, |time| time.0);
        let accepted = asked.max(made);
        let later = accepted.duration_since(asked);
        let deadline = request.deadline.as_ref();
        Self {
            request,
            accepted,
            deadline: deadline
                .map(|deadline| deadline.0.saturating_add(later).unwrap_or(deadline.0)),
        }
    }

    /// How far it has come. `before` is what was last said about any operation of the object.
    pub(crate) fn progress(
        &self,
        before: Option<&OperationProgress>,
        fulfilment: &Fulfilment,
        damage: FailureReport,
        attempts: Option<u32>,
        now: Timestamp,
    ) -> OperationProgress {
        if let Some(ended) = before.filter(|before| self.ended(before)) {
            return ended.clone();
        }
        let (state, description) = self.verdict(fulfilment, now);
        let kind = self.request.kind;
        let failed = state == OperationState::Failed;
        let on_instance = matches!(kind, OperationKind::Update | OperationKind::Deprovision);
        OperationProgress {
            id: self.request.id.clone(),
            kind,
            state,
            description: description.map(|text| one_line(&text)),
            attempts: attempts.map(|attempts| i32::try_from(attempts).unwrap_or(i32::MAX)),
            finished_at: (state != OperationState::InProgress).then(|| whole_seconds(now)),
            instance_usable: (failed && on_instance).then_some(damage.usable),
            update_repeatable: (failed && kind == OperationKind::Update)
                .then_some(damage.repeatable),
        }
    }

    fn verdict(&self, fulfilment: &Fulfilment, now: Timestamp) -> (OperationState, Option<String>) {
        let why = match fulfilment {
            Fulfilment::Done(note) => return (OperationState::Succeeded, note.clone()),
            Fulfilment::Hopeless(why) => return (OperationState::Failed, Some(why.clone())),
            Fulfilment::Waiting(why)
            | Fulfilment::Refused { why, .. }
            | Fulfilment::Within { why, .. } => why,
        };
        if let Some(deadline) = self.deadline.filter(|_| self.is_late(now)) {
            let text = format!("not done by {}: {why}", whole_seconds(deadline).0);
            return (OperationState::Failed, Some(text));
        }
        let over = self.patience(fulfilment).is_some_and(|end| end <= now);
        let state = if over {
            OperationState::Failed
        } else {
            OperationState::InProgress
        };
        (state, Some(why.clone()))
    }

    /// When a refusal or a wait has lasted long enough. Asking again starts it anew.
    fn patience(&self, fulfilment: &Fulfilment) -> Option<Timestamp> {
        match fulfilment {
            Fulfilment::Refused { since, .. } => self.accepted.max(*since).checked_add(GRACE).ok(),
            Fulfilment::Within { limit, .. } => self.accepted.checked_add(*limit).ok(),
            _ => None,
        }
    }

    /// How long until time alone changes the verdict.
    pub(crate) fn requeue_after(
        &self,
        progress: Option<&OperationProgress>,
        fulfilment: &Fulfilment,
        now: Timestamp,
    ) -> Option<Duration> {
        if progress.is_some_and(|progress| self.ended(progress)) {
            return None;
        }
        let ends = [self.deadline, self.patience(fulfilment)];
        let next = ends.into_iter().flatten().filter(|end| *end > now).min()?;
        Some(next.duration_since(now).unsigned_abs())
    }

    /// Whether its time is over.
    pub(crate) fn is_late(&self, now: Timestamp) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// What a condition that is not met says once its operation failed for lack of time: that is what the platform was told.
    pub(crate) fn deadline_reached(
        &self,
        progress: Option<&OperationProgress>,
        unmet: &Condition,
        (type_, reason): (ConditionType, Reason),
        now: Timestamp,
    ) -> Option<Condition> {
        let failed = progress.is_some_and(|told| told.state == OperationState::Failed);
        if unmet.status == Status::True || !failed || !self.is_late(now) {
            return None;
        }
        let message = format!(
            "operation {} did not end in time; the work goes on: {}",
            self.request.id,
            unmet.message.as_deref().unwrap_or_default()
        );
        Some(Condition {
            status: unmet.status,
            ..Condition::unmet(type_, reason, message)
        })
    }

    /// Whether `progress` tells the end of this operation.
    pub(crate) fn ended(&self, progress: &OperationProgress) -> bool {
        let end = matches!(
            progress.state,
            OperationState::Succeeded | OperationState::Failed
        );
        end && progress.id == self.request.id
    }
}

/// Whether the object is to be removed: somebody deleted it, or a platform asked for that.
pub(crate) fn removes(request: Option<&OperationRequest>) -> bool {
    let kind = request.map(|request| request.kind);
    matches!(
        kind,
        Some(OperationKind::Deprovision | OperationKind::Unbind)
    )
}

/// The condition that `Ready` waits for, as one line: which, since when, why.
pub(crate) fn blocking(set: &ConditionSet, conditions: &Conditions) -> String {
    let unmet = |status: Status| {
        let mut declared = set.dependents.iter();
        declared.find_map(|declared| {
            conditions
                .find(declared.name)
                .filter(|c| c.status == status)
        })
    };
    let culprit = unmet(Status::False).or_else(|| unmet(Status::Unknown));
    let Some(culprit) = culprit.or_else(|| conditions.find(READY)) else {
        return "nothing is known yet".to_owned();
    };
    let since = since(culprit).map_or_else(String::new, |since| format!(" since {since}"));
    let message = culprit.message.as_deref().unwrap_or("no reason is given");
    format!("waiting for {}{since}: {message}", culprit.type_)
}

/// Since when a condition is what it is.
pub(crate) fn since(condition: &Condition) -> Option<Timestamp> {
    condition.last_transition_time.as_ref().map(|time| time.0)
}

/// More precision would not survive the wire.
pub(crate) fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).expect("a second of a timestamp is in its range"))
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .take(DESCRIPTION_CHARS_MAX)
        .collect()
}

/// A step that could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepFailure {
    pub step_name: StepName,
    pub error: String,
    /// Tries in a row. Only powers of two: each new number is a write, and a write is a reason to look again.
    pub attempts: u32,
}

impl StepFailure {
    /// What there is to tell of an error. That somebody else wrote first is everyday life.
    pub(crate) fn new(step_name: StepName, error: &Error, attempts: u32) -> Option<Self> {
        let told = !matches!(error, Error::Moved(_));
        told.then(|| Self {
            step_name,
            error: error.to_string(),
            attempts: 1 << attempts.max(1).ilog2(),
        })
    }
}

/// `why`, and what went wrong when it was tried.
fn with_trouble(why: String, trouble: Option<&StepFailure>) -> String {
    match trouble {
        Some(StepFailure {
            step_name,
            error,
            attempts,
        }) => {
            format!(
                "{why}; step {step_name} was tried {attempts} times or more and is tried again: {error}"
            )
        }
        None => why,
    }
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
