//! CloudEvents SQL, version 1: expressions over the attributes of an event.
//!
//! ```text
//!   text ──lex──> tokens ──parse──> tree ──evaluate(attributes)──> value, and the error if there was one
//!                                     │
//!                                     └──demand──> what must hold of every event that passes (for an index)
//! ```
//! An expression is read once and evaluated for every event. Reading is bounded in length, depth and size; evaluating takes
//! time in proportion to the expression and the attributes it names, whatever the pattern of a `LIKE`, and allocates only
//! where a function builds a new text.
//!
//! Operators are total: each gives a value even when something went wrong. An operator with an operand that failed gives
//! the zero value of its own type and passes the first error on. As a filter, an expression lets an event pass only if it is
//! true without any error.
//!
//! Where the prose and the grammar of the language disagree (`AND`, `OR` and `XOR` share one precedence), this follows
//! the grammar, as the engines made from it do: `a AND b OR c` is `a AND (b OR c)`.

mod evaluate;
mod functions;
mod lex;
mod parse;
mod pattern;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;

use crate::attributes::Attributes;
use crate::filter::demand::Clause;
use tree::{Node, Type};

/// The longest expression, in bytes: far more than people write, little enough to read in well under a millisecond.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;
/// How deep an expression may nest. Reading, evaluating and dropping recurse, and a stack is finite.
pub const DEPTH_MAX: usize = 64;
/// How many literals, attributes, operators and calls an expression may have.
pub const NODES_MAX: usize = 4096;
/// The longest pattern of a `LIKE`.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// The longest text that a function may build while an event waits.
pub const BUILT_BYTES_MAX: usize = 64 * 1024;

/// An expression that has been read.
#[derive(Clone, Debug)]
pub struct Expression {
    text: Box<str>,
    root: Node,
}

/// A text that is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}, at byte {position}")]
pub struct ParseError {
    /// Where reading stopped, in bytes from the start.
    pub position: usize,
    pub message: String,
}

/// An expression that can never decide about an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAFilter {
    #[error("the expression gives {0}, and a filter needs a boolean")]
    NotBoolean(&'static str),
    #[error("there is no function {name} that takes {}", crate::counted(.arguments.to_owned(), "argument"))]
    MissingFunction { name: String, arguments: usize },
}

/// What came out of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    pub value: Value,
    /// The first thing that went wrong.
    pub error: Option<Error>,
}

/// A value of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Integer(i32),
    Boolean(bool),
}

/// What went wrong while an expression was evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
}

/// The kinds of errors that the language defines; a text that does not parse is a [`ParseError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    Math,
    Cast,
    MissingAttribute,
    MissingFunction,
    FunctionEvaluation,
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self {
            root: parse::parse(text)?,
            text: text.into(),
        })
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the expression can decide about events at all, as far as can be said without one.
    pub fn check_filter(&self) -> Result<(), NotAFilter> {
        if let Some((name, arguments)) = self.root.missing_function() {
            return Err(NotAFilter::MissingFunction {
                name: name.to_owned(),
                arguments,
            });
        }
        match self.root.result_type() {
            None | Some(Type::Boolean) => Ok(()),
            Some(other) => Err(NotAFilter::NotBoolean(other.in_words())),
        }
    }

    /// The value of the expression for one event.
    #[must_use]
    pub fn evaluate(&self, event: &dyn Attributes) -> Evaluation {
        match evaluate::evaluate(&self.root, event) {
            Ok(value) => Evaluation {
                value: value.into_value(),
                error: None,
            },
            Err(failure) => Evaluation {
                error: Some(failure.fault.to_error()),
                value: failure.value.into_value(),
            },
        }
    }

    /// Whether an event passes, without a word about why not. Does not allocate for missing attributes and failed casts.
    #[must_use]
    pub fn passes(&self, event: &dyn Attributes) -> bool {
        matches!(
            evaluate::evaluate(&self.root, event),
            Ok(evaluate::Operand::Boolean(true))
        )
    }

    /// Whether an event passes. An error and a value that is no boolean are the reason why it does not.
    pub fn matches(&self, event: &dyn Attributes) -> Result<bool, String> {
        match evaluate::evaluate(&self.root, event) {
            Ok(evaluate::Operand::Boolean(passes)) => Ok(passes),
            Ok(other) => Err(format!("gives {}, not a boolean", other.type_().in_words())),
            Err(failure) => Err(failure.fault.to_error().message),
        }
    }

    /// What it costs for each event, in the units of [`filter::cost`](crate::filter::cost).
    #[must_use]
    pub fn cost(&self) -> u32 {
        self.root.cost()
    }

    /// What holds of every event that passes, if anything simple does.
    #[must_use]
    pub fn demand(&self) -> Option<Clause<'_>> {
        self.root.demand()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
