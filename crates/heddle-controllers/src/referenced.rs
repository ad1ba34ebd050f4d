//! The state of an object that others refer to: whether it is there to stay, whether it is ready, and where it is reached.

use heddle_api::broker::BrokerStatus;
use heddle_api::conditions::{Conditions, READY, Status};
use heddle_api::duck::Addressable;
use heddle_api::{Application, Broker, Channel, HTTPSource, Subscription, Trigger};
use kube::{Resource, ResourceExt as _};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReferencedState {
    pub uid: Option<String>,
    /// Of a Broker, nothing: its claims change that, and nobody else needs to know of them.
    pub generation: Option<i64>,
    /// It is on its way out.
    pub leaving: bool,
    pub ready: Readiness,
    pub address: Option<Addressable>,
    pub dead_letter_sink_uri: Option<String>,
}

/// `Ready`, as far as it speaks of the object as it is now written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Readiness {
    pub status: Status,
    /// Why it is not ready, for people; empty when it is.
    pub why: String,
}

impl Readiness {
    pub(crate) fn is_true(&self) -> bool {
        self.status == Status::True
    }

    /// From conditions that describe the generation `observed` of an object that is at `generation`.
    pub(crate) fn new(
        conditions: &Conditions,
        observed: Option<i64>,
        generation: Option<i64>,
    ) -> Self {
        Self::of(conditions, observed == generation)
    }

    /// From conditions, and whether they speak of the object as it is written now.
    fn of(conditions: &Conditions, is_current: bool) -> Self {
        let unknown = |why: &str| Self {
            status: Status::Unknown,
            why: why.to_owned(),
        };
        let Some(ready) = conditions.find(READY) else {
            return unknown("it has no conditions yet");
        };
        if !is_current {
            return unknown("its conditions describe an earlier generation");
        }
        let why = match ready.status {
            Status::True => String::new(),
            _ => [&ready.reason, &ready.message]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(": "),
        };
        Self {
            status: ready.status,
            why,
        }
    }
}

/// A kind that others may refer to.
pub(crate) trait Referenced: Resource<DynamicType = ()> {
    fn referenced_state(&self) -> ReferencedState;
}

/// The status of all these kinds has conditions and the generation they describe; what else is seen differs.
macro_rules! seen {
    ($kind:ty, $address:expr, $sink:expr) => {
        impl Referenced for $kind {
            fn referenced_state(&self) -> ReferencedState {
                let generation = self.meta().generation;
                let status = self.status.as_ref();
                let ready = status.map_or_else(
                    || Readiness::new(&Conditions::default(), None, generation),
                    |status| {
                        Readiness::new(&status.conditions, status.observed_generation, generation)
                    },
                );
                ReferencedState {
                    uid: self.uid(),
                    generation,
                    leaving: self.meta().deletion_timestamp.is_some(),
                    ready,
                    address: status.and_then($address),
                    dead_letter_sink_uri: status.and_then($sink),
                }
            }
        }
    };
}

seen!(Application, |_| None, |_| None);
seen!(HTTPSource, |_| None, |_| None);
seen!(Subscription, |_| None, |_| None);
seen!(Trigger, |_| None, |_| None);
seen!(Channel, |status| status.address.clone(), |status| status
    .dead_letter_sink_uri
    .clone());

/// A Broker is as ready with one claim more as it was before: otherwise each flow that comes would make all other flows of
/// its namespace unready for a moment. An implementation that does not say which settings it has seen is judged like
/// every other kind.
impl Referenced for Broker {
    fn referenced_state(&self) -> ReferencedState {
        let status = self.status.as_ref();
        let is_current = |status: &BrokerStatus| match &status.observed_settings {
            Some(seen) => *seen == self.spec.settings(),
            None => status.observed_generation == self.meta().generation,
        };
        let ready = status.map_or_else(
            || Readiness::of(&Conditions::default(), false),
            |status| Readiness::of(&status.conditions, is_current(status)),
        );
        ReferencedState {
            uid: self.uid(),
            generation: None,
            leaving: self.meta().deletion_timestamp.is_some(),
            ready,
            address: status.and_then(|status| status.address.clone()),
            dead_letter_sink_uri: status.and_then(|status| status.dead_letter_sink_uri.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A Broker at its third generation, whose status is of the second and describes these settings.
    fn broker(spec: &Value, observed_settings: Option<&str>) -> Broker {
        let object = json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
            "metadata": {"name": "default", "namespace": "team", "uid": "b", "generation": 3},
            "spec": spec,
            "status": {
                "observedGeneration": 2, "observedSettings": observed_settings,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_claim_changes_nothing_that_others_see_of_a_broker_and_a_setting_does() {
        let one = json!({"claims": [{"uid": "one"}]});
        let two = json!({"claims": [{"uid": "one"}, {"uid": "two"}]});
        let other = json!({"delivery": {"retry": 3}, "claims": [{"uid": "one"}]});
        let seen = broker(&one, None).spec.settings();
        let before = broker(&one, Some(&seen)).referenced_state();
        assert!(before.ready.is_true(), "{before:?}");
        assert_eq!(broker(&two, Some(&seen)).referenced_state(), before);
        let changed = broker(&other, Some(&seen)).referenced_state();
        assert_eq!(changed.ready.status, Status::Unknown, "{changed:?}");
    }

    #[test]
    fn a_broker_of_an_implementation_that_names_no_settings_is_judged_by_its_generation() {
        let referenced = broker(&json!({}), None).referenced_state();
        assert_eq!(referenced.ready.status, Status::Unknown, "{referenced:?}");
    }
}
