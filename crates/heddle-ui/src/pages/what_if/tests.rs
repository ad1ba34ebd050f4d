//! What becomes of what somebody wrote.

use serde_json::json;

use super::*;

fn wanted(manifest: &str, gone: &str) -> WantedChange {
    let sent = json!({"manifest": manifest, "gone": gone, "last": "1000", "ask": "try-1"});
    WantedChange::read(sent.to_string().as_bytes())
}

#[test]
fn a_manifest_and_what_would_be_gone_are_one_question() {
    let yaml = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: orders, namespace: team-a}\nspec: {broker: default}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: team-a}\n---\napiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: default}\n";
    let gone = "trigger/team-a/old\n\neventflow/team-a/f\nnonsense\n";
    let read = ReadChange::of(&wanted(yaml, gone)).unwrap();
    assert_eq!((read.request.apply.len(), read.request.last), (1, 1000));
    let [deleted] = &read.request.delete[..] else {
        panic!("{read:?}")
    };
    assert_eq!((&*deleted.kind, &*deleted.name), ("Trigger", "old"));
    let left_out = read.left_out.join("\n");
    for words in [
        "document 2: ConfigMap c decides nothing",
        "document 3: Broker default names no metadata.namespace",
        "line 3: eventflow/team-a/f is left out",
        "line 4: \"nonsense\" is not KIND/NAMESPACE/NAME",
    ] {
        assert!(left_out.contains(words), "{words}: {left_out}");
    }
    let problem = read.placed("trigger/team-a/orders: its broker does not exist");
    assert_eq!(
        problem,
        "the manifest, document 1: trigger/team-a/orders: its broker does not exist"
    );
    assert_eq!(read.placed("trigger/x/y: z"), "trigger/x/y: z");
}

#[test]
fn what_cannot_be_read_says_where() {
    let fault = ReadChange::of(&wanted("kind: [", "")).unwrap_err();
    assert!(fault.contains("not valid YAML"), "{fault}");
    let fault = ReadChange::of(&wanted("kind: Trigger\nmetadata: {name: a}\n", "")).unwrap_err();
    assert!(fault.contains("apiVersion is missing"), "{fault}");
    assert!(ReadChange::of(&wanted("", " \n")).unwrap().is_empty());
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    assert!(ReadChange::of(&wanted(&long, "")).is_err());
    let nothing = WantedChange::read(b"no json");
    assert!(ReadChange::of(&nothing).unwrap().is_empty());
    assert_eq!(nothing.last(), 10_000);
}

#[test]
fn a_long_manifest_is_not_put_into_an_address() {
    let links = PageLinks::new("");
    assert_eq!(link(&links, "a: b"), "/ui/what-if?manifest=a%3A%20b");
    assert_eq!(
        link(&links, &"x".repeat(LINKED_BYTES_MAX + 1)),
        "/ui/what-if"
    );
}
