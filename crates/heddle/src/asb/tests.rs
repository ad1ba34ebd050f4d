use serde_json::{Value, json};

use super::*;

const EXAMPLE: &str = include_str!("example.yaml");

/// As the proposal for several tags writes it, indented as it stands there.
const NAMED_TAGS: &str = "
    registry:
      - type: dockerhub
        name: dh
        url: https://registry.hub.docker.com
        org: ansibleplaybookbundle
        tag:
          default: latest
          named: 
            - hello-apb: 
              - v1.0
              - v2.0
            - postgres-apb: 
              - v3.9
        white_list:
          - '.*-apb$'
";

fn refused(text: &str) -> String {
    import(text).unwrap_err().to_string()
}

/// A registry with these lines, each indented already.
fn registry(lines: &str) -> String {
    format!("registry:\n  - name: a\n    type: dockerhub\n    white_list: ['.*']\n{lines}")
}

fn tags(lines: &str) -> Value {
    let imported = import(&registry(lines)).unwrap();
    json!(imported.registries[0].spec.tags)
}

#[test]
fn the_block_with_named_tags_is_taken_as_it_is() {
    let imported = import(NAMED_TAGS).unwrap();
    assert_eq!(imported.warnings, []);
    let expected = json!([{
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry", "metadata": {"name": "dh"},
        "spec": {
            "type": "dockerhub", "url": "https://registry.hub.docker.com", "org": "ansibleplaybookbundle",
            "tags": {"default": "latest", "named": [
                {"image": "hello-apb", "tag": "v1.0"},
                {"image": "hello-apb", "tag": "v2.0"},
                {"image": "postgres-apb", "tag": "v3.9"},
            ]},
            "whiteList": [".*-apb$"],
        },
    }]);
    assert_eq!(json!(imported.manifests()), expected);
}

#[test]
fn a_whole_configuration_becomes_registries_and_secrets() {
    let imported = import(EXAMPLE).unwrap();
    let secret = |name: &str, data: Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": "heddle-system"}, "data": data,
        })
    };
    let registry = |name: &str, mut spec: Value| {
        spec["refreshIntervalSeconds"] = json!(630);
        json!({"apiVersion": "heddle.dev/v1alpha1", "kind": "Registry", "metadata": {"name": name}, "spec": spec})
    };
    let expected = [
        secret(
            "docker-registry",
            json!({"username": "YW5u", "password": "czNjcmV0"}),
        ),
        secret("q-registry", json!({"token": "dDBrZW4="})),
        registry(
            "docker",
            json!({
                "type": "dockerhub", "url": "https://registry.hub.docker.com", "org": "acme",
                "tags": {"default": "v3.11"}, "whiteList": [".*-apb$"], "blackList": [".*-beta-apb$"],
                "authSecretName": "docker-registry", "failOnError": true,
            }),
        ),
        registry(
            "internal",
            json!({
                "type": "apiv2", "url": "https://registry.example:5000",
                "tags": {"default": "latest", "select": ["canary"]},
                "images": ["tools/hello-apb", "tools/world-apb"], "whiteList": [".*"],
                "authSecretName": "registry-login", "skipVerifyTLS": true,
            }),
        ),
        registry(
            "charts",
            json!({
                "type": "helm", "url": "https://charts.example", "whiteList": [".*"],
                "runner": "docker.io/acme/runner:latest", "tags": {"default": "latest", "select": ["old"]},
            }),
        ),
        registry(
            "q",
            json!({
                "type": "quay", "org": "acme", "authSecretName": "q-registry",
                "tags": {"default": "stable", "named": [
                    {"image": "hello-apb", "tag": "v1.0"},
                    {"image": "world-apb", "tag": "v1.0"}, {"image": "world-apb", "tag": "v2.0"},
                ]},
            }),
        ),
        registry(
            "proxy",
            json!({
                "type": "apiv2", "url": "registry.example", "blackList": ["secret/.*"], "authSecretName": "proxy-registry",
            }),
        ),
    ];
    let found = imported.manifests();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

