//! What is seen of an instance in every state.

use super::*;
use crate::verbs::testing::{
    Fixed, STANDINGS, instance, members, refused, unusable_instance, with_catalog,
};

#[test]
fn an_instance_is_seen_when_it_is_there_and_stands_still() {
    let seen = |live: Option<&ServiceInstance>| {
        visible(live, "i").map_or_else(|error| refused(&error), |_| "200".to_owned())
    };
    assert_eq!(seen(None), "404 NotFound");
    for lifecycle in STANDINGS {
        let expected = match lifecycle {
            Lifecycle::Making | Lifecycle::MakeFailed | Lifecycle::Removing => "404 NotFound",
            Lifecycle::Changing => "422 ConcurrencyError",
            Lifecycle::Ready | Lifecycle::ChangeFailed | Lifecycle::RemoveFailed => "200",
        };
        assert_eq!(
            seen(Some(&instance("prompt", lifecycle))),
            expected,
            "{lifecycle:?}"
        );
    }
    let broken = unusable_instance("prompt", Lifecycle::RemoveFailed);
    assert_eq!(seen(Some(&broken)), "404 NotFound");
}

#[test]
fn what_is_in_force_is_shown_without_secrets_and_only_what_the_version_knows() {
    let mut live = instance("patient", Lifecycle::ChangeFailed);
    live.spec.plan_id = "prompt".to_owned();
    let applied = live.status.as_mut().unwrap().applied.as_mut().unwrap();
    applied.parameters = members(json!({"size": 1, "token": "t"}));
    let body = |version| {
        with_catalog(&Fixed::default(), |view| {
            Value::from(shown(&live, view, version))
        })
    };
    let all = json!({
        "service_id": "svc", "plan_id": "patient", "parameters": {"size": 1}, "maintenance_info": {"version": "1.0.0"},
    });
    assert_eq!(body(Version::NEWEST), all);
    let old = json!({"service_id": "svc", "plan_id": "patient", "parameters": {"size": 1}});
    assert_eq!(body(Version::V2_14), old);
}

#[test]
fn parameters_of_a_plan_that_is_forgotten_are_withheld() {
    let live = instance("forgotten", Lifecycle::Ready);
    let body = with_catalog(&Fixed::default(), |view| {
        shown(&live, view, Version::NEWEST)
    });
    assert_eq!(
        Value::from(body),
        json!({"service_id": "svc", "plan_id": "forgotten"})
    );
}
