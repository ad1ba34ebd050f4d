//! Requests of platforms that cannot ask again, when the work takes longer than they can be kept waiting.
//!
//! A 4xx says that nothing was done, and platforms believe it: they take the thing for one that never was. So none is
//! answered while work that the request started goes on. A 5xx makes them remove what they asked for, or repeat the request;
//! both must lead to one end.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::world::{Reply, World, tell, wanted};

const I: &str = "/v2/service_instances/i";
const B: &str = "/v2/service_instances/i/service_bindings/b";
const REMOVAL: &str = "service_id=svc&plan_id=prompt";
const ASYNC: &str = "accepts_incomplete=true";

/// A request as a synchronous platform sends it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ask {
    Provision,
    Update,
    Deprovision,
    Bind,
    Unbind,
}

const ASKS: [Ask; 5] = [
    Ask::Provision,
    Ask::Update,
    Ask::Deprovision,
    Ask::Bind,
    Ask::Unbind,
];

impl Ask {
    async fn send(self, world: &World) -> Reply {
        match self {
            Self::Provision => world.put(I, wanted("prompt", json!({"size": 1}))).await,
            Self::Update => {
                let change = json!({"service_id": "svc", "parameters": {"size": 2}});
                world.ask(Method::PATCH, I, Some(change)).await
            }
            Self::Deprovision => world.delete(&format!("{I}?{REMOVAL}")).await,
            Self::Bind => world.put(B, bound()).await,
            Self::Unbind => world.delete(&format!("{B}?{REMOVAL}")).await,
        }
    }

    /// Brings about what the request needs, and nothing that is under way.
    async fn prepare(self, world: &World) {
        if self == Self::Provision {
            return;
        }
        make_instance(world).await;
        if self == Self::Unbind {
            make_binding(world).await;
        }
    }

    async fn end(self, world: &World) {
        match self {
            Self::Provision | Self::Update => {
                world.end_instance("default", "i", "succeeded").await;
            }
            Self::Bind => world.end_binding("default", "b", "succeeded").await,
            Self::Deprovision => world.finish_removal("default", "i").await,
            Self::Unbind => world.finish_unbinding("default", "b").await,
        }
    }
}

fn bound() -> Value {
    json!({"service_id": "svc", "plan_id": "prompt"})
}

async fn make_instance(world: &World) {
    let body = wanted("prompt", json!({"size": 1}));
    let reply = world.put(&format!("{I}?{ASYNC}"), body).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    world.end_instance("default", "i", "succeeded").await;
}

async fn make_binding(world: &World) {
    let reply = world.put(&format!("{B}?{ASYNC}"), bound()).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    world.end_binding("default", "b", "succeeded").await;
}

#[test]
fn work_that_outlasts_the_request_is_a_server_error_and_a_repeat_hears_its_end() {
    for asked in ASKS {
        tell(|world| async move {
            asked.prepare(&world).await;
            let late = asked.send(&world).await;
            assert_eq!(late.status, 504, "{asked:?}: {late:?}");
            assert!(late.headers.contains_key("retry-after"), "{asked:?}");
            let version = world.version().await;
            let (again, ()) = tokio::join!(asked.send(&world), async {
                world.clock.sleep(Duration::from_secs(1)).await;
                assert_eq!(world.version().await, version, "a repeat starts nothing");
                asked.end(&world).await;
            });
            assert_eq!(again.status, 200, "{asked:?}: {again:?}");
        });
    }
}

#[test]
fn a_platform_that_cleans_up_leaves_nothing_behind() {
    tell(|world| async move {
        assert_eq!(Ask::Provision.send(&world).await.status, 504);
        let (removed, ()) = tokio::join!(Ask::Deprovision.send(&world), async {
            world.clock.sleep(Duration::from_secs(1)).await;
            world.finish_removal("default", "i").await;
        });
        assert_eq!(removed.status, 200, "{removed:?}");

        make_instance(&world).await;
        assert_eq!(Ask::Bind.send(&world).await.status, 504);
        world.end_binding("default", "b", "succeeded").await;
        let (removed, ()) = tokio::join!(Ask::Unbind.send(&world), async {
            world.clock.sleep(Duration::from_secs(1)).await;
            world.finish_unbinding("default", "b").await;
        });
        assert_eq!(removed.status, 200, "{removed:?}");
        assert_eq!(Ask::Unbind.send(&world).await.status, 410);
    });
}

/// How far something has come before a request meets it.
const STATES: [&str; 7] = [
    "nothing",
    "making",
    "failed",
    "made",
    "changing",
    "bound",
    "unbinding",
];

async fn bring_to(world: &World, state: &str) {
    if state == "nothing" {
        return;
    }
    let body = wanted("prompt", json!({"size": 1}));
    world.put(&format!("{I}?{ASYNC}"), body).await;
    match state {
        "making" => return,
        "failed" => return world.end_instance("default", "i", "failed").await,
        _ => world.end_instance("default", "i", "succeeded").await,
    }
    if state == "changing" {
        let change = json!({"service_id": "svc", "parameters": {"size": 3}});
        let path = format!("{I}?{ASYNC}");
        world.ask(Method::PATCH, &path, Some(change)).await;
    }
    if matches!(state, "bound" | "unbinding") {
        make_binding(world).await;
    }
    if state == "unbinding" {
        world.delete(&format!("{B}?{REMOVAL}&{ASYNC}")).await;
    }
}

#[test]
fn whoever_is_refused_with_a_4xx_has_changed_nothing() {
    for state in STATES {
        for asked in ASKS {
            tell(|world| async move {
                bring_to(&world, state).await;
                let before = world.version().await;
                let reply = asked.send(&world).await;
                if (400..500).contains(&reply.status) {
                    let after = world.version().await;
                    assert_eq!(before, after, "{asked:?} on {state}: {reply:?}");
                }
            });
        }
    }
}

#[test]
fn what_comes_in_between_is_no_reason_to_call_the_request_undone() {
    tell(|world| async move {
        let removal = async {
            world.clock.sleep(Duration::from_secs(1)).await;
            world.delete(&format!("{I}?{REMOVAL}&{ASYNC}")).await
        };
        let (made, removed) = tokio::join!(Ask::Provision.send(&world), removal);
        assert_eq!((made.status, removed.status), (504, 202), "{made:?}");
    });
}

#[test]
fn a_binding_whose_credentials_cannot_be_read_is_not_refused_as_if_it_were_none() {
    tell(|world| async move {
        make_instance(&world).await;
        make_binding(&world).await;
        world.drop_secret("default", "b").await;
        let again = Ask::Bind.send(&world).await;
        assert_eq!(again.status, 503, "{again:?}");
    });
}
