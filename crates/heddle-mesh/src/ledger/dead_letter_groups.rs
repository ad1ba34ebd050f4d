//! Dead letters by what they have in common, and what would become of a selection of them.
//!
//! One walk over what is in memory, a piece at a time; the log and the journal are not asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::dead_letters::marks::{GroupMark, MarkKind};
use heddle_api::dead_letters::{
    BulkAct, DeadLetterGroup, DeadLetterGroups, DeadLetterPreview, NOT_CURED_BY_REPEATING,
    PreviewedConsumer, SubscriberNow, is_cured_by_repeating,
};
use jiff::Timestamp;

use super::trace::held;
use crate::bulk;
use crate::consumer::State;
use crate::journal::cause;
use crate::journal::positions::DeadLetterEntry;
use crate::journal::record::ConsumerId;
use crate::marks::SeenMarks;
use crate::mesh::Mesh;
use crate::metrics;
use crate::path::dead_letter::picker::{GroupBy, Picker, cause_of};
use crate::path::dead_letter::walk::{LetterWalk, MetLetter};

/// Groups in one answer.
const GROUPS_MAX: usize = 500;
/// Types named of one group.
const TYPES_MAX: usize = 10;

/// A group while it is gathered.
struct Gathered {
    first: DeadLetterEntry,
    /// Of the consumer of that one.
    key: Arc<str>,
    /// The last that came to rest, and its name.
    last: (Timestamp, u64),
    count: u64,
    types: BTreeSet<String>,
    same_consumer: bool,
    same_cause: bool,
    same_application: bool,
}

impl Gathered {
    fn new(met: &MetLetter<'_>) -> Self {
        Self {
            first: met.rest.clone(),
            key: Arc::clone(met.key),
            last: (met.rest.at, met.name),
            count: 0,
            types: BTreeSet::new(),
            same_consumer: true,
            same_cause: true,
            same_application: true,
        }
    }

    fn add(&mut self, met: &MetLetter<'_>) {
        let (rest, first) = (met.rest, &self.first);
        self.count += 1;
        self.same_consumer &= rest.consumer == first.consumer;
        self.same_cause &= (rest.class, rest.status, rest.reply, &rest.cause)
            == (first.class, first.status, first.reply, &first.cause);
        let application = metrics::application(&rest.entry);
        self.same_application &= application == metrics::application(&first.entry);
        self.last = self.last.max((rest.at, met.name));
        if self.types.len() < TYPES_MAX && !self.types.contains(&rest.type_) {
            self.types.insert(rest.type_.clone());
        }
        if rest.at < first.at {
            self.first = rest.clone();
            self.key = Arc::clone(met.key);
        }
    }

    fn shown(self, by: GroupBy, quotes: bool, marks: &SeenMarks) -> (ConsumerId, DeadLetterGroup) {
        let (rest, key) = (&self.first, &*self.key);
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
            reason: cause.map(|rest| match quotes {
                true => rest.cause.clone(),
                false => cause_unquoted(rest),
            }),
            replies: cause.is_some_and(|rest| rest.reply.is_some()),
            count: self.count,
            first: rest.at,
            last: self.last.0,
            sample: self.last.1.to_string(),
            subscriber_now: None,
            mark: match by {
                GroupBy::Cause => marks.of(rest, key).cloned(),
                GroupBy::Type | GroupBy::Application => None,
            },
            types: self.types.into_iter().collect(),
        };
        (self.first.consumer, group)
    }
}

/// Groups while they are gathered, by what tells them apart.
#[derive(Default)]
struct GatheredGroups {
    by_cause: HashMap<(ConsumerId, u64), Gathered>,
    by_text: HashMap<String, Gathered>,
}

impl GatheredGroups {
    fn add(&mut self, by: GroupBy, met: &MetLetter<'_>) {
        let text: &str = match by {
            GroupBy::Cause => {
                let cause = (met.rest.consumer, cause_of(met.rest));
                let group = self.by_cause.entry(cause);
                return group.or_insert_with(|| Gathered::new(met)).add(met);
            }
            GroupBy::Type => &met.rest.type_,
            GroupBy::Application => metrics::application(&met.rest.entry),
        };
        match self.by_text.get_mut(text) {
            Some(group) => group.add(met),
            None => {
                let mut group = Gathered::new(met);
                group.add(met);
                self.by_text.insert(text.to_owned(), group);
            }
        }
    }
}

/// The cause in words of our own: what a subscriber answers may quote the data that it was sent.
fn cause_unquoted(rest: &DeadLetterEntry) -> String {
    let answered = format!("the subscriber answered {}", rest.status);
    match rest.reason == answered {
        true => answered,
        false => cause::normalise(&rest.reason),
    }
}

impl Mesh {
    /// What the picked ones have in common, those with the most first and those that are marked behind them; with `quotes` in the words of their subscribers.
    pub(crate) async fn dead_letter_groups(
        &self,
        picker: &Picker,
        by: GroupBy,
        quotes: bool,
    ) -> DeadLetterGroups {
        let mut answer = DeadLetterGroups::default();
        let mut gathered = GatheredGroups::default();
        let marks = self.seen_marks(picker.within()).await;
        let walk = LetterWalk::new(&self.shared, picker);
        walk.all(|met| {
            answer.total += 1;
            match marks.kind_of(met.rest, met.key) {
                Some(MarkKind::Known) => answer.known += 1,
                Some(MarkKind::Ignored) => answer.ignored += 1,
                None => {}
            }
            gathered.add(by, &met);
        })
        .await;
        let GatheredGroups { by_cause, by_text } = gathered;
        let groups = by_cause.into_values().chain(by_text.into_values());
        let mut shown: Vec<(ConsumerId, DeadLetterGroup)> = groups
            .map(|group| group.shown(by, quotes, &marks))
            .collect();
        shown.sort_by(|(_, one), (_, other)| {
            let place = |group: &DeadLetterGroup| {
                let is_marked = group.mark.as_ref().is_some_and(GroupMark::holds);
                (is_marked, std::cmp::Reverse(group.count))
            };
            (place(one), &one.key).cmp(&(place(other), &other.key))
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
    pub(crate) async fn preview(&self, picker: &Picker, act: BulkAct) -> DeadLetterPreview {
        let mut preview = DeadLetterPreview::default();
        let mut counts: BTreeMap<ConsumerId, u64> = BTreeMap::new();
        let (mut last, mut cured) = (0, true);
        let walk = LetterWalk::new(&self.shared, picker);
        walk.all(|MetLetter { name, rest, .. }| {
            last = last.max(name);
            if act == BulkAct::Redrive && rest.reply.is_some() {
                preview.replies += 1;
                return;
            }
            preview.count += 1;
            preview.bytes += u64::from(rest.bytes);
            *counts.entry(rest.consumer).or_default() += 1;
            cured &= is_cured_by_repeating(rest.status);
        })
        .await;
        preview.up_to = (last > 0).then(|| last.to_string());
        let mut longest = Duration::ZERO;
        for (id, count) in counts {
            let consumer = self.shared.consumers.read().by_id.get(&id).cloned();
            let Some(consumer) = consumer else { continue };
            let state = consumer.lock();
            let ordered = state.routing.plan.ordered;
            let again = act == BulkAct::Redrive;
            longest = longest.max(match again {
                true => state.time_for(count),
                false => bulk::time_for_discarding(count),
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

pub(super) fn now(state: &State) -> SubscriberNow {
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
