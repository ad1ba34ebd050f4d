//! The client commands, on the examples people start with.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::harness::{Server, eventually, examples, heddle};

const MAPPING: &str = "applicationmapping.applicationconnector.kyma-project.io/shop";

#[tokio::test]
async fn the_examples_can_be_applied_shown_and_deleted() {
    let server = Server::start().await;
    let folder = examples();
    let applied = server.heddle(&["apply", "-f", &folder]).ok();
    assert!(
        applied.starts_with("namespace/team-a created\n"),
        "namespaces come first: {applied}"
    );
    assert!(
        applied.contains(&format!("{MAPPING} created\n")),
        "{applied}"
    );
    let again = server.heddle(&["apply", "-f", &folder]).ok();
    assert!(
        again.lines().all(|line| line.ends_with(" unchanged")),
        "{again}"
    );

    let table = server.heddle(&["get", "app"]).ok();
    assert!(
        table.starts_with("NAME   READY") && table.contains("\nshop"),
        "{table}"
    );
    let all = server
        .heddle(&["get", "applicationmappings,applications", "-A"])
        .ok();
    assert!(all.contains("NAMESPACE   NAME"), "{all}");
    assert_eq!(
        server
            .heddle(&["get", "am", "-n", "team-a", "-o", "name"])
            .ok(),
        format!("{MAPPING}\n")
    );
    let yaml = server
        .heddle(&["get", "am/shop", "-n", "team-a", "-o", "yaml"])
        .ok();
    assert!(
        yaml.contains("id: 4ad9b1de-6f0c-4ed0-a1d7-21a0a1a2f4b1")
            && !yaml.contains("managedFields"),
        "{yaml}"
    );

    let deleted = server.heddle(&["delete", "-f", &folder]).ok();
    assert!(
        deleted.contains("application.applicationconnector.kyma-project.io/shop deleted\n"),
        "{deleted}"
    );
    // Waiting is the default: nothing is left when the command ends.
    assert_eq!(server.heddle(&["get", "app", "shop"]).code, Some(3));
    assert_eq!(server.heddle(&["get", "namespace", "team-a"]).code, Some(3));
}

#[tokio::test]
async fn what_is_shown_as_yaml_can_be_applied_again() {
    let server = Server::start().await;
    server.heddle(&["apply", "-f", &examples()]).ok();
    // What is shown has a version; a controller that writes the status meanwhile would make it an old one.
    server.until_ready("applications", "shop").await;
    let yaml = server.heddle(&["get", "app", "shop", "-o", "yaml"]).ok();
    let applied = server
        .heddle_with(&["apply", "-f", "-", "--force-conflicts"], &yaml)
        .ok();
    assert!(
        applied.starts_with("application.applicationconnector.kyma-project.io/shop "),
        "{applied}"
    );
}

#[tokio::test]
async fn one_bad_document_does_not_stop_the_others() {
    let server = Server::start().await;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n---\n\
                apiVersion: v1\nkind: Nonsense\nmetadata: {name: two}\n---\n\
                apiVersion: v1\nkind: ConfigMap\nmetadata: {name: three}\ndatta: {}\n---\n\
                apiVersion: v1\nkind: ConfigMap\nmetadata: {name: four}\n";
    let outcome = server.heddle_with(&["apply", "-f", "-"], text);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(
        outcome.out,
        "configmap/one created\nconfigmap/four created\n"
    );
    assert!(
        outcome.err.contains("document 2") && outcome.err.contains("no kind Nonsense in v1"),
        "{}",
        outcome.err
    );
    assert!(
        outcome.err.contains("configmap/three") && outcome.err.contains("datta"),
        "{}",
        outcome.err
    );
    assert!(
        outcome.err.contains("2 of 4 objects could not be applied"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let server = Server::start().await;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dry}\n";
    assert_eq!(
        server
            .heddle_with(&["apply", "-f", "-", "--dry-run"], text)
            .ok(),
        "configmap/dry created (dry run)\n"
    );
    assert_eq!(server.heddle(&["get", "cm", "dry"]).code, Some(3));
    server.heddle_with(&["apply", "-f", "-"], text).ok();
    assert_eq!(
        server.heddle(&["delete", "cm", "dry", "--dry-run"]).ok(),
        "configmap/dry deleted (dry run)\n"
    );
    server.heddle(&["get", "cm", "dry"]).ok();
}

#[tokio::test]
async fn a_field_somebody_else_owns_is_a_conflict_that_can_be_forced() {
    let server = Server::start().await;
    let manifest = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shared}}\ndata: {{k: {value}}}\n"
        )
    };
    let path = "/api/v1/namespaces/default/configmaps/shared?fieldManager=somebody-else";
    let request = http::Request::patch(path).header("content-type", "application/apply-patch+yaml");
    let answer = server
        .admin(request.body(manifest("theirs").into_bytes()).unwrap())
        .await;
    assert!(answer.code.is_success(), "{}", answer.body);

    let refused = server.heddle_with(&["apply", "-f", "-"], &manifest("ours"));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("somebody-else") && refused.err.contains("--force-conflicts"),
        "{}",
        refused.err
    );
    let forced = server
        .heddle_with(
            &["apply", "-f", "-", "--force-conflicts"],
            &manifest("ours"),
        )
        .ok();
    assert_eq!(forced, "configmap/shared configured\n");
}

