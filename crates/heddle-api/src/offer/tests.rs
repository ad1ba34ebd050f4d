use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;
use crate::application::{ApplicationSpec, CompassMetadata};
use crate::service_instance::ApplicationService;

fn service(id: &str, name: &str) -> Service {
    Service {
        id: id.to_owned(),
        name: name.to_owned(),
        entries: vec![entry(ENTRY_EVENTS)],
        ..Service::default()
    }
}

fn entry(type_: &str) -> Entry {
    Entry {
        type_: type_.to_owned(),
        ..Entry::default()
    }
}

fn application(name: &str, age: i64, services: &[(&str, &str)]) -> Application {
    let services = services
        .iter()
        .map(|(id, name)| service(id, name))
        .collect();
    let spec = ApplicationSpec {
        services,
        ..ApplicationSpec::default()
    };
    let mut application = Application::new(name, spec);
    let created = Timestamp::from_second(1_000_000 - age).unwrap();
    application.metadata.creation_timestamp = Some(Time(created));
    application
}

fn rejected(register: &Register, application: &Application) -> Vec<(String, String)> {
    let rejected = register.rejected(application).into_iter();
    rejected
        .map(|service| (service.id, service.reason))
        .collect()
}

fn offered(register: &Register, application: &Application) -> Vec<bool> {
    let standings = register.standings(application).into_iter();
    standings
        .map(|standing| standing == OfferState::Offered)
        .collect()
}

fn taken(id: &str, reason: &str) -> (String, String) {
    (id.to_owned(), reason.to_owned())
}

#[test]
fn a_name_that_platforms_take_is_kept_and_any_other_is_bent_by_a_stable_rule() {
    let check = |text: &str, expected: &str| assert_eq!(name(text), expected, "{text:?}");
    check("orders-48ab05bf", "orders-48ab05bf");
    check("-odd--but-valid-", "-odd--but-valid-");
    check("Orders API (v2)", "orders-api-v2");
    check("com.acme_orders", "com-acme-orders");
    check("  Aufträge  ", "auftr-ge");
    check("注文", "service-b479ca46a1662621cf56");
    for text in ["", "注", "文", "!!!", &"x".repeat(300), &"É".repeat(300)] {
        let name = name(text);
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        assert!(!name.is_empty() && name.bytes().all(plain), "{text:?}");
        assert!(name.len() <= NAME_CHARS_MAX);
    }
    assert_ne!(name("注"), name("文"));
    assert_ne!(name(&"x".repeat(300)), name(&"x".repeat(301)));
}

#[test]
fn an_application_has_the_id_that_a_directory_gave_it_or_one_that_follows_from_its_name() {
    let mut shop = application("shop", 1, &[]);
    assert_eq!(offering_id(&shop), "d3a69363-94db-8aca-bfa3-522fbad76e46");
    assert_ne!(offering_id(&shop), offering_id(&application("crm", 1, &[])));
    shop.spec.compass_metadata = Some(CompassMetadata {
        application_id: "given".to_owned(),
        authentication: None,
    });
    assert_eq!(offering_id(&shop), "given");
}

#[test]
fn the_older_application_keeps_an_id_and_the_younger_is_told_whose_it_is() {
    let old = application("zoo", 9, &[("1", "orders")]);
    let young = application("ant", 1, &[("1", "other"), ("2", "fine")]);
    let register = Register::of(Mode::PerService, [&young, &old]);
    assert!(register.rejected(&old).is_empty());
    let verdict = register.rejected(&young);
    assert_eq!(rejected(&register, &young), [taken("1", "IdTaken")]);
    assert!(
        verdict[0].message.contains("Application zoo"),
        "{verdict:?}"
    );
    assert_eq!(offered(&register, &young), [false, true]);
}

#[test]
fn among_equals_the_name_decides() {
    let (a, b) = (
        application("a", 5, &[("1", "x")]),
        application("b", 5, &[("1", "y")]),
    );
    for applications in [[&a, &b], [&b, &a]] {
        let register = Register::of(Mode::PerService, applications);
        assert!(register.rejected(&a).is_empty());
        assert_eq!(rejected(&register, &b), [taken("1", "IdTaken")]);
    }
}

#[test]
fn names_clash_after_they_are_bent_also_within_one_application() {
    let old = application("old", 9, &[("1", "Orders"), ("2", "orders")]);
    let young = application("young", 1, &[("3", "ORDERS")]);
    let register = Register::of(Mode::PerService, [&old, &young]);
    assert_eq!(rejected(&register, &old), [taken("2", "NameTaken")]);
    assert_eq!(rejected(&register, &young), [taken("3", "NameTaken")]);
    let message = &register.rejected(&young)[0].message;
    assert!(
        message.contains("service 1 of Application old"),
        "{message}"
    );
    // As plans they have an offering of their own each.
    let register = Register::of(Mode::PerApplication, [&old, &young]);
    assert_eq!(rejected(&register, &old), [taken("2", "NameTaken")]);
    assert!(register.rejected(&young).is_empty());
}

