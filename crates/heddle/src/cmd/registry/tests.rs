use clap::Parser as _;
use heddle_api::well_known::{APPROVED_ANNOTATION, SYNC_ANNOTATION};
use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};
use crate::failure::exit_code;

const REGISTRIES: &str = "/apis/heddle.dev/v1alpha1/registries";
const RUNS: &str = "/apis/heddle.dev/v1alpha1/syncruns";
const SECRETS: &str = "/api/v1/namespaces/heddle-system/secrets";

#[derive(clap::Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// Runs `heddle registry …` with `input` on standard input, and answers with the exit code and both outputs.
async fn run(server: &StandIn, line: &str, input: &'static str) -> (u8, String, String) {
    let words = ["registry"].into_iter().chain(line.split(' '));
    let command = match Line::try_parse_from(words) {
        Ok(Line { command }) => command,
        Err(error) => return (2, String::new(), error.to_string()),
    };
    let screen = Screen::default();
    let (remote, mut terminal) = (server.remote(), screen.terminal());
    let read = |_: &str| Ok(input.as_bytes().to_vec());
    let world = World {
        clock: heddle_rt::Clock::simulated("2026-01-02T00:00:00Z".parse().unwrap()),
        ..world()
    };
    let outcome = match command {
        Command::Ls(args) => {
            list::list(&args, CommandContext::new(&remote, &world, &mut terminal)).await
        }
        Command::Add(args) => match args.wanted(read) {
            Ok(wanted) => add::add(&args, wanted, &remote, &mut terminal).await,
            Err(error) => Err(error),
        },
        Command::Sync(args) => {
            sync::sync(&args, CommandContext::new(&remote, &world, &mut terminal)).await
        }
        Command::Approve(args) => approve::approve(&args, &remote, &mut terminal).await,
    };
    let (code, error) = match outcome {
        Ok(()) => (0, String::new()),
        Err(error) => (exit_code(&error), format!("error: {error:#}\n")),
    };
    (code, screen.out(), format!("{}{error}", screen.err()))
}

fn registry(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry",
        "metadata": {"name": name, "uid": "u", "resourceVersion": "7", "annotations": {"team": "a"}},
        "spec": {"type": "dockerhub"}, "status": status,
    })
}

fn written(server: &StandIn, method: &Method) -> Vec<(String, Value)> {
    let asked = server.asked();
    let of = asked
        .iter()
        .filter(|asked| asked.line.starts_with(method.as_str()));
    of.map(|asked| (asked.line.clone(), asked.json())).collect()
}

#[tokio::test]
async fn the_list_says_in_one_word_how_each_registry_is() {
    let server = StandIn::start().await;
    let unreachable = json!([
        {"type": "Reachable", "status": "False", "reason": "Unreachable", "message": "connection refused"},
        {"type": "Ready", "status": "False", "reason": "Unreachable", "message": "connection refused"},
    ]);
    let mut going = registry("old", &json!({}));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let items = [
        registry(
            "dh",
            &json!({
                "conditions": [{"type": "Ready", "status": "True"}], "liveBundleCount": 12, "markedBundleCount": 1,
                "lastSuccess": "2026-01-01T23:57:00Z",
            }),
        ),
        registry(
            "lab",
            &json!({"conditions": unreachable, "liveBundleCount": 3, "consecutiveFailures": 4}),
        ),
        registry("new", &Value::Null),
        going,
    ];
    server.answers(
        &format!("GET {REGISTRIES}"),
        200,
        &json!({"metadata": {}, "items": items}),
    );
    let (code, out, _) = run(&server, "ls", "").await;
    assert_eq!(code, 0);
    insta::assert_snapshot!(out, @r"
    NAME   TYPE        READY         LIVE   MARKED   FAILURES   LAST SUCCESS
    dh     dockerhub   True          12     1        0          3 min ago
    lab    dockerhub   Unreachable   3      0        4          never
    new    dockerhub   Unknown       0      0        0          never
    old    dockerhub   Removing      0      0        0          never
    ");
    let (_, out, _) = run(&server, "ls -o json", "").await;
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report[1]["message"], "connection refused");
    assert_eq!(report[0]["lastSuccess"], "2026-01-01T23:57:00Z");
}