#[tokio::test]
async fn a_watch_shows_changes_and_survives_a_restart_of_the_server() {
    let mut server = Server::start().await;
    let manifest =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    server
        .heddle_with(&["apply", "-f", "-"], &manifest("first"))
        .ok();
    // A fixed port, so that the watch finds the server again.
    let port = server.control.rsplit_once(':').unwrap().1.to_owned();
    let mut watch = heddle()
        .args(["get", "cm", "-w", "-o", "name"])
        .env("KUBECONFIG", server.kubeconfig())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "configmap/first");
    server
        .heddle_with(&["apply", "-f", "-"], &manifest("second"))
        .ok();
    assert_eq!(lines.next().unwrap(), "configmap/second");
    server.kill();
    server.launch_on(&port).await;
    server
        .heddle_with(&["apply", "-f", "-"], &manifest("third"))
        .ok();
    assert_eq!(
        lines.next().unwrap(),
        "configmap/third",
        "nothing is missed and nothing is shown twice"
    );
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[tokio::test]
async fn deleting_waits_for_finalizers_and_names_who_holds() {
    let server = Server::start().await;
    let text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}\n";
    server.heddle_with(&["apply", "-f", "-"], text).ok();
    let waiting = server.heddle(&["delete", "cm", "held", "--timeout", "2"]);
    assert_eq!(waiting.code, Some(7), "{waiting:?}");
    assert!(waiting.err.contains("example.com/hold"), "{}", waiting.err);
    server
        .heddle_with(
            &["apply", "-f", "-"],
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held}\n",
        )
        .ok();
    eventually("the object to go", async || {
        (server.heddle(&["get", "cm", "held"]).code == Some(3)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn objects_are_chosen_by_label_and_all_of_them_only_when_said() {
    let server = Server::start().await;
    for (name, tier) in [("a", "front"), ("b", "front"), ("c", "back")] {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{tier: {tier}}}}}\n"
        );
        server.heddle_with(&["apply", "-f", "-"], &text).ok();
    }
    let refused = server.heddle(&["delete", "cm"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("--all"), "{}", refused.err);
    server.heddle(&["delete", "cm", "-l", "tier=front"]).ok();
    assert_eq!(
        server.heddle(&["get", "cm", "-o", "name"]).ok(),
        "configmap/c\n"
    );
    server.heddle(&["delete", "cm", "--all"]).ok();
    assert_eq!(server.heddle(&["get", "cm", "-o", "name"]).ok(), "");
}

#[tokio::test]
async fn failures_have_codes_that_scripts_can_use() {
    let mut server = Server::start().await;
    assert_eq!(server.heddle(&["get", "cm", "nobody"]).code, Some(3));
    assert_eq!(server.heddle(&["get", "nonsense"]).code, Some(3));
    assert_eq!(server.heddle(&["get", "cm", "../../secrets"]).code, Some(2));
    let incomplete = server.heddle(&["get"]);
    assert_eq!(incomplete.code, Some(2));
    assert!(!incomplete.err.contains("--kubeconfig"), "{incomplete:?}");
    for words in [
        &["catalog", "-n", "nobody"][..],
        &["provision", "x", "-n", "nobody"],
        &["explain", "instance", "x", "-n", "nobody"],
    ] {
        let nowhere = server.heddle(words);
        assert_eq!(nowhere.code, Some(3), "{nowhere:?}");
        assert!(nowhere.err.contains("no namespace nobody"), "{nowhere:?}");
    }
    assert_eq!(
        server
            .heddle(&["get", "cm", "nobody", "--ignore-not-found"])
            .code,
        Some(0)
    );
    assert_eq!(server.heddle(&["get", "cm", "-l", "a in ("]).code, Some(1));
    server.kill();
    let lost = server.heddle(&["get", "cm"]);
    assert_eq!(lost.code, Some(6), "{lost:?}");
    assert!(
        lost.err.contains("https://127.0.0.1:") && lost.err.contains("heddle serve"),
        "{}",
        lost.err
    );
    assert_eq!(
        server.heddle(&["version"]).code,
        Some(0),
        "the client knows its own version without a server"
    );
}

#[test]
fn definitions_and_completions_need_no_server() {
    let run =
        |args: &[&str]| crate::harness::Outcome::of(heddle().args(args).output().unwrap()).ok();
    let crds = run(&["crds"]);
    assert_eq!(
        crds.matches("\nkind: CustomResourceDefinition\n").count(),
        crds.matches("---\n").count()
    );
    assert!(crds.contains("name: applications.applicationconnector.kyma-project.io"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).contains("heddle"));
    }
}
