//! A smoke test: events are led from a new Application into a new namespace and back out, step by step.
//!
//! `POST /heddle/v1/smoke[?app=NAME]` answers with a line of JSON for each [`SmokeStep`] as it ends, and a [`SmokeReport`] as the
//! last line.

use serde::{Deserialize, Serialize};

/// How the names of all begin that smoke tests make, and the names of nobody else: lists leave them out.
pub const NAME_PREFIX: &str = "heddle-smoke-";

/// Whether an object is part of a smoke test.
#[must_use]
pub fn is_part(namespace: &str, name: &str) -> bool {
    name.starts_with(NAME_PREFIX) || namespace.starts_with(NAME_PREFIX)
}

/// One thing that was tried.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SmokeStep {
    /// What was tried, as a sentence.
    pub step: String,
    pub passed: bool,
    pub took_seconds: f64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What to do about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How a smoke test ended.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SmokeReport {
    pub passed: bool,
    /// The Application whose events were led.
    pub application: String,
    pub took_seconds: f64,
    pub steps: Vec<SmokeStep>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_smoke_test_makes_is_known_by_its_name_or_its_namespace() {
        assert!(is_part("", "heddle-smoke-x"));
        assert!(is_part("kyma-integration", "heddle-smoke-x-publisher"));
        assert!(is_part("heddle-smoke-x", "default"));
        assert!(!is_part("team-a", "shop"));
        assert!(!is_part("", "smoke"));
    }
}
