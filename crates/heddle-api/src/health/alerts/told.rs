//! Alerts as they are told: `GET /heddle/v1/alerts`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::watch::HeldAlert;
use crate::access::{Access, Right, Scope};

/// Alerts whose expressions hold.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AlertList {
    /// When the numbers were last looked at; never, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<Timestamp>,
    /// Those that fire first, the most urgent of them before the others.
    pub items: Vec<ToldAlert>,
    /// Series that were not looked at, since there are so many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Whether somebody should be told.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub enum AlertState {
    /// It has held for as long as the rule says.
    Firing,
    /// It holds, and not for so long yet.
    Pending,
}

impl AlertState {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Pending => "pending",
        }
    }
}

/// One alert.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ToldAlert {
    /// That of the rule: `HeddleBacklogAge`.
    pub name: String,
    pub state: AlertState,
    /// `critical` or `warning`.
    pub severity: String,
    /// Since its expression holds.
    pub since: Timestamp,
    /// What the expression came to; absent where that is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub summary: String,
    /// Reason codes that it may be about.
    pub codes: Vec<String>,
    /// Where to look first, below `/ui/`.
    pub page: String,
}

impl ToldAlert {
    /// `age` is for how long it has held.
    #[must_use]
    pub fn of(held: &HeldAlert, age: Duration, now: Timestamp) -> Self {
        Self {
            name: held.alert.name.to_owned(),
            state: match held.fires {
                true => AlertState::Firing,
                false => AlertState::Pending,
            },
            severity: held.alert.urgency.word().to_owned(),
            since: now.checked_sub(age).unwrap_or(now),
            value: Some(held.value).filter(|value| value.is_finite()),
            labels: held.labels.clone(),
            summary: held.summary(),
            codes: held
                .alert
                .codes
                .iter()
                .map(|code| (*code).to_owned())
                .collect(),
            page: held.page(),
        }
    }
}

impl AlertList {
    /// What somebody may know: what is about no namespace is for those who look everywhere.
    #[must_use]
    pub fn within(&self, access: &Access) -> Self {
        let everywhere = access.scope == Scope::All;
        let may = |alert: &&ToldAlert| match alert.labels.get("ns") {
            Some(namespace) => access.may(Right::Look, Some(namespace)),
            None => everywhere,
        };
        Self {
            looked_at: self.looked_at,
            items: self.items.iter().filter(may).cloned().collect(),
            left_out: if everywhere { self.left_out } else { 0 },
        }
    }
}
