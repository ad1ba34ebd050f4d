//! One line of the journal, and its bytes.

mod routing;

use jiff::Timestamp;

use super::bulk::BulkEntry;
use super::mark::GroupMarkEntry;
use super::reply::DeadReply;
use crate::codec::{Put, Take, Unreadable};
use crate::log::Offset;
use routing::{decode_routed, encode_routed};

/// Names a consumer in the journal. Given out once per key, never used again.
pub type ConsumerId = u32;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalRecord {
    /// A consumer takes part from an offset on, with these feeds and filters.
    Routed(Box<Routed>),
    /// It no longer takes part; its name keeps its place for a while.
    Unrouted {
        consumer: ConsumerId,
        at: Offset,
        when: Timestamp,
    },
    /// Its name's place is given up: whatever it had not finished was removed by whoever deleted it.
    Forgotten {
        consumer: ConsumerId,
        when: Timestamp,
    },
    /// An attempt failed and another will follow.
    Failed {
        attempted: Attempted,
        error: Box<str>,
        next_at: Timestamp,
        /// This mesh could not take what came of it, so it counts towards no limit.
        excused: bool,
    },
    Delivered(Attempted),
    /// Trying has ended; the event rests here, with all its bytes.
    Dead(Box<Dead>),
    /// Ended by a declared policy.
    Expired {
        consumer: ConsumerId,
        offset: Offset,
        at: Timestamp,
        reason: Box<str>,
    },
    /// A dead letter is on its way again.
    Redriven {
        consumer: ConsumerId,
        offset: Offset,
        name: u64,
        at: Timestamp,
        by: Box<str>,
    },
    /// An event of the log goes on its way again, whatever became of it before.
    Resent {
        consumer: ConsumerId,
        offset: Offset,
        at: Timestamp,
        /// What it is a part of; events are sent again in the order of the log.
        operation: u64,
        by: Box<str>,
    },
    /// A dead letter was thrown away.
    Discarded {
        consumer: ConsumerId,
        offset: Offset,
        name: u64,
        at: Timestamp,
        by: Box<str>,
        /// It was that of a reply: nothing became of the event by it.
        reply: bool,
    },
    /// Taken from the consumer before it had ended, by somebody who is named.
    Removed {
        consumer: ConsumerId,
        offset: Offset,
        at: Timestamp,
        by: Box<str>,
    },
    /// The external sink has the dead letter, or will not get it.
    Sunk {
        consumer: ConsumerId,
        offset: Offset,
        name: u64,
        at: Timestamp,
        status: u16,
        error: Box<str>,
    },
    /// Deliveries stopped (`reason`) or go on (empty).
    Held {
        consumer: ConsumerId,
        reason: Box<str>,
    },
    /// Events whose end was on record in what the journal lost, and which the log no longer has: what became of them is
    /// not known.
    Lost {
        consumer: ConsumerId,
        /// They lie between these two.
        from: Offset,
        to: Offset,
        events: u64,
        at: Timestamp,
    },
    Checkpoint(Checkpoint),
    /// Something is done with many dead letters, or has ended.
    Bulk(Box<BulkEntry>),
    /// A group of dead letters is marked, or no longer.
    Mark(Box<GroupMarkEntry>),
}

/// A consumer and what decides which events are its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed {
    pub consumer: ConsumerId,
    pub key: String,
    pub uid: String,
    pub generation: i64,
    /// The first offset this revision decides about.
    pub from: Offset,
    /// Events from `from` up to here were matched by nobody yet; the consumer reads and counts them itself.
    pub backfill_to: Offset,
    pub fingerprint: u64,
    /// Entry and the hops between.
    pub feeds: Vec<(String, Vec<String>)>,
    /// The filters, as JSON.
    pub filters: String,
}

/// One attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempted {
    pub consumer: ConsumerId,
    pub offset: Offset,
    /// Counts from 1.
    pub number: u32,
    pub at: Timestamp,
    pub latency_us: u32,
    /// 0 when there was no answer.
    pub status: u16,
}

