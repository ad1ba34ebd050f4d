//! Hop 5: decide which events a consumer wants.
//!
//! A [`Predicate`] is compiled once from what was asked for and decides on attributes alone. It promises that a filter it
//! does not understand is an error rather than a wider filter, that a missing attribute and an expression that fails are
//! "no", and that [`Predicate::explain`] says why not whenever [`Predicate::matches`] says no. Finding the few predicates
//! worth asking is left to the index of the routing table, which goes by [`Predicate::demand`].
//!
//! Heartbeats are nobody's but heddle's: a predicate decides about them or about everything else, never about both.

mod asked;
mod compile;
mod explain;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod tests;

use heddle_api::attributes::Attributes;
use heddle_api::cesql::Expression;
use heddle_api::filter::demand::{Clause, Demand};

use crate::heartbeat::is_heartbeat;

pub(crate) use asked::{AskedText, TextPlace};
pub use compile::Invalid;

/// Why whoever wants all events does not want this one.
const NOT_FOR_USERS: &str =
    "heartbeats go to heddle itself and nowhere else, and nothing else goes there";

/// Which events are wanted: those for which every term holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicate {
    terms: Vec<Term>,
    cost: u32,
    /// Whether heartbeats are wanted, and nothing else.
    of_heartbeats: bool,
}

/// One condition. Attributes are compared in their canonical text form.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Exact(Pair),
    Prefix(Pair),
    Suffix(Pair),
    Present(Box<str>),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Cesql(Box<Expression>),
}

/// An attribute and what it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    attribute: Box<str>,
    text: Box<str>,
}

impl Predicate {
    /// Every event is wanted.
    #[must_use]
    pub const fn everything() -> Self {
        Self {
            terms: Vec::new(),
            cost: 0,
            of_heartbeats: false,
        }
    }

    /// The heartbeats of one source are wanted.
    #[must_use]
    pub(crate) fn heartbeats_of(source: &str) -> Self {
        let terms = vec![Term::Exact(Pair {
            attribute: "source".into(),
            text: source.into(),
        })];
        Self {
            cost: cost_of_all(&terms),
            terms,
            of_heartbeats: true,
        }
    }

    /// Whether heartbeats are wanted, and nothing else.
    #[must_use]
    pub const fn is_of_heartbeats(&self) -> bool {
        self.of_heartbeats
    }

    /// What it costs to ask it, in the units of [`filter::cost`](heddle_api::filter::cost).
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// Whether the event is wanted.
    #[must_use]
    pub fn matches(&self, event: &dyn Attributes) -> bool {
        is_heartbeat(event) == self.of_heartbeats && self.terms.iter().all(|term| term.holds(event))
    }

    /// Why the event is not wanted: the term that does not hold, its attribute and the value found.
    pub fn explain(&self, event: &dyn Attributes) -> Result<(), String> {
        if is_heartbeat(event) != self.of_heartbeats {
            return Err(NOT_FOR_USERS.to_owned());
        }
        match self.terms.iter().find(|term| !term.holds(event)) {
            None => Ok(()),
            Some(term) => Err(term.why_not(event)),
        }
    }

    /// What holds of every event that is wanted, if anything simple does.
    #[must_use]
    pub fn demand(&self) -> Option<Clause<'_>> {
        demand_of_all(&self.terms)
    }
}

fn cost_of_all(terms: &[Term]) -> u32 {
    let costs = terms.iter().map(Term::cost);
    costs.fold(0, u32::saturating_add)
}

fn demand_of_all(terms: &[Term]) -> Option<Clause<'_>> {
    let demands = terms.iter().map(Term::demand);
    demands.reduce(Clause::stronger).flatten()
}

impl Term {
    fn holds(&self, event: &dyn Attributes) -> bool {
        match self {
            Self::Exact(pair) => event.text(&pair.attribute) == Some(&*pair.text),
            Self::Prefix(pair) => event
                .text(&pair.attribute)
                .is_some_and(|text| text.starts_with(&*pair.text)),
            Self::Suffix(pair) => event
                .text(&pair.attribute)
                .is_some_and(|text| text.ends_with(&*pair.text)),
            Self::Present(attribute) => event.text(attribute).is_some(),
            Self::All(terms) => terms.iter().all(|term| term.holds(event)),
            Self::Any(terms) => terms.iter().any(|term| term.holds(event)),
            Self::Not(term) => !term.holds(event),
            Self::Cesql(expression) => expression.passes(event),
        }
    }

    fn cost(&self) -> u32 {
        match self {
            Self::Exact(_) | Self::Prefix(_) | Self::Suffix(_) | Self::Present(_) => 1,
            Self::All(terms) | Self::Any(terms) => cost_of_all(terms),
            Self::Not(term) => term.cost(),
            Self::Cesql(expression) => expression.cost(),
        }
    }

    fn demand(&self) -> Option<Clause<'_>> {
        match self {
            Self::Exact(pair) => Some(Clause::of(Demand::Exact(&pair.attribute, &pair.text))),
            Self::Prefix(pair) => Some(Clause::of(Demand::Prefix(&pair.attribute, &pair.text))),
            Self::Suffix(pair) => Some(Clause::of(Demand::Suffix(&pair.attribute, &pair.text))),
            Self::All(terms) => demand_of_all(terms),
            Self::Any(terms) => terms
                .iter()
                .map(Self::demand)
                .reduce(|some, more| some?.or(more?))?,
            Self::Present(_) | Self::Not(_) => None,
            Self::Cesql(expression) => expression.demand(),
        }
    }
}
