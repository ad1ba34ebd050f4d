//! Reading an event for an attempt, together with the right to hold it while it is sent.
//!
//! When there is no room for it, its bytes are let go, room is waited for no longer than an attempt may take, and they are
//! read again: those who wait hold nothing.

use std::sync::Arc;

use bytes::Bytes;
use heddle_api::duck::DeliveryFormat;
use jiff::Timestamp;

use super::super::courier::Address;
use super::super::job::{Job, JobKind};
use super::super::plan::{DeliveryPlan, Target};
use super::super::sending::{Key, SendingNeed, SendingRoom};
use crate::envelope::Envelope;
use crate::event::Form;
use crate::log::{Lookup, Unavailable};
use crate::shared::Shared;

/// Why an event is not read for now.
const NO_ROOM: &str =
    "other events on their way to this destination, or to all, hold the memory that it needs";

/// An event that may be sent.
pub(super) struct Loaded<'a> {
    pub(super) payload: Bytes,
    pub(super) accepted_at: Timestamp,
    /// Held until what came of the attempt is settled.
    pub(super) room: SendingRoom<'a>,
}

impl<'a> Loaded<'a> {
    fn new(read: Bytes, accepted_at: Timestamp, room: SendingRoom<'a>) -> Self {
        Self {
            payload: room.payload(read),
            accepted_at,
            room,
        }
    }
}

/// The job's event, and room for it.
pub(super) async fn load<'a>(
    shared: &'a Arc<Shared>,
    job: &mut Job,
    plan: &'a DeliveryPlan,
) -> Result<Lookup<Loaded<'a>>, Unavailable> {
    let found = match job.record.take() {
        Some(record) => {
            shared.give_back(record.payload.len());
            Lookup::Found((record.payload, record.at))
        }
        None => job.find(shared)?,
    };
    let (payload, at) = match found {
        Lookup::Found(found) => found,
        Lookup::Damaged => return Ok(Lookup::Damaged),
        Lookup::Gone => return Ok(Lookup::Gone),
    };
    let sending = shared.courier.sending();
    let Some(to) = destination(plan, job) else {
        return Ok(Lookup::Found(Loaded::new(
            payload,
            at,
            SendingRoom::Unneeded,
        )));
    };
    if let Some(room) = sending.small(payload.len()) {
        return Ok(Lookup::Found(Loaded::new(payload, at, room)));
    }
    let need = need(to, plan, job, &payload);
    if let Ok(room) = sending.large_now(&need, &payload) {
        return Ok(Lookup::Found(Loaded::new(payload, at, room)));
    }
    let reserving = sending.reserve(&need, payload);
    let reserved = shared.clock.timeout(plan.policy.timeout, reserving).await;
    let reserved = reserved.map_err(|_| Unavailable(NO_ROOM.to_owned()))?;
    Ok(job.find(shared)?.map(|(payload, at)| {
        let room = sending.fill(&need, reserved, &payload);
        Loaded::new(payload, at, room)
    }))
}

/// Where it goes, if it leaves this process.
fn destination<'a>(plan: &'a DeliveryPlan, job: &Job) -> Option<&'a Address> {
    let target = if job.is_sink() {
        &plan.sink
    } else {
        &plan.target
    };
    match target {
        Target::Url(address) => Some(address),
        Target::None | Target::Unresolved(_) | Target::Entry(_) => None,
    }
}

fn need<'a>(to: &'a Address, plan: &DeliveryPlan, job: &Job, payload: &Bytes) -> SendingNeed<'a> {
    let is_structured = match plan.format {
        Some(format) => format == DeliveryFormat::Json,
        None => {
            let envelope = Envelope::decode(payload);
            envelope.is_ok_and(|envelope| envelope.event.form() == Form::Structured)
        }
    };
    SendingNeed {
        key: match job.kind {
            JobKind::Event | JobKind::Resent => Key::Log(job.offset),
            JobKind::Redriven(name) | JobKind::Sink(name) => Key::DeadLetter(name),
        },
        bytes: payload.len(),
        // For its sink a dead letter is read once more, and gets attributes.
        copies: usize::from(is_structured) + if job.is_sink() { 2 } else { 0 },
        account: to.account(),
    }
}
