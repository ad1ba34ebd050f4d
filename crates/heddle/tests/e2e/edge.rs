//! The probe from outside, at a server behind somebody who ends TLS for it: what stops publishers elsewhere is found by this
//! probe and by nothing else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use heddle_api::health::{HealthPlane, HealthStatus, MeshHealth};
use heddle_rt::net::client::ask_once;
use heddle_rt::net::dial::Place;
use heddle_rt::net::rustls::server::{ClientHello, ResolvesServerCert};
use heddle_rt::net::rustls::sign::CertifiedKey;
use heddle_rt::net::{self, Door};
use heddle_rt::{Budget, Clock, OnError, Tasks};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use parking_lot::Mutex;

use crate::harness::{Server, eventually, write};
use crate::signer::{self, Signer};

/// Ends TLS with a certificate that can be changed, and hands on what it is sent.
#[derive(Clone, Debug)]
struct TlsProxy {
    port: u16,
    tasks: Tasks,
    certificate: Arc<Mutex<Arc<CertifiedKey>>>,
    behind: Arc<Mutex<Option<SocketAddr>>>,
}

impl ResolvesServerCert for TlsProxy {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.certificate.lock()))
    }
}

impl TlsProxy {
    async fn start(certificate: CertifiedKey) -> Self {
        let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let proxy = Self {
            port: listener.address().port(),
            tasks: Tasks::new("proxy"),
            certificate: Arc::new(Mutex::new(Arc::new(certificate))),
            behind: Arc::default(),
        };
        let door = Door {
            clock: Clock::system(),
            tls: Some(signer::resolving(Arc::new(proxy.clone()))),
            plain_on_loopback: false,
            limits: net::Limits::default(),
            budget: Budget::default(),
        };
        let handing_on = proxy.clone();
        let service = tower::service_fn(move |request| {
            let proxy = handing_on.clone();
            async move { Ok::<_, Infallible>(proxy.hand_on(request).await) }
        });
        proxy
            .tasks
            .spawn_finishing("listener", OnError::Report, |closing| {
                net::serve(listener, door, service, closing)
            });
        proxy
    }

    fn shows(&self, certificate: CertifiedKey) {
        *self.certificate.lock() = Arc::new(certificate);
    }

    async fn hand_on(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let behind = self.behind.lock().expect("there is a server");
        let (mut head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let path = head.uri.path_and_query().unwrap();
        head.uri = Uri::try_from(format!("http://{behind}{path}")).unwrap();
        let place = Place {
            host: behind.ip().to_string(),
            port: behind.port(),
            tls: None,
        };
        let stream = Box::new(net::connect(behind).await.unwrap());
        let request = Request::from_parts(head, Full::new(body));
        let answer = ask_once(&self.tasks, &place, stream, request).await;
        let (head, body) = answer.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Response::from_parts(head, Full::new(body))
    }
}

async fn until(server: &Server, reason: &str) -> MeshHealth {
    eventually(reason, async || {
        let mesh: MeshHealth = server.question("health").await;
        (mesh.verdict.reason == reason).then_some(mesh)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_is_found_at_the_edge_and_nowhere_else() {
    let (ours, theirs) = (Signer::new("ours"), Signer::new("theirs"));
    let proxy = TlsProxy::start(ours.issue("localhost", 2021)).await;
    let folder = tempfile::tempdir().unwrap();
    let authorities = folder.path().join("authorities.pem");
    write(&authorities, &ours.pem);
    let url = format!("https://localhost:{}", proxy.port);
    let mut server = Server::keeping(folder.path().join("data"));
    server
        .launch_with(|command| {
            command
                .args(["--no-heartbeats=false", "--edge-probe", &url])
                .env("SSL_CERT_FILE", &authorities);
        })
        .await;
    let events: Uri = server.events.parse().unwrap();
    let events = events.authority().unwrap().as_str().parse().unwrap();
    *proxy.behind.lock() = Some(events);

    let expired = until(&server, "EdgeCertificateExpired").await;
    let verdict = &expired.verdict;
    assert_eq!(verdict.health, HealthStatus::Unhealthy);
    assert_eq!(verdict.plane, Some(HealthPlane::Data));
    assert_eq!(verdict.hop.as_deref(), Some("edge"));
    let certificate = format!("certificate/localhost:{}", proxy.port);
    assert_eq!(verdict.object.as_deref(), Some(certificate.as_str()));
    assert!(!verdict.remedy.is_empty());
    let told = server.heddle(&["health"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.out.contains("EdgeCertificateExpired"), "{told:?}");
    // Whoever comes another way is served: the canary arrives, and the listener's own certificate is good.
    eventually("the canary", async || {
        let mesh: MeshHealth = server.question("health").await;
        mesh.heartbeat?.age_seconds
    })
    .await;
    assert_eq!(
        until(&server, "EdgeCertificateExpired").await.verdict.since,
        verdict.since
    );

    proxy.shows(theirs.issue("localhost", 2099));
    until(&server, "EdgeCertificateUntrusted").await;
    proxy.shows(ours.issue("localhost", 2099));
    let well = until(&server, "Healthy").await;
    assert_eq!(well.verdict.health, HealthStatus::Healthy);
    proxy.tasks.cancel();
    proxy.tasks.join().await;
}
