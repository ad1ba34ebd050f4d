use serde_json::{Value, json};

use super::*;
use crate::registry::Registry;

struct Rules {
    registry: Registry,
    chance: Chance,
}

impl Rules {
    fn new() -> Self {
        Self {
            registry: Registry::heddle().unwrap(),
            chance: Chance::seeded(7),
        }
    }

    fn context(&self, api_version: &str, kind: &str) -> Context<'_> {
        Context {
            resource: self.registry.by_kind(api_version, kind).unwrap(),
            now: Timestamp::UNIX_EPOCH,
            chance: &self.chance,
            manager: Manager {
                name: "test".to_owned(),
                api_version: api_version.to_owned(),
                subresource: None,
            },
            validation: FieldValidation::Strict,
        }
    }

    fn application(&self) -> Context<'_> {
        self.context(
            "applicationconnector.kyma-project.io/v1alpha1",
            "Application",
        )
    }
}

fn application(spec: Value) -> Value {
    json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop"}, "spec": spec,
    })
}

fn created(ctx: &Context<'_>, object: Value) -> Value {
    create(ctx, object, Ownership::Track).unwrap()
}

#[test]
fn the_server_alone_says_who_an_object_is() {
    let rules = Rules::new();
    let mut object = application(json!({"description": "a"}));
    object["metadata"]["uid"] = json!("mine");
    object["metadata"]["generation"] = json!(9);
    object["metadata"]["deletionTimestamp"] = json!("2020-01-01T00:00:00Z");
    object["status"] = json!({"conditions": []});
    let object = created(&rules.application(), object);
    assert_ne!(object["metadata"]["uid"], json!("mine"));
    assert_eq!(object["metadata"]["generation"], json!(1));
    assert!(object["metadata"].get("deletionTimestamp").is_none());
    assert!(object.get("status").is_none());
}

#[test]
fn a_generated_name_stays_within_what_a_label_can_hold() {
    let rules = Rules::new();
    let mut object = application(json!({"description": "a"}));
    object["metadata"] = json!({"generateName": "x".repeat(80)});
    let object = created(&rules.application(), object);
    assert_eq!(object::name(&object).len(), 63);
}

#[test]
fn only_a_change_of_what_is_wanted_counts_as_a_generation() {
    let rules = Rules::new();
    let ctx = rules.application();
    let old = created(&ctx, application(json!({"description": "a"})));
    let change = |edit: &dyn Fn(&mut Value), part| {
        let mut new = old.clone();
        edit(&mut new);
        update(&ctx, &old, new, part, Ownership::Track).unwrap()
    };
    let generation =
        |object: Option<Value>| object.map(|object| object["metadata"]["generation"].clone());
    assert_eq!(
        generation(change(
            &|o| o["spec"]["description"] = json!("b"),
            Part::Main
        )),
        Some(json!(2))
    );
    assert_eq!(
        generation(change(
            &|o| o["metadata"]["labels"] = json!({"a": "b"}),
            Part::Main
        )),
        Some(json!(1))
    );
    let status = json!({"observedGeneration": 1});
    assert_eq!(
        generation(change(&|o| o["status"] = status.clone(), Part::Status)),
        Some(json!(1))
    );
    // Each part ignores what belongs to the other.
    assert_eq!(
        generation(change(&|o| o["status"] = status.clone(), Part::Main)),
        None
    );
    assert_eq!(
        generation(change(
            &|o| o["spec"]["description"] = json!("b"),
            Part::Status
        )),
        None
    );
    assert_eq!(
        generation(change(
            &|o| o["metadata"]["labels"] = json!({"a": "b"}),
            Part::Status
        )),
        None
    );
}