#[test]
fn what_is_not_offered_holds_no_name_but_an_unsound_service_keeps_its_id() {
    let first = application("first", 9, &[("1", "a")]);
    // Loses its id, and with it the claim to the name `b`.
    let second = application("second", 8, &[("1", "b")]);
    let third = application("third", 7, &[("3", "b")]);
    let mut broken = application("broken", 10, &[("4", "c")]);
    broken.spec.services[0].entries.clear();
    let fourth = application("fourth", 2, &[("4", "d"), ("5", "c")]);
    let register = Register::of(
        Mode::PerService,
        [&fourth, &third, &second, &first, &broken],
    );
    assert_eq!(rejected(&register, &second), [taken("1", "IdTaken")]);
    assert!(register.rejected(&third).is_empty());
    assert_eq!(rejected(&register, &broken), [taken("4", "ServiceInvalid")]);
    assert_eq!(rejected(&register, &fourth), [taken("4", "IdTaken")]);
    assert_eq!(register.standings(&second), [OfferState::Displaced]);
    assert_eq!(register.standings(&broken), [OfferState::Withheld]);
    // Unsound and without an id of its own: the id still leads to the older one.
    let mut copy = application("copy", 1, &[("4", "e")]);
    copy.spec.services[0].entries.clear();
    assert_eq!(register.standings(&copy), [OfferState::Displaced]);
}

#[test]
fn an_application_that_is_an_offering_shares_neither_id_nor_name() {
    let with_id = |mut application: Application| {
        application.spec.compass_metadata = Some(CompassMetadata {
            application_id: "same".to_owned(),
            authentication: None,
        });
        application
    };
    let old = with_id(application("old", 9, &[("1", "a")]));
    let young = with_id(application("young", 1, &[("2", "a"), ("3", "b")]));
    let dotted = application("web.shop", 5, &[("4", "a")]);
    let dashed = application("web-shop", 4, &[("5", "a")]);
    let register = Register::of(Mode::PerApplication, [&young, &old, &dashed, &dotted]);
    assert!(register.rejected(&old).is_empty());
    let both = [taken("2", "IdTaken"), taken("3", "IdTaken")];
    assert_eq!(rejected(&register, &young), both);
    assert!(register.rejected(&dotted).is_empty());
    assert_eq!(rejected(&register, &dashed), [taken("5", "NameTaken")]);
    assert_eq!(register.standings(&young), [OfferState::Displaced; 2]);
    assert_eq!(register.standings(&dashed), [OfferState::Withheld]);
    // Where services are the offerings, none of this matters.
    let register = Register::of(Mode::PerService, [&old, &young]);
    assert_eq!(rejected(&register, &young), [taken("2", "NameTaken")]);
}

#[test]
fn one_bad_service_does_not_hide_the_good_ones() {
    let mut shop = application("shop", 1, &[("good", "a"), ("odd", "b"), ("nowhere", "c")]);
    shop.spec.services[1].entries = vec![entry("Queue")];
    shop.spec.services[2].entries = vec![entry(ENTRY_API)];
    let register = Register::of(Mode::PerService, [&shop]);
    assert_eq!(offered(&register, &shop), [true, false, false]);
    shop.spec.services[2].entries[0].target_url = Some("https://shop.example".to_owned());
    assert_eq!(offered(&register, &shop), [true, false, true]);
    shop.spec.services[0].id = "x".repeat(ID_CHARS_MAX);
    assert_eq!(offered(&register, &shop), [false, false, true]);
    let register = Register::of(Mode::PerApplication, [&shop]);
    assert_eq!(offered(&register, &shop), [true, false, true]);
}

#[test]
fn a_change_concerns_whoever_claims_the_same_and_nobody_else() {
    let concerned = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    let first = application("first", 9, &[("1", "a")]);
    let second = application("second", 8, &[("1", "b")]);
    let third = application("third", 7, &[("3", "b")]);
    let aside = application("aside", 6, &[("7", "z")]);
    let mut register = Register::of(Mode::PerService, [&first, &second, &third, &aside]);
    assert!(register.put(&first).is_empty(), "nothing moved");
    // The second gets its id back, and with it the name that the third has meanwhile.
    assert_eq!(concerned(&register.remove("first")), "second third");
    assert!(register.rejected(&second).is_empty());
    assert_eq!(rejected(&register, &third), [taken("3", "NameTaken")]);
    assert_eq!(concerned(&register.put(&first)), "second third");
    assert_eq!(rejected(&register, &second), [taken("1", "IdTaken")]);
    // It is made again, and is now the youngest.
    let again = application("first", 0, &[("1", "a")]);
    assert_eq!(rejected(&register, &again), [taken("1", "IdTaken")]);
    assert_eq!(concerned(&register.put(&again)), "second third");
    assert!(register.rejected(&second).is_empty());
    let none = application("second", 8, &[]);
    assert_eq!(concerned(&register.put(&none)), "first third");
    assert!(register.rejected(&again).is_empty() && register.rejected(&third).is_empty());
}

