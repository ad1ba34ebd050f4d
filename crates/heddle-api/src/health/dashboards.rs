//! What people look at: one table of panels, from which the dashboards for Grafana are made.
//!
//! Every query asks for what one job tells, so that several heddles can be watched with one Prometheus; `$app` and `$ns` narrow it
//! down where the numbers know them. A query finds nothing where there is nothing to see, rather than a line of zeroes or of
//! numbers that are none. What makes each of them find something is tried with a real Prometheus (`xtask dashboards`).

mod grafana;
mod table;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use table::DASHBOARDS;

/// Several panels about one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dashboard {
    /// Names its file and its address.
    pub slug: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    pub panels: &'static [Panel],
}

/// One picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    pub title: &'static str,
    pub about: &'static str,
    pub unit: PanelUnit,
    pub queries: &'static [PanelQuery],
}

/// What is asked of Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelQuery {
    /// What a line is called, with the labels of its series in double braces.
    pub legend: &'static str,
    /// With the variables of Grafana.
    pub expression: &'static str,
}

/// What the numbers of a panel are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelUnit {
    /// So many in a second.
    Rate,
    Count,
    Seconds,
    Bytes,
    /// Part of a whole, up to 1.
    Share,
    /// 3 healthy, 2 degraded, 1 unknown, 0 unhealthy.
    Health,
}

impl Dashboard {
    /// The file that holds it.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("heddle-{}.json", self.slug)
    }

    /// As Grafana imports it.
    #[must_use]
    pub fn grafana(&self) -> Value {
        grafana::dashboard(self)
    }
}
