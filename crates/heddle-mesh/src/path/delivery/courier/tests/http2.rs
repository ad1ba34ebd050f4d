//! Deliveries over HTTP/2. Who agrees to speak it is tried with TLS where TLS is kept; here both sides just do.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use heddle_rt::net::dial::{Connecting, Protocol, Stream};
use heddle_rt::net::{self, Door};
use http::{Response, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::*;

/// A plain connection that says both sides agreed on HTTP/2, as a TLS handshake would.
#[derive(Debug)]
struct Agreed(TcpStream);

impl Stream for Agreed {
    fn protocol(&self) -> Protocol {
        Protocol::Http2
    }
}

impl AsyncRead for Agreed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Agreed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[derive(Debug)]
struct Agreeing {
    to: SocketAddr,
    connections: AtomicUsize,
}

impl Connect for Agreeing {
    fn connect(&self, place: &Place) -> Connecting {
        assert!(place.tls.is_some());
        self.connections.fetch_add(1, Ordering::Relaxed);
        let to = self.to;
        Box::pin(async move { Ok(Box::new(Agreed(net::connect(to).await?)) as Box<dyn Stream>) })
    }
}

/// A server, and a courier that finds it under every name.
struct Pair {
    tasks: Tasks,
    courier: Courier,
    connect: Arc<Agreeing>,
}

impl Pair {
    async fn new(limits: Limits) -> Self {
        let tasks = Tasks::new("test");
        let listener = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let connect = Arc::new(Agreeing {
            to: listener.address(),
            connections: AtomicUsize::new(0),
        });
        let door = Door {
            clock: Clock::system(),
            tls: None,
            plain_on_loopback: true,
            limits: net::Limits::default(),
            budget: Budget::default(),
        };
        let service = axum::Router::new().fallback(repeat);
        tasks.spawn("door", OnError::Report, async move {
            net::serve(listener, door, service, CancellationToken::new()).await
        });
        let courier = Courier::new(CourierOptions {
            tasks: tasks.child("courier"),
            clock: Clock::system(),
            connect: connect.clone(),
            limits,
            replies: ce::Limits::default(),
            budget: Budget::default(),
        });
        Self {
            tasks,
            courier,
            connect,
        }
    }

    fn connections(&self) -> usize {
        self.connect.connections.load(Ordering::Relaxed)
    }
}

/// Answers with the event that came, under `/in` with success.
async fn repeat(
    request: Request<axum::body::Body>,
) -> Result<Response<axum::body::Body>, Infallible> {
    let (head, body) = request.into_parts();
    assert_eq!(head.version, Version::HTTP_2);
    assert_eq!(head.uri.host(), Some("shop.example"));
    let mut response = Response::new(body);
    if head.uri.path() != "/in" {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    for (name, value) in &head.headers {
        if name.as_str().starts_with("ce-") {
            response.headers_mut().insert(name.clone(), value.clone());
        }
    }
    Ok(response)
}

#[tokio::test]
async fn http_2_carries_all_deliveries_over_one_connection() {
    let pair = Pair::new(Limits::default()).await;
    let courier = &pair.courier;
    let address = courier.address("https://shop.example/in", None).unwrap();
    let sending = (0..50).map(|_| send(courier, &address, PATIENT));
    for ended in futures::future::join_all(sending).await {
        let Outcome::Accepted {
            reply: Reply::Event(reply),
            ..
        } = ended
        else {
            panic!("expected the event back: {ended:?}");
        };
        assert_eq!(reply.id(), "1");
        assert_eq!(reply.data().as_deref(), Some(&b"{\"total\":7}"[..]));
    }
    let other = courier.address("https://shop.example/x", None).unwrap();
    let refused = send(courier, &other, PATIENT).await;
    assert!(!refused.answered(), "{refused:?}");
    assert_eq!(pair.connections(), 1);
    pair.tasks.cancel();
    pair.tasks.join().await;
    assert_eq!(pair.tasks.failures(), []);
}

#[tokio::test]
async fn an_http_2_connection_that_ended_is_opened_again() {
    let limits = Limits {
        idle_timeout: HASTY,
        ..Limits::default()
    };
    let pair = Pair::new(limits).await;
    let courier = &pair.courier;
    let address = courier.address("https://shop.example/in", None).unwrap();
    let tasks = &courier.inner.deps.tasks;
    let without = tasks.running();
    assert!(send(courier, &address, PATIENT).await.answered());
    while tasks.running() > without {
        courier.inner.deps.clock.sleep(HASTY / 10).await;
    }
    assert!(send(courier, &address, PATIENT).await.answered());
    assert_eq!(pair.connections(), 2);
    pair.tasks.cancel();
}

#[tokio::test]
async fn an_http_2_connection_that_rests_is_closed_for_one_elsewhere() {
    let pair = Pair::new(Limits {
        all_max: 1,
        idle_timeout: 100 * PATIENT,
        ..Limits::default()
    })
    .await;
    let courier = &pair.courier;
    let [one, other] = ["https://shop.example/in", "https://shop.example:444/in"]
        .map(|url| courier.address(url, None).unwrap());
    for round in 1..=3 {
        for address in [&one, &other] {
            // The server closes what rests, too, but not so soon.
            let ended = send(courier, address, PATIENT / 6).await;
            assert!(ended.answered(), "{ended:?}");
        }
        assert_eq!(pair.connections(), 2 * round);
    }
    pair.tasks.cancel();
}
