//! What bundles are offered as, and what becomes of those that are not.

use heddle_api::bundle::BundlePhase;
use heddle_api::{Bundle, BundleRevision};
use kube::runtime::watcher::Event;

use super::*;
use crate::catalog::testing::{
    bundle, described, list, marked, offers, plan_id, registry, revision, tombstone,
};

fn offered(offers: &LiveOffers) -> Vec<String> {
    let catalog = offers.catalog();
    let names = catalog.offered().map(|(offering, plans)| {
        let plans: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
        format!("{}: {}", offering.name, plans.join(" "))
    });
    names.collect()
}

#[test]
fn a_bundle_is_an_offering_field_by_field() {
    let offers = offers(bundle("db", 1, "db-2"));
    let document = offers.document(None, Level::V2_17, Coding::Plain);
    let document: Value = serde_json::from_slice(&document.bytes).unwrap();
    insta::assert_json_snapshot!(document);
}

#[test]
fn bundles_are_offered_in_every_namespace() {
    let offers = offers(bundle("db", 1, "db-2"));
    let everywhere = offers.document(None, Level::V2_17, Coding::Plain);
    assert_eq!(
        offers.document(Some("anywhere"), Level::V2_17, Coding::Plain),
        everywhere
    );
    for namespace in [None, Some("anywhere")] {
        assert!(offers.is_offered(namespace, "id-of-db", &plan_id("small")));
        assert!(!offers.is_offered(namespace, "id-of-db", &plan_id("old")));
    }
}

#[test]
fn what_only_older_revisions_have_is_known_and_not_offered() {
    let offers = offers(bundle("db", 1, "db-2"));
    assert_eq!(offered(&offers), ["hub-db: small large"]);
    let catalog = offers.catalog();
    let (_, old) = catalog.find("id-of-db", &plan_id("old")).unwrap();
    assert!(old.withdrawn);
    assert_eq!(old.backing.revision().unwrap().name, "db-1");
    // The same plan has another schema in each.
    let minimum = |revision: &str| {
        let reference = RevisionReference {
            name: revision.to_owned(),
            ..Default::default()
        };
        let found = catalog.find_in(Some(&reference), "id-of-db", &plan_id("small"));
        let schema = found.unwrap().1.schemas.create.as_ref().unwrap();
        schema["properties"]["size"].get("minimum").cloned()
    };
    assert_eq!(minimum("db-1"), None);
    assert_eq!(minimum("db-2"), Some(json!(10)));
    assert_eq!(
        minimum("unknown"),
        Some(json!(10)),
        "then it is what it is now"
    );
}

#[test]
fn a_withdrawn_bundle_is_known_with_the_reason_and_comes_back() {
    let offers = offers(bundle("db", 1, "db-2"));
    let before = offers.document(None, Level::V2_17, Coding::Plain);
    for phase in [BundlePhase::Marked, BundlePhase::Sweeping] {
        let withdrawn = marked(bundle("db", 1, "db-2"), phase);
        offers.take_bundles(vec![Event::Apply(withdrawn)]);
        assert_eq!(offered(&offers), [""; 0]);
        let catalog = offers.catalog();
        assert!(
            catalog
                .find("id-of-db", &plan_id("small"))
                .unwrap()
                .1
                .withdrawn
        );
        let withdrawal = &catalog.withdrawn["id-of-db"];
        assert_eq!(
            (withdrawal.name.as_str(), withdrawal.registry.as_str()),
            ("hub-db", "hub")
        );
        assert!(withdrawal.since.is_some());
    }
    offers.take_bundles(vec![Event::Apply(bundle("db", 1, "db-2"))]);
    assert_eq!(offers.document(None, Level::V2_17, Coding::Plain), before);
    let mut deleted = bundle("db", 1, "db-2");
    deleted.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    offers.take_bundles(vec![Event::Apply(deleted)]);
    assert_eq!(offered(&offers), [""; 0], "it is on its way out");
}

#[test]
fn tombstones_speak_for_what_is_gone_until_it_is_back() {
    let offers = offers(bundle("db", 1, "db-2"));
    assert_eq!(
        offers.catalog().withdrawn["id-of-gone"].name,
        "hub-id-of-gone"
    );
    offers.take_tombstones(vec![Event::Apply(tombstone("id-of-db").to_config_map())]);
    assert!(!offers.catalog().withdrawn.contains_key("id-of-db"));
    offers.take_bundles(vec![Event::Delete(bundle("db", 1, "db-2"))]);
    assert!(offers.catalog().withdrawn.contains_key("id-of-db"));
    offers.take_tombstones(list(&[]));
    assert!(offers.catalog().withdrawn.is_empty());
}

