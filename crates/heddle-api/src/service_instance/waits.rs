//! What an instance waits for, which object must change, who must act, and when the platform is told that it failed.
//!
//! Everything said here stands in the conditions of the ServiceInstance and its EventFlow; this only puts it into the order in
//! which a person asks. Pure; the command and the page say the same by it.

use jiff::{SignedDuration, Timestamp};

use super::{ServiceInstance, condition, reason};
use crate::conditions::{Condition, ConditionSet, Conditions, READY, Reason, Status};
use crate::event_flow::{self, EventFlow};
use crate::names;
use crate::operation::GRACE_SECONDS;
use crate::well_known::INTEGRATION_NAMESPACE;

/// Reasons that stay until somebody acts.
const FOR_PEOPLE: [Reason; 9] = [
    reason::SERVICE_UNKNOWN,
    reason::SERVICE_WITHDRAWN,
    reason::PLAN_WITHDRAWN,
    reason::REVISION_MISSING,
    reason::MAPPING_MISSING,
    reason::SERVICE_NOT_ENABLED,
    reason::FLOW_TAKEN,
    reason::ACTION_FAILED,
    event_flow::reason::INJECTION_DISABLED,
];

/// One condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceWait {
    /// Whose condition it is: `eventflow/NAME` or `serviceinstance/NAME`.
    pub object: String,
    pub condition: String,
    pub since: Option<Timestamp>,
    pub reason: String,
    pub message: String,
    /// What the reason means, wherever it is met.
    pub meaning: &'static str,
    /// What must change, such as `applicationmapping/NAMESPACE/NAME`, where that follows from the condition.
    pub culprit: Option<String>,
}

impl InstanceWait {
    /// What is said of it: the message, or what the reason means in general.
    #[must_use]
    pub fn said(&self) -> &str {
        match self.message.as_str() {
            "" => self.meaning,
            message => message,
        }
    }

    /// Whether it stays until somebody acts.
    #[must_use]
    pub fn needs_people(&self) -> bool {
        FOR_PEOPLE.iter().any(|reason| reason.name == self.reason)
    }
}

/// Who must act, in one sentence; nothing where nothing is waited for.
#[must_use]
pub fn who_acts(waits: &[InstanceWait]) -> Option<String> {
    if waits.is_empty() {
        return None;
    }
    Some(match waits.iter().find(|wait| wait.needs_people()) {
        Some(wait) => format!(
            "somebody has to act first: {} does not go away by itself",
            wait.reason
        ),
        None => "it goes on by itself as soon as that changes".to_owned(),
    })
}

/// When the platform is told that the operation failed, if nothing changes: what only people can put right is waited for
/// much shorter than all else.
#[must_use]
pub fn fails_at(instance: &ServiceInstance) -> Option<Timestamp> {
    let request = instance.spec.operation.as_ref()?;
    let status = instance.status.as_ref();
    let refusals = [condition::OFFERING_RESOLVED, condition::ALLOWED];
    let refused = refusals.iter().filter_map(|refusal| {
        let condition = status?.conditions.find(refusal.name)?;
        let since = condition.last_transition_time.as_ref()?;
        (condition.status == Status::False).then_some(since.0)
    });
    let refused = refused.min().and_then(|since| {
        let since = since.max(request.accepted_at.0);
        since
            .checked_add(SignedDuration::from_secs(GRACE_SECONDS))
            .ok()
    });
    let deadline = request.deadline.as_ref().map(|deadline| deadline.0);
    [refused, deadline].into_iter().flatten().min()
}

/// What does not hold: of the flow first, since the instance only repeats it.
#[must_use]
pub fn waits(instance: &ServiceInstance, flow: Option<&EventFlow>) -> Vec<InstanceWait> {
    let objects = InstanceObjects { instance, flow };
    let mut waits = Vec::new();
    if let Some(flow) = flow {
        let name = flow.metadata.name.as_deref().unwrap_or_default();
        let conditions = flow.status.as_ref().map(|status| &status.conditions);
        let (object, kinds) = (format!("eventflow/{name}"), event_flow::CONDITIONS);
        objects.open(&mut waits, &object, conditions, kinds);
    }
    if waits.is_empty() {
        let name = instance.metadata.name.as_deref().unwrap_or_default();
        let conditions = instance.status.as_ref().map(|status| &status.conditions);
        let (object, kinds) = (format!("serviceinstance/{name}"), super::CONDITIONS);
        objects.open(&mut waits, &object, conditions, kinds);
    }
    // That something is under way is no news beside what it waits for.
    let under_way = |wait: &InstanceWait| wait.reason == reason::IN_PROGRESS.name;
    if !waits.iter().all(under_way) {
        waits.retain(|wait| !under_way(wait));
    }
    waits
}

/// An instance and its flow, by which the objects of its way are known.
#[derive(Clone, Copy)]
struct InstanceObjects<'a> {
    instance: &'a ServiceInstance,
    flow: Option<&'a EventFlow>,
}

