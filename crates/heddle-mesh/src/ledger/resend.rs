//! What would be sent again: the events somebody means, judged one by one, before anything is done.
//!
//! It is read aside and from the newest on, and ends where an operation would be too much: at so many events, or bytes of the log.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::access::{Access, Right, Scope, namespace_of};
use heddle_api::dead_letters::BulkOperation;
use heddle_api::resend::{RESENT_MAX, ResendEdge, ResendPreview, ResendRequest};

use super::Error;
use super::dead_letter_groups::now;
use super::hints::HintWord;
use super::look_back::{Look, LookBack};
use crate::bulk::{ResendOrder, ResendPicker, ResendVerdict, RestingOffsets, consumer_of};
use crate::consumer::Consumer;
use crate::envelope::Envelope;
use crate::log::{Offset, Record};
use crate::mesh::Mesh;
use crate::shared::Shared;

/// Bytes of the log that are looked through for one.
const LOOK_BYTES_MAX: usize = 4 << 30;
/// The longest query that is kept with an operation.
const QUERY_BYTES_MAX: usize = 4 << 10;

impl Mesh {
    /// What somebody asks for, checked and with its times settled.
    pub(crate) fn resend_order(
        &self,
        request: &ResendRequest,
        access: &Access,
    ) -> Result<ResendOrder, Error> {
        let ResendRequest {
            consumer, query, ..
        } = request;
        let known = consumer_of(&self.shared, consumer).filter(|_| access.sees(consumer));
        if known.is_none() {
            let text = format!("there is no {consumer}; give trigger/NAMESPACE/NAME");
            return Err(Error::NotFound(text));
        }
        if !access.may(Right::Operate, namespace_of(consumer)) {
            let refusal = access.refusal(Right::Operate, namespace_of(consumer));
            return Err(Error::Forbidden(refusal));
        }
        if query.trim().is_empty() && request.from.is_none() && request.before.is_none() {
            let text = "say which events: a query such as since:2h, or from and before";
            return Err(Error::Invalid(text.to_owned()));
        }
        if query.len() > QUERY_BYTES_MAX {
            let text = format!("the query is longer than {QUERY_BYTES_MAX} bytes");
            return Err(Error::Invalid(text));
        }
        let scanned = self.shared.scanned();
        let order = ResendOrder {
            consumer: consumer.clone(),
            query: query.trim().to_owned(),
            asked_at: self.shared.clock.now(),
            from: request.from.unwrap_or(0),
            // Whatever nobody has matched yet is delivered all the same.
            before: request.before.unwrap_or(Offset::MAX).min(scanned),
            within: match &access.scope {
                Scope::All => None,
                Scope::Namespaces(within) => Some(within.clone()),
            },
            payloads: access.has(Right::Payloads),
            administrator: access.has(Right::Administer),
        };
        let query = order.query()?;
        if query.asks_consumers() {
            let text =
                "what is sent again is picked by what events are; leave consumer: and state: out";
            return Err(Error::Invalid(text.to_owned()));
        }
        if query.asks_for_data() && !access.has(Right::Payloads) {
            let text = "data may be searched by those who may read it; leave data. and text: out, or ask for the right to payloads";
            return Err(Error::Forbidden(text.to_owned()));
        }
        Ok(order)
    }