#[test]
fn one_bad_bundle_is_left_out_alone_and_says_why() {
    let offers = offers(bundle("db", 1, "db-2"));
    let mut wrong = described("bad", &["small", "large"]);
    wrong["plans"][0]["parameters"][0]["type"] = json!("text");
    let mut unmatched = described("odd", &["small", "large"]);
    // Sound by its looks, but it refers to a group that is not there.
    unmatched["plans"][0]["parameters"][1]["pattern"] = json!("(a)\\9");
    for event in [
        revision("bad", "bad-1", 1, "1.0.0", wrong),
        revision("odd", "odd-1", 1, "1.0.0", unmatched),
    ] {
        offers.take_revisions(vec![Event::Apply(event)]);
    }
    let mut empty = bundle("empty", 1, "");
    empty.status = None;
    let bundles = [
        bundle("bad", 1, "bad-1"),
        bundle("odd", 1, "odd-1"),
        bundle("lost", 1, "lost-1"),
        empty,
    ];
    offers.take_bundles(bundles.map(Event::Apply).into());
    assert_eq!(offered(&offers), ["hub-db: small large"]);
    let catalog = offers.catalog();
    let why = |bundle: &str| catalog.left_out[bundle].why.as_str();
    assert!(
        why("bad").contains("parameter size of plan small has the type"),
        "{}",
        why("bad")
    );
    assert!(
        why("odd").contains("the parameters of plan small make no schema"),
        "{}",
        why("odd")
    );
    assert_eq!(
        why("lost"),
        "its BundleRevision lost-1 is not there; `heddle registry sync hub` makes it again"
    );
    assert_eq!(
        why("empty"),
        "no image of it could be used yet; Bundle empty says what is wrong with the newest"
    );
    assert_eq!(catalog.left_out.len(), 4);
    let known = catalog.bundles();
    let of = |bundle: &str| (known[bundle].name, known[bundle].left_out.is_some());
    assert_eq!(of("db"), (Some("hub-db"), false));
    assert_eq!(of("odd"), (None, true), "nobody knows what it is called");
}

#[test]
fn ids_and_names_are_unique_over_applications_and_bundles() {
    let offers = offers(bundle("db", 1, "db-2"));
    let of_application = |id: &str, name: &str| {
        let mut service = service(id, &[ENTRY_API]);
        service.name = name.to_owned();
        service
    };
    let shop = application(
        "shop",
        99,
        vec![
            of_application("id-of-same", "some"),
            of_application("app", "hub-namesake"),
        ],
    );
    offers.take_applications(vec![Event::Apply(shop)]);
    let revisions = ["same", "namesake", "db2", "copy"].map(|name| {
        let called = if name == "db2" { "db" } else { name };
        revision(
            name,
            &format!("{name}-1"),
            1,
            "1.0.0",
            described(called, &["small", "large"]),
        )
    });
    offers.take_revisions(revisions.map(Event::Apply).into());
    let mut copy = bundle("copy", 9, "copy-1");
    copy.spec.service_id = "id-of-db".to_owned();
    let bundles = [
        bundle("same", 1, "same-1"),
        bundle("namesake", 1, "namesake-1"),
        bundle("db2", 2, "db2-1"),
        copy,
    ];
    offers.take_bundles(bundles.map(Event::Apply).into());
    let catalog = offers.catalog();
    assert!(
        catalog.left_out.keys().eq(["copy", "same"]),
        "{:?}",
        catalog.left_out
    );
    let why = |bundle: &str| catalog.left_out[bundle].why.as_str();
    assert!(why("copy").starts_with("Bundle db, which is older, has the same id"));
    assert!(why("same").starts_with("the Application's service some has the same id"));
    assert_eq!(
        catalog.bundles()["db2"].name.map(str::len),
        Some("hub-db-00000000".len()),
        "what had to change its name is known by the new one"
    );
    let name = |id: &str| {
        let named = catalog.offerings.iter().find(|one| one.id == id);
        named.unwrap().name.clone()
    };
    assert_eq!(
        (name("app"), name("id-of-db")),
        ("hub-namesake".to_owned(), "hub-db".to_owned())
    );
    for (id, plain) in [
        ("id-of-namesake", "hub-namesake-"),
        ("id-of-db2", "hub-db-"),
    ] {
        let name = name(id);
        assert!(
            name.starts_with(plain) && name.len() == plain.len() + 8,
            "{name}"
        );
    }
}

