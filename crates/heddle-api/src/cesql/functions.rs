//! The functions of the language. Positions and lengths count characters, not bytes.

use std::borrow::Cow;

use super::BUILT_BYTES_MAX;
use super::evaluate::{Failure, Fault, Operand, Outcome, evaluate};
use super::tree::{Node, Type};
use crate::attributes::Attributes;

/// A function, found by its name and the number of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Length,
    Concat,
    ConcatWs,
    Lower,
    Upper,
    Trim,
    Left,
    Right,
    Substring,
    Abs,
    Int,
    Bool,
    String,
    /// There is none of this name, or it takes another number of arguments.
    Missing(Box<str>),
}

impl Function {
    pub(super) fn find(name: &str, arguments: usize) -> Self {
        match (name.to_ascii_uppercase().as_str(), arguments) {
            ("LENGTH", 1) => Self::Length,
            ("CONCAT", _) => Self::Concat,
            ("CONCAT_WS", 1..) => Self::ConcatWs,
            ("LOWER", 1) => Self::Lower,
            ("UPPER", 1) => Self::Upper,
            ("TRIM", 1) => Self::Trim,
            ("LEFT", 2) => Self::Left,
            ("RIGHT", 2) => Self::Right,
            ("SUBSTRING", 2 | 3) => Self::Substring,
            ("ABS", 1) => Self::Abs,
            ("INT", 1) => Self::Int,
            ("BOOL", 1) => Self::Bool,
            ("STRING", 1) => Self::String,
            (name, _) => Self::Missing(name.into()),
        }
    }

    pub(super) const fn result_type(&self) -> Type {
        match self {
            Self::Length | Self::Abs | Self::Int => Type::Integer,
            Self::Bool | Self::Missing(_) => Type::Boolean,
            Self::Concat
            | Self::ConcatWs
            | Self::Lower
            | Self::Upper
            | Self::Trim
            | Self::Left
            | Self::Right
            | Self::Substring
            | Self::String => Type::Text,
        }
    }
}

pub(super) fn call<'a>(
    function: &'a Function,
    arguments: &'a [Node],
    event: &'a dyn Attributes,
) -> Outcome<'a> {
    let arguments = Arguments {
        nodes: arguments,
        event,
        type_: function.result_type(),
    };
    match function {
        Function::Length => Ok(Operand::Integer(integer(
            arguments.text(0)?.chars().count(),
        ))),
        Function::Concat => concat(&arguments, "", 0),
        Function::ConcatWs => concat(&arguments, &arguments.text(0)?, 1),
        Function::Lower => bounded(arguments.text(0)?.to_lowercase()),
        Function::Upper => bounded(arguments.text(0)?.to_uppercase()),
        Function::Trim => Ok(cut(arguments.text(0)?, |text| text.trim())),
        Function::Left => edge(&arguments, |text, count| &text[..byte_at(text, count)]),
        Function::Right => edge(&arguments, |text, count| {
            &text[byte_at(text, text.chars().count().saturating_sub(count))..]
        }),
        Function::Substring => substring(&arguments),
        Function::Abs => {
            let operand = arguments.integer(0)?;
            operand.checked_abs().map(Operand::Integer).ok_or(Failure {
                value: Operand::Integer(i32::MAX),
                fault: Fault::Math("the lowest integer has no absolute value"),
            })
        }
        Function::Int => arguments.integer(0).map(Operand::Integer),
        Function::Bool => arguments.value(0)?.into_boolean().map(Operand::Boolean),
        Function::String => arguments.text(0).map(Operand::Text),
        Function::Missing(name) => {
            Err(Fault::MissingFunction(name, arguments.nodes.len()).with(Type::Boolean))
        }
    }
}

/// Arguments, evaluated when they are asked for. Whatever fails gives the zero value of the function's type.
struct Arguments<'a> {
    nodes: &'a [Node],
    event: &'a dyn Attributes,
    type_: Type,
}

impl<'a> Arguments<'a> {
    fn value(&self, index: usize) -> Outcome<'a> {
        evaluate(&self.nodes[index], self.event).map_err(|failure| failure.with(self.type_))
    }

    fn text(&self, index: usize) -> Outcome<'a, Cow<'a, str>> {
        self.value(index)?.into_text()
    }

    fn integer(&self, index: usize) -> Outcome<'a, i32> {
        self.value(index)?
            .into_integer()
            .map_err(|failure| failure.with(self.type_))
    }
}

fn concat<'a>(arguments: &Arguments<'a>, delimiter: &str, from: usize) -> Outcome<'a> {
    let mut built = String::new();
    for index in from..arguments.nodes.len() {
        if index > from {
            built.push_str(delimiter);
        }
        built.push_str(&arguments.text(index)?);
        if built.len() > BUILT_BYTES_MAX {
            return Err(too_long());
        }
    }
    bounded(built)
}

fn bounded<'a>(built: String) -> Outcome<'a> {
    if built.len() > BUILT_BYTES_MAX {
        return Err(too_long());
    }
    Ok(Operand::Text(Cow::Owned(built)))
}

fn too_long<'a>() -> Failure<'a> {
    Fault::Function("a function built a text that is too long").with(Type::Text)
}

/// `LEFT` and `RIGHT`: so many characters from one end.
fn edge<'a>(arguments: &Arguments<'a>, take: fn(&str, usize) -> &str) -> Outcome<'a> {
    let (text, count) = (arguments.text(0)?, arguments.integer(1)?);
    match usize::try_from(count) {
        Ok(count) => Ok(cut(text, |text| take(text, count))),
        Err(_) => Err(Failure {
            value: Operand::Text(text),
            fault: Fault::Function("LEFT and RIGHT need a length that is not negative"),
        }),
    }
}

fn substring<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (text, position) = (arguments.text(0)?, arguments.integer(1)?);
    let length = match arguments.nodes.len() {
        2 => usize::MAX,
        _ => usize::try_from(arguments.integer(2)?).map_err(|_| {
            Fault::Function("SUBSTRING needs a length that is not negative").with(Type::Text)
        })?,
    };
    let count = text.chars().count();
    let distance = position.unsigned_abs() as usize;
    if distance > count {
        return Err(Fault::Function("SUBSTRING starts outside of the text").with(Type::Text));
    }
    let start = match position {
        0 => return Ok(Operand::zero(Type::Text)),
        1.. => distance - 1,
        _ => count - distance,
    };
    Ok(cut(text, |text| {
        let rest = &text[byte_at(text, start)..];
        &rest[..byte_at(rest, length)]
    }))
}

/// Where the character of this index starts; the end when there are fewer.
fn byte_at(text: &str, index: usize) -> usize {
    text.char_indices()
        .nth(index)
        .map_or(text.len(), |(at, _)| at)
}

/// A part of a text, without a copy where the text is borrowed.
fn cut<'a>(text: Cow<'a, str>, part: impl FnOnce(&str) -> &str) -> Operand<'a> {
    Operand::Text(match text {
        Cow::Borrowed(text) => Cow::Borrowed(part(text)),
        Cow::Owned(text) => Cow::Owned(part(&text).to_owned()),
    })
}

fn integer(count: usize) -> i32 {
    i32::try_from(count).expect("texts are bounded far below two gigabytes")
}
