mod bundles;
mod census;
mod golden;
mod live;
mod rules;

use heddle_api::application::{
    Application, ApplicationSpec, ENTRY_API, ENTRY_EVENTS, Entry, Service,
};
use heddle_api::application_mapping::{ApplicationMapping, ApplicationMappingSpec, EnabledService};
use heddle_api::offer::Mode;
use heddle_rt::Chance;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;

const LEVELS: [Level; 5] = [
    Level::V2_13,
    Level::V2_14,
    Level::V2_15,
    Level::V2_16,
    Level::V2_17,
];
const PER_SERVICE: Rules = Rules {
    mode: Mode::PerService,
    provision_only_once: false,
};
const PER_APPLICATION: Rules = Rules {
    mode: Mode::PerApplication,
    provision_only_once: false,
};

fn entry(type_: &str) -> Entry {
    Entry {
        type_: type_.to_owned(),
        gateway_url: Some("http://gateway.example".to_owned()),
        ..Entry::default()
    }
}

fn service(id: &str, entries: &[&str]) -> Service {
    Service {
        id: id.to_owned(),
        name: format!("name-of-{id}"),
        display_name: id.to_uppercase(),
        description: format!("what {id} does"),
        provider_display_name: "Acme".to_owned(),
        entries: entries.iter().map(|type_| entry(type_)).collect(),
        ..Service::default()
    }
}

/// An Application as a server keeps it: created at that second, in its first generation.
fn application(name: &str, created: i64, services: Vec<Service>) -> Application {
    let spec = ApplicationSpec {
        services,
        ..ApplicationSpec::default()
    };
    let mut application = Application::new(name, spec);
    application.metadata.uid = Some(format!("uid-of-{name}"));
    application.metadata.generation = Some(1);
    application.metadata.creation_timestamp = Some(Time(Timestamp::from_second(created).unwrap()));
    application
}

fn mapping(namespace: &str, name: &str, services: Option<&[&str]>) -> ApplicationMapping {
    let enabled = |id: &&str| EnabledService {
        id: (*id).to_owned(),
    };
    let services = services.map(|ids| ids.iter().map(enabled).collect());
    let mut mapping = ApplicationMapping::new(name, ApplicationMappingSpec { services });
    mapping.metadata.namespace = Some(namespace.to_owned());
    mapping.metadata.generation = Some(1);
    mapping
}

fn leaving(mut application: Application) -> Application {
    application.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    application
}

fn rendered(catalog: &Catalog, enabled: Option<&Enabled>, level: Level) -> Value {
    serde_json::from_slice(&Document::of(catalog, enabled, level, Coding::Plain).bytes).unwrap()
}

/// The text of a compressed document.
pub(super) fn unpacked(document: &Document) -> String {
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&document.bytes[..]);
    std::io::Read::read_to_string(&mut decoder, &mut text).unwrap();
    text
}

/// Plans that are offered, by id.
fn plans<'a>(offered: impl Iterator<Item = (&'a Offering, Vec<&'a Plan>)>) -> Vec<&'a str> {
    offered
        .flat_map(|(_, plans)| plans)
        .map(|plan| plan.id.as_str())
        .collect()
}

#[test]
fn a_namespace_is_offered_exactly_what_its_mappings_enable() {
    let services = || vec![service("a", &[ENTRY_EVENTS]), service("b", &[ENTRY_API])];
    let applications = [
        application("shop", 1, services()),
        application("crm", 2, vec![service("c", &[ENTRY_EVENTS])]),
    ];
    let all: Option<&[&str]> = None;
    let table: [(Vec<ApplicationMapping>, &[&str]); 7] = [
        (vec![], &[]),
        (vec![mapping("team", "shop", all)], &["a", "b"]),
        (vec![mapping("team", "shop", Some(&[]))], &[]),
        (vec![mapping("team", "shop", Some(&["b"]))], &["b"]),
        // Ids that the Application does not have enable nothing, not even another Application's service.
        (
            vec![mapping("team", "shop", Some(&["b", "c", "z"]))],
            &["b"],
        ),
        (vec![mapping("team", "nobody", all)], &[]),
        (
            vec![
                mapping("team", "shop", Some(&["a"])),
                mapping("team", "crm", all),
            ],
            &["a", "c"],
        ),
    ];
    for (mappings, expected) in table {
        let enabled = Enabled::by(&mappings);
        let catalog = compile(&applications, PER_SERVICE);
        let plan_ids: Vec<String> = expected.iter().map(|id| format!("{id}-plan")).collect();
        assert_eq!(
            plans(catalog.offered_in(&enabled)),
            plan_ids,
            "{mappings:?}"
        );
        let catalog = compile(&applications, PER_APPLICATION);
        let mut offered = plans(catalog.offered_in(&enabled));
        offered.sort_unstable();
        assert_eq!(offered, expected, "{mappings:?}");
        assert!(
            catalog
                .offered_in(&enabled)
                .all(|(_, plans)| !plans.is_empty())
        );
    }
    let mut gone = mapping("team", "shop", all);
    gone.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert_eq!(Enabled::by([&gone]), Enabled::default());
}