#[tokio::test]
async fn a_registry_is_added_with_its_secret_and_tried_before() {
    let server = StandIn::start().await;
    server.answers(&format!("POST {REGISTRIES}"), 201, &json!({}));
    server.answers(&format!("POST {SECRETS}"), 201, &json!({}));
    let line = "add lab --type apiv2 --url https://r.example --org o --allow .*-apb --deny x --tag v1 --named a:v1.0 \
                --image b --username ann --password-stdin --skip-verify-tls --refresh 60";
    let (code, out, err) = run(&server, line, "s3cret\n").await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, "secret/lab-registry added\nregistry/lab added\n");
    let spec = json!({
        "type": "apiv2", "url": "https://r.example", "org": "o", "whiteList": [".*-apb"], "blackList": ["x"],
        "tags": {"default": "v1", "named": [{"image": "a", "tag": "v1.0"}]}, "images": ["b"],
        "authSecretName": "lab-registry", "skipVerifyTLS": true, "refreshIntervalSeconds": 60,
    });
    let posts = written(&server, &Method::POST);
    let lines: Vec<&str> = posts
        .iter()
        .map(|(line, _)| line.split('?').next().unwrap())
        .collect();
    let registries = format!("POST {REGISTRIES}");
    assert_eq!(
        lines,
        [&registries, &format!("POST {SECRETS}"), &registries]
    );
    assert!(posts[0].0.contains("dryRun=All"), "{}", posts[0].0);
    assert!(!posts[2].0.contains("dryRun"), "{}", posts[2].0);
    assert_eq!(posts[2].1["spec"], spec);
    assert_eq!(
        posts[1].1["data"],
        json!({"username": "YW5u", "password": "czNjcmV0"})
    );
}

#[tokio::test]
async fn what_the_server_refuses_leaves_no_secret_behind() {
    let server = StandIn::start().await;
    let refusal = json!({"kind": "Status", "message": "spec.url: too long"});
    server.answers(&format!("POST {REGISTRIES}"), 422, &refusal);
    let (code, _, err) = run(&server, "add dh --type quay --allow .* --token-stdin", "t").await;
    assert_eq!(code, 1);
    assert!(err.contains("spec.url: too long"), "{err}");
    assert_eq!(written(&server, &Method::POST).len(), 1);
}

#[tokio::test]
async fn an_existing_registry_is_a_conflict_unless_it_is_to_be_replaced() {
    let server = StandIn::start().await;
    let one = format!("{REGISTRIES}/dh");
    server.answers(&format!("GET {one}"), 200, &registry("dh", &json!({})));
    server.answers(&format!("PUT {one}"), 200, &json!({}));
    let (code, _, err) = run(&server, "add dh --type dockerhub --allow .*", "").await;
    assert_eq!(code, 4);
    assert!(err.contains("--replace"), "{err}");
    assert_eq!(written(&server, &Method::PUT), []);
    let (code, out, _) = run(&server, "add dh --type dockerhub --allow .* --replace", "").await;
    assert_eq!((code, out.as_str()), (0, "registry/dh replaced\n"));
    let (_, object) = written(&server, &Method::PUT).pop().unwrap();
    assert_eq!(object["metadata"]["resourceVersion"], "7");
    assert_eq!(object["metadata"]["annotations"], json!({"team": "a"}));
    assert_eq!(
        object["spec"],
        json!({"type": "dockerhub", "whiteList": [".*"]})
    );
}

