//! What trying a subscriber between events proves. Pure.
//!
//! A delivery proves more: what was delivered after the last attempt outweighs it.

use heddle_api::dataplane::ConsumerReading;
use heddle_api::health::PlaneHealth;
use heddle_api::health::catalogue;

use super::judge::{MISSES_MAX, PlaneDetails as _, well, wrong};

/// The subscriber does not answer.
pub(super) fn failing(reading: &ConsumerReading) -> Option<PlaneHealth> {
    let probe = reading.probe.as_ref()?;
    let (why, age) = (probe.failed.as_ref()?, probe.age?);
    let believed = probe.misses >= MISSES_MAX && age <= probe.interval.saturating_mul(MISSES_MAX);
    let delivered_since = reading.succeeded.is_some_and(|succeeded| succeeded < age);
    if !believed || delivered_since {
        return None;
    }
    let evidence = format!("{}: {why}", probe.how);
    Some(wrong(&catalogue::SUBSCRIBER_UNREACHABLE).seen(evidence))
}

/// The subscriber answers, although nothing was sent to it lately.
pub(super) fn answering(reading: &ConsumerReading) -> Option<PlaneHealth> {
    let probe = reading.probe.as_ref()?;
    let fresh = probe.age? <= probe.interval.saturating_mul(MISSES_MAX);
    let message = format!(
        "nothing was sent lately, and the subscriber answers when it is tried ({})",
        probe.how
    );
    (fresh && probe.failed.is_none()).then(|| well("Answering", message))
}
