//! What must hold of every event that a filter lets pass.
//!
//! An index that finds filters by their demands is right as long as demands are necessary: an event that passes meets at
//! least one demand of the clause. Whether an event that meets one passes is left to the filter itself.

/// A condition on the canonical text of one attribute: its name, then the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand<'a> {
    Exact(&'a str, &'a str),
    Prefix(&'a str, &'a str),
    Suffix(&'a str, &'a str),
}

/// Demands of which at least one holds. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause<'a>(Vec<Demand<'a>>);

/// With more alternatives than this, looking through them in an index is no better than asking the filter.
pub const ALTERNATIVES_MAX: usize = 256;

impl<'a> Clause<'a> {
    #[must_use]
    pub fn of(demand: Demand<'a>) -> Self {
        Self(vec![demand])
    }

    #[must_use]
    pub fn demands(&self) -> &[Demand<'a>] {
        &self.0
    }

    /// One of the two holds; `None` when that says too little to be of use.
    #[must_use]
    pub fn or(mut self, other: Self) -> Option<Self> {
        self.0.extend(other.0);
        (self.0.len() <= ALTERNATIVES_MAX).then_some(self)
    }

    /// Both hold, and one is enough to find a filter by: the one that fewer events meet, as far as can be told.
    #[must_use]
    pub fn stronger(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) if other.weakness() < one.weakness() => Some(other),
            (one, other) => one.or(other),
        }
    }

    /// The weakest demand decides; among equals, fewer alternatives are better.
    fn weakness(&self) -> (u8, usize) {
        let weakest = self.0.iter().map(Demand::weakness).max();
        (weakest.unwrap_or(u8::MAX), self.0.len())
    }
}

impl Demand<'_> {
    /// Types tell events apart best, then sources; the start of a text is found faster than its end.
    fn weakness(&self) -> u8 {
        match self {
            Self::Exact("type", _) => 0,
            Self::Exact("source", _) => 1,
            Self::Exact(..) => 2,
            Self::Prefix("type", _) => 3,
            Self::Prefix(..) => 4,
            Self::Suffix(..) => 5,
        }
    }
}
