//! The bytes of lines that say who takes part, and how far everybody is.

use super::{Checkpoint, ConsumerCheckpoint, Routed};
use crate::codec::{Put as _, Take, Unreadable};

impl Checkpoint {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.u64(self.scanned);
        out.u32(u32::try_from(self.consumers.len()).expect("consumers are counted in 32 bits"));
        for marked in &self.consumers {
            out.u32(marked.consumer);
            out.u64(marked.matched);
            out.u64(marked.floor);
            out.u64(marked.counted_to);
        }
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        let scanned = take.u64()?;
        let count = take.u32()?;
        let mut consumers = Vec::new();
        for _ in 0..count {
            consumers.push(ConsumerCheckpoint {
                consumer: take.u32()?,
                matched: take.u64()?,
                floor: take.u64()?,
                counted_to: take.u64()?,
            });
        }
        Ok(Self { scanned, consumers })
    }
}

pub(super) fn encode_routed(routed: &Routed, out: &mut Vec<u8>) {
    out.u32(routed.consumer);
    out.str(&routed.key);
    out.str(&routed.uid);
    out.i64(routed.generation);
    out.u64(routed.from);
    out.u64(routed.backfill_to);
    out.u64(routed.fingerprint);
    out.str(&routed.filters);
    out.u32(u32::try_from(routed.feeds.len()).expect("feeds are counted in 32 bits"));
    for (entry, via) in &routed.feeds {
        out.str(entry);
        out.u32(u32::try_from(via.len()).expect("hops are counted in 32 bits"));
        for hop in via {
            out.str(hop);
        }
    }
}

pub(super) fn decode_routed(take: &mut Take<'_>) -> Result<Routed, Unreadable> {
    let mut routed = Routed {
        consumer: take.u32()?,
        key: take.string()?,
        uid: take.string()?,
        generation: take.i64()?,
        from: take.u64()?,
        backfill_to: take.u64()?,
        fingerprint: take.u64()?,
        filters: take.string()?,
        feeds: Vec::new(),
    };
    for _ in 0..take.u32()? {
        let entry = take.string()?;
        let mut via = Vec::new();
        for _ in 0..take.u32()? {
            via.push(take.string()?);
        }
        routed.feeds.push((entry, via));
    }
    Ok(routed)
}
