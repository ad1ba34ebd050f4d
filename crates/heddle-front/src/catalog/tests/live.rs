//! What the catalog of a running system promises, with watches that the test plays.

use std::sync::Arc;

use futures::FutureExt as _;
use kube::runtime::watcher::Event;

use super::*;

/// A fresh list of a kind.
fn list<K: Clone>(objects: &[K]) -> Vec<Event<K>> {
    let mut events = vec![Event::Init];
    events.extend(objects.iter().cloned().map(Event::InitApply));
    events.push(Event::InitDone);
    events
}

fn shop() -> Application {
    application(
        "shop",
        1,
        vec![service("a", &[ENTRY_API]), service("b", &[ENTRY_EVENTS])],
    )
}

/// Lists everything but Applications and mappings, of which there is nothing.
fn list_no_bundles(offers: &LiveOffers) {
    offers.take_bundles(list(&[]));
    offers.take_revisions(list(&[]));
    offers.take_registries(list(&[]));
    offers.take_tombstones(list(&[]));
}

fn offers() -> LiveOffers {
    let offers = LiveOffers::new(PER_SERVICE);
    list_no_bundles(&offers);
    offers.take_applications(list(&[shop()]));
    offers.take_mappings(list(&[
        mapping("all", "shop", None),
        mapping("some", "shop", Some(&["b"])),
    ]));
    offers
}

fn names(offers: &LiveOffers, namespace: Option<&str>) -> String {
    let document = offers.document(namespace, Level::V2_13, Coding::Plain);
    let document: Value = serde_json::from_slice(&document.bytes).unwrap();
    let services = document["services"].as_array().unwrap().iter();
    let ids: Vec<&str> = services
        .map(|service| service["id"].as_str().unwrap())
        .collect();
    ids.join(" ")
}

/// Whether it is the same rendering, not merely an equal one.
fn is_same(one: &Document, other: &Document) -> bool {
    one.bytes.as_ptr() == other.bytes.as_ptr()
}

#[test]
fn it_is_ready_once_all_kinds_were_listed_whole() {
    let offers = LiveOffers::new(PER_SERVICE);
    list_no_bundles(&offers);
    offers.take_mappings(list(&[]));
    let mut applications = list(&[shop()]);
    let done = applications.pop().unwrap();
    offers.take_applications(applications);
    assert!(!offers.is_ready() && offers.ready().now_or_never().is_none());
    assert!(
        offers.catalog().offerings.is_empty(),
        "half a list is no catalog"
    );
    offers.take_applications(vec![done]);
    assert!(offers.is_ready() && offers.ready().now_or_never().is_some());
}

#[test]
fn each_namespace_reads_its_own_document() {
    let offers = offers();
    assert_eq!(names(&offers, None), "a b");
    assert_eq!(names(&offers, Some("all")), "a b");
    assert_eq!(names(&offers, Some("some")), "b");
    assert_eq!(names(&offers, Some("none")), "");
    for (namespace, plan, expected) in [
        (None, "a-plan", true),
        (Some("all"), "a-plan", true),
        (Some("some"), "a-plan", false),
        (Some("none"), "a-plan", false),
        (None, "b-plan", false),
    ] {
        assert_eq!(
            offers.is_offered(namespace, "a", plan),
            expected,
            "{namespace:?} {plan}"
        );
    }
}

#[test]
fn a_broken_watch_takes_nothing_away_and_a_new_list_counts_when_it_is_whole() {
    let offers = offers();
    let before = offers.document(None, Level::V2_17, Coding::Plain);
    // A list begins and breaks off, twice: nothing of it is seen.
    offers.take_applications(vec![Event::Init]);
    offers.take_applications(vec![
        Event::Init,
        Event::InitApply(application("crm", 2, vec![service("c", &[ENTRY_API])])),
    ]);
    offers.take_mappings(vec![Event::Init]);
    assert!(is_same(
        &offers.document(None, Level::V2_17, Coding::Plain),
        &before
    ));
    assert_eq!(names(&offers, Some("some")), "b");
    // The next one is whole, and does not have what the broken one had.
    offers.take_applications(list(&[shop()]));
    offers.take_mappings(list(&[mapping("some", "shop", Some(&["a"]))]));
    assert!(
        is_same(&offers.document(None, Level::V2_17, Coding::Plain), &before),
        "the same was listed"
    );
    assert_eq!(names(&offers, Some("some")), "a");
    assert_eq!(
        names(&offers, Some("all")),
        "",
        "its mapping went unseen, and the list tells"
    );
}

