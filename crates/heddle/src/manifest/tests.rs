//! What people write, and what we make of it.

use super::*;

fn names(text: &str) -> Vec<String> {
    let documents = parse("in.yaml", text).unwrap();
    documents
        .iter()
        .map(|document| format!("{}/{}", document.kind(), document.name()))
        .collect()
}

fn refusal(text: &str) -> String {
    format!("{:#}", parse("in.yaml", text).unwrap_err())
}

#[test]
fn documents_are_split_at_separators_and_empty_ones_are_skipped() {
    let text = "---\n# only a comment\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n--- \napiVersion: v1\nkind: Secret\nmetadata:\n  name: b\n---\n";
    assert_eq!(names(text), ["Namespace/a", "Secret/b"]);
}

#[test]
fn a_separator_inside_block_text_is_text() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n    one\n    ---\n    two\n";
    let documents = parse("in.yaml", text).unwrap();
    assert_eq!(documents[0].object["data"]["text"], "one\n---\ntwo\n");
}

#[test]
fn lists_are_taken_apart_also_when_nested() {
    let text = r#"{"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"v1","kind":"SecretList","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}]},
        {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}]}"#;
    assert_eq!(names(text), ["Secret/a", "ConfigMap/b"]);
}

#[test]
fn json_documents_may_follow_each_other() {
    let one = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#;
    assert_eq!(names(&format!("{one}\n{one}")), ["Secret/a", "Secret/a"]);
}

#[test]
fn refusals_name_the_file_the_document_and_the_field() {
    assert_eq!(
        refusal("kind: Secret\nmetadata: {name: a}\n"),
        "in.yaml: apiVersion is missing"
    );
    assert_eq!(
        refusal("apiVersion: v1\nkind: Secret\n"),
        "in.yaml: Secret has no metadata.name"
    );
    assert_eq!(
        refusal("- 1\n- 2\n"),
        "in.yaml: expected an object with apiVersion, kind and metadata"
    );
    let second = refusal("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\nkind: x\n");
    assert_eq!(second, "in.yaml, document 2: apiVersion is missing");
    let broken = refusal("apiVersion: v1\n---\nkind: [\n");
    assert!(
        broken.starts_with("in.yaml is not valid YAML (in the document that starts on line 2)"),
        "{broken}"
    );
    assert!(refusal("{\"kind\": ").starts_with("in.yaml is not valid JSON"));
}

#[test]
fn depth_is_bounded_in_both_notations() {
    assert!(refusal(&format!("{{\"a\":{}", "[".repeat(10_000))).contains("recursion limit"));
    assert!(parse("in.yaml", &format!("a: {}", "[".repeat(10_000))).is_err());
}

#[test]
fn namespaces_and_definitions_come_first_and_the_rest_keeps_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, kind: &str| {
        let text = format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n");
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(folder.path().join(format!("{name}.yaml")), text).unwrap();
    };
    write("a", "Secret");
    write("b", "CustomResourceDefinition");
    write("c", "ConfigMap");
    write("d", "Namespace");
    let documents = read(&[folder.path().display().to_string()]).unwrap();
    let order: Vec<&str> = documents.iter().map(Document::name).collect();
    assert_eq!(order, ["d", "b", "a", "c"]);
}

#[test]
fn an_empty_folder_or_input_is_an_error_not_a_silent_success() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(&[folder.path().display().to_string()]).unwrap_err();
    assert!(error.to_string().starts_with("no .yaml"), "{error}");
}
