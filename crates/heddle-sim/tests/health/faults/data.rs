//! Every edge of the path, dropped or delayed in turn while all objects are ready.

use std::time::Duration;

use futures::FutureExt as _;
use heddle_api::health::HealthPlane;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_api::{EventFlow, names};
use heddle_mesh::Fault;
use serde_json::json;

use super::{Culprit, Deed, FaultCase, on};
use crate::world::{DEPOT_A, SHOP_A, SHOP_B, World, fault_pair};

fn data(hop: &str, object: &str) -> Option<Culprit> {
    on(HealthPlane::Data, hop, object)
}

/// A hop of the mesh is broken until it is healed.
fn broken(what: &'static str, hop: &str, object: &str, inject: Deed) -> FaultCase {
    let heal: Deed = |world| {
        async {
            world.mesh().heal();
            world.recover().await;
        }
        .boxed()
    };
    FaultCase::new(what, data(hop, object), inject, heal)
}

pub(super) fn cases() -> Vec<FaultCase> {
    let link = names::link("shop", "team-a");
    let link = format!("subscription/{INTEGRATION_NAMESPACE}/{link}");
    let others = &[SHOP_B, DEPOT_A];
    vec![
        broken(
            "the door of an application refuses its events",
            "source",
            "httpsource/kyma-integration/shop",
            |world| {
                let application = "shop".to_owned();
                world.mesh().inject(Fault::RefuseAtSource { application });
                async {}.boxed()
            },
        )
        .sparing(&[DEPOT_A]),
        broken(
            "the log does not take the events of an application",
            "channel",
            "channel/kyma-integration/shop",
            |world| {
                let application = "shop".to_owned();
                world.mesh().inject(Fault::FailAppend { application });
                async {}.boxed()
            },
        )
        .sparing(&[DEPOT_A]),
        broken(
            "nothing is matched any more",
            "broker",
            "scanner",
            |world| {
                world.mesh().inject(Fault::StallScanner);
                async {}.boxed()
            },
        ),
        broken("a link carries nothing", "subscription", &link, |world| {
            world.mesh().inject(Fault::CutLink(fault_pair(SHOP_A)));
            async {}.boxed()
        })
        .sparing(others)
        .compared_as("All objects are ready, and the path is dead"),
        broken(
            "a broker hands nothing on",
            "broker",
            "broker/team-a/default",
            |world| {
                world.mesh().inject(Fault::DropAtBroker(fault_pair(SHOP_A)));
                async {}.boxed()
            },
        )
        .sparing(others),
        broken(
            "matched events are not sent",
            "trigger",
            "heartbeat/team-a/shop",
            |world| {
                world.mesh().inject(Fault::HoldDispatch(fault_pair(SHOP_A)));
                async {}.boxed()
            },
        )
        .sparing(others),
        broken(
            "every delivery of a pair is dropped",
            "delivery",
            "heartbeat/team-a/shop",
            |world| {
                world.mesh().inject(Fault::FailDelivery(fault_pair(SHOP_A)));
                async {}.boxed()
            },
        )
        .sparing(others)
        .compared_as("The network is broken between two hops"),
        broken(
            "every delivery of a pair is delayed beyond its patience",
            "delivery",
            "heartbeat/team-a/shop",
            |world| {
                let by = Duration::from_secs(40);
                let delay = Fault::DelayDelivery(fault_pair(SHOP_A), by);
                world.mesh().inject(delay);
                async {}.boxed()
            },
        )
        .sparing(others),
        broken(
            "every delivery of a pair is late, and arrives",
            "delivery",
            "heartbeat/team-a/shop",
            |world| {
                let by = Duration::from_secs(8);
                let delay = Fault::DelayDelivery(fault_pair(SHOP_A), by);
                world.mesh().inject(delay);
                async {}.boxed()
            },
        )
        .sparing(others),
        broken(
            "a hop breaks and mends again and again",
            "broker",
            "broker/team-a/default",
            |world| async { world.flap().await }.boxed(),
        )
        .sparing(others)
        .compared_as("A hop comes and goes"),
        FaultCase::new(
            "the synthetic events of a flow are switched off",
            data("", ""),
            |world| async { world.heartbeats(false).await }.boxed(),
            |world| async { world.heartbeats(true).await }.boxed(),
        )
        .of(SHOP_B)
        .sparing(&[SHOP_A, DEPOT_A]),
    ]
}

impl World {
    /// A hop that works for a quarter of the time, and is broken in the end.
    async fn flap(&self) {
        for _ in 0..2 {
            self.mesh().inject(Fault::DropAtBroker(fault_pair(SHOP_A)));
            self.pass(35).await;
            self.mesh().heal();
            self.pass(12).await;
        }
        self.mesh().inject(Fault::DropAtBroker(fault_pair(SHOP_A)));
    }

    async fn heartbeats(&self, enabled: bool) {
        let check = json!({"spec": {"healthCheck": {"enabled": enabled}}});
        let users = &self.users;
        users.merge::<EventFlow>("team-b", "orders", check).await;
    }
}
