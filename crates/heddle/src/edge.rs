//! The probe from outside: publishes at the address by which publishers elsewhere reach the events listener.
//!
//! ```text
//!   this process ──name, TLS, certificate, whatever stands in between──> events listener ──202──> proven
//! ```
//! Heartbeats begin behind the listener, so a certificate that has expired, a name that leads elsewhere or a proxy that has
//! no way here stops every publisher and no heartbeat. This probe comes as a publisher does: by name, over TLS, with
//! everything verified on each connection, and with a credential of its own, which is drawn by each process and lets nobody
//! do anything but publish this heartbeat. It says where nobody can come in; what follows is for health to say.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use heddle_api::dataplane::{EdgeFailure, EdgeReading};
use heddle_api::ledger::ErrorBody;
use heddle_apiserver::{Identity as User, Tokens};
use heddle_mesh::heartbeat;
use heddle_rt::net::client::ask_once;
use heddle_rt::net::dial::{Connect as _, Network, Place};
use heddle_rt::net::rustls::{self, CertificateError};
use heddle_rt::net::trust::Roots;
use heddle_rt::{Clock, Tasks};
use http::uri::{Parts, PathAndQuery};
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use parking_lot::Mutex;

use crate::base_url;
use crate::failure::Failure;
use crate::plane::EdgeReader;
use crate::wire::World;

/// How often, while it succeeds.
const INTERVAL: Duration = Duration::from_secs(30);
/// How soon after a failure: it takes three to be believed.
const AGAIN: Duration = Duration::from_secs(5);
/// How long one may take, from the name to the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long an event counts that nobody hears.
const LIFETIME: Duration = Duration::from_secs(60);
/// 256 bits: nobody guesses that.
const TOKEN_BYTES: usize = 32;
/// What tells the events of this process from all others.
const RUN_CHARS: usize = 10;
/// What is read of a refusal.
const ANSWER_BYTES_MAX: usize = 4 << 10;
/// What of a refusal is repeated to people.
const SHOWN_CHARS_MAX: usize = 200;

/// Whether `url` can be tried.
pub(crate) fn check(url: &str) -> Result<(), Failure> {
    address(url).map(drop)
}

fn address(url: &str) -> Result<Uri, Failure> {
    let what = "address at which publishers reach the events listener";
    base_url::parse(url, what, &["https"], "https://events.example.com:4334")
}

/// Publishes from outside. Clones are the same probe.
#[derive(Clone, Debug)]
pub(crate) struct EdgeProbe {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    network: Network,
    place: Place,
    base: Uri,
    token: String,
    run: String,
    attempts: Mutex<EdgeAttempts>,
}

/// What came of it so far.
#[derive(Debug, Default)]
struct EdgeAttempts {
    count: u64,
    succeeded: Option<Duration>,
    failed: Option<(EdgeFailure, String)>,
    misses: u32,
}

