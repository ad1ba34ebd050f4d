//! The life of an instance.

use std::time::Duration;

use heddle_api::names;
use heddle_api::well_known::LAST_CONTACT_ANNOTATION;
use heddle_apiserver::CONTROLLERS;
use heddle_front::Settings;
use heddle_front::settings::DeletedPoll;
use http::Method;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::world::{IDS, World, ask, client, front, request, tell, tell_with, wanted};

const I: &str = "/osb/team-a/v2/service_instances/i";

async fn put(world: &World) -> String {
    let reply = world
        .put(
            &format!("{I}?accepts_incomplete=true"),
            wanted("patient", json!({"size": 1})),
        )
        .await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.operation().to_owned()
}

#[test]
fn an_instance_is_made_asked_about_changed_and_removed() {
    tell(|world| async move {
        assert_eq!(world.get(I).await.status, 404);
        assert_eq!(world.get(&format!("{I}/last_operation")).await.status, 404);
        let operation = put(&world).await;
        let poll = world
            .get(&format!("{I}/last_operation?operation={operation}"))
            .await;
        assert_eq!(
            (poll.status, &poll.body["state"]),
            (200, &json!("in progress"))
        );
        assert_eq!(poll.headers["retry-after"], "1");
        assert_eq!(world.get(I).await.status, 404, "it is not made yet");
        assert_eq!(
            put(&world).await,
            operation,
            "a repeat is the same operation"
        );

        world.end_instance("team-a", "i", "succeeded").await;
        let poll = world
            .get(&format!("{I}/last_operation?operation=provision"))
            .await;
        assert_eq!(
            poll.body,
            json!({"state": "succeeded", "description": "by hand"})
        );
        let seen = world.get(I).await;
        assert_eq!(
            seen.body,
            json!({"service_id": "svc", "plan_id": "patient", "parameters": {"size": 1}})
        );
        let again = world
            .put(
                &format!("{I}?accepts_incomplete=true"),
                wanted("patient", json!({"size": 1.0})),
            )
            .await;
        assert_eq!((again.status, again.body), (200, json!({})));
        let other = world
            .put(
                &format!("{I}?accepts_incomplete=true"),
                wanted("patient", json!({"size": 2})),
            )
            .await;
        assert_eq!(other.status, 409);

        let change = json!({"service_id": "svc", "parameters": {"size": 3}});
        let changed = world
            .ask(
                Method::PATCH,
                &format!("{I}?accepts_incomplete=true"),
                Some(change.clone()),
            )
            .await;
        assert_eq!(changed.status, 202);
        let repeated = world
            .ask(
                Method::PATCH,
                &format!("{I}?accepts_incomplete=true"),
                Some(change),
            )
            .await;
        assert_eq!(
            (repeated.status, repeated.operation()),
            (202, changed.operation())
        );
        assert_eq!(world.get(I).await.status, 422);
        assert_eq!(
            world.delete(&format!("{I}?{IDS}")).await.body["error"],
            "ConcurrencyError"
        );
        world.end_instance("team-a", "i", "succeeded").await;
        assert_eq!(world.get(I).await.body["parameters"], json!({"size": 3}));

        let removal = world.delete(&format!("{I}?{IDS}")).await;
        assert_eq!(removal.status, 202);
        assert_eq!(
            world.delete(&format!("{I}?{IDS}")).await.operation(),
            removal.operation()
        );
        world.finish_removal("team-a", "i").await;
        for _ in 0..2 {
            let poll = world
                .get(&format!(
                    "{I}/last_operation?operation={}",
                    removal.operation()
                ))
                .await;
            assert_eq!(
                poll.body,
                json!({"state": "succeeded", "description": "all gone"})
            );
        }
        assert_eq!(world.delete(&format!("{I}?{IDS}")).await.status, 410);
        let poll = world
            .get(&format!("{I}/last_operation?operation={operation}"))
            .await;
        assert_eq!(
            poll.body["state"], "failed",
            "making what is gone did not succeed"
        );
        let anew = put(&world).await;
        assert_ne!(anew, operation);
    });
}

#[test]
fn what_is_gone_is_gone_if_the_operator_prefers_that() {
    let settings = Settings {
        deleted_poll: DeletedPoll::Gone,
        ..Settings::default()
    };
    tell_with(settings, |world| async move {
        put(&world).await;
        world.delete(&format!("{I}?{IDS}")).await;
        world.finish_removal("team-a", "i").await;
        assert_eq!(world.get(&format!("{I}/last_operation")).await.status, 410);
        assert_eq!(
            world
                .get("/osb/team-a/v2/service_instances/j/last_operation")
                .await
                .status,
            404
        );
    });
}

