//! What an expression of the table comes to, as Prometheus works it out.

use std::time::Duration;

use super::promql::{PromExpression, PromOperator, SeriesSelector};
use super::series::{Labels, SeriesStore};

/// A number, or one for each of several label sets.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Scalar(f64),
    Vector(Vec<(Labels, f64)>),
}

impl Value {
    /// What a rule fires for.
    pub(super) fn elements(self) -> Vec<(Labels, f64)> {
        match self {
            Self::Scalar(_) => Vec::new(),
            Self::Vector(elements) => elements,
        }
    }
}

/// What it is now.
pub(super) fn evaluate(expression: &PromExpression, series: &SeriesStore, now: Duration) -> Value {
    match expression {
        PromExpression::Number(number) => Value::Scalar(*number),
        PromExpression::Instant(selector) => Value::Vector(series.instant(selector, now)),
        PromExpression::Rate(selector, range) => {
            Value::Vector(changes(series, selector, *range, now, true))
        }
        PromExpression::Delta(selector, range) => {
            Value::Vector(changes(series, selector, *range, now, false))
        }
        PromExpression::Sum(inner) => {
            let elements = evaluate(inner, series, now).elements();
            let sum = elements.iter().map(|(_, value)| value).sum();
            Value::Vector(match elements.is_empty() {
                true => Vec::new(),
                false => vec![(Labels::new(), sum)],
            })
        }
        PromExpression::Absent(selector) => {
            let missing = series.instant(selector, now).is_empty();
            Value::Vector(match missing {
                true => vec![(labels_of(selector), 1.0)],
                false => Vec::new(),
            })
        }
        PromExpression::Binary(left, operator, right) => {
            let (left, right) = (evaluate(left, series, now), evaluate(right, series, now));
            combined(left, *operator, right)
        }
    }
}

/// Those that the selector says for certain.
fn labels_of(selector: &SeriesSelector) -> Labels {
    let certain = selector
        .labels
        .iter()
        .filter(|matcher| !matcher.negated && matcher.texts.len() == 1);
    certain
        .map(|matcher| (matcher.label.clone(), matcher.texts[0].clone()))
        .collect()
}

fn combined(left: Value, operator: PromOperator, right: Value) -> Value {
    let (left, right) = match (left, right) {
        (Value::Scalar(one), Value::Scalar(other)) => {
            return Value::Scalar(computed(one, operator, other).unwrap_or(f64::NAN));
        }
        (Value::Vector(one), Value::Scalar(other)) => {
            let all = one.into_iter();
            let kept =
                all.filter_map(|(labels, value)| Some((labels, computed(value, operator, other)?)));
            return Value::Vector(kept.collect());
        }
        (Value::Scalar(one), Value::Vector(other)) => {
            let all = other.into_iter();
            let kept =
                all.filter_map(|(labels, value)| Some((labels, computed(one, operator, value)?)));
            return Value::Vector(kept.collect());
        }
        (Value::Vector(left), Value::Vector(right)) => (left, right),
    };
    let same = |labels: &Labels| right.iter().find(|(other, _)| other == labels);
    Value::Vector(match operator {
        PromOperator::And => {
            let kept = left
                .into_iter()
                .filter(|(labels, _)| same(labels).is_some());
            kept.collect()
        }
        PromOperator::Or => {
            let more = right
                .iter()
                .filter(|(labels, _)| !left.iter().any(|(known, _)| known == labels));
            let more: Vec<(Labels, f64)> = more.cloned().collect();
            left.into_iter().chain(more).collect()
        }
        _ => {
            let pairs = left.into_iter();
            let pairs = pairs.filter_map(|(labels, value)| {
                let (_, other) = same(&labels)?;
                let value = computed(value, operator, *other)?;
                Some((labels, value))
            });
            pairs.collect()
        }
    })
}

/// What two numbers come to; a comparison that does not hold leaves nothing.
fn computed(one: f64, operator: PromOperator, other: f64) -> Option<f64> {
    let holds = match operator {
        PromOperator::Subtract => return Some(one - other),
        PromOperator::Divide => return Some(one / other),
        #[expect(clippy::float_cmp, reason = "the rule asks whether they are equal")]
        PromOperator::Equal => one == other,
        PromOperator::Greater => one > other,
        PromOperator::GreaterOrEqual => one >= other,
        PromOperator::Less => one < other,
        // Between sets of labels only.
        PromOperator::And | PromOperator::Or => return None,
    };
    holds.then_some(one)
}

/// How much each series changed in a time: per second, of a counter; in all, of any other number. What was seen is stretched
/// to the ends of the time where it reaches near to them, as Prometheus does and in the order in which it does, so that both come to
/// the same number to the last digit.
fn changes(
    series: &SeriesStore,
    selector: &SeriesSelector,
    range: Duration,
    now: Duration,
    is_counter: bool,
) -> Vec<(Labels, f64)> {
    let found = series.window(selector, range, now).into_iter();
    found
        .filter_map(|(labels, points)| {
            let changed = stretched(&points, range.as_secs_f64(), now.as_secs_f64(), is_counter)?;
            Some((labels.clone(), changed))
        })
        .collect()
}

fn stretched(points: &[(f64, f64)], range: f64, now: f64, is_counter: bool) -> Option<f64> {
    let ([(first_at, first), ..], [.., (last_at, last)]) = (points, points) else {
        return None;
    };
    if points.len() < 2 {
        return None;
    }
    let mut change = last - first;
    if is_counter {
        // A counter that is less than before began anew.
        for pair in points.windows(2).filter(|pair| pair[1].1 < pair[0].1) {
            change += pair[0].1;
        }
    }
    let seen = last_at - first_at;
    let apart = seen / (points.len() - 1) as f64;
    let near = apart * 1.1;
    let mut before = first_at - (now - range);
    if is_counter && change > 0.0 && *first >= 0.0 {
        // No counter was below nothing.
        before = before.min(seen * (first / change));
    }
    let mut whole = seen;
    for gap in [before, now - last_at] {
        whole += if gap < near { gap } else { apart / 2.0 };
    }
    let mut factor = whole / seen;
    if is_counter {
        factor /= range;
    }
    Some(change * factor)
}