#[test]
fn nothing_new_holds_an_object_that_is_being_deleted() {
    let rules = Rules::new();
    let ctx = rules.application();
    let mut object = application(json!({"description": "a"}));
    object["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    let mut old = created(&ctx, object);
    begin_deletion(ctx.resource, &mut old, Timestamp::UNIX_EPOCH);
    assert!(!is_released(ctx.resource, &old));
    let with = |finalizers: Value| {
        let mut new = old.clone();
        new["metadata"]["finalizers"] = finalizers;
        update(&ctx, &old, new, Part::Main, Ownership::Track)
    };
    assert_eq!(
        with(json!(["example.com/a", "example.com/b", "example.com/c"]))
            .unwrap_err()
            .code
            .as_u16(),
        422
    );
    assert!(!is_released(
        ctx.resource,
        &with(json!(["example.com/b"])).unwrap().unwrap()
    ));
    assert!(is_released(
        ctx.resource,
        &with(json!([])).unwrap().unwrap()
    ));
    // Deletion cannot be taken back.
    let mut undeleted = old.clone();
    undeleted["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("deletionTimestamp");
    assert!(
        update(&ctx, &old, undeleted, Part::Main, Ownership::Track)
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_namespace_is_held_until_the_server_lets_it_go() {
    let rules = Rules::new();
    let ctx = rules.context("v1", "Namespace");
    let mut namespace = created(
        &ctx,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
    );
    begin_deletion(ctx.resource, &mut namespace, Timestamp::UNIX_EPOCH);
    assert_eq!(namespace["status"]["phase"], json!("Terminating"));
    let mut emptied = namespace.clone();
    emptied["spec"] = json!({"finalizers": []});
    assert!(
        update(&ctx, &namespace, emptied, Part::Main, Ownership::Track)
            .unwrap()
            .is_none()
    );
    assert!(!is_released(ctx.resource, &namespace));
    finalize_namespace(&mut namespace);
    assert!(is_released(ctx.resource, &namespace));
}

#[test]
fn what_the_server_adds_to_a_namespace_is_owned_by_nobody() {
    let rules = Rules::new();
    let sent = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {}, "status": {},
    });
    let namespace = created(&rules.context("v1", "Namespace"), sent);
    assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
    let managed = &namespace["metadata"]["managedFields"][0]["fieldsV1"];
    let fields: Vec<&String> = managed.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["f:metadata"]);
}

#[test]
fn a_secret_takes_plain_text_and_never_shows_it() {
    let rules = Rules::new();
    let ctx = rules.context("v1", "Secret");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"},
        "stringData": {"password": "open sesame"},
    });
    let secret = created(&ctx, secret);
    assert_eq!(secret["data"]["password"], json!("b3BlbiBzZXNhbWU="));
    assert_eq!(secret["type"], json!("Opaque"));
    assert!(secret.get("stringData").is_none());
    let mut retyped = secret.clone();
    retyped["type"] = json!("kubernetes.io/tls");
    assert_eq!(
        update(&ctx, &secret, retyped, Part::Main, Ownership::Track)
            .unwrap_err()
            .code
            .as_u16(),
        422
    );
}

#[test]
fn unknown_and_doubled_fields_are_refused_warned_of_or_dropped() {
    let rules = Rules::new();
    let check = |validation, expected: std::result::Result<usize, u16>| {
        let ctx = Context {
            validation,
            ..rules.application()
        };
        let mut object = application(json!({"description": "a", "colour": "red"}));
        let outcome = prune(&ctx, &mut object, &["spec.description".to_owned()]);
        assert_eq!(
            outcome
                .map(|warnings| warnings.len())
                .map_err(|r| r.code.as_u16()),
            expected
        );
        if expected.is_ok() {
            assert!(object["spec"].get("colour").is_none());
        }
    };
    check(FieldValidation::Strict, Err(400));
    check(FieldValidation::Warn, Ok(2));
    check(FieldValidation::Ignore, Ok(0));
}

#[test]
fn metadata_that_breaks_the_rules_is_refused_with_the_field_named() {
    let rules = Rules::new();
    let check = |metadata: Value, field: &str| {
        let mut object = application(json!({"description": "a"}));
        object["metadata"] = metadata;
        let refusal = create(&rules.application(), object, Ownership::Track).unwrap_err();
        assert_eq!(refusal.code.as_u16(), 422, "{refusal}");
        assert!(refusal.message.contains(field), "{refusal}");
    };
    check(json!({}), "metadata.name");
    check(json!({"name": "Shop"}), "metadata.name");
    check(
        json!({"name": "a", "labels": {"-bad": "x"}}),
        "metadata.labels",
    );
    check(
        json!({"name": "a", "labels": {"ok": "not ok"}}),
        "metadata.labels",
    );
    check(
        json!({"name": "a", "annotations": {"a/b/c": "x"}}),
        "metadata.annotations",
    );
    check(
        json!({"name": "a", "annotations": {"big": "x".repeat(300_000)}}),
        "metadata.annotations",
    );
    check(
        json!({"name": "a", "ownerReferences": [{"name": "x"}]}),
        "metadata.ownerReferences.uid",
    );
}

