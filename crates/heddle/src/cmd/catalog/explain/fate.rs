//! What keeps a bundle, and what would delete it. Pure: the rules of the controller of Bundles, in words.

use heddle_api::bundle::{Absence, BundlePhase, MarkReason};
use heddle_api::registry::{RegistrySpec, StaleMode};
use jiff::{SignedDuration, Timestamp};

use super::Facts;
use crate::cmd::bundle::listing::{counted, phase};
use crate::output::{age, moment, span};

/// Both halves, each for people.
#[derive(Debug, PartialEq)]
pub(super) struct Fate {
    pub(super) kept_by: String,
    pub(super) deleted: String,
}

impl Fate {
    pub(super) fn of(facts: &Facts, now: Timestamp) -> Self {
        let used = (!facts.references.is_empty()).then(|| counted(&facts.references));
        if facts.bundle.metadata.deletion_timestamp.is_some() {
            let asked = "somebody asked for its deletion";
            return match used {
                Some(used) => {
                    Self::new(used, format!("when the last of these is removed; {asked}"))
                }
                None => Self::new("nothing", format!("at once; {asked}")),
            };
        }
        match phase(&facts.bundle) {
            BundlePhase::Live => live(facts),
            BundlePhase::Marked => marked(facts, used, now),
            BundlePhase::Sweeping => Self::new(
                used.unwrap_or_else(|| "nothing".to_owned()),
                "at once, unless a last look finds an instance or binding",
            ),
        }
    }

    fn new(kept_by: impl Into<String>, deleted: impl Into<String>) -> Self {
        Self {
            kept_by: kept_by.into(),
            deleted: deleted.into(),
        }
    }
}

fn live(facts: &Facts) -> Fate {
    let registry = &facts.bundle.spec.registry;
    let Some(spec) = facts.registry.as_ref().map(|registry| &registry.spec) else {
        let text = format!("once it is withdrawn, since registry {registry} is gone");
        return Fate::new("nothing", text);
    };
    let kept = match absence(facts) {
        Some(absence) => format!(
            "doubt: it was absent in {} of the {} readings that it takes",
            absence.readings, spec.removal_confirmations
        ),
        None => format!("registry {registry}, which has it"),
    };
    let readings = match spec.removal_confirmations {
        1 => "a reading proves".to_owned(),
        number => format!("{number} readings in a row prove"),
    };
    let mut text = format!(
        "not before it is withdrawn, which happens when {readings} it gone, when the registry denies it or is deleted, or by \
         `heddle bundle withdraw`"
    );
    if spec.stale_policy.mode == StaleMode::Hide {
        text.push_str("; while the registry cannot be read for long it is hidden, but kept");
    }
    Fate::new(kept, text)
}

fn absence(facts: &Facts) -> Option<&Absence> {
    let seen = facts.bundle.status.as_ref()?.seen.as_ref()?;
    seen.absence.as_ref()
}

fn marked(facts: &Facts, used: Option<String>, now: Timestamp) -> Fate {
    let status = facts.bundle.status.as_ref();
    let mark = status.and_then(|status| status.mark.as_ref());
    if mark.is_some_and(|mark| mark.reason == MarkReason::HiddenByStalePolicy) {
        return Fate::new(
            "the registry's stale policy, which only hides it",
            "never for this reason; it comes back when the registry can be read",
        );
    }
    let back = match mark.map(|mark| mark.reason) {
        Some(MarkReason::Admin) => "unless it is offered again",
        Some(MarkReason::RegistryRemoved) => "unless the registry is added again",
        _ => "unless its registry has it again",
    };
    if let Some(used) = used {
        return Fate::new(used, format!("when the last of these is removed, {back}"));
    }
    let grace = grace(facts.registry.as_ref().map(|registry| &registry.spec));
    let until = mark.and_then(|mark| mark.since.0.checked_add(grace).ok());
    match until.filter(|until| *until > now) {
        Some(until) => {
            let left = span(age(now, until));
            let text = format!("at {} (in {left}), {back}", moment(until));
            Fate::new("its time of grace", text)
        }
        None => Fate::new("nothing", format!("with the next sweep, {back}")),
    }
}

/// How long an unused bundle stays after it was withdrawn: as its registry says, or one of its intervals.
fn grace(spec: Option<&RegistrySpec>) -> SignedDuration {
    let seconds = spec.map_or(0, |spec| {
        let own = spec.sweep_grace_seconds;
        own.unwrap_or(spec.refresh_interval_seconds)
    });
    SignedDuration::from_secs(seconds.into())
}
