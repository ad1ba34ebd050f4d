//! What health looks at: every kind of object and every component, how many there are and how well they are.
//! `GET /heddle/v1/health/inventory`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HealthCounts, HealthPlane, HealthStatus};
use crate::schema::timestamp;

/// Everything that is looked at.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// When it was so.
    #[schemars(schema_with = "timestamp")]
    pub at: Timestamp,
    /// Kinds of objects, in the order of an event's way.
    pub objects: Vec<InventoryItem>,
    /// What does the work: hops, controllers, and what everything stands on.
    pub components: Vec<InventoryItem>,
}

/// One kind of object, or one component.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InventoryItem {
    /// Such as `Trigger`, `delivery` or `heddle-broker`.
    pub name: String,
    /// The plane on which it counts.
    pub plane: HealthPlane,
    /// How many of them are how well; of a hop, the ways that synthetic events take through it.
    pub counts: HealthCounts,
    /// How well they are together; absent when there is none, or when nobody judges them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthStatus>,
    /// What it is judged by.
    pub judged_by: String,
    /// What is wrong with one that is not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl InventoryItem {
    /// With nothing counted yet.
    #[must_use]
    pub fn new(name: &str, plane: HealthPlane, judged_by: &str) -> Self {
        Self {
            name: name.to_owned(),
            plane,
            counts: HealthCounts::default(),
            health: None,
            judged_by: judged_by.to_owned(),
            reason: None,
        }
    }

    /// Counts one more, with what is wrong with it.
    pub fn add(&mut self, health: HealthStatus, reason: impl FnOnce() -> String) {
        self.counts.add(health);
        let worst = self.health.is_none_or(|known| health > known);
        if health != HealthStatus::Healthy && (worst || self.reason.is_none()) {
            self.reason = Some(reason());
        }
        let counts = &self.counts;
        let is_any_at_work = counts.healthy + counts.degraded > 0;
        // Some that are broken among others that work are no more than a reason to look.
        self.health = Some(match () {
            () if counts.of(health) == counts.all() => health,
            () if counts.unhealthy > 0 && !is_any_at_work => HealthStatus::Unhealthy,
            () if counts.unhealthy + counts.degraded > 0 => HealthStatus::Degraded,
            () => HealthStatus::Unknown,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::HealthStatus::{Degraded, Healthy, Unhealthy, Unknown};
    use super::*;

    #[test]
    fn together_they_are_broken_only_when_none_is_known_to_work() {
        for (all, together) in [
            (&[][..], None),
            (&[Healthy, Healthy], Some(Healthy)),
            (&[Healthy, Unhealthy], Some(Degraded)),
            (&[Unhealthy, Healthy], Some(Degraded)),
            (&[Unhealthy, Unknown], Some(Unhealthy)),
            (&[Unknown, Healthy], Some(Unknown)),
            (&[Degraded, Unknown, Healthy], Some(Degraded)),
        ] {
            let mut item = InventoryItem::new("Trigger", HealthPlane::User, "its conditions");
            for health in all {
                item.add(*health, || format!("{health:?}"));
            }
            assert_eq!(item.health, together, "{all:?}");
            let is_told = all.iter().any(|health| *health != Healthy);
            assert_eq!(item.reason.is_some(), is_told, "{all:?}");
        }
    }
}
