//! What an expression costs for each event, in the units of [`cost`](crate::filter::cost).
//!
//! Every operator costs 1, and so does every attribute. Literals cost nothing by themselves, for whoever looks at them has
//! been counted. Where a text is read to its end that may be as long as an attribute, that is counted too.

use super::{Comparison, In, Like, Node};
use crate::filter::cost::READ_COST;

/// So many literals are compared with a text in the time of one condition, which has to find its attribute first.
const LITERALS_PER_CONDITION: usize = 16;

impl Node {
    pub(in crate::cesql) fn cost(&self) -> u32 {
        match self {
            Self::Text(_) | Self::Integer(_) | Self::Boolean(_) => 0,
            Self::Attribute(_) | Self::Exists(_) => 1,
            Self::Not(operand) => operand.cost().saturating_add(1),
            Self::Negate(operand) => operand.cost().saturating_add(1 + operand.reading()),
            Self::Arithmetic(_, operands) => sum(operands.iter().map(Self::cost))
                .saturating_add(1 + sum(operands.iter().map(Self::reading))),
            Self::Compare(operator, operands) => sum(operands.iter().map(Self::cost))
                .saturating_add(1 + comparing(*operator, operands)),
            Self::Logic(chain) => {
                let before = chain.before.iter().map(|(operand, _)| operand);
                sum(before.chain([&chain.last]).map(Self::cost)).saturating_add(1)
            }
            Self::Like(like) => like.cost(),
            Self::In(in_) => in_.cost(),
            Self::Call(_, arguments) => {
                sum(arguments.iter().map(Self::cost)).saturating_add(1 + READ_COST)
            }
        }
    }

    /// What it costs to read the value as a number, which its text may have to be read to the end for.
    fn reading(&self) -> u32 {
        match self {
            Self::Attribute(_) | Self::Call(..) => READ_COST,
            _ => 0,
        }
    }

    fn is_literal(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Integer(_) | Self::Boolean(_))
    }
}

impl Like {
    fn cost(&self) -> u32 {
        let searching = if self.pattern.searches() {
            READ_COST
        } else {
            0
        };
        self.operand.cost().saturating_add(1 + searching)
    }
}

impl In {
    fn cost(&self) -> u32 {
        let literals = self.set.iter().filter(|one| one.is_literal()).count();
        let literals = u32::try_from(literals / LITERALS_PER_CONDITION).unwrap_or(u32::MAX);
        let others = self.set.iter().filter(|one| !one.is_literal());
        let others = sum(others.map(|one| one.cost().saturating_add(READ_COST)));
        let own = self.operand.cost().saturating_add(1);
        own.saturating_add(literals).saturating_add(others)
    }
}

/// Equality with a literal text looks at no more than that text is long.
fn comparing(operator: Comparison, operands: &[Node; 2]) -> u32 {
    let equality = matches!(operator, Comparison::Equal | Comparison::NotEqual);
    match operands {
        [_, Node::Text(_)] | [Node::Text(_), _] if equality => 0,
        [left, right] => left.reading().max(right.reading()),
    }
}

fn sum(costs: impl Iterator<Item = u32>) -> u32 {
    costs.fold(0, u32::saturating_add)
}
