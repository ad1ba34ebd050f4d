use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;

fn services() -> Vec<Value> {
    let plan = |id: &str, name: &str| json!({"id": id, "name": name});
    vec![
        json!({"id": "s1", "name": "shop-events", "plans": [plan("p1", "default")]}),
        json!({"id": "s2", "name": "crm", "plans": [plan("p2", "small"), plan("p3", "large")]}),
    ]
}

fn chosen(words: &str) -> String {
    match choose(&services(), words) {
        Ok(choice) => format!("{} {}", choice.service_id, choice.plan_id),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn an_offering_is_named_by_name_or_id_and_a_plan_only_where_there_is_a_choice() {
    assert_eq!(chosen("shop-events"), "s1 p1");
    assert_eq!(chosen("s1/default"), "s1 p1");
    assert_eq!(chosen("crm/large"), "s2 p3");
    assert_eq!(
        chosen("crm"),
        "`crm` has several plans: small, large; write crm/PLAN"
    );
    assert_eq!(
        chosen("crm/huge"),
        "`crm` has no plan `huge`; it has small, large"
    );
    assert_eq!(
        chosen("sap"),
        "`sap` is not offered here; offered: shop-events, crm"
    );
}

#[tokio::test]
async fn ids_are_encoded_and_the_version_is_announced() {
    let server = StandIn::start().await;
    let path = "/heddle/v1/osb/team-a/v2/service_instances/a%2Fb%20c";
    server.answers(&format!("PUT {path}"), 202, &json!({"operation": "op1"}));
    let remote = server.remote();
    let osb = Osb::of_namespace(&remote, "team-a");
    let choice = choose(&services(), "shop-events").unwrap();
    let reply = osb.provision("a/b c", &choice, &json!({})).await.unwrap();
    assert!(matches!(reply, Reply::Accepted(Some(id)) if id == "op1"));
    let asked = &server.asked()[0];
    assert_eq!(asked.header("x-broker-api-version"), "2.17");
    assert_eq!(
        asked.json(),
        json!({
            "service_id": "s1", "plan_id": "p1", "organization_guid": "heddle", "space_guid": "team-a",
            "context": {"platform": "heddle", "namespace": "team-a"},
        })
    );
}

#[tokio::test]
async fn a_refusal_is_told_in_the_brokers_words() {
    let server = StandIn::start().await;
    let body = json!({"error": "AsyncRequired", "description": "say accepts_incomplete=true"});
    server.answers("DELETE /v2/service_instances/x", 422, &body);
    let remote = server.remote();
    let osb = Osb::of_server(&remote);
    let choice = choose(&services(), "shop-events").unwrap();
    let error = osb.deprovision("x", &choice).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "instance x: say accepts_incomplete=true (AsyncRequired)"
    );
}

#[tokio::test]
async fn an_instance_that_is_gone_has_been_removed() {
    let server = StandIn::start().await;
    let path = "GET /v2/service_instances/x/last_operation";
    server.answers(path, 410, &json!({}));
    let remote = server.remote();
    let progress = Osb::of_server(&remote)
        .progress("x", None, Some("op"))
        .await;
    assert_eq!(progress.unwrap().state, "succeeded");
    assert_eq!(server.lines(), [format!("{path}?operation=op")]);
}
