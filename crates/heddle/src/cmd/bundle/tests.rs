use clap::Parser as _;
use heddle_api::well_known::{FINALIZER, WITHDRAWN_ANNOTATION};
use serde_json::{Value, json};

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};
use crate::failure::exit_code;

const API: &str = "/apis/heddle.dev/v1alpha1";

#[derive(clap::Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

async fn run(server: &StandIn, line: &str) -> (u8, String, String) {
    let words = ["bundle"].into_iter().chain(line.split(' '));
    let Line { command } = Line::parse_from(words);
    let screen = Screen::default();
    let (remote, mut terminal) = (server.remote(), screen.terminal());
    let world = World {
        clock: heddle_rt::Clock::simulated("2026-01-02T00:00:00Z".parse().unwrap()),
        ..world()
    };
    let outcome = match command {
        Command::Init(args) => make::init(&args, &mut terminal),
        Command::Lint(args) => make::lint(&args, &mut terminal),
        Command::Push(args) => push::push(&args, &world, &mut terminal).await,
        Command::Ls(args) => {
            list::list(&args, CommandContext::new(&remote, &world, &mut terminal)).await
        }
        Command::Withdraw(args) => {
            withdraw::withdraw(&args, CommandContext::new(&remote, &world, &mut terminal)).await
        }
        Command::Offer(args) => {
            withdraw::offer(&args, CommandContext::new(&remote, &world, &mut terminal)).await
        }
        Command::Delete(args) => delete::delete(&args, &remote, &mut terminal).await,
    };
    let (code, error) = match outcome {
        Ok(()) => (0, String::new()),
        Err(error) => (exit_code(&error), format!("error: {error:#}\n")),
    };
    (code, screen.out(), format!("{}{error}", screen.err()))
}

fn bundle(name: &str, repository: &str, track: &str, id: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Bundle",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7", "finalizers": [FINALIZER, "other"],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"registry": "dh", "repository": repository, "track": track, "serviceID": id}, "status": status,
    })
}

fn live() -> Value {
    let status = json!({
        "phase": "Live", "currentRevision": "rev-1", "bundleVersion": "1.1.0",
        "conditions": [{"type": "Offered", "status": "True", "lastTransitionTime": "2026-01-01T23:00:00Z"}],
    });
    bundle(
        "bundle-1",
        "org/hello-apb",
        "latest",
        "aaaaaaaa-1111",
        &status,
    )
}

fn marked(reason: &str) -> Value {
    let status = json!({
        "phase": "Marked", "currentRevision": "rev-1", "bundleVersion": "1.0.0",
        "mark": {"reason": reason, "since": "2026-01-01T12:00:00Z"},
    });
    bundle(
        "bundle-2",
        "org/hello-apb",
        "v1.0",
        "aaaaaaaa-2222",
        &status,
    )
}

async fn server(bundles: &[Value], instances: &[Value], bindings: &[Value]) -> StandIn {
    let server = StandIn::start().await;
    let revision = json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "BundleRevision", "metadata": {"name": "rev-1"},
        "spec": {
            "bundle": "bundle-1", "registry": "dh", "image": "i", "manifestDigest": "sha256:1", "configDigest": "sha256:2",
            "description": {"name": "hello"},
        },
    });
    let list = |items: &[Value]| json!({"metadata": {}, "items": items});
    for (kind, items) in [
        ("bundles", bundles),
        ("bundlerevisions", std::slice::from_ref(&revision)),
        ("serviceinstances", instances),
        ("servicebindings", bindings),
    ] {
        server.answers(&format!("GET {API}/{kind}"), 200, &list(items));
    }
    for bundle in bundles {
        let name = bundle["metadata"]["name"].as_str().unwrap();
        server.answers(&format!("PATCH {API}/bundles/{name}"), 200, bundle);
        server.answers(&format!("DELETE {API}/bundles/{name}"), 200, bundle);
    }
    server
}

fn instance(id: &str, service: &str) -> Value {
    json!({
        "metadata": {"name": id, "namespace": "team-a"},
        "spec": {"instanceID": id, "serviceID": service, "revisionRef": {"name": "rev-1", "digest": "d", "bundleVersion": "1.0.0"}},
    })
}

fn patches(server: &StandIn) -> Vec<Value> {
    let asked = server.asked();
    let of = asked.iter().filter(|asked| asked.line.starts_with("PATCH"));
    of.map(|asked| asked.json()).collect()
}

