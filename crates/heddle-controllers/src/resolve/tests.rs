use heddle_api::duck::{Addressable, Destination, KReference};

use super::{Referent, events_url, resolve, target, uri};
use crate::references::Target;

fn at(url: &str) -> Referent {
    Referent::At(Addressable {
        url: Some(url.to_owned()),
        ca_certs: Some("theirs".to_owned()),
        ..Addressable::default()
    })
}

fn to(reference: Option<(&str, Option<&str>)>, uri: Option<&str>) -> Destination {
    Destination {
        reference: reference.map(|(kind, api_version)| KReference {
            kind: kind.to_owned(),
            name: "x".to_owned(),
            api_version: api_version.map(str::to_owned),
            namespace: None,
        }),
        uri: uri.map(str::to_owned),
        ..Destination::default()
    }
}

#[test]
fn a_destination_is_its_uri_or_the_address_of_its_ref() {
    let broker = Some(("Broker", None));
    let base = at("http://mesh:1/broker/ns/x");
    let cases: [(Destination, Option<Referent>, Result<&str, &str>); 14] = [
        (
            to(None, Some("http://a.example/in?x=1")),
            None,
            Ok("http://a.example/in?x=1"),
        ),
        (
            to(None, Some("HTTPS://a.example")),
            None,
            Ok("HTTPS://a.example"),
        ),
        (to(None, Some("/in")), None, Err("not absolute")),
        (
            to(None, Some("ftp://a.example/")),
            None,
            Err("neither http nor https"),
        ),
        (to(None, Some("http:///in")), None, Err("no host")),
        (to(None, Some("http://:80/in")), None, Err("no host")),
        (to(None, Some("http://a.example/ in")), None, Err("space")),
        (
            to(broker, None),
            Some(base.clone()),
            Ok("http://mesh:1/broker/ns/x"),
        ),
        (
            to(broker, Some("/extra?q")),
            Some(base.clone()),
            Ok("http://mesh:1/extra?q"),
        ),
        (
            to(broker, Some("http://b.example/")),
            Some(base),
            Err("must be relative"),
        ),
        (
            to(broker, None),
            Some(Referent::Absent),
            Err("Broker team-a/x does not exist"),
        ),
        (
            to(broker, None),
            Some(Referent::Leaving),
            Err("Broker team-a/x is being deleted"),
        ),
        (
            to(broker, None),
            Some(Referent::WithoutAddress),
            Err("Broker team-a/x has no address yet"),
        ),
        (
            to(Some(("Service", Some("v1"))), None),
            Some(Referent::NoSuchKind),
            Err("Service team-a/x has no address here"),
        ),
    ];
    for (destination, referent, expected) in cases {
        let found = resolve(&destination, "team-a", referent.as_ref());
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.uri, expected),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why:?} / {expected:?}"),
            _ => panic!("{destination:?}: {found:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn certificates_of_the_destination_come_before_those_of_the_address() {
    let mut destination = to(Some(("Channel", None)), None);
    let found = |destination: &Destination| {
        let resolved = resolve(destination, "ns", Some(&at("http://mesh/"))).unwrap();
        resolved.ca_certs.unwrap()
    };
    assert_eq!(found(&destination), "theirs");
    destination.ca_certs = Some("mine".to_owned());
    assert_eq!(found(&destination), "mine");
}

#[test]
fn relative_uris_mean_what_rfc_3986_says() {
    // Section 5.4, without the cases that name another host or scheme.
    let base = "http://a/b/c/d;p?q";
    for (relative, expected) in [
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
    ] {
        assert_eq!(
            uri::join(base, relative).as_deref(),
            Some(expected),
            "{relative:?}"
        );
    }
    assert_eq!(uri::join("http://a", "g").as_deref(), Some("http://a/g"));
    assert_eq!(uri::join(base, "//g"), None);
    assert_eq!(uri::join(base, "g:h"), None);
}

#[test]
fn a_reference_of_another_group_is_another_kind() {
    let named = |kind, version| target(&to(Some((kind, version)), None), "ns");
    let broker = Some(Target::new("Broker", "ns", "x"));
    assert_eq!(named("Broker", None), broker);
    assert_eq!(
        named("Broker", Some("eventing.knative.dev/v1beta1")),
        broker
    );
    assert_eq!(named("Broker", Some("other.example/v1")), None);
    assert_eq!(
        named("Application", None),
        Some(Target::new("Application", "", "x"))
    );
    assert_eq!(named("Service", Some("v1")), None);
}

#[test]
fn the_door_of_an_application_is_below_the_base_url() {
    assert_eq!(
        events_url("http://mesh:1/", "shop"),
        "http://mesh:1/shop/events"
    );
}
