//! Which events go where, and whether the conditions tell the truth about it.

use serde_json::{Value, json};

use super::stage::{self, BROKER, broker, event, trigger};
use super::subscriber::Subscriber;
use crate::harness::Server;

/// Publishes an event with more attributes than the usual ones.
async fn publish(server: &Server, id: &str, type_: &str, more: &[(&str, &str)]) {
    let mut headers = event(id, type_).to_vec();
    headers.extend(more);
    let answer = server.publisher().ask("POST", BROKER, &headers, b"").await;
    assert_eq!(answer.unwrap().status(), 202);
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

#[tokio::test]
async fn a_trigger_of_each_dialect_gets_what_it_asked_for_and_nothing_else() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let filters = |filters: Value| json!({"filters": filters});
    let stories: [(&str, Value, &[&str]); 12] = [
        ("everything", json!({}), &["1", "2", "3", "4", "5"]),
        (
            "attributes",
            json!({"filter": {"attributes": {"type": "order.created"}}}),
            &["1", "4"],
        ),
        (
            "presence",
            json!({"filter": {"attributes": {"tier": ""}}}),
            &["3", "4"],
        ),
        (
            "exact",
            filters(json!([{"exact": {"type": "order.cancelled"}}])),
            &["2"],
        ),
        (
            "prefix",
            filters(json!([{"prefix": {"type": "order."}}])),
            &["1", "2", "4"],
        ),
        (
            "suffix",
            filters(json!([{"suffix": {"type": ".created"}}])),
            &["1", "3", "4"],
        ),
        (
            "all",
            filters(
                json!([{"all": [{"suffix": {"type": ".created"}}, {"exact": {"tier": "gold"}}]}]),
            ),
            &["3"],
        ),
        (
            "any",
            filters(json!([{"any": [{"exact": {"type": "ping"}}, {"exact": {"tier": "silver"}}]}])),
            &["4", "5"],
        ),
        (
            "not",
            filters(json!([{"not": {"prefix": {"type": "order."}}}])),
            &["3", "5"],
        ),
        (
            "several",
            filters(json!([{"prefix": {"type": "order."}}, {"exact": {"tier": "silver"}}])),
            &["4"],
        ),
        (
            "cesql",
            filters(json!([{"cesql": "type LIKE 'order.%' AND NOT EXISTS tier"}])),
            &["1", "2"],
        ),
        (
            "nobody",
            filters(json!([{"exact": {"type": "never"}}])),
            &[],
        ),
    ];
    for (name, spec, _) in &stories {
        let uri = subscriber.url(&format!("/{name}"));
        server.apply(&trigger(name, &uri, spec.clone())).await;
    }
    for (name, ..) in &stories {
        server.until_ready("triggers", name).await;
    }
    publish(&server, "1", "order.created", &[]).await;
    publish(&server, "2", "order.cancelled", &[]).await;
    publish(&server, "3", "customer.created", &[("ce-tier", "gold")]).await;
    publish(&server, "4", "order.created", &[("ce-tier", "silver")]).await;
    publish(&server, "5", "ping", &[]).await;
    server.until_quiet().await;
    for (name, _, expected) in &stories {
        let got = sorted(subscriber.ids(&format!("/{name}")));
        assert_eq!(got, *expected, "{name}");
    }
}

#[tokio::test]
async fn a_filter_that_cannot_be_read_is_refused_when_it_is_applied() {
    let server = stage::with_broker().await;
    let filters = json!({"filters": [{"exact": {"type": "ping"}}, {"cesql": "type LIKE"}]});
    let wrong = trigger("wrong", "http://127.0.0.1:1/", filters);
    let outcome = server.heddle_with(&["apply", "-f", "-"], &wrong.to_string());
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.err.contains("spec.filters[1].cesql"),
        "{}",
        outcome.err
    );
    let outcome = server.heddle(&["get", "trigger", "wrong", "-n", "team-a"]);
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
}