#[test]
fn what_becomes_of_a_registry_is_said_key_by_key() {
    let imported = import(EXAMPLE).unwrap();
    let of_registries = imported
        .warnings
        .iter()
        .filter(|warning| warning.key.starts_with("registry") || warning.text.contains("replaced"));
    let lines: Vec<String> = of_registries.map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    line 7: registry[0].user is replaced by Secret `docker-registry` of namespace heddle-system
    line 15: registry[1].type openshift is replaced by apiv2, which speaks to all of these
    line 18: registry[1].auth_type is replaced by authSecretName; copy Secret `registry-login` into namespace heddle-system
    line 25: registry[1].namespaces is dropped: only registries of type local_openshift had namespaces
    line 36: registry[3].token is replaced by Secret `q-registry` of namespace heddle-system
    line 37: registry[3].user is dropped: the token is used
    line 43: registry[3].tag.newest is dropped: known are `default` and `named`
    line 44: registry[4].type registry_proxy is replaced by apiv2, which speaks to all of these
    line 44: registry[4] has no white_list: a list of what is denied allows nothing; nothing is offered without a pattern that allows it
    line 47: registry[4].auth_type is replaced by authSecretName: put what /etc/login.yaml holds into Secret `proxy-registry` of namespace heddle-system, as `username` and `password`
    line 49: registry[4].colour is dropped: nobody knows this key
    line 51: registry[5].type mock is dropped, and registry `pretend` with it: put images into a directory in the OCI layout and `heddle registry add pretend --type oci-layout --url DIRECTORY --allow '.*'`
    line 83: broker.refresh_interval is replaced by refreshIntervalSeconds: 630 of each registry
    ");
}

#[test]
fn every_key_outside_of_registries_is_named() {
    let imported = import(EXAMPLE).unwrap();
    let named: BTreeSet<&str> = imported
        .warnings
        .iter()
        .map(|warning| warning.key.as_str())
        .collect();
    let file: Value = serde_saphyr::from_str(EXAMPLE).unwrap();
    let mut count = 0;
    for section in ["dao", "log", "openshift", "broker"] {
        for key in file[section].as_object().unwrap().keys() {
            assert!(
                named.contains(format!("{section}.{key}").as_str()),
                "{section}.{key}"
            );
            count += 1;
        }
    }
    assert_eq!(count, 30);
    assert!(named.contains("secrets"));
}

#[test]
fn only_a_key_that_the_old_broker_did_not_have_is_unknown() {
    let imported = import(EXAMPLE).unwrap();
    let unknown = imported
        .warnings
        .iter()
        .filter(|warning| warning.text.contains("nobody knows"));
    let unknown: Vec<&str> = unknown.map(|warning| warning.key.as_str()).collect();
    assert_eq!(unknown, ["registry[4].colour"]);
}

#[test]
fn a_tag_can_be_written_in_each_of_its_forms() {
    let latest = json!({"default": "latest"});
    assert_eq!(tags(""), latest);
    assert_eq!(tags("    tag:\n"), latest);
    assert_eq!(tags("    tag: v3.11\n"), json!({"default": "v3.11"}));
    assert_eq!(tags("    tag: '3.11'\n"), json!({"default": "3.11"}));
    assert_eq!(tags("    tag: [a]\n"), json!({"default": "a"}));
    let named = json!({"default": "latest", "named": [{"image": "x", "tag": "a"}, {"image": "x", "tag": "b"}]});
    assert_eq!(tags("    tag: {named: {x: [a, b, a]}}\n"), named);
    assert_eq!(tags("    tag: {named: [{x: a}, {x: b}]}\n"), named);
    assert_eq!(tags("    tag: {named: [{x: [a, b, latest]}]}\n"), named);
    let selected = json!({"default": "latest", "select": ["a", "b"]});
    assert_eq!(tags("    tag: [latest, a, b, a, latest]\n"), selected);
}

