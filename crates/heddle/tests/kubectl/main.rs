//! kubectl against `heddle serve`: what people have installed must simply work.
//!
//! Asked for with `--features kubectl-tests` and `HEDDLE_KUBECTL=/path/one:/path/two`; each binary
//! runs the whole story. Asking without naming one is a failure, not a pass.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../e2e/harness.rs"]
mod harness;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::{Outcome, Server, eventually, examples};

const TRIGGER: &str = "apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata:
  name: orders
  labels: {tier: front}
spec:
  broker: default
  subscriber:
    uri: http://127.0.0.1:8080/orders
";

const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
";

/// One kubectl binary and a server for it.
struct Kubectl {
    path: PathBuf,
    server: Server,
    home: tempfile::TempDir,
    minor: u32,
}

impl Kubectl {
    /// Every binary asked for, each with a server of its own.
    async fn all() -> Vec<Self> {
        let paths = std::env::var_os("HEDDLE_KUBECTL").filter(|paths| !paths.is_empty());
        let paths =
            paths.expect("HEDDLE_KUBECTL names the kubectl binaries to test, separated by `:`");
        let mut all = Vec::new();
        for path in std::env::split_paths(&paths) {
            let home = tempfile::tempdir().unwrap();
            let mut kubectl = Self {
                path,
                server: Server::start().await,
                home,
                minor: 0,
            };
            let version: serde_json::Value =
                serde_json::from_str(&kubectl.ok(&["version", "-o", "json"])).unwrap();
            kubectl.minor = version["clientVersion"]["minor"]
                .as_str()
                .unwrap()
                .trim_end_matches('+')
                .parse()
                .unwrap();
            all.push(kubectl);
        }
        all
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        // Caches of other servers must not answer for this one.
        command
            .args(args)
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("HOME", self.home.path());
        command
    }

    fn run(&self, args: &[&str], input: &str) -> Outcome {
        Outcome::fed(self.command(args), input)
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        self.fed(args, "")
    }

    #[track_caller]
    fn fed(&self, args: &[&str], input: &str) -> String {
        let outcome = self.run(args, input);
        assert_eq!(
            outcome.code,
            Some(0),
            "{} {args:?}: {outcome:?}",
            self.path.display()
        );
        outcome.out
    }

    #[track_caller]
    fn refused(&self, args: &[&str], input: &str, words: &[&str]) {
        let outcome = self.run(args, input);
        assert_eq!(
            outcome.code,
            Some(1),
            "{} {args:?}: {outcome:?}",
            self.path.display()
        );
        for word in words {
            assert!(
                outcome.err.contains(word),
                "`{word}` is not in: {}",
                outcome.err
            );
        }
    }
}

#[tokio::test]
async fn apply_creates_changes_and_leaves_alone() {
    for kubectl in Kubectl::all().await {
        for side in [
            &["apply", "-f", "-"][..],
            &["apply", "--server-side", "--force-conflicts", "-f", "-"][..],
        ] {
            kubectl.fed(side, TRIGGER);
            kubectl.fed(side, TRIGGER);
            kubectl.fed(side, &TRIGGER.replace("8080", "9090"));
            assert!(
                kubectl
                    .ok(&["get", "trigger", "orders", "-o", "yaml"])
                    .contains(":9090/orders")
            );
            kubectl.ok(&["delete", "trigger", "orders"]);
        }
        let created = kubectl.fed(&["apply", "-f", "-"], CONFIG_MAP);
        assert_eq!(created, "configmap/settings created\n");
        assert_eq!(
            kubectl.fed(&["apply", "-f", "-"], CONFIG_MAP),
            "configmap/settings unchanged\n"
        );
        assert_eq!(
            kubectl.fed(&["apply", "-f", "-"], &CONFIG_MAP.replace("blue", "red")),
            "configmap/settings configured\n"
        );
        kubectl.ok(&["apply", "-R", "-f", &examples()]);
    }
}

#[tokio::test]
async fn a_field_of_another_manager_is_a_conflict() {
    for kubectl in Kubectl::all().await {
        kubectl.fed(
            &["apply", "--server-side", "--field-manager=first", "-f", "-"],
            CONFIG_MAP,
        );
        let other = CONFIG_MAP.replace("blue", "red");
        kubectl.refused(
            &[
                "apply",
                "--server-side",
                "--field-manager=second",
                "-f",
                "-",
            ],
            &other,
            &["conflict", "first"],
        );
        kubectl.fed(
            &[
                "apply",
                "--server-side",
                "--field-manager=second",
                "--force-conflicts",
                "-f",
                "-",
            ],
            &other,
        );
    }
}

