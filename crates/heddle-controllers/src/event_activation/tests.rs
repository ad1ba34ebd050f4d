use serde_json::json;

use super::*;

fn world(flows: &[(&str, Status, &str)]) -> World {
    let owners: Vec<Value> = (flows.iter())
        .map(|(name, ..)| {
            json!({"apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow", "name": name, "uid": name})
        })
        .collect();
    let activation = json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "EventActivation",
        "metadata": {"name": "orders", "namespace": "team-a", "generation": 3, "ownerReferences": owners},
        "spec": {"sourceId": "shop"},
    });
    let readiness = |(name, status, why): &(&str, Status, &str)| {
        let why = (*why).to_owned();
        (
            (*name).to_owned(),
            Readiness {
                status: *status,
                why,
            },
        )
    };
    World {
        activation: serde_json::from_value(activation).unwrap(),
        flows: flows.iter().map(readiness).collect(),
    }
}

fn check(world: &World, status: &str, reason: Option<&str>) {
    let found = Activations.status(world, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(found["observedGeneration"], 3);
    for (at, type_) in ["FlowReady", "Ready"].into_iter().enumerate() {
        let condition = &found["conditions"][at];
        assert_eq!(condition["type"], type_, "{found:#}");
        let said = (condition["status"].as_str(), condition["reason"].as_str());
        assert_eq!(said, (Some(status), reason), "{found:#}");
    }
}

#[test]
fn a_projection_is_as_ready_as_the_flows_behind_it() {
    let not = Some("FlowNotReady");
    check(&world(&[]), "False", not);
    check(&world(&[("one", Status::True, "")]), "True", None);
    check(
        &world(&[("one", Status::Unknown, "it has no conditions yet")]),
        "Unknown",
        not,
    );
    let other = ("other", Status::False, "LinkMissing: it is not there yet");
    check(&world(&[other]), "False", not);
    check(&world(&[other, ("one", Status::True, "")]), "True", None);
}

#[test]
fn the_flows_behind_a_projection_are_its_owners() {
    let world = world(&[("one", Status::True, ""), ("two", Status::True, "")]);
    assert_eq!(flows(&world.activation), ["one", "two"]);
    let one = Target::of::<EventFlow>("team-a", "one");
    assert_eq!(targets(&world.activation)[0], one);
}
