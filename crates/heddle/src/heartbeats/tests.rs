use std::sync::Arc;

use heddle_api::dataplane::Resources;
use heddle_mesh::log::memory::MemoryLog;
use heddle_mesh::path::delivery::ConnectionLimits;
use heddle_mesh::path::delivery::courier::{Courier, CourierOptions};
use heddle_mesh::{Mesh, Options, Quota, Retention};
use heddle_rt::net::dial::{Connect as _, Network, Place};
use heddle_rt::net::egress::Egress;
use heddle_rt::net::own::OwnListeners;
use heddle_rt::{OnError, Tasks};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// What a stranger is answered who found the port.
async fn asked(address: SocketAddr, path: &str) -> String {
    let mut stream = net::connect(address).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nce-id: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn heartbeats_arrive_over_loopback_which_the_policy_forbids() {
    let (world, tasks) = (World::real(), Tasks::new("test"));
    let bound = bind(&world).await.unwrap();
    let (address, budget) = (bound.address(), Budget::default());
    let own = OwnListeners::default();
    let forbids = Egress {
        allow_loopback: false,
        ..Egress::ANYWHERE
    };
    let clock = world.clock.clone();
    let network = Network::beside_and_within(clock, forbids, own, bound.internal());
    let by_address = Place {
        host: address.ip().to_string(),
        port: address.port(),
        tls: None,
    };
    assert!(network.connect(&by_address).await.is_err());
    let limits = heddle_mesh::event::http::Limits::default();
    let courier = Courier::new(CourierOptions {
        tasks: tasks.child("connections"),
        clock: world.clock.clone(),
        connect: Arc::new(network),
        limits: ConnectionLimits::default(),
        replies: limits,
        budget: budget.clone(),
    });
    let mesh = Mesh::open(Options {
        clock: world.clock.clone(),
        chance: world.chance.clone(),
        tasks: tasks.clone(),
        log: Arc::new(MemoryLog::new(world.clock.clone())),
        courier,
        retention: Retention::default(),
        quota: Quota::default(),
        limits,
        observer: None,
        mask: Arc::default(),
        heartbeat_sink: Some(bound.url()),
    })
    .unwrap();
    let (sink, door) = (
        bound.sink(mesh.heartbeat_sink()),
        bound.door(&world, &budget),
    );
    tasks.spawn_finishing("sink", OnError::Report, |closing| {
        net::serve(bound.listener, door, sink, closing)
    });
    mesh.route(&Resources::default()).await;
    while mesh.reading().canary.hits == 0 {
        world.clock.sleep(Duration::from_millis(5)).await;
    }
    let before = mesh.reading().canary;
    assert_eq!((before.misses, before.stuck), (0, None));
    for path in ["/", "/x/_heddle/_canary", "//_heddle/_canary"] {
        assert_eq!(
            asked(address, path).await,
            "HTTP/1.1 404 Not Found",
            "{path}"
        );
    }
    mesh.close(Duration::ZERO).await;
    tasks.cancel();
    tasks.join().await;
}
