//! How far things have come: what flows say of themselves, and what platforms are still waiting for.
//!
//! Flows are counted by condition, not named: there are as many series as conditions, however many flows there are, and
//! `heddle_health` names the way that is broken. Each flow is kept as one number of two bits for each of its conditions.

use std::collections::HashMap;
use std::hash::Hash;

use heddle_api::conditions::{Conditions, READY, Status};
use heddle_api::event_flow::CONDITIONS;
use heddle_api::operation::{OperationKind, OperationProgress, OperationRequest, OperationState};
use heddle_rt::metrics::{family, sample};
use jiff::Timestamp;

use crate::watch::hash;

/// In the order of their bits: 0 stands for a condition that is not there yet, and is shown as unknown.
const STATUSES: [(&str, u32); 3] = [("Unknown", 0), ("True", 1), ("False", 2)];
const BITS: u32 = 2;

const OPERATIONS: [(OperationKind, &str); 5] = [
    (OperationKind::Provision, "provision"),
    (OperationKind::Update, "update"),
    (OperationKind::Deprovision, "deprovision"),
    (OperationKind::Bind, "bind"),
    (OperationKind::Unbind, "unbind"),
];

#[derive(Debug, Default)]
pub(super) struct FlowProgress {
    /// By a hash of namespace and name. Two that share one are counted as one, which no alarm hangs on.
    flows: HashMap<u64, u32>,
    /// What is under way, by a hash of kind, namespace and name.
    operations: HashMap<u64, (OperationKind, Timestamp)>,
}

impl FlowProgress {
    pub(super) fn flow(&mut self, key: &impl Hash, conditions: Option<&Conditions>) {
        self.flows.insert(hash(key), packed(conditions));
    }

    pub(super) fn forget_flow(&mut self, key: &impl Hash) {
        self.flows.remove(&hash(key));
    }

    /// What was asked of an object, and how far that is; nothing when the object is gone.
    pub(super) fn operation(
        &mut self,
        key: &impl Hash,
        asked: Option<&OperationRequest>,
        progress: Option<&OperationProgress>,
    ) {
        let key = hash(key);
        match asked.filter(|asked| !has_ended(asked, progress)) {
            Some(asked) => {
                let operation = (asked.kind, asked.accepted_at.0);
                self.operations.insert(key, operation);
            }
            None => {
                self.operations.remove(&key);
            }
        }
    }

    pub(super) fn write(&self, out: &mut String, now: Timestamp) {
        let name = "heddle_flow_condition";
        let help = "EventFlows by condition and its status.";
        family(out, name, "gauge", help);
        for (index, type_) in types().enumerate() {
            for (status, bits) in STATUSES {
                let has = |flow: &&u32| (**flow >> shift(index)) & 3 == bits;
                let count = self.flows.values().filter(has).count();
                let labels = format!("type=\"{type_}\",status=\"{status}\"");
                sample(out, name, &labels, count);
            }
        }
        let name = "heddle_operations";
        let help = "Operations that platforms wait for, by what was asked.";
        family(out, name, "gauge", help);
        for (kind, word) in OPERATIONS {
            let count = self.under_way(kind).count();
            sample(out, name, &format!("kind=\"{word}\""), count);
        }
        let name = "heddle_operations_oldest_seconds";
        let help = "How long the oldest operation is under way; 0 when none is.";
        family(out, name, "gauge", help);
        for (kind, word) in OPERATIONS {
            let oldest = self.under_way(kind).min().unwrap_or(now);
            let age = now.duration_since(oldest).as_secs().max(0);
            sample(out, name, &format!("kind=\"{word}\""), age);
        }
    }

    fn under_way(&self, kind: OperationKind) -> impl Iterator<Item = Timestamp> {
        let operations = self.operations.values();
        operations.filter_map(move |(of, since)| (*of == kind).then_some(*since))
    }
}

/// Every condition of a flow, `Ready` first.
fn types() -> impl Iterator<Item = &'static str> {
    [READY]
        .into_iter()
        .chain(CONDITIONS.iter().map(|one| one.name))
}

