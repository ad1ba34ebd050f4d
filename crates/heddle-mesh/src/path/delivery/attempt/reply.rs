//! A reply on its way to where replies go.
//!
//! It is there before the delivery that brought it counts. When it cannot be taken for now, the delivery is tried again and
//! brings it again; when it never will be, for what it is, the event is delivered and the reply is a bad one.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

use super::{Attempt, AttemptResult, FailedAttempt, NotTaken, RESERVED};
use crate::event::{Event, http as ce};
use crate::heartbeat;
use crate::journal::{BadReply, ReplyFault};
use crate::path::delivery::courier::{Address, Outcome};
use crate::path::delivery::plan::Target;

/// Why a reply is not where it was to go.
enum Unreplied {
    /// It never will be, for what it is.
    Bad(Box<BadReply>),
    /// What that makes of the delivery.
    Failed(AttemptResult),
}

impl Attempt<'_> {
    /// What becomes of a delivery that was answered with this status and this event.
    pub(super) async fn send_reply(&self, status: u16, reply: &Event) -> AttemptResult {
        let sent = match &self.plan.reply {
            _ if heartbeat::is_reserved(reply.type_()) => Err(refused(reply, RESERVED)),
            Target::None => Ok(()),
            Target::Unresolved(why) => {
                let bad = bad(reply, ReplyFault::NoDestination, why.clone());
                Err(Unreplied::Bad(bad))
            }
            Target::Entry(entry) => self.append_reply(entry, reply).await,
            Target::Url(address) => self.send_reply_to(address, reply).await,
        };
        match sent {
            Ok(()) => AttemptResult::delivered(status),
            Err(Unreplied::Bad(bad)) => AttemptResult::Delivered {
                status,
                bad_reply: Some(bad),
            },
            Err(Unreplied::Failed(done)) => unaccepted(done),
        }
    }

    async fn append_reply(&self, entry: &Arc<str>, reply: &Event) -> Result<(), Unreplied> {
        let appended = self.append(entry, reply).await;
        appended.map_err(|why| match why {
            NotTaken::Unfit(why) => refused(reply, &why),
            NotTaken::Later(why) => {
                Unreplied::Failed(AttemptResult::Backpressured { why, called: true })
            }
        })
    }

    async fn send_reply_to(&self, address: &Address, reply: &Event) -> Result<(), Unreplied> {
        let (plan, courier) = (self.plan, &self.shared.courier);
        let extra = self.extra(false, &[]);
        let report = courier
            .send(address, reply, plan.format, &extra, plan.policy.timeout)
            .await;
        let failed = match report.outcome {
            Outcome::Accepted { .. } => return Ok(()),
            Outcome::OwnListener => {
                let place = self.place_behind(address.path());
                let place = place.map_err(Unreplied::Failed)?;
                return self.append_reply(&place, reply).await;
            }
            Outcome::Refused { status, .. } => {
                let why = format!("the reply's destination answered {status}");
                if is_about_content(status) {
                    return Err(refused(reply, &why));
                }
                AttemptResult::again(why)
            }
            Outcome::Gone => AttemptResult::never("the reply's destination is gone"),
            Outcome::Failed { error } => {
                AttemptResult::again(format!("the reply could not be sent: {error}"))
            }
            Outcome::Unsent { error } => AttemptResult::Backpressured {
                why: error,
                called: true,
            },
        };
        Err(Unreplied::Failed(failed))
    }
}

/// Whether an answer says that the event itself is wrong, so that no time and no repair elsewhere makes it right.
fn is_about_content(status: u16) -> bool {
    matches!(status, 400 | 413 | 415 | 422)
}

/// The delivery fails with its reply, and the subscriber was called for it.
fn unaccepted(done: AttemptResult) -> AttemptResult {
    match done {
        AttemptResult::Failed(failed) => AttemptResult::Failed(FailedAttempt {
            error: format!("its reply was not accepted: {}", failed.error),
            ..failed
        }),
        AttemptResult::Backpressured { why, .. } => AttemptResult::Backpressured {
            why: format!("its reply was not accepted: {why}"),
            called: true,
        },
        other => other,
    }
}

fn refused(reply: &Event, why: &str) -> Unreplied {
    let why = format!("the reply was not accepted: {why}");
    Unreplied::Bad(bad(reply, ReplyFault::Refused, why))
}

/// An event that is kept as what somebody replied, in the JSON format.
fn bad(reply: &Event, fault: ReplyFault, why: String) -> Box<BadReply> {
    let mut headers = HeaderMap::new();
    let text = ce::write_structured(reply, &mut headers);
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let bad = BadReply::new(fault, why, content_type.unwrap_or_default(), &text);
    Box::new(bad)
}
