//! What wakes a controller: everything but the status that it wrote itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use heddle_api::{ApplicationMapping, Channel, Subscription, Trigger};
use heddle_apiserver::{CONTROLLERS, Identity};
use heddle_controllers::Options;
use heddle_rt::Chance;
use heddle_sim::stage::{NAMESPACES, on_stage};
use http::{Method, Request};
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{TEAM, Users};

/// How often each path was read by the controllers.
type Reads = Arc<Mutex<BTreeMap<String, usize>>>;

/// One object, alone in its namespace, from when it is made.
async fn watch<K: Resource<DynamicType = ()>>(
    users: &Users,
    reads: &Reads,
    name: &str,
    spec: Value,
) {
    let path = format!("{}/{name}", K::url_path(&(), Some(TEAM)));
    let read = || reads.lock().get(&path).copied().unwrap_or_default();
    users.apply::<K>(TEAM, name, spec).await;
    users.rest().await;
    let api = users.api::<K>(TEAM);
    let written = api.get(name).await.unwrap().data["status"].clone();
    assert!(written["conditions"].is_array(), "{path}: {written}");
    assert_eq!(read(), 1, "{path}: its status came back and woke somebody");
    // Whatever others do is looked at, also where they write what is the controller's.
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    users.merge::<K>(TEAM, name, labels).await;
    users.rest().await;
    assert_eq!(read(), 2, "{path}: a label");
    let meddled = json!({"status": {"observedGeneration": 77}});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(&meddled))
        .await
        .unwrap();
    users.rest().await;
    assert_eq!(read(), 3, "{path}: the status of somebody else");
    let now = api.get(name).await.unwrap().data["status"].clone();
    assert_eq!(now, written, "{path}: it is put right");
}

#[test]
fn a_status_wakes_its_controller_only_if_somebody_else_wrote_it() {
    on_stage(&NAMESPACES, |stage| async move {
        let users = Users::new(stage.users(), &stage.clock);
        let controllers = Identity::new("controllers", &[CONTROLLERS]);
        let (door, reads) = (
            stage.server.in_process(controllers).lean(),
            Reads::default(),
        );
        let noted = Arc::clone(&reads);
        let service = tower::service_fn(move |request: Request<Body>| {
            if request.method() == Method::GET {
                let path = request.uri().path().to_owned();
                *noted.lock().entry(path).or_default() += 1;
            }
            door.clone().oneshot(request)
        });
        let options = Options::new(stage.clock.clone(), Chance::seeded(2));
        let running = heddle_controllers::run(Client::new(service, "default"), options);
        let story = async {
            let to = json!({"uri": "http://a.example/"});
            watch::<ApplicationMapping>(&users, &reads, "shop", json!({})).await;
            watch::<Channel>(&users, &reads, "c", json!({})).await;
            let channel = json!({"kind": "Channel", "name": "none"});
            let link = json!({"channel": channel, "subscriber": to});
            watch::<Subscription>(&users, &reads, "s", link).await;
            let trigger = json!({"broker": "none", "subscriber": to});
            watch::<Trigger>(&users, &reads, "t", trigger).await;
        };
        Box::pin(stage.play(story, running)).await;
    });
}
