//! A set of sequences, kept as ranges: what is acknowledged of a channel has few holes.

use std::collections::BTreeMap;

use crate::counters::Sequence;

/// Ranges that neither touch nor overlap: first to last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<Sequence, Sequence>);

impl Ranges {
    pub(super) fn contains(&self, sequence: Sequence) -> bool {
        let below = self.0.range(..=sequence).next_back();
        below.is_some_and(|(_, last)| sequence <= *last)
    }

    /// Adds `first` to `last`, both included.
    pub(super) fn insert(&mut self, first: Sequence, last: Sequence) {
        let (mut first, mut last) = (first, last.max(first));
        while let Some((known, end)) = self.0.range(..=last.saturating_add(1)).next_back() {
            let (known, end) = (*known, *end);
            if end.saturating_add(1) < first {
                break;
            }
            self.0.remove(&known);
            (first, last) = (first.min(known), last.max(end));
        }
        self.0.insert(first, last);
    }

    /// Up to where everything is in it, beginning behind `start`.
    pub(super) fn floor(&self, start: Sequence) -> Sequence {
        let next = start.saturating_add(1);
        let below = self.0.range(..=next).next_back();
        below.map_or(start, |(_, last)| start.max(*last))
    }

    pub(super) fn last(&self) -> Sequence {
        self.0.last_key_value().map_or(0, |(_, last)| *last)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Sequence, Sequence)> {
        self.0.iter().map(|(first, last)| (*first, *last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_a_plain_set_holds() {
        let mut ranges = Ranges::default();
        let mut plain = std::collections::BTreeSet::new();
        for (first, last) in [
            (5, 7),
            (9, 9),
            (1, 2),
            (8, 8),
            (3, 3),
            (20, 30),
            (2, 21),
            (40, 39),
        ] {
            ranges.insert(first, last);
            plain.extend(first..=last.max(first));
            for sequence in 0..50 {
                assert_eq!(
                    ranges.contains(sequence),
                    plain.contains(&sequence),
                    "{sequence}"
                );
            }
            let apart: Vec<_> = ranges.iter().collect();
            assert!(
                apart.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0),
                "{apart:?}"
            );
        }
        assert_eq!(
            (ranges.floor(0), ranges.floor(35), ranges.floor(39)),
            (30, 35, 40)
        );
        assert_eq!(ranges.last(), 40);
        ranges.insert(u64::MAX, u64::MAX);
        assert!(ranges.contains(u64::MAX));
    }
}
