//! What looks like a fault and is none: the mesh is well all the same, and says so.

use futures::FutureExt as _;
use heddle_api::Subscription;
use heddle_api::names;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use jiff::SignedDuration;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Deed, FaultCase};
use crate::world::{DEPOT_A, SHOP_A, SHOP_B, World};

const FIVE_MINUTES: SignedDuration = SignedDuration::from_mins(5);

fn harmless(what: &'static str, inject: Deed, repair: Deed) -> FaultCase {
    FaultCase::new(what, None, inject, repair).sparing(&[SHOP_A, SHOP_B, DEPOT_A])
}

pub(super) fn cases() -> Vec<FaultCase> {
    let nothing: Deed = |_| async {}.boxed();
    vec![
        harmless(
            "the same event is published twice",
            |world| {
                async {
                    for _ in 0..2 {
                        let accepted = world.publish("shop", "twice", "order.created").await;
                        assert_eq!(accepted, 202);
                    }
                }
                .boxed()
            },
            nothing,
        ),
        harmless(
            "the clock is set forward by five minutes",
            |world| async { world.clock.set_by(FIVE_MINUTES) }.boxed(),
            |world| async { world.clock.set_by(-FIVE_MINUTES) }.boxed(),
        ),
        harmless(
            "the clock is set back by five minutes",
            |world| async { world.clock.set_by(-FIVE_MINUTES) }.boxed(),
            |world| async { world.clock.set_by(FIVE_MINUTES) }.boxed(),
        ),
        harmless(
            "a hundred flows come and go at once",
            |world| async { world.flood().await }.boxed(),
            nothing,
        ),
        harmless(
            "somebody writes a status over and over that is not so",
            |world| async { world.contradict().await }.boxed(),
            nothing,
        ),
    ]
}

impl World {
    /// Says of a link that it is not ready, every second for a minute.
    async fn contradict(&self) {
        let link = names::link("shop", "team-a");
        let api = self.users.api::<Subscription>(INTEGRATION_NAMESPACE);
        for _ in 0..60 {
            let not_so = json!([{"type": "Ready", "status": "False", "reason": "Made", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
            let patch = json!({"status": {"conditions": not_so}});
            let patch = Patch::Merge(&patch);
            let params = PatchParams::default();
            api.patch_status(&link, &params, &patch).await.unwrap();
            self.pass(1).await;
        }
    }
}