#[test]
fn a_document_is_rendered_once_until_what_it_shows_changes() {
    let offers = offers();
    let read = |namespace| offers.document(namespace, Level::V2_17, Coding::Plain);
    let (all, some, everybody, nobody) = (
        read(Some("all")),
        read(Some("some")),
        read(None),
        read(Some("x")),
    );
    assert!(is_same(&read(Some("all")), &all));
    assert!(
        is_same(&read(Some("y")), &nobody),
        "namespaces without mappings share one"
    );

    // Statuses are written all the time and change nothing.
    let catalog = offers.catalog();
    let mut written = shop();
    written.status = Some(heddle_api::application::ApplicationStatus::default());
    offers.take_applications(vec![Event::Apply(written)]);
    assert!(Arc::ptr_eq(&offers.catalog(), &catalog));

    // Another namespace's mapping is none of ours.
    let mut edited = mapping("some", "shop", None);
    edited.metadata.generation = Some(2);
    offers.take_mappings(vec![Event::Apply(edited)]);
    assert!(is_same(&read(Some("all")), &all) && is_same(&read(None), &everybody));
    assert_ne!(read(Some("some")), some);

    // An edit that is not visible in the catalog keeps it, too.
    let mut edited = shop();
    edited.metadata.generation = Some(2);
    edited.spec.tenant = Some("acme".to_owned());
    offers.take_applications(vec![Event::Apply(edited.clone())]);
    assert!(Arc::ptr_eq(&offers.catalog(), &catalog));
    assert!(is_same(&read(Some("all")), &all));

    edited.metadata.generation = Some(3);
    edited.spec.services.pop();
    offers.take_applications(vec![Event::Apply(edited)]);
    assert_ne!(read(Some("all")).etag, all.etag);
    assert_eq!(names(&offers, None), "a");
    offers.take_applications(vec![Event::Delete(shop())]);
    assert_eq!(names(&offers, None), "");
}

#[test]
fn each_form_is_kept_when_it_was_asked_for_and_goes_when_the_catalog_changes() {
    let offers = offers();
    let ids = ["c", "d", "e", "f", "g"].map(|id| service(id, &[ENTRY_API]));
    let large = application("crm", 2, ids.to_vec());
    offers.take_applications(vec![Event::Apply(large.clone())]);
    let level = Level::V2_17;
    let at_hand = |coding| offers.rendered(None, level, coding);
    assert_eq!(
        (at_hand(Coding::Plain), at_hand(Coding::Gzip)),
        (None, None)
    );
    let gzip = offers.document(None, level, Coding::Gzip);
    assert_eq!(gzip.coding, Coding::Gzip);
    assert!(is_same(&at_hand(Coding::Gzip).unwrap(), &gzip));
    assert_eq!(at_hand(Coding::Plain), None, "nobody asked for it");
    let plain = offers.document(None, level, Coding::Plain);
    assert_eq!(unpacked(&gzip), plain.bytes);
    assert_ne!(gzip.etag, plain.etag);
    offers.take_applications(vec![Event::Delete(shop()), Event::Delete(large)]);
    assert_eq!(
        (at_hand(Coding::Plain), at_hand(Coding::Gzip)),
        (None, None)
    );
    let empty = offers.document(None, level, Coding::Gzip);
    assert_eq!(empty.coding, Coding::Plain, "it is too small");
}

#[test]
fn a_younger_application_takes_over_when_the_older_is_gone() {
    let offers = offers();
    let younger = application("crm", 2, vec![service("a", &[ENTRY_EVENTS])]);
    offers.take_applications(vec![Event::Apply(younger)]);
    let owner = || match &offers.catalog().find("a", "a-plan").unwrap().1.backing {
        Backing::Application { name, .. } => name.clone(),
        Backing::Bundle { .. } => unreachable!("there are no bundles"),
    };
    assert_eq!(owner(), "shop");
    offers.take_applications(vec![Event::Apply(leaving(shop()))]);
    assert_eq!(owner(), "shop");
    assert!(!offers.is_offered(None, "a", "a-plan"));
    offers.take_applications(vec![Event::Delete(leaving(shop()))]);
    assert_eq!(owner(), "crm");
    assert!(offers.is_offered(None, "a", "a-plan"));
}
