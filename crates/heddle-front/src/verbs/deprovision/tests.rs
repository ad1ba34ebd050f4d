//! The table of `DELETE`, and the order of its checks.

use super::*;
use crate::verbs::testing::{STANDINGS, check_decision, instance, now};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

fn check(live: Option<&ServiceInstance>, query: &str, expected: &str) {
    let input = DeprovisionInput {
        id: "i",
        query: &OsbQuery::of(Some(query)),
        identity: None,
    };
    check_decision(live, query, expected, |view, fresh| {
        decide(live, &input, view, fresh)
    });
}

const IDS: &str = "service_id=svc&plan_id=prompt";

#[test]
fn every_state_meets_a_removal() {
    check(None, IDS, "410 Gone");
    for lifecycle in STANDINGS {
        let live = instance("prompt", lifecycle);
        let expected = match lifecycle {
            Lifecycle::Changing => "422 ConcurrencyError",
            Lifecycle::Removing => "pending",
            _ => "replace deprovision-new",
        };
        check(Some(&live), IDS, expected);
        check(
            Some(&live),
            &format!("{IDS}&accepts_incomplete=true"),
            expected,
        );
    }
}

#[test]
fn ids_come_before_pace_and_pace_before_being_gone() {
    for query in [
        "",
        "service_id=svc",
        "plan_id=patient",
        "service_id=&plan_id=patient",
    ] {
        check(None, query, "400 BadRequest");
        check(
            Some(&instance("patient", Lifecycle::Ready)),
            query,
            "400 BadRequest",
        );
    }
    check(None, "service_id=svc&plan_id=patient", "422 AsyncRequired");
    check(
        None,
        "service_id=svc&plan_id=patient&accepts_incomplete=true",
        "410 Gone",
    );
    check(None, "service_id=svc&plan_id=forgotten", "410 Gone");
}

#[test]
fn the_instance_knows_its_plan_better_than_the_platform() {
    let live = instance("prompt", Lifecycle::Ready);
    check(
        Some(&live),
        "service_id=other&plan_id=patient",
        "replace deprovision-new",
    );
    let live = instance("patient", Lifecycle::Ready);
    check(Some(&live), IDS, "422 AsyncRequired");
}

#[test]
fn a_removal_that_somebody_else_began_becomes_the_platforms_own() {
    let mut live = instance("prompt", Lifecycle::Ready);
    live.metadata.deletion_timestamp = Some(Time(now()));
    check(Some(&live), IDS, "replace deprovision-new");
}
