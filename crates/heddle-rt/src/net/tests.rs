//! Doors, tried over real loopback connections with hand-written HTTP/1.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

type Text = http_body_text::Full;

/// A body of one piece; the crates that offer one are not worth a dependency here.
mod http_body_text {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use hyper::body::{Body, Frame};

    pub(super) struct Full(pub(super) Option<Bytes>);

    impl Body for Full {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
        }
    }
}

fn door(limits: Limits) -> Door {
    Door {
        clock: Clock::system(),
        tls: None,
        plain_on_loopback: true,
        limits,
    }
}

async fn who(request: Request<Incoming>) -> Result<Response<Text>, Infallible> {
    let peer = request
        .extensions()
        .get::<Peer>()
        .expect("the door names the peer");
    let text = format!(
        "tls={} loopback={}",
        peer.tls,
        peer.address.ip().is_loopback()
    );
    Ok(Response::new(http_body_text::Full(Some(text.into()))))
}

struct Open {
    address: SocketAddr,
    closing: CancellationToken,
    serving: tokio::task::JoinHandle<Result<(), Refused>>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test owns the task and awaits it"
)]
async fn open(door: Door) -> Open {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.address();
    let closing = CancellationToken::new();
    let serving = tokio::spawn(serve(
        listener,
        door,
        tower::service_fn(who),
        closing.clone(),
    ));
    Open {
        address,
        closing,
        serving,
    }
}

async fn said(mut stream: TcpStream, request: &[u8]) -> String {
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is as good as an end.
    let _end = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_plain_request_on_loopback_is_answered_and_names_its_peer() {
    let door = open(door(Limits::default())).await;
    let stream = connect(door.address).await.unwrap();
    let answer = said(
        stream,
        b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("tls=false loopback=true"), "{answer}");
    door.closing.cancel();
    assert_eq!(door.serving.await.unwrap(), Ok(()));
    assert!(connect(door.address).await.is_err(), "the door is closed");
}

#[tokio::test]
async fn plain_http_is_refused_where_it_is_not_allowed() {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.address();
    let strict = Door {
        plain_on_loopback: false,
        ..door(Limits::default())
    };
    let refused = serve(
        listener,
        strict,
        tower::service_fn(who),
        CancellationToken::new(),
    )
    .await;
    assert_eq!(refused, Err(Refused::Plain(address)));

    let everywhere = bind("0.0.0.0:0".parse().unwrap()).await.unwrap();
    let refused = serve(
        everywhere,
        door(Limits::default()),
        tower::service_fn(who),
        CancellationToken::new(),
    )
    .await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn a_silent_or_slow_guest_is_shown_out() {
    let limits = Limits {
        head_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let door = open(door(limits)).await;
    for beginning in [&b""[..], b"PRI ", b"GET / HT"] {
        let stream = connect(door.address).await.unwrap();
        // Ends only because the door ends it.
        let answer = said(stream, beginning).await;
        assert!(!answer.contains("200"), "{answer}");
    }
    door.closing.cancel();
    door.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn headers_beyond_the_limit_are_refused() {
    let limits = Limits {
        header_bytes_max: 8192,
        ..Limits::default()
    };
    let door = open(door(limits)).await;
    let stream = connect(door.address).await.unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nhost: x\r\nlong: {}\r\n\r\n",
        "y".repeat(10_000)
    );
    let answer = said(stream, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    door.closing.cancel();
    door.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn closing_the_door_lets_an_open_request_finish() {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.address();
    let (closing, arrived, go) = (
        CancellationToken::new(),
        CancellationToken::new(),
        CancellationToken::new(),
    );
    let (arrived_in, go_in) = (arrived.clone(), go.clone());
    let slow = tower::service_fn(move |request| {
        let (arrived, go) = (arrived_in.clone(), go_in.clone());
        async move {
            arrived.cancel();
            go.cancelled().await;
            who(request).await
        }
    });
    let serving = serve(listener, door(Limits::default()), slow, closing.clone());
    let asking = async {
        let stream = connect(address).await.unwrap();
        said(stream, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await
    };
    let order = async {
        arrived.cancelled().await;
        closing.cancel();
        tokio::task::yield_now().await;
        go.cancel();
    };
    let (served, answer, ()) = tokio::join!(serving, asking, order);
    assert_eq!(served, Ok(()));
    assert!(answer.contains("tls=false"), "{answer}");
}
