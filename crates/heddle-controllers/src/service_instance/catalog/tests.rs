use heddle_api::bundle::{BundleSpec, BundleStatus};
use heddle_api::bundle_revision::BundleRevisionSpec;
use serde_json::json;

use super::*;

fn spec(plan: &str) -> ServiceInstanceSpec {
    ServiceInstanceSpec {
        service_id: "db".to_owned(),
        plan_id: plan.to_owned(),
        ..ServiceInstanceSpec::default()
    }
}

fn bundle(phase: BundlePhase) -> Bundle {
    let mut bundle = Bundle::new(
        "bundle-1",
        BundleSpec {
            registry: "hub".to_owned(),
            service_id: "db".to_owned(),
            ..BundleSpec::default()
        },
    );
    let mark = json!({"reason": "TagRemoved", "since": "2030-01-01T00:00:00Z"});
    bundle.status = Some(BundleStatus {
        phase,
        mark: (phase != BundlePhase::Live).then(|| serde_json::from_value(mark).unwrap()),
        ..BundleStatus::default()
    });
    bundle
}

fn revision(version: Option<&str>) -> BundleRevision {
    let description = json!({"name": "db", "plans": [{"name": "small"}]});
    BundleRevision::new(
        "revision-1",
        BundleRevisionSpec {
            manifest_digest: "sha256:1".to_owned(),
            bundle_version: version.map(str::to_owned),
            description: description.as_object().cloned().unwrap(),
            ..BundleRevisionSpec::default()
        },
    )
}

fn registry(name: &str, converged: Option<i64>) -> Registry {
    let spec = serde_json::from_value(json!({"type": "apiv2"})).unwrap();
    let mut registry = Registry::new(name, spec);
    registry.metadata.generation = Some(2);
    let status = json!({"convergedGeneration": converged});
    registry.status = Some(serde_json::from_value(status).unwrap());
    registry
}

#[test]
fn a_live_bundle_is_what_an_instance_is_pinned_to() {
    for (version, told) in [
        (Some("1.2.3"), Some("1.2.3")),
        (Some("third time lucky"), None),
        (None, None),
    ] {
        let (bundle, revision) = (bundle(BundlePhase::Live), revision(version));
        let judged = judge(&spec("small"), Some(&bundle), Some(&revision), &[]);
        let Offered::Live(pin) = judged else {
            panic!("{judged:?}");
        };
        assert_eq!(pin.revision.name, "revision-1");
        assert_eq!(pin.revision.bundle_version.as_deref(), version);
        let maintenance = pin.maintenance_info.map(|info| info.version);
        assert_eq!(maintenance.as_deref(), told);
    }
}

#[test]
fn what_cannot_be_had_is_said_by_name() {
    let unread = [
        registry("hub", Some(2)),
        registry("far", Some(1)),
        registry("new", None),
    ];
    let read = [registry("hub", Some(2)), registry("far", Some(2))];
    let (live, marked) = (bundle(BundlePhase::Live), bundle(BundlePhase::Marked));
    let mut leaving = bundle(BundlePhase::Live);
    leaving.metadata.deletion_timestamp = marked
        .status
        .as_ref()
        .map(|status| status.mark.as_ref().unwrap().since.clone());
    let revision = revision(None);
    let judged = |plan: &str, bundle, revision, registries| match judge(
        &spec(plan),
        bundle,
        revision,
        registries,
    ) {
        Offered::Live(_) => panic!("it should not be offered"),
        Offered::Awaiting(why) => ("awaiting", why),
        Offered::Unknown(why) => ("unknown", why),
        Offered::Withdrawn(why) => ("withdrawn", why),
        Offered::PlanWithdrawn(why) => ("plan", why),
    };
    for (plan, bundle, revision, registries, expected, named) in [
        (
            "small",
            None,
            None,
            &unread[..],
            "awaiting",
            "Registry far, new",
        ),
        (
            "small",
            None,
            None,
            &read,
            "unknown",
            "Registry hub, far offers service db",
        ),
        (
            "small",
            Some(&live),
            None,
            &read,
            "awaiting",
            "Bundle bundle-1 of Registry hub",
        ),
        (
            "huge",
            Some(&live),
            Some(&revision),
            &read,
            "plan",
            "has no plan huge",
        ),
        (
            "small",
            Some(&marked),
            Some(&revision),
            &read,
            "withdrawn",
            "TagRemoved since 2030",
        ),
        (
            "small",
            Some(&leaving),
            Some(&revision),
            &read,
            "withdrawn",
            "Registry hub",
        ),
    ] {
        let (word, why) = judged(plan, bundle, revision, registries);
        assert_eq!(word, expected, "{why}");
        assert!(why.contains(named), "{why}");
    }
}

#[test]
fn only_semantic_versions_are_told_to_platforms() {
    for good in [
        "0.0.0",
        "1.2.3",
        "1.2.3-rc.1",
        "1.2.3+build.007",
        "10.20.30-a-b.0+x",
    ] {
        assert!(is_semantic(good), "{good}");
    }
    for bad in [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "01.2.3",
        "1.2.x",
        "v1.2.3",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3+",
        "1.2.3+a b",
    ] {
        assert!(!is_semantic(bad), "{bad}");
    }
}
