//! A delivery whose address turned out to be the events listener of this very process.
//!
//! It is treated as what it is, an event that the mesh leads from one of its places to another: policies are asked, a hop
//! is taken off, and it is appended without a detour through the door, at which it would come in like a stranger's.

use std::sync::Arc;

use bytes::Bytes;

use super::{Attempt, AttemptResult, FailedAttempt};
use crate::event::Event;
use crate::path::delivery::answer::{DeliveryOutcome, verdict};
use crate::path::delivery::courier::Address;
use crate::path::source;

impl Attempt<'_> {
    /// Leads an event to the place behind that path of our own listener, if policies let it.
    pub(super) async fn lead(&self, address: &Address, event: &Event) -> AttemptResult {
        match self.place_behind(address.path()) {
            Ok(place) => self.pass_on(&place, event).await,
            Err(done) => done,
        }
    }

    pub(super) fn place_behind(&self, path: &str) -> Result<Arc<str>, AttemptResult> {
        let in_force = self.shared.in_force.load();
        let place = source::place_at(&in_force, path).map_err(|(status, message)| {
            let again = verdict(status.as_u16()) == DeliveryOutcome::Refused { retry: true };
            refused(status.as_u16(), again, message)
        })?;
        let allowed = in_force.table.may_lead(self.consumer, &place);
        allowed.map_err(|remedy| refused(403, false, remedy))?;
        Ok(place)
    }
}

/// What the door would have answered.
fn refused(status: u16, again: bool, message: String) -> AttemptResult {
    AttemptResult::Failed(FailedAttempt {
        status,
        again,
        retry_after: None,
        answer: Bytes::from(message.clone()),
        error: message,
    })
}