#[tokio::test]
async fn objects_are_shown_in_every_form() {
    for kubectl in Kubectl::all().await {
        kubectl.fed(&["apply", "-f", "-"], TRIGGER);
        let table = kubectl.ok(&["get", "triggers"]);
        assert!(
            table.starts_with("NAME") && table.contains("BROKER") && table.contains("\norders"),
            "{table}"
        );
        assert_eq!(
            kubectl.ok(&["get", "trg", "-o", "name"]),
            "trigger.eventing.knative.dev/orders\n"
        );
        assert_eq!(
            kubectl.ok(&["get", "trigger", "orders", "-o", "jsonpath={.spec.broker}"]),
            "default"
        );
        let object: serde_json::Value =
            serde_json::from_str(&kubectl.ok(&["get", "trigger", "orders", "-o", "json"])).unwrap();
        assert_eq!(object["metadata"]["labels"]["tier"], "front");
        assert!(
            kubectl
                .ok(&["get", "trigger", "orders", "-o", "yaml"])
                .contains("kind: Trigger")
        );
        for args in [
            &["get", "triggers", "-A"][..],
            &["get", "trigger", "-l", "tier in (front)"],
            &["get", "trigger", "--field-selector", "metadata.name=orders"],
        ] {
            assert!(kubectl.ok(args).contains("orders"), "{args:?}");
        }
        let described = kubectl.ok(&["describe", "trigger", "orders"]);
        assert!(
            described.contains("Name:")
                && described.contains("orders")
                && described.contains("Events:"),
            "{described}"
        );
        let resources = kubectl.ok(&["api-resources"]);
        for name in [
            "applications",
            "channels",
            "triggers",
            "configmaps",
            "namespaces",
        ] {
            assert!(resources.contains(name), "{resources}");
        }
        // 1.20 explains from a document that later versions no longer need.
        assert!(
            kubectl
                .ok(&["explain", "trigger.spec.subscriber"])
                .contains("uri")
        );
    }
}

#[tokio::test]
async fn the_server_can_be_asked_where_it_is_and_who_asks() {
    for kubectl in Kubectl::all().await {
        let info = kubectl.ok(&["cluster-info"]);
        assert!(info.contains("is running at"), "{info}");
        let rules = kubectl.ok(&["auth", "can-i", "--list"]);
        assert!(rules.contains("triggers.eventing.knative.dev"), "{rules}");
        assert_eq!(
            kubectl.ok(&["auth", "can-i", "create", "triggers"]).trim(),
            "yes"
        );
        // As old as the review it asks for.
        if kubectl.minor >= 28 {
            let whoami = kubectl.ok(&["auth", "whoami"]);
            assert!(whoami.contains("heddle-admin"), "{whoami}");
        }
    }
}

#[tokio::test]
async fn what_is_no_longer_in_a_manifest_is_pruned() {
    for kubectl in Kubectl::all().await {
        let labelled = |name: &str| {
            let named = CONFIG_MAP.replace("settings", &format!("{name}, labels: {{app: shop}}"));
            format!("{named}---\n")
        };
        let prune = ["apply", "--prune", "-l", "app=shop", "-f", "-"];
        kubectl.fed(&prune, &format!("{}{}", labelled("one"), labelled("two")));
        kubectl.fed(&["apply", "-f", "-"], CONFIG_MAP);
        let pruned = kubectl.fed(&prune, &labelled("one"));
        assert!(pruned.contains("configmap/two pruned"), "{pruned}");
        let left = kubectl.ok(&["get", "cm", "-o", "name"]);
        assert_eq!(left, "configmap/one\nconfigmap/settings\n");
    }
}

