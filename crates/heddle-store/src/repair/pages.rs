//! redb's file format, read by somebody who expects damage.
//!
//! redb reads a tree as a whole or not at all. This reader believes nothing: every number is compared with the bytes that are
//! there, a page that makes no sense is left out with the range of keys it stood for, and its neighbours are read on. Whether
//! an entry is intact is not judged here; records carry checksums of their own.
//!
//! ```text
//!   header   magic 9 │ flags 1 │ … │ at 64 and 192: commit slots, each with the root of the tree of tables
//!   branch   2 │ _ │ keys u16 │ _ 4 │ checksums 16 × (keys + 1) │ pages u64 × (keys + 1) │ key ends u32 … │ keys
//!   leaf     1 │ _ │ entries u16 │ key ends u32 … │ value ends u32 … │ keys │ values
//! ```
//! Ends are counted from the start of the page; keys of a fixed width have none. The format is documented with redb
//! (file format 3, which redb 3 and 4 write).

use std::collections::HashSet;
use std::ops::Range;

pub(super) const PAGE_BYTES: usize = 4096;
const SLOTS_AT: [usize; 2] = [64, 192];
const ROOT_IN_SLOT: usize = 8;
const HAS_ROOT_IN_SLOT: usize = 1;
const REGION_PAGES_AT: usize = 20;
const REGION_PAGES_MAX: u32 = 1 << 20;
const LEAF: u8 = 1;
const BRANCH: u8 = 2;
/// A tree of four billion entries is not as high.
const HEIGHT_MAX: usize = 32;

/// A damaged file, whole in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages<'a>(pub(super) &'a [u8]);

/// Keys that a part stood for which could not be read: above the first, up to and including the second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) above: Option<Vec<u8>>,
    pub(super) up_to: Option<Vec<u8>>,
}

impl Gap {
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.above.as_deref().is_none_or(|above| key > above)
            && self.up_to.as_deref().is_none_or(|up_to| key <= up_to)
    }
}

/// What a tree gave.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    pub(super) entries: Vec<(&'a [u8], &'a [u8])>,
    pub(super) gaps: Vec<Gap>,
}

impl<'a> Pages<'a> {
    /// The table of this name as each commit slot has it: of the last commit and of the one before, in no order.
    pub(super) fn tables(&self, name: &str) -> Vec<Tree<'a>> {
        let roots = SLOTS_AT.iter().filter_map(|at| {
            let slot = self.0.get(*at..at + 128)?;
            let root = (slot[HAS_ROOT_IN_SLOT] != 0).then(|| number(slot, ROOT_IN_SLOT))??;
            Some(root)
        });
        roots.map(|root| self.table(root, name)).collect()
    }

    /// The table of this name, from the tree of tables at `root`.
    fn table(&self, root: u64, name: &str) -> Tree<'a> {
        let tables = self.tree(root);
        let found = tables
            .entries
            .iter()
            .find(|(key, _)| *key == name.as_bytes());
        let everything = || Tree {
            gaps: vec![Gap::default()],
            ..Tree::default()
        };
        // type u8 │ length u64 │ has a root u8 │ root u64 │ …
        match found {
            Some((_, definition)) if definition.get(9) == Some(&0) => Tree::default(),
            Some((_, definition)) => {
                number(definition, 10).map_or_else(everything, |root| self.tree(root))
            }
            None => everything(),
        }
    }

    /// A tree of keys that are texts or bytes, from its root.
    fn tree(&self, root: u64) -> Tree<'a> {
        let mut walk = Walk {
            pages: *self,
            seen: HashSet::new(),
            tree: Tree::default(),
        };
        walk.visit(root, Gap::default(), 0);
        walk.tree
    }

    /// Every entry of every page that looks like a leaf, also of those that no tree leads to any more.
    pub(super) fn leaves(
        &self,
        key_bytes: Option<usize>,
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let file = self.0;
        let starts = (PAGE_BYTES..file.len()).step_by(PAGE_BYTES);
        let leaves = starts
            .map(move |at| &file[at..])
            .filter(|page| page[0] == LEAF);
        leaves.flat_map(move |page| leaf(page, key_bytes).into_iter().flatten().flatten())
    }

    /// The bytes of a page: five bits say how many pages it is long as a power of two, then which region, then which one.
    fn page(&self, number: u64) -> Option<&'a [u8]> {
        let order = (number >> 59) as u32;
        let bytes = (PAGE_BYTES as u64).checked_shl(order)?;
        let index = number & (0xf_ffff >> order);
        let region = (number >> 20) & 0xf_ffff;
        let region_bytes = u64::from(self.region_pages()) * PAGE_BYTES as u64;
        let start = PAGE_BYTES as u64 + region * region_bytes + index * bytes;
        let end = start.checked_add(bytes)?;
        self.0
            .get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// How many pages a region has. It matters only to files beyond 4 GiB.
    fn region_pages(&self) -> u32 {
        let pages = ends(self.0, REGION_PAGES_AT, 1).map(|ends| ends[0] as u32);
        pages
            .filter(|pages| (1..=REGION_PAGES_MAX).contains(pages))
            .unwrap_or(REGION_PAGES_MAX)
    }
}

