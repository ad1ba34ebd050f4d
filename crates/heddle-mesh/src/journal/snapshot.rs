//! The state of the journal, written down, so that a restart need not read it all.
//!
//! ```text
//!   magic │ layout │ crc32c of the rest │ next record of the journal │ positions
//! ```
//! A snapshot is a shortcut and never the only truth: the records it sums up are kept until the next one is safe, so a
//! damaged snapshot is passed over for the one before it.

use heddle_api::dead_letters::FailureClass;
use jiff::Timestamp;

use super::bulk::BulkEntries;
use super::cause;
use super::mark::GroupMarks;
use super::positions::{
    Counters, DeadLetterEntry, Position, Positions, Retry, Revision, Sink, short,
};
use super::record::ConsumerId;
use super::reply::ReplyFault;
use crate::codec::{Put, Take, Unreadable};
use crate::log::Offset;
use crate::path::delivery::retry_policy::CAP;

const MAGIC: &[u8; 8] = b"heddleps";
/// Since layout 2 a dead letter says where it came in, since layout 3 a retry how many of its attempts are excused,
/// since layout 4 what the journal lost, since layout 5 when the last attempt of a retry ended, since layout 6
/// whether a dead letter is that of a reply, and what a repair accepted as gone from the log, since layout 7 what is done
/// with many dead letters, and what one has in common with others, since layout 8 which groups of them are marked, since
/// layout 9 what was sent again from the log. Whoever adds a kind of line raises it as well: a start does not look at lines
/// that are summed up.
pub(crate) const LAYOUT: u32 = 9;
const HEAD_BYTES: usize = 16;
/// In the place of a fault: the dead letter is an event.
const NO_REPLY: u8 = 0;

/// A fold of the journal up to a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The first record that is not part of it.
    pub journal_next: Offset,
    pub positions: Positions,
}

/// Why a snapshot cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// Reading it anyway could misplace every consumer.
    #[error("it was written by a newer version (layout {0})")]
    Newer(u32),
}

impl From<Unreadable> for SnapshotError {
    fn from(error: Unreadable) -> Self {
        // Its own layout says what is newer, and this one is known.
        let (Unreadable::Damaged(what) | Unreadable::Newer(what)) = error;
        Self::Damaged(what)
    }
}

impl Snapshot {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.u64(self.journal_next);
        let positions = &self.positions;
        body.u64(positions.scanned);
        body.u64(positions.dead_name_last);
        body.u32(positions.consumer_last);
        body.u64(positions.strays);
        count(&mut body, positions.consumers.len());
        for (id, position) in &positions.consumers {
            put_position(&mut body, *id, position);
        }
        count(&mut body, positions.dead.len());
        for (name, rest) in &positions.dead {
            put_rest(&mut body, *name, rest);
        }
        body.u64(positions.lost_records);
        body.u64(positions.unknown_from.unwrap_or(0));
        count(&mut body, positions.losses.len());
        for lost in &positions.losses {
            body.u64(lost.start);
            body.u64(lost.end);
        }
        body.u64(positions.log_lost_below);
        positions.bulks.encode(&mut body);
        for rest in positions.dead.values() {
            body.u32(rest.bytes);
            body.u8(class_code(rest.class));
            body.str(&rest.cause);
        }
        positions.marks.encode(&mut body);
        for position in positions.consumers.values() {
            put_resent(&mut body, position);
        }
        let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len());
        bytes.put(MAGIC);
        bytes.u32(LAYOUT);
        bytes.u32(crate::log::checksum(&body));
        bytes.put(&body);
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let mut take = Take(bytes);
        if take.take(MAGIC.len())? != MAGIC {
            return Err(SnapshotError::Damaged("it does not begin like one"));
        }
        let layout = take.u32()?;
        let sum = take.u32()?;
        if layout > LAYOUT {
            return Err(SnapshotError::Newer(layout));
        }
        // The checksum does not cover the layout.
        if layout == 0 {
            return Err(SnapshotError::Damaged("its layout never was"));
        }
        if crate::log::checksum(take.0) != sum {
            return Err(SnapshotError::Damaged("its checksum is wrong"));
        }
        let journal_next = take.u64()?;
        let mut positions = Positions {
            scanned: take.u64()?,
            dead_name_last: take.u64()?,
            consumer_last: take.u32()?,
            strays: take.u64()?,
            ..Positions::default()
        };
        for _ in 0..take.u64()? {
            let (id, position) = take_position(&mut take, layout)?;
            positions.consumers.insert(id, position);
        }
        for _ in 0..take.u64()? {
            let (name, rest) = take_rest(&mut take, layout)?;
            positions.dead.insert(name, rest);
        }
        if layout >= 4 {
            positions.lost_records = take.u64()?;
            positions.unknown_from = Some(take.u64()?).filter(|from| *from > 0);
            for _ in 0..take.u64()? {
                positions.losses.push(take.u64()?..take.u64()?);
            }
        }
        if layout >= 6 {
            positions.log_lost_below = take.u64()?;
        }
        if layout >= 7 {
            positions.bulks = BulkEntries::decode(&mut take)?;
            for rest in positions.dead.values_mut() {
                rest.bytes = take.u32()?;
                rest.class = class_of_code(take.u8()?)?;
                rest.cause = take.string()?;
            }
        }
        if layout >= 8 {
            positions.marks = GroupMarks::decode(&mut take)?;
        }
        if layout >= 9 {
            for position in positions.consumers.values_mut() {
                take_resent(&mut take, position)?;
            }
        }
        Ok(Self {
            journal_next,
            positions,
        })
    }
}