#[tokio::test]
async fn an_edited_filter_holds_for_every_event_after_it_is_ready() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let wanting = |type_: &str| {
        let spec = json!({"filters": [{"exact": {"type": type_}}]});
        trigger("fickle", &subscriber.url("/fickle"), spec)
    };
    server.apply_trigger(&wanting("one")).await;
    server.publish(BROKER, "1", "one").await;
    server.publish(BROKER, "2", "two").await;
    server.until_quiet().await;
    server.apply_trigger(&wanting("two")).await;
    server.publish(BROKER, "3", "one").await;
    server.publish(BROKER, "4", "two").await;
    server.until_quiet().await;
    assert_eq!(subscriber.ids("/fickle"), ["1", "4"]);
}

#[tokio::test]
async fn a_trigger_waits_for_its_broker_and_says_so() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let spec = json!({"broker": "later"});
    let early = trigger("early", &subscriber.url("/early"), spec);
    server.apply(&early).await;
    let condition = server
        .until_condition("triggers", "early", "BrokerReady", "False")
        .await;
    assert_eq!(condition["reason"], "BrokerNotFound", "{condition}");
    let condition = server
        .until_condition("triggers", "early", "Ready", "False")
        .await;
    assert_eq!(condition["reason"], "BrokerNotFound", "{condition}");

    server.apply(&broker("later")).await;
    server.until_ready("triggers", "early").await;
    server.publish("/broker/team-a/later", "1", "ping").await;
    subscriber.until_received("/early", 1).await;
}

#[tokio::test]
async fn a_trigger_without_an_address_keeps_its_events_until_there_is_one() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let mut onward = trigger("onward", "", json!({}));
    onward["spec"]["subscriber"] = json!({"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "second"}});
    server.apply(&onward).await;
    let condition = server
        .until_condition("triggers", "onward", "SubscriberResolved", "False")
        .await;
    assert_eq!(condition["reason"], "SubscriberNotFound", "{condition}");
    assert!(
        condition["message"].as_str().unwrap().contains("second"),
        "{condition}"
    );

    // Who wants the events of the second broker is there first, for a broker keeps nothing that nobody wants.
    let spec = json!({"broker": "second"});
    let last = trigger("last", &subscriber.url("/last"), spec);
    server.apply(&last).await;
    server
        .until_condition("triggers", "last", "SubscriberResolved", "True")
        .await;
    server.until_held("onward").await;
    server.publish(BROKER, "early", "ping").await;

    server.apply(&broker("second")).await;
    server
        .until_condition("triggers", "onward", "SubscriberResolved", "True")
        .await;
    server.until_ready("triggers", "onward").await;
    server.until_ready("triggers", "last").await;
    server.publish(BROKER, "late", "ping").await;
    subscriber.until_received("/last", 2).await;
    server.until_quiet().await;
    assert_eq!(sorted(subscriber.ids("/last")), ["early", "late"]);
}

/// Brokers as others would export them: of a class that somebody else serves, and as Knative stamps every one.
#[tokio::test]
async fn a_broker_of_another_class_takes_no_events_until_its_class_is_served() {
    let mut server = stage::with_broker().await;
    let of_class = |name: &str, class: &str| {
        let mut broker = broker(name);
        broker["metadata"]["annotations"] = json!({"eventing.knative.dev/broker.class": class});
        broker
    };
    let publish = async |server: &Server, name: &str| {
        let place = format!("/broker/team-a/{name}");
        let answer = server
            .publisher()
            .ask("POST", &place, &event("1", "x"), b"")
            .await;
        answer.unwrap().status()
    };
    server.apply(&of_class("kafka", "Kafka")).await;
    server
        .apply(&of_class("stamped", "MTChannelBasedBroker"))
        .await;
    server.until_ready("brokers", "stamped").await;
    let ready = server
        .until_condition("brokers", "kafka", "Ready", "False")
        .await;
    assert_eq!(ready["reason"], "ClassNotServed");
    assert_eq!(publish(&server, "stamped").await, 202);
    assert_eq!(publish(&server, "kafka").await, 404);
    server.terminate().await;
    server.launch_configured("brokerClasses: [Kafka]\n").await;
    server.until_ready("brokers", "kafka").await;
    let ready = server
        .until_condition("brokers", "stamped", "Ready", "False")
        .await;
    assert_eq!(ready["reason"], "ClassNotServed");
    assert_eq!(publish(&server, "kafka").await, 202);
    assert_eq!(publish(&server, "stamped").await, 404);
    assert_eq!(publish(&server, "default").await, 202);
}
