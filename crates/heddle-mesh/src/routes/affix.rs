//! Finds all texts of a set that another text starts with.
//!
//! The texts are sorted, and each knows the longest other one that it starts with:
//!
//! ```text
//!   0  a         <─┐
//!   1  a.b   <─┐  ─┘      of "a.b.x": the last text not behind it is 2; what both share is "a.b.",
//!   2  a.b.c  ─┘          so 2 is too long, and 1 and 0 are found
//!   3  b
//! ```
//! Whatever `text` starts with is not behind it, and everything sorted between the two starts with it as well. So all that
//! is to be found is the last text not behind, or among those that this one starts with.

use super::index::{Posting, Postings};

#[derive(Debug)]
pub(super) struct Affixes {
    nodes: Vec<Node>,
    /// The length of the longest text.
    bytes_max: usize,
}

#[derive(Debug)]
struct Node {
    text: Box<[u8]>,
    /// The longest other text that this one starts with.
    parent: Option<u32>,
    postings: Postings,
}

impl Affixes {
    /// Each text once, in any order.
    pub(super) fn new(mut texts: Vec<(Box<[u8]>, Postings)>) -> Self {
        texts.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut nodes: Vec<Node> = Vec::with_capacity(texts.len());
        for (text, postings) in texts {
            // The text before this one, or what that one starts with, and so on.
            let mut parent = nodes.len().checked_sub(1);
            while let Some(at) = parent
                && !text.starts_with(&nodes[at].text)
            {
                parent = nodes[at].parent.map(|at| at as usize);
            }
            nodes.push(Node {
                text,
                parent: parent
                    .map(|at| u32::try_from(at).expect("consumers are counted in 32 bits")),
                postings,
            });
        }
        Self {
            bytes_max: nodes.iter().map(|node| node.text.len()).max().unwrap_or(0),
            nodes,
        }
    }

    /// Of the texts put in back to front, those that `text` ends with, as [`Self::of`].
    pub(super) fn of_reversed(&self, text: &[u8], found: impl FnMut(&[Posting])) {
        // More of the end than the longest text has cannot matter, and most texts are short.
        let end = &text[text.len().saturating_sub(self.bytes_max)..];
        let mut buffer = [0; 128];
        if let Some(reversed) = buffer.get_mut(..end.len()) {
            reversed.copy_from_slice(end);
            reversed.reverse();
            self.of(reversed, found);
        } else {
            let reversed: Vec<u8> = end.iter().rev().copied().collect();
            self.of(&reversed, found);
        }
    }

    /// What is filed under every text that `text` starts with, the longest first.
    pub(super) fn of(&self, text: &[u8], mut found: impl FnMut(&[Posting])) {
        let behind = self.nodes.partition_point(|node| *node.text <= *text);
        let Some(last) = behind.checked_sub(1) else {
            return;
        };
        let pairs = self.nodes[last].text.iter().zip(text);
        let shared = pairs.take_while(|(one, other)| one == other).count();
        let mut next = Some(&self.nodes[last]);
        while let Some(node) = next {
            if node.text.len() <= shared {
                found(&node.postings);
            }
            next = node.parent.map(|parent| &self.nodes[parent as usize]);
        }
    }
}