#[test]
fn the_order_in_which_things_become_known_makes_no_difference() {
    let bundles = [
        bundle("db", 2, "db-1"),
        bundle("other", 1, "other-1"),
        bundle("third", 1, "third-1"),
    ];
    let revisions = [
        revision(
            "db",
            "db-1",
            1,
            "1.0.0",
            described("db", &["small", "large"]),
        ),
        revision(
            "other",
            "other-1",
            1,
            "2.0.0",
            described("db", &["small", "large"]),
        ),
        revision(
            "third",
            "third-1",
            1,
            "not semantic",
            described("third", &["small", "large"]),
        ),
    ];
    let made = |backwards: bool| {
        let offers = LiveOffers::new(PER_SERVICE);
        let mut bundles: Vec<Bundle> = bundles.to_vec();
        let mut revisions: Vec<BundleRevision> = revisions.to_vec();
        if backwards {
            bundles.reverse();
            revisions.reverse();
            for bundle in bundles {
                offers.take_bundles(vec![Event::Apply(bundle)]);
            }
            for revision in revisions {
                offers.take_revisions(vec![Event::Apply(revision)]);
            }
            offers.take_registries(list(&[registry("hub", true)]));
        } else {
            offers.take_registries(list(&[registry("hub", true)]));
            offers.take_revisions(list(&revisions));
            offers.take_bundles(list(&bundles));
        }
        offers
    };
    let (one, other) = (made(false), made(true));
    assert_eq!(
        one.document(None, Level::V2_17, Coding::Plain),
        other.document(None, Level::V2_17, Coding::Plain)
    );
    let third = one
        .catalog()
        .find(
            "id-of-third",
            &heddle_api::offer::bundle::plan_id("id-of-third", "hub", "third", "small"),
        )
        .unwrap()
        .1
        .clone();
    assert_eq!(
        third.maintenance_version, None,
        "platforms take semantic versions only"
    );
    // What is listed again without a change leaves the catalog what it is.
    let catalog = one.catalog();
    one.take_revisions(list(&revisions));
    one.take_bundles(list(&bundles));
    assert!(Arc::ptr_eq(&one.catalog(), &catalog));
}

#[test]
fn a_track_of_its_own_has_a_name_of_its_own() {
    let offers = offers(bundle("db", 1, "db-2"));
    let mut named = bundle("v1", 1, "v1-1");
    named.spec.repository = "org/db".to_owned();
    named.spec.track = "v1.0".to_owned();
    offers.take_revisions(vec![Event::Apply(revision(
        "v1",
        "v1-1",
        1,
        "1.0.0",
        described("db", &["small", "large"]),
    ))]);
    offers.take_bundles(vec![Event::Apply(named)]);
    assert_eq!(
        offered(&offers),
        ["hub-db: small large", "hub-db-v1-0: small large"]
    );
    let catalog = offers.catalog();
    assert_eq!(
        catalog.offerings[1].metadata["displayName"],
        json!("A database (v1.0)")
    );
    // The tag of all is the registry's to choose.
    let mut other = registry("hub", true);
    other.metadata.generation = Some(2);
    other.spec.tags.default = "v1.0".to_owned();
    offers.take_registries(vec![Event::Apply(other)]);
    assert_eq!(
        offered(&offers),
        ["hub-db: small large", "hub-db-latest: small large"]
    );
}

#[test]
fn registries_are_unread_until_they_were_read_as_they_are() {
    let offers = offers(bundle("db", 1, "db-2"));
    assert!(offers.catalog().unread.is_empty());
    let catalog = offers.catalog();
    // Every reading writes a status, which changes nothing here.
    let mut written = registry("hub", true);
    written.status.as_mut().unwrap().consecutive_failures = Some(3);
    offers.take_registries(vec![Event::Apply(written)]);
    assert!(Arc::ptr_eq(&offers.catalog(), &catalog));
    let mut changed = registry("hub", true);
    changed.metadata.generation = Some(2);
    offers.take_registries(vec![
        Event::Apply(changed),
        Event::Apply(registry("new", false)),
    ]);
    assert_eq!(offers.catalog().unread, ["hub", "new"]);
    assert!(!offers.catalog().is_fresh, "bundles are known");
    offers.take_bundles(list(&[]));
    assert!(offers.catalog().is_fresh);
    let mut leaving = registry("new", false);
    leaving.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    offers.take_registries(vec![Event::Apply(leaving)]);
    assert_eq!(offers.catalog().unread, ["hub"]);
    assert!(!offers.catalog().is_fresh, "it was read once");
}

/// What a change costs among many; it is printed and not judged.
#[test]
fn a_change_among_five_thousand_bundles_takes_apart_only_what_changed() {
    let names: Vec<String> = (0..5000).map(|n| format!("b{n}")).collect();
    let offers = LiveOffers::new(PER_SERVICE);
    let revisions: Vec<BundleRevision> = names
        .iter()
        .map(|name| {
            revision(
                name,
                &format!("{name}-1"),
                1,
                "1.0.0",
                described(name, &["large"]),
            )
        })
        .collect();
    let bundles: Vec<Bundle> = names
        .iter()
        .map(|name| bundle(name, 1, &format!("{name}-1")))
        .collect();
    offers.take_registries(list(&[registry("hub", true)]));
    offers.take_revisions(list(&revisions));
    offers.take_bundles(list(&bundles));
    let before = offers.catalog();
    assert_eq!(before.offerings.len(), 5000);
    let clock = heddle_rt::Clock::system();
    let started = clock.monotonic();
    offers.take_bundles(vec![Event::Apply(marked(
        bundles[77].clone(),
        BundlePhase::Marked,
    ))]);
    let took = clock.monotonic().saturating_sub(started);
    let after = offers.catalog();
    let same = before
        .offerings
        .iter()
        .zip(&after.offerings)
        .filter(|(one, other)| Arc::ptr_eq(one, other));
    assert_eq!(same.count(), 4999, "all others are what they were");
    println!("a change among 5000 bundles: {took:?}");
}