#[test]
fn entries_decide_what_a_service_can_do() {
    let check = |entries: &[&str], bindable: bool, pace: Pace| {
        for rules in [PER_SERVICE, PER_APPLICATION] {
            let catalog = compile(
                &[application("shop", 1, vec![service("a", entries)])],
                rules,
            );
            let (offering, plan) = (&catalog.offerings[0], &catalog.offerings[0].plans[0]);
            assert_eq!(plan.bindable.unwrap_or(offering.bindable), bindable);
            assert_eq!(plan.instances, pace);
            let Backing::Application { events, api, .. } = &plan.backing else {
                unreachable!("an Application's plan has an Application behind it");
            };
            assert_eq!((*events, *api), (entries.contains(&ENTRY_EVENTS), bindable));
        }
    };
    check(&[ENTRY_EVENTS], false, Pace::Patient);
    check(&[ENTRY_API], true, Pace::Prompt);
    check(&[ENTRY_API, ENTRY_EVENTS], true, Pace::Patient);
}

#[test]
fn one_bad_service_leaves_nine_good_ones_and_is_the_tenth_once_it_is_mended() {
    let mut services: Vec<Service> = (0..10)
        .map(|n| service(&n.to_string(), &[ENTRY_EVENTS]))
        .collect();
    services[4].entries[0].type_ = "Queue".to_owned();
    let mut shop = application("shop", 1, services);
    for rules in [PER_SERVICE, PER_APPLICATION] {
        let offered = |shop: &Application| plans(compile([shop], rules).offered()).len();
        shop.spec.services[4].entries[0].type_ = "Queue".to_owned();
        assert_eq!(offered(&shop), 9);
        shop.spec.services[4].entries[0].type_ = ENTRY_EVENTS.to_owned();
        assert_eq!(offered(&shop), 10);
    }
}

#[test]
fn what_is_withdrawn_is_known_and_not_offered() {
    let shop = || application("shop", 1, vec![service("a", &[ENTRY_API])]);
    let mut namesake = service("b", &[ENTRY_API]);
    namesake.name = "name-of-a".to_owned();
    let copy = service("a", &[ENTRY_API]);
    let mut unsound = service("d", &[ENTRY_API]);
    unsound.entries.push(entry("Queue"));
    let crm = || {
        application(
            "crm",
            2,
            vec![namesake.clone(), copy.clone(), unsound.clone()],
        )
    };

    let catalog = compile(&[crm(), shop()], PER_SERVICE);
    assert_eq!(plans(catalog.offered()), ["a-plan"]);
    for id in ["b", "d"] {
        let (offering, plan) = catalog.find(id, &format!("{id}-plan")).unwrap();
        assert!(plan.withdrawn && offering.bindable, "{id} can be bound");
    }
    // The id means the older one's service, and only that.
    let (_, plan) = catalog.find("a", "a-plan").unwrap();
    assert!(matches!(&plan.backing, Backing::Application { name, .. } if name == "shop"));
    assert_eq!(catalog.offerings.len(), 3);

    // While the older is on its way out, nobody takes over; when it is gone, the younger does.
    let catalog = compile(&[crm(), leaving(shop())], PER_SERVICE);
    assert_eq!(plans(catalog.offered()), [""; 0]);
    assert!(catalog.find("a", "a-plan").unwrap().1.withdrawn);
    let catalog = compile(&[crm()], PER_SERVICE);
    assert_eq!(plans(catalog.offered()), ["b-plan"]);
    assert!(catalog.find("z", "z-plan").is_none());
}

