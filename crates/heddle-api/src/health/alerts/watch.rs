//! Which alerts fire, found out from numbers as they are looked at: the table evaluated here as a Prometheus evaluates it.
//!
//! An alert is pending from the first look at which its expression holds, fires when it has held for as long as the rule says, and
//! is resolved at the first look at which it does not. Each label set has an alert of its own. Times are those of a clock that
//! nobody can set.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::evaluate::evaluate;
pub use super::promql::ExpressionFault;
use super::promql::{self, PromExpression};
use super::series::{self, Labels, SeriesStore};
use super::{ALERTS, Alert};
use crate::span;

/// Alerts of one rule that are told apart. With more, those whose labels come last are not.
const ACTIVE_MAX: usize = 1_000;

/// The table with what was seen so far.
#[derive(Clone, Debug)]
pub struct AlertWatch {
    rules: Vec<AlertRule>,
    series: SeriesStore,
}

#[derive(Clone, Debug)]
struct AlertRule {
    alert: &'static Alert,
    expression: PromExpression,
    hold: Duration,
    active: BTreeMap<Labels, ActiveAlert>,
}

#[derive(Clone, Copy, Debug)]
struct ActiveAlert {
    since: Duration,
    value: f64,
    fires: bool,
}

/// An alert whose expression holds.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldAlert {
    pub alert: &'static Alert,
    pub labels: Labels,
    /// Of the last look.
    pub value: f64,
    /// Since the first look at which it held.
    pub since: Duration,
    /// Whether it has held for as long as the rule says.
    pub fires: bool,
}

impl AlertWatch {
    /// # Errors
    /// A rule of the table that is not understood here, which tests rule out.
    pub fn new() -> Result<Self, ExpressionFault> {
        let mut rules = Vec::new();
        for alert in ALERTS {
            rules.push(AlertRule {
                alert,
                expression: promql::parse(alert.expression)?,
                hold: promql::duration(alert.hold).unwrap_or_default(),
                active: BTreeMap::new(),
            });
        }
        let selectors = rules.iter().flat_map(|rule| rule.expression.selectors());
        let wanted = selectors.map(|(selector, range)| (selector.clone(), range));
        let series = SeriesStore::new(wanted.collect());
        Ok(Self { rules, series })
    }

    /// Looks at all numbers, in the text that Prometheus reads, and at every rule.
    pub fn look(&mut self, now: Duration, exposition: &str) {
        self.series.look(now, series::samples(exposition));
        for rule in &mut self.rules {
            let found = evaluate(&rule.expression, &self.series, now).elements();
            rule.take(found, now);
        }
    }

    /// Alerts whose expressions hold, in the order of the table and of their labels.
    pub fn held(&self) -> impl Iterator<Item = HeldAlert> + '_ {
        self.rules.iter().flat_map(|rule| {
            rule.active.iter().map(|(labels, active)| HeldAlert {
                alert: rule.alert,
                labels: labels.clone(),
                value: active.value,
                since: active.since,
                fires: active.fires,
            })
        })
    }

    /// Series that were not looked at, since there are so many.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.series.left_out
    }
}

impl AlertRule {
    fn take(&mut self, mut found: Vec<(Labels, f64)>, now: Duration) {
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.truncate(ACTIVE_MAX);
        let before = std::mem::take(&mut self.active);
        for (labels, value) in found {
            let since = before.get(&labels).map_or(now, |known| known.since);
            let fires = now.saturating_sub(since) >= self.hold;
            let active = ActiveAlert {
                since,
                value,
                fires,
            };
            self.active.insert(labels, active);
        }
    }
}

impl HeldAlert {
    /// What is said, with its labels and its value.
    #[must_use]
    pub fn summary(&self) -> String {
        self.filled(self.alert.summary, str::to_owned)
    }

    /// Where to look first, below `/ui/`.
    #[must_use]
    pub fn page(&self) -> String {
        self.filled(self.alert.page, |text| {
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
            let part = |byte: u8| match is_plain(&byte) {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            };
            text.bytes().map(part).collect()
        })
    }

    /// A text of the table with what its placeholders stand for.
    fn filled(&self, text: &str, written: impl Fn(&str) -> String) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once("{{ $") {
            let (name, after) = behind.split_once("}}").unwrap_or((behind, ""));
            out.push_str(before);
            out.push_str(&written(&self.placeholder(name.trim())));
            rest = after;
        }
        out + rest
    }

    fn placeholder(&self, name: &str) -> String {
        match name.split_once(" | ") {
            Some((_, "humanizePercentage")) => {
                format!("{:.4}", self.value * 100.0)
                    .trim_end_matches('0')
                    .trim_end_matches('.')
                    .to_owned()
                    + "%"
            }
            Some((_, "humanizeDuration")) => {
                span(Duration::try_from_secs_f64(self.value).unwrap_or_default())
            }
            _ => match name.strip_prefix("labels.") {
                Some(label) => self.labels.get(label).cloned().unwrap_or_default(),
                None => self.value.to_string(),
            },
        }
    }
}
