//! Suppresses wake-ups caused by our own status writes, and throttles progress that is only for people.
//!
//! A status that was written comes back as a change of its object. A controller that does not read its own status has nothing
//! to do for that: compared is what was written, not the write, so a status that somebody else puts there requeues the object
//! whenever it arrives. And while an object is becoming ready, every part of it that comes would be a status of its own;
//! these are written every few seconds, and the last one at once. An object that is being deleted is always reconciled, and
//! its status always written.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::conditions::READY;
use kube::Resource as _;
use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use serde_json::Value;

use super::Reconciler;
use crate::watch::{Change, Watched, key_of};

/// How often people are told how far something has come that is not ready yet.
const PROGRESS_PERIOD: Duration = Duration::from_secs(2);

/// What was last said of each object.
pub(super) struct OwnStatusWrites<B: Reconciler>(
    Arc<Mutex<HashMap<ObjectRef<B::Kind>, LastWrite>>>,
);

#[derive(Debug, Clone, Copy)]
struct LastWrite {
    /// Of the status.
    hash: u64,
    /// When it was last written; `None` while that has not been done.
    at: Option<Duration>,
}

impl<B: Reconciler> Clone for OwnStatusWrites<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Reconciler> Default for OwnStatusWrites<B> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<B: Reconciler<Kind: Watched>> OwnStatusWrites<B> {
    /// Whether a change brings nothing but what this controller has said itself.
    pub(super) fn is_own_write(&self, change: &Change<'_, B::Kind>) -> bool {
        let key = key_of(&**change.object());
        match change {
            Change::Deleted(_) => {
                self.forget(&key);
                false
            }
            Change::Applied {
                old: Some(_), new, ..
            } if !B::READS_OWN_STATUS && !change.is_written() => {
                let said = self.0.lock().get(&key).copied();
                let is_said = |is: &Value| said.is_some_and(|said| said.hash == hash(is));
                new.meta().deletion_timestamp.is_none()
                    && said.is_some()
                    && status_of::<B>(new).as_ref().is_ok_and(is_said)
            }
            Change::Applied { .. } | Change::Listed(_) => false,
        }
    }
}

impl<B: Reconciler> OwnStatusWrites<B> {
    /// Takes note of what is about to be said: it may come back before the answer does.
    pub(super) fn expect(&self, key: ObjectRef<B::Kind>, status: &Value) {
        if !B::READS_OWN_STATUS || B::THROTTLES_PROGRESS {
            let hash = hash(status);
            self.0.lock().insert(key, LastWrite { hash, at: None });
        }
    }

    /// Takes note that it was written.
    pub(super) fn written(&self, key: &ObjectRef<B::Kind>, now: Duration) {
        if let Some(said) = self.0.lock().get_mut(key) {
            said.at = Some(now);
        }
    }

    /// Nothing is remembered of what is gone. That may be noticed before the last note is taken, so it is said again by
    /// whoever finds nothing to write to.
    pub(super) fn forget(&self, key: &ObjectRef<B::Kind>) {
        self.0.lock().remove(key);
    }

    /// How long the next status of an object can wait, if it can: it is not ready, was not so before, only what people are
    /// told of it differs, and they were told a moment ago. Addresses are not for people only.
    pub(super) fn throttle(
        &self,
        key: &ObjectRef<B::Kind>,
        before: &Value,
        after: &Value,
        now: Duration,
    ) -> Option<Duration> {
        if !B::THROTTLES_PROGRESS || !differ_in_words_only(before, after) {
            return None;
        }
        if ready(before)? == "True" || ready(after)? == "True" {
            return None;
        }
        let at = self.0.lock().get(key)?.at?;
        let left = (at + PROGRESS_PERIOD).saturating_sub(now);
        (!left.is_zero()).then_some(left)
    }
}

/// Whether two states differ in nothing but conditions and how an operation is described.
fn differ_in_words_only(before: &Value, after: &Value) -> bool {
    let facts = |status: &Value| {
        let mut status = status.as_object()?.clone();
        status.remove("conditions");
        if let Some(operation) = status.get_mut("operation").and_then(Value::as_object_mut) {
            operation.remove("description");
        }
        Some(status)
    };
    let before = facts(before);
    before.is_some() && before == facts(after)
}

/// The status of `Ready`.
fn ready(status: &Value) -> Option<&str> {
    let mut conditions = status["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == READY)?["status"].as_str()
}

/// The status of an object, but for what others write there.
pub(super) fn status_of<B: Reconciler>(object: &B::Kind) -> Result<Value, serde_json::Error> {
    let mut status = serde_json::to_value(object)?["status"].take();
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|name, _| !B::FOREIGN_FIELDS.contains(&name.as_str()));
    }
    Ok(status)
}

