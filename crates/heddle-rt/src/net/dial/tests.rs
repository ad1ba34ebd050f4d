//! Connections that are made, refused and verified, over real loopback sockets.

use std::net::IpAddr;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::super::trust::BadRoots;
use super::super::{Listener, bind};
use super::*;

/// A name server whose answers are written down beforehand, one after the other; the last one stays.
#[derive(Debug)]
struct Script {
    answers: Mutex<Vec<Vec<IpAddr>>>,
}

impl Script {
    fn new(answers: &[&[&str]]) -> Box<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|a| a.parse().unwrap()).collect();
        Box::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
        })
    }
}

impl Resolve for Script {
    fn resolve(&self, _: &str, port: u16) -> Resolving {
        let mut answers = self.answers.lock();
        let answer = if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        };
        let addresses = answer.into_iter().map(|ip| SocketAddr::new(ip, port));
        let addresses = addresses.collect();
        Box::pin(async move { Ok(addresses) })
    }
}

async fn listener() -> Listener {
    bind("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

fn plain(host: &str, port: u16) -> Place {
    Place {
        host: host.to_owned(),
        port,
        tls: None,
    }
}

fn network(answers: &[&[&str]]) -> Network {
    Network::resolving(Clock::system(), Egress::default(), Script::new(answers))
}

async fn refused(network: &Network, place: &Place) -> io::Error {
    let connected = network.connect(place).await;
    connected.err().expect("the connection is refused")
}

#[tokio::test]
async fn a_connection_goes_only_to_addresses_that_are_allowed() {
    let listener = listener().await;
    let port = listener.address().port();
    let network = network(&[&["169.254.169.254", "0.0.0.0", "127.0.0.1"]]);
    let (connected, accepted) = tokio::join!(
        network.connect(&plain("mixed.example", port)),
        listener.inner.accept()
    );
    connected.expect("one of the addresses is allowed");
    accepted.unwrap();
}

#[tokio::test]
async fn an_address_of_this_process_is_reached_by_its_secret_name_alone() {
    let listener = listener().await;
    let address = listener.address();
    let internal = Internal {
        host: "secret.invalid".to_owned(),
        address,
    };
    let (clock, own) = (Clock::system(), OwnListeners::default());
    let forbids = Egress {
        allow_loopback: false,
        ..Egress::ANYWHERE
    };
    let network = Network::beside_and_within(clock, forbids, own, internal);
    network.connect(&plain("secret.invalid", 80)).await.unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let error = refused(&network, &plain(host, address.port())).await;
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{host}");
    }
    refused(&network, &plain("other.invalid", 80)).await;
}

#[tokio::test]
async fn a_name_that_changes_its_mind_gains_nothing() {
    let listener = listener().await;
    let port = listener.address().port();
    let network = network(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let place = plain("rebind.example", port);
    network.connect(&place).await.expect("allowed at first");
    let error = refused(&network, &place).await;
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("169.254.169.254"), "{error}");
}

#[tokio::test]
async fn every_spelling_of_a_forbidden_address_is_forbidden() {
    let strict = Egress {
        allow_loopback: false,
        ..Egress::default()
    };
    let network = Network::new(Clock::system(), strict);
    let spellings = [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "::1",
    ];
    for host in spellings
        .into_iter()
        .chain(["::ffff:127.0.0.1", "localhost"])
    {
        let error = refused(&network, &plain(host, 9)).await;
        assert_eq!(
            error.kind(),
            io::ErrorKind::PermissionDenied,
            "{host}: {error}"
        );
    }
    let metadata = refused(&network, &plain("::ffff:169.254.169.254", 80)).await;
    assert_eq!(metadata.kind(), io::ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn a_name_without_an_address_and_a_port_without_a_server_are_errors_that_say_so() {
    let nobody = refused(&network(&[&[]]), &plain("nobody.example", 80)).await;
    assert_eq!(nobody.to_string(), "nobody.example has no address");
    let closed = listener().await;
    let port = closed.address().port();
    drop(closed);
    let refused = refused(&network(&[&["127.0.0.1"]]), &plain("x", port)).await;
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    let text = format!("cannot connect to 127.0.0.1:{port}");
    assert!(refused.to_string().starts_with(&text), "{refused}");
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let listener = listener().await;
    let port = listener.address().port();
    // Nobody listens at the first.
    let network = network(&[&["127.0.0.2", "127.0.0.1"]]);
    let connected = network.connect(&plain("two.example", port)).await;
    connected.expect("the second address answers");
}

/// An authority, and servers that it vouches for.
struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new([]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = rcgen::Issuer::new(params, key);
        Self { issuer, pem }
    }

    fn server(
        &self,
        name: &str,
        protocols: &[&[u8]],
        change: impl FnOnce(&mut rcgen::CertificateParams),
    ) -> Arc<rustls::ServerConfig> {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let leaf = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf], key.into())
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }
}

