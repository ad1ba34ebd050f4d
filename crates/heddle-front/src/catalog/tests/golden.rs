//! One Application, field by field.

use super::*;
use heddle_api::application::CompassMetadata;

/// An Application of the kind that existing installations have: an API, an API with events, events alone.
fn shop() -> Application {
    let mut promotions = service("ac03", &[ENTRY_API]);
    promotions.name = "promotions-ac03".to_owned();
    promotions.display_name = "Promotions".to_owned();
    promotions.description = "What is cheaper this week".to_owned();
    promotions.long_description =
        Some("What is cheaper this week, where, and until when".to_owned());
    promotions.tags = vec!["promotions".to_owned(), "prices".to_owned()];
    promotions
        .labels
        .insert("connected-app".to_owned(), "shop".to_owned());
    promotions.entries[0].access_label = Some("access-promotions".to_owned());
    promotions.auth_create_parameter_schema = Some(r#"{"type": "object"}"#.to_owned());

    let mut orders = service("48ab", &[ENTRY_API, ENTRY_API, ENTRY_EVENTS]);
    orders.name = "Orders 48AB".to_owned();
    orders.entries[0].access_label = Some("access-orders".to_owned());

    let stock = service("77f0", &[ENTRY_EVENTS]);
    let mut shop = application("web.shop", 1, vec![promotions, orders, stock]);
    shop.spec.display_name = Some("Web shop".to_owned());
    shop.spec.tags = vec!["retail".to_owned()];
    shop.spec
        .labels
        .insert("connected-app".to_owned(), "shop".to_owned());
    shop
}

/// What the broker before this one answered for such an Application, and nothing else.
#[test]
fn each_service_is_an_offering_as_platforms_know_it() {
    let catalog = compile(&[shop()], PER_SERVICE);
    let plan = |id: &str| {
        json!([{
            "id": format!("{id}-plan"), "name": "default", "description": "Default plan",
            "metadata": {"displayName": "Default"},
        }])
    };
    let expected = json!({"services": [
        {
            "id": "77f0", "name": "name-of-77f0", "description": "what 77f0 does", "bindable": false,
            "plans": plan("77f0"),
            "metadata": {
                "displayName": "77F0", "providerDisplayName": "Acme", "applicationServiceId": "77f0", "labels": {},
            },
        },
        {
            "id": "48ab", "name": "orders-48ab", "description": "what 48ab does", "bindable": true,
            "plans": plan("48ab"),
            "metadata": {
                "displayName": "48AB", "providerDisplayName": "Acme", "applicationServiceId": "48ab", "labels": {},
            },
        },
        {
            "id": "ac03", "name": "promotions-ac03", "description": "What is cheaper this week",
            "tags": ["promotions", "prices"], "bindable": true,
            "plans": plan("ac03"),
            "metadata": {
                "displayName": "Promotions", "providerDisplayName": "Acme",
                "longDescription": "What is cheaper this week, where, and until when",
                "applicationServiceId": "ac03", "labels": {"connected-app": "shop"},
                "bindingLabels": {"access-promotions": "true"},
            },
        },
    ]});
    assert_eq!(rendered(&catalog, None, Level::V2_13), expected);
}

#[test]
fn a_label_says_that_once_is_enough_where_that_is_set() {
    let rules = Rules {
        provision_only_once: true,
        ..PER_SERVICE
    };
    let document = rendered(&compile(&[shop()], rules), None, Level::V2_13);
    let services = document["services"].as_array().unwrap();
    let once = json!("true");
    assert!(
        services
            .iter()
            .all(|service| service["metadata"]["labels"]["provisionOnlyOnce"] == once)
    );
}

#[test]
fn each_application_is_an_offering_where_that_is_set() {
    let mut shop = shop();
    shop.spec.compass_metadata = Some(CompassMetadata {
        application_id: "directory-id".to_owned(),
        authentication: None,
    });
    let catalog = compile(&[shop], PER_APPLICATION);
    insta::assert_json_snapshot!(rendered(&catalog, None, Level::V2_13));
}

#[test]
fn later_fields_are_shown_to_later_platforms_only() {
    let catalog = compile(&[shop()], PER_SERVICE);
    let at = |level| rendered(&catalog, None, level)["services"][2].clone();
    let names = |level| {
        let fields = |value: &Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let service = at(level);
        (fields(&service), fields(&service["plans"][0]))
    };
    let (base, plan) = ("bindable description id", "description id");
    let later = format!("{base} instances_retrievable metadata name plans tags");
    let check = |level, service: String, plan: String| {
        assert_eq!(names(level), (service, plan), "{level:?}")
    };
    check(
        Level::V2_13,
        format!("{base} metadata name plans tags"),
        format!("{plan} metadata name"),
    );
    let retrievable = later.replace("bindable ", "bindable bindings_retrievable ");
    check(
        Level::V2_14,
        retrievable.clone(),
        format!("{plan} metadata name"),
    );
    let updates = format!("allow_context_updates {retrievable}");
    for level in [Level::V2_15, Level::V2_16] {
        check(
            level,
            updates.clone(),
            format!("{plan} maximum_polling_duration metadata name"),
        );
    }
    check(
        Level::V2_17,
        updates,
        format!("binding_rotatable {plan} maximum_polling_duration metadata name"),
    );
    assert_eq!(
        at(Level::V2_17)["plans"][0]["maximum_polling_duration"],
        json!(3_600)
    );
    let levels = [9, 13, 14, 15, 16, 17, 99].map(Level::of_minor);
    assert_eq!(levels[1..6], LEVELS);
    assert_eq!((levels[0], levels[6]), (Level::V2_13, Level::V2_17));
}

#[test]
fn equal_bytes_have_equal_tags_and_others_have_others() {
    let documents = LEVELS
        .map(|level| Document::of(&compile(&[shop()], PER_SERVICE), None, level, Coding::Plain));
    for one in &documents {
        for other in &documents {
            assert_eq!(one.bytes == other.bytes, one.etag == other.etag);
        }
    }
    let etag = documents[0].etag.to_str().unwrap();
    assert_eq!(etag.len(), 34);
    assert!(etag.starts_with('"') && etag.ends_with('"'));
}