#[tokio::test]
async fn the_list_says_what_is_offered_and_why_something_is_not() {
    let rejected = json!({"phase": "Live", "conditions": [
        {"type": "Offered", "status": "False", "reason": "NoValidRevision", "lastTransitionTime": "2026-01-01T23:59:00Z"},
    ]});
    let broken = bundle(
        "bundle-3",
        "org/broken-apb",
        "latest",
        "bbbbbbbb-3333",
        &rejected,
    );
    let stale = json!({"phase": "Live", "conditions": [
        {"type": "Offered", "status": "True"},
        {"type": "Stale", "status": "True", "lastTransitionTime": "2026-01-01T22:00:00Z"},
    ]});
    let old = bundle("bundle-4", "org/old-apb", "latest", "cccccccc-4444", &stale);
    let fine = json!({"phase": "Live", "conditions": [{"type": "Offered", "status": "True"}]});
    let twin = bundle("bundle-5", "org/twin", "latest", "dddddddd-5555", &fine);
    let bundles = [live(), marked("TagRemoved"), broken, old, twin];
    let server = server(&bundles, &[], &[]).await;
    let why = "Bundle bundle-9, which is older, has the same id";
    let standings = json!({
        "bundle-1": {"name": "dh-hello", "leftOut": null},
        "bundle-2": {"name": "dh-hello-v1-0", "leftOut": null},
        "bundle-5": {"name": null, "leftOut": why},
    });
    server.answers("GET /heddle/v1/catalog/bundles", 200, &standings);
    let (code, out, _) = run(&server, "ls").await;
    assert_eq!(code, 0);
    insta::assert_snapshot!(out, @r"
    NAME            SERVICE    REGISTRY   IMAGE                   PHASE    VERSION   REASON            SINCE
    broken-apb      bbbbbbbb   dh         org/broken-apb:latest   Live     <none>    NoValidRevision   60 s
    dh-hello        aaaaaaaa   dh         org/hello-apb:latest    Live     1.1.0     <none>            60 min
    dh-hello-v1-0   aaaaaaaa   dh         org/hello-apb:v1.0      Marked   1.0.0     TagRemoved        12 h
    old-apb         cccccccc   dh         org/old-apb:latest      Live     <none>    Stale             2 h
    twin            dddddddd   dh         org/twin:latest         Live     <none>    LeftOut           24 h
    ");
    let (_, out, _) = run(&server, "ls -o json").await;
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report[4]["leftOut"], why);
    let (_, out, _) = run(&server, "ls --marked -o json").await;
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report.as_array().unwrap().len(), 1);
    assert_eq!(report[0]["bundle"], "bundle-2");
    let (_, out, err) = run(&server, "ls --registry other").await;
    assert_eq!(out, "");
    assert!(err.contains("no bundles"), "{err}");
}

#[tokio::test]
async fn a_bundle_is_found_by_every_name_it_has_and_never_guessed() {
    let server = server(&[live(), marked("TagRemoved")], &[], &[]).await;
    let catalog = json!({"services": [{"id": "aaaaaaaa-1111", "name": "hello-2"}, {"id": "x", "name": "shop"}]});
    server.answers("GET /v2/catalog", 200, &catalog);
    for word in [
        "bundle-1",
        "aaaaaaaa-1111",
        "aaaaaaaa-1",
        "org/hello-apb:latest",
        "hello-2",
    ] {
        let (code, out, err) = run(&server, &format!("withdraw {word}")).await;
        assert_eq!(code, 0, "{word}: {err}");
        assert!(
            out.starts_with("hello (org/hello-apb:latest) is withdrawn"),
            "{word}: {out}"
        );
    }
    for (word, code, part) in [
        (
            "hello",
            2,
            "bundle-1 (org/hello-apb:latest), bundle-2 (org/hello-apb:v1.0)",
        ),
        ("aaaaaaaa", 2, "means several bundles"),
        ("org/hello-apb", 2, "means several bundles"),
        ("aaaa", 3, "there is no bundle"),
        ("shop", 3, "service of an Application"),
    ] {
        let (found, _, err) = run(&server, &format!("withdraw {word}")).await;
        assert_eq!(found, code, "{word}: {err}");
        assert!(err.contains(part), "{word}: {err}");
    }
}