/// An event at rest; or a reply, which leaves the account of the event it answers alone: that one was delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct Dead {
    pub attempted: Attempted,
    /// Names this dead letter, and no other, for ever; [`Dead::UNKEPT`] for a reply there was no room for.
    pub name: u64,
    pub redrives: u32,
    pub accepted_at: Timestamp,
    pub reason: String,
    /// The start of the last answer's body, or of the reply.
    pub answer: Vec<u8>,
    /// Whether an external sink is to have it too.
    pub sink: bool,
    /// Somebody ended it without another attempt; `attempted` only counts those before.
    pub given_up: bool,
    /// The payload of the event's record.
    pub record: bytes::Bytes,
    /// It is what a subscriber replied that rests, and not the event.
    pub reply: Option<DeadReply>,
}

/// How far everything is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Every event below was matched against the table.
    pub scanned: Offset,
    /// The consumers for which something changed since the last checkpoint.
    pub consumers: Vec<ConsumerCheckpoint>,
}

/// How far one consumer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerCheckpoint {
    pub consumer: ConsumerId,
    /// How many events were its own so far.
    pub matched: u64,
    /// Below this every event of its own has ended or has a failed attempt on record.
    pub floor: Offset,
    /// While it catches up by itself: events below this are counted in `matched`. Otherwise 0: all that were scanned are.
    pub counted_to: Offset,
}

const ROUTED: u8 = 1;
const UNROUTED: u8 = 2;
const FORGOTTEN: u8 = 3;
const FAILED: u8 = 4;
const DELIVERED: u8 = 5;
const DEAD: u8 = 6;
const EXPIRED: u8 = 7;
const REDRIVEN: u8 = 8;
const DISCARDED: u8 = 9;
const SUNK: u8 = 10;
const HELD: u8 = 11;
const CHECKPOINT: u8 = 12;
const REMOVED: u8 = 13;
/// As [`FAILED`], and excused.
const EXCUSED: u8 = 14;
const LOST: u8 = 15;
/// As [`DISCARDED`], and that of a reply.
const DISCARDED_REPLY: u8 = 16;
const BULK: u8 = 17;
const MARK: u8 = 18;
const RESENT: u8 = 19;

/// Bits of a dead letter.
const DEAD_SINK: u8 = 1;
const DEAD_GIVEN_UP: u8 = 2;
const DEAD_REPLY: u8 = 4;
const DEAD_KNOWN: u8 = DEAD_SINK | DEAD_GIVEN_UP | DEAD_REPLY;

impl JournalRecord {
    /// The event it speaks of, if it is about one.
    #[must_use]
    pub fn offset(&self) -> Option<Offset> {
        match self {
            Self::Failed { attempted, .. } | Self::Delivered(attempted) => Some(attempted.offset),
            Self::Dead(dead) => Some(dead.attempted.offset),
            Self::Expired { offset, .. }
            | Self::Redriven { offset, .. }
            | Self::Resent { offset, .. }
            | Self::Discarded { offset, .. }
            | Self::Removed { offset, .. }
            | Self::Sunk { offset, .. } => Some(*offset),
            Self::Routed(_)
            | Self::Unrouted { .. }
            | Self::Forgotten { .. }
            | Self::Held { .. }
            | Self::Lost { .. }
            | Self::Checkpoint(_)
            | Self::Bulk(_)
            | Self::Mark(_) => None,
        }
    }

    /// The consumer it speaks of; a checkpoint speaks of many.
    #[must_use]
    pub fn consumer(&self) -> Option<ConsumerId> {
        match self {
            Self::Failed { attempted, .. } | Self::Delivered(attempted) => Some(attempted.consumer),
            Self::Dead(dead) => Some(dead.attempted.consumer),
            Self::Routed(routed) => Some(routed.consumer),
            Self::Expired { consumer, .. }
            | Self::Redriven { consumer, .. }
            | Self::Resent { consumer, .. }
            | Self::Discarded { consumer, .. }
            | Self::Removed { consumer, .. }
            | Self::Sunk { consumer, .. }
            | Self::Unrouted { consumer, .. }
            | Self::Forgotten { consumer, .. }
            | Self::Lost { consumer, .. }
            | Self::Held { consumer, .. } => Some(*consumer),
            Self::Checkpoint(_) | Self::Bulk(_) | Self::Mark(_) => None,
        }
    }

