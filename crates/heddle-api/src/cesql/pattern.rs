//! The pattern of a `LIKE`: `%` is any text, `_` any one character, and both are themselves behind a backslash.
//!
//! The pattern is cut at each `%`. The first piece must be at the start, the last at the end, and those between are found
//! one after the other, each as early as possible. An early place never spoils a later piece, so nothing is tried twice.

use crate::filter::demand::Demand;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    first: Piece,
    /// What stands between and behind the `%`s; empty when there is none, and then `first` must be all of the text.
    rest: Vec<Piece>,
}

/// What stands between two `%`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// No `_` in it, so it is a text to look for.
    Plain(Box<str>),
    /// `None` stands for any one character.
    Holes(Box<[Option<char>]>),
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
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
        let mut pieces = pieces.into_iter().map(Piece::new);
        Self {
            first: pieces.next().expect("there is one from the start"),
            rest: pieces.collect(),
        }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let Some(mut rest) = self.first.strip_from_start(text) else {
            return false;
        };
        let Some((last, between)) = self.rest.split_last() else {
            return rest.is_empty();
        };
        for piece in between {
            match piece.skip_past(rest) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        last.is_at_end_of(rest)
    }

    /// What holds of every attribute that matches, if the pattern starts or ends with a text.
    pub(super) fn demand<'a>(&'a self, attribute: &'a str) -> Option<Demand<'a>> {
        let text = |piece: &'a Piece| match piece {
            Piece::Plain(text) => Some(&**text).filter(|text| !text.is_empty()),
            Piece::Holes(_) => None,
        };
        match self.rest.last() {
            None => match &self.first {
                Piece::Plain(text) => Some(Demand::Exact(attribute, text)),
                Piece::Holes(_) => None,
            },
            Some(last) => text(&self.first)
                .map(|prefix| Demand::Prefix(attribute, prefix))
                .or_else(|| text(last).map(|suffix| Demand::Suffix(attribute, suffix))),
        }
    }
}

impl Piece {
    fn new(characters: Vec<Option<char>>) -> Self {
        match characters.iter().copied().collect::<Option<String>>() {
            Some(text) => Self::Plain(text.into()),
            None => Self::Holes(characters.into()),
        }
    }

    /// What is left of the text behind this piece, if the text starts with it.
    fn strip_from_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Plain(plain) => text.strip_prefix(&**plain),
            Self::Holes(characters) => {
                let mut rest = text.chars();
                for wanted in characters {
                    let found = rest.next()?;
                    if wanted.is_some_and(|wanted| wanted != found) {
                        return None;
                    }
                }
                Some(rest.as_str())
            }
        }
    }

    /// What is left of the text behind the first place where this piece is.
    fn skip_past<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Plain(plain) => text.find(&**plain).map(|at| &text[at + plain.len()..]),
            Self::Holes(_) => text
                .char_indices()
                .find_map(|(at, _)| self.strip_from_start(&text[at..])),
        }
    }

    fn is_at_end_of(&self, text: &str) -> bool {
        match self {
            Self::Plain(plain) => text.ends_with(&**plain),
            Self::Holes(characters) => {
                let mut rest = text.chars().rev();
                characters.iter().rev().all(|wanted| {
                    rest.next()
                        .is_some_and(|found| wanted.is_none_or(|wanted| wanted == found))
                })
            }
        }
    }
}