#[tokio::test]
async fn an_old_file_adds_all_its_registries_with_warnings() {
    let server = StandIn::start().await;
    server.answers(&format!("POST {REGISTRIES}"), 201, &json!({}));
    let text =
        "registry:\n  - {name: a, type: quay, white_list: ['.*']}\n  - {name: b, type: mock}\n";
    let (code, out, err) = run(&server, "add -f old.yaml", text).await;
    assert_eq!((code, out.as_str()), (0, "registry/a added\n"));
    assert!(
        err.contains("line 3: registry[1].type mock is dropped"),
        "{err}"
    );
    let only_mock = "registry:\n  - {name: b, type: mock}\n";
    let (code, _, err) = run(&server, "add -f old.yaml", only_mock).await;
    assert_eq!(code, 2, "{err}");
}

#[tokio::test]
async fn a_wrong_command_line_is_refused_before_anything_is_sent() {
    let server = StandIn::start().await;
    for (line, part) in [
        ("add lab --type apiv2 --allow .*", "needs --url"),
        ("add lab --type helm --url x --allow .*", "needs --runner"),
        ("add lab --type quay --runner x.io/r", "no other has one"),
        ("add lab --type nexus", "possible values"),
        ("add lab", "--type"),
        ("add Lab --type quay", "is no name for a registry"),
        ("add lab --type quay --allow *", "is no regular expression"),
        ("add lab --type quay --named hello", "write IMAGE:TAG"),
        ("add lab --type quay --username ann", "--password-stdin"),
        (
            "add lab --type quay --token-stdin",
            "standard input is empty",
        ),
        ("add lab -f x", "cannot be used with"),
        ("add -f x --org o", "cannot be used with"),
    ] {
        let (code, _, err) = run(&server, line, "").await;
        assert_eq!(code, 2, "{line}: {err}");
        assert!(err.contains(part), "{line}: {err}");
    }
    assert_eq!(server.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn a_registry_that_offers_nothing_is_warned_about() {
    let server = StandIn::start().await;
    server.answers(&format!("POST {REGISTRIES}"), 201, &json!({}));
    let (_, _, err) = run(&server, "add dh --type quay --deny x", "").await;
    assert!(
        err.contains("a list of what is denied allows nothing"),
        "{err}"
    );
    let (_, _, err) = run(&server, "add dh --type quay --named a:v1", "").await;
    assert_eq!(err, "");
}

fn answered(request: &str, asked: &str, rest: &Value) -> Value {
    let mut object = registry("dh", rest);
    object["status"]["answeredRequest"] = json!(request);
    object["status"]["lastSyncRun"] = json!("run-1");
    object["metadata"]["annotations"][SYNC_ANNOTATION] = json!(asked);
    object
}

fn sync_run(completed: &Value) -> Value {
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "SyncRun", "metadata": {"name": "run-1"},
        "spec": {"registry": "dh", "cause": "manual"},
        "status": {
            "finishedAt": "2026-01-02T00:00:00Z", "present": 12, "absent": 1, "unknown": 1, "added": 2, "marked": 1,
            "conditions": [completed], "errors": [{"image": "o/x:latest", "message": "503"}],
        },
    })
}

#[tokio::test]
async fn a_reading_is_asked_for_with_a_value_of_its_own() {
    let server = StandIn::start().await;
    let one = format!("{REGISTRIES}/dh");
    server.answers(&format!("GET {one}"), 200, &registry("dh", &json!({})));
    server.answers(&format!("PATCH {one}"), 200, &registry("dh", &json!({})));
    let (code, out, _) = run(&server, "sync dh", "").await;
    assert_eq!(code, 0);
    assert!(out.contains("is asked for"), "{out}");
    let (_, patch) = written(&server, &Method::PATCH).pop().unwrap();
    let value = patch["metadata"]["annotations"][SYNC_ANNOTATION]
        .as_str()
        .unwrap();
    assert!(value.starts_with("2026-01-02T00:00:0"), "{value}");
    let (code, _, err) = run(&server, "sync other", "").await;
    assert_eq!(code, 3, "{err}");
}