#[test]
fn the_same_applications_in_any_order_give_the_same_bytes() {
    let names = ["Orders", "orders", "stock", "Stock!", "prices"];
    let applications: Vec<Application> = (0..12)
        .map(|n: usize| {
            let services = (0..4).map(|m| {
                // Some ids and names meet those of other Applications.
                let mut service = service(&format!("{}", (n * 5 + m * 3) % 29), &[ENTRY_API]);
                service.name = format!("{}-{}", names[(n + m) % 5], (n + m) % 7);
                service
            });
            application(
                &format!("app-{n}"),
                i64::try_from(n % 3).unwrap(),
                services.collect(),
            )
        })
        .collect();
    let chance = Chance::seeded(11);
    for rules in [PER_SERVICE, PER_APPLICATION] {
        let expected = Document::of(
            &compile(&applications, rules),
            None,
            Level::V2_17,
            Coding::Plain,
        );
        assert!(expected.bytes.len() > 1_000);
        let mut shuffled: Vec<&Application> = applications.iter().collect();
        for _ in 0..1_000 {
            for last in (1..shuffled.len()).rev() {
                let other = usize::try_from(chance.below(last as u64 + 1)).unwrap();
                shuffled.swap(last, other);
            }
            let catalog = compile(shuffled.iter().copied(), rules);
            assert_eq!(
                Document::of(&catalog, None, Level::V2_17, Coding::Plain),
                expected
            );
        }
    }
}

#[test]
fn thousands_of_services_are_compiled_and_rendered_whole() {
    let applications: Vec<Application> = (0..50)
        .map(|n| {
            let of = |m| service(&format!("svc-{n}-{m}"), &[ENTRY_API, ENTRY_EVENTS]);
            application(&format!("app-{n}"), n, (0..100).map(of).collect())
        })
        .collect();
    let catalog = compile(&applications, PER_SERVICE);
    assert_eq!(catalog.offerings.len(), 5_000);
    let document = rendered(&catalog, None, Level::V2_17);
    assert_eq!(document["services"].as_array().unwrap().len(), 5_000);
    assert_eq!(rules::faults(&document), [""; 0]);
    let catalog = compile(&applications, PER_APPLICATION);
    assert_eq!(catalog.offerings.len(), 50);
    assert_eq!(plans(catalog.offered()).len(), 5_000);
}

#[test]
fn texts_are_bounded_and_never_empty() {
    let mut bare = service("a", &[ENTRY_EVENTS]);
    bare.description = String::new();
    bare.display_name = String::new();
    bare.provider_display_name = String::new();
    let mut long = service("b", &[ENTRY_EVENTS]);
    long.description = "ü".repeat(20_000);
    long.tags = vec![
        "t".repeat(1_000),
        String::new(),
        "u".repeat(1_000),
        "v".repeat(49),
        "w".to_owned(),
    ];
    let catalog = compile(&[application("shop", 1, vec![bare, long])], PER_SERVICE);
    let [bare, long] = &catalog.offerings[..] else {
        panic!("both are offered")
    };
    assert_eq!(bare.description, "name-of-a");
    assert_eq!(bare.metadata.get("displayName"), Some(&json!("name-of-a")));
    assert!(!bare.metadata.contains_key("providerDisplayName"));
    assert_eq!(long.description.chars().count(), 10_000);
    assert_eq!(long.tags.len(), 2, "a tag that does not fit ends the list");
}

#[test]
fn a_schema_that_is_not_sound_is_not_published() {
    let with = |schema: &str| {
        let mut service = service("a", &[ENTRY_API]);
        service.auth_create_parameter_schema = Some(schema.to_owned());
        let catalog = compile(&[application("shop", 1, vec![service])], PER_APPLICATION);
        catalog.offerings[0].plans[0].schemas.create.clone()
    };
    assert!(with(r#"{"type": "object"}"#).is_some());
    assert!(with(r#"{"type": "thing"}"#).is_none());
    let draft = "https://json-schema.org/draft/2020-12/schema";
    assert!(with(&format!(r#"{{"$schema": "{draft}", "type": "object"}}"#)).is_some());
}
