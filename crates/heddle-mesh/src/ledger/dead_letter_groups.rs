//! Dead letters by what they have in common, and what would become of a selection of them.
//!
//! One walk over what is in memory; the log and the journal are not asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use heddle_api::dead_letters::{
    BulkAct, DeadLetterGroup, DeadLetterGroups, DeadLetterPreview, NOT_CURED_BY_REPEATING,
    PreviewedConsumer, SubscriberNow, is_cured_by_repeating,
};

use super::trace::held;
use crate::bulk;
use crate::consumer::State;
use crate::journal::positions::DeadLetterEntry;
use crate::journal::record::ConsumerId;
use crate::mesh::Mesh;
use crate::metrics;
use crate::path::dead_letter::picker::{GroupBy, Picker, cause_of};

/// Groups in one answer.
const GROUPS_MAX: usize = 500;
/// Types named of one group.
const TYPES_MAX: usize = 10;

/// A group while it is gathered.
struct Gathered<'a> {
    first: (u64, &'a DeadLetterEntry),
    last: (u64, &'a DeadLetterEntry),
    count: u64,
    types: BTreeSet<&'a str>,
    same_consumer: bool,
    same_cause: bool,
    same_application: bool,
}

impl<'a> Gathered<'a> {
    fn new(name: u64, rest: &'a DeadLetterEntry) -> Self {
        Self {
            first: (name, rest),
            last: (name, rest),
            count: 0,
            types: BTreeSet::new(),
            same_consumer: true,
            same_cause: true,
            same_application: true,
        }
    }

    fn add(&mut self, name: u64, rest: &'a DeadLetterEntry) {
        let first = self.first.1;
        self.count += 1;
        if rest.at < first.at {
            self.first = (name, rest);
        }
        if rest.at >= self.last.1.at {
            self.last = (name, rest);
        }
        if self.types.len() < TYPES_MAX {
            self.types.insert(&rest.type_);
        }
        self.same_consumer &= rest.consumer == first.consumer;
        self.same_cause &= (rest.class, rest.status, rest.reply, &rest.cause)
            == (first.class, first.status, first.reply, &first.cause);
        let application = metrics::application(&rest.entry);
        self.same_application &= application == metrics::application(&first.entry);
    }

    fn shown(self, by: GroupBy, key: &str) -> (ConsumerId, DeadLetterGroup) {
        let rest = self.first.1;
        let cause = self.same_cause.then_some(rest);
        let application = metrics::application(&rest.entry);
        let application =
            Some(application).filter(|name| self.same_application && !name.is_empty());
        let group = DeadLetterGroup {
            key: by.key(rest, key),
            consumer: self.same_consumer.then(|| key.to_owned()),
            application: application.map(str::to_owned),
            status: cause.map(|rest| rest.status).filter(|status| *status > 0),
            class: cause.map(|rest| rest.class),
            reason: cause.map(|rest| rest.cause.clone()),
            replies: cause.is_some_and(|rest| rest.reply.is_some()),
            count: self.count,
            first: rest.at,
            last: self.last.1.at,
            types: self.types.into_iter().map(str::to_owned).collect(),
            sample: self.last.0.to_string(),
            subscriber_now: None,
        };
        (rest.consumer, group)
    }
}

/// What a group is told apart by, without a text of its own for each letter.
#[derive(PartialEq, Eq, Hash)]
enum Apart<'a> {
    Cause(ConsumerId, u64, &'a str),
    Text(&'a str),
}

impl Mesh {
    /// What the picked ones have in common, those with the most first.
    pub(crate) fn dead_letter_groups(&self, picker: &Picker, by: GroupBy) -> DeadLetterGroups {
        let mut answer = DeadLetterGroups::default();
        let mut shown: Vec<(ConsumerId, DeadLetterGroup)> = {
            let consumers = self.shared.consumers.read();
            let letters = self.shared.dead.lock();
            let mut groups: HashMap<Apart<'_>, Gathered<'_>> = HashMap::new();
            for (name, rest) in letters.resting() {
                if !picker.picks(name, rest, consumers.key_of(rest.consumer)) {
                    continue;
                }
                answer.total += 1;
                let apart = match by {
                    GroupBy::Cause => Apart::Cause(rest.consumer, cause_of(rest), &rest.cause),
                    GroupBy::Type => Apart::Text(&rest.type_),
                    GroupBy::Application => Apart::Text(metrics::application(&rest.entry)),
                };
                let group = groups
                    .entry(apart)
                    .or_insert_with(|| Gathered::new(name, rest));
                group.add(name, rest);
            }
            let groups = groups.into_values();
            groups
                .map(|group| {
                    let key = consumers.key_of(group.first.1.consumer);
                    group.shown(by, key)
                })
                .collect()
        };
        shown.sort_by(|(_, one), (_, other)| {
            let one = (std::cmp::Reverse(one.count), &one.key);
            one.cmp(&(std::cmp::Reverse(other.count), &other.key))
        });
        answer.hidden = shown.len().saturating_sub(GROUPS_MAX) as u64;
        shown.truncate(GROUPS_MAX);
        let mut known = BTreeMap::new();
        for (consumer, mut group) in shown {
            if group.consumer.is_some() {
                let now = known.entry(consumer);
                let now = now.or_insert_with(|| self.subscriber_now(consumer));
                group.subscriber_now = Some(*now);
            }
            answer.groups.push(group);
        }
        answer
    }

    /// How the subscriber of a consumer is, as far as this mesh knows.
    fn subscriber_now(&self, consumer: ConsumerId) -> SubscriberNow {
        let consumer = self.shared.consumers.read().by_id.get(&consumer).cloned();
        consumer.map_or(SubscriberNow::Gone, |consumer| now(&consumer.lock()))
    }

    /// What would happen with the picked ones.
    pub(crate) fn preview(&self, picker: &Picker, act: BulkAct) -> DeadLetterPreview {
        let mut preview = DeadLetterPreview::default();
        let mut counts: BTreeMap<ConsumerId, u64> = BTreeMap::new();
        let (mut last, mut cured) = (0, true);
        {
            let consumers = self.shared.consumers.read();
            let letters = self.shared.dead.lock();
            for (name, rest) in letters.resting() {
                if !picker.picks(name, rest, consumers.key_of(rest.consumer)) {
                    continue;
                }
                last = name;
                if act == BulkAct::Redrive && rest.reply.is_some() {
                    preview.replies += 1;
                    continue;
                }
                preview.count += 1;
                preview.bytes += u64::from(rest.bytes);
                *counts.entry(rest.consumer).or_default() += 1;
                cured &= is_cured_by_repeating(rest.status);
            }
        }
        preview.up_to = (last > 0).then(|| last.to_string());
        let mut longest = Duration::ZERO;
        for (id, count) in counts {
            let consumer = self.shared.consumers.read().by_id.get(&id).cloned();
            let Some(consumer) = consumer else { continue };
            let state = consumer.lock();
            let ordered = state.routing.plan.ordered;
            let again = act == BulkAct::Redrive;
            longest = longest.max(match act {
                BulkAct::Redrive => state.time_for(count),
                BulkAct::Discard => bulk::time_for_discarding(count),
            });
            preview.consumers.push(PreviewedConsumer {
                consumer: consumer.key.to_string(),
                count,
                verdict: now(&state),
                ordered,
                overtakes: match again && ordered {
                    true => state.tally.pending(),
                    false => 0,
                },
            });
        }
        preview
            .consumers
            .sort_by(|one, other| one.consumer.cmp(&other.consumer));
        let least = longest.as_millis().div_ceil(1000);
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        // A subscriber that has much to do at once seldom takes more than a few times as long.
        preview.estimate_s = [least, least.saturating_mul(4)];
        if act == BulkAct::Redrive && !cured {
            preview.hints.push(NOT_CURED_BY_REPEATING.to_owned());
        }
        preview
    }
}

fn now(state: &State) -> SubscriberNow {
    if state.routing.spec.is_none() {
        return SubscriberNow::Gone;
    }
    if state.routing.plan.pause.is_some() {
        return SubscriberNow::Paused;
    }
    if state.window.held.is_some() {
        return SubscriberNow::Gone;
    }
    // Too many dead letters keep a consumer from being sent anything, whatever its subscriber is like.
    let held = state.window.dead_full.is_none() && held(state).is_some();
    if held || state.last_attempts.failed.is_some() {
        SubscriberNow::Failing
    } else if state.last_attempts.succeeded.is_some() {
        SubscriberNow::Healthy
    } else {
        SubscriberNow::Unknown
    }
}
