//! Selectors: which objects a list, a watch or a deletecollection is about.
//!
//! Label selectors follow the grammar of the Kubernetes API (`a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`,
//! `a>1`, `a<1`) and field selectors theirs (`path=value`, `==`, `!=`, with `\\`, `\,` and `\=` as escapes). Both are parsed once
//! and then asked per object. Errors carry the text a real server puts into its 400 answer.
//!
//! Which field paths a resource supports is the registry's business; here a path is only a string.

mod names;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub(crate) use names::{label_key_problems, label_value_problems, subdomain_problems};

/// A selector that cannot be understood; the text belongs into a 400 answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Invalid(pub String);

/// A conjunction of requirements on labels; the empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: LabelTest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelTest {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Reads the text of a `labelSelector` query parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let mut parser = Parser {
            tokens: lex(text),
            position: 0,
        };
        let mut requirements = Vec::new();
        loop {
            match parser.peek() {
                Token::Identifier(_) | Token::Not => {
                    let requirement = parser.requirement().map_err(|Invalid(cause)| {
                        Invalid(format!("unable to parse requirement: {cause}"))
                    })?;
                    requirements.push(requirement);
                    match parser.next() {
                        Token::End => return Ok(Self { requirements }),
                        Token::Comma => match parser.peek() {
                            Token::Identifier(_) | Token::Not => {}
                            other => {
                                return Err(Invalid(format!(
                                    "found '{other}', expected: identifier after ','"
                                )));
                            }
                        },
                        other => {
                            return Err(Invalid(format!(
                                "found '{other}', expected: ',' or 'end of string'"
                            )));
                        }
                    }
                }
                Token::End => return Ok(Self { requirements }),
                other => {
                    return Err(Invalid(format!(
                        "found '{other}', expected: !, identifier, or 'end of string'"
                    )));
                }
            }
        }
    }

    /// Whether every object matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object whose labels are answered by `lookup` matches.
    pub(crate) fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let label = lookup(&requirement.key);
            match (&requirement.test, label) {
                (LabelTest::Exists, label) => label.is_some(),
                (LabelTest::Absent, label) => label.is_none(),
                (LabelTest::In(values), Some(label)) => values.iter().any(|value| value == label),
                (LabelTest::NotIn(values), Some(label)) => {
                    values.iter().all(|value| value != label)
                }
                (LabelTest::NotIn(_), None) => true,
                (LabelTest::Greater(bound), Some(label)) => {
                    label.parse::<i64>().is_ok_and(|number| number > *bound)
                }
                (LabelTest::Less(bound), Some(label)) => {
                    label.parse::<i64>().is_ok_and(|number| number < *bound)
                }
                (LabelTest::In(_) | LabelTest::Greater(_) | LabelTest::Less(_), None) => false,
            }
        })
    }
}

/// One comparison of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldTerm {
    pub path: String,
    pub op: FieldOp,
    pub value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldOp {
    Equal,
    NotEqual,
}

/// A conjunction of comparisons on fields; the empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<FieldTerm>,
}

impl FieldSelector {
    /// Reads the text of a `fieldSelector` query parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let mut terms = Vec::new();
        for term in split_unescaped_commas(text)
            .into_iter()
            .filter(|term| !term.is_empty())
        {
            let (path, op, value) = split_term(term).ok_or_else(|| {
                Invalid(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                ))
            })?;
            terms.push(FieldTerm {
                path: path.to_owned(),
                op,
                value: unescape(value)?,
            });
        }
        Ok(Self { terms })
    }

    pub(crate) fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether an object whose fields are answered by `lookup` matches. An absent field compares as the empty string.
    pub(crate) fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.terms.iter().all(|term| {
            let equal = lookup(&term.path).unwrap_or(Cow::Borrowed("")) == term.value;
            equal == (term.op == FieldOp::Equal)
        })
    }
}

fn split_unescaped_commas(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator: the path cannot be escaped, so the first one decides.
fn split_term(term: &str) -> Option<(&str, FieldOp, &str)> {
    let index = term.char_indices().find(|(index, _)| {
        let rest = &term[*index..];
        rest.starts_with("!=") || rest.starts_with('=')
    })?;
    let (path, rest) = term.split_at(index.0);
    let (op, value) = match (rest.strip_prefix("!="), rest.strip_prefix("==")) {
        (Some(value), _) => (FieldOp::NotEqual, value),
        (None, Some(value)) => (FieldOp::Equal, value),
        (None, None) => (FieldOp::Equal, &rest[1..]),
    };
    Some((path, op, value))
}

fn unescape(value: &str) -> Result<String, Invalid> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence = other.map(String::from).unwrap_or_default();
                    return Err(Invalid(format!(
                        "invalid field selector: invalid escape sequence: \\{sequence}"
                    )));
                }
            },
            // The real server prints the rune as a number here; so do we.
            ',' | '=' => {
                let code = u32::from(character);
                return Err(Invalid(format!(
                    "invalid field selector: unescaped character in value: {code}"
                )));
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Identifier(String),
    Not,
    Equal,
    DoubleEqual,
    NotEqual,
    Greater,
    Less,
    Open,
    Close,
    Comma,
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Identifier(text) => text,
            Self::Not => "!",
            Self::Equal => "=",
            Self::DoubleEqual => "==",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::End => "",
        })
    }
}

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(is_blank);
        let Some(first) = rest.chars().next() else {
            tokens.push(Token::End);
            return tokens;
        };
        let (token, length) = if is_symbol(first) {
            symbol(rest)
        } else {
            let length = rest
                .find(|c| is_symbol(c) || is_blank(c))
                .unwrap_or(rest.len());
            (Token::Identifier(rest[..length].to_owned()), length)
        };
        tokens.push(token);
        rest = &rest[length..];
    }
}

