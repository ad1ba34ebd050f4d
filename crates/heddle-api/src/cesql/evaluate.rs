//! A tree and an event to a value.
//!
//! Values borrow from the tree and from the event, and what went wrong is put into words only when somebody asks: most
//! events miss most filters, and missing should cost nothing.

use std::borrow::Cow;

use super::tree::{Arithmetic, Attribute, Chain, Comparison, In, Logic, Node, Type};
use super::{Error, ErrorKind, Value, functions};
use crate::attributes::{self, Attributes};

/// A value on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operand<'a> {
    Text(Cow<'a, str>),
    Integer(i32),
    Boolean(bool),
}

/// A value that is not to be trusted, and why.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    pub(super) value: Operand<'a>,
    pub(super) fault: Fault<'a>,
}

/// What went wrong.
#[derive(Debug)]
pub(super) enum Fault<'a> {
    MissingAttribute(&'a str),
    MissingFunction(&'a str, usize),
    Cast(Operand<'a>, Type),
    Math(&'static str),
    Function(&'static str),
}

pub(super) type Outcome<'a, T = Operand<'a>> = Result<T, Failure<'a>>;

pub(super) fn evaluate<'a>(node: &'a Node, event: &'a dyn Attributes) -> Outcome<'a> {
    match node {
        Node::Text(text) => Ok(Operand::Text(Cow::Borrowed(text))),
        Node::Integer(integer) => Ok(Operand::Integer(*integer)),
        Node::Attribute(attribute) => read(attribute, event),
        Node::Not(operand) => not(operand, event),
        Node::Negate(operand) => negate(operand, event),
        Node::Arithmetic(operator, operands) => arithmetic(*operator, operands, event)
            .map(Operand::Integer)
            .map_err(|failure| failure.with(Type::Integer)),
        Node::Call(function, arguments) => functions::call(function, arguments, event),
        Node::Boolean(_)
        | Node::Exists(_)
        | Node::Compare(..)
        | Node::Logic(_)
        | Node::Like(_)
        | Node::In(_) => truth(node, event).map(Operand::Boolean),
    }
}

/// The value as a boolean. Whatever fails below an operator that gives a boolean, the operator gives `false`.
fn truth<'a>(node: &'a Node, event: &'a dyn Attributes) -> Outcome<'a, bool> {
    match node {
        Node::Boolean(boolean) => Ok(*boolean),
        Node::Exists(name) => Ok(event.text(name).is_some()),
        Node::Compare(operator, operands) => compare(*operator, operands, event),
        Node::Logic(chain) => logic(chain, event),
        Node::Like(like) => {
            text(&like.operand, event).map(|text| like.pattern.matches(&text) != like.negated)
        }
        Node::In(in_) => is_in(in_, event).map(|found| found != in_.negated),
        other => evaluate(other, event).and_then(Operand::into_boolean),
    }
    .map_err(|failure| failure.with(Type::Boolean))
}

/// The value as text. An attribute has its text already, whatever its type.
fn text<'a>(node: &'a Node, event: &'a dyn Attributes) -> Outcome<'a, Cow<'a, str>> {
    match node {
        Node::Attribute(Attribute { name, .. }) => event
            .text(name)
            .map(Cow::Borrowed)
            .ok_or_else(|| Fault::MissingAttribute(name).with(Type::Text)),
        other => evaluate(other, event).and_then(Operand::into_text),
    }
}

fn read<'a>(attribute: &'a Attribute, event: &'a dyn Attributes) -> Outcome<'a> {
    let name = &*attribute.name;
    let value = if attribute.is_text {
        event.text(name).map(attributes::Value::Text)
    } else {
        event.attribute(name)
    };
    match value {
        Some(attributes::Value::Text(text)) => Ok(Operand::Text(Cow::Borrowed(text))),
        Some(attributes::Value::Integer(integer)) => Ok(Operand::Integer(integer)),
        Some(attributes::Value::Boolean(boolean)) => Ok(Operand::Boolean(boolean)),
        // Where no operator says what type is wanted, the language says boolean.
        None => Err(Fault::MissingAttribute(name).with(Type::Boolean)),
    }
}

/// The only operator that carries on with what a failed cast left behind, and the only one that does not take an integer
/// for a boolean: the compatibility kit of the language wants `NOT 10` to be true, with a cast error.
fn not<'a>(operand: &'a Node, event: &'a dyn Attributes) -> Outcome<'a> {
    let operand = evaluate(operand, event).map_err(|failure| failure.with(Type::Boolean))?;
    let cast = match operand {
        Operand::Integer(_) => Err(Fault::Cast(operand, Type::Boolean).with(Type::Boolean)),
        other => other.into_boolean(),
    };
    cast.map(|operand| Operand::Boolean(!operand))
        .map_err(|failure| Failure {
            value: Operand::Boolean(true),
            ..failure
        })
}

fn negate<'a>(operand: &'a Node, event: &'a dyn Attributes) -> Outcome<'a> {
    evaluate(operand, event)
        .and_then(Operand::into_integer)
        .and_then(|operand| checked(operand.checked_neg()))
        .map(Operand::Integer)
        .map_err(|failure| failure.with(Type::Integer))
}

fn arithmetic<'a>(
    operator: Arithmetic,
    operands: &'a [Node; 2],
    event: &'a dyn Attributes,
) -> Outcome<'a, i32> {
    // Both are evaluated before either is cast, so that a missing attribute is named rather than what it would have led to.
    let [left, right] = [
        evaluate(&operands[0], event)?,
        evaluate(&operands[1], event)?,
    ];
    let (left, right) = (left.into_integer()?, right.into_integer()?);
    match operator {
        Arithmetic::Add => checked(left.checked_add(right)),
        Arithmetic::Subtract => checked(left.checked_sub(right)),
        Arithmetic::Multiply => checked(left.checked_mul(right)),
        Arithmetic::Divide | Arithmetic::Remainder if right == 0 => {
            Err(Fault::Math("division by zero").with(Type::Integer))
        }
        Arithmetic::Divide => checked(left.checked_div(right)),
        // The one remainder that overflows on the way is zero.
        Arithmetic::Remainder => Ok(left.wrapping_rem(right)),
    }
}

fn checked<'a>(result: Option<i32>) -> Outcome<'a, i32> {
    result.ok_or_else(|| Fault::Math("the result does not fit into 32 bits").with(Type::Integer))
}

fn compare<'a>(
    operator: Comparison,
    operands: &'a [Node; 2],
    event: &'a dyn Attributes,
) -> Outcome<'a, bool> {
    let equality = matches!(operator, Comparison::Equal | Comparison::NotEqual);
    if let (true, [left, Node::Text(right)]) = (equality, operands) {
        // The one that nearly every filter has.
        let equal = *text(left, event)? == **right;
        return Ok(equal == (operator == Comparison::Equal));
    }
    let [left, right] = [
        evaluate(&operands[0], event)?,
        evaluate(&operands[1], event)?,
    ];
    match operator {
        Comparison::Equal => left.equals(&right),
        Comparison::NotEqual => left.equals(&right).map(|equal| !equal),
        ordered => {
            let (left, right) = (left.into_integer()?, right.into_integer()?);
            Ok(match ordered {
                Comparison::Less => left < right,
                Comparison::LessOrEqual => left <= right,
                Comparison::Greater => left > right,
                _ => left >= right,
            })
        }
    }
}