impl InstanceObjects<'_> {
    fn open(
        self,
        waits: &mut Vec<InstanceWait>,
        object: &str,
        conditions: Option<&Conditions>,
        kinds: ConditionSet,
    ) {
        let meaning = |word: &str| {
            let mut reasons = kinds.iter().flat_map(|kind| kind.reasons);
            reasons.find(|reason| reason.name == word)
        };
        let failing = |condition: &&Condition| {
            condition.type_ != READY
                && condition.status != Status::True
                && condition.severity.is_none()
        };
        for condition in conditions.into_iter().flatten().filter(failing) {
            let reason = condition.reason.clone().unwrap_or_default();
            let message = condition.message.as_deref().unwrap_or_default();
            if waits.iter().any(|wait| repeats(message, &wait.message)) {
                continue;
            }
            waits.push(InstanceWait {
                object: object.to_owned(),
                condition: condition.type_.clone(),
                since: condition.last_transition_time.as_ref().map(|time| time.0),
                meaning: meaning(&reason).map_or("", |reason| reason.meaning),
                culprit: self.culprit(&condition.type_, &reason),
                reason,
                message: message.to_owned(),
            });
        }
    }

    /// What must change so that a condition holds, where it is always the same object.
    fn culprit(self, condition: &str, reason: &str) -> Option<String> {
        let own = self.instance.spec.application.as_ref();
        let own = own.map(|pin| pin.name.as_str());
        let application = self.flow.map(|flow| flow.spec.application.as_str());
        let application = application.or(own)?;
        let namespace = self.instance.metadata.namespace.as_deref()?;
        let is = |known: Reason| known.name == reason;
        if is(reason::MAPPING_MISSING) || is(reason::SERVICE_NOT_ENABLED) {
            return Some(format!("applicationmapping/{namespace}/{application}"));
        }
        let broker = self.flow.map(|flow| flow.spec.broker_ref.name.as_str());
        Some(match condition {
            _ if condition == event_flow::condition::SOURCE_READY.name => {
                format!("httpsource/{INTEGRATION_NAMESPACE}/{application}")
            }
            _ if condition == event_flow::condition::CHANNEL_READY.name => {
                format!("channel/{INTEGRATION_NAMESPACE}/{application}")
            }
            _ if condition == event_flow::condition::BROKER_READY.name => {
                format!("broker/{namespace}/{}", broker?)
            }
            _ if condition == event_flow::condition::LINK_READY.name => {
                let status = self.flow.and_then(|flow| flow.status.as_ref());
                let known = status.and_then(|status| status.link_name.clone());
                let broker = broker?;
                let link = known.unwrap_or_else(|| names::link_to(application, namespace, broker));
                format!("subscription/{INTEGRATION_NAMESPACE}/{link}")
            }
            _ => return None,
        })
    }
}

/// Whether a message tells nothing that another has not told.
fn repeats(message: &str, other: &str) -> bool {
    let told = !message.is_empty() && !other.is_empty();
    told && (message.contains(other) || other.contains(message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn instance(conditions: &Value) -> ServiceInstance {
        serde_json::from_value(json!({
            "apiVersion": "heddle.dev/v1alpha1", "kind": "ServiceInstance",
            "metadata": {"name": "orders", "namespace": "team-a"},
            "spec": {
                "instanceID": "orders", "serviceID": "s1", "planID": "p1",
                "application": {"name": "shop", "serviceID": "s1"},
            },
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn each_condition_of_a_flow_leads_to_the_object_that_must_change() {
        for (condition, reason, culprit) in [
            (
                "Allowed",
                "MappingMissing",
                Some("applicationmapping/team-a/shop"),
            ),
            (
                "Allowed",
                "ServiceNotEnabled",
                Some("applicationmapping/team-a/shop"),
            ),
            (
                "SourceReady",
                "SourceMissing",
                Some("httpsource/kyma-integration/shop"),
            ),
            (
                "ChannelReady",
                "ChannelMissing",
                Some("channel/kyma-integration/shop"),
            ),
            (
                "BrokerReady",
                "BrokerMissing",
                Some("broker/team-a/default"),
            ),
            (
                "LinkReady",
                "LinkMissing",
                Some("subscription/kyma-integration/LINK"),
            ),
            ("PolicyReady", "PolicyNotReady", None),
        ] {
            let flow: EventFlow = serde_json::from_value(json!({
                "apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow",
                "metadata": {"name": "orders", "namespace": "team-a"},
                "spec": {"application": "shop", "serviceID": "s1"},
                "status": {"conditions": [{"type": condition, "status": "False", "reason": reason}]},
            }))
            .unwrap();
            let found = waits(&instance(&json!([])), Some(&flow));
            let link = names::link_to("shop", "team-a", &flow.spec.broker_ref.name);
            let culprit = culprit.map(|culprit| culprit.replace("LINK", &link));
            assert_eq!(found[0].culprit, culprit, "{condition} {reason}");
            assert_eq!(found[0].object, "eventflow/orders");
        }
    }

    #[test]
    fn people_act_on_what_does_not_go_away_by_itself() {
        let missing = json!([
            {"type": "Allowed", "status": "False", "reason": "MappingMissing", "message": "no mapping"},
            {"type": "Provisioned", "status": "False", "reason": "InProgress", "message": "under way"},
        ]);
        let found = waits(&instance(&missing), None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].said(), "no mapping");
        assert!(who_acts(&found).unwrap().contains("MappingMissing"));
        let under_way = json!([{"type": "Provisioned", "status": "False", "reason": "InProgress"}]);
        let found = waits(&instance(&under_way), None);
        assert!(who_acts(&found).unwrap().contains("by itself"));
        assert!(!found[0].said().is_empty(), "its meaning is told");
        assert_eq!(who_acts(&[]), None);
    }
}
