//! A piece of a pattern with `_` in it, looked for in one pass over the text.
//!
//! Bit `i` of the state says that the last `i + 1` characters are what the piece starts with, so one shift and one mask
//! per character follow all places at which the piece may have begun (Baeza-Yates and Gonnet's shift-and). That works for
//! as many characters as the state has bits. What is only `_` at either end is counted off instead: the first character
//! and the last one that matter are known ones.

use super::Meter;

/// How many characters may be between the first and the last that is no `_`, both included.
const WIDTH_MAX: usize = u128::BITS as usize;

/// A piece that is wider than can be looked for in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "between two % the pattern has a _ among more than {WIDTH_MAX} characters, which is more than can be looked for at \
     once; shorten that part, or put a % into it"
)]
pub(in crate::cesql) struct TooWide;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holes {
    /// How many `_` it starts with.
    before: usize,
    /// The places that a character may have, in the order of the characters; those of all others are in `any`.
    places: Box<[(char, u128)]>,
    any: u128,
    /// The bit of the last character; none when all are `_`.
    end: u128,
    /// How many `_` it ends with; none when all are.
    behind: usize,
}

impl Holes {
    pub(super) fn new(piece: &[Option<char>]) -> Result<Self, TooWide> {
        let is_known = |one: &Option<char>| one.is_some();
        let start = piece.iter().position(is_known).unwrap_or(piece.len());
        let end = piece.iter().rposition(is_known).map_or(start, |at| at + 1);
        let core = &piece[start..end];
        if core.len() > WIDTH_MAX {
            return Err(TooWide);
        }
        let bits = |wanted: &dyn Fn(Option<char>) -> bool| {
            let places = (0..).zip(core).filter(|(_, one)| wanted(**one));
            places.fold(0, |bits, (at, _)| bits | 1_u128 << at)
        };
        let any = bits(&|one| one.is_none());
        let mut characters: Vec<char> = core.iter().copied().flatten().collect();
        characters.sort_unstable();
        characters.dedup();
        let place = |character| (character, any | bits(&|one| one == Some(character)));
        Ok(Self {
            before: start,
            places: characters.into_iter().map(place).collect(),
            any,
            end: core.len().checked_sub(1).map_or(0, |at| 1 << at),
            behind: piece.len() - end,
        })
    }

    /// What is left of the text behind the first place where this is.
    pub(super) fn skip_past<'t>(&self, text: &'t str, meter: &mut impl Meter) -> Option<&'t str> {
        let text = strip(text, self.before, meter)?;
        if self.end == 0 {
            return Some(text);
        }
        let mut rest = text.chars();
        let mut state = 0;
        while state & self.end == 0 {
            meter.step(1);
            state = (state << 1 | 1) & self.places_of(rest.next()?);
        }
        // Further to the right there would be even less behind it.
        strip(rest.as_str(), self.behind, meter)
    }

    fn places_of(&self, character: char) -> u128 {
        let found = self
            .places
            .binary_search_by_key(&character, |(known, _)| *known);
        found.map_or(self.any, |at| self.places[at].1)
    }
}

/// What is left of the text behind so many characters, if it has them.
fn strip<'t>(text: &'t str, count: usize, meter: &mut impl Meter) -> Option<&'t str> {
    let mut rest = text.chars();
    for _ in 0..count {
        meter.step(1);
        rest.next()?;
    }
    Some(rest.as_str())
}
