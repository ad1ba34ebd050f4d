//! Events are news: they are removed some time after they were last seen.

use jiff::Timestamp;
use serde_json::Value;

use crate::Inner;
use crate::delete::{self, Options};
use crate::object;
use crate::registry::BuiltIn;

pub(super) async fn sweep(inner: &Inner) {
    let resource = inner.registry.builtin(BuiltIn::Event);
    let now = inner.clock.now();
    let age_max = i64::try_from(inner.limits.event_seconds_max).unwrap_or(i64::MAX);
    let old = inner.store.list(&resource.storage, None).items;
    let old = old
        .into_iter()
        .filter(|event| now.as_second() - last_seen(&object::parse(event)).as_second() > age_max)
        .collect();
    if let Err(refusal) = delete::many(inner, resource, old, &Options::default()).await {
        tracing::warn!(%refusal, "old events could not be removed yet");
    }
}

fn last_seen(event: &Value) -> Timestamp {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    let parsed = times.iter().filter_map(|time| time.as_str()?.parse().ok());
    parsed.max().unwrap_or(Timestamp::UNIX_EPOCH)
}
