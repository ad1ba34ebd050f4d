//! The tree of an expression, and what can be said about it without an event.

mod cost;

use super::functions::Function;
use super::pattern::Pattern;
use crate::filter::demand::{Clause, Demand};

/// One part of an expression.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Text(Box<str>),
    Integer(i32),
    Boolean(bool),
    Attribute(Attribute),
    Exists(Box<str>),
    Not(Box<Self>),
    Negate(Box<Self>),
    Arithmetic(Arithmetic, Box<[Self; 2]>),
    Compare(Comparison, Box<[Self; 2]>),
    Logic(Box<Chain>),
    Like(Box<Like>),
    In(Box<In>),
    Call(Function, Box<[Self]>),
}

/// An attribute by name.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: Box<str>,
    /// Whether CloudEvents itself says that the attribute is text, so that no event can have it as a number.
    pub(super) is_text: bool,
}

/// `first op (second op (third …))`, flat so that a long chain is not a deep tree.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// Each operand with the operator behind it.
    pub(super) before: Vec<(Node, Logic)>,
    pub(super) last: Node,
}

#[derive(Clone, Debug)]
pub(super) struct Like {
    pub(super) operand: Node,
    pub(super) pattern: Pattern,
    pub(super) negated: bool,
}

#[derive(Clone, Debug)]
pub(super) struct In {
    pub(super) operand: Node,
    pub(super) set: Box<[Node]>,
    pub(super) negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Or,
    Xor,
}

/// The types of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Integer,
    Boolean,
}

impl Type {
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
        }
    }
}

/// The attributes that CloudEvents defines as strings, URIs and timestamps.
const TEXT_ATTRIBUTES: &[&str] = &[
    "type",
    "source",
    "id",
    "subject",
    "specversion",
    "time",
    "datacontenttype",
    "dataschema",
];

impl Attribute {
    /// Names are compared without regard to case, as keywords are; attributes of events are always lowercase.
    pub(super) fn new(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        Self {
            is_text: TEXT_ATTRIBUTES.contains(&name.as_str()),
            name: name.into(),
        }
    }
}

impl Node {
    /// The type of the value, whatever the event; `None` when it depends on the event.
    pub(super) const fn result_type(&self) -> Option<Type> {
        match self {
            Self::Attribute(Attribute { is_text: false, .. }) => None,
            Self::Attribute(_) | Self::Text(_) => Some(Type::Text),
            Self::Integer(_) | Self::Negate(_) | Self::Arithmetic(..) => Some(Type::Integer),
            Self::Boolean(_)
            | Self::Exists(_)
            | Self::Not(_)
            | Self::Compare(..)
            | Self::Logic(_)
            | Self::Like(_)
            | Self::In(_) => Some(Type::Boolean),
            Self::Call(function, _) => Some(function.result_type()),
        }
    }

    /// The first call of a function that does not exist: its name and how many arguments it was given.
    pub(super) fn missing_function(&self) -> Option<(&str, usize)> {
        match self {
            Self::Text(_)
            | Self::Integer(_)
            | Self::Boolean(_)
            | Self::Attribute(_)
            | Self::Exists(_) => None,
            Self::Not(operand) | Self::Negate(operand) => operand.missing_function(),
            Self::Arithmetic(_, operands) | Self::Compare(_, operands) => {
                operands.iter().find_map(Self::missing_function)
            }
            Self::Logic(chain) => chain
                .before
                .iter()
                .map(|(operand, _)| operand)
                .chain([&chain.last])
                .find_map(Self::missing_function),
            Self::Like(like) => like.operand.missing_function(),
            Self::In(in_) => in_
                .operand
                .missing_function()
                .or_else(|| in_.set.iter().find_map(Self::missing_function)),
            Self::Call(Function::Missing(name), arguments) => Some((name, arguments.len())),
            Self::Call(_, arguments) => arguments.iter().find_map(Self::missing_function),
        }
    }

    /// What holds of every event for which this is true without an error.
    pub(super) fn demand(&self) -> Option<Clause<'_>> {
        match self {
            Self::Compare(Comparison::Equal, operands) => match &**operands {
                // The right operand decides how the two are compared: here as text. Turned around, an attribute that is a
                // number would be compared as a number, and '05' would equal 5.
                [Self::Attribute(attribute), Self::Text(value)] => {
                    Some(Clause::of(Demand::Exact(&attribute.name, value)))
                }
                _ => None,
            },
            Self::Like(like) if !like.negated => match &like.operand {
                Self::Attribute(attribute) => like.pattern.demand(&attribute.name).map(Clause::of),
                _ => None,
            },
            Self::In(in_) if !in_.negated => in_.demand(),
            Self::Logic(chain) => chain.demand(),
            _ => None,
        }
    }
}

impl In {
    /// The left operand decides how elements are compared, hence only attributes that are text for certain.
    fn demand(&self) -> Option<Clause<'_>> {
        let Node::Attribute(Attribute {
            name,
            is_text: true,
        }) = &self.operand
        else {
            return None;
        };
        self.set
            .iter()
            .map(|element| match element {
                Node::Text(value) => Some(Clause::of(Demand::Exact(name, value))),
                _ => None,
            })
            .reduce(|some, more| some?.or(more?))?
    }
}

impl Chain {
    fn demand(&self) -> Option<Clause<'_>> {
        let mut demand = self.last.demand();
        for (operand, logic) in self.before.iter().rev() {
            demand = match logic {
                Logic::And => Clause::stronger(operand.demand(), demand),
                Logic::Or => operand.demand().and_then(|left| left.or(demand?)),
                Logic::Xor => None,
            };
        }
        demand
    }
}