/// A register that is fed change by change agrees with one that is made at once, and names everybody whose verdict turned.
#[test]
fn however_it_came_about_a_register_judges_alike() {
    for mode in [Mode::PerService, Mode::PerApplication] {
        let mut state: u32 = 7;
        let mut draw = |limit: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % limit
        };
        let mut live: Vec<Application> = Vec::new();
        let mut register = Register::new(mode);
        for _ in 0..2_000 {
            let before: Vec<_> = live
                .iter()
                .map(|a| (a.clone(), register.rejected(a)))
                .collect();
            let name = ["a", "b", "c", "d.e", "d-e"][draw(5) as usize];
            live.retain(|application| application.metadata.name.as_deref() != Some(name));
            let concerned = if draw(4) == 0 {
                register.remove(name)
            } else {
                let services: Vec<(String, String)> = (0..draw(4))
                    .map(|_| (draw(4).to_string(), format!("n{}", draw(3))))
                    .collect();
                let mut seen = BTreeSet::new();
                let services: Vec<(&str, &str)> = services
                    .iter()
                    .map(|(id, name)| (id.as_str(), name.as_str()))
                    .filter(|(id, _)| seen.insert(*id))
                    .collect();
                let mut made = application(name, i64::from(draw(3)), &services);
                if draw(3) == 0 {
                    made.spec.compass_metadata = Some(CompassMetadata {
                        application_id: "same".to_owned(),
                        authentication: None,
                    });
                }
                let concerned = register.put(&made);
                live.push(made);
                concerned
            };
            let fresh = Register::of(mode, &live);
            for application in &live {
                assert_eq!(register.rejected(application), fresh.rejected(application));
            }
            for (application, verdict) in before {
                let other = application.metadata.name.clone().unwrap();
                if other != name && register.rejected(&application) != verdict {
                    assert!(concerned.contains(&other), "{other} was not named");
                }
            }
        }
    }
}

#[test]
fn a_schema_is_published_only_if_every_platform_can_read_it() {
    let with = |schema: &str| Service {
        auth_create_parameter_schema: Some(schema.to_owned()),
        ..service("1", "a")
    };
    assert_eq!(parameter_schema(&service("1", "a")), Ok(None));
    assert_eq!(parameter_schema(&with("")), Ok(None));
    let schema = parameter_schema(&with(
        r##"{"properties": {"a": {"$ref": "#/definitions/a"}}}"##,
    ));
    let schema = schema.unwrap().unwrap();
    assert_eq!(
        schema["$schema"],
        json!("http://json-schema.org/draft-04/schema#")
    );
    let long = format!(r#"{{"description": "{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX));
    let bad = [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        (r#"{"$schema": 4}"#, "draft-04"),
        (r#"{"$schema": "https://acme.example/draft"}"#, "acme"),
        (
            r#"{"allOf": [{"$ref": "https://acme.example/s.json"}]}"#,
            "https://acme.example/s.json",
        ),
        (long.as_str(), "65536"),
    ];
    for (text, part) in bad {
        let why = parameter_schema(&with(text)).unwrap_err();
        assert!(why.contains(part), "{why}");
        assert_eq!(
            fault(&with(text), Mode::PerService),
            None,
            "it is not published there"
        );
        assert!(fault(&with(text), Mode::PerApplication).is_some());
    }
}

#[test]
fn an_instance_tells_how_it_was_offered() {
    let instance = |service_id: &str, plan_id: &str, pinned: Option<&str>| ServiceInstanceSpec {
        service_id: service_id.to_owned(),
        plan_id: plan_id.to_owned(),
        application: pinned.map(|id| ApplicationService {
            name: "shop".to_owned(),
            service_id: id.to_owned(),
        }),
        ..ServiceInstanceSpec::default()
    };
    let mode = |service, plan, pinned| Mode::of_instance(&instance(service, plan, pinned));
    assert_eq!(mode("1", "1-plan", Some("1")), Some(Mode::PerService));
    assert_eq!(mode("shop-id", "1", Some("1")), Some(Mode::PerApplication));
    assert_eq!(mode("bundle", "plan", None), None);
    assert_eq!(mode("x", "y", Some("1")), None);
    for known in [Mode::PerService, Mode::PerApplication] {
        assert_eq!(known.to_string().parse(), Ok(known));
    }
    assert!("both".parse::<Mode>().is_err());
}
