//! An event of the log once more, as a new event. It comes in by this hop like any other, and is durable before it is told.
//!
//! Who may do so has been decided before; what is asked here is what is asked of every publisher.

use std::sync::Arc;

use bytes::Bytes;
use heddle_api::attributes::Value;
use heddle_api::republish::CAUSE;
use http::{Response, StatusCode};
use http_body_util::Full;

use super::refusal::{self, PublishError};
use super::{Source, envelope, path};
use crate::event::{Event, json};
use crate::heartbeat;
use crate::log::Offset;
use crate::path::channel;

/// A refusal as publishers get it.
pub(crate) type RefusedPublish = Box<Response<Full<Bytes>>>;

impl Source {
    /// The new event: a copy, or what somebody made of it. Its id is another than the original's.
    pub(crate) fn made_from(
        &self,
        original: &Event,
        offset: Offset,
        edited: Option<&Bytes>,
    ) -> Result<Event, RefusedPublish> {
        let refuse = |refused: PublishError| Box::new(refused.response());
        let base = match edited {
            None => original.clone(),
            Some(text) => json::read_one(text, &self.limits)
                .map_err(|refused| refuse(PublishError::from(refused)))?,
        };
        if heartbeat::is_reserved(base.type_()) {
            return Err(refuse(refusal::type_reserved(base.type_(), None)));
        }
        let id = match (base.source(), base.id()) == (original.source(), original.id()) {
            true => self.shared.chance.uuid(),
            false => base.id().to_owned(),
        };
        let cause = offset.to_string();
        let event = base.with(&[
            ("id", Some(Value::Text(&id))),
            (CAUSE, Some(Value::Text(&cause))),
        ]);
        // `specversion` is one of them and not kept.
        let count = event.attributes().count() + 1;
        let counted = self.limits.check_attributes(count);
        counted.map_err(|refused| refuse(PublishError::from(refused)))?;
        Ok(event)
    }

    /// Where such an event would come in, if that is there.
    pub(crate) fn place(&self, entry: &str) -> Result<Arc<str>, RefusedPublish> {
        let in_force = self.shared.in_force.load();
        let at = format!("/{entry}");
        let found = match path(&at) {
            _ if !in_force.ready => Err(refusal::starting()),
            Some(door) => door.open(&in_force),
            None => Err(refusal::no_such_path()),
        };
        found.map_err(|refused| Box::new(refused.response()))
    }

    /// Takes it in; answers when it is safe.
    pub(crate) async fn take_in(
        &self,
        entry: &Arc<str>,
        event: Event,
    ) -> Result<Offset, RefusedPublish> {
        let begun = self.shared.clock.monotonic();
        let appended = match envelope(entry, None, event, None) {
            Ok(envelope) => channel::append(&self.shared, &envelope)
                .await
                .map_err(PublishError::from),
            Err(refused) => Err(refused),
        };
        let response = appended.as_ref().map_err(PublishError::response);
        let status = match &response {
            Ok(_) => StatusCode::ACCEPTED,
            Err(response) => response.status(),
        };
        let at = format!("/{entry}");
        if let Some(door) = path(&at) {
            let took = self.shared.clock.monotonic().saturating_sub(begun);
            let metrics = &self.shared.metrics;
            metrics.published(door.kind(), Some(entry), status.as_u16(), 1, took);
        }
        response.map(|offsets| offsets.start).map_err(Box::new)
    }
}
