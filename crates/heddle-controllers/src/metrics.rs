//! Numbers about registries, bundles, flows and operations, for Prometheus.
//!
//! They are taken from what is watched and from readings as they end, and cost a lock and a few words each. Whoever serves
//! metrics renders them with [`Metrics::text`].

mod progress;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::bundle::BundlePhase;
use heddle_api::registry::condition;
use heddle_api::smoke;
use heddle_api::{Bundle, Registry};
use heddle_rt::metrics::{Histogram, family, sample};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use progress::FlowProgress;

use crate::Watches;
use crate::watch::{Change, SharedWatch, Watched};

/// Upper bounds in seconds: an unchanged registry is read in a second, a new one in minutes.
const SYNC_BOUNDS: [f64; 9] = [0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// The numbers. Clones are the same numbers.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Mutex<All>>);

#[derive(Debug, Default)]
struct All {
    /// By name.
    registries: BTreeMap<String, OfRegistry>,
    /// Registry, and phase, of every bundle by name.
    bundles: BTreeMap<String, (String, &'static str)>,
    syncs: BTreeMap<(String, &'static str), u64>,
    durations: BTreeMap<String, Histogram>,
    deleted: u64,
    marked: BTreeMap<String, u64>,
    progress: FlowProgress,
}

#[derive(Debug, Default, Clone, Copy)]
struct OfRegistry {
    is_up: bool,
    failures: i32,
    last_success: Option<i64>,
}

impl Metrics {
    /// A Registry as it is now.
    pub(crate) fn registry(&self, registry: &Registry) {
        let status = registry.status.as_ref();
        let of = OfRegistry {
            is_up: status
                .is_some_and(|status| status.conditions.is_true(condition::REACHABLE.name)),
            failures: status
                .and_then(|status| status.consecutive_failures)
                .unwrap_or_default(),
            last_success: status
                .and_then(|status| status.last_success.as_ref())
                .map(|time| time.0.as_second()),
        };
        let name = registry.name_any();
        self.0.lock().registries.insert(name, of);
    }

    pub(crate) fn forget_registry(&self, name: &str) {
        let mut all = self.0.lock();
        all.registries.remove(name);
        all.durations.remove(name);
        all.syncs.retain(|(registry, _), _| registry != name);
    }

    /// A reading has ended.
    pub(crate) fn synced(&self, registry: &str, success: bool, took: Duration) {
        let mut all = self.0.lock();
        let result = if success { "success" } else { "failure" };
        *all.syncs.entry((registry.to_owned(), result)).or_default() += 1;
        let histogram = || Histogram::of_seconds(&SYNC_BOUNDS);
        let durations = all.durations.entry(registry.to_owned());
        durations.or_insert_with(histogram).observe(took);
    }

    /// A Bundle as it is now, and as it was if it has just changed.
    pub(crate) fn bundle(&self, before: Option<&Bundle>, now: &Bundle) {
        let phase = phase_of(now);
        let mark = now.status.as_ref().and_then(|status| status.mark.as_ref());
        let mut all = self.0.lock();
        if let (Some(before), Some(mark)) = (before, mark)
            && phase_of(before) == BundlePhase::Live
            && phase != BundlePhase::Live
        {
            *all.marked.entry(format!("{:?}", mark.reason)).or_default() += 1;
        }
        let entry = (now.spec.registry.clone(), word(phase));
        all.bundles.insert(now.name_any(), entry);
    }

    /// A Bundle is gone.
    pub(crate) fn bundle_gone(&self, bundle: &Bundle) {
        let mut all = self.0.lock();
        if all.bundles.remove(&bundle.name_any()).is_some() {
            all.deleted += 1;
        }
    }

    /// Follows flows, instances and bindings from now on. What another run has seen of them is forgotten.
    pub(crate) fn follow(&self, watches: &mut Watches) {
        self.0.lock().progress = FlowProgress::default();
        self.follow_kind(&mut watches.flows, |progress, key, flow| {
            let status = flow.and_then(|flow| flow.status.as_ref());
            let namespace = key.namespace.as_deref().unwrap_or_default();
            match flow {
                // Those of smoke tests are nobody's.
                Some(_) if smoke::is_part(namespace, &key.name) => {}
                Some(_) => progress.flow(key, status.map(|status| &status.conditions)),
                None => progress.forget_flow(key),
            }
        });
        self.follow_kind(&mut watches.instances, |progress, key, instance| {
            let asked = instance.and_then(|one| one.spec.operation.as_ref());
            let status = instance.and_then(|one| one.status.as_ref());
            let told = status.and_then(|status| status.operation.as_ref());
            progress.operation(&("instance", key), asked, told);
        });
        self.follow_kind(&mut watches.bindings, |progress, key, binding| {
            let asked = binding.and_then(|one| one.spec.operation.as_ref());
            let status = binding.and_then(|one| one.status.as_ref());
            let told = status.and_then(|status| status.operation.as_ref());
            progress.operation(&("binding", key), asked, told);
        });
    }

    /// Notes every state of a kind's objects, and that one is gone.
    fn follow_kind<K: Watched>(
        &self,
        watch: &mut SharedWatch<K>,
        note: fn(&mut FlowProgress, &ObjectRef<K>, Option<&K>),
    ) {
        let numbers = self.clone();
        watch.on_seen(move |object| {
            let key = ObjectRef::from_obj(object);
            note(&mut numbers.0.lock().progress, &key, Some(object));
        });
        let numbers = self.clone();
        watch.on_change(move |change| {
            if let Change::Deleted(object) = change {
                let key = ObjectRef::from_obj(&***object);
                note(&mut numbers.0.lock().progress, &key, None);
            }
        });
    }

    /// What is known of registries and bundles, in the text format of OpenMetrics and without its end mark.
    pub fn text(&self) -> String {
        let all = self.0.lock();
        let mut out = String::new();
        all.write_registries(&mut out);
        all.write_syncs(&mut out);
        all.write_bundles(&mut out);
        out
    }

    /// The same of flows and operations, with ages as of now.
    pub fn progress_text(&self, now: Timestamp) -> String {
        let mut out = String::new();
        self.0.lock().progress.write(&mut out, now);
        out
    }
}

impl All {
    fn write_registries(&self, out: &mut String) {
        let name = "heddle_registry_up";
        let help = "Whether the last reading of a registry succeeded.";
        family(out, name, "gauge", help);
        for (registry, of) in &self.registries {
            sample(out, name, &label(registry), u8::from(of.is_up));
        }
        let name = "heddle_registry_consecutive_failures";
        let help = "Readings of a registry that failed since the last that did not.";
        family(out, name, "gauge", help);
        for (registry, of) in &self.registries {
            sample(out, name, &label(registry), of.failures);
        }
        let name = "heddle_registry_last_success_timestamp";
        let help = "When a registry was last read completely, in seconds since 1970.";
        family(out, name, "gauge", help);
        for (registry, of) in &self.registries {
            if let Some(second) = of.last_success {
                sample(out, name, &label(registry), second);
            }
        }
    }

    fn write_syncs(&self, out: &mut String) {
        let name = "heddle_registry_sync";
        let help = "Readings of a registry, by how they ended.";
        family(out, name, "counter", help);
        for ((registry, result), count) in &self.syncs {
            let labels = format!("{},result=\"{result}\"", label(registry));
            sample(out, &format!("{name}_total"), &labels, count);
        }
        let name = "heddle_registry_sync_duration_seconds";
        let help = "Time that a reading of a registry took.";
        family(out, name, "histogram", help);
        for (registry, histogram) in &self.durations {
            histogram.write(out, name, &label(registry));
        }
    }

    fn write_bundles(&self, out: &mut String) {
        let name = "heddle_specs";
        let help = "Bundles of a registry, by where they are in their life.";
        family(out, name, "gauge", help);
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (registry, phase) in self.bundles.values() {
            *counts.entry((registry, phase)).or_default() += 1;
        }
        for ((registry, phase), count) in counts {
            let labels = format!("{},phase=\"{phase}\"", label(registry));
            sample(out, name, &labels, count);
        }
        let name = "heddle_specs_deleted";
        family(out, name, "counter", "Bundles that were removed.");
        sample(out, &format!("{name}_total"), "", self.deleted);
        let name = "heddle_specs_marked";
        let help = "Bundles that were withdrawn, by why.";
        family(out, name, "counter", help);
        for (reason, count) in &self.marked {
            let labels = format!("reason=\"{reason}\"");
            sample(out, &format!("{name}_total"), &labels, count);
        }
    }
}

/// The name of a Registry needs no escaping: an object is called so.
fn label(registry: &str) -> String {
    format!("registry=\"{registry}\"")
}

fn phase_of(bundle: &Bundle) -> BundlePhase {
    let status = bundle.status.as_ref();
    status.map(|status| status.phase).unwrap_or_default()
}

fn word(phase: BundlePhase) -> &'static str {
    match phase {
        BundlePhase::Live => "live",
        BundlePhase::Marked => "marked",
        BundlePhase::Sweeping => "sweeping",
    }
}

#[cfg(test)]
mod tests {
    use heddle_api::registry::RegistrySpec;
    use serde_json::json;

    use super::*;

    fn bundle(phase: &str) -> Bundle {
        let mark = json!({"reason": "TagRemoved", "since": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({
            "apiVersion": "heddle.dev/v1alpha1", "kind": "Bundle", "metadata": {"name": "b"},
            "spec": {"registry": "hub", "repository": "r", "track": "latest", "serviceID": "s"},
            "status": {"phase": phase, "mark": (phase != "Live").then_some(mark)},
        }))
        .unwrap()
    }

    #[test]
    fn counters_only_grow_and_gauges_follow() {
        let numbers = Metrics::default();
        let (live, marked) = (bundle("Live"), bundle("Marked"));
        numbers.bundle(None, &live);
        assert!(
            numbers
                .text()
                .contains("heddle_specs{registry=\"hub\",phase=\"live\"} 1\n")
        );
        numbers.bundle(Some(&live), &marked);
        numbers.bundle(Some(&marked), &marked);
        // Whoever starts finds it marked; it was counted when it was.
        numbers.bundle(None, &marked);
        let text = numbers.text();
        assert!(
            text.contains("heddle_specs_marked_total{reason=\"TagRemoved\"} 1\n"),
            "{text}"
        );
        assert!(
            text.contains("heddle_specs{registry=\"hub\",phase=\"marked\"} 1\n"),
            "{text}"
        );
        assert!(!text.contains("phase=\"live\""), "{text}");
        numbers.bundle_gone(&marked);
        numbers.bundle_gone(&marked);
        let text = numbers.text();
        assert!(text.contains("heddle_specs_deleted_total 1\n"), "{text}");
        assert!(!text.contains("heddle_specs{"), "{text}");
    }

    #[test]
    fn readings_are_counted_by_how_they_ended() {
        let numbers = Metrics::default();
        let spec: RegistrySpec = serde_json::from_value(json!({"type": "push"})).unwrap();
        let mut registry = Registry::new("hub", spec);
        registry.status = serde_json::from_value(json!({
            "consecutiveFailures": 2, "lastSuccess": "1970-01-01T00:01:00Z",
        }))
        .unwrap();
        numbers.registry(&registry);
        numbers.synced("hub", true, Duration::from_millis(700));
        numbers.synced("hub", false, Duration::from_secs(30));
        let text = numbers.text();
        for line in [
            "heddle_registry_up{registry=\"hub\"} 0",
            "heddle_registry_consecutive_failures{registry=\"hub\"} 2",
            "heddle_registry_last_success_timestamp{registry=\"hub\"} 60",
            "heddle_registry_sync_total{registry=\"hub\",result=\"failure\"} 1",
            "heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"1\"} 1",
            "heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"30\"} 2",
            "heddle_registry_sync_duration_seconds_count{registry=\"hub\"} 2",
        ] {
            assert!(
                text.contains(&format!("{line}\n")),
                "{line} is not in\n{text}"
            );
        }
        numbers.forget_registry("hub");
        assert!(!numbers.text().contains("hub"));
    }

    #[test]
    fn the_text_is_what_dashboards_know() {
        let numbers = Metrics::default();
        let spec: RegistrySpec = serde_json::from_value(json!({"type": "push"})).unwrap();
        numbers.registry(&Registry::new("hub", spec));
        numbers.synced("hub", true, Duration::from_millis(700));
        numbers.bundle(None, &bundle("Live"));
        let expected = "\
# HELP heddle_registry_up Whether the last reading of a registry succeeded.
# TYPE heddle_registry_up gauge
heddle_registry_up{registry=\"hub\"} 0
# HELP heddle_registry_consecutive_failures Readings of a registry that failed since the last that did not.
# TYPE heddle_registry_consecutive_failures gauge
heddle_registry_consecutive_failures{registry=\"hub\"} 0
# HELP heddle_registry_last_success_timestamp When a registry was last read completely, in seconds since 1970.
# TYPE heddle_registry_last_success_timestamp gauge
# HELP heddle_registry_sync Readings of a registry, by how they ended.
# TYPE heddle_registry_sync counter
heddle_registry_sync_total{registry=\"hub\",result=\"success\"} 1
# HELP heddle_registry_sync_duration_seconds Time that a reading of a registry took.
# TYPE heddle_registry_sync_duration_seconds histogram
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"0.1\"} 0
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"0.5\"} 0
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"1\"} 1
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"2.5\"} 1
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"5\"} 1
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"10\"} 1
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"30\"} 1
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"120\"} 1
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"600\"} 1
heddle_registry_sync_duration_seconds_bucket{registry=\"hub\",le=\"+Inf\"} 1
heddle_registry_sync_duration_seconds_sum{registry=\"hub\"} 0.7
heddle_registry_sync_duration_seconds_count{registry=\"hub\"} 1
# HELP heddle_specs Bundles of a registry, by where they are in their life.
# TYPE heddle_specs gauge
heddle_specs{registry=\"hub\",phase=\"live\"} 1
# HELP heddle_specs_deleted Bundles that were removed.
# TYPE heddle_specs_deleted counter
heddle_specs_deleted_total 0
# HELP heddle_specs_marked Bundles that were withdrawn, by why.
# TYPE heddle_specs_marked counter
";
        assert_eq!(numbers.text(), expected);
    }
}
