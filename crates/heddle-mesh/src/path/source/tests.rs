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
fn only_a_well_formed_trace_context_is_carried_on() {
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let context = carried(Some(good), Some("vendor=1")).unwrap();
    assert_eq!((&*context.parent, &*context.state), (good, "vendor=1"));
    let long = "x".repeat(TRACE_BYTES_MAX + 1);
    let context = carried(Some(good), Some(&long)).unwrap();
    assert_eq!(&*context.state, "", "state is worth less than the trace");
    let endless = format!("{}-{long}", good.replacen("00", "01", 1));
    for bad in [None, Some(""), Some(&good[1..]), Some(&endless)] {
        assert_eq!(carried(bad, Some("vendor=1")), None, "{bad:?}");
    }
}