#[tokio::test]
async fn a_watch_shows_each_change() {
    for kubectl in Kubectl::all().await {
        kubectl.fed(&["apply", "-f", "-"], CONFIG_MAP);
        let mut watch = kubectl
            .command(&["get", "cm", "-w", "--no-headers"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with("settings"));
        kubectl.fed(
            &["apply", "-f", "-"],
            &CONFIG_MAP.replace("settings", "other"),
        );
        assert!(lines.next().unwrap().starts_with("other"));
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
}

#[tokio::test]
async fn every_kind_of_patch_works_where_a_cluster_takes_it() {
    for kubectl in Kubectl::all().await {
        kubectl.fed(&["apply", "-f", "-"], TRIGGER);
        kubectl.fed(&["apply", "-f", "-"], CONFIG_MAP);
        let uri = |kubectl: &Kubectl| {
            kubectl.ok(&[
                "get",
                "trigger",
                "orders",
                "-o",
                "jsonpath={.spec.subscriber.uri}",
            ])
        };
        kubectl.ok(&[
            "patch",
            "trigger",
            "orders",
            "--type=merge",
            "-p",
            r#"{"spec":{"subscriber":{"uri":"http://127.0.0.1/merge"}}}"#,
        ]);
        assert_eq!(uri(&kubectl), "http://127.0.0.1/merge");
        let json =
            r#"[{"op":"replace","path":"/spec/subscriber/uri","value":"http://127.0.0.1/json"}]"#;
        kubectl.ok(&["patch", "trigger", "orders", "--type=json", "-p", json]);
        assert_eq!(uri(&kubectl), "http://127.0.0.1/json");
        kubectl.refused(
            &["patch", "trigger", "orders", "--type=strategic", "-p", "{}"],
            "",
            &["accepted media types include"],
        );
        kubectl.ok(&[
            "patch",
            "cm",
            "settings",
            "--type=strategic",
            "-p",
            r#"{"data":{"colour":"green"}}"#,
        ]);
        assert_eq!(
            kubectl.ok(&["get", "cm", "settings", "-o", "jsonpath={.data.colour}"]),
            "green"
        );
        kubectl.ok(&["label", "cm", "settings", "tier=back"]);
        kubectl.ok(&["annotate", "cm", "settings", "note=x"]);
        assert!(
            kubectl
                .ok(&["get", "cm", "-l", "tier=back"])
                .contains("settings")
        );
    }
}

#[tokio::test]
async fn replacing_a_stale_object_is_a_conflict() {
    for kubectl in Kubectl::all().await {
        kubectl.fed(&["create", "-f", "-"], CONFIG_MAP);
        let stale = kubectl.ok(&["get", "cm", "settings", "-o", "yaml"]);
        kubectl.ok(&[
            "patch",
            "cm",
            "settings",
            "--type=merge",
            "-p",
            r#"{"data":{"colour":"green"}}"#,
        ]);
        kubectl.refused(&["replace", "-f", "-"], &stale, &["settings", "modified"]);
        let fresh = kubectl
            .ok(&["get", "cm", "settings", "-o", "yaml"])
            .replace("green", "yellow");
        kubectl.fed(&["replace", "-f", "-"], &fresh);
    }
}

#[tokio::test]
async fn waiting_for_conditions_and_for_deletion_works() {
    for kubectl in Kubectl::all().await {
        kubectl.ok(&["apply", "-R", "-f", &examples()]);
        kubectl.ok(&[
            "wait",
            "--for=condition=Ready",
            "application/shop",
            "--timeout=60s",
        ]);
        kubectl.ok(&["delete", "application", "shop"]);
        kubectl.refused(&["get", "application", "shop"], "", &["not found"]);
        // The children go with their owner, shortly after it. (`wait --for=delete` of 1.20 calls
        // an object that is gone already a failure.)
        let channel = [
            "get",
            "channel",
            "shop",
            "-n",
            "kyma-integration",
            "--ignore-not-found",
        ];
        eventually("the channel to go", async || {
            kubectl.ok(&channel).is_empty().then_some(())
        })
        .await;
        kubectl.ok(&["delete", "namespace", "team-a"]);
        kubectl.refused(&["get", "namespace", "team-a"], "", &["not found"]);
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_in_the_servers_words() {
    for kubectl in Kubectl::all().await {
        kubectl.refused(&["get", "nodes"], "", &["nodes"]);
        kubectl.refused(
            &["apply", "-f", "-"],
            &TRIGGER.replace("uri: http", "uri: [http]\n    x: http"),
            &["subscriber"],
        );
        kubectl.refused(
            &["create", "-f", "-"],
            &CONFIG_MAP.replace("settings", "Not_A_Name"),
            &["Not_A_Name"],
        );
        kubectl.refused(&["get", "cm", "-l", "a in ("], "", &["in"]);
        kubectl.ok(&["create", "namespace", "made"]);
        kubectl.ok(&[
            "create",
            "configmap",
            "made",
            "--from-literal=a=b",
            "-n",
            "made",
        ]);
        kubectl.ok(&[
            "create",
            "secret",
            "generic",
            "made",
            "--from-literal=a=b",
            "-n",
            "made",
        ]);
        kubectl.refused(&["create", "namespace", "made"], "", &["already exists"]);
    }
}
