//! Which events somebody may see, and of which they may see the data.
//!
//! An event belongs to the namespace it came into and to those of the consumers it could reach when it came: a link that was
//! made later, or had been removed before, shows nothing of it. What became of it elsewhere is not told.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use heddle_api::access::{Access, Right, Scope, namespace_of};
use heddle_api::mask::{Mask, Masked};

use crate::consumer::decided_ranges;
use crate::envelope::Envelope;
use crate::event::{Builder, Event};
use crate::heartbeat;
use crate::log::Offset;
use crate::mesh::Mesh;
use crate::shared::Shared;

/// Places of the log, in order and apart.
type OffsetRanges = Vec<Range<Offset>>;

/// What somebody may see.
#[derive(Clone, Debug)]
pub struct Visible {
    access: Arc<Access>,
    /// Where in the log events of an entry reach a consumer within their scope; not needed by who may see everything.
    entries: Arc<BTreeMap<String, OffsetRanges>>,
    /// What is hidden from them in data that they may read.
    mask: Option<Arc<Mask>>,
}

/// Data, as far as somebody may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownData {
    /// As it is, or there is none.
    Whole(Option<Bytes>),
    /// With places that are hidden.
    Part(Bytes),
    Withheld,
}

impl ShownData {
    /// For somebody who may read the data, but for what a mask hides.
    pub(crate) fn of(event: &Event, mask: Option<&Mask>) -> Self {
        let data = event.data();
        let masked = match (mask, &data) {
            (Some(mask), Some(data)) => mask.apply(data),
            _ => Masked::Whole,
        };
        match masked {
            Masked::Whole => Self::Whole(data),
            Masked::Part(shown) => Self::Part(shown.into()),
            Masked::Nothing => Self::Withheld,
        }
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Whole(data) => data.as_deref(),
            Self::Part(data) => Some(data),
            Self::Withheld => None,
        }
    }
}

impl Mesh {
    /// What somebody may see, as things are now.
    #[must_use]
    pub fn visible_to(&self, access: &Access) -> Visible {
        Visible::of(&self.shared, access)
    }
}

impl Visible {
    /// What somebody may see, as things are now.
    pub(crate) fn of(shared: &Shared, access: &Access) -> Self {
        let mut entries: BTreeMap<String, OffsetRanges> = BTreeMap::new();
        if access.scope != Scope::All {
            for consumer in shared.user_consumers() {
                if !access.sees(&consumer.key) {
                    continue;
                }
                let state = consumer.lock();
                for (revision, range) in decided_ranges(&state.routing.revisions) {
                    for (entry, _) in &revision.feeds {
                        let ranges = entries.entry(entry.clone()).or_default();
                        ranges.push(range.clone());
                    }
                }
            }
        }
        entries.values_mut().for_each(join);
        Self {
            access: Arc::new(access.clone()),
            entries: Arc::new(entries),
            mask: mask_for(shared, access),
        }
    }
}

/// What is hidden from somebody. Administrators see everything.
pub(crate) fn mask_for(shared: &Shared, access: &Access) -> Option<Arc<Mask>> {
    let hides = !shared.mask.is_empty() && !access.has(Right::Administer);
    hides.then(|| Arc::clone(&shared.mask))
}

/// Puts ranges in order, and makes one of those that touch.
fn join(ranges: &mut OffsetRanges) {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
}

impl Visible {
    /// For whoever sees all there is.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            access: Arc::new(Access::administrator("")),
            entries: Arc::default(),
            mask: None,
        }
    }

    /// The same for the same person, as things are now.
    pub(super) fn renewed(&self, mesh: &Mesh) -> Self {
        mesh.visible_to(&self.access)
    }

    /// Whether nothing is left out for them.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.access.scope == Scope::All
    }

    /// Whether the event at this place, which came in here, may be seen.
    #[must_use]
    pub fn shows(&self, entry: &str, offset: Offset) -> bool {
        self.access.may(Right::Look, namespace_of(entry)) || self.reaches(entry, offset)
    }

    /// The same of an event whatever it is: heartbeats are for those who see everything.
    pub(super) fn shows_event(&self, envelope: &Envelope, offset: Offset) -> bool {
        let is_reserved = heartbeat::is_reserved(envelope.event.type_());
        self.is_everything() || (!is_reserved && self.shows(&envelope.entry, offset))
    }

    /// What may be seen of the data of the event at this place, which came in here.
    pub(crate) fn data(&self, entry: &str, offset: Offset, event: &Event) -> ShownData {
        match self.shows_data(entry, offset) {
            true => self.unhidden(event),
            false => ShownData::Withheld,
        }
    }

    /// The same of data that they may read.
    pub(crate) fn unhidden(&self, event: &Event) -> ShownData {
        ShownData::of(event, self.mask())
    }

    /// Whether something is hidden from them in data that they may read. Then what others say of data is, too.
    pub(crate) fn is_masked(&self) -> bool {
        self.mask.is_some()
    }

    /// What is hidden from them.
    pub(crate) fn mask(&self) -> Option<&Mask> {
        self.mask.as_deref()
    }

    /// Whether all of its data may be read: only then may it be led elsewhere.
    pub(crate) fn shows_all_data(&self, entry: &str, offset: Offset) -> bool {
        !self.is_masked() && self.shows_data(entry, offset)
    }

    /// Whether its data may be.
    #[must_use]
    pub fn shows_data(&self, entry: &str, offset: Offset) -> bool {
        self.access.may(Right::Payloads, namespace_of(entry))
            || (self.may_ask_for_data() && self.reaches(entry, offset))
    }

    /// Whether it could reach a consumer of theirs when it came.
    fn reaches(&self, entry: &str, offset: Offset) -> bool {
        let Some(ranges) = self.entries.get(entry) else {
            return false;
        };
        let begun = ranges.partition_point(|range| range.start <= offset);
        ranges[..begun]
            .last()
            .is_some_and(|range| range.contains(&offset))
    }

    /// Whether what became of an event at this consumer may be told.
    #[must_use]
    pub fn shows_consumer(&self, consumer: &str) -> bool {
        self.access.sees(consumer)
    }

    /// Whether there may be data that they may see.
    #[must_use]
    pub fn may_ask_for_data(&self) -> bool {
        self.access.has(Right::Payloads)
    }
}

/// An event with as much of its data as may be seen.
pub(crate) fn shown_event(event: &Event, shown: ShownData) -> Event {
    let data = match shown {
        ShownData::Whole(_) => return event.clone(),
        ShownData::Part(data) => Some(data),
        ShownData::Withheld => None,
    };
    let mut builder = Builder::new(event.form());
    for (name, value) in event.attributes() {
        builder.push(name, value);
    }
    builder.build(data.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_put_in_order_and_joined() {
        let mut ranges = vec![7..9, 1..3, 3..5, 4..4, 8..u64::MAX];
        join(&mut ranges);
        assert_eq!(ranges, [1..5, 7..u64::MAX]);
    }
}