#[test]
fn what_is_not_text_is_refused_with_its_place() {
    let tag = |value: &str| refused(&registry(&format!("    tag: {value}\n")));
    assert_eq!(
        tag("3.10"),
        "line 5, column 10: registry[0].tag is read as the number 3.1; quote it to make it text"
    );
    assert_eq!(
        tag("true"),
        "line 5, column 10: registry[0].tag is read as true; quote it to make it text"
    );
    assert_eq!(
        tag("{default: 3}"),
        "line 5, column 20: registry[0].tag.default is read as the number 3; quote it to make it text"
    );
    assert_eq!(
        tag("{named: [{x: [v1, 1.10]}]}"),
        "line 5, column 28: registry[0].tag.named[0].x[1] is read as the number 1.1; quote it to make it text"
    );
    assert_eq!(
        tag("[a, 2]"),
        "line 5, column 14: registry[0].tag[1] is read as the number 2; quote it to make it text"
    );
}

#[test]
fn a_file_that_means_nothing_somewhere_is_refused_as_a_whole() {
    let two = "registry:\n  - {name: a, type: dockerhub}\n  - {name: a, type: quay}\n";
    assert_eq!(
        refused(two),
        "line 3, column 12: there are two registries called `a`"
    );
    let with_type = |word: &str| refused(&format!("registry:\n  - name: a\n    type: {word}\n"));
    assert_eq!(
        with_type("nexus"),
        "line 3, column 11: `nexus` is no type of registry; known are apiv2, dockerhub, quay, rhcc, helm, oci-layout, push"
    );
    assert!(with_type("local_openshift").contains("ImageStreams"));
    assert!(with_type("galaxy").contains("without an image"));
    assert_eq!(
        with_type("apiv2"),
        "line 2, column 5: registry[0]: `a` has no url"
    );
    let pattern =
        "registry:\n  - name: a\n    type: quay\n    white_list:\n      - '.*'\n      - '*-apb'\n";
    assert_eq!(
        refused(pattern),
        "line 6, column 9: registry[0].white_list[1]: `*-apb` is no regular expression: repetition operator missing expression"
    );
    // The old broker's engine knew this, and what reads registries here does not.
    let known_there = r"registry: [{name: a, type: quay, black_list: ['\Qa.b\E']}]";
    assert!(refused(known_there).contains("black_list[0]"));
    for (text, part) in [
        (
            "registry:\n  - name: A\n    type: quay\n",
            "`A` is no name for a registry",
        ),
        ("registry:\n  - type: quay\n", "registry[0] has no name"),
        ("registry:\n  - name: a\n", "`a` has no type"),
        ("registry: {}\n", "registry is a map, and should be a list"),
        ("dao: {type: crd}\n", "there is no `registry:` in it"),
        ("registry: [\n", "not valid YAML"),
        (
            "broker: {refresh_interval: soon}\nregistry: []\n",
            "`soon` is no time",
        ),
        (
            "registry:\n  - {name: a, type: helm, url: 'https://x'}\n",
            "`a` has no runner",
        ),
        (
            "registry:\n  - {name: a, type: quay, user: ann}\n",
            "has a user, but no pass",
        ),
        (
            "registry:\n  - {name: a, type: quay, auth_type: magic}\n",
            "`magic` is unknown",
        ),
        (
            "registry:\n  - {name: a, type: quay, auth_type: secret}\n",
            "auth_name must say which",
        ),
    ] {
        let said = refused(text);
        assert!(said.contains(part), "{text:?} was refused with {said:?}");
    }
}

#[test]
fn times_are_read_as_the_old_broker_read_them() {
    for (text, expected) in [
        ("600s", Some(600)),
        ("10m", Some(600)),
        ("1h30m", Some(5400)),
        ("0s", None),
        ("600", None),
        ("-1s", None),
        ("", None),
        ("999999999h", None),
    ] {
        assert_eq!(seconds(text), expected, "{text:?}");
    }
}