    /// What its bytes begin with.
    fn kind(&self) -> u8 {
        match self {
            Self::Routed(_) => ROUTED,
            Self::Unrouted { .. } => UNROUTED,
            Self::Forgotten { .. } => FORGOTTEN,
            Self::Failed { excused: false, .. } => FAILED,
            Self::Failed { excused: true, .. } => EXCUSED,
            Self::Delivered(_) => DELIVERED,
            Self::Dead(_) => DEAD,
            Self::Expired { .. } => EXPIRED,
            Self::Redriven { .. } => REDRIVEN,
            Self::Resent { .. } => RESENT,
            Self::Discarded { reply: false, .. } => DISCARDED,
            Self::Discarded { reply: true, .. } => DISCARDED_REPLY,
            Self::Removed { .. } => REMOVED,
            Self::Sunk { .. } => SUNK,
            Self::Held { .. } => HELD,
            Self::Lost { .. } => LOST,
            Self::Checkpoint(_) => CHECKPOINT,
            Self::Bulk(_) => BULK,
            Self::Mark(_) => MARK,
        }
    }

    /// The kind, then the consumer, the event and the time if it is about those, then the rest.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.u8(self.kind());
        match self {
            Self::Routed(routed) => encode_routed(routed, out),
            Self::Failed { attempted, .. } | Self::Delivered(attempted) => attempted.encode(out),
            Self::Dead(dead) => dead.encode(out),
            Self::Checkpoint(mark) => mark.encode(out),
            Self::Bulk(entry) => entry.encode(out),
            Self::Mark(entry) => entry.encode(out),
            Self::Held { consumer, .. } => out.u32(*consumer),
            Self::Forgotten { consumer, when } => {
                out.u32(*consumer);
                out.time(*when);
            }
            Self::Unrouted {
                consumer,
                at: offset,
                when: at,
            }
            | Self::Lost {
                consumer,
                from: offset,
                at,
                ..
            }
            | Self::Expired {
                consumer,
                offset,
                at,
                ..
            }
            | Self::Redriven {
                consumer,
                offset,
                at,
                ..
            }
            | Self::Resent {
                consumer,
                offset,
                at,
                ..
            }
            | Self::Discarded {
                consumer,
                offset,
                at,
                ..
            }
            | Self::Removed {
                consumer,
                offset,
                at,
                ..
            }
            | Self::Sunk {
                consumer,
                offset,
                at,
                ..
            } => {
                out.u32(*consumer);
                out.u64(*offset);
                out.time(*at);
            }
        }
        match self {
            Self::Failed { error, next_at, .. } => {
                out.str(error);
                out.time(*next_at);
            }
            Self::Expired { reason: text, .. }
            | Self::Held { reason: text, .. }
            | Self::Removed { by: text, .. } => out.str(text),
            Self::Redriven { name, by, .. } | Self::Discarded { name, by, .. } => {
                out.u64(*name);
                out.str(by);
            }
            Self::Resent { operation, by, .. } => {
                out.u64(*operation);
                out.str(by);
            }
            Self::Sunk {
                name,
                status,
                error,
                ..
            } => {
                out.u64(*name);
                out.u16(*status);
                out.str(error);
            }
            Self::Lost { to, events, .. } => {
                out.u64(*to);
                out.u64(*events);
            }
            Self::Routed(_)
            | Self::Unrouted { .. }
            | Self::Forgotten { .. }
            | Self::Delivered(_)
            | Self::Dead(_)
            | Self::Checkpoint(_)
            | Self::Bulk(_)
            | Self::Mark(_) => {}
        }
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        Ok(match take.u8()? {
            ROUTED => Self::Routed(Box::new(decode_routed(take)?)),
            UNROUTED => Self::Unrouted {
                consumer: take.u32()?,
                at: take.u64()?,
                when: take.time()?,
            },
            FORGOTTEN => Self::Forgotten {
                consumer: take.u32()?,
                when: take.time()?,
            },
            kind @ (FAILED | EXCUSED) => Self::Failed {
                attempted: Attempted::decode(take)?,
                error: take.str()?.into(),
                next_at: take.time()?,
                excused: kind == EXCUSED,
            },
            DELIVERED => Self::Delivered(Attempted::decode(take)?),
            DEAD => Self::Dead(Box::new(Dead::decode(take)?)),
            EXPIRED => {
                let (consumer, offset, at) = decode_about(take)?;
                let reason = take.str()?.into();
                Self::Expired {
                    consumer,
                    offset,
                    at,
                    reason,
                }
            }
            REDRIVEN => {
                let (consumer, offset, at) = decode_about(take)?;
                let (name, by) = (take.u64()?, take.str()?.into());
                Self::Redriven {
                    consumer,
                    offset,
                    name,
                    at,
                    by,
                }
            }
            RESENT => {
                let (consumer, offset, at) = decode_about(take)?;
                let (operation, by) = (take.u64()?, take.str()?.into());
                Self::Resent {
                    consumer,
                    offset,
                    at,
                    operation,
                    by,
                }
            }
            kind @ (DISCARDED | DISCARDED_REPLY) => {
                let (consumer, offset, at) = decode_about(take)?;
                let (name, by) = (take.u64()?, take.str()?.into());
                Self::Discarded {
                    consumer,
                    offset,
                    name,
                    at,
                    by,
                    reply: kind == DISCARDED_REPLY,
                }
            }
            REMOVED => {
                let (consumer, offset, at) = decode_about(take)?;
                let by = take.str()?.into();
                Self::Removed {
                    consumer,
                    offset,
                    at,
                    by,
                }
            }
            SUNK => {
                let (consumer, offset, at) = decode_about(take)?;
                let (name, status) = (take.u64()?, take.u16()?);
                let error = take.str()?.into();
                Self::Sunk {
                    consumer,
                    offset,
                    name,
                    at,
                    status,
                    error,
                }
            }
            HELD => Self::Held {
                consumer: take.u32()?,
                reason: take.str()?.into(),
            },
            LOST => {
                let (consumer, from, at) = decode_about(take)?;
                Self::Lost {
                    consumer,
                    from,
                    to: take.u64()?,
                    events: take.u64()?,
                    at,
                }
            }
            CHECKPOINT => Self::Checkpoint(Checkpoint::decode(take)?),
            BULK => Self::Bulk(Box::new(BulkEntry::decode(take)?)),
            MARK => Self::Mark(Box::new(GroupMarkEntry::decode(take)?)),
            0 => return Err(Unreadable::Damaged("a line without a kind")),
            _ => return Err(Unreadable::Newer("the kind of a line")),
        })
    }
}

