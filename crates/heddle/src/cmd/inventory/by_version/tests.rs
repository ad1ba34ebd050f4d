use heddle_api::BundleRevision;

use super::*;

fn bundle(name: &str, id: &str, phase: &str, current: &str, version: Option<&str>) -> Bundle {
    serde_json::from_value(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Bundle", "metadata": {"name": name},
        "spec": {"registry": "dh", "repository": format!("org/{name}"), "track": "latest", "serviceID": id},
        "status": {"phase": phase, "currentRevision": current, "bundleVersion": version},
    }))
    .unwrap()
}

fn revision(name: &str) -> BundleRevision {
    serde_json::from_value(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "BundleRevision", "metadata": {"name": name},
        "spec": {
            "bundle": "plain", "registry": "dh", "image": "i", "manifestDigest": pin(name, None)["digest"],
            "configDigest": "sha256:2", "description": {"name": "plain"},
        },
    }))
    .unwrap()
}

fn instance(
    id: &str,
    service: &str,
    wanted: Option<&Value>,
    applied: Option<&Value>,
) -> ServiceInstance {
    let mut object = json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "ServiceInstance", "metadata": {"name": id, "namespace": "team-a"},
        "spec": {"instanceID": id, "serviceID": service, "planID": "p", "revisionRef": wanted},
    });
    if let Some(applied) = applied {
        object["status"] = json!({"applied": {"planID": "p", "revisionRef": applied}});
    }
    serde_json::from_value(object).unwrap()
}

fn pin(name: &str, version: Option<&str>) -> Value {
    json!({"name": name, "digest": format!("sha256:{name}-0123456789abcdef"), "bundleVersion": version})
}

#[test]
fn instances_are_counted_by_the_version_in_force_and_those_behind_are_named() {
    let bundle_list = BundleList::new(
        vec![
            bundle("hello", "s1", "Live", "h2", Some("1.1.0")),
            bundle("plain", "s2", "Live", "p1", None),
            bundle("gone", "s3", "Marked", "g1", Some("3.0.0")),
        ],
        vec![revision("p1")],
    );
    let (old, new) = (pin("h1", Some("1.0.0")), pin("h2", Some("1.1.0")));
    let (plain, gone, lost) = (
        pin("p1", None),
        pin("g1", Some("3.0.0")),
        pin("l1", Some("0.1.0")),
    );
    let instances = [
        instance("b", "s1", Some(&old), None),
        // An update is under way: the old version is still in force.
        instance("a", "s1", Some(&new), Some(&old)),
        instance("c", "s1", Some(&new), Some(&new)),
        instance("d", "s2", Some(&plain), None),
        instance("e", "s3", Some(&gone), None),
        instance("f", "s4", Some(&lost), None),
        instance("waiting", "s1", None, None),
    ];
    let groups = groups(&instances, &bundle_list);
    insta::assert_snapshot!(table(&groups, false), @r"
    REGISTRY   BUNDLE   IMAGE              VERSION               CATALOG               INSTANCES   BEHIND
    <none>     s4       <none>             0.1.0                 withdrawn             1           <none>
    dh         gone     org/gone:latest    3.0.0                 withdrawn             1           <none>
    dh         hello    org/hello:latest   1.0.0                 1.1.0                 2           team-a/a, team-a/b
    dh         hello    org/hello:latest   1.1.0                 1.1.0                 1           <none>
    dh         plain    org/plain:latest   sha256:p1-012345678   sha256:p1-012345678   1           <none>
    ");
    let report = groups[2].to_json();
    assert_eq!(report["behind"], true);
    assert_eq!(
        report["instances"][0],
        json!({"namespace": "team-a", "id": "a"})
    );
}
