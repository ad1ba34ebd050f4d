use std::io;

use heddle_rt::net::dial::{Connect, Connecting, Place};
use heddle_rt::{Chance, Clock};
use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt as _, BufReader, DuplexStream};

use super::*;
use crate::nats::{Credentials, NatsTimeouts};

/// A network on which one server answers, as the test says.
#[derive(Debug, Default)]
struct Wire {
    waiting: Arc<Mutex<VecDeque<DuplexStream>>>,
}

impl Connect for Wire {
    fn connect(&self, _: &Place) -> Connecting {
        let next = self.waiting.lock().pop_front();
        Box::pin(async move {
            let stream = next.ok_or(io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

struct Peer {
    stream: BufReader<DuplexStream>,
}

impl Peer {
    async fn say(&mut self, text: &str) {
        self.stream
            .get_mut()
            .write_all(text.as_bytes())
            .await
            .unwrap();
    }

    async fn hear(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        line
    }

    /// Hears lines until one begins like this.
    async fn hear_until(&mut self, start: &str) -> String {
        loop {
            let line = self.hear().await;
            assert!(!line.is_empty(), "the client hung up before {start}");
            if line.starts_with(start) {
                return line;
            }
        }
    }

    async fn greet(&mut self) {
        self.say("INFO {\"headers\":true}\r\n").await;
        self.hear_until("PING").await;
        self.say("PONG\r\n").await;
    }
}

/// What a client is made of, and the other ends of its next connections.
fn wire(connections: usize) -> (NatsDeps, NatsServer, Vec<Peer>) {
    let wire = Wire::default();
    let mut peers = Vec::new();
    for _ in 0..connections {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        wire.waiting.lock().push_back(ours);
        let stream = BufReader::new(theirs);
        peers.push(Peer { stream });
    }
    let deps = NatsDeps {
        tasks: Tasks::new("test"),
        clock: Clock::simulated(Timestamp::UNIX_EPOCH),
        chance: Chance::seeded(1),
        connect: Arc::new(wire),
        patience: NatsTimeouts::default(),
    };
    let server = NatsServer {
        place: Place {
            host: "old".to_owned(),
            port: 4222,
            tls: None,
        },
        credentials: Credentials::Token("secret".to_owned()),
    };
    (deps, server, peers)
}

async fn connected() -> (NatsClient, Peer) {
    let (deps, server, mut peers) = wire(1);
    let mut peer = peers.remove(0);
    let (client, ()) = tokio::join!(NatsClient::connect(&deps, &server), peer.greet());
    (client.unwrap(), peer)
}

/// The subscription of the last line heard, and where its messages go.
fn subscription(line: &str) -> (String, String) {
    let mut words = line.split_whitespace().skip(1);
    let (subject, number) = (words.next().unwrap(), words.next().unwrap());
    (subject.to_owned(), number.to_owned())
}

async fn why_not(say: &'static str) -> Error {
    let (deps, server, mut peers) = wire(1);
    let mut peer = peers.remove(0);
    let (client, ()) = tokio::join!(NatsClient::connect(&deps, &server), async {
        peer.say(say).await;
    });
    client.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn strangers_are_told_apart_and_waited_for_no_longer_than_patience_lasts() {
    assert!(matches!(
        why_not("HTTP/1.1 400 Bad Request\r\n").await,
        Error::Corrupt(_)
    ));
    assert!(matches!(why_not("PING\r\n").await, Error::Corrupt(_)));
    assert!(matches!(
        why_not("INFO nonsense\r\n").await,
        Error::Corrupt(_)
    ));
    assert!(matches!(
        why_not("INFO {\"tls_required\":true}\r\n").await,
        Error::Invalid(_)
    ));
    assert!(matches!(
        why_not("INFO {}\r\n-ERR 'Authorization Violation'\r\n").await,
        Error::Forbidden(_)
    ));
    assert!(
        matches!(why_not("INF").await, Error::Unavailable(_)),
        "half a line"
    );
    assert!(
        matches!(why_not("INFO {}\r\n").await, Error::Unavailable(_)),
        "and then nothing"
    );
    assert!(matches!(
        why_not("INFO {}\r\nMSG a 1 99999999999\r\n").await,
        Error::Corrupt(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn nobody_says_who_they_are_in_plain_words_where_tls_was_asked_for() {
    for greeting in [
        "INFO {}\r\n",
        "INFO {\"tls_required\":true}\r\nPING\r\n",
        "INFO {\"tls_required\":true}\r\n",
    ] {
        let (deps, mut server, mut peers) = wire(1);
        server.place.tls = Some(heddle_rt::net::trust::Roots::default());
        let mut peer = peers.remove(0);
        let (client, ()) = tokio::join!(NatsClient::connect(&deps, &server), peer.say(greeting));
        client.unwrap_err();
        assert_eq!(peer.hear().await, "", "{greeting}");
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_are_said_and_not_shown() {
    let (deps, server, mut peers) = wire(1);
    let mut peer = peers.remove(0);
    let (client, said) = tokio::join!(NatsClient::connect(&deps, &server), async {
        peer.say("INFO {}\r\n").await;
        let said = peer.hear_until("CONNECT").await;
        peer.say("PONG\r\n").await;
        said
    });
    assert!(said.contains("\"auth_token\":\"secret\""), "{said}");
    assert!(!format!("{:?}", client.unwrap()).contains("secret"));
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_refused_or_given_up() {
    let (client, mut peer) = connected().await;
    let asking = client.ask("a.b", b"what".to_vec());
    let (answer, ()) = tokio::join!(asking, async {
        let line = peer.hear_until("PUB a.b").await;
        let reply = line.split(' ').nth(2).unwrap().to_owned();
        // Strangers' answers are of no concern to it.
        peer.say("MSG _INBOX.x.77 1 1\r\nx\r\nMSG _INBOX.x.y 99 1\r\nx\r\n")
            .await;
        peer.say(&format!("MSG {reply} 1 4\r\nthat\r\n")).await;
    });
    assert_eq!(answer.unwrap().payload, "that");
    let (nobody, ()) = tokio::join!(client.ask("a.b", Vec::new()), async {
        let line = peer.hear_until("PUB a.b").await;
        let reply = line.split(' ').nth(2).unwrap().to_owned();
        peer.say(&format!("HMSG {reply} 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"))
            .await;
    });
    assert!(matches!(nobody, Err(Error::Unavailable(why)) if why == "nobody answers at a.b"));
    let (refused, ()) = tokio::join!(client.ask("a.b", Vec::new()), async {
        peer.hear_until("PUB a.b").await;
        peer.say("-ERR 'Permissions Violation for Publish to \"a.b\"'\r\n")
            .await;
    });
    assert!(matches!(refused, Err(Error::Forbidden(_))));
    let late = client.ask("a.b", Vec::new()).await;
    assert!(matches!(late, Err(Error::Unavailable(_))));
    assert!(
        client.shared.state.lock().asked.is_empty(),
        "nothing is kept of it"
    );
    assert!(matches!(
        client.ask("a b", Vec::new()).await,
        Err(Error::Corrupt(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn an_inbox_in_which_order_counts_ends_when_there_is_no_room() {
    let (client, mut peer) = connected().await;
    let mut ordered = client.subscribe("ordered", None, 2, true).await.unwrap();
    let (_, number) = subscription(&peer.hear_until("SUB ordered").await);
    let mut other = client.subscribe("other", None, 2, false).await.unwrap();
    let (_, other_number) = subscription(&peer.hear_until("SUB other").await);
    for text in ["1", "2", "3", "4"] {
        peer.say(&format!(
            "MSG ordered {number} 1\r\n{text}\r\nMSG other {other_number} 1\r\n{text}\r\n"
        ))
        .await;
    }
    peer.hear_until("UNSUB").await;
    for expected in ["1", "2"] {
        assert_eq!(ordered.next().await.unwrap().payload, expected);
        assert_eq!(other.next().await.unwrap().payload, expected);
    }
    assert!(
        ordered.next().await.is_none(),
        "3 is lost, so 4 must not be seen"
    );
    peer.say(&format!("MSG other {other_number} 1\r\n5\r\n"))
        .await;
    assert_eq!(
        other.next().await.unwrap().payload,
        "5",
        "the other goes on"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_looked_at_holds_so_many_bytes_and_no_more() {
    let (client, mut peer) = connected().await;
    let mut inbox = client.subscribe("large", None, 4096, true).await.unwrap();
    let (_, number) = subscription(&peer.hear_until("SUB large").await);
    let payload = "x".repeat(4 << 20);
    for _ in 0..20 {
        let message = format!("MSG large {number} {}\r\n{payload}\r\n", payload.len());
        peer.say(&message).await;
    }
    peer.say("PING\r\n").await;
    peer.hear_until("PONG").await;
    let mut count = 0;
    while inbox.next().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 15, "64 MiB, with a little for each");
    assert_eq!(
        client.shared.room.available_permits(),
        ROOM_UNITS,
        "and all of it is given back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_is_made_again_and_says_so() {
    let (deps, server, mut peers) = wire(2);
    let mut peer = peers.remove(0);
    let (client, ()) = tokio::join!(NatsClient::connect(&deps, &server), peer.greet());
    let client = client.unwrap();
    let mut ordered = client.subscribe("ordered", None, 9, true).await.unwrap();
    let mut kept = client.subscribe("kept", None, 9, false).await.unwrap();
    let (_, number) = subscription(&peer.hear_until("SUB kept").await);
    let (lost, ()) = tokio::join!(client.ask("a", Vec::new()), async {
        peer.hear_until("PUB a").await;
        drop(peer);
    });
    assert!(matches!(lost, Err(Error::Unavailable(_))));
    assert!(ordered.next().await.is_none());
    assert_eq!(client.connections(), 1);
    let mut peer = peers.remove(0);
    peer.say("INFO {}\r\n").await;
    assert_eq!(subscription(&peer.hear_until("SUB kept").await).1, number);
    peer.say(&format!("PONG\r\nMSG kept {number} 1\r\nx\r\n"))
        .await;
    assert_eq!(kept.next().await.unwrap().payload, "x");
    assert_eq!(client.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_any_more_is_left() {
    let (client, mut peer) = connected().await;
    peer.hear_until("PING").await;
    let mut inbox = client.subscribe("a", None, 9, true).await.unwrap();
    assert!(inbox.next().await.is_none(), "after a minute of silence");
    assert!(matches!(client.flush().await, Err(Error::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_flush_ends_when_the_server_has_everything() {
    let (client, mut peer) = connected().await;
    client.publish("a", None, &b"x"[..]).await.unwrap();
    let (flushed, ()) = tokio::join!(client.flush(), async {
        peer.hear_until("PUB a 1").await;
        peer.hear_until("PING").await;
        peer.say("PONG\r\n").await;
    });
    assert_eq!(flushed, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_connection_ends_with_the_last_client() {
    let (client, mut peer) = connected().await;
    let other = client.clone();
    drop(client);
    other.publish("a", None, Vec::new()).await.unwrap();
    peer.hear_until("PUB a").await;
    drop(other);
    while !peer.hear().await.is_empty() {}
}
