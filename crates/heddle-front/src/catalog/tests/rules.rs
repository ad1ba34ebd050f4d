//! What every platform demands of a catalog, as a small checker, and strange Applications that must pass it.

use std::collections::BTreeSet;

use heddle_api::application::CompassMetadata;
use proptest::prelude::*;

use super::*;

/// Everything a platform would refuse in a catalog.
pub(super) fn faults(document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(services) = document["services"].as_array() else {
        return vec!["services is not a list".to_owned()];
    };
    let (mut ids, mut names, mut plan_ids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for service in services {
        let mut fault = |what: &str| faults.push(format!("{}: {what}", service["id"]));
        for field in ["id", "name", "description"] {
            if !is_text(&service[field]) {
                fault(field);
            }
        }
        if !ids.insert(service["id"].to_string()) {
            fault("id is not unique");
        }
        if !names.insert(service["name"].to_string()) || !is_friendly(&service["name"]) {
            fault("name is not unique and friendly");
        }
        if !service["bindable"].is_boolean() {
            fault("bindable");
        }
        if service["description"]
            .as_str()
            .is_none_or(|text| text.chars().count() > 10_000)
        {
            fault("description is too long");
        }
        let tags = service["tags"].as_array().cloned().unwrap_or_default();
        let joined: usize = tags
            .iter()
            .filter_map(Value::as_str)
            .map(|tag| tag.chars().count())
            .sum();
        if joined > 2_048 || !tags.iter().all(is_text) {
            fault("tags");
        }
        for key in ["listing", "provider"] {
            if service["metadata"].get(key).is_some() {
                fault("metadata that some clients cannot read");
            }
        }
        let plans = service["plans"].as_array().cloned().unwrap_or_default();
        if plans.is_empty() {
            fault("no plans");
        }
        let mut plan_names = BTreeSet::new();
        for plan in &plans {
            if !["id", "name", "description"]
                .iter()
                .all(|field| is_text(&plan[field]))
            {
                fault("a plan's texts");
            }
            if !plan_ids.insert(plan["id"].to_string()) {
                fault("a plan's id is not unique in the catalog");
            }
            if !plan_names.insert(plan["name"].to_string()) || !is_friendly(&plan["name"]) {
                fault("a plan's name is not unique and friendly");
            }
            if plan
                .get("maintenance_info")
                .is_some_and(|info| !is_text(&info["version"]))
            {
                fault("empty maintenance_info");
            }
            if plan
                .get("schemas")
                .is_some_and(|schemas| !are_sound(schemas))
            {
                fault("schemas");
            }
        }
    }
    faults
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_friendly(value: &Value) -> bool {
    let friendly = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    is_text(value)
        && value
            .as_str()
            .is_some_and(|name| name.chars().all(friendly))
}

fn are_sound(schemas: &Value) -> bool {
    let places = [
        "/service_instance/create",
        "/service_instance/update",
        "/service_binding/create",
    ];
    let found: Vec<&Value> = places
        .iter()
        .filter_map(|place| schemas.pointer(place))
        .collect();
    let sound = |action: &&Value| {
        let schema = &action["parameters"];
        let text = schema.to_string();
        is_text(&schema["$schema"])
            && text.len() <= 64 * 1_024
            && !text.contains(r#""$ref":"http"#)
            && jsonschema::validator_for(schema).is_ok()
    };
    !found.is_empty() && found.iter().all(sound)
}

#[test]
fn the_checker_sees_what_platforms_would_refuse() {
    let sound = rendered(
        &compile(
            &[application("shop", 1, vec![service("a", &[ENTRY_API])])],
            PER_SERVICE,
        ),
        None,
        Level::V2_17,
    );
    assert_eq!(faults(&sound), [""; 0]);
    let spoil = |pointer: &str, value: Value| {
        let mut spoiled = sound.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        spoiled.pointer_mut(parent).unwrap()[key] = value;
        assert_eq!(
            faults(&spoiled).len(),
            1,
            "{pointer}: {:?}",
            faults(&spoiled)
        );
    };
    spoil("/services/0/id", json!(""));
    spoil("/services/0/name", json!("Orders"));
    spoil("/services/0/bindable", json!("yes"));
    spoil("/services/0/description", json!("x".repeat(10_001)));
    spoil("/services/0/tags", json!(["x".repeat(2_049)]));
    spoil("/services/0/plans", json!([]));
    spoil("/services/0/metadata/listing", json!({}));
    spoil("/services/0/plans/0/description", json!(null));
    spoil("/services/0/plans/0/maintenance_info", json!({}));
    spoil("/services/0/plans/0/schemas", json!({}));
    let create = |schema: Value| json!({"service_instance": {"create": {"parameters": schema}}});
    spoil(
        "/services/0/plans/0/schemas",
        create(json!({"type": "object"})),
    );
    let twice = json!({"services": [sound["services"][0], sound["services"][0]]});
    assert_eq!(faults(&twice).len(), 3);
}

fn strange_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,2}",
        "[A-C .,!/-]{0,4}",
        "\\PC{0,8}",
        Just("x".repeat(12_000)),
    ]
}

