//! What is told as it changes: `/heddle/v1/stream`, watched health, and the commands that live on them.

use std::process::Stdio;
use std::time::Duration;

use heddle_rt::Clock;
use heddle_rt::net;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::events::stage;
use crate::events::subscriber::{Manner, Subscriber};
use crate::harness::{Server, eventually, heddle, open_log, read};

/// A failsafe only.
const PATIENCE: Duration = Duration::from_secs(60);

/// An endless answer, as far as it was read.
struct Listening {
    stream: TcpStream,
    heard: String,
}

impl Listening {
    async fn open(server: &Server, path: &str, headers: &str) -> Self {
        let address = server.control.strip_prefix("http://").unwrap();
        let mut stream = net::connect(address.parse().unwrap()).await.unwrap();
        let request = format!(
            "GET /heddle/v1/{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n{headers}\r\n",
            server.token()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let heard = String::new();
        Self { stream, heard }
    }

    /// Reads on until a text is there.
    async fn until(&mut self, text: &str) {
        let reading = async { while !self.heard.contains(text) && self.read().await {} };
        // Signs of life may go on for ever.
        let late = Clock::system().timeout(PATIENCE, reading).await.is_err();
        let came = self.heard.contains(text);
        assert!(came, "{text} never came (late: {late}): {}", self.heard);
    }

    async fn until_end(&mut self) {
        let reading = async { while self.read().await {} };
        let ended = Clock::system().timeout(PATIENCE, reading).await;
        ended.expect("it has an end");
    }

    /// Whether there was more.
    async fn read(&mut self) -> bool {
        let mut bytes = vec![0; 1 << 16];
        let count = self.stream.read(&mut bytes).await.unwrap();
        self.heard
            .push_str(&String::from_utf8_lossy(&bytes[..count]));
        count > 0
    }

    /// The id that was heard last.
    fn id(&self) -> &str {
        let (_, id) = self.heard.rsplit_once("id: ").unwrap();
        id.lines().next().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_and_numbers_are_told_as_they_change_and_resumed() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/refunds", Manner::Status(500));
    let mut server = stage::shop(&subscriber).await;
    let mut stream = Listening::open(&server, "stream", "").await;
    stream.until("event: pulse").await;
    assert!(
        stream.heard.contains("content-type: text/event-stream"),
        "{}",
        stream.heard
    );
    assert!(stream.heard.contains("event: reset"), "{}", stream.heard);
    stream.until("\"scope\":\"application/shop/team-a\"").await;
    server.publish("/shop/events", "one", "order.created").await;
    server
        .publish("/shop/events", "two", "order.cancelled")
        .await;
    // Who receives and who publishes, in numbers; then the verdict on the plane of users.
    stream.until("\"trigger/team-a/refunds\":[").await;
    stream.until("\"application/shop\":[").await;
    stream.until("\"object\":\"trigger/team-a/refunds\"").await;
    stream.until("SubscriberFailing").await;
    let resume = format!("last-event-id: {}\r\n", stream.id());
    drop(stream);

    let mut resumed = Listening::open(&server, "stream?topics=verdict", &resume).await;
    let failing = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/refunds";
    server.ask("DELETE", failing, &[], b"").await;
    resumed.until("event: verdict").await;
    assert!(!resumed.heard.contains("event: reset"), "{}", resumed.heard);
    assert!(!resumed.heard.contains("event: pulse"), "{}", resumed.heard);

    // A closing door ends it in order; the ids of another process mean nothing.
    let status = server.terminate().await;
    assert!(status.success(), "{status:?}");
    resumed.until_end().await;
    assert!(
        resumed.heard.ends_with("\r\n0\r\n\r\n"),
        "{}",
        resumed.heard
    );
    server.launch().await;
    let mut anew = Listening::open(&server, "stream", &resume).await;
    anew.until("event: reset").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_ask_hears_nothing_and_too_many_are_refused() {
    let server = Server::start().await;
    let refused = server.get("/heddle/v1/stream").await;
    assert_eq!(refused.code, 401, "{refused:?}");
    let mut open = Vec::new();
    for _ in 0..32 {
        let mut stream = Listening::open(&server, "stream", "").await;
        stream.until("\"scope\":\"mesh\"").await;
        open.push(stream);
    }
    let mut refused = Listening::open(&server, "stream", "connection: close\r\n").await;
    refused.until_end().await;
    assert!(
        refused.heard.starts_with("HTTP/1.1 503"),
        "{}",
        refused.heard
    );
    assert!(
        refused.heard.contains("too-many-streams"),
        "{}",
        refused.heard
    );
    // Those that nobody reads any more make room.
    drop(open);
    eventually("there is room again", async || {
        let mut stream = Listening::open(&server, "stream", "").await;
        stream.until("\r\n\r\n").await;
        stream.heard.starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_scope_is_watched_and_the_command_shows_what_changes() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/refunds", Manner::Status(500));
    let server = stage::shop(&subscriber).await;
    let path = "health/applications/shop/namespaces/team-a";
    eventually("it is judged", async || {
        let asked = format!("/heddle/v1/{path}");
        let answer = server.ask("GET", &asked, &[], b"").await;
        (answer.status() == 200).then_some(())
    })
    .await;
    let mut watch = Listening::open(&server, &format!("{path}?watch=1"), "").await;
    watch.until("event: health").await;
    let file = server.data().join("watched");
    let mut child = heddle()
        .args(["health", "shop", "-n", "team-a", "-w"])
        .env("KUBECONFIG", server.kubeconfig())
        .stdout(open_log(&file))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it is shown once", async || {
        read(&file)
            .contains("application shop in team-a")
            .then_some(())
    })
    .await;
    server
        .publish("/shop/events", "two", "order.cancelled")
        .await;
    watch.until("SubscriberFailing").await;
    eventually("it is shown again", async || {
        read(&file).contains("trigger/team-a/refunds").then_some(())
    })
    .await;
    child.kill().unwrap();
    child.wait().unwrap();
    let top = server.heddle(&["top"]).ok();
    assert!(top.contains("trigger/team-a/refunds"), "{top}");
    let top = server.heddle(&["top", "-o", "json", "-n", "nowhere"]).ok();
    assert!(top.contains("\"n\": {}"), "{top}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tag_of_the_topology_follows_what_is_drawn() {
    let subscriber = Subscriber::start().await;
    let server = stage::shop(&subscriber).await;
    let ask = async |tag: &str| {
        let known = [("if-none-match", tag)];
        server.ask("GET", "/heddle/v1/topology", &known, b"").await
    };
    // Conditions of the shop may still be on their way.
    let tag = eventually("the picture rests", async || {
        let tag = ask("").await.header("etag").unwrap().to_owned();
        Clock::system().sleep(Duration::from_secs(2)).await;
        (ask(&tag).await.status() == 304).then_some(tag)
    })
    .await;
    server
        .apply_trigger(&stage::trigger("late", &subscriber.url("/late"), json!({})))
        .await;
    eventually("the new trigger is drawn", async || {
        let answer = ask(&tag).await;
        (answer.status() == 200 && answer.text().contains("trigger/team-a/late")).then_some(())
    })
    .await;
}