/// Walks the chain from the left and stops where the rest can change nothing.
fn logic<'a>(chain: &'a Chain, event: &'a dyn Attributes) -> Outcome<'a, bool> {
    // Whether an odd number of true operands of XOR was passed: what the rest gives is then turned around.
    let mut turned = false;
    for (operand, logic) in &chain.before {
        let operand = truth(operand, event)?;
        match logic {
            Logic::And if !operand => return Ok(turned),
            Logic::Or if operand => return Ok(!turned),
            Logic::And | Logic::Or => {}
            Logic::Xor => turned ^= operand,
        }
    }
    Ok(truth(&chain.last, event)? ^ turned)
}

/// Elements are looked at one after the other, up to the first that is equal.
fn is_in<'a>(in_: &'a In, event: &'a dyn Attributes) -> Outcome<'a, bool> {
    let operand = evaluate(&in_.operand, event)?;
    for element in &in_.set {
        // The type of the operand decides, so the two change sides.
        if evaluate(element, event)?.equals(&operand)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl<'a> Operand<'a> {
    pub(super) const fn type_(&self) -> Type {
        match self {
            Self::Text(_) => Type::Text,
            Self::Integer(_) => Type::Integer,
            Self::Boolean(_) => Type::Boolean,
        }
    }

    pub(super) const fn zero(type_: Type) -> Self {
        match type_ {
            Type::Text => Self::Text(Cow::Borrowed("")),
            Type::Integer => Self::Integer(0),
            Type::Boolean => Self::Boolean(false),
        }
    }

    /// Compares as values of the type of `right`.
    fn equals(self, right: &Self) -> Outcome<'a, bool> {
        Ok(match right {
            Self::Text(right) => self.into_text()? == *right,
            Self::Integer(right) => self.into_integer()? == *right,
            Self::Boolean(right) => self.into_boolean()? == *right,
        })
    }

    pub(super) fn into_text(self) -> Outcome<'a, Cow<'a, str>> {
        Ok(match self {
            Self::Text(text) => text,
            Self::Integer(integer) => Cow::Owned(integer.to_string()),
            Self::Boolean(true) => Cow::Borrowed("true"),
            Self::Boolean(false) => Cow::Borrowed("false"),
        })
    }

    pub(super) fn into_integer(self) -> Outcome<'a, i32> {
        match &self {
            Self::Text(text) => text.parse().ok(),
            Self::Integer(integer) => Some(*integer),
            Self::Boolean(boolean) => Some(i32::from(*boolean)),
        }
        .ok_or_else(|| Fault::Cast(self, Type::Integer).with(Type::Integer))
    }

    pub(super) fn into_boolean(self) -> Outcome<'a, bool> {
        match &self {
            Self::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Self::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            Self::Text(_) => None,
            Self::Integer(integer) => Some(*integer != 0),
            Self::Boolean(boolean) => Some(*boolean),
        }
        .ok_or_else(|| Fault::Cast(self, Type::Boolean).with(Type::Boolean))
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::Text(text.into_owned()),
            Self::Integer(integer) => Value::Integer(integer),
            Self::Boolean(boolean) => Value::Boolean(boolean),
        }
    }
}

