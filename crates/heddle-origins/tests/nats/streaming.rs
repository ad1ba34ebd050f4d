//! NATS Streaming: publishers and subscribers with the client library of their time, and a server that is killed.

use std::any::Any;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use heddle_origins::conformance::{self, OldMesh};
use heddle_origins::nats_streaming::{NatsStreaming, Settings};
use heddle_origins::{Error, FenceHold, Origin, OriginRead, Sequence, SubscriptionId};
use heddle_rt::Clock;
use serde_json::{Value, json};

use super::clients;
use super::machine::{Machine, deps, place};

const CLUSTER: &str = "kyma-nats-streaming";
const READY: &str = "Streaming Server is ready";
const PUBLISHER: &str = "publisher";
const DISPATCHER: &str = "dispatcher";

struct OldStreaming {
    machine: Machine,
    publishers: Vec<String>,
}

fn arguments(machine: &Machine) -> Vec<String> {
    let dir = machine.dir();
    let (port, monitor) = (machine.port.to_string(), machine.monitor_port.to_string());
    let all = [
        "-a",
        "127.0.0.1",
        "-p",
        &port,
        "-m",
        &monitor,
        "-cid",
        CLUSTER,
        "-st",
        "FILE",
        "-dir",
        &dir,
    ];
    all.map(str::to_owned).to_vec()
}

fn object() -> Value {
    json!({"apiVersion": "eventing.kyma-project.io/v1alpha1", "kind": "Subscription"})
}

impl OldStreaming {
    async fn start(publishers: &[&str]) -> Self {
        Self {
            machine: Machine::start("NATS_STREAMING_SERVER", READY, arguments).await,
            publishers: publishers.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn origin(&self) -> NatsStreaming {
        let settings = Settings {
            server: self.machine.server(),
            monitor: place(self.machine.monitor_port),
            cluster: CLUSTER.to_owned(),
            publishers: self.publishers.clone(),
            objects: Arc::new(vec![object()]),
        };
        NatsStreaming::new(deps(), settings)
    }

    fn client(&self, verb: &str, client: &str, channel: &str, more: &[String]) -> Child {
        let url = self.machine.url();
        let first = [verb, &*url, CLUSTER, client, channel];
        let more = more.iter().map(String::as_str);
        clients::start("NATSS_CLIENT", first.into_iter().chain(more))
    }

    fn publish_as(&self, client: &str, channel: &str, data: &[u8]) -> Result<(), String> {
        self.publish_many(client, channel, &[data])
    }

    fn publish_many(&self, client: &str, channel: &str, all: &[&[u8]]) -> Result<(), String> {
        clients::publish(self.client("publish", client, channel, &[]), all)
    }

    fn consume_all(&self, id: &SubscriptionId, last: Sequence, acknowledged: &[Sequence]) {
        let mut more = vec![id.durable.clone(), last.to_string()];
        more.extend(acknowledged.iter().map(ToString::to_string));
        let child = self.client("consume", id.client.as_deref().unwrap(), &id.channel, &more);
        clients::finish(child);
    }
}

fn id(channel: &str) -> SubscriptionId {
    SubscriptionId {
        channel: channel.to_owned(),
        client: Some(DISPATCHER.to_owned()),
        durable: format!("all-{channel}"),
        group: None,
    }
}

impl OldMesh for OldStreaming {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Origin>> {
        Box::pin(async { Arc::new(self.origin()) as Arc<dyn Origin> })
    }

    fn objects(&self) -> usize {
        1
    }

    fn subscribe<'a>(&'a self, channel: &'a str) -> BoxFuture<'a, SubscriptionId> {
        Box::pin(async move {
            self.consume_all(&id(channel), 0, &[]);
            id(channel)
        })
    }

    fn publish<'a>(
        &'a self,
        channel: &'a str,
        data: &'a [u8],
    ) -> BoxFuture<'a, Result<(), String>> {
        // A thread that waits for the publisher must not keep us from answering heartbeats.
        Box::pin(async move {
            tokio::task::block_in_place(|| self.publish_as(PUBLISHER, channel, data))
        })
    }