struct Walk<'a> {
    pages: Pages<'a>,
    /// A damaged number may lead back; no page is read twice.
    seen: HashSet<u64>,
    tree: Tree<'a>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, number: u64, within: Gap, height: usize) {
        let page = self.pages.page(number).filter(|_| self.seen.insert(number));
        let read = match page {
            Some(page) if page[0] == LEAF => self.leaf(page, &within),
            Some(page) if page[0] == BRANCH && height < HEIGHT_MAX => {
                self.branch(page, &within, height)
            }
            _ => None,
        };
        if read.is_none() {
            self.tree.gaps.push(within);
        }
    }

    fn leaf(&mut self, page: &'a [u8], within: &Gap) -> Option<()> {
        let entries = leaf(page, None)?;
        let in_place =
            |entry: &Option<(&[u8], &[u8])>| entry.is_some_and(|(key, _)| within.contains(key));
        // A page of somewhere else, to which a damaged number led.
        if !entries.iter().any(in_place) {
            return None;
        }
        if !entries.iter().all(in_place) {
            self.tree.gaps.push(within.clone());
        }
        let entries = entries.into_iter().filter(in_place).flatten();
        self.tree.entries.extend(entries);
        Some(())
    }

    fn branch(&mut self, page: &'a [u8], within: &Gap, height: usize) -> Option<()> {
        let keys = usize::from(count(page)?);
        let children_at = 8 + 16 * (keys + 1);
        let ends_at = children_at + 8 * (keys + 1);
        let children: Option<Vec<u64>> = (0..=keys)
            .map(|index| number(page, children_at + 8 * index))
            .collect();
        let children = children?;
        let keys = spans(ends_at + 4 * keys, ends(page, ends_at, keys)?);
        let keys: Vec<Option<Vec<u8>>> = keys
            .into_iter()
            .map(|span| page.get(span).map(<[u8]>::to_vec))
            .collect();
        for (index, child) in children.into_iter().enumerate() {
            let below = index.checked_sub(1).map(|before| keys[before].clone());
            // A bound that could not be read bounds nothing.
            let above = below.unwrap_or_else(|| within.above.clone());
            let up_to = keys
                .get(index)
                .map_or_else(|| within.up_to.clone(), Clone::clone);
            self.visit(child, Gap { above, up_to }, height + 1);
        }
        Some(())
    }
}

/// The entries of a leaf; `None` in the place of one whose bounds make no sense.
type Entries<'a> = Vec<Option<(&'a [u8], &'a [u8])>>;

fn leaf(page: &[u8], key_bytes: Option<usize>) -> Option<Entries<'_>> {
    let entries = usize::from(count(page)?);
    let (keys, values_at) = match key_bytes {
        Some(width) => {
            let start = 4 + 4 * entries;
            let keys = (0..entries).map(|index| start + width * index..start + width * (index + 1));
            (keys.collect(), 4)
        }
        None => (
            spans(4 + 8 * entries, ends(page, 4, entries)?),
            4 + 4 * entries,
        ),
    };
    let values = spans(keys.last()?.end, ends(page, values_at, entries)?);
    let entry =
        |(key, value): (Range<usize>, Range<usize>)| Some((page.get(key)?, page.get(value)?));
    Some(keys.into_iter().zip(values).map(entry).collect())
}

fn count(page: &[u8]) -> Option<u16> {
    page.get(2..4)
        .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// Where each of several neighbours lies, from where each of them ends.
fn spans(start: usize, ends: Vec<usize>) -> Vec<Range<usize>> {
    let starts = std::iter::once(start).chain(ends.clone());
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

fn ends(page: &[u8], at: usize, count: usize) -> Option<Vec<usize>> {
    let bytes = page.get(at..at + 4 * count)?;
    let (ends, _) = bytes.as_chunks::<4>();
    Some(
        ends.iter()
            .map(|end| u32::from_le_bytes(*end) as usize)
            .collect(),
    )
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
