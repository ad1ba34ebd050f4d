//! Reads what a subscription of a recording has not acknowledged.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::Recorded;
use super::index::{At, Index, RecordedSubscription};
use crate::counters::{Sequence, SubscriptionId};
use crate::origin::{Answer, Error, OriginEvent, OriginRead, Reader};

/// What one answer holds: events are read until this is reached.
const ANSWER_BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct RecordedReader {
    recorded: Recorded,
    index: Arc<Index>,
    subscription: RecordedSubscription,
    /// Not handed out yet.
    left: VecDeque<(Sequence, At)>,
    out: BTreeSet<Sequence>,
    /// What was sent before this reader began.
    sent_before: Sequence,
}

impl RecordedReader {
    pub(super) fn begin(
        recorded: Recorded,
        index: &Arc<Index>,
        id: &SubscriptionId,
    ) -> Result<Self, Error> {
        let channel = index.channel(&id.channel)?;
        let found = channel.subscriptions.iter().find(|known| known.id == *id);
        let found = found.ok_or_else(|| Error::NotFound(format!("there is no {id}")))?;
        let subscription = recorded.inner.progress.lock().of(found);
        let left = channel.events.iter();
        let left = left.filter(|(sequence, _)| !subscription.acknowledged.contains(**sequence));
        Ok(Self {
            left: left.map(|(sequence, at)| (*sequence, *at)).collect(),
            sent_before: subscription.last_sent,
            out: BTreeSet::new(),
            index: Arc::clone(index),
            subscription,
            recorded,
        })
    }

    async fn read_some(&mut self, events_max: usize) -> Result<OriginRead, Error> {
        if self.left.is_empty() {
            return Ok(OriginRead::End);
        }
        let wanted: Vec<_> = self.left.iter().take(events_max.max(1)).copied().collect();
        let (index, sent_before) = (Arc::clone(&self.index), self.sent_before);
        let reading = self.recorded.ask(move |inner| {
            let mut events: Vec<OriginEvent> = Vec::new();
            let mut bytes = 0;
            for (sequence, at) in wanted {
                let record = index.read(&*inner.vfs, &inner.dir, at)?;
                let event = record
                    .event(sequence <= sent_before)
                    .map_err(Error::Corrupt)?;
                bytes += event.data.len();
                events.push(event);
                if bytes >= ANSWER_BYTES_MAX {
                    break;
                }
            }
            Ok(events)
        });
        let events = reading.await?;
        for event in &events {
            self.left.pop_front();
            self.out.insert(event.sequence);
            let last_sent = &mut self.subscription.last_sent;
            *last_sent = event.sequence.max(*last_sent);
        }
        Ok(OriginRead::Events(events))
    }

    async fn told(&mut self, sequences: &[Sequence]) -> Result<(), Error> {
        let mut now = self.subscription.clone();
        for sequence in sequences {
            if !self.out.contains(sequence) && !now.acknowledged.contains(*sequence) {
                let text = format!("event {sequence} of {} was not handed out", now.id);
                return Err(Error::Invalid(text));
            }
            now.acknowledged.insert(*sequence, *sequence);
        }
        self.save(&now).await?;
        self.subscription = now;
        for sequence in sequences {
            self.out.remove(sequence);
        }
        Ok(())
    }

    async fn save(&self, subscription: &RecordedSubscription) -> Result<(), Error> {
        let subscription = subscription.clone();
        let saving = self.recorded.ask(move |inner| {
            let mut progress = inner.progress.lock();
            progress.save(&*inner.vfs, &inner.dir, &subscription)
        });
        saving.await
    }
}

impl Reader for RecordedReader {
    fn read(&mut self, events_max: usize) -> Answer<'_, OriginRead> {
        Box::pin(self.read_some(events_max))
    }

    fn acknowledge<'a>(&'a mut self, sequences: &'a [Sequence]) -> Answer<'a, ()> {
        Box::pin(self.told(sequences))
    }

    fn release(self: Box<Self>) -> Answer<'static, ()> {
        Box::pin(async move { self.save(&self.subscription).await })
    }
}
