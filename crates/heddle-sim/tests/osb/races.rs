//! Many at once, and somebody who always comes in between.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use heddle_api::{ServiceBinding, ServiceInstance};
use heddle_apiserver::{ApiServer, CONTROLLERS, Identity};
use heddle_front::{Front, Settings};
use heddle_rt::{OnError, Tasks};
use http::{Method, Request};
use kube::api::{ListParams, Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tower::ServiceExt as _;

use crate::world::{IDS, Reply, World, ask, client, front, request, tell, wanted};

const I: &str = "/osb/team-a/v2/service_instances/i";

/// A front with whose replacements somebody interferes `times` times: each is overtaken by another write.
fn meddled_with(world: &World, times: usize) -> (Front, Arc<AtomicUsize>) {
    let left = Arc::new(AtomicUsize::new(times));
    let (server, shared) = (world.server.clone(), left.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, left) = (server.clone(), shared.clone());
        async move {
            let replaces = request.method() == Method::PUT;
            let strikes = |left: usize| left.checked_sub(1);
            if replaces
                && left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, strikes)
                    .is_ok()
            {
                meddle(&server, left.load(Ordering::SeqCst)).await;
            }
            let through = server.in_process(Identity::new("front", &[CONTROLLERS]));
            through.oneshot(request).await
        }
    });
    let client = Client::new(service, "default");
    (front(client, &world.clock, Settings::default()), left)
}

async fn meddle(server: &ApiServer, number: usize) {
    let api: Api<ServiceInstance> = Api::namespaced(client(server, CONTROLLERS), "team-a");
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"meddled": number.to_string()}}}));
    api.patch("i", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

#[test]
fn fifty_equal_requests_at_once_make_one_instance_and_one_operation() {
    tell(|world| async move {
        // Two fronts, as behind a load balancer.
        let other = front(
            client(&world.server, CONTROLLERS),
            &world.clock,
            Settings::default(),
        );
        let fronts = [&world.front, &other];
        let path = "/v2/service_instances/i?accepts_incomplete=true";
        let asked = (0..50).map(|n| {
            let body = wanted("patient", json!({"size": 1, "n": {"a": 1, "b": 2}}));
            ask(fronts[n % 2], request(Method::PUT, path, Some(body)))
        });
        let replies = join_all(asked).await;
        assert!(
            replies.iter().all(|reply| reply.status == 202),
            "{replies:?}"
        );
        let operations: BTreeSet<&str> = replies.iter().map(|reply| reply.operation()).collect();
        assert_eq!(operations.len(), 1);
        let all: Api<ServiceInstance> = Api::all(world.users.clone());
        let list = all.list(&ListParams::default()).await.unwrap();
        assert_eq!(list.items.len(), 1);
        assert_eq!(
            list.items[0].metadata.generation,
            Some(1),
            "it was written once"
        );
    });
}

#[test]
fn of_different_requests_at_once_one_is_carried_out() {
    tell(|world| async move {
        let path = format!("{I}?accepts_incomplete=true");
        let replies =
            join_all((0..20).map(|n| world.put(&path, wanted("patient", json!({"size": n})))))
                .await;
        let accepted = replies.iter().filter(|reply| reply.status == 202).count();
        let conflicts = replies.iter().filter(|reply| reply.status == 409).count();
        assert_eq!((accepted, conflicts), (1, 19));
        world.end_instance("team-a", "i", "succeeded").await;
        let change = |n: i64| json!({"service_id": "svc", "parameters": {"size": 100 + n}});
        let replies =
            join_all((0..20).map(|n| world.ask(Method::PATCH, &path, Some(change(n))))).await;
        let accepted = replies.iter().filter(|reply| reply.status == 202).count();
        let busy = replies
            .iter()
            .filter(|reply| reply.body["error"] == "ConcurrencyError")
            .count();
        assert_eq!((accepted, busy), (1, 19));
    });
}

fn half_are_refused(replies: &[Reply]) {
    let count = |status: u16| replies.iter().filter(|it| it.status == status).count();
    assert_eq!((count(202), count(409)), (10, 10), "{replies:?}");
}

/// How many there are in all namespaces.
async fn count<K>(world: &World) -> usize
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let all: Api<K> = Api::all(world.users.clone());
    let list = all.list(&ListParams::default()).await.unwrap();
    list.items.len()
}

#[test]
fn an_id_asked_for_in_two_namespaces_at_once_is_one_instance() {
    tell(|world| async move {
        for round in 0..10 {
            let path = format!("/v2/service_instances/i-{round}?accepts_incomplete=true");
            let replies = join_all((0..20).map(|n| {
                let namespace = ["team-a", "team-b"][n % 2];
                let mut body = wanted("patient", json!({"in": namespace}));
                body["context"] = json!({"namespace": namespace});
                world.put(&path, body)
            }));
            let replies = replies.await;
            // Those who want it as it is now hear so, the others that it is different.
            half_are_refused(&replies);
        }
        assert_eq!(count::<ServiceInstance>(&world).await, 10, "one of each id");
    });
}