/// The longest operator at the start of `rest`, which starts with a symbol. Every symbol alone is an operator.
fn symbol(rest: &str) -> (Token, usize) {
    let mut characters = rest.chars();
    match (characters.next(), characters.next()) {
        (Some('='), Some('=')) => (Token::DoubleEqual, 2),
        (Some('!'), Some('=')) => (Token::NotEqual, 2),
        (Some('='), _) => (Token::Equal, 1),
        (Some('!'), _) => (Token::Not, 1),
        (Some('>'), _) => (Token::Greater, 1),
        (Some('<'), _) => (Token::Less, 1),
        (Some('('), _) => (Token::Open, 1),
        (Some(')'), _) => (Token::Close, 1),
        _ => (Token::Comma, 1),
    }
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.position).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, Invalid> {
        let mut token = self.next();
        let negated = token == Token::Not;
        if negated {
            token = self.next();
        }
        let Token::Identifier(key) = token else {
            return Err(Invalid(format!("found '{token}', expected: identifier")));
        };
        let problems = label_key_problems(&key);
        if !problems.is_empty() {
            return Err(Invalid(format!(
                "<nil>: Invalid value: {key:?}: {}",
                problems.join("; ")
            )));
        }
        // In `!a`, what follows is never read as an operator: `!a=b` ends in "expected: ',' or 'end of string'".
        match self.peek() {
            _ if negated => Ok(Requirement {
                key,
                test: LabelTest::Absent,
            }),
            Token::End | Token::Comma => Ok(Requirement {
                key,
                test: LabelTest::Exists,
            }),
            _ => self.comparison(key),
        }
    }

    fn comparison(&mut self, key: String) -> Result<Requirement, Invalid> {
        let operator = self.next();
        let (values, build): (_, fn(Vec<String>) -> LabelTest) = match &operator {
            Token::Identifier(word) if word == "in" => (self.value_set()?, LabelTest::In),
            Token::Identifier(word) if word == "notin" => (self.value_set()?, LabelTest::NotIn),
            Token::Equal | Token::DoubleEqual => (self.exact_value()?, LabelTest::In),
            Token::NotEqual => (self.exact_value()?, LabelTest::NotIn),
            Token::Greater | Token::Less => return self.bound(key, &operator),
            other => {
                return Err(Invalid(format!(
                    "found '{other}', expected: in, notin, =, ==, !=, gt, lt"
                )));
            }
        };
        let problems = value_problems(&key, &values);
        match problems.is_empty() {
            true => Ok(Requirement {
                key,
                test: build(values),
            }),
            false => Err(aggregate(problems)),
        }
    }

    fn bound(&mut self, key: String, operator: &Token) -> Result<Requirement, Invalid> {
        let values = self.exact_value()?;
        let text = values.first().map(String::as_str).unwrap_or_default();
        match text.parse::<i64>() {
            Ok(bound) if *operator == Token::Greater => Ok(Requirement {
                key,
                test: LabelTest::Greater(bound),
            }),
            Ok(bound) => Ok(Requirement {
                key,
                test: LabelTest::Less(bound),
            }),
            Err(_) => {
                let mut problems = vec![format!(
                    "values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                )];
                problems.extend(value_problems(&key, &values));
                Err(aggregate(problems))
            }
        }
    }

    /// `(a, b)`; empty places stand for the empty string, so `()` and `(,)` hold just that.
    fn value_set(&mut self) -> Result<Vec<String>, Invalid> {
        let open = self.next();
        if open != Token::Open {
            return Err(Invalid(format!("found '{open}' expected: '('")));
        }
        if *self.peek() == Token::Close {
            self.next();
            return Ok(vec![String::new()]);
        }
        if !matches!(self.peek(), Token::Identifier(_) | Token::Comma) {
            return Err(Invalid(format!(
                "found '{}', expected: ',', ')' or identifier",
                self.peek()
            )));
        }
        let mut values = std::collections::BTreeSet::new();
        loop {
            match self.next() {
                Token::Identifier(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Comma => {}
                        Token::Close => break,
                        other => {
                            return Err(Invalid(format!("found '{other}', expected: ',' or ')'")));
                        }
                    }
                }
                Token::Comma => {
                    let ends = *self.peek() == Token::Close;
                    if values.is_empty() || ends || *self.peek() == Token::Comma {
                        values.insert(String::new());
                    }
                    if ends {
                        break;
                    }
                }
                other => {
                    return Err(Invalid(format!(
                        "found '{other}', expected: ',', or identifier"
                    )));
                }
            }
        }
        self.next();
        Ok(values.into_iter().collect())
    }

    fn exact_value(&mut self) -> Result<Vec<String>, Invalid> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(vec![String::new()]);
        }
        match self.next() {
            Token::Identifier(value) => Ok(vec![value]),
            other => Err(Invalid(format!("found '{other}', expected: identifier"))),
        }
    }
}

fn value_problems(key: &str, values: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let wrong = label_value_problems(value);
        if !wrong.is_empty() {
            problems.push(format!(
                "values[{index}][{key}]: Invalid value: {value:?}: {}",
                wrong.join("; ")
            ));
        }
    }
    problems
}

/// One problem speaks for itself, several are bracketed.
fn aggregate(problems: Vec<String>) -> Invalid {
    match problems.len() {
        1 => Invalid(problems.concat()),
        _ => Invalid(format!("[{}]", problems.join(", "))),
    }
}