fn hash(status: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    status.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use heddle_api::ApplicationMapping;
    use serde_json::json;

    use super::*;
    use crate::application::Applications;
    use crate::application_mapping::Mappings;
    use crate::service_instance::Instances;

    fn mapping(change: Value) -> Arc<ApplicationMapping> {
        let mut object = json!({
            "metadata": {"name": "shop", "namespace": "team", "uid": "u", "generation": 1},
            "spec": {},
        });
        json_patch::merge(&mut object, &change);
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn only_what_it_has_said_itself_leaves_a_controller_alone() {
        let said = json!({"status": {"observedGeneration": 1}});
        let (before, after) = (mapping(json!({})), mapping(said.clone()));
        let own_writes = OwnStatusWrites::<Mappings>::default();
        let recognises = |old: Option<&Arc<ApplicationMapping>>, new: &Arc<ApplicationMapping>| {
            own_writes.is_own_write(&Change::between(old, new))
        };
        assert!(!recognises(Some(&before), &after), "nothing was said yet");
        let status = status_of::<Mappings>(&after).unwrap();
        own_writes.expect(key_of(&*after), &status);
        assert!(recognises(Some(&before), &after));
        assert!(!recognises(None, &after), "it was not known before");
        assert!(!own_writes.is_own_write(&Change::Listed(&after)));
        let differs = |change: Value| {
            let mut object = said.clone();
            json_patch::merge(&mut object, &change);
            !recognises(Some(&before), &mapping(object))
        };
        assert!(differs(json!({"status": {"observedGeneration": 2}})));
        assert!(differs(json!({"status": null})));
        assert!(differs(json!({"metadata": {"generation": 2}})));
        assert!(differs(json!({"metadata": {"labels": {"a": "b"}}})));
        assert!(differs(json!({"metadata": {"uid": "v"}})));
        let leaving = mapping(json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": said["status"],
        }));
        assert!(!recognises(Some(&leaving), &leaving));
        assert!(!own_writes.is_own_write(&Change::Deleted(&after)));
        assert!(!recognises(Some(&before), &after), "a namesake is another");
    }

    #[test]
    fn a_controller_that_reads_its_own_status_hears_of_it() {
        let object: Arc<heddle_api::Application> = Arc::new(
            serde_json::from_value(json!({"metadata": {"name": "shop"}, "spec": {}})).unwrap(),
        );
        let own_writes = OwnStatusWrites::<Applications>::default();
        let status = status_of::<Applications>(&object).unwrap();
        own_writes.expect(key_of(&*object), &status);
        assert!(!own_writes.is_own_write(&Change::between(Some(&object), &object)));
    }

    #[test]
    fn progress_is_told_now_and_then_and_the_last_word_at_once() {
        let key = key_of(&*mapping(json!({})));
        let status = |ready: &str, reason: &str, generation: u64| {
            let ready = json!({"type": "Ready", "status": ready, "reason": reason});
            json!({"conditions": [ready], "observedGeneration": generation})
        };
        let own_writes = OwnStatusWrites::<Mappings>::default();
        let second = Duration::from_secs(1);
        let (first, next) = (status("False", "A", 1), status("False", "B", 1));
        assert_eq!(
            own_writes.throttle(&key, &json!(null), &first, Duration::ZERO),
            None
        );
        own_writes.expect(key.clone(), &first);
        assert_eq!(
            own_writes.throttle(&key, &first, &next, second),
            None,
            "it was not written"
        );
        own_writes.written(&key, Duration::ZERO);
        assert_eq!(
            own_writes.throttle(&key, &first, &next, second),
            Some(second)
        );
        assert_eq!(own_writes.throttle(&key, &first, &next, 2 * second), None);
        let unknown = status("Unknown", "B", 1);
        assert_eq!(
            own_writes.throttle(&key, &first, &unknown, second),
            Some(second)
        );
        for word in [status("True", "", 1), status("False", "B", 2)] {
            assert_eq!(
                own_writes.throttle(&key, &first, &word, second),
                None,
                "{word}"
            );
            assert_eq!(
                own_writes.throttle(&key, &word, &first, second),
                None,
                "{word}"
            );
        }
        let mut addressed = next;
        addressed["sinkUri"] = json!("http://x.example/");
        assert_eq!(own_writes.throttle(&key, &first, &addressed, second), None);
        assert_eq!(own_writes.throttle(&key, &addressed, &first, second), None);
    }

    #[test]
    fn how_an_operation_is_described_can_wait_and_how_it_stands_cannot() {
        let object: heddle_api::ServiceInstance = serde_json::from_value(json!({
            "metadata": {"name": "one", "namespace": "team"},
            "spec": {"instanceID": "one", "serviceID": "s", "planID": "p"},
        }))
        .unwrap();
        let object = Arc::new(object);
        let key = key_of(&*object);
        let status = |state: &str, description: &str| {
            let operation = json!({"id": "1", "state": state, "description": description});
            let ready = json!({"type": "Ready", "status": "False", "reason": description});
            json!({"conditions": [ready], "operation": operation})
        };
        let own_writes = OwnStatusWrites::<Instances>::default();
        let first = status("inProgress", "A");
        own_writes.expect(key.clone(), &first);
        own_writes.written(&key, Duration::ZERO);
        let pause = |after: &Value| own_writes.throttle(&key, &first, after, Duration::ZERO);
        assert_eq!(pause(&status("inProgress", "B")), Some(PROGRESS_PERIOD));
        assert_eq!(pause(&status("failed", "A")), None);
        assert!(!own_writes.is_own_write(&Change::between(Some(&object), &object)));
        own_writes.is_own_write(&Change::Deleted(&object));
        assert_eq!(
            pause(&status("inProgress", "B")),
            None,
            "a namesake is another"
        );
    }
}