fn class_code(class: FailureClass) -> u8 {
    let place = FailureClass::ALL.iter().position(|known| *known == class);
    u8::try_from(place.unwrap_or_default()).unwrap_or_default()
}

fn class_of_code(code: u8) -> Result<FailureClass, Unreadable> {
    let class = FailureClass::ALL.get(usize::from(code)).copied();
    class.ok_or(Unreadable::Newer("the class of a failure"))
}

fn count(out: &mut Vec<u8>, count: usize) {
    out.u64(count as u64);
}

fn put_position(out: &mut Vec<u8>, id: ConsumerId, position: &Position) {
    out.u32(id);
    out.str(&position.key);
    count(out, position.revisions.len());
    for revision in &position.revisions {
        put_revision(out, revision);
    }
    let (at, when) = position.unrouted.unwrap_or((0, Timestamp::UNIX_EPOCH));
    out.u8(u8::from(position.unrouted.is_some()));
    out.u64(at);
    out.time(when);
    out.u64(position.floor);
    count(out, position.ended.len());
    for offset in &position.ended {
        out.u64(*offset);
    }
    count(out, position.retrying.len());
    for (offset, retry) in &position.retrying {
        out.u64(*offset);
        out.u32(retry.attempts);
        out.time(retry.next_at);
        out.u64(retry.redriven.unwrap_or(0));
        out.u32(retry.excused);
        out.time(retry.tried_at);
    }
    out.u64(position.counted_to.unwrap_or(0));
    let tally = &position.tally;
    for number in [
        tally.matched,
        tally.delivered,
        tally.dead,
        tally.expired,
        tally.removed,
        tally.lost,
        position.unsure_from.unwrap_or(0),
    ] {
        out.u64(number);
    }
    out.str(position.held.as_deref().unwrap_or_default());
}

fn take_position(take: &mut Take<'_>, layout: u32) -> Result<(ConsumerId, Position), Unreadable> {
    let id = take.u32()?;
    let mut position = Position {
        key: take.string()?,
        ..Position::default()
    };
    for _ in 0..take.u64()? {
        position.revisions.push(take_revision(take)?);
    }
    let unrouted = take.u8()? != 0;
    let (at, when) = (take.u64()?, take.time()?);
    position.unrouted = unrouted.then_some((at, when));
    position.floor = take.u64()?;
    for _ in 0..take.u64()? {
        position.ended.insert(take.u64()?);
    }
    for _ in 0..take.u64()? {
        let offset = take.u64()?;
        let (attempts, next_at) = (take.u32()?, take.time()?);
        let retry = Retry {
            attempts,
            next_at,
            redriven: Some(take.u64()?).filter(|name| *name > 0),
            excused: if layout >= 3 { take.u32()? } else { 0 },
            tried_at: if layout >= 5 {
                take.time()?
            } else {
                at_most_cap_before(next_at)
            },
            resent: false,
        };
        position.retrying.insert(offset, retry);
    }
    position.counted_to = Some(take.u64()?).filter(|offset| *offset > 0);
    position.tally = Counters {
        matched: take.u64()?,
        delivered: take.u64()?,
        dead: take.u64()?,
        expired: take.u64()?,
        removed: take.u64()?,
        lost: if layout >= 4 { take.u64()? } else { 0 },
        resent: 0,
    };
    if layout >= 4 {
        position.unsure_from = Some(take.u64()?).filter(|from| *from > 0);
    }
    position.held = Some(take.string()?).filter(|reason| !reason.is_empty());
    Ok((id, position))
}

/// How many events were sent again from the log, and those of them that have not ended.
fn put_resent(out: &mut Vec<u8>, position: &Position) {
    out.u64(position.tally.resent);
    let resent = || position.retrying.iter().filter(|(_, retry)| retry.resent);
    count(out, resent().count());
    for (offset, _) in resent() {
        out.u64(*offset);
    }
}

