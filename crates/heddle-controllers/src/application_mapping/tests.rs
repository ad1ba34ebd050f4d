use heddle_api::application::{Application, ApplicationSpec, Service};
use heddle_api::application_mapping::{ApplicationMapping, ApplicationMappingSpec, EnabledService};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::observe::World;
use super::status;

fn application(ids: &[&str]) -> Application {
    let services = ids
        .iter()
        .map(|id| Service {
            id: (*id).to_owned(),
            ..Service::default()
        })
        .collect();
    Application::new(
        "shop",
        ApplicationSpec {
            services,
            ..ApplicationSpec::default()
        },
    )
}

fn world(enabled: Option<&[&str]>, application: Option<Application>) -> World {
    let enable = |ids: &[&str]| {
        ids.iter()
            .map(|id| EnabledService {
                id: (*id).to_owned(),
            })
            .collect()
    };
    let mapping = ApplicationMapping::new(
        "shop",
        ApplicationMappingSpec {
            services: enabled.map(enable),
        },
    );
    World {
        mapping,
        application,
        namespace_terminating: false,
    }
}

fn check(world: &World, ready: &str, reason: Option<&str>, count: i32) {
    let status: Value = status::status(world, Timestamp::UNIX_EPOCH).unwrap();
    let last = status["conditions"].as_array().unwrap().last().unwrap();
    assert_eq!(last["type"], json!("Ready"));
    assert_eq!(
        (last["status"].as_str(), last["reason"].as_str()),
        (Some(ready), reason),
        "{status:#}"
    );
    assert_eq!(status["enabledServiceCount"], json!(count));
    if ready != "True" {
        assert!(
            last["message"]
                .as_str()
                .is_some_and(|message| message.len() > 20),
            "{status:#}"
        );
    }
}

#[test]
fn absent_enables_all_empty_enables_none_a_list_enables_those() {
    check(
        &world(None, Some(application(&["a", "b"]))),
        "True",
        None,
        2,
    );
    check(
        &world(Some(&[]), Some(application(&["a", "b"]))),
        "False",
        Some("NothingEnabled"),
        0,
    );
    check(
        &world(Some(&["b"]), Some(application(&["a", "b"]))),
        "True",
        None,
        1,
    );
}

#[test]
fn everything_that_can_be_wrong_with_a_mapping_has_its_own_reason() {
    check(&world(None, None), "False", Some("ApplicationNotFound"), 0);
    check(
        &world(Some(&["a", "z"]), Some(application(&["a"]))),
        "False",
        Some("ServiceNotFound"),
        1,
    );
    check(
        &world(None, Some(application(&[]))),
        "False",
        Some("NothingOffered"),
        0,
    );

    let mut leaving = application(&["a"]);
    leaving.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    check(
        &world(None, Some(leaving)),
        "False",
        Some("ApplicationTerminating"),
        1,
    );

    let mut rejecting = application(&["a", "b"]);
    let rejected = json!({"rejectedServices": [{"id": "b", "reason": "ServiceInvalid", "message": "no entries"}]});
    rejecting.status = serde_json::from_value(rejected).unwrap();
    check(
        &world(Some(&["b"]), Some(rejecting.clone())),
        "False",
        Some("ServiceNotOffered"),
        0,
    );
    check(&world(None, Some(rejecting)), "True", None, 1);

    let mut closing = world(None, Some(application(&["a"])));
    closing.namespace_terminating = true;
    check(&closing, "False", Some("NamespaceTerminating"), 1);
}
