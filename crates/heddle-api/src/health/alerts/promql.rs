//! The part of Prometheus' language in which the table of alerts is written, read once.
//!
//! ```text
//!   a or b   <   a and b   <   a > 1   <   a - b   <   a / b   <   sum(rate(metric{label="text"}[5m]))
//! ```
//! What is not understood is refused: a rule must not be quietly another one here than it is in Prometheus. Regular expressions
//! are alternatives of plain text, with `[.]` for a dot, and nothing else.

use std::time::Duration;

/// How deep parentheses and functions may be in each other.
const DEPTH_MAX: u32 = 16;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum PromExpression {
    Number(f64),
    Instant(SeriesSelector),
    /// Per second, of a counter.
    Rate(SeriesSelector, Duration),
    /// Between the ends of a time, of a number that goes up and down.
    Delta(SeriesSelector, Duration),
    Sum(Box<Self>),
    Absent(SeriesSelector),
    Binary(Box<Self>, PromOperator, Box<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromOperator {
    Or,
    And,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    Subtract,
    Divide,
}

/// Which series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeriesSelector {
    pub(super) metric: String,
    pub(super) labels: Vec<LabelMatcher>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelMatcher {
    pub(super) label: String,
    pub(super) negated: bool,
    /// One of these texts.
    pub(super) texts: Vec<String>,
}

/// A text that is no expression, or one that is not understood here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {text:?} at {rest:?}")]
pub struct ExpressionFault {
    text: String,
    rest: String,
}

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<PromExpression, ExpressionFault> {
    let mut reader = Reader { rest: text };
    let read = reader.expression(0, 0);
    reader.space();
    match read {
        Some(expression) if reader.rest.is_empty() => Ok(expression),
        _ => Err(ExpressionFault {
            text: text.to_owned(),
            rest: reader.rest.to_owned(),
        }),
    }
}

/// A time as rules have it: `5m`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

impl SeriesSelector {
    /// Whether a series is one of those. A label that it does not have is empty.
    pub(super) fn matches(&self, metric: &str, labels: &super::series::Labels) -> bool {
        let holds = |matcher: &LabelMatcher| {
            let found = labels.get(&matcher.label).map_or("", String::as_str);
            matcher.texts.iter().any(|text| text == found) != matcher.negated
        };
        self.metric == metric && self.labels.iter().all(holds)
    }
}

impl PromExpression {
    /// Every series that it asks for, and how far back.
    pub(super) fn selectors(&self) -> Vec<(&SeriesSelector, Duration)> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Instant(selector) | Self::Absent(selector) => vec![(selector, Duration::ZERO)],
            Self::Rate(selector, range) | Self::Delta(selector, range) => vec![(selector, *range)],
            Self::Sum(inner) => inner.selectors(),
            Self::Binary(left, _, right) => {
                let (mut all, right) = (left.selectors(), right.selectors());
                all.extend(right);
                all
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

/// Operators, the longer before what they begin with, and how tightly they bind.
const OPERATORS: [(&str, PromOperator, u8); 8] = [
    ("or ", PromOperator::Or, 1),
    ("and ", PromOperator::And, 2),
    ("==", PromOperator::Equal, 3),
    (">=", PromOperator::GreaterOrEqual, 3),
    (">", PromOperator::Greater, 3),
    ("<", PromOperator::Less, 3),
    ("-", PromOperator::Subtract, 4),
    ("/", PromOperator::Divide, 5),
];

impl<'a> Reader<'a> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: &str) -> Option<()> {
        self.space();
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn word(&mut self) -> Option<&'a str> {
        self.space();
        let end = self
            .rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Everything that binds tighter than this.
    fn expression(&mut self, tighter: u8, depth: u32) -> Option<PromExpression> {
        let mut left = self.operand(depth)?;
        loop {
            self.space();
            let known = OPERATORS
                .iter()
                .find(|(text, ..)| self.rest.starts_with(text));
            let Some((text, operator, strength)) =
                known.filter(|(.., strength)| *strength > tighter)
            else {
                return Some(left);
            };
            self.take(text)?;
            let right = self.expression(*strength, depth)?;
            left = PromExpression::Binary(Box::new(left), *operator, Box::new(right));
        }
    }

    fn operand(&mut self, depth: u32) -> Option<PromExpression> {
        self.space();
        if depth >= DEPTH_MAX {
            return None;
        }
        if self
            .rest
            .starts_with(|letter: char| letter.is_ascii_digit())
        {
            return self.number();
        }
        if self.take("(").is_some() {
            let inner = self.expression(0, depth + 1)?;
            self.take(")")?;
            return Some(inner);
        }
        let word = self.word()?;
        if !self.rest.starts_with('(') {
            return self.selector(word).map(PromExpression::Instant);
        }
        self.take("(")?;
        let called = match word {
            "sum" => PromExpression::Sum(Box::new(self.expression(0, depth + 1)?)),
            "rate" | "delta" => {
                let metric = self.word()?;
                let selector = self.selector(metric)?;
                let range = self.range()?;
                match word {
                    "rate" => PromExpression::Rate(selector, range),
                    _ => PromExpression::Delta(selector, range),
                }
            }
            "absent" => {
                let metric = self.word()?;
                PromExpression::Absent(self.selector(metric)?)
            }
            _ => return None,
        };
        self.take(")")?;
        Some(called)
    }

    fn number(&mut self) -> Option<PromExpression> {
        let end = self
            .rest
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        number.parse().ok().map(PromExpression::Number)
    }

    fn range(&mut self) -> Option<Duration> {
        self.take("[")?;
        let range = duration(self.word()?)?;
        self.take("]")?;
        Some(range)
    }

    fn selector(&mut self, metric: &str) -> Option<SeriesSelector> {
        let mut labels = Vec::new();
        if self.take("{").is_some() {
            while self.take("}").is_none() {
                labels.push(self.label()?);
                self.take(",");
            }
        }
        Some(SeriesSelector {
            metric: metric.to_owned(),
            labels,
        })
    }

    fn label(&mut self) -> Option<LabelMatcher> {
        let label = self.word()?.to_owned();
        let (negated, is_pattern) = match () {
            () if self.take("=~").is_some() => (false, true),
            () if self.take("!=").is_some() => (true, false),
            () => (false, self.take("=").is_none()),
        };
        self.take("\"")?;
        let (text, rest) = self.rest.split_once('"')?;
        self.rest = rest;
        let texts = match is_pattern {
            false => vec![text.to_owned()],
            true => text.split('|').map(plain).collect::<Option<_>>()?,
        };
        Some(LabelMatcher {
            label,
            negated,
            texts,
        })
    }
}

/// The one text that an alternative of a pattern stands for.
fn plain(pattern: &str) -> Option<String> {
    let text = pattern.replace("[.]", "\u{0}");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-\u{0}".contains(letter);
    text.chars()
        .all(is_plain)
        .then(|| text.replace('\u{0}', "."))
}
