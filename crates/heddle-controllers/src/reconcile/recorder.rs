//! Recorder: writes news as Events beside the object they are about.
//!
//! What repeats within minutes is counted in the Event that is there already. What is remembered for that is bounded by
//! time and number, and looked at from its oldest end only: thousands of objects may have news at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use heddle_rt::{Chance, Clock};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as Record;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::runtime::events::{Event, EventType};
use kube::{Client, Resource as _};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// How long an Event is counted on before the same news is told afresh.
const COUNTED_FOR: Duration = Duration::from_secs(6 * 60);
/// News that is remembered, so that it can be counted.
const REMEMBERED_MAX: usize = 4_096;
/// What fits into a name beside the suffix.
const NAME_CHARS_MAX: usize = 230;

#[derive(Clone)]
pub(super) struct Recorder {
    client: Client,
    clock: Clock,
    chance: Chance,
    reporter: String,
    told: Arc<Mutex<ToldNotices>>,
}

/// Object, type and reason: what makes two pieces of news the same.
type Key = (String, bool, String);

#[derive(Debug, Default)]
struct ToldNotices {
    known: HashMap<Key, Tale>,
    /// By when it was first told.
    order: VecDeque<(Duration, Key)>,
}

#[derive(Debug, Clone)]
struct Tale {
    /// Of the Event.
    name: String,
    count: u32,
    since: Duration,
}

impl Recorder {
    pub(super) fn new(client: Client, clock: Clock, chance: Chance, reporter: &str) -> Self {
        Self {
            client,
            clock,
            chance,
            reporter: reporter.to_owned(),
            told: Arc::default(),
        }
    }

    pub(super) async fn publish(
        &self,
        news: &Event,
        about: &ObjectReference,
    ) -> Result<(), kube::Error> {
        let is_warning = matches!(news.type_, EventType::Warning);
        let key = (
            about.uid.clone().unwrap_or_default(),
            is_warning,
            news.reason.clone(),
        );
        let tale = self.tell(&key, about);
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let now = micros(self.clock.now());
        let request = Request::new(Record::url_path(&(), Some(namespace)));
        let request = if tale.count == 1 {
            let record = self.record(news, about, &tale.name, namespace, &now);
            request.create(&PostParams::default(), record.to_string().into_bytes())
        } else {
            let series = json!({"count": tale.count, "lastObservedTime": now});
            let change = json!({"note": news.note, "series": series});
            let params = PatchParams::default();
            request.patch(&tale.name, &params, &Patch::Merge(&change))
        };
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = self.client.request_text(request).await;
        if answer.is_err() {
            // It may not be there to be counted on; next time it is told afresh.
            self.told.lock().known.remove(&key);
        }
        answer.map(drop)
    }

    /// Counts a piece of news, under the name of its Event.
    fn tell(&self, key: &Key, about: &ObjectReference) -> Tale {
        let now = self.clock.monotonic();
        let mut told = self.told.lock();
        told.forget(now);
        if let Some(tale) = told.known.get_mut(key) {
            tale.count += 1;
            return tale.clone();
        }
        let mut object = about.name.clone().unwrap_or_default();
        object.truncate(NAME_CHARS_MAX);
        // A cut must not leave what no part of a name may end with.
        object.truncate(object.trim_end_matches(['-', '.']).len());
        let tale = Tale {
            name: format!("{object}.{:016x}", self.chance.u64()),
            count: 1,
            since: now,
        };
        told.known.insert(key.clone(), tale.clone());
        told.order.push_back((now, key.clone()));
        tale
    }

    fn record(
        &self,
        news: &Event,
        about: &ObjectReference,
        name: &str,
        namespace: &str,
        now: &str,
    ) -> Value {
        json!({
            "apiVersion": Record::api_version(&()), "kind": Record::kind(&()),
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": now,
            "type": match news.type_ { EventType::Normal => "Normal", EventType::Warning => "Warning" },
            "reason": news.reason, "note": news.note, "action": news.action,
            "regarding": about, "related": news.secondary,
            "reportingController": self.reporter, "reportingInstance": self.reporter,
        })
    }
}

impl ToldNotices {
    /// Forgets what is too old to be counted on, and the oldest where there is too much.
    fn forget(&mut self, now: Duration) {
        while let Some((since, _)) = self.order.front() {
            if self.order.len() < REMEMBERED_MAX && now.saturating_sub(*since) < COUNTED_FOR {
                return;
            }
            // What failed to be told may have been told again since.
            if let Some((since, key)) = self.order.pop_front()
                && self.known.get(&key).is_some_and(|tale| tale.since == since)
            {
                self.known.remove(&key);
            }
        }
    }
}

/// As Kubernetes writes times of Events.
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(told: &mut ToldNotices, seconds: u64, reason: &str) -> usize {
        let now = Duration::from_secs(seconds);
        told.forget(now);
        let key = (String::new(), false, reason.to_owned());
        let tale = Tale {
            name: String::new(),
            count: 1,
            since: now,
        };
        told.known.insert(key.clone(), tale);
        told.order.push_back((now, key));
        told.known.len()
    }

    #[test]
    fn what_is_remembered_is_bounded_by_time_and_number() {
        let mut told = ToldNotices::default();
        assert_eq!(at(&mut told, 0, "a"), 1);
        assert_eq!(at(&mut told, 359, "b"), 2);
        assert_eq!(at(&mut told, 361, "c"), 2, "the first is too old by now");
        for number in 0..2 * REMEMBERED_MAX {
            at(&mut told, 400, &number.to_string());
        }
        assert_eq!(told.known.len(), REMEMBERED_MAX);
        assert_eq!(told.order.len(), REMEMBERED_MAX);
    }

    #[test]
    fn what_is_told_again_after_a_failure_is_remembered_from_then() {
        let mut told = ToldNotices::default();
        at(&mut told, 0, "a");
        told.known.clear();
        at(&mut told, 300, "a");
        told.forget(Duration::from_secs(400));
        assert_eq!(told.known.len(), 1);
        told.forget(Duration::from_secs(700));
        assert!(told.known.is_empty());
    }
}