    fn consume<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
        acknowledged: &'a [Sequence],
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let channels = self.origin().channels().await.unwrap();
            let mut channels = channels.into_iter();
            let channel = channels.find(|channel| channel.name == subscription.channel);
            let last = channel.unwrap().high_water;
            tokio::task::block_in_place(|| self.consume_all(subscription, last, acknowledged));
        })
    }

    fn attach<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> BoxFuture<'a, Option<Box<dyn Any + Send>>> {
        Box::pin(async move {
            let client = subscription.client.as_deref().unwrap();
            let more = [subscription.durable.clone()];
            let child = self.client("attach", client, &subscription.channel, &more);
            Some(clients::attached(child))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_what_every_adapter_does_and_finds_out_who_publishes() {
    conformance::all(&OldStreaming::start(&[]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_what_every_adapter_does_and_holds_publishers_off() {
    conformance::all(&OldStreaming::start(&[PUBLISHER]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_keeps_the_names_of_publishers_and_counts_everybody_else() {
    let old = OldStreaming::start(&[PUBLISHER]).await;
    old.publish_as(PUBLISHER, "orders", b"one").unwrap();
    let origin = old.origin();
    let fence = origin.fence("orders").await.unwrap();
    assert_eq!(fence.hold, FenceHold::Named);
    let refused = old.publish_as(PUBLISHER, "orders", b"two").unwrap_err();
    assert!(refused.contains("clientID already registered"), "{refused}");
    old.publish_as("rogue", "orders", b"three").unwrap();
    let channels = origin.channels().await.unwrap();
    assert_eq!(fence.check(&channels[0]).unwrap_err().found, 2);
    origin.lift_fence("orders").await.unwrap();
    old.publish_as(PUBLISHER, "orders", b"four").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_at_work_is_not_fenced() {
    let old = OldStreaming::start(&[DISPATCHER]).await;
    old.publish_as(PUBLISHER, "orders", b"one").unwrap();
    let at_work = old.attach(&id("orders")).await;
    let refused = old.origin().fence("orders").await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    drop(at_work);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_go_on_when_the_server_was_killed_in_between() {
    let mut old = OldStreaming::start(&[]).await;
    old.consume_all(&id("orders"), 0, &[]);
    let all: Vec<String> = (1..=300).map(|number| format!("event {number}")).collect();
    let all: Vec<&[u8]> = all.iter().map(String::as_bytes).collect();
    old.publish_many(PUBLISHER, "orders", &all).unwrap();
    let origin = old.origin();
    let mut reader = origin.take_over(&id("orders")).await.unwrap();
    let clock = Clock::system();
    let mut read = Vec::new();
    let mut kills = 0;
    loop {
        match reader.read(10).await {
            Ok(OriginRead::End) => break,
            Ok(OriginRead::Events(events)) => {
                let sequences: Vec<Sequence> = events.iter().map(|event| event.sequence).collect();
                read.extend(sequences.clone());
                while let Err(error) = reader.acknowledge(&sequences).await {
                    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
                    clock.sleep(Duration::from_millis(20)).await;
                }
                if read.len() / 100 > kills && kills < 2 {
                    kills += 1;
                    old.machine.kill();
                    old.machine.run().await;
                }
            }
            Err(error) => {
                assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
                clock.sleep(Duration::from_millis(20)).await;
            }
        }
    }
    assert_eq!(kills, 2);
    assert_eq!(
        read,
        (1..=300).collect::<Vec<Sequence>>(),
        "in order, each once"
    );
    while let Err(error) = origin.subscriptions("orders").await {
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    }
    reader.release().await.unwrap();
    let subscriptions = origin.subscriptions("orders").await.unwrap();
    assert!(subscriptions[0].is_drained(), "{subscriptions:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durables_of_one_client_are_read_side_by_side() {
    let old = OldStreaming::start(&[]).await;
    for channel in ["orders", "returns"] {
        old.consume_all(&id(channel), 0, &[]);
        old.publish_many(PUBLISHER, channel, &[b"one", b"two"])
            .unwrap();
    }
    let origin = old.origin();
    let mut orders = origin.take_over(&id("orders")).await.unwrap();
    let mut returns = origin.take_over(&id("returns")).await.unwrap();
    for reader in [&mut orders, &mut returns] {
        assert!(matches!(reader.read(9).await, Ok(OriginRead::Events(_))));
        reader.acknowledge(&[1]).await.unwrap();
    }
    let twice = origin.take_over(&id("orders")).await.map(drop);
    assert!(matches!(twice, Err(Error::Conflict(_))), "{twice:?}");
    orders.release().await.unwrap();
    assert_eq!(
        returns.read(9).await,
        Ok(OriginRead::End),
        "the other goes on"
    );
    returns.acknowledge(&[2]).await.unwrap();
    returns.release().await.unwrap();
    let of_orders = origin.subscriptions("orders").await.unwrap();
    let of_returns = origin.subscriptions("returns").await.unwrap();
    assert_eq!((of_orders[0].pending(), of_returns[0].pending()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_events_in_a_great_number_arrive_within_the_room_there_is() {
    let old = OldStreaming::start(&[]).await;
    old.consume_all(&id("large"), 0, &[]);
    // More than is received ahead.
    let large = vec![7; 1_000_000];
    old.publish_many(PUBLISHER, "large", &[&large[..]; 90])
        .unwrap();
    let origin = old.origin();
    let mut reader = origin.take_over(&id("large")).await.unwrap();
    let mut next = 1;
    while let OriginRead::Events(events) = reader.read(3).await.unwrap() {
        for event in events {
            assert_eq!((event.sequence, event.data.len()), (next, large.len()));
            reader.acknowledge(&[next]).await.unwrap();
            next += 1;
        }
    }
    assert_eq!(next, 91);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_cluster_is_not_this_one() {
    let old = OldStreaming::start(&[]).await;
    let settings = Settings {
        server: old.machine.server(),
        monitor: place(old.machine.monitor_port),
        cluster: "another".to_owned(),
        publishers: Vec::new(),
        objects: Arc::new(Vec::new()),
    };
    let refused = NatsStreaming::new(deps(), settings).channels().await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}