fn shift(index: usize) -> u32 {
    u32::try_from(index).unwrap_or_default() * BITS
}

fn packed(conditions: Option<&Conditions>) -> u32 {
    let bits = |type_: &str| {
        let found = conditions.and_then(|conditions| conditions.find(type_));
        found.map_or(0, |condition| match condition.status {
            Status::Unknown => 0,
            Status::True => 1,
            Status::False => 2,
        })
    };
    let types = types().enumerate();
    types.fold(0, |packed, (index, type_)| {
        packed | bits(type_) << shift(index)
    })
}

fn has_ended(asked: &OperationRequest, progress: Option<&OperationProgress>) -> bool {
    let over = |told: &OperationProgress| {
        matches!(
            told.state,
            OperationState::Succeeded | OperationState::Failed
        )
    };
    progress.is_some_and(|told| told.id == asked.id && over(told))
}

#[cfg(test)]
mod tests {
    use heddle_api::Condition;
    use heddle_api::event_flow::{condition, reason};
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn text(progress: &FlowProgress) -> String {
        let mut out = String::new();
        progress.write(&mut out, NOW);
        out
    }

    fn asked(id: &str, seconds_ago: i64) -> OperationRequest {
        let at = Timestamp::from_second(NOW.as_second() - seconds_ago).unwrap();
        serde_json::from_value(json!({
            "id": id, "kind": "provision", "requestHash": "h", "acceptedAt": at.to_string(),
        }))
        .unwrap()
    }

    fn told(id: &str, state: &str) -> OperationProgress {
        serde_json::from_value(json!({"id": id, "kind": "provision", "state": state})).unwrap()
    }

    #[test]
    fn a_flow_is_counted_under_each_of_its_conditions_until_it_is_gone() {
        assert!(
            shift(types().count()) <= u32::BITS,
            "all conditions fit into the number"
        );
        let mut progress = FlowProgress::default();
        let mut conditions = Conditions::default();
        conditions.set(Condition::met(condition::LINK_READY), NOW);
        let unmet = Condition::unmet(condition::BROKER_READY, reason::BROKER_MISSING, "gone");
        conditions.set(unmet, NOW);
        progress.flow(&"team-a/one", Some(&conditions));
        progress.flow(&"team-a/new", None);
        for line in [
            "heddle_flow_condition{type=\"LinkReady\",status=\"True\"} 1\n",
            "heddle_flow_condition{type=\"LinkReady\",status=\"Unknown\"} 1\n",
            "heddle_flow_condition{type=\"BrokerReady\",status=\"False\"} 1\n",
            "heddle_flow_condition{type=\"Ready\",status=\"Unknown\"} 2\n",
        ] {
            assert!(
                text(&progress).contains(line),
                "{line} in {}",
                text(&progress)
            );
        }
        progress.forget_flow(&"team-a/one");
        let line = "heddle_flow_condition{type=\"BrokerReady\",status=\"False\"} 0\n";
        assert!(text(&progress).contains(line));
    }

    #[test]
    fn an_operation_ages_until_it_ends() {
        let mut progress = FlowProgress::default();
        let (first, second) = (asked("a", 90), asked("b", 30));
        progress.operation(&"one", Some(&first), None);
        progress.operation(&"two", Some(&second), Some(&told("b", "inProgress")));
        let oldest = |progress: &FlowProgress, seconds: i64| {
            let line =
                format!("heddle_operations_oldest_seconds{{kind=\"provision\"}} {seconds}\n");
            assert!(text(progress).contains(&line), "{}", text(progress));
        };
        oldest(&progress, 90);
        // That an earlier operation ended says nothing about this one.
        progress.operation(&"one", Some(&first), Some(&told("earlier", "succeeded")));
        oldest(&progress, 90);
        progress.operation(&"one", Some(&first), Some(&told("a", "failed")));
        oldest(&progress, 30);
        progress.operation(&"two", None, None);
        oldest(&progress, 0);
        let line = "heddle_operations{kind=\"provision\"} 0\n";
        assert!(text(&progress).contains(line));
    }
}