#[tokio::test]
async fn withdrawing_says_who_still_uses_it_and_offering_takes_it_back() {
    let binding = json!({
        "metadata": {"name": "web", "namespace": "team-a"}, "spec": {"bindingID": "web", "serviceID": "aaaaaaaa-1111"},
    });
    let instances = [
        instance("orders", "aaaaaaaa-1111"),
        instance("other", "zzz"),
    ];
    let server_used = server(&[live()], &instances, &[binding]).await;
    let (_, out, _) = run(&server_used, "withdraw bundle-1").await;
    assert!(
        out.contains("it stays for 1 instance and 1 binding"),
        "{out}"
    );
    assert_eq!(
        patches(&server_used),
        [json!({"metadata": {"annotations": {WITHDRAWN_ANNOTATION: "true"}}})]
    );

    let mut withdrawn = marked("Admin");
    withdrawn["metadata"]["annotations"] = json!({WITHDRAWN_ANNOTATION: "true"});
    let server_marked = server(&[withdrawn], &[], &[]).await;
    let (code, out, _) = run(&server_marked, "offer bundle-2").await;
    assert_eq!(code, 0);
    assert!(out.contains("is offered again"), "{out}");
    assert_eq!(
        patches(&server_marked),
        [json!({"metadata": {"annotations": {WITHDRAWN_ANNOTATION: null}}})]
    );
}

#[tokio::test]
async fn what_was_not_withdrawn_by_hand_cannot_be_offered_by_hand() {
    let server = server(&[live(), marked("TagRemoved")], &[], &[]).await;
    let (code, out, _) = run(&server, "offer bundle-1").await;
    assert_eq!(code, 0);
    assert!(out.contains("is offered already"), "{out}");
    let (code, _, err) = run(&server, "offer bundle-2").await;
    assert_eq!(code, 1);
    assert!(
        err.contains("was not withdrawn by hand: TagRemoved"),
        "{err}"
    );
    assert_eq!(patches(&server), Vec::<Value>::new());
}

#[tokio::test]
async fn a_bundle_in_use_is_deleted_only_with_its_orphans_named() {
    let unreadable = json!({"metadata": {"name": "odd", "namespace": "team-b"}, "spec": {}});
    let instances = [
        instance("orders", "aaaaaaaa-1111"),
        instance("other", "zzz"),
        unreadable,
    ];
    let server = server(&[live()], &instances, &[]).await;
    let (code, _, err) = run(&server, "delete bundle-1").await;
    assert_eq!(code, 2);
    assert!(err.contains("--force"), "{err}");
    let (code, _, err) = run(&server, "delete bundle-1 --force").await;
    assert_eq!(code, 4);
    assert!(err.contains("hello (org/hello-apb:latest) is in use by 2 instances: instance team-a/orders, instance team-b/odd"), "{err}");
    assert!(!server.lines().iter().any(|line| line.starts_with("DELETE")));
    let (code, out, err) = run(&server, "delete bundle-1 --force --orphan").await;
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(out, @r"
    hello (org/hello-apb:latest) is being deleted; it goes when its finalizers are gone
      instance team-a/orders cannot be operated any more
      instance team-b/odd cannot be operated any more
    ");
    assert!(err.contains("comes back with the next reading"), "{err}");
    let deletion = server
        .asked()
        .into_iter()
        .find(|asked| asked.line.starts_with("DELETE"))
        .unwrap();
    assert_eq!(deletion.json()["preconditions"]["uid"], "uid-bundle-1");
    let release = json!({"metadata": {"uid": "uid-bundle-1", "resourceVersion": "7", "finalizers": ["other"]}});
    assert_eq!(patches(&server), [release]);
}

#[tokio::test]
async fn an_unused_bundle_is_deleted_and_its_finalizer_left_to_the_controller() {
    let server = server(&[marked("TagRemoved")], &[], &[]).await;
    let (code, out, err) = run(&server, "delete bundle-2 --force").await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.starts_with("hello (org/hello-apb:v1.0) is being deleted"),
        "{out}"
    );
    assert_eq!(patches(&server), Vec::<Value>::new());
}

#[tokio::test]
async fn a_bundle_that_nothing_else_holds_is_gone_once_it_is_released() {
    let mut held = live();
    held["metadata"]["finalizers"] = json!([FINALIZER]);
    let server = server(&[held], &[instance("orders", "aaaaaaaa-1111")], &[]).await;
    let (code, out, _) = run(&server, "delete bundle-1 --force --orphan").await;
    assert_eq!(code, 0);
    assert!(
        out.starts_with("hello (org/hello-apb:latest) is deleted\n"),
        "{out}"
    );
}
