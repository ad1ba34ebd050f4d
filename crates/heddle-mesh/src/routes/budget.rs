//! How much work the filters of a namespace may make of one event.
//!
//! All events are matched one after the other, those of every namespace, so the costliest event of one is what all others
//! wait for. What counts is not the sum of all filters but the most that a single event can cause: an event has one type,
//! so of filters that each ask for an exact type only those that ask for the same one are ever evaluated together.
//!
//! ```text
//!   filters that ask for nothing the index knows   all of them
//!   those that ask for an exact value              for each attribute, those of the value that costs most
//!   those that ask for a start or an end           all of them, less what the index saves
//! ```

use std::collections::HashMap;

use heddle_api::filter::cost::{NAMESPACE_COST_MAX, READ_COST};
use heddle_api::filter::demand::{Clause, Demand};

use super::grants::namespace_of;
use crate::path::trigger::Predicate;

/// What a filter that the index finds may cost without being counted: by then it has met a demand of its own, and most
/// likely wants the event.
pub(super) const INDEXED_COST_FREE: u32 = 8;

/// What is counted of a predicate.
pub(super) fn surcharge(predicate: &Predicate) -> u32 {
    match predicate.demand() {
        Some(_) => predicate.cost().saturating_sub(INDEXED_COST_FREE),
        None => predicate.cost(),
    }
}

/// The budgets of all namespaces.
#[derive(Default)]
pub(super) struct Budgets<'a> {
    namespaces: HashMap<&'a str, Budget<'a>>,
}

#[derive(Default)]
struct Budget<'a> {
    /// What any event may cost, whatever its attributes are.
    always: u32,
    by_attribute: HashMap<&'a str, CostByValue<'a>>,
}

/// What events cost by the value of one attribute.
#[derive(Default)]
struct CostByValue<'a> {
    costs: HashMap<&'a str, u32>,
    most: u32,
}

impl<'a> Budgets<'a> {
    /// Counts a consumer's predicate, unless that would be too much; the error says what to do.
    pub(super) fn add(&mut self, key: &'a str, predicate: &'a Predicate) -> Result<(), String> {
        let namespace = namespace_of(key);
        let budget = self.namespaces.entry(namespace).or_default();
        let cost = surcharge(predicate);
        let exact = predicate.demand().and_then(|clause| exact(&clause));
        let total = budget.with(cost, exact.as_deref());
        if total > NAMESPACE_COST_MAX {
            return Err(format!(
                "its filters would make {total} of what one event may cost in {namespace}, and no more than {NAMESPACE_COST_MAX} is \
                 allowed: a condition costs 1, and {READ_COST} where an attribute has to be read to its end; ask for an exact \
                 type first, make filters of the namespace simpler, or move it to another namespace"
            ));
        }
        budget.add(cost, exact);
        Ok(())
    }
}

impl<'a> Budget<'a> {
    /// What the costliest event would cost.
    fn with(&self, cost: u32, exact: Option<&[(&'a str, &'a str)]>) -> u32 {
        let Some(exact) = exact else {
            return self.total().saturating_add(cost);
        };
        let mut more: HashMap<&str, u32> = HashMap::new();
        for (attribute, value) in exact {
            let values = self.by_attribute.get(attribute);
            let (before, most) = values.map_or((0, 0), |values| values.of(value));
            let rise = before.saturating_add(cost).saturating_sub(most);
            let rises = more.entry(attribute).or_default();
            *rises = rise.max(*rises);
        }
        more.into_values().fold(self.total(), u32::saturating_add)
    }

    fn add(&mut self, cost: u32, exact: Option<Vec<(&'a str, &'a str)>>) {
        let Some(exact) = exact else {
            self.always = self.always.saturating_add(cost);
            return;
        };
        for (attribute, value) in exact {
            let values = self.by_attribute.entry(attribute).or_default();
            let of_value = values.costs.entry(value).or_default();
            *of_value = of_value.saturating_add(cost);
            values.most = values.most.max(*of_value);
        }
    }

    fn total(&self) -> u32 {
        let most = self.by_attribute.values().map(|values| values.most);
        most.fold(self.always, u32::saturating_add)
    }
}

impl CostByValue<'_> {
    /// What a value costs, and what the costliest does.
    fn of(&self, value: &str) -> (u32, u32) {
        (self.costs.get(value).copied().unwrap_or(0), self.most)
    }
}

/// The exact values that a clause asks for, each once, if it asks for nothing else.
fn exact<'a>(clause: &Clause<'a>) -> Option<Vec<(&'a str, &'a str)>> {
    let one = |demand: &Demand<'a>| match *demand {
        Demand::Exact(attribute, value) => Some((attribute, value)),
        Demand::Prefix(..) | Demand::Suffix(..) => None,
    };
    let mut all: Vec<_> = clause.demands().iter().map(one).collect::<Option<_>>()?;
    all.sort_unstable();
    all.dedup();
    Some(all)
}
