use clap::Parser as _;
use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};
use crate::wire::World;

const API: &str = "/apis/heddle.dev/v1alpha1";

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

async fn run(server: &StandIn, line: &str) -> (u8, String, String) {
    let words = ["explain"].into_iter().chain(line.split(' '));
    let Line { args } = Line::parse_from(words);
    let screen = Screen::default();
    let world = World {
        clock: heddle_rt::Clock::simulated("2026-01-02T00:00:00Z".parse().unwrap()),
        ..world()
    };
    let outcome = explain(
        &args,
        CommandContext::new(&server.remote(), &world, &mut screen.terminal()),
    )
    .await;
    let (code, error) = match outcome {
        Ok(()) => (0, String::new()),
        Err(error) => (failure::exit_code(&error), format!("{error:#}")),
    };
    (code, screen.out(), error)
}

fn bundle(status: &Value) -> Value {
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Bundle",
        "metadata": {"name": "bundle-1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"registry": "dh", "repository": "org/hello-apb", "track": "latest", "serviceID": "1dda1477cace"},
        "status": status,
    })
}

fn registry(status: &Value) -> Value {
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry", "metadata": {"name": "dh"},
        "spec": {"type": "dockerhub", "removalConfirmations": 2}, "status": status,
    })
}

fn revision() -> Value {
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "BundleRevision", "metadata": {"name": "rev-1"},
        "spec": {
            "bundle": "bundle-1", "registry": "dh", "image": "r/org/hello-apb", "manifestDigest": "sha256:1",
            "configDigest": "sha256:2", "bundleVersion": "1.1.0", "versionSource": "label", "description": {"name": "hello"},
        },
    })
}

fn sync_run(name: &str, registry: &str, at: &str, status: &Value) -> Value {
    let mut status = status.clone();
    status["startedAt"] = json!(at);
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "SyncRun", "metadata": {"name": name},
        "spec": {"registry": registry, "cause": "interval"}, "status": status,
    })
}

fn completed(rest: &Value) -> Value {
    let mut status = rest.clone();
    status["conditions"] = json!([{"type": "Completed", "status": "True"}]);
    status
}

/// Readings of all sorts, in no order.
fn runs() -> Vec<Value> {
    let image = "org/hello-apb:latest";
    let finding = |verdict: &str, message: &str| {
        completed(&json!({"findings": [{"image": image, "verdict": verdict, "message": message}]}))
    };
    let failed = json!({"conditions": [
        {"type": "Completed", "status": "False", "reason": "Failed", "message": "connection refused"},
    ]});
    vec![
        sync_run(
            "run-2",
            "dh",
            "2026-01-01T23:20:00Z",
            &finding("rejected", "plans: at least one is needed"),
        ),
        sync_run(
            "run-1",
            "dh",
            "2026-01-01T23:10:00Z",
            &finding("present", "sha256:1"),
        ),
        sync_run(
            "run-6",
            "dh",
            "2026-01-01T23:58:00Z",
            &finding("absent", "404 MANIFEST_UNKNOWN"),
        ),
        sync_run(
            "run-3",
            "dh",
            "2026-01-01T23:30:00Z",
            &completed(&json!({"errors": [{"image": image, "message": "503"}]})),
        ),
        sync_run("run-4", "dh", "2026-01-01T23:40:00Z", &failed),
        sync_run(
            "run-5",
            "dh",
            "2026-01-01T23:50:00Z",
            &completed(&json!({})),
        ),
        sync_run(
            "run-x",
            "lab",
            "2026-01-01T23:59:00Z",
            &completed(&json!({})),
        ),
    ]
}

async fn server(bundles: &[Value], registry: Option<&Value>, instances: &[Value]) -> StandIn {
    let server = StandIn::start().await;
    let list = |items: &[Value]| json!({"metadata": {}, "items": items});
    for (kind, items) in [
        ("bundles", bundles),
        ("bundlerevisions", &[revision()]),
        ("syncruns", &runs()),
        ("serviceinstances", instances),
        ("servicebindings", &[]),
    ] {
        server.answers(&format!("GET {API}/{kind}"), 200, &list(items));
    }
    if let Some(registry) = registry {
        server.answers(&format!("GET {API}/registries/dh"), 200, registry);
    }
    server
}

