//! Texts as they are asked for: exactly, with `*` for anything, as a number, or as a part of something longer.

use std::cmp::Ordering;

use super::IndexedWord;
use crate::attributes::Attributes;

/// A text, or what it must look like. `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPattern {
    /// What lies between the stars. One piece is the whole text.
    pieces: Vec<Box<str>>,
}

impl TextPattern {
    /// This text and no other.
    #[must_use]
    pub fn exactly(text: &str) -> Self {
        Self {
            pieces: vec![text.into()],
        }
    }

    /// With stars.
    #[must_use]
    pub fn glob(text: &str) -> Self {
        Self {
            pieces: text.split('*').map(Into::into).collect(),
        }
    }

    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = &*self.pieces else {
            return self.exact() == Some(text);
        };
        let Some(rest) = text.strip_prefix(&**first) else {
            return false;
        };
        let Some(mut rest) = rest.strip_suffix(&**last) else {
            return false;
        };
        // The leftmost place for each leaves the most room for those behind it.
        for piece in middle {
            let Some(at) = rest.find(&**piece) else {
                return false;
            };
            rest = &rest[at + piece.len()..];
        }
        true
    }

    /// The only text that it is, if there is only one.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        match &*self.pieces {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether it is nothing but a star: whatever is there will do.
    pub(super) fn is_anything(&self) -> bool {
        self.pieces.len() > 1 && self.pieces.iter().all(|piece| piece.is_empty())
    }
}

/// How two things are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Is,
    IsNot,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    pub(super) fn is_order(self) -> bool {
        !matches!(self, Self::Is | Self::IsNot)
    }

    pub(super) fn admits(self, order: Ordering) -> bool {
        match self {
            Self::Is => order.is_eq(),
            Self::IsNot => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A number as JSON has it. Whole ones are compared as such, beyond 2^53 too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SoughtNumber {
    Whole(i128),
    Real(f64),
}

impl SoughtNumber {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let looks_like_one = text.starts_with(|char: char| char.is_ascii_digit() || char == '-');
        if !looks_like_one {
            return None;
        }
        if let Ok(whole) = text.parse() {
            return Some(Self::Whole(whole));
        }
        let real: f64 = text.parse().ok()?;
        real.is_finite().then_some(Self::Real(real))
    }

    pub(super) fn order(self, other: Self) -> Option<Ordering> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a number with a fraction is no more precise"
        )]
        let real = |number| match number {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        };
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            (one, other) => real(one).partial_cmp(&real(other)),
        }
    }
}

/// What something is compared with, and how.
#[derive(Clone, Debug)]
pub(super) struct SoughtValue {
    pub(super) operator: Operator,
    pub(super) pattern: TextPattern,
    pub(super) text: Box<str>,
    /// In quotes it is a text, whatever it looks like.
    pub(super) number: Option<SoughtNumber>,
}

impl SoughtValue {
    pub(super) fn new(operator: Operator, text: &str, quoted: bool) -> Self {
        Self {
            operator,
            pattern: match quoted {
                true => TextPattern::exactly(text),
                false => TextPattern::glob(text),
            },
            text: text.into(),
            number: SoughtNumber::parse(text).filter(|_| !quoted),
        }
    }

    /// Whether a text is what was asked for. An unquoted number is compared with numbers only, where order matters.
    pub(super) fn admits_text(&self, text: &str) -> bool {
        match self.operator {
            Operator::Is => self.pattern.matches(text),
            Operator::IsNot => !self.pattern.matches(text),
            operator => match self.number {
                None => operator.admits(text.cmp(&self.text)),
                Some(number) => SoughtNumber::parse(text)
                    .and_then(|found| found.order(number))
                    .is_some_and(|order| operator.admits(order)),
            },
        }
    }
}

/// What an attribute must be.
#[derive(Clone, Debug)]
pub(super) struct AttributeTerm {
    pub(super) name: Box<str>,
    pub(super) value: SoughtValue,
}

impl AttributeTerm {
    pub(super) fn is(name: &str, pattern: TextPattern) -> Self {
        let text = pattern.exact().unwrap_or_default().into();
        Self {
            name: name.into(),
            value: SoughtValue {
                operator: Operator::Is,
                pattern,
                text,
                number: None,
            },
        }
    }

    pub(super) fn holds(&self, event: &(impl Attributes + ?Sized)) -> bool {
        let text = event.text(&self.name);
        text.is_some_and(|text| self.value.admits_text(text))
    }

    pub(super) fn indexed(&self) -> Option<(IndexedWord, &str)> {
        let word = match &*self.name {
            "id" => IndexedWord::Id,
            "source" => IndexedWord::Source,
            "type" => IndexedWord::Type,
            "subject" => IndexedWord::Subject,
            _ => return None,
        };
        let exact = self.value.pattern.exact()?;
        (self.value.operator == Operator::Is).then_some((word, exact))
    }
}

/// A text that is looked for within others, whatever the case of its ASCII letters. That takes time in proportion to those
/// others, however long it is and however often a part of it is in them.
#[derive(Clone, Debug)]
pub(super) struct FoldedText {
    /// In lower case.
    bytes: Box<[u8]>,
    /// How many bytes at its beginning are also the end of so many of them: where to go on when the next does not fit.
    borders: Box<[usize]>,
}

impl FoldedText {
    pub(super) fn new(text: &str) -> Self {
        let bytes = text.to_ascii_lowercase().into_bytes();
        let mut borders: Vec<usize> = Vec::with_capacity(bytes.len());
        for at in 0..bytes.len() {
            let border = match at {
                0 => 0,
                _ => fitting(&bytes, &borders, borders[at - 1], bytes[at]),
            };
            borders.push(border);
        }
        Self {
            bytes: bytes.into(),
            borders: borders.into(),
        }
    }

    pub(super) fn is_within(&self, bytes: &[u8]) -> bool {
        let mut fits = 0;
        self.bytes.is_empty()
            || bytes.iter().any(|byte| {
                fits = fitting(&self.bytes, &self.borders, fits, byte.to_ascii_lowercase());
                fits == self.bytes.len()
            })
    }
}

/// How many bytes of a text fit up to and with the next one, if so many fitted before.
fn fitting(text: &[u8], borders: &[usize], mut fits: usize, next: u8) -> usize {
    while fits > 0 && text[fits] != next {
        fits = borders[fits - 1];
    }
    fits + usize::from(text[fits] == next)
}
