//! Doors, tried over real loopback connections with hand-written HTTP/1.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

type Text = http_body_util::Full<Bytes>;

fn door(limits: Limits) -> Door {
    Door {
        clock: Clock::system(),
        tls: None,
        plain_on_loopback: true,
        limits,
        budget: Budget::default(),
    }
}

async fn who(request: Request<Incoming>) -> Result<Response<Text>, Infallible> {
    let peer = request
        .extensions()
        .get::<Peer>()
        .expect("the door names the peer");
    let certificate = peer.certificate.is_some();
    let loopback = peer.address.ip().is_loopback();
    let text = format!(
        "tls={} loopback={loopback} certificate={certificate}",
        peer.tls
    );
    Ok(Response::new(Text::new(text.into())))
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

async fn said(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> String {
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

/// A certificate authority with a server and a client.
struct Authority {
    server: Arc<rustls::ServerConfig>,
    stranger: Arc<rustls::ClientConfig>,
    friend: Arc<rustls::ClientConfig>,
}

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().expect("keys can be made");
        let mut params = rcgen::CertificateParams::new([]).expect("no names are fine");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let root = params
            .self_signed(&key)
            .expect("a root signs itself")
            .der()
            .clone();
        let issuer = rcgen::Issuer::new(params, key);
        let signed = |name: &str| {
            let key = rcgen::KeyPair::generate().expect("keys can be made");
            let params =
                rcgen::CertificateParams::new([name.to_owned()]).expect("the name is fine");
            let leaf = params
                .signed_by(&key, &issuer)
                .expect("the root signs")
                .der()
                .clone();
            let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
            (vec![leaf], rustls::pki_types::PrivateKeyDer::from(key))
        };
        let mut roots = rustls::RootCertStore::empty();
        roots.add(root).expect("the root is a certificate");
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
            roots.clone(),
            provider.clone(),
        );
        let verifier = verifier
            .allow_unauthenticated()
            .build()
            .expect("there is a root");
        let (chain, key) = signed("localhost");
        let server = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions();
        let server = server
            .expect("ring speaks TLS")
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key);
        let mut server = server.expect("the key fits");
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = || {
            let client = rustls::ClientConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions();
            client
                .expect("ring speaks TLS")
                .with_root_certificates(roots.clone())
        };
        let (chain, key) = signed("friend");
        Self {
            server: Arc::new(server),
            stranger: Arc::new(client().with_no_client_auth()),
            friend: Arc::new(
                client()
                    .with_client_auth_cert(chain, key)
                    .expect("the key fits"),
            ),
        }
    }
}

async fn shake_hands(
    address: SocketAddr,
    client: Arc<rustls::ClientConfig>,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let stream = connect(address).await.expect("the door is open");
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    tokio_rustls::TlsConnector::from(client)
        .connect(name, stream)
        .await
        .expect("they trust each other")
}

#[tokio::test]
async fn one_port_speaks_tls_and_plain_http() {
    let authority = Authority::new();
    let door = open(Door {
        tls: Some(authority.server),
        ..door(Limits::default())
    })
    .await;
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    for (client, certificate) in [(authority.stranger, false), (authority.friend, true)] {
        let stream = shake_hands(door.address, client).await;
        let answer = said(stream, request).await;
        assert!(
            answer.contains(&format!("tls=true loopback=true certificate={certificate}")),
            "{answer}"
        );
    }
    let answer = said(connect(door.address).await.unwrap(), request).await;
    assert!(answer.contains("tls=false"), "{answer}");
    door.closing.cancel();
    door.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_door_with_tls_only_does_not_answer_plain_http() {
    let authority = Authority::new();
    let strict = Door {
        tls: Some(authority.server),
        plain_on_loopback: false,
        ..door(Limits::default())
    };
    let door = open(strict).await;
    let answer = said(
        connect(door.address).await.unwrap(),
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    )
    .await;
    assert_eq!(answer, "");
    door.closing.cancel();
    door.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn http_2_is_spoken_when_both_want_it() {
    let authority = Authority::new();
    let mut client = (*authority.stranger).clone();
    client.alpn_protocols = vec![b"h2".to_vec()];
    let door = open(Door {
        tls: Some(authority.server),
        ..door(Limits::default())
    })
    .await;
    let stream = TokioIo::new(shake_hands(door.address, Arc::new(client)).await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, stream)
        .await
        .unwrap();
    let asking = async {
        let request = Request::get("https://localhost/")
            .body(Text::default())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(
            (response.status(), response.version()),
            (http::StatusCode::OK, http::Version::HTTP_2)
        );
        drop(sender);
    };
    let (asked, ended) = tokio::join!(asking, connection);
    assert_eq!(asked, ());
    ended.unwrap();
    door.closing.cancel();
    door.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn more_connections_than_allowed_wait_their_turn() {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, closing) = (listener.address(), CancellationToken::new());
    let served = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let log = served.clone();
    let service = tower::service_fn(move |request: Request<Incoming>| {
        log.lock().push(request.uri().path().to_owned());
        who(request)
    });
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    let serving = serve(listener, door(limits), service, closing.clone());
    let guests = async {
        let mut first = connect(address).await.unwrap();
        first.write_all(b"GET /first HT").await.unwrap();
        let second = connect(address).await.unwrap();
        let second = said(
            second,
            b"GET /second HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        );
        let first = async {
            // Long enough for a door without a limit to answer the second, whose request is complete.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            said(first, b"TP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await
        };
        let answers = tokio::join!(first, second);
        closing.cancel();
        answers
    };
    let ((first, second), end) = tokio::join!(guests, serving);
    assert!(
        first.contains("200") && second.contains("200"),
        "{first} {second}"
    );
    assert_eq!(*served.lock(), ["/first", "/second"]);
    assert_eq!(end, Ok(()));
}

/// Far longer than a test waits.
const HOUR: Duration = Duration::from_secs(3600);

/// Silent, in the middle of a handshake, of a request, of the first words of HTTP/2, and after an answer.
#[tokio::test]
async fn whoever_has_to_go_is_gone_whatever_it_was_doing() {
    let asks = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let beginnings = [
        &b""[..],
        &[TLS_HANDSHAKE, 3, 1, 2, 0],
        b"GET / HT",
        b"PRI * HT",
        asks,
    ];
    for beginning in beginnings {
        // Only having to go ends a connection here.
        let limits = Limits {
            resting_max: 1,
            head_timeout: HOUR,
            rest_timeout: HOUR,
            ..Limits::default()
        };
        let door = open(Door {
            tls: Some(Authority::new().server),
            ..door(limits)
        })
        .await;
        let asked = beginning == asks;
        let guest = async || {
            let mut stream = connect(door.address).await.unwrap();
            stream.write_all(beginning).await.unwrap();
            if asked {
                stream.read_exact(&mut [0; 15]).await.unwrap();
            }
            // Long enough for the door to hear it.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            stream
        };
        let mut first = guest().await;
        let mut crowd = Vec::new();
        for _ in 0..20 {
            crowd.push(guest().await);
        }
        let mut rest = Vec::new();
        let ending = first.read_to_end(&mut rest);
        let ended = Clock::system().timeout(HOUR / 60, ending).await;
        assert!(ended.is_ok(), "{beginning:?} stays");
        drop((first, crowd));
        door.closing.cancel();
        door.serving.await.unwrap().unwrap();
    }
}
