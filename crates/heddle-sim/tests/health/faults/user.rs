//! What users bring: subscribers, filters and publishers. None of it makes the mesh unwell.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use heddle_api::Trigger;
use heddle_api::health::HealthPlane;
use heddle_api::ledger::DeadLetterSelection;
use heddle_mesh::who::Who;
use serde_json::json;

use super::{Culprit, Deed, FaultCase, on};
use crate::network::Manner;
use crate::world::{DEPOT_A, SHOP_A, SHOP_B, World};

/// More than the door takes.
const TOO_LARGE_BYTES: usize = 2 << 20;

fn user(hop: &str, object: &str) -> Option<Culprit> {
    on(HealthPlane::User, hop, object)
}

/// The mesh stays well, whatever a user brings.
fn brought(what: &'static str, hop: &str, object: &str, inject: Deed, repair: Deed) -> FaultCase {
    FaultCase::new(what, user(hop, object), inject, repair).sparing(&[SHOP_A, SHOP_B, DEPOT_A])
}

/// A subscriber misbehaves while events are published.
fn subscriber(what: &'static str, inject: Deed) -> FaultCase {
    let heal: Deed = |world| {
        async {
            world.network.heal();
            world.recover().await;
        }
        .boxed()
    };
    brought(what, "delivery", "trigger/team-a/orders", inject, heal)
}

pub(super) fn cases() -> Vec<FaultCase> {
    let mut all = of_subscribers();
    all.extend(of_filters());
    all.extend(of_publishers());
    all
}

fn of_subscribers() -> Vec<FaultCase> {
    vec![
        subscriber("a subscriber does not listen", |world| {
            async { world.misbehave(Manner::Down).await }.boxed()
        }),
        subscriber("a subscriber answers 500", |world| {
            async { world.misbehave(Manner::Answer(500)).await }.boxed()
        })
        .compared_as("A subscriber is down or fails"),
        subscriber("a subscriber answers with a redirect", |world| {
            async { world.misbehave(Manner::Answer(302)).await }.boxed()
        }),
        subscriber("a subscriber never answers", |world| {
            async { world.misbehave(Manner::Hang).await }.boxed()
        }),
        subscriber("the certificate of a subscriber has expired", |world| {
            async { world.misbehave(Manner::BadCertificate).await }.boxed()
        }),
        subscriber("a subscriber is too slow for what it is sent", |world| {
            async {
                // Within the time of an attempt, and one after the other.
                let slow = Manner::Slow(Duration::from_secs(4));
                world.network.behave("orders.example", slow);
                let one = json!({"metadata": {"annotations": {"heddle.dev/max-in-flight": "1"}}});
                let users = &world.users;
                users.merge::<Trigger>("team-a", "orders", one).await;
                world.pass(5).await;
                for number in 0..40 {
                    let id = format!("slow-{number}");
                    world.publish("shop", &id, "order.created").await;
                }
                world.pass(20).await;
            }
            .boxed()
        })
        .compared_as("Slow: the backlog is old")
        .tracing("slow-39"),
        brought(
            "one event is poison to its subscriber",
            "dead-letter",
            "trigger/team-a/orders",
            |world| {
                async {
                    let refuses = Manner::AnswerTo("poison", 400);
                    world.network.behave("orders.example", refuses);
                    world.publish("shop", "poison", "order.created").await;
                    world.pass(10).await;
                    world.publish("shop", "sound", "order.created").await;
                }
                .boxed()
            },
            |world| {
                async {
                    world.network.heal();
                    world.recover().await;
                }
                .boxed()
            },
        ),
    ]
}

fn of_filters() -> Vec<FaultCase> {
    vec![
        brought(
            "what is published matches nothing",
            "trigger",
            "application/shop",
            |world| {
                async {
                    world.publish("shop", "odd", "order.unheard-of").await;
                }
                .boxed()
            },
            |world| async { world.pass(300).await }.boxed(),
        )
        .tracing("odd")
        .compared_as("Published events match no Trigger"),
        brought(
            "a filter has a typing error",
            "trigger",
            "application/shop",
            |world| {
                async {
                    for (namespace, name) in [("team-a", "orders"), ("team-b", "audit")] {
                        let filter = json!({"spec": {"filter": {"attributes": {"type": "order.craeted"}}}});
                        let users = &world.users;
                        users.merge::<Trigger>(namespace, name, filter).await;
                    }
                    world.pass(5).await;
                    world.publish("shop", "missed", "order.created").await;
                }
                .boxed()
            },
            |world| {
                async {
                    world.users.trigger("team-a", "orders", "orders.example").await;
                    world.users.trigger("team-b", "audit", "audit.example").await;
                    world.pass(300).await;
                }
                .boxed()
            },
        )
        .tracing("missed"),
        brought(
            "a Trigger names a subscriber that does not exist",
            "trigger",
            "trigger/team-a/orders",
            |world| {
                async {
                    let ghost = json!({"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "ghost"});
                    let spec = json!({"spec": {"subscriber": {"uri": null, "ref": ghost}}});
                    let users = &world.users;
                    users.merge::<Trigger>("team-a", "orders", spec).await;
                }
                .boxed()
            },
            |world| {
                async {
                    let spec = json!({"spec": {"subscriber": {"ref": null, "uri": "http://orders.example/"}}});
                    let users = &world.users;
                    users.merge::<Trigger>("team-a", "orders", spec).await;
                }
                .boxed()
            },
        )
        .compared_as("A Trigger's subscriber has no address"),
    ]
}

fn of_publishers() -> Vec<FaultCase> {
    let refused = |what, inject: Deed| {
        let wait: Deed = |world| async { world.pass(300).await }.boxed();
        brought(what, "source", "application/shop", inject, wait)
    };
    vec![
        refused("a publisher sends what is no event", |world| {
            async {
                let mut garbage = world.event("shop", "refused", "x", Bytes::from_static(b"\xff{"));
                garbage.headers_mut().remove("ce-specversion");
                assert_eq!(world.send(&Who::Anonymous, garbage).await, 400);
            }
            .boxed()
        })
        .tracing("refused")
        .compared_as("A publisher is refused"),
        refused("a publisher sends too much at once", |world| {
            async {
                let data = Bytes::from(vec![b'x'; TOO_LARGE_BYTES]);
                let large = world.event("shop", "large", "order.created", data);
                assert_eq!(world.send(&Who::Anonymous, large).await, 413);
            }
            .boxed()
        }),
        refused(
            "a publisher has the certificate of somebody else",
            |world| {
                async {
                    let event = world.event("shop", "stolen", "order.created", Bytes::new());
                    let stranger = Who::Application("depot".into());
                    assert_eq!(world.send(&stranger, event).await, 403);
                }
                .boxed()
            },
        ),
    ]
}

impl World {
    /// The subscriber of the orders behaves like that, and is sent something.
    async fn misbehave(&self, manner: Manner) {
        self.network.behave("orders.example", manner);
        self.publish("shop", "during", "order.created").await;
    }

    /// Dead letters are sent on their way again, and something new is published.
    pub(super) async fn recover(&self) {
        let all = DeadLetterSelection {
            all: true,
            ..DeadLetterSelection::default()
        };
        self.mesh().redrive(&all, "a test").await;
        self.publish("shop", "after", "order.created").await;
    }
}