/// Connects to a server with this configuration under the name it is known by, and exchanges a byte.
async fn secured(
    server: Arc<rustls::ServerConfig>,
    host: &str,
    roots: Roots,
) -> io::Result<Protocol> {
    let listener = listener().await;
    let place = Place {
        host: host.to_owned(),
        port: listener.address().port(),
        tls: Some(roots),
    };
    let network = network(&[&["127.0.0.1"]]);
    let serving = async {
        let (stream, _) = listener.inner.accept().await.unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(server);
        // A client that does not believe us hangs up, which is the client's to report.
        if let Ok(mut stream) = acceptor.accept(stream).await {
            stream.write_all(b"!").await.unwrap();
            stream.flush().await.unwrap();
        }
    };
    let asking = async {
        let mut stream = network.connect(&place).await?;
        assert_eq!(stream.read_u8().await?, b'!');
        Ok(stream.protocol())
    };
    tokio::join!(serving, asking).1
}

#[tokio::test]
async fn tls_speaks_what_both_sides_know() {
    let authority = Authority::new();
    let roots = Roots::parse(&authority.pem).unwrap();
    let cases: [(&[&[u8]], Protocol); 4] = [
        (&[b"h2", b"http/1.1"], Protocol::Http2),
        (&[b"http/1.1", b"h2"], Protocol::Http1),
        (&[b"http/1.1"], Protocol::Http1),
        (&[], Protocol::Http1),
    ];
    for (protocols, expected) in cases {
        let server = authority.server("shop.example", protocols, |_| ());
        let spoken = secured(server, "shop.example", roots.clone()).await;
        assert_eq!(spoken.unwrap(), expected, "{protocols:?}");
    }
}

#[tokio::test]
async fn a_certificate_that_does_not_hold_ends_the_connection() {
    let authority = Authority::new();
    let roots = Roots::parse(&authority.pem).unwrap();
    let server = |change: fn(&mut rcgen::CertificateParams)| {
        authority.server("shop.example", &[b"h2"], change)
    };
    let unknown = secured(server(|_| ()), "shop.example", Roots::default()).await;
    assert!(unknown.unwrap_err().to_string().contains("UnknownIssuer"));
    #[expect(clippy::disallowed_methods, reason = "this is about what it does")]
    let credulous = Roots::unverified();
    let believed = secured(server(|_| ()), "any.example", credulous).await;
    assert!(believed.is_ok(), "somebody asked for it: {believed:?}");
    let other = secured(server(|_| ()), "other.example", roots.clone()).await;
    let other = other.unwrap_err().to_string();
    assert!(other.contains("not valid for name"), "{other}");
    let expired = secured(
        server(|params| params.not_after = rcgen::date_time_ymd(2001, 1, 1)),
        "shop.example",
        roots,
    );
    let expired = expired.await.unwrap_err().to_string();
    assert!(expired.contains("expired"), "{expired}");
}

#[test]
fn roots_are_checked_when_they_are_read() {
    let authority = Authority::new();
    let twice = format!("{0}{0}", authority.pem);
    assert!(Roots::parse(&twice).is_ok());
    assert_eq!(Roots::parse(&twice), Roots::parse(&twice));
    assert_ne!(Roots::parse(&twice), Roots::parse(&authority.pem));
    assert_eq!(Roots::parse("nothing at all"), Err(BadRoots::Empty));
    let cut = "-----BEGIN CERTIFICATE-----\nMIIB";
    assert!(matches!(Roots::parse(cut), Err(BadRoots::Pem(_))));
    let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let refused = Roots::parse(&format!("{}{junk}", authority.pem));
    assert!(
        matches!(refused, Err(BadRoots::Certificate { number: 2, .. })),
        "{refused:?}"
    );
}
