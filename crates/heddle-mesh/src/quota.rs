//! How much of the log one consumer may keep, so that a dead subscriber costs others no more disk than was agreed.
//!
//! ```text
//!   │ segment │ segment │ segment │ segment │ active │
//!        ^oldest unfinished       ^cut
//!        └───── expires ──────────┘└───── quota ─────┘
//! ```
//! What a consumer keeps is the log from its oldest unfinished event to the end, whoever's events those are, because
//! segments go whole. Beyond the quota its oldest events *expire*: they end by a policy that somebody declared, one line
//! of the journal each, and traces say so. Nothing expires unless an operator or the consumer's owner asked for a bound.
//! How events are taken out of a consumer is left to [`crate::consumer`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::log::room::mebibytes;
use crate::log::{Log, Offset, SegmentInfo};
use crate::routes::Settings;
use crate::shared::Shared;

/// A consumer that was beyond its quota is well again below three quarters of it, so that it does not flicker.
const EASED_PARTS: u32 = 3;
const PARTS: u32 = 4;

/// What one consumer's backlog may keep. Without bounds, everything until it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Of the log, in whole segments; the one that is appended to is always kept.
    pub bytes_max: Option<u64>,
    /// Of an event since it was accepted.
    pub age_max: Option<Duration>,
}

/// A quota at one moment, as places in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Everything below is beyond the quota.
    pub(crate) cut: Offset,
    /// Who keeps nothing below this is well within it.
    pub(crate) eased: Offset,
    pub(crate) reason: Arc<str>,
}

impl Quota {
    /// With what a consumer says about itself.
    pub(crate) fn with(self, settings: &Settings) -> Self {
        Self {
            bytes_max: settings.backlog_bytes_max.or(self.bytes_max),
            age_max: settings.backlog_age_max.or(self.age_max),
        }
    }

    /// `None` without bounds.
    fn limit(&self, log: &dyn Log, segments: &[SegmentInfo], now: Timestamp) -> Option<Limit> {
        let by_bytes = self.bytes_max.map(|bytes| {
            let eased = bytes / u64::from(PARTS) * u64::from(EASED_PARTS);
            Limit {
                cut: first_within(segments, bytes),
                eased: first_within(segments, eased),
                reason: format!("its backlog may keep {} of the log", mebibytes(bytes)).into(),
            }
        });
        let by_age = self.age_max.map(|age| {
            let since = |age| log.at_time(before(now, age));
            Limit {
                cut: since(age),
                eased: since(age / PARTS * EASED_PARTS),
                reason: format!("its backlog may be {} old", age_in_words(age)).into(),
            }
        });
        match (by_bytes, by_age) {
            (Some(bytes), Some(age)) => Some(Limit {
                eased: bytes.eased.max(age.eased),
                ..if bytes.cut >= age.cut { bytes } else { age }
            }),
            (bytes, age) => bytes.or(age),
        }
    }
}

/// Lets everything expire that is beyond a quota. What is not in memory expires when it is read.
pub(crate) fn enforce(shared: &Arc<Shared>, usual: Quota) {
    let (segments, now) = (shared.log.segments(), shared.clock.now());
    // Few quotas, and possibly many consumers: finding a time in the log may take a look at the disk.
    let mut limits: HashMap<Quota, Option<Limit>> = HashMap::new();
    for consumer in shared.user_consumers() {
        // Without a spec only its name's place is kept, and that for a day.
        let Some(spec) = consumer.lock().routing.spec.clone() else {
            continue;
        };
        let quota = usual.with(&spec.settings);
        let limit = limits
            .entry(quota)
            .or_insert_with(|| quota.limit(&*shared.log, &segments, now));
        consumer.hold_to(shared, limit.as_ref());
    }
}

/// Where the newest segments of no more than so many bytes begin.
fn first_within(segments: &[SegmentInfo], bytes_max: u64) -> Offset {
    let mut bytes: u64 = 0;
    let within = segments.iter().rev().take_while(|segment| {
        bytes = bytes.saturating_add(segment.bytes);
        !segment.sealed || bytes <= bytes_max
    });
    let oldest = within.last().map(|segment| segment.first);
    let end = segments.last().map_or(0, |segment| segment.next);
    oldest.unwrap_or(end)
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
    now.saturating_sub(age).unwrap_or(Timestamp::MIN)
}

fn age_in_words(age: Duration) -> String {
    const HOUR: u64 = 3600;
    match age.as_secs() {
        seconds if seconds > 0 && seconds.is_multiple_of(HOUR) => format!("{} h", seconds / HOUR),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests;