#[test]
fn an_id_bound_at_once_to_instances_of_two_namespaces_is_one_binding() {
    tell(|world| async move {
        for (id, namespace) in [("i", "team-a"), ("j", "team-b")] {
            let mut body = wanted("patient", json!({}));
            body["context"] = json!({"namespace": namespace});
            let path = format!("/v2/service_instances/{id}?accepts_incomplete=true");
            assert_eq!(world.put(&path, body).await.status, 202);
            world.end_instance(namespace, id, "succeeded").await;
        }
        for round in 0..10 {
            let replies = join_all((0..20).map(|n| {
                let instance = ["i", "j"][n % 2];
                let path = format!(
                    "/v2/service_instances/{instance}/service_bindings/b-{round}?accepts_incomplete=true"
                );
                let body = json!({"service_id": "svc", "plan_id": "patient"});
                let world = &world;
                async move { world.put(&path, body).await }
            }));
            let replies = replies.await;
            half_are_refused(&replies);
        }
        assert_eq!(count::<ServiceBinding>(&world).await, 10, "one of each id");
    });
}

/// A front whose API server writes what it was told to, a second later, also when nobody waits for it: as a disk does.
fn late(world: &World) -> Front {
    let (server, clock) = (world.server.clone(), world.clock.clone());
    let tasks = Tasks::new("late");
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, clock, tasks) = (server.clone(), clock.clone(), tasks.clone());
        async move {
            let is_create = request.method() == Method::POST;
            let through = server.in_process(Identity::new("front", &[CONTROLLERS]));
            let (tell, told) = tokio::sync::oneshot::channel();
            tasks.spawn("write", OnError::Report, async move {
                if is_create {
                    clock.sleep(Duration::from_secs(1)).await;
                }
                tell.send(through.oneshot(request).await).ok();
            });
            told.await.unwrap()
        }
    });
    let client = Client::new(service, "default");
    front(client, &world.clock, Settings::default())
}

/// Asks, and goes away while what was asked for is being written.
async fn ask_and_go(world: &World, front: &Front, path: &str, body: serde_json::Value) {
    let asking = ask(front, request(Method::PUT, path, Some(body)));
    let patience = Duration::from_millis(500);
    let answered = world.clock.timeout(patience, asking).await;
    assert!(answered.is_err(), "it was answered in time");
}

#[test]
fn an_id_whose_first_platform_went_away_too_early_is_made_once() {
    tell(|world| async move {
        let front = late(&world);
        for (id, namespace) in [("i", "team-a"), ("j", "team-b")] {
            let mut body = wanted("patient", json!({"in": namespace}));
            body["context"] = json!({"namespace": namespace});
            let path = format!("/v2/service_instances/{id}?accepts_incomplete=true");
            ask_and_go(&world, &front, &path, body.clone()).await;
            let other = ["team-b", "team-a"][usize::from(namespace == "team-b")];
            body["context"] = json!({"namespace": other});
            body["parameters"] = json!({"in": other});
            let reply = ask(&front, request(Method::PUT, &path, Some(body))).await;
            assert_eq!(reply.status, 409, "{id}");
            world.end_instance(namespace, id, "succeeded").await;
        }
        assert_eq!(count::<ServiceInstance>(&world).await, 2, "one of each id");
        let path = |instance: &str| {
            format!("/v2/service_instances/{instance}/service_bindings/b?accepts_incomplete=true")
        };
        let body = json!({"service_id": "svc", "plan_id": "patient"});
        ask_and_go(&world, &front, &path("i"), body.clone()).await;
        let reply = ask(&front, request(Method::PUT, &path("j"), Some(body))).await;
        assert_eq!(reply.status, 409);
        assert_eq!(count::<ServiceBinding>(&world).await, 1, "one of the id");
    });
}

#[test]
fn removals_at_once_are_one_removal() {
    tell(|world| async move {
        world.ask_for(I).await;
        let path = format!("{I}?{IDS}");
        let replies = join_all((0..20).map(|_| world.delete(&path))).await;
        let operations: BTreeSet<&str> = replies.iter().map(|reply| reply.operation()).collect();
        assert_eq!(operations.len(), 1);
    });
}

#[test]
fn who_is_overtaken_looks_again_and_gives_up_without_effect_after_a_while() {
    tell(|world| async move {
        world.ask_for(I).await;
        world.end_instance("team-a", "i", "succeeded").await;
        let path = format!("{I}?{IDS}");
        let (stubborn, left) = meddled_with(&world, 1000);
        let before = world.instance("team-a", "i").await;
        let reply = ask(&stubborn, request(Method::DELETE, &path, None)).await;
        assert_eq!(
            (reply.status, &reply.body["error"]),
            (422, &json!("ConcurrencyError"))
        );
        assert_eq!(
            left.load(Ordering::SeqCst),
            1000 - 8,
            "it tried eight times"
        );
        assert_eq!(world.instance("team-a", "i").await.spec, before.spec);
        let (patient, _) = meddled_with(&world, 7);
        let reply = ask(&patient, request(Method::DELETE, &path, None)).await;
        assert_eq!(reply.status, 202);
        let after = world.instance("team-a", "i").await;
        assert_eq!(after.spec.operation.as_ref().unwrap().id, reply.operation());
        assert_eq!(
            after.annotations()["meddled"],
            "0",
            "what others wrote is kept"
        );
    });
}
