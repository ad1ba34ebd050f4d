//! Dead letters of replies: what a subscriber answered that could not go on.
//!
//! The event was delivered, so its account is left alone, no sink hears of it, and there is nothing to send again: a reply
//! is looked at and thrown away. For the same reason bad replies never keep a consumer from being sent events. Beyond
//! [`CONSUMER_REPLIES_MAX`], or when there is no room for dead letters at all, a reply is counted and told in traces, and not kept.

use jiff::Timestamp;

use super::{ALL_MAX, DeadLetters};
use crate::journal::record::ConsumerId;
use crate::journal::{Attempted, BadReply, Dead, DeadReply};

/// Dead letters of replies of one consumer.
pub(super) const CONSUMER_REPLIES_MAX: u64 = 1_000;

/// The delivery that a reply came back for.
pub(crate) struct Answered {
    pub(crate) attempted: Attempted,
    pub(crate) accepted_at: Timestamp,
    /// The payload of the event's record.
    pub(crate) record: bytes::Bytes,
}

fn dead(name: u64, to: Answered, reply: BadReply) -> Dead {
    let kept = name != Dead::UNKEPT;
    Dead {
        attempted: to.attempted,
        name,
        redrives: 0,
        accepted_at: to.accepted_at,
        reason: reply.reason,
        answer: if kept {
            reply.beginning.to_vec()
        } else {
            Vec::new()
        },
        sink: false,
        given_up: false,
        record: if kept { to.record } else { bytes::Bytes::new() },
        reply: Some(DeadReply {
            fault: reply.fault,
            content_type: reply.content_type,
        }),
    }
}

impl DeadLetters {
    /// A reply cannot go on: it rests here if there is room. Gives its line, and whether it is the consumer's first.
    pub(crate) fn rest_reply(&mut self, to: Answered, reply: BadReply) -> (Dead, bool) {
        let consumer = to.attempted.consumer;
        let kept = self.has_room_for_reply(consumer);
        let first = kept && !self.has_replies(consumer);
        let name = if kept { self.next_name() } else { Dead::UNKEPT };
        let dead = dead(name, to, reply);
        if kept {
            self.rest(dead.clone());
        }
        (dead, first)
    }

    fn has_room_for_reply(&self, consumer: ConsumerId) -> bool {
        let own = self.reply_counts.get(&consumer).copied();
        let all: u64 = self.counts.values().chain(self.reply_counts.values()).sum();
        own.unwrap_or_default() < CONSUMER_REPLIES_MAX && all < ALL_MAX
    }

    /// Whether any reply of a consumer's subscriber rests.
    pub(crate) fn has_replies(&self, consumer: ConsumerId) -> bool {
        self.reply_counts
            .get(&consumer)
            .is_some_and(|count| *count > 0)
    }
}