fn strange_service() -> impl Strategy<Value = Service> {
    let schema = prop_oneof![
        Just(None),
        Just(Some(
            r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#.to_owned()
        )),
        Just(Some(r#"{"type": 7}"#.to_owned())),
        Just(Some(
            r#"{"$ref": "http://elsewhere.example/schema"}"#.to_owned()
        )),
        Just(Some("{".to_owned())),
    ];
    let entries = proptest::collection::vec(
        prop_oneof![Just(ENTRY_API), Just(ENTRY_EVENTS), Just("Odd")],
        0..3,
    );
    let texts = [strange_text(), strange_text(), strange_text()];
    let tags = proptest::collection::vec(strange_text(), 0..3);
    ("[a-d]", texts, entries, schema, tags).prop_map(
        |(id, [name, title, about], entries, schema, tags)| Service {
            name,
            display_name: title,
            description: about,
            tags,
            auth_create_parameter_schema: schema,
            ..service(&id, &entries)
        },
    )
}

fn strange_application() -> impl Strategy<Value = Application> {
    let services = proptest::collection::vec(strange_service(), 0..4);
    let id = prop_oneof![Just(None), Just(Some("same")), Just(Some(""))];
    ("[ab][.-]?[ab]?", 0..3_i64, services, id, strange_text()).prop_map(
        |(name, created, services, id, text)| {
            let mut made = application(name.trim_end_matches(['.', '-']), created, services);
            made.spec.description = text;
            made.spec.compass_metadata = id.map(|id| CompassMetadata {
                application_id: id.to_owned(),
                authentication: None,
            });
            made
        },
    )
}

proptest! {
    #[test]
    fn whatever_applications_say_no_platform_refuses_the_catalog(
        mut applications in proptest::collection::vec(strange_application(), 0..6)
    ) {
        let mut seen = BTreeSet::new();
        applications.retain(|application| seen.insert(application.metadata.name.clone()));
        for rules in [PER_SERVICE, PER_APPLICATION] {
            let catalog = compile(&applications, rules);
            for level in LEVELS {
                let document = rendered(&catalog, None, level);
                prop_assert_eq!(faults(&document), [""; 0]);
            }
            // Known is known once: an id never means two things.
            let known = catalog.offerings.iter().map(|offering| offering.id.as_str());
            prop_assert_eq!(known.clone().collect::<BTreeSet<_>>().len(), known.count());
        }
    }
}

#[test]
fn what_smoke_tests_make_is_offered_to_nobody() {
    let events = || vec![service("orders", &[ENTRY_EVENTS])];
    let smoke = application("heddle-smoke-x", 1, events());
    let shop = application("shop", 2, events());
    for rules in [PER_SERVICE, PER_APPLICATION] {
        let all = compile::offerings([&smoke, &shop], rules);
        // It came first, and takes nobody's id away either.
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(compile::offerings([&smoke], rules).is_empty());
    }
}
