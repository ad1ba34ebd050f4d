//! The probe at real listeners, each wrong in its own way.

use std::convert::Infallible;
use std::net::SocketAddr;

use heddle_rt::OnError;
use heddle_rt::net::{self, Door};
use http::Response;
use hyper::body::Incoming;
use rustls::sign::SingleCertAndKey;

use self::signer::Signer;
use super::*;

#[path = "../../tests/e2e/signer.rs"]
mod signer;

fn server_config(signer: &Signer, name: &str, until: i32) -> Arc<rustls::ServerConfig> {
    signer::resolving(Arc::new(SingleCertAndKey::from(signer.issue(name, until))))
}

/// Paths that were asked for, with the credentials that were shown.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A listener that answers everybody with this status.
async fn serve(tasks: &Tasks, tls: Arc<rustls::ServerConfig>, status: u16) -> (SocketAddr, Asked) {
    let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.address();
    let door = Door::secured(Clock::system(), tls);
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Incoming>| {
        let shown = request.headers().get(header::AUTHORIZATION);
        let shown = shown.map_or("", |value| value.to_str().unwrap());
        let path = request.uri().path().to_owned();
        seen.lock().push((path, shown.to_owned()));
        let body = Full::new(Bytes::from_static(br#"{"code":"x","message":"not you"}"#));
        let response = Response::builder().status(status).body(body).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    tasks.spawn_finishing("listener", OnError::Report, |closing| {
        net::serve(listener, door, service, closing)
    });
    (address, asked)
}

fn probe(port: u16, signer: &Signer) -> EdgeProbe {
    let url = format!("https://localhost:{port}/mesh/");
    EdgeProbe::new(&url, &signer.pem, &World::real()).unwrap()
}

/// Tries once; gives what is wrong.
async fn tried(port: u16, signer: &Signer, tasks: &Tasks) -> Option<EdgeFailure> {
    let probe = probe(port, signer);
    let well = probe.try_once(tasks).await;
    let reading = probe.reading();
    assert_eq!(reading.listener, format!("localhost:{port}"));
    assert_eq!(reading.succeeded.is_some(), well);
    assert_eq!(reading.misses, u32::from(!well), "{reading:?}");
    reading.failed.map(|(failure, _)| failure)
}

#[tokio::test]
async fn each_fault_of_a_listener_is_told_from_the_others() {
    let tasks = Tasks::new("test");
    let (ours, theirs) = (Signer::new("ours"), Signer::new("theirs"));
    let untrusted = Some(EdgeFailure::CertificateUntrusted);
    let (here, elsewhere) = ("localhost", "elsewhere.example");
    for (signer, name, until, status, expected) in [
        (&ours, here, 2099, 202, None),
        (
            &ours,
            here,
            2021,
            202,
            Some(EdgeFailure::CertificateExpired),
        ),
        (&theirs, here, 2099, 202, untrusted),
        (&ours, elsewhere, 2099, 202, untrusted),
        (&ours, here, 2099, 401, Some(EdgeFailure::Refused)),
        (&ours, here, 2099, 307, Some(EdgeFailure::Refused)),
    ] {
        let (address, asked) = serve(&tasks, server_config(signer, name, until), status).await;
        let found = tried(address.port(), &ours, &tasks).await;
        assert_eq!(found, expected, "{name} {until} {status}");
        // Whoever cannot prove who they are is told nothing.
        let verified = matches!(expected, None | Some(EdgeFailure::Refused));
        assert_eq!(asked.lock().len(), usize::from(verified));
    }
    let nobody = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let port = nobody.address().port();
    drop(nobody);
    let found = tried(port, &ours, &tasks).await;
    assert_eq!(found, Some(EdgeFailure::Unreachable));
    tasks.cancel();
    tasks.join().await;
}

#[tokio::test]
async fn it_comes_again_and_again_below_the_path_of_the_address_with_its_own_credentials() {
    let tasks = Tasks::new("test");
    let signer = Signer::new("ours");
    let (address, asked) = serve(&tasks, server_config(&signer, "localhost", 2099), 202).await;
    let probe = probe(address.port(), &signer);
    for _ in 0..3 {
        assert!(probe.try_once(&tasks).await, "{:?}", probe.reading());
    }
    let shown = format!("Bearer {}", probe.inner.token);
    let path = "/mesh/channel/_heddle/canary".to_owned();
    assert_eq!(*asked.lock(), vec![(path, shown.clone()); 3]);
    let token = shown.strip_prefix("Bearer ").unwrap();
    assert!(probe.tokens().identity(token).is_some());
    assert!(probe.tokens().identity("").is_none());
    tasks.cancel();
    tasks.join().await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_says_nothing_is_not_waited_for() {
    let tasks = Tasks::new("test");
    let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let signer = Signer::new("ours");
    let found = tried(listener.address().port(), &signer, &tasks).await;
    assert_eq!(found, Some(EdgeFailure::TimedOut));
}

#[test]
fn only_an_address_with_tls_and_nothing_secret_can_be_tried() {
    for good in ["https://events.example.com", "https://[::1]:4334/mesh"] {
        assert!(check(good).is_ok(), "{good}");
    }
    for bad in [
        "http://events.example.com",
        "events.example.com",
        "https://me@events.example.com",
        "https://events.example.com?x=1",
        "",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}