#[test]
fn a_failed_instance_is_made_again_by_an_equal_request_and_repaired_by_a_change() {
    tell(|world| async move {
        let first = put(&world).await;
        world.end_instance("team-a", "i", "failed").await;
        let poll = world.get(&format!("{I}/last_operation")).await;
        assert_eq!(poll.body["state"], "failed");
        let second = put(&world).await;
        assert_ne!(second, first);
        assert_eq!(
            world.get(&format!("{I}/last_operation")).await.body["state"],
            "in progress"
        );
        world.end_instance("team-a", "i", "failed").await;
        let repair = json!({"service_id": "svc", "parameters": {"size": 2}});
        let repair = world
            .ask(
                Method::PATCH,
                &format!("{I}?accepts_incomplete=true"),
                Some(repair),
            )
            .await;
        assert_eq!(repair.status, 202);
        world.end_instance("team-a", "i", "succeeded").await;
        assert_eq!(world.get(I).await.body["parameters"], json!({"size": 2}));
    });
}

#[test]
fn a_removal_wins_over_the_making_that_runs() {
    tell(|world| async move {
        let making = put(&world).await;
        let removal = world.delete(&format!("{I}?{IDS}")).await;
        assert_eq!(removal.status, 202);
        assert_ne!(removal.operation(), making);
        for (operation, state) in [
            (removal.operation(), "in progress"),
            (&making, "failed"),
            ("", "in progress"),
        ] {
            let poll = world
                .get(&format!("{I}/last_operation?operation={operation}"))
                .await;
            assert_eq!(poll.body["state"], state, "{operation}");
        }
        let late = world
            .put(
                &format!("{I}?accepts_incomplete=true"),
                wanted("patient", json!({"size": 1})),
            )
            .await;
        assert_eq!(late.body["error"], "ConcurrencyError");
        // The controller may still end the making; that does not bring the instance back.
        world.finish_removal("team-a", "i").await;
        assert_eq!(world.get(I).await.status, 404);
    });
}

#[test]
fn a_platform_that_cannot_ask_again_is_kept_waiting_for_what_is_prompt() {
    tell(|world| async move {
        let body = wanted("prompt", json!({}));
        let slow = world.put(I, body.clone()).await;
        assert_eq!(
            (slow.status, &slow.body["error"]),
            (504, &json!("OperationUnsettled")),
            "nobody made it in time"
        );
        let version = world.instance("team-a", "i").await.resource_version();
        let (waiting, ()) = tokio::join!(world.put(I, body.clone()), async {
            world.clock.sleep(Duration::from_secs(3)).await;
            world.end_instance("team-a", "i", "succeeded").await;
        });
        assert_eq!(waiting.status, 200, "it was asked for before");
        assert_ne!(
            world.instance("team-a", "i").await.resource_version(),
            version
        );
        assert_eq!(world.put(I, body).await.status, 200);

        let j = "/osb/team-a/v2/service_instances/j";
        let (made, ()) = tokio::join!(world.put(j, wanted("prompt", json!({}))), async {
            world.clock.sleep(Duration::from_secs(3)).await;
            world.end_instance("team-a", "j", "succeeded").await;
        });
        assert_eq!((made.status, made.body), (201, json!({})));
        let removal = format!("{j}?service_id=svc&plan_id=prompt");
        let (removed, ()) = tokio::join!(world.delete(&removal), async {
            world.clock.sleep(Duration::from_secs(3)).await;
            world.finish_removal("team-a", "j").await;
        });
        assert_eq!((removed.status, removed.body), (200, json!({})));

        let k = "/osb/team-a/v2/service_instances/k";
        let (failed, ()) = tokio::join!(world.put(k, wanted("prompt", json!({}))), async {
            world.clock.sleep(Duration::from_secs(3)).await;
            world.end_instance("team-a", "k", "failed").await;
        });
        assert_eq!(
            (failed.status, &failed.body["description"]),
            (500, &json!("by hand"))
        );
    });
}

#[test]
fn what_is_done_in_a_moment_is_answered_as_done_where_the_operator_allows_the_moment() {
    let settings = Settings {
        fast_wait: Duration::from_secs(2),
        ..Settings::default()
    };
    tell_with(settings, |world| async move {
        let path = format!("{I}?accepts_incomplete=true");
        let (made, ()) = tokio::join!(world.put(&path, wanted("patient", json!({}))), async {
            world.clock.sleep(Duration::from_secs(1)).await;
            world.end_instance("team-a", "i", "succeeded").await;
        });
        assert_eq!(made.status, 201);
        let slow = world
            .put(
                "/v2/service_instances/j?accepts_incomplete=true",
                wanted("patient", json!({})),
            )
            .await;
        assert_eq!(slow.status, 202);
    });
}

#[test]
fn a_front_of_one_namespace_knows_nothing_of_another() {
    tell(|world| async move {
        put(&world).await;
        let elsewhere = I.replace("team-a", "team-b");
        assert_eq!(
            world
                .get(&format!("{elsewhere}/last_operation"))
                .await
                .status,
            404
        );
        assert_eq!(
            world.delete(&format!("{elsewhere}?{IDS}")).await.status,
            410
        );
        let path = format!("{elsewhere}?accepts_incomplete=true");
        assert_eq!(
            world
                .put(&path, wanted("patient", json!({"size": 9})))
                .await
                .status,
            202,
            "ids are its own"
        );
    });
}

