//! The table of `DELETE` of a binding, and the order of its checks.

use super::*;
use crate::verbs::testing::{binding, check_decision};

fn check(live: Option<&ServiceBinding>, query: &str, expected: &str) {
    let asked = OsbQuery::of(Some(query));
    let input = UnbindInput {
        id: "b",
        query: &asked,
        asynchronous: asked.accepts_incomplete,
        identity: None,
    };
    check_decision(live, query, expected, |view, fresh| {
        decide(live, &input, view, fresh)
    });
}

#[test]
fn every_state_meets_a_removal() {
    let ids = "service_id=svc&plan_id=prompt";
    check(None, ids, "410 Gone");
    for (lifecycle, expected) in [
        (Lifecycle::Making, "replace unbind-new"),
        (Lifecycle::MakeFailed, "replace unbind-new"),
        (Lifecycle::Ready, "replace unbind-new"),
        (Lifecycle::Removing, "pending"),
        (Lifecycle::RemoveFailed, "replace unbind-new"),
    ] {
        check(Some(&binding("prompt", lifecycle)), ids, expected);
    }
}

#[test]
fn pace_comes_before_being_gone_and_that_before_missing_ids() {
    check(None, "plan_id=patient", "422 AsyncRequired");
    check(None, "plan_id=patient&accepts_incomplete=true", "410 Gone");
    check(None, "", "410 Gone");
    let live = binding("patient", Lifecycle::Ready);
    check(Some(&live), "", "422 AsyncRequired");
    check(
        Some(&live),
        "service_id=svc&accepts_incomplete=true",
        "400 BadRequest",
    );
    check(
        Some(&live),
        "plan_id=patient&accepts_incomplete=true",
        "400 BadRequest",
    );
}

#[test]
fn a_binding_of_a_plan_that_is_forgotten_is_removed() {
    check(
        Some(&binding("forgotten", Lifecycle::Ready)),
        "service_id=svc&plan_id=forgotten",
        "replace unbind-new",
    );
}