    /// What would be sent again.
    pub(crate) async fn preview_resend(
        &self,
        order: &ResendOrder,
        by: &str,
    ) -> Result<ResendPreview, Error> {
        let gone = || Error::Conflict(format!("{} takes no part at the moment", order.consumer));
        let consumer = consumer_of(&self.shared, &order.consumer).ok_or_else(gone)?;
        let (asked, user) = (order.clone(), by.to_owned());
        let whose = Arc::clone(&consumer);
        let picker = self.aside(move |mesh| ResendPicker::new(&mesh.shared, &whose, &asked, &user));
        let picker = picker.await?.ok_or_else(gone)?;
        let range = picker.range.clone();
        let words = picker.query().required_words().into_iter();
        let words = words.map(|(kind, text)| HintWord::of(kind, text)).collect();
        let count = ResendCount::new(Arc::clone(&self.shared), Arc::clone(&consumer), picker);
        let looking = LookBack::new(
            Arc::clone(&self.shared.log),
            Arc::clone(&self.shared.hints),
            range.clone(),
            words,
            count,
        );
        let (look, stopped) = self.look(looking, LOOK_BYTES_MAX).await?;
        let mut preview = look.preview;
        preview.more = stopped.is_some();
        let first = self.shared.log.bounds().start;
        preview.from = stopped.unwrap_or_else(|| range.start.max(first).min(range.end));
        preview.before = range.end;
        let state = consumer.lock();
        preview.consumer = consumer.key.to_string();
        preview.verdict = Some(now(&state));
        preview.ordered = state.routing.plan.ordered;
        let rate = state.routing.plan.rate;
        let by_rate = rate.map_or(Duration::ZERO, |rate| rate.time_for(preview.count));
        let least = state.time_for(preview.count).max(by_rate);
        let least = u64::try_from(least.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
        preview.estimate_s = [least, least.saturating_mul(4)];
        Ok(preview)
    }

    /// Begins to send them again, what was previewed and nothing that came since.
    pub(crate) async fn resend(
        &self,
        mut order: ResendOrder,
        by: &str,
    ) -> Result<BulkOperation, Error> {
        let preview = self.preview_resend(&order, by).await?;
        if preview.more {
            let place = preview.from;
            return Err(Error::Invalid(format!(
                "that is more than is sent again at once, {RESENT_MAX} events of at most 4 GiB of the log; ask for less, such as from:{place} on"
            )));
        }
        if preview.count == 0 {
            return Err(Error::Conflict(
                "none of these events is to be sent again; a request with dryRun says why"
                    .to_owned(),
            ));
        }
        order.from = order.from.max(preview.from);
        self.begin_resend(order, preview.count, by).await
    }
}

/// An event that would go, until it is known how it stands.
struct ResendCandidate {
    edge: ResendEdge,
    own: bool,
    bytes: u64,
}

/// The count while it goes on.
struct ResendCount {
    shared: Arc<Shared>,
    consumer: Arc<Consumer>,
    picker: ResendPicker,
    resting: RestingOffsets,
    chunk: Vec<ResendCandidate>,
    preview: ResendPreview,
}

impl ResendCount {
    fn new(shared: Arc<Shared>, consumer: Arc<Consumer>, picker: ResendPicker) -> Self {
        Self {
            shared,
            consumer,
            picker,
            resting: RestingOffsets::default(),
            chunk: Vec::new(),
            preview: ResendPreview::default(),
        }
    }
}

impl Look for ResendCount {
    fn record(&mut self, record: Record) {
        let Ok(envelope) = Envelope::decode(&record.payload) else {
            return;
        };
        match self.picker.judge(&record, &envelope) {
            ResendVerdict::Other => {}
            ResendVerdict::Filtered => self.preview.filtered += 1,
            ResendVerdict::Withheld => self.preview.withheld += 1,
            ResendVerdict::Goes { own } => {
                let event = &envelope.event;
                self.chunk.push(ResendCandidate {
                    own,
                    bytes: event.data().map_or(0, |data| data.len() as u64),
                    edge: ResendEdge {
                        offset: record.offset,
                        accepted_at: record.at,
                        id: event.id().to_owned(),
                        type_: event.type_().to_owned(),
                    },
                });
            }
        }
    }

    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        let state = self.consumer.lock();
        self.resting.refresh(&self.shared, &self.consumer);
        let waiting = state.waiting_offsets();
        let preview = &mut self.preview;
        let (mut first, mut last) = (None, None);
        for one in self.chunk.drain(..) {
            let offset = one.edge.offset;
            if state.is_unfinished(offset, one.own, &waiting) {
                preview.pending += 1;
            } else if self.resting.contains(offset) {
                preview.dead_letters += 1;
            } else {
                preview.count += 1;
                preview.bytes += one.bytes;
                first.get_or_insert_with(|| one.edge.clone());
                last = Some(one.edge);
            }
        }
        // Chunks come from the newest on.
        preview.oldest = first.or_else(|| preview.oldest.take());
        preview.newest = preview.newest.take().or(last);
        Ok(match preview.count > RESENT_MAX {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }
}
