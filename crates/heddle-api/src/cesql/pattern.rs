//! The pattern of a `LIKE`: `%` is any text, `_` any one character, and both are themselves behind a backslash.
//!
//! The pattern is cut at each `%`. The first piece must be at the start, the last at the end, and those between are found
//! one after the other, each as early as possible. An early place never spoils a later piece, so nothing is tried twice,
//! and a piece with a `_` in it is looked for with [`Holes`], which reads each character once. So a pattern takes a number
//! of steps that is linear in its own length and the length of the text, whatever the two are made of.

mod holes;
#[cfg(test)]
mod tests;

use crate::filter::demand::Demand;

use holes::Holes;
pub(super) use holes::TooWide;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    first: Edge,
    /// What stands between two `%`, without the pieces that are empty.
    middle: Box<[Middle]>,
    /// What stands behind the last `%`; when there is none, `first` must be all of the text.
    last: Option<Edge>,
}

/// A piece at an end of the pattern, which need not be looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Edge {
    /// No `_` in it.
    Plain(Box<str>),
    /// `None` stands for any one character.
    Holes(Box<[Option<char>]>),
}

/// A piece that may be anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Middle {
    Plain(Box<str>),
    Holes(Holes),
}

/// Counts the characters that are looked at. Only tests want to know.
trait Meter {
    fn step(&mut self, characters: usize);
}

impl Meter for () {
    fn step(&mut self, _: usize) {}
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self, TooWide> {
        let mut pieces = pieces(pattern);
        let last = (pieces.len() > 1).then(|| pieces.pop()).flatten();
        let mut pieces = pieces.into_iter();
        let first = pieces.next().expect("there is one from the start");
        let middle = pieces.filter(|piece| !piece.is_empty()).map(Middle::new);
        Ok(Self {
            first: Edge::new(first),
            middle: middle.collect::<Result<_, _>>()?,
            last: last.map(Edge::new),
        })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.decide(text, &mut ())
    }

    /// Whether more of the text may have to be read than the pattern is long.
    pub(super) fn searches(&self) -> bool {
        !self.middle.is_empty()
    }

    fn decide(&self, text: &str, meter: &mut impl Meter) -> bool {
        let Some(mut rest) = self.first.strip_from_start(text, meter) else {
            return false;
        };
        for piece in &self.middle {
            match piece.skip_past(rest, meter) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        match &self.last {
            Some(last) => last.is_at_end_of(rest, meter),
            None => rest.is_empty(),
        }
    }

    /// What holds of every attribute that matches, if the pattern starts or ends with a text.
    pub(super) fn demand<'a>(&'a self, attribute: &'a str) -> Option<Demand<'a>> {
        let (first, last) = (self.first.as_plain(), self.last.as_ref());
        match last.map(Edge::as_plain) {
            None => first.map(|text| Demand::Exact(attribute, text)),
            Some(last) => {
                let some = |text: &&str| !text.is_empty();
                let prefix = first.filter(some);
                let suffix = last.filter(some);
                prefix
                    .map(|prefix| Demand::Prefix(attribute, prefix))
                    .or_else(|| suffix.map(|suffix| Demand::Suffix(attribute, suffix)))
            }
        }
    }
}

/// The pattern, cut at each `%`. `None` stands for any one character.
fn pieces(pattern: &str) -> Vec<Vec<Option<char>>> {
    let mut pieces = vec![Vec::new()];
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        let piece = pieces.last_mut().expect("there is one from the start");
        match character {
            '%' => pieces.push(Vec::new()),
            '_' => piece.push(None),
            '\\' => piece.push(Some(
                characters
                    .next_if(|next| matches!(next, '%' | '_'))
                    .unwrap_or('\\'),
            )),
            other => piece.push(Some(other)),
        }
    }
    pieces
}

/// The text of a piece without a `_`.
fn plain(piece: &[Option<char>]) -> Option<Box<str>> {
    let text: Option<String> = piece.iter().copied().collect();
    text.map(Into::into)
}

impl Edge {
    fn new(piece: Vec<Option<char>>) -> Self {
        plain(&piece).map_or_else(|| Self::Holes(piece.into()), Self::Plain)
    }

    fn as_plain(&self) -> Option<&str> {
        match self {
            Self::Plain(text) => Some(text),
            Self::Holes(_) => None,
        }
    }

    /// What is left of the text behind this piece, if the text starts with it.
    fn strip_from_start<'t>(&self, text: &'t str, meter: &mut impl Meter) -> Option<&'t str> {
        match self {
            Self::Plain(plain) => {
                meter.step(plain.len());
                text.strip_prefix(&**plain)
            }
            Self::Holes(characters) => {
                let mut rest = text.chars();
                for wanted in characters {
                    meter.step(1);
                    let found = rest.next()?;
                    if wanted.is_some_and(|wanted| wanted != found) {
                        return None;
                    }
                }
                Some(rest.as_str())
            }
        }
    }

    fn is_at_end_of(&self, text: &str, meter: &mut impl Meter) -> bool {
        match self {
            Self::Plain(plain) => {
                meter.step(plain.len());
                text.ends_with(&**plain)
            }
            Self::Holes(characters) => {
                let mut rest = text.chars().rev();
                characters.iter().rev().all(|wanted| {
                    meter.step(1);
                    rest.next()
                        .is_some_and(|found| wanted.is_none_or(|wanted| wanted == found))
                })
            }
        }
    }
}

impl Middle {
    fn new(piece: Vec<Option<char>>) -> Result<Self, TooWide> {
        match plain(&piece) {
            Some(text) => Ok(Self::Plain(text)),
            None => Holes::new(&piece).map(Self::Holes),
        }
    }

    /// What is left of the text behind the first place where this piece is.
    fn skip_past<'t>(&self, text: &'t str, meter: &mut impl Meter) -> Option<&'t str> {
        match self {
            Self::Plain(plain) => {
                let end = text.find(&**plain).map(|at| at + plain.len());
                // The standard library searches in linear time.
                meter.step(plain.len() + end.unwrap_or(text.len()));
                end.map(|end| &text[end..])
            }
            Self::Holes(holes) => holes.skip_past(text, meter),
        }
    }
}
