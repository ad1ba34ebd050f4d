//! JetStream: consumers that pull and such that are pushed to, with the official client library on the other side.

use std::any::Any;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use heddle_origins::conformance::{self, OldMesh};
use heddle_origins::jetstream::{JetStream, Settings};
use heddle_origins::{Credentials, Error, FenceHold, Origin, OriginRead, Sequence, SubscriptionId};
use heddle_rt::Clock;
use heddle_rt::net::trust::Roots;
use serde_json::json;

use super::clients;
use super::machine::{Machine, deps};

struct OldJetStream {
    machine: Machine,
    /// How consumers of it get their events: `push` or `pull`.
    how: &'static str,
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
        "-js",
        "-sd",
        &dir,
    ];
    all.map(str::to_owned).to_vec()
}

fn with_password(machine: &Machine) -> Vec<String> {
    let more = ["--user", "heddle", "--pass", "secret"].map(str::to_owned);
    arguments(machine).into_iter().chain(more).collect()
}

/// With a certificate that is made on the way.
fn over_tls(machine: &Machine) -> Vec<String> {
    let (key, certificate) = (format!("{}/key.pem", machine.dir()), certificate(machine));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args([
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=old mesh",
            "-keyout",
            &key,
            "-out",
            &certificate,
        ])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let more = ["--tls", "--tlscert", &certificate, "--tlskey", &key].map(str::to_owned);
    arguments(machine).into_iter().chain(more).collect()
}

fn certificate(machine: &Machine) -> String {
    format!("{}/certificate.pem", machine.dir())
}

const READY: &str = "Server is ready";

impl OldJetStream {
    async fn start(how: &'static str) -> Self {
        Self {
            machine: Machine::start("NATS_SERVER", READY, arguments).await,
            how,
        }
    }

    fn origin(&self) -> JetStream {
        let settings = Settings {
            server: self.machine.server(),
            objects: Arc::new(vec![json!({"kind": "Subscription"})]),
        };
        JetStream::new(deps(), settings)
    }

    fn client(&self, verb: &str, stream: &str, name: &str, more: &[String]) -> Child {
        let url = self.machine.url();
        let first = [verb, &*url, stream, name];
        let more = more.iter().map(String::as_str);
        clients::start("JETSTREAM_CLIENT", first.into_iter().chain(more))
    }

    fn run(&self, verb: &str, stream: &str, name: &str, more: &[String]) {
        clients::finish(self.client(verb, stream, name, more));
    }

    fn publish_many(&self, stream: &str, subject: &str, all: &[&[u8]]) -> Result<(), String> {
        clients::publish(self.client("publish", stream, subject, &[]), all)
    }
}

fn id(channel: &str) -> SubscriptionId {
    SubscriptionId {
        channel: channel.to_owned(),
        client: None,
        durable: format!("all-{channel}"),
        group: None,
    }
}

impl OldMesh for OldJetStream {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Origin>> {
        Box::pin(async { Arc::new(self.origin()) as Arc<dyn Origin> })
    }

    fn objects(&self) -> usize {
        1
    }

    fn subscribe<'a>(&'a self, channel: &'a str) -> BoxFuture<'a, SubscriptionId> {
        Box::pin(async move {
            let id = id(channel);
            self.run("subscribe", channel, &id.durable, &[self.how.to_owned()]);
            id
        })
    }

    fn publish<'a>(
        &'a self,
        channel: &'a str,
        data: &'a [u8],
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.publish_many(channel, &format!("{channel}.created"), &[data]) })
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
            let mut more = vec![channel.unwrap().high_water.to_string()];
            more.extend(acknowledged.iter().map(ToString::to_string));
            self.run(
                "consume",
                &subscription.channel,
                &subscription.durable,
                &more,
            );
        })
    }

    fn attach<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> BoxFuture<'a, Option<Box<dyn Any + Send>>> {
        Box::pin(async move {
            let child = self.client("attach", &subscription.channel, &subscription.durable, &[]);
            Some(clients::attached(child))
        })
    }
}

#[tokio::test]
async fn consumers_that_pull_do_what_every_adapter_does() {
    conformance::all(&OldJetStream::start("pull").await).await;
}

#[tokio::test]
async fn consumers_that_are_pushed_to_do_what_every_adapter_does() {
    conformance::all(&OldJetStream::start("push").await).await;
}