#[tokio::test]
async fn waiting_goes_on_until_the_request_or_a_later_one_is_answered() {
    let server = StandIn::start().await;
    let get = format!("GET {REGISTRIES}/dh");
    let suspicion = json!({"suspicion": {"id": "s1", "count": 9, "readings": 1}});
    server.answers(&get, 200, &registry("dh", &json!({})));
    server.answers(
        &format!("PATCH {REGISTRIES}/dh"),
        200,
        &registry("dh", &json!({})),
    );
    server.answers(&get, 200, &answered("earlier", "ours", &json!({})));
    server.answers(&get, 200, &answered("later", "later", &suspicion));
    let run_line = format!("GET {RUNS}/run-1");
    let mut going =
        sync_run(&json!({"type": "Completed", "status": "Unknown", "reason": "Running"}));
    going["status"]["finishedAt"] = Value::Null;
    server.answers(&run_line, 200, &going);
    server.answers(
        &run_line,
        200,
        &sync_run(&json!({"type": "Completed", "status": "True"})),
    );
    let (code, out, err) = run(&server, "sync dh --wait", "").await;
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(out, @r"
    registry dh is read: 12 present, 1 absent, 1 unknown, 2 added, 0 updated, 1 marked, 0 unmarked
      o/x:latest: 503
    ");
    assert!(err.contains("9 bundles disappeared at once"), "{err}");
}

#[tokio::test]
async fn a_reading_that_failed_ends_with_its_reason_and_one_that_never_comes_in_time() {
    let server = StandIn::start().await;
    let get = format!("GET {REGISTRIES}/dh");
    let unreachable = json!({"conditions": [
        {"type": "Reachable", "status": "False", "reason": "Unreachable", "message": "connection refused"},
    ]});
    server.answers(
        &format!("PATCH {REGISTRIES}/dh"),
        200,
        &registry("dh", &json!({})),
    );
    server.answers(&get, 200, &answered("x", "x", &unreachable));
    let failed = sync_run(&json!({"type": "Completed", "status": "False", "reason": "Failed"}));
    server.answers(&format!("GET {RUNS}/run-1"), 200, &failed);
    let (code, out, err) = run(&server, "sync dh --wait -o json", "").await;
    assert_eq!(code, 1);
    assert!(
        err.contains("could not be read: Unreachable: connection refused"),
        "{err}"
    );
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["state"], &report["present"]),
        (&json!("failed"), &json!(12))
    );

    let server = StandIn::start().await;
    server.answers(&get, 200, &registry("dh", &json!({})));
    server.answers(
        &format!("PATCH {REGISTRIES}/dh"),
        200,
        &registry("dh", &json!({})),
    );
    let (code, _, err) = run(&server, "sync dh --wait --timeout 0", "").await;
    assert_eq!(code, 7);
    assert!(err.contains("the request stands"), "{err}");
}

#[tokio::test]
async fn only_a_suspicion_can_be_approved_and_only_that_one() {
    let server = StandIn::start().await;
    let one = format!("{REGISTRIES}/dh");
    server.answers(&format!("GET {one}"), 200, &registry("dh", &json!({})));
    let suspicion = json!({"suspicion": {"id": "s1", "count": 9, "readings": 2}});
    server.answers(&format!("GET {one}"), 200, &registry("dh", &suspicion));
    server.answers(&format!("PATCH {one}"), 200, &registry("dh", &suspicion));
    let (code, _, err) = run(&server, "approve dh", "").await;
    assert_eq!(code, 1);
    assert!(err.contains("nothing is suspected"), "{err}");
    let (code, out, _) = run(&server, "approve dh", "").await;
    assert_eq!(code, 0);
    assert!(
        out.contains("9 bundles of registry dh will be withdrawn"),
        "{out}"
    );
    let (_, patch) = written(&server, &Method::PATCH).pop().unwrap();
    assert_eq!(
        patch,
        json!({"metadata": {"annotations": {APPROVED_ANNOTATION: "s1"}}})
    );
}
