//! What was asked for to a predicate.

use std::collections::BTreeMap;

use heddle_api::cesql::Expression;
use heddle_api::filter::{Fault, Filter, FilterSource, Nested};

use super::{Pair, Predicate, Term, cost_of_all};

/// A filter that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", in_words(.faults))]
pub struct Invalid {
    /// Everything that is wrong with it, never nothing.
    pub faults: Vec<Fault>,
}

fn in_words(faults: &[Fault]) -> String {
    let one = |fault: &Fault| format!("{}: {}", fault.path, fault.message);
    faults.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Predicate {
    /// The predicate that decides as asked.
    pub fn compile(source: &FilterSource) -> Result<Self, Invalid> {
        let faults = source.check();
        if !faults.is_empty() {
            return Err(Invalid { faults });
        }
        let terms: Vec<Term> = match source {
            FilterSource::Everything => Vec::new(),
            FilterSource::Attributes(attributes) => attributes.iter().map(by_value).collect(),
            FilterSource::Filters(filters) => filters.iter().flat_map(terms).collect(),
        };
        let cost = cost_of_all(&terms);
        Ok(Self {
            terms,
            cost,
            of_heartbeats: false,
        })
    }
}

/// One entry of a Trigger's `filter.attributes`, where the empty value means that the attribute is there.
fn by_value((attribute, text): (&String, &String)) -> Term {
    if text.is_empty() {
        Term::Present(attribute.as_str().into())
    } else {
        Term::Exact(pair((attribute, text)))
    }
}

/// The terms of one filter. A filter has one dialect, so these are the entries of its map or the one term of any other.
fn terms(filter: &Filter) -> Vec<Term> {
    let of = |map: &BTreeMap<String, String>, term: fn(Pair) -> Term| -> Vec<Term> {
        map.iter().map(pair).map(term).collect()
    };
    let mut terms = of(&filter.exact, Term::Exact);
    terms.extend(of(&filter.prefix, Term::Prefix));
    terms.extend(of(&filter.suffix, Term::Suffix));
    if !filter.all.is_empty() {
        terms.push(Term::All(filter.all.iter().map(nested).collect()));
    }
    if !filter.any.is_empty() {
        terms.push(Term::Any(filter.any.iter().map(nested).collect()));
    }
    terms.extend(
        filter
            .not
            .iter()
            .map(|not| Term::Not(Box::new(nested(not)))),
    );
    terms.extend(filter.cesql.iter().map(|text| {
        let expression = Expression::parse(text).expect("filters were checked above");
        Term::Cesql(Box::new(expression))
    }));
    terms
}

fn nested(nested: &Nested) -> Term {
    let filter = nested.read().expect("filters were checked above");
    let mut terms = terms(&filter);
    if terms.len() == 1 {
        terms.remove(0)
    } else {
        Term::All(terms)
    }
}

fn pair((attribute, text): (&String, &String)) -> Pair {
    Pair {
        attribute: attribute.as_str().into(),
        text: text.as_str().into(),
    }
}
