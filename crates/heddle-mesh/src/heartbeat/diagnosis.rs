//! Where a heartbeat that is missing got stuck: the hop after the last one that it is known to have passed. And where one that
//! arrived was kept up longest: the hop at the end of the largest gap between two marks.
//!
//! ```text
//!   refused                                  source, or channel when the log would not take it
//!   not safe on disk                         channel
//!   safe and not met by the scanner          broker
//!   met and not matched                      broker when there is none, subscription when no link leads there,
//!                                            broker again when one does
//!   matched and not attempted                trigger
//!   attempted and not arrived                delivery
//! ```

use std::time::Duration;

use heddle_api::dataplane::{HeartbeatTarget, StuckHop};
use heddle_api::names;
use heddle_api::well_known::INTEGRATION_NAMESPACE;

use super::board::Beat;
use super::{broker_of, canary, channel_of, key_of};
use crate::faults::InjectedFaults;
use crate::hop;
use crate::routes::Table;

/// What is true of the whole mesh while it is looked at.
#[derive(Debug)]
pub(crate) struct PathFacts<'a> {
    pub(crate) table: &'a Table,
    /// Why nothing is sent to anybody, if so.
    pub(crate) held: Option<&'a str>,
    pub(crate) faults: &'a InjectedFaults,
}

pub(super) fn stuck(
    beat: &Beat,
    target: &HeartbeatTarget,
    now: Duration,
    facts: &PathFacts<'_>,
) -> StuckHop {
    let channel = channel_of(&target.application);
    if let Some(refusal) = &beat.refused {
        return found(refusal.hop, &refusal.object, &refusal.why);
    }
    // Whoever was met by the scanner is safe, be the publisher told or not.
    if beat.appended.is_none() && beat.scanned.is_none() {
        let why = format!("not safe on disk {}", for_so_long(beat.sent, now));
        return found(hop::CHANNEL, &channel, &why);
    }
    let Some(scanned) = beat.scanned else {
        let since = beat.appended.unwrap_or(beat.sent);
        let why = format!("accepted and not matched {}", for_so_long(since, now));
        return found(hop::BROKER, &broker_of(target), &why);
    };
    let Some(matched) = beat.matched else {
        return unmatched(target, &channel, scanned, now, facts);
    };
    let key = key_of(&target.namespace, &target.application);
    let Some(attempted) = beat.attempted else {
        let why = match facts.held {
            Some(why) => why.to_owned(),
            None => format!("matched and not attempted {}", for_so_long(matched, now)),
        };
        return found(hop::TRIGGER, &key, &why);
    };
    let why = match &beat.failed {
        Some(why) => why.to_string(),
        None => format!("no answer {}", for_so_long(attempted, now)),
    };
    found(hop::DELIVERY, &key, &why)
}

/// Where one that arrived was kept up longest, and for how long. Marks that are missing take no time.
pub(super) fn slowest(beat: &Beat) -> (&'static str, Duration) {
    // Its publisher may be told after the scanner met it.
    let safe = [beat.appended, beat.scanned].into_iter().flatten().min();
    let marks = [
        (hop::CHANNEL, safe),
        (hop::BROKER, beat.scanned.max(beat.matched)),
        (hop::TRIGGER, beat.attempted),
        (hop::DELIVERY, beat.arrived),
    ];
    let (mut before, mut slowest) = (beat.sent, (hop::DELIVERY, Duration::ZERO));
    for (hop, mark) in marks {
        let at = mark.unwrap_or(before).max(before);
        let gap = at.saturating_sub(before);
        if gap > slowest.1 {
            slowest = (hop, gap);
        }
        before = at;
    }
    slowest
}

/// What a heartbeat waits for at a hop.
pub(super) fn object_at(hop: &str, target: &HeartbeatTarget) -> String {
    match hop {
        hop::CHANNEL => channel_of(&target.application),
        hop::BROKER => broker_of(target),
        _ => key_of(&target.namespace, &target.application),
    }
}

/// It was met, and did not come to this Broker.
fn unmatched(
    target: &HeartbeatTarget,
    channel: &str,
    scanned: Duration,
    now: Duration,
    facts: &PathFacts<'_>,
) -> StuckHop {
    let broker = broker_of(target);
    let link = match target.application.as_str() {
        canary::APPLICATION => canary::LINK.to_owned(),
        application => {
            let name = names::link_to(application, &target.namespace, &target.broker);
            format!("subscription/{INTEGRATION_NAMESPACE}/{name}")
        }
    };
    if facts.table.entry(&broker).is_none() {
        return found(hop::BROKER, &broker, "there is no such Broker");
    }
    if facts.faults.cuts(&target.application, &target.namespace) {
        return found(hop::SUBSCRIPTION, &link, "cut by fault injection");
    }
    if let Some((link, remedy)) = facts.table.denied_link(channel, &broker) {
        return found(hop::SUBSCRIPTION, link, remedy);
    }
    let key = key_of(&target.namespace, &target.application);
    let feeds = facts.table.consumer(&key).map(|(_, spec)| &spec.feeds);
    // They are in the order of their names.
    let is_fed = feeds.is_some_and(|feeds| {
        let found = feeds.binary_search_by(|feed| (*feed.entry).cmp(channel));
        found.is_ok()
    });
    if !is_fed {
        let why = format!("nothing leads from {channel} to {broker}");
        return found(hop::SUBSCRIPTION, &link, &why);
    }
    let why = format!("met and not handed on {}", for_so_long(scanned, now));
    found(hop::BROKER, &broker, &why)
}

fn found(hop: &str, object: &str, why: &str) -> StuckHop {
    StuckHop {
        hop: hop.to_owned(),
        object: object.to_owned(),
        why: why.to_owned(),
    }
}

fn for_so_long(since: Duration, now: Duration) -> String {
    format!("for {} s", now.saturating_sub(since).as_secs())
}