#[test]
fn the_front_of_all_namespaces_finds_an_instance_wherever_it_is_also_after_a_restart() {
    tell(|world| async move {
        let mut body = wanted("patient", json!({}));
        body["context"] = json!({"platform": "kubernetes", "namespace": "team-b"});
        let path = "/v2/service_instances/a%2Fb%20%C3%BC?accepts_incomplete=true";
        assert_eq!(world.put(path, body.clone()).await.status, 202);
        let instance = world.instance("team-b", "a/b ü").await;
        assert_eq!(instance.spec.instance_id, "a/b ü");
        world.end_instance("team-b", "a/b ü", "succeeded").await;
        let restarted = front(
            client(&world.server, CONTROLLERS),
            &world.clock,
            Settings::default(),
        );
        for front in [&world.front, &restarted] {
            let reply = ask(front, request(Method::GET, path, None)).await;
            assert_eq!(reply.status, 200);
            // The same id in another namespace is another attribute of the same instance, not another instance.
            let mut moved = body.clone();
            moved["context"]["namespace"] = json!("team-a");
            assert_eq!(
                ask(front, request(Method::PUT, path, Some(moved)))
                    .await
                    .status,
                200
            );
        }
        assert!(
            world
                .instances("team-a")
                .get_opt(&names::instance("a/b ü"))
                .await
                .unwrap()
                .is_none()
        );
        let removal = ask(
            &restarted,
            request(Method::DELETE, &format!("{path}&{IDS}"), None),
        )
        .await;
        assert_eq!(removal.status, 202);
        world.finish_removal("team-b", "a/b ü").await;
        let fresh = front(
            client(&world.server, CONTROLLERS),
            &world.clock,
            Settings::default(),
        );
        let poll = "/v2/service_instances/a%2Fb%20%C3%BC/last_operation";
        assert_eq!(
            ask(&fresh, request(Method::GET, poll, None)).await.body["state"],
            "succeeded"
        );
        let plain = world
            .put(
                "/v2/service_instances/p?accepts_incomplete=true",
                wanted("patient", json!({})),
            )
            .await;
        assert_eq!(plain.status, 202);
        assert_eq!(world.instance("default", "p").await.spec.instance_id, "p");
    });
}

#[test]
fn a_namespace_that_does_not_exist_or_ends_takes_nothing() {
    tell(|world| async move {
        let version = world.version().await;
        let nowhere = "/osb/nowhere/v2/service_instances/i?accepts_incomplete=true";
        let reply = world.put(nowhere, wanted("patient", json!({}))).await;
        assert_eq!(
            (reply.status, &reply.body["error"]),
            (422, &json!("NamespaceNotFound"))
        );
        assert_eq!(world.version().await, version);
        put(&world).await;
        let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> =
            kube::Api::all(world.users.clone());
        namespaces
            .delete("team-a", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        let reply = world
            .put(
                "/osb/team-a/v2/service_instances/j?accepts_incomplete=true",
                wanted("patient", json!({})),
            )
            .await;
        assert_eq!(
            (reply.status, &reply.body["error"]),
            (422, &json!("NamespaceTerminating"))
        );
    });
}

#[test]
fn contact_is_noted_coarsely_and_only_for_what_was_answered() {
    tell(|world| async move {
        put(&world).await;
        let noted = async || {
            let instance = world.instance("team-a", "i").await;
            (
                instance.annotations()[LAST_CONTACT_ANNOTATION].clone(),
                instance.resource_version(),
            )
        };
        let first = noted().await;
        world.clock.sleep(Duration::from_secs(540)).await;
        world.get(&format!("{I}/last_operation")).await;
        world.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(noted().await, first);
        world.clock.sleep(Duration::from_secs(120)).await;
        assert_eq!(world.get(I).await.status, 404);
        world.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(noted().await, first, "a refusal changes nothing");
        world.get(&format!("{I}/last_operation")).await;
        world.clock.sleep(Duration::from_secs(1)).await;
        let (time, _) = noted().await;
        assert!(time > first.0, "{time} after {}", first.0);
    });
}

#[test]
fn an_instance_that_somebody_removes_by_hand_can_still_be_removed_by_its_platform() {
    tell(|world| async move {
        put(&world).await;
        world.end_instance("team-a", "i", "succeeded").await;
        world
            .instances("team-a")
            .delete("i", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        assert_eq!(
            world.get(&format!("{I}/last_operation")).await.body["state"],
            "in progress"
        );
        assert_eq!(world.get(I).await.status, 404);
        let removal = world.delete(&format!("{I}?{IDS}")).await;
        assert_eq!(removal.status, 202);
        assert!(removal.operation().starts_with("deprovision-"));
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        world
            .instances("team-a")
            .patch("i", &PatchParams::default(), &patch)
            .await
            .unwrap();
        assert_eq!(world.delete(&format!("{I}?{IDS}")).await.status, 410);
    });
}