#[tokio::test]
async fn a_fence_is_lifted_by_whoever_finds_it_and_filters_stay() {
    let old = OldJetStream::start("pull").await;
    let only = |channel: &str| format!("{channel}.created");
    let more = ["pull".to_owned(), only("orders")];
    old.run("subscribe", "orders", "created", &more);
    old.publish_many("orders", "orders.created", &[b"one"])
        .unwrap();
    old.publish_many("orders", "orders.gone", &[b"two"])
        .unwrap();
    let fence = old.origin().fence("orders").await.unwrap();
    assert_eq!((fence.hold, fence.high_water), (FenceHold::Everybody, 2));
    old.publish_many("orders", "orders.created", &[b"three"])
        .unwrap_err();
    // As after a crash: another one knows nothing of the fence but what it finds.
    let origin = old.origin();
    let subscriptions = origin.subscriptions("orders").await.unwrap();
    assert_eq!(subscriptions[0].pending(), 1, "two is of no concern to it");
    origin.lift_fence("orders").await.unwrap();
    old.publish_many("orders", "orders.created", &[b"four"])
        .unwrap();
    let mut reader = origin.take_over(&subscriptions[0].id).await.unwrap();
    let OriginRead::Events(events) = reader.read(9).await.unwrap() else {
        panic!("there are two");
    };
    let read: Vec<_> = events
        .iter()
        .map(|event| (event.sequence, event.subject.as_str()))
        .collect();
    assert_eq!(read, [(1, "orders.created"), (3, "orders.created")]);
    assert_eq!(events[0].headers, [("ce-id".to_owned(), "1".to_owned())]);
}

#[tokio::test]
async fn readers_go_on_when_the_server_was_killed_in_between() {
    for how in ["pull", "push"] {
        let mut old = OldJetStream::start(how).await;
        let id = old.subscribe("orders").await;
        let all: Vec<String> = (1..=300).map(|number| format!("event {number}")).collect();
        let all: Vec<&[u8]> = all.iter().map(String::as_bytes).collect();
        old.publish_many("orders", "orders.created", &all).unwrap();
        let origin = old.origin();
        let mut reader = origin.take_over(&id).await.unwrap();
        let clock = Clock::system();
        let mut read: Vec<Sequence> = Vec::new();
        let mut kills = 0;
        loop {
            match reader.read(10).await {
                Ok(OriginRead::End) => break,
                Ok(OriginRead::Events(events)) => {
                    let sequences: Vec<Sequence> =
                        events.iter().map(|event| event.sequence).collect();
                    read.extend(&sequences);
                    if read.len() / 100 > kills && kills < 2 {
                        kills += 1;
                        old.machine.kill();
                        old.machine.run().await;
                    }
                    while let Err(error) = reader.acknowledge(&sequences).await {
                        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
                        clock.sleep(Duration::from_millis(20)).await;
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
        reader.release().await.unwrap();
        let subscriptions = origin.subscriptions("orders").await.unwrap();
        assert!(subscriptions[0].is_drained(), "{subscriptions:?}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_password_gets_it_or_refuses() {
    let machine = Machine::start("NATS_SERVER", READY, with_password).await;
    let origin = |credentials| {
        let mut server = machine.server();
        server.credentials = credentials;
        let objects = Arc::new(Vec::new());
        JetStream::new(deps(), Settings { server, objects })
    };
    let known = Credentials::Password {
        user: "heddle".to_owned(),
        password: "secret".to_owned(),
    };
    assert_eq!(origin(known).channels().await, Ok(Vec::new()));
    let refused = origin(Credentials::Nobody).channels().await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
}

#[tokio::test]
async fn a_server_that_asks_for_tls_gets_it_and_is_verified() {
    let machine = Machine::start("NATS_SERVER", READY, over_tls).await;
    let origin = |roots| {
        let mut server = machine.server();
        server.place.tls = roots;
        let objects = Arc::new(Vec::new());
        JetStream::new(deps(), Settings { server, objects })
    };
    let pem = std::fs::read_to_string(certificate(&machine)).unwrap();
    let known = origin(Some(Roots::parse(&pem).unwrap()));
    assert_eq!(known.channels().await, Ok(Vec::new()));
    let unknown = origin(Some(Roots::default())).channels().await;
    assert!(matches!(unknown, Err(Error::Unavailable(_))), "{unknown:?}");
    let plain = origin(None).channels().await;
    assert!(matches!(plain, Err(Error::Invalid(_))), "{plain:?}");
}