impl<'a> Failure<'a> {
    /// The same fault, seen from an operator that gives this type.
    pub(super) fn with(self, type_: Type) -> Self {
        self.fault.with(type_)
    }
}

impl<'a> Fault<'a> {
    /// The fault with the zero value of a type.
    pub(super) const fn with(self, type_: Type) -> Failure<'a> {
        Failure {
            value: Operand::zero(type_),
            fault: self,
        }
    }

    pub(super) fn to_error(&self) -> Error {
        let (kind, message) = match self {
            Self::MissingAttribute(name) => (
                ErrorKind::MissingAttribute,
                format!("the event has no attribute {name}"),
            ),
            Self::MissingFunction(name, arguments) => (
                ErrorKind::MissingFunction,
                format!(
                    "there is no function {name} that takes {}",
                    crate::counted(*arguments, "argument")
                ),
            ),
            Self::Cast(value, type_) => {
                let value = match value {
                    Operand::Text(text) => format!("{text:?}"),
                    Operand::Integer(integer) => integer.to_string(),
                    Operand::Boolean(boolean) => boolean.to_string(),
                };
                (
                    ErrorKind::Cast,
                    format!("{value} is not {}", type_.in_words()),
                )
            }
            Self::Math(message) => (ErrorKind::Math, (*message).to_owned()),
            Self::Function(message) => (ErrorKind::FunctionEvaluation, (*message).to_owned()),
        };
        Error { kind, message }
    }
}
