use kube::api::ApiResource;
use serde_json::json;

use super::*;

fn instance(name: &str, data: Value) -> DynamicObject {
    let resource = ApiResource::erase::<ServiceInstance>(&());
    DynamicObject::new(name, &resource)
        .within("team")
        .data(data)
}

#[test]
fn a_user_blocks_what_it_names_and_nothing_else() {
    let usage = Usage::of(&[
        instance(
            "a",
            json!({"spec": {"serviceID": "s", "revisionRef": {"name": "r1"}}}),
        ),
        instance(
            "b",
            json!({"spec": {"serviceID": "t"}, "status": {"applied": {"revisionRef": {"name": "r2"}}}}),
        ),
    ]);
    assert_eq!(usage.of_service("s"), [" team/a"]);
    assert_eq!(usage.of_service("t"), [" team/b"]);
    assert!(usage.of_service("u").is_empty());
    assert_eq!(usage.of_revision("r1", Some("s")), [" team/a"]);
    assert_eq!(usage.of_revision("r2", None), [" team/b"]);
    assert!(usage.of_revision("r3", Some("s")).is_empty());
}

#[test]
fn an_update_under_way_uses_both_revisions() {
    let usage = Usage::of(&[instance(
        "a",
        json!({
            "spec": {"serviceID": "s", "revisionRef": {"name": "new"}},
            "status": {"applied": {"revisionRef": {"name": "old"}}},
        }),
    )]);
    for revision in ["new", "old"] {
        assert_eq!(usage.of_revision(revision, Some("s")).len(), 1);
    }
}

#[test]
fn who_cannot_be_read_blocks_all_it_may_refer_to_and_no_more() {
    let broken_pin = json!({"spec": {"serviceID": "s", "revisionRef": {"name": 7}}});
    let usage = Usage::of(&[instance("a", broken_pin)]);
    assert_eq!(usage.of_service("s").len(), 1);
    assert!(usage.of_service("t").is_empty());
    assert_eq!(usage.of_revision("any", Some("s")).len(), 1);
    assert!(usage.of_revision("any", Some("t")).is_empty());
    assert_eq!(
        usage.of_revision("any", None).len(),
        1,
        "nobody knows whose revision it is"
    );
    let broken_service = json!({"spec": {"serviceID": null, "revisionRef": {"name": "r"}}});
    let usage = Usage::of(&[instance("a", broken_service)]);
    assert_eq!(usage.of_service("anything").len(), 1);
    assert!(usage.of_revision("another", Some("s")).is_empty());
}
