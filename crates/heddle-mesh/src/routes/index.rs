//! Finds the consumers that might want an event, without looking at the others.
//!
//! A consumer is filed under what its predicate demands of every event: an exact value, the start or the end of one
//! attribute, or one of several such. Those that demand nothing simple are in a list of their own and always asked.
//!
//! There is one index for all places. What is filed under a key is sorted by place, and an event knows the places it
//! reaches, so the two are intersected: the cost goes by the shorter one, and memory by the number of consumers rather than
//! by consumers times the entries that reach them.

use std::collections::{BTreeMap, HashMap};

use heddle_api::attributes::Attributes;
use heddle_api::filter::demand::Demand;

use super::affix::Affixes;
use crate::path::trigger::Predicate;

/// A consumer by number, and the place it is at. Sorted by place, then by consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting {
    pub(super) place: u32,
    pub(super) consumer: u32,
}

/// All that is filed under one key.
pub(super) type Postings = Box<[Posting]>;

/// The values of one attribute.
type Values = HashMap<Box<str>, Postings>;

#[derive(Debug, Default)]
pub(super) struct Index {
    /// By attribute, then by value.
    exact: Vec<(Box<str>, Values)>,
    prefixes: Vec<(Box<str>, Affixes)>,
    /// Texts are kept back to front.
    suffixes: Vec<(Box<str>, Affixes)>,
    rest: Postings,
}

/// Texts of one attribute and who is filed under each.
type PostingLists<'a> = BTreeMap<&'a str, Vec<Posting>>;

impl Index {
    pub(super) fn new<'a>(consumers: impl Iterator<Item = (Posting, &'a Predicate)>) -> Self {
        let mut exact: BTreeMap<&str, PostingLists<'_>> = BTreeMap::new();
        let mut prefixes: BTreeMap<&str, PostingLists<'_>> = BTreeMap::new();
        let mut suffixes: BTreeMap<&str, PostingLists<'_>> = BTreeMap::new();
        let mut rest = Vec::new();
        for (posting, predicate) in consumers {
            let Some(clause) = predicate.demand() else {
                rest.push(posting);
                continue;
            };
            for demand in clause.demands() {
                let (by_attribute, attribute, text) = match *demand {
                    Demand::Exact(attribute, text) => (&mut exact, attribute, text),
                    Demand::Prefix(attribute, text) => (&mut prefixes, attribute, text),
                    Demand::Suffix(attribute, text) => (&mut suffixes, attribute, text),
                };
                let lists = by_attribute.entry(attribute).or_default();
                lists.entry(text).or_default().push(posting);
            }
        }
        let affixes = |by_attribute: BTreeMap<&str, PostingLists<'_>>,
                       text: fn(&str) -> Box<[u8]>| {
            let one = |(attribute, lists): (&str, PostingLists<'_>)| {
                let texts = lists.into_iter().map(|(key, of)| (text(key), sorted(of)));
                (attribute.into(), Affixes::new(texts.collect()))
            };
            by_attribute.into_iter().map(one).collect()
        };
        Self {
            exact: exact
                .into_iter()
                .map(|(attribute, lists)| {
                    let values = lists.into_iter().map(|(key, of)| (key.into(), sorted(of)));
                    (attribute.into(), values.collect())
                })
                .collect(),
            prefixes: affixes(prefixes, |text| text.bytes().collect()),
            suffixes: affixes(suffixes, |text| text.bytes().rev().collect()),
            rest: sorted(rest),
        }
    }

    /// Names every consumer at these places that might want the event, some perhaps more than once.
    pub(super) fn candidates(
        &self,
        reach: &[u32],
        event: &dyn Attributes,
        mut found: impl FnMut(u32),
    ) {
        for (attribute, values) in &self.exact {
            if let Some(postings) = event.text(attribute).and_then(|text| values.get(text)) {
                intersect(postings, reach, &mut found);
            }
        }
        for (attribute, prefixes) in &self.prefixes {
            if let Some(text) = event.text(attribute) {
                prefixes.of(text.as_bytes(), |postings| {
                    intersect(postings, reach, &mut found);
                });
            }
        }
        for (attribute, suffixes) in &self.suffixes {
            if let Some(text) = event.text(attribute) {
                suffixes.of_reversed(text.as_bytes(), |postings| {
                    intersect(postings, reach, &mut found);
                });
            }
        }
        intersect(&self.rest, reach, &mut found);
    }
}

fn sorted(mut postings: Vec<Posting>) -> Postings {
    postings.sort_unstable();
    postings.dedup();
    postings.into()
}

/// Both are sorted by place; whichever is shorter is walked, and the other searched.
fn intersect(postings: &[Posting], reach: &[u32], found: &mut impl FnMut(u32)) {
    if postings.len() <= reach.len() {
        for posting in postings {
            if reach.binary_search(&posting.place).is_ok() {
                found(posting.consumer);
            }
        }
    } else {
        for place in reach {
            let start = postings.partition_point(|posting| posting.place < *place);
            let here = postings[start..]
                .iter()
                .take_while(|posting| posting.place == *place);
            here.for_each(|posting| found(posting.consumer));
        }
    }
}