impl EdgeProbe {
    /// A probe of `url`. What `ca_pem` vouches for is believed, besides what the system's authorities do.
    pub(crate) fn new(url: &str, ca_pem: &str, world: &World) -> anyhow::Result<Self> {
        let base = address(url)?;
        let roots = Roots::parse(ca_pem).context("cannot use our own authority")?;
        let host = base.host().unwrap_or_default();
        let place = Place {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: base.port_u16().unwrap_or(443),
            tls: Some(roots),
        };
        let inner = Inner {
            clock: world.clock.clone(),
            network: Network::verifying_always(world.clock.clone()),
            place,
            base,
            token: world.chance.token(TOKEN_BYTES),
            run: world.chance.suffix(RUN_CHARS),
            attempts: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the listener knows it by.
    pub(crate) fn tokens(&self) -> Tokens {
        Tokens::default().with(&self.inner.token, User::new("heddle-edge-probe", &[]))
    }

    /// Publishes now and then, until the future is dropped.
    pub(crate) async fn run(self, tasks: Tasks) {
        loop {
            let well = self.try_once(&tasks).await;
            let pause = if well { INTERVAL } else { AGAIN };
            self.inner.clock.sleep(pause).await;
        }
    }

    /// Publishes one event; gives whether it was accepted.
    async fn try_once(&self, tasks: &Tasks) -> bool {
        let clock = &self.inner.clock;
        let outcome = match clock.timeout(TIMEOUT, self.inner.publish(tasks)).await {
            Ok(outcome) => outcome,
            Err(late) => Err((
                EdgeFailure::TimedOut,
                format!("no answer within {:?}", late.0),
            )),
        };
        let mut attempts = self.inner.attempts.lock();
        match outcome {
            Ok(()) => {
                attempts.succeeded = Some(clock.monotonic());
                (attempts.failed, attempts.misses) = (None, 0);
                true
            }
            Err(failed) => {
                attempts.failed = Some(failed);
                attempts.misses = attempts.misses.saturating_add(1);
                false
            }
        }
    }
}

impl EdgeReader for EdgeProbe {
    fn reading(&self) -> EdgeReading {
        let now = self.inner.clock.monotonic();
        let attempts = self.inner.attempts.lock();
        EdgeReading {
            listener: format!("{}:{}", self.inner.place.host, self.inner.place.port),
            interval: INTERVAL,
            succeeded: attempts.succeeded.map(|at| now.saturating_sub(at)),
            failed: attempts.failed.clone(),
            misses: attempts.misses,
        }
    }
}

impl Inner {
    async fn publish(&self, tasks: &Tasks) -> Result<(), (EdgeFailure, String)> {
        let connected = self.network.connect(&self.place).await;
        let stream = connected.map_err(|error| (of_connecting(&error), error.to_string()))?;
        let broken = |error: hyper::Error| (EdgeFailure::Unreachable, in_words(&error));
        let answer = ask_once(tasks, &self.place, stream, self.request()).await;
        let (head, body) = answer.map_err(broken)?.into_parts();
        if head.status.is_success() {
            return Ok(());
        }
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        // What was said in the head holds, whatever became of the body.
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        Err((EdgeFailure::Refused, refusal(head.status, &body)))
    }

    fn request(&self) -> Request<Full<Bytes>> {
        let count = {
            let mut attempts = self.attempts.lock();
            attempts.count += 1;
            attempts.count
        };
        let id = format!("{}-{count}", self.run);
        let mut request = heartbeat::edge_request(&id, self.clock.now(), LIFETIME);
        *request.uri_mut() = below(&self.base, request.uri());
        let token = HeaderValue::try_from(format!("Bearer {}", self.token));
        let token = token.expect("a token is fit for a header");
        request.headers_mut().insert(header::AUTHORIZATION, token);
        request
    }
}

/// The same path, behind an address that may have one too.
fn below(base: &Uri, path: &Uri) -> Uri {
    let whole = format!("{}{}", base.path().trim_end_matches('/'), path.path());
    let mut parts = Parts::default();
    parts.scheme = base.scheme().cloned();
    parts.authority = base.authority().cloned();
    let whole = PathAndQuery::try_from(whole);
    parts.path_and_query = Some(whole.expect("two paths are a path"));
    Uri::from_parts(parts).expect("an address was checked when it was read")
}

/// Why there is no connection.
fn of_connecting(error: &io::Error) -> EdgeFailure {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    match cause {
        Some(rustls::Error::InvalidCertificate(reason)) => match reason {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => EdgeFailure::CertificateExpired,
            _ => EdgeFailure::CertificateUntrusted,
        },
        _ if error.kind() == io::ErrorKind::TimedOut => EdgeFailure::TimedOut,
        _ => EdgeFailure::Unreachable,
    }
}

/// What a refusal says, for people. Somebody else than heddle may have answered.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let body: ErrorBody = serde_json::from_slice(body).unwrap_or_default();
    let said: String = body.message.chars().take(SHOWN_CHARS_MAX).collect();
    if said.is_empty() {
        return format!("it was answered {status}");
    }
    format!("it was answered {status}: {said}")
}

fn in_words(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
