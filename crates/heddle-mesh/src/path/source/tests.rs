//! Paths and trace contexts, by table.

use super::*;

#[test]
fn a_path_names_an_application_a_broker_or_a_channel() {
    assert_eq!(path("/shop/events"), Some(Path::Application("shop")));
    let broker = Path::Entry(DoorKind::Broker, "broker/team-a/default");
    assert_eq!(path("/broker/team-a/default"), Some(broker));
    let channel = Path::Entry(DoorKind::Channel, "channel/kyma-integration/shop");
    assert_eq!(path("/channel/kyma-integration/shop"), Some(channel));
    for nothing in [
        "",
        "/",
        "/events",
        "//events",
        "/shop/event",
        "/broker/a",
        "/broker//b",
        "/broker/a/b/c",
        "/shop/events/",
    ] {
        assert_eq!(path(nothing), None, "{nothing}");
    }
}

#[test]
fn an_application_may_be_called_broker() {
    assert_eq!(path("/broker/events"), Some(Path::Application("broker")));
}

#[test]
fn only_a_well_formed_trace_parent_is_carried_on() {
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert!(is_trace_parent(good));
    for bad in [
        "",
        "00",
        &good.to_uppercase(),
        &good.replace('-', "_"),
        &format!("{good}-x"),
        &good[1..],
    ] {
        assert!(!is_trace_parent(bad), "{bad}");
    }
}