fn take_resent(take: &mut Take<'_>, position: &mut Position) -> Result<(), Unreadable> {
    position.tally.resent = take.u64()?;
    for _ in 0..take.u64()? {
        let retry = position.retrying.get_mut(&take.u64()?);
        let nobody = Unreadable::Damaged("an event that was sent again is not on record");
        retry.ok_or(nobody)?.resent = true;
    }
    Ok(())
}

/// Older layouts do not say how long a retry was to wait; seldom more than the usual cap.
fn at_most_cap_before(next_at: Timestamp) -> Timestamp {
    next_at.checked_sub(CAP).unwrap_or(Timestamp::MIN)
}

fn put_revision(out: &mut Vec<u8>, revision: &Revision) {
    out.u64(revision.from);
    out.str(&revision.uid);
    out.i64(revision.generation);
    out.u64(revision.fingerprint);
    out.str(&revision.filters);
    out.u8(u8::from(revision.until.is_some()));
    out.u64(revision.until.unwrap_or(0));
    count(out, revision.feeds.len());
    for (entry, via) in &revision.feeds {
        out.str(entry);
        count(out, via.len());
        for hop in via {
            out.str(hop);
        }
    }
}

fn take_revision(take: &mut Take<'_>) -> Result<Revision, Unreadable> {
    let mut revision = Revision {
        from: take.u64()?,
        uid: take.string()?,
        generation: take.i64()?,
        fingerprint: take.u64()?,
        filters: take.string()?,
        ..Revision::default()
    };
    let until = take.u8()? != 0;
    let at = take.u64()?;
    revision.until = until.then_some(at);
    for _ in 0..take.u64()? {
        let entry = take.string()?;
        let mut via = Vec::new();
        for _ in 0..take.u64()? {
            via.push(take.string()?);
        }
        revision.feeds.push((entry, via));
    }
    Ok(revision)
}

fn put_rest(out: &mut Vec<u8>, name: u64, rest: &DeadLetterEntry) {
    out.u64(name);
    out.u32(rest.consumer);
    out.u64(rest.offset);
    out.u64(rest.journal);
    out.time(rest.at);
    out.time(rest.accepted_at);
    out.u16(rest.status);
    out.u32(rest.attempts);
    out.u32(rest.redrives);
    out.u8(u8::from(rest.left));
    let (sink, error) = match &rest.sink {
        Sink::None => (0, ""),
        Sink::Waiting => (1, ""),
        Sink::Sent => (2, ""),
        Sink::Failed(error) => (3, error.as_str()),
    };
    out.u8(sink);
    for text in [error, &rest.reason, &rest.source, &rest.id, &rest.type_] {
        out.str(text);
    }
    out.str(&rest.entry);
    out.u8(rest.reply.map_or(NO_REPLY, ReplyFault::code));
}

fn take_rest(take: &mut Take<'_>, layout: u32) -> Result<(u64, DeadLetterEntry), Unreadable> {
    let name = take.u64()?;
    let mut rest = DeadLetterEntry {
        consumer: take.u32()?,
        offset: take.u64()?,
        journal: take.u64()?,
        at: take.time()?,
        accepted_at: take.time()?,
        status: take.u16()?,
        attempts: take.u32()?,
        redrives: take.u32()?,
        left: take.u8()? != 0,
        sink: Sink::None,
        reason: String::new(),
        entry: String::new(),
        source: String::new(),
        id: String::new(),
        type_: String::new(),
        reply: None,
        bytes: 0,
        class: FailureClass::Answer,
        cause: String::new(),
    };
    let sink = take.u8()?;
    let error = take.string()?;
    rest.sink = match sink {
        0 => Sink::None,
        1 => Sink::Waiting,
        2 => Sink::Sent,
        3 => Sink::Failed(short(&error)),
        _ => return Err(Unreadable::Damaged("a dead letter in an unknown state")),
    };
    // Older releases kept them whole.
    rest.reason = short(take.str()?);
    // Since layout 7 they are written down, and read below.
    rest.class = cause::class(rest.status, false, &rest.reason);
    rest.cause = cause::normalise(&rest.reason);
    rest.source = short(take.str()?);
    rest.id = short(take.str()?);
    rest.type_ = short(take.str()?);
    if layout >= 2 {
        rest.entry = short(take.str()?);
    }
    if layout >= 6 {
        rest.reply = match take.u8()? {
            NO_REPLY => None,
            code => Some(ReplyFault::of_code(code)?),
        };
    }
    Ok((name, rest))
}
