//! Why an event is not wanted, in words for the person who asks where it is.

use std::fmt;

use heddle_api::attributes::Attributes;
use heddle_api::ledger::TermTruth;

use super::{Pair, Predicate, Term};

impl Predicate {
    /// What each term says about an event.
    pub fn truths(&self, event: &dyn Attributes) -> Vec<TermTruth> {
        let truth = |term: &Term| {
            let holds = term.holds(event);
            TermTruth {
                term: term.to_string(),
                holds,
                reason: (!holds).then(|| term.why_not(event)),
            }
        };
        self.terms.iter().map(truth).collect()
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |f: &mut fmt::Formatter<'_>, name: &str, terms: &[Self]| {
            let terms: Vec<String> = terms.iter().map(ToString::to_string).collect();
            write!(f, "{name} of ({})", terms.join("; "))
        };
        match self {
            Self::Exact(Pair { attribute, text }) => write!(f, "{attribute} is {text:?}"),
            Self::Prefix(Pair { attribute, text }) => {
                write!(f, "{attribute} starts with {text:?}")
            }
            Self::Suffix(Pair { attribute, text }) => write!(f, "{attribute} ends with {text:?}"),
            Self::Present(attribute) => write!(f, "{attribute} is there"),
            Self::All(terms) => all(f, "all", terms),
            Self::Any(terms) => all(f, "any", terms),
            Self::Not(term) => write!(f, "not: {term}"),
            Self::Cesql(expression) => write!(f, "cesql {expression}"),
        }
    }
}

impl Term {
    /// Why this term does not hold. To be asked only then.
    pub(super) fn why_not(&self, event: &dyn Attributes) -> String {
        match self {
            Self::Exact(pair) => pair.against(event, "filter wants"),
            Self::Prefix(pair) => pair.against(event, "filter wants a text that starts with"),
            Self::Suffix(pair) => pair.against(event, "filter wants a text that ends with"),
            Self::Present(attribute) => {
                format!("the event has no {attribute}, filter wants it to be there")
            }
            Self::All(terms) => terms
                .iter()
                .find(|term| !term.holds(event))
                .map_or_else(String::new, |term| term.why_not(event)),
            Self::Any(terms) => {
                let reasons: Vec<String> = terms.iter().map(|term| term.why_not(event)).collect();
                format!("none of {} holds: {}", terms.len(), reasons.join("; "))
            }
            Self::Not(term) => term.why(event),
            Self::Cesql(expression) => match expression.matches(event) {
                Err(reason) => format!("cesql {expression}: {reason}"),
                Ok(_) => format!("cesql {expression}: is false"),
            },
        }
    }

    /// Why this term holds, which a `not` around it does not want. To be asked only then.
    fn why(&self, event: &dyn Attributes) -> String {
        match self {
            Self::Exact(pair) => pair.against(event, "filter wants any but"),
            Self::Prefix(pair) => pair.against(event, "filter wants none that starts with"),
            Self::Suffix(pair) => pair.against(event, "filter wants none that ends with"),
            Self::Present(attribute) => {
                format!("the event has {attribute}, filter wants it not to be there")
            }
            Self::All(terms) => {
                let reasons: Vec<String> = terms.iter().map(|term| term.why(event)).collect();
                format!("all of {} hold: {}", terms.len(), reasons.join("; "))
            }
            Self::Any(terms) => terms
                .iter()
                .find(|term| term.holds(event))
                .map_or_else(String::new, |term| term.why(event)),
            Self::Not(term) => term.why_not(event),
            Self::Cesql(expression) => {
                format!("cesql {expression}: is true, filter wants it not to be")
            }
        }
    }
}

impl Pair {
    /// What was found, against what was wanted.
    fn against(&self, event: &dyn Attributes, wants: &str) -> String {
        let Self { attribute, text } = self;
        match event.text(attribute) {
            Some(found) => format!("{attribute} is {found:?}, {wants} {text:?}"),
            None => format!("the event has no {attribute}, {wants} {text:?}"),
        }
    }
}