/// The front that lines about one event and one consumer share.
fn decode_about(take: &mut Take<'_>) -> Result<(ConsumerId, Offset, Timestamp), Unreadable> {
    Ok((take.u32()?, take.u64()?, take.time()?))
}

impl Attempted {
    fn encode(&self, out: &mut Vec<u8>) {
        out.u32(self.consumer);
        out.u64(self.offset);
        out.u32(self.number);
        out.time(self.at);
        out.u32(self.latency_us);
        out.u16(self.status);
    }

    fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            consumer: take.u32()?,
            offset: take.u64()?,
            number: take.u32()?,
            at: take.time()?,
            latency_us: take.u32()?,
            status: take.u16()?,
        })
    }
}

impl Dead {
    /// The name of what is told and not kept. No dead letter has it.
    pub const UNKEPT: u64 = 0;

    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.name != Self::UNKEPT
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.attempted.encode(out);
        out.u64(self.name);
        out.u32(self.redrives);
        out.time(self.accepted_at);
        out.str(&self.reason);
        out.bytes(&self.answer);
        let sink = if self.sink { DEAD_SINK } else { 0 };
        let given_up = if self.given_up { DEAD_GIVEN_UP } else { 0 };
        let reply = if self.reply.is_some() { DEAD_REPLY } else { 0 };
        out.u8(sink | given_up | reply);
        out.bytes(&self.record);
        if let Some(reply) = &self.reply {
            reply.encode(out);
        }
    }

    fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        let mut dead = Self {
            attempted: Attempted::decode(take)?,
            name: take.u64()?,
            redrives: take.u32()?,
            accepted_at: take.time()?,
            reason: take.string()?,
            answer: take.bytes()?.to_vec(),
            sink: false,
            given_up: false,
            record: bytes::Bytes::new(),
            reply: None,
        };
        let bits = take.u8()?;
        if bits & !DEAD_KNOWN != 0 {
            return Err(Unreadable::Newer("a part of a dead letter"));
        }
        dead.sink = bits & DEAD_SINK != 0;
        dead.given_up = bits & DEAD_GIVEN_UP != 0;
        dead.record = bytes::Bytes::copy_from_slice(take.bytes()?);
        if bits & DEAD_REPLY != 0 {
            dead.reply = Some(DeadReply::decode(take)?);
        }
        Ok(dead)
    }
}