fn instance() -> Value {
    json!({
        "metadata": {"name": "orders", "namespace": "team-a"},
        "spec": {"instanceID": "orders", "serviceID": "1dda1477cace", "revisionRef": {"name": "rev-0", "bundleVersion": "1.0.0"}},
    })
}

#[tokio::test]
async fn a_withdrawn_bundle_in_use_says_why_it_stays() {
    let status = json!({
        "phase": "Marked", "currentRevision": "rev-1", "bundleVersion": "1.1.0",
        "mark": {"reason": "TagRemoved", "since": "2026-01-01T23:58:00Z", "syncRun": "run-6"},
        "conditions": [{"type": "Offered", "status": "False", "reason": "Withdrawn", "message": "TagRemoved since run-6"}],
    });
    let server = server(
        &[bundle(&status)],
        Some(&registry(&json!({}))),
        &[instance()],
    )
    .await;
    let (code, out, err) = run(&server, "hello").await;
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(out, @r"
    hello  Marked
      withdrawn  TagRemoved for 2 min
                 TagRemoved since run-6
                 The bundle is withdrawn; `status.mark` says why.
      service    1dda1477cace
      image      org/hello-apb:latest of registry dh
      bundle     bundle-1
      version    1.1.0 (by a label of its image), rev-1, sha256:1
      stale      no
      kept by    1 instance
      deleted    when the last of these is removed, unless its registry has it again

    NAMESPACE   KIND       ID       VERSION
    team-a      instance   orders   1.0.0

    READING   BEGAN        EVIDENCE    MESSAGE
    run-6     2 min ago    absent      404 MANIFEST_UNKNOWN
    run-5     10 min ago   unchanged   <none>
    run-4     20 min ago   unknown     Failed: connection refused
    run-3     30 min ago   unknown     503
    run-2     40 min ago   rejected    plans: at least one is needed
    ");
}

#[tokio::test]
async fn a_bundle_that_the_catalog_leaves_out_says_why() {
    let status = json!({
        "phase": "Live", "currentRevision": "rev-1",
        "conditions": [{"type": "Offered", "status": "True"}],
    });
    let server = server(&[bundle(&status)], Some(&registry(&json!({}))), &[]).await;
    let why = "the Application's service shop has the same id and comes first";
    let standings = json!({"bundle-1": {"name": null, "leftOut": why}});
    server.answers("GET /heddle/v1/catalog/bundles", 200, &standings);
    let (code, out, err) = run(&server, "hello").await;
    assert_eq!(code, 0, "{err}");
    let told = format!("hello  Live\n  left out   {why}\n  service ");
    assert!(out.starts_with(&told), "{out}");
}

#[tokio::test]
async fn a_live_bundle_of_a_registry_in_trouble_says_so() {
    let status = json!({
        "phase": "Live", "currentRevision": "rev-1",
        "seen": {"rejected": "plans: at least one is needed", "absence": {"reason": "TagRemoved", "readings": 1, "syncRun": "run-6"}},
        "conditions": [
            {"type": "Offered", "status": "True", "lastTransitionTime": "2026-01-01T22:00:00Z"},
            {"type": "Stale", "status": "True", "reason": "Unreachable", "message": "registry dh cannot be read",
             "lastTransitionTime": "2026-01-01T23:40:00Z"},
        ],
    });
    let trouble = json!({
        "suspicion": {"id": "s1", "count": 9, "readings": 1},
        "conditions": [{"type": "Reachable", "status": "False", "reason": "Unreachable", "message": "connection refused"}],
    });
    let server = server(&[bundle(&status)], Some(&registry(&trouble)), &[]).await;
    let (_, out, _) = run(&server, "1dda1477").await;
    let head = out.split("\n\n").next().unwrap();
    insta::assert_snapshot!(head, @r"
    hello  Live
      reason     Stale for 20 min
      service    1dda1477cace
      image      org/hello-apb:latest of registry dh
      bundle     bundle-1
      version    1.1.0 (by a label of its image), rev-1, sha256:1
      rejected   the newest image: plans: at least one is needed
      stale      yes for 20 min: registry dh cannot be read
      registry   dh cannot be read: Unreachable: connection refused
      suspicion  9 bundles of registry dh disappeared at once, in 1 of the 3 readings that it takes to be believed; `heddle registry approve dh` believes it now
      kept by    doubt: it was absent in 1 of the 2 readings that it takes
      deleted    not before it is withdrawn, which happens when 2 readings in a row prove it gone, when the registry denies it or is deleted, or by `heddle bundle withdraw`
    ");
    let (_, out, _) = run(&server, "bundle-1 -o json").await;
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["stale"], true);
    assert_eq!(report["suspicion"]["id"], "s1");
    assert_eq!(report["evidence"][2]["verdict"], "unknown");
    assert_eq!(report["evidence"].as_array().unwrap().len(), RUNS_MAX);
}

#[tokio::test]
async fn a_bundle_that_was_swept_is_remembered_and_one_that_never_was_is_not() {
    let server = server(&[], None, &[]).await;
    server.answers("GET /v2/catalog", 200, &json!({"services": []}));
    let stone: Tombstone = serde_json::from_value(json!({
        "serviceID": "1dda1477cace", "name": "hello", "registry": "dh", "image": "org/hello-apb:latest",
        "reason": "TagRemoved", "withdrawnAt": "2026-01-01T12:00:00Z", "goneAt": "2026-01-01T22:00:00Z",
    }))
    .unwrap();
    let items =
        json!({"metadata": {}, "items": [stone.to_config_map(), {"metadata": {"name": "other"}}]});
    server.answers(
        "GET /api/v1/namespaces/heddle-system/configmaps",
        200,
        &items,
    );
    let (code, out, _) = run(&server, "hello").await;
    assert_eq!(code, 0);
    insta::assert_snapshot!(out, @r"
    hello  Gone
      withdrawn  TagRemoved, at 2026-01-01T12:00:00.000Z, 12 h ago
      gone       at 2026-01-01T22:00:00.000Z, 2 h ago
      service    1dda1477cace
      image      org/hello-apb:latest of registry dh
    ");
    let (code, _, err) = run(&server, "world").await;
    assert_eq!(code, 3);
    assert!(err.contains("there is no bundle `world`"), "{err}");
}

#[test]
fn what_keeps_a_bundle_and_what_deletes_it_follows_from_its_phase() {
    let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
    let fate = |status: Value, used: bool, registry: Option<&Value>| {
        let reference = Reference {
            namespace: "team-a".to_owned(),
            kind: "binding",
            id: "web".to_owned(),
            version: None,
        };
        let facts = Facts {
            left_out: None,
            name: "hello".to_owned(),
            bundle: serde_json::from_value(bundle(&status)).unwrap(),
            revision: None,
            registry: registry.map(|registry| serde_json::from_value(registry.clone()).unwrap()),
            runs: Vec::new(),
            references: if used { vec![reference] } else { Vec::new() },
        };
        let fate = Fate::of(&facts, now);
        format!("{} | {}", fate.kept_by, fate.deleted)
    };
    let marked = |reason: &str, since: &str| json!({"phase": "Marked", "mark": {"reason": reason, "since": since}});
    let registry = registry(&json!({}));
    let (lately, long_ago) = ("2026-01-01T23:55:00Z", "2026-01-01T12:00:00Z");
    for (status, used, registry, expected) in [
        (
            marked("TagRemoved", lately),
            false,
            Some(&registry),
            "its time of grace | at 2026-01-02T00:05:00.000Z (in 5 min), unless its registry has it again",
        ),
        (
            marked("TagRemoved", long_ago),
            false,
            Some(&registry),
            "nothing | with the next sweep, unless its registry has it again",
        ),
        (
            marked("Admin", long_ago),
            true,
            Some(&registry),
            "1 binding | when the last of these is removed, unless it is offered again",
        ),
        (
            marked("RegistryRemoved", lately),
            false,
            None,
            "nothing | with the next sweep, unless the registry is added again",
        ),
        (
            marked("HiddenByStalePolicy", long_ago),
            false,
            Some(&registry),
            "the registry's stale policy, which only hides it | never for this reason; it comes back when the registry can be read",
        ),
        (
            json!({"phase": "Sweeping"}),
            false,
            Some(&registry),
            "nothing | at once, unless a last look finds an instance or binding",
        ),
        (
            json!({"phase": "Live"}),
            true,
            None,
            "nothing | once it is withdrawn, since registry dh is gone",
        ),
    ] {
        assert_eq!(fate(status.clone(), used, registry), expected, "{status}");
    }
}