#[test]
fn metadata_of_the_wrong_type_is_refused_for_every_kind() {
    let rules = Rules::new();
    for metadata in [
        json!(7),
        json!([]),
        json!({"name": "a", "labels": []}),
        json!({"name": "a", "labels": {"a": 5}}),
        json!({"name": "a", "finalizers": {}}),
        json!({"name": "a", "ownerReferences": "none"}),
        json!({"name": 1}),
    ] {
        let mut object = application(json!({"description": "a"}));
        object["metadata"] = metadata;
        let refusal = claim(rules.application().resource, &mut object).unwrap_err();
        assert_eq!(refusal.code.as_u16(), 400, "{refusal}");
        assert!(refusal.message.contains("metadata"), "{refusal}");
    }
    let mut object = application(json!({"description": "a"}));
    object["metadata"] = json!({"name": "a", "labels": null, "creationTimestamp": null});
    assert!(claim(rules.application().resource, &mut object).is_ok());
}

fn trigger(spec: Value) -> Value {
    json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {"name": "orders", "namespace": "default"}, "spec": spec,
    })
}

#[test]
fn a_filter_that_cannot_be_understood_is_refused_where_it_is_wrong() {
    let rules = Rules::new();
    let subscriber = json!({"uri": "http://orders.example/"});
    let refused = |kind: &str, object: Value, field: &str| {
        let version = object["apiVersion"].as_str().unwrap().to_owned();
        let refusal = create(&rules.context(&version, kind), object, Ownership::Track).unwrap_err();
        let status = refusal.to_json();
        assert_eq!(status["code"], json!(422), "{status:#}");
        assert_eq!(
            status["details"]["causes"][0]["field"],
            json!(field),
            "{status:#}"
        );
    };
    let with = |filters: Value| trigger(json!({"subscriber": subscriber, "filters": filters}));
    refused(
        "Trigger",
        with(json!([{"exact": {"type": "a"}}, {"cesql": "type ="}])),
        "spec.filters[1].cesql",
    );
    refused(
        "Trigger",
        with(json!([{"cesql": "1 + 1"}])),
        "spec.filters[0].cesql",
    );
    refused(
        "Trigger",
        with(json!([{"any": [{"like": {"type": "a"}}]}])),
        "spec.filters[0].any[0].like",
    );
    let attributes = json!({"attributes": {"data.id": "7"}});
    let legacy = trigger(json!({"subscriber": subscriber, "filter": attributes}));
    refused("Trigger", legacy, "spec.filter.attributes.data.id");
    let policy = json!({
        "apiVersion": "eventing.knative.dev/v1alpha1", "kind": "EventPolicy",
        "metadata": {"name": "p", "namespace": "default"}, "spec": {"filters": [{"not": {}}]},
    });
    refused("EventPolicy", policy, "spec.filters[0].not");
}

#[test]
fn a_stored_object_that_would_be_refused_today_can_still_be_described() {
    let rules = Rules::new();
    let ctx = rules.context("eventing.knative.dev/v1", "Trigger");
    let subscriber = json!({"uri": "http://orders.example/"});
    let good = json!({"subscriber": subscriber, "filters": [{"cesql": "type = 'a'"}]});
    let mut old = created(&ctx, trigger(good));
    old["spec"]["filters"][0]["cesql"] = json!("type =");
    let mut described = old.clone();
    described["status"] = json!({"observedGeneration": 1});
    let stored = update(&ctx, &old, described, Part::Status, Ownership::Track).unwrap();
    assert_eq!(stored.unwrap()["status"]["observedGeneration"], json!(1));
    // Whoever changes the spec has to put it right.
    let mut edited = old.clone();
    edited["spec"]["subscriber"]["uri"] = json!("http://elsewhere.example/");
    update(&ctx, &old, edited.clone(), Part::Main, Ownership::Track).unwrap_err();
    edited["spec"]["filters"][0]["cesql"] = json!("type = 'b'");
    update(&ctx, &old, edited, Part::Main, Ownership::Track).unwrap();
}
