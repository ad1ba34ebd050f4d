//! The terms of a predicate one by one, for those who ask why so little matches.

use heddle_api::attributes::Attributes;

use super::{Pair, Predicate, Term};

/// The part of an attribute that a text is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPlace {
    Whole,
    Start,
    End,
}

/// What a term asks of one attribute, where it compares it with one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskedText {
    pub(crate) attribute: Box<str>,
    pub(crate) text: Box<str>,
    pub(crate) place: TextPlace,
}

impl Predicate {
    /// Each term in words, and what it compares if that is all it does. Those of an `all` stand by themselves.
    pub(crate) fn asked(&self) -> Vec<(String, Option<AskedText>)> {
        let terms = leaves(&self.terms).into_iter();
        terms.map(|term| (term.to_string(), term.asked())).collect()
    }

    /// Which of those do not hold of an event.
    pub(crate) fn failing(&self, event: &dyn Attributes) -> Vec<usize> {
        let terms = leaves(&self.terms).into_iter().enumerate();
        let failing = terms.filter(|(_, term)| !term.holds(event));
        failing.map(|(number, _)| number).collect()
    }
}

fn leaves(terms: &[Term]) -> Vec<&Term> {
    let each = terms.iter().flat_map(|term| match term {
        Term::All(inner) => leaves(inner),
        term => vec![term],
    });
    each.collect()
}

impl Term {
    fn asked(&self) -> Option<AskedText> {
        let (Pair { attribute, text }, place) = match self {
            Self::Exact(pair) => (pair, TextPlace::Whole),
            Self::Prefix(pair) => (pair, TextPlace::Start),
            Self::Suffix(pair) => (pair, TextPlace::End),
            _ => return None,
        };
        Some(AskedText {
            attribute: attribute.clone(),
            text: text.clone(),
            place,
        })
    }
}
