//! What strangers hold, the others do not miss: half-sent batches, silent connections, replies that never end.
//!
//! Meanwhile a publisher is answered, `/livez` too, and the memory of the server, as the kernel counts it, stays within its
//! bound: also the largest it ever was.

use std::net::SocketAddr;

use heddle_rt::{OnError, Tasks};
use http::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::events::stage::{self, BROKER, trigger};
use crate::harness::{Server, eventually, eventually_or_else};

/// What the worst of it may take, as megabytes are sold.
const BYTES_MAX: u64 = 300_000_000;

fn address(base: &str) -> SocketAddr {
    base.strip_prefix("http://").unwrap().parse().unwrap()
}

/// What the kernel says about the memory of a process: now, and at its largest.
#[expect(
    clippy::disallowed_methods,
    reason = "what the kernel tells is no file of ours and has no length"
)]
fn memory(server: &Server) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kibibytes = line.split_whitespace().nth(1).unwrap();
        kibibytes.parse::<u64>().unwrap() * 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

fn assert_small(server: &Server, when: &str) {
    let (now, most) = memory(server);
    assert!(most < BYTES_MAX, "{when}: {now} bytes now, {most} at most");
}

/// A few hundred kilobytes of events, which arrive in several pieces.
fn batch() -> String {
    let event = |number: usize| {
        json!({
            "specversion": "1.0", "id": number.to_string(), "source": "/honest", "type": "kept",
            "data": "x".repeat(1_000),
        })
    };
    json!((0..200).map(event).collect::<Vec<_>>()).to_string()
}

/// Publishes as anybody on this machine would: one event, and a batch.
async fn publish(server: &Server, id: &str) {
    server.publish(BROKER, id, "kept").await;
    let batch = batch();
    let batch = batch.as_bytes();
    let kind = [("content-type", "application/cloudevents-batch+json")];
    // Over budget is told so, and goes away.
    eventually_or_else("a batch to be taken", async || {
        let mut wire = server.publisher();
        match wire.ask("POST", BROKER, &kind, batch).await {
            Ok(answer) if answer.status() == 202 => Ok(()),
            Ok(answer) if [429, 503].contains(&answer.status()) => {
                assert!(answer.header("retry-after").is_some(), "{}", answer.text());
                Err(answer.text())
            }
            Ok(answer) => panic!("{}", answer.text()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
    assert_eq!(server.get("/livez").await.code, StatusCode::OK);
}

/// Connects and says something, and keeps the connection.
async fn say(to: SocketAddr, words: &[u8]) -> Option<TcpStream> {
    let mut stream = heddle_rt::net::connect(to).await.ok()?;
    // A server that refuses does not read to the end.
    stream.write_all(words).await.ok();
    Some(stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_batches_take_no_more_than_their_share() {
    let server = stage::with_busy_broker().await;
    let mut half = format!(
        "POST {BROKER} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/cloudevents-batch+json\r\n\
         content-length: 8388608\r\n\r\n["
    )
    .into_bytes();
    half.resize(7 << 20, b' ');
    let to = address(&server.events);
    let tasks = Tasks::new("attack");
    let half = std::sync::Arc::<[u8]>::from(half);
    for _ in 0..80 {
        let half = half.clone();
        tasks.spawn("half a batch", OnError::Report, async move {
            let stream = say(to, &half).await;
            // Held until the server lets go.
            if let Some(mut stream) = stream {
                stream.read_to_end(&mut Vec::new()).await.ok();
            }
        });
    }
    for round in 0..5 {
        publish(&server, &format!("half-{round}")).await;
        assert_small(&server, "while batches are half sent");
    }
    tasks.cancel();
    tasks.join().await;
    publish(&server, "after").await;
    assert_small(&server, "after half-sent batches");
}

/// More than may rest at a listener.
const HELD: usize = 600;

fn is_open(stream: &TcpStream) -> bool {
    match stream.try_read(&mut [0]) {
        Ok(bytes) => bytes > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_closed_for_the_sake_of_those_who_ask() {
    let server = stage::with_busy_broker().await;
    for base in [&server.events, &server.control] {
        let to = address(base);
        let mut held = Vec::new();
        // Only as many as a process may have open; the listener is to let the older ones go long before.
        for _ in 0..HELD {
            held.extend(say(to, b"P").await);
        }
        publish(&server, "silent").await;
        eventually("the older ones to be closed", async || {
            held.extend(say(to, b"P").await);
            held.iter().any(|stream| !is_open(stream)).then_some(())
        })
        .await;
        publish(&server, "still").await;
    }
    assert_small(&server, "with silent connections");
}

/// A subscriber that begins a reply and never ends it.
async fn stall(listener: heddle_rt::net::Listener, tasks: Tasks) {
    while let Ok(mut stream) = listener.accept().await {
        tasks.spawn("stall", OnError::Report, async move {
            let mut head = vec![0; 64 << 10];
            drop(stream.read(&mut head).await);
            let mut reply = b"HTTP/1.1 200 OK\r\ncontent-type: application/cloudevents+json\r\n\
                              content-length: 1048000\r\n\r\n{\"specversion\":\"1.0\",\"data\":\""
                .to_vec();
            reply.resize(900 << 10, b'x');
            stream.write_all(&reply).await.ok();
            stream.read_to_end(&mut Vec::new()).await.ok();
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_that_never_end_take_no_more_than_their_share() {
    let server = stage::with_busy_broker().await;
    let tasks = Tasks::new("subscribers");
    let delivery = json!({"delivery": {"timeout": "PT20S", "retry": 3}});
    for number in 0..10 {
        let listener = heddle_rt::net::bind(([127, 0, 0, 1], 0).into())
            .await
            .unwrap();
        let url = format!("http://{}/", listener.address());
        tasks.spawn("listen", OnError::Report, stall(listener, tasks.clone()));
        let name = format!("stalls-{number}");
        server
            .apply_trigger(&trigger(&name, &url, delivery.clone()))
            .await;
    }
    let good = crate::events::subscriber::Subscriber::start().await;
    server
        .apply_trigger(&trigger("good", &good.url("/good"), json!({})))
        .await;
    for number in 0..200 {
        server
            .publish(BROKER, &format!("event-{number}"), "kept")
            .await;
    }
    eventually("the good one to have all", async || {
        assert_small(&server, "while replies stall");
        (good.tally("/good").len() == 200).then_some(())
    })
    .await;
    publish(&server, "beside").await;
    assert_small(&server, "while replies stall");
    tasks.cancel();
}
