//! Asking a registry: one question, one answer, in bounded time and memory.
//!
//! A client lives as long as one reading, and its connections with it. It knows how to prove who asks, follows redirects a
//! few times without showing secrets to whoever they lead to, and leaves a registry alone for as long as that asks for.
//! What an answer means is left to others.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use heddle_api::evidence::Credentials;
use heddle_rt::net::dial::Connect;
use heddle_rt::{Backoff, Chance, Clock, Tasks, backoff};
use http::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::address::{Address, Origin};
use super::ask::{Failure, RegistryRequest, RegistryResponse, in_words, request};
use super::auth::{Auth, Challenge, challenge};
use super::pool::{Age, Line, Pool};

/// How often a redirect is followed.
const REDIRECTS_MAX: usize = 3;
/// How often a question is asked when the answer is to ask later.
const ATTEMPTS_MAX: usize = 3;
/// After so many questions in a row without any answer, nothing more is asked.
const SILENCE_MAX: u32 = 4;

/// How long a registry may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the question to the last byte of the answer; with layers, to the next piece of it.
    pub answer: Duration,
    /// For the whole of a layer.
    pub layer: Duration,
    /// The longest wait that a registry may ask for. Beyond it, the reading does without.
    pub wait_max: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            layer: Duration::from_secs(900),
            wait_max: Duration::from_secs(30),
        }
    }
}

/// What clients are made of.
#[derive(Clone, Debug)]
pub struct ClientDeps {
    pub tasks: Tasks,
    pub clock: Clock,
    pub chance: Chance,
    pub connect: Arc<dyn Connect>,
    pub patience: Patience,
}

/// Asks one registry.
#[derive(Debug)]
pub(super) struct Client {
    deps: ClientDeps,
    /// Whom secrets may be shown to.
    home: Origin,
    unverified: bool,
    auth: Auth,
    pools: Mutex<HashMap<Origin, Arc<Pool>>>,
    /// Until when servers asked to be left alone.
    paused: Mutex<HashMap<Origin, Duration>>,
    requests: AtomicU64,
    silence: AtomicU32,
}

/// The head of an answer whose body is to be read.
struct Opened {
    /// Who answered: the server that was asked, or the one that a redirect led to.
    origin: Origin,
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    line: Line,
    pool: Arc<Pool>,
    /// Held until the body is read.
    turn: OwnedSemaphorePermit,
}

impl Client {
    pub(super) fn new(
        deps: &ClientDeps,
        home: &Address,
        credentials: Credentials,
        unverified: bool,
    ) -> Self {
        let mut deps = deps.clone();
        // Its own group, so that its connections end with it.
        deps.tasks = deps.tasks.child("registry");
        Self {
            deps,
            home: home.origin.clone(),
            unverified,
            auth: Auth::new(credentials),
            pools: Mutex::default(),
            paused: Mutex::default(),
            requests: AtomicU64::new(0),
            silence: AtomicU32::new(0),
        }
    }

    /// How many requests were sent.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether the registry does not answer any more, so that asking on only takes time.
    pub(super) fn has_given_up(&self) -> bool {
        self.silence.load(Ordering::Relaxed) >= SILENCE_MAX
    }

    /// Asks, and reads the whole answer.
    pub(super) async fn ask(&self, ask: &RegistryRequest) -> Result<RegistryResponse, Failure> {
        let limits = backoff::Limits {
            min: Duration::from_millis(200),
            max: Duration::from_secs(5),
        };
        let mut backoff = Backoff::new(limits, self.deps.chance.clone());
        let mut attempt = 1;
        loop {
            if self.has_given_up() {
                return Err(Failure::Silent(
                    "the registry does not answer any more".to_owned(),
                ));
            }
            self.wait(&ask.address.origin).await?;
            let answered = self.proven(ask).await;
            match &answered {
                Err(Failure::Silent(_)) => {
                    self.silence.fetch_add(1, Ordering::Relaxed);
                }
                _ => self.silence.store(0, Ordering::Relaxed),
            }
            let answer = answered?;
            if !matches!(answer.status.as_u16(), 429 | 502 | 503 | 504) {
                return Ok(answer);
            }
            match self.asked_wait(&answer.headers) {
                Some(wait) => self.pause(&ask.address.origin, wait),
                None if attempt < ATTEMPTS_MAX => self.deps.clock.sleep(backoff.failed()).await,
                None => {}
            }
            if attempt == ATTEMPTS_MAX {
                return Ok(answer);
            }
            attempt += 1;
        }
    }

    /// What `Retry-After` asks for.
    fn asked_wait(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let date = httpdate::parse_http_date(text).ok()?;
        let now = SystemTime::from(self.deps.clock.now());
        Some(date.duration_since(now).unwrap_or_default())
    }

    fn pause(&self, origin: &Origin, wait: Duration) {
        let until = self.deps.clock.monotonic().saturating_add(wait);
        let mut paused = self.paused.lock();
        let known = paused.entry(origin.clone()).or_default();
        *known = until.max(*known);
    }

    /// Leaves a server alone for as long as it asked for, if that is bearable.
    async fn wait(&self, origin: &Origin) -> Result<(), Failure> {
        loop {
            let until = self.paused.lock().get(origin).copied().unwrap_or_default();
            let wait = until.saturating_sub(self.deps.clock.monotonic());
            if wait.is_zero() {
                return Ok(());
            }
            if wait > self.deps.patience.wait_max {
                let seconds = wait.as_secs();
                return Err(Failure::Garbled(format!(
                    "{} asked to be left alone for {seconds} more seconds",
                    origin.authority()
                )));
            }
            self.deps.clock.sleep(wait).await;
        }
    }

    /// Asks, and proves who asks if that is wanted.
    async fn proven(&self, ask: &RegistryRequest) -> Result<RegistryResponse, Failure> {
        let opened = self.opened(ask).await?;
        self.whole(opened, ask).await
    }

    async fn opened(&self, ask: &RegistryRequest) -> Result<Opened, Failure> {
        let now = self.deps.clock.monotonic();
        let mut header = self.auth.header(&ask.scope, now);
        if header.is_none()
            && let Some((realm, service)) = self.auth.server()
        {
            header = self
                .token(&realm, service.as_deref(), &ask.scope, &ask.scope)
                .await?;
        }
        let opened = self.followed(ask, header.as_ref()).await?;
        // Only the registry itself may ask who we are and name a token server: where a redirect or a link leads, others
        // answer, and a realm of theirs would be shown the password.
        if opened.status != StatusCode::UNAUTHORIZED || opened.origin != self.home {
            return Ok(opened);
        }
        let wants = opened.headers.get_all(WWW_AUTHENTICATE).iter();
        let wants: Vec<Challenge> = wants
            .filter_map(|it| it.to_str().ok())
            .filter_map(challenge)
            .collect();
        self.auth.forget(&ask.scope);
        for wanted in wants {
            let answer = match wanted {
                // Refused once is refused.
                Challenge::Basic if header.is_none() => self.auth.use_basic(),
                Challenge::Basic => None,
                Challenge::Bearer { .. } if self.auth.is_given() => None,
                Challenge::Bearer {
                    realm,
                    service,
                    scope,
                } => {
                    let realm = self.realm(&ask.address, &realm)?;
                    let wanted = scope.as_deref().unwrap_or(&ask.scope).to_owned();
                    self.auth.remember_server(realm.clone(), service.clone());
                    self.token(&realm, service.as_deref(), &wanted, &ask.scope)
                        .await?
                }
            };
            if let Some(header) = answer {
                return self.followed(ask, Some(&header)).await;
            }
        }
        Ok(opened)
    }

    /// The token server that the registry names, if secrets may be sent there: over TLS, or to this machine, or to the
    /// registry itself, which was configured to be asked as it is.
    fn realm(&self, asked: &Address, realm: &str) -> Result<Address, Failure> {
        let address = asked
            .follow(realm)
            .map_err(|why| Failure::Garbled(format!("the token server {why}")))?;
        let origin = &address.origin;
        let private = origin.tls || origin.is_loopback() || *origin == self.home;
        let weaker = self.home.tls && !origin.tls;
        if weaker || !(private || self.auth.basic().is_none()) {
            let text = format!("the registry sends to a token server without TLS: {address}");
            return Err(Failure::Garbled(text));
        }
        Ok(address)
    }

    /// Asks the token server. `None` when it refuses; then the registry's own refusal stands.
    async fn token(
        &self,
        realm: &Address,
        service: Option<&str>,
        wanted: &str,
        scope: &str,
    ) -> Result<Option<HeaderValue>, Failure> {
        let mut address = realm.clone();
        if let Some(service) = service {
            address = address.with("service", service);
        }
        if !wanted.is_empty() {
            address = address.with("scope", wanted);
        }
        let ask = RegistryRequest::get(address, "");
        self.wait(&ask.address.origin).await?;
        let opened = self
            .once(&ask, &ask.address, self.auth.basic().as_ref())
            .await?;
        let answer = self.whole(opened, &ask).await?;
        match answer.status.as_u16() {
            200 => {
                let now = self.deps.clock.monotonic();
                let header = self.auth.grant(scope, &answer.body, now);
                header.map(Some).map_err(Failure::Garbled)
            }
            401 | 403 => Ok(None),
            429 | 503 => {
                let wait = self
                    .asked_wait(&answer.headers)
                    .unwrap_or(Duration::from_secs(1));
                self.pause(&ask.address.origin, wait);
                Err(Failure::Garbled(
                    "the token server asked to be left alone".to_owned(),
                ))
            }
            status => Err(Failure::Garbled(format!(
                "the token server answered {status}"
            ))),
        }
    }

    /// Asks, and asks again where the answer says it is.
    async fn followed(
        &self,
        ask: &RegistryRequest,
        secret: Option<&HeaderValue>,
    ) -> Result<Opened, Failure> {
        let mut address = ask.address.clone();
        let mut secret = secret;
        for _ in 0..=REDIRECTS_MAX {
            // Whoever a redirect leads to has no business with what opens the registry, nor with where it is shown next.
            secret = secret.filter(|_| address.origin == self.home);
            let opened = self.once(ask, &address, secret).await?;
            let moved = matches!(opened.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            if !moved || !matches!(ask.method, Method::GET | Method::HEAD) {
                return Ok(opened);
            }
            let link = opened
                .headers
                .get(LOCATION)
                .and_then(|link| link.to_str().ok());
            let next = address
                .follow(link.unwrap_or_default())
                .map_err(Failure::Garbled)?;
            if address.origin.tls && !next.origin.tls {
                return Err(Failure::Garbled(
                    "a redirect leads from HTTPS to HTTP".to_owned(),
                ));
            }
            address = next;
        }
        Err(Failure::Garbled(format!(
            "redirected more than {REDIRECTS_MAX} times"
        )))
    }

    /// One request, up to the head of its answer.
    async fn once(
        &self,
        ask: &RegistryRequest,
        address: &Address,
        secret: Option<&HeaderValue>,
    ) -> Result<Opened, Failure> {
        let pool = self.pool(&address.origin);
        let turn = pool.turn().await;
        let late = |what: &str, after: Duration| {
            Failure::Silent(format!(
                "{what} of {} within {after:?}",
                address.origin.authority()
            ))
        };
        let Patience {
            connect: patience,
            answer,
            ..
        } = self.deps.patience;
        let mut rested = pool.rested().await;
        loop {
            let mut line = match rested.take() {
                Some(line) => line,
                None => {
                    let connecting = pool.fresh(&*self.deps.connect);
                    let connected = self.deps.clock.timeout(patience, connecting).await;
                    connected
                        .map_err(|_| late("no connection", patience))?
                        .map_err(|error| Failure::Silent(in_words(&error)))?
                }
            };
            let request = request(ask, address, secret, &line);
            self.requests.fetch_add(1, Ordering::Relaxed);
            let age = line.age();
            match self.deps.clock.timeout(answer, line.send(request)).await {
                Err(_) => return Err(late("no answer", answer)),
                Ok(Err(_)) if age == Age::Used => {}
                Ok(Err(error)) => return Err(Failure::Silent(in_words(&error))),
                Ok(Ok(response)) => {
                    let (head, body) = response.into_parts();
                    return Ok(Opened {
                        origin: address.origin.clone(),
                        status: head.status,
                        headers: head.headers,
                        body,
                        line,
                        pool,
                        turn,
                    });
                }
            }
        }
    }

    fn pool(&self, origin: &Origin) -> Arc<Pool> {
        let mut pools = self.pools.lock();
        let pool = pools.entry(origin.clone()).or_insert_with(|| {
            // Only the registry itself was said to be believed.
            let unverified = self.unverified && *origin == self.home;
            Arc::new(Pool::new(self.deps.tasks.clone(), origin.place(unverified)))
        });
        pool.clone()
    }

    /// Reads the rest of an answer.
    async fn whole(
        &self,
        opened: Opened,
        ask: &RegistryRequest,
    ) -> Result<RegistryResponse, Failure> {
        let limit = self.deps.patience.answer;
        let Opened {
            status,
            headers,
            mut body,
            line,
            pool,
            turn,
            origin: _,
        } = opened;
        let reading = async {
            let mut bytes = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| {
                    Failure::Garbled(format!("the answer broke off: {}", in_words(&error)))
                })?;
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                if (bytes.len() + data.len()) as u64 > ask.bytes_max {
                    return Err(Failure::Garbled(format!(
                        "the answer has more than {} bytes",
                        ask.bytes_max
                    )));
                }
                bytes.extend_from_slice(&data);
            }
            Ok(bytes.freeze())
        };
        let read = self.deps.clock.timeout(limit, reading).await;
        let read =
            read.map_err(|_| Failure::Silent(format!("the answer did not end within {limit:?}")))?;
        let body = read?;
        pool.rest(line);
        drop(turn);
        Ok(RegistryResponse {
            status,
            headers,
            body,
        })
    }

    /// Asks for something large and hands it on piece by piece. An answer other than 200 comes back as it is. Stops when
    /// nobody takes the pieces any more.
    pub(super) async fn stream(
        &self,
        ask: &RegistryRequest,
        into: mpsc::Sender<Bytes>,
    ) -> Result<StatusCode, Failure> {
        self.wait(&ask.address.origin).await?;
        let Patience { answer, layer, .. } = self.deps.patience;
        let whole = async {
            let mut opened = self.opened(ask).await?;
            if opened.status != StatusCode::OK {
                return Ok(opened.status);
            }
            loop {
                let next = self.deps.clock.timeout(answer, opened.body.frame()).await;
                let next =
                    next.map_err(|_| Failure::Silent(format!("nothing came for {answer:?}")))?;
                let Some(frame) = next else { break };
                let frame = frame.map_err(|error| {
                    Failure::Garbled(format!("the answer broke off: {}", in_words(&error)))
                })?;
                if let Ok(data) = frame.into_data()
                    && into.send(data).await.is_err()
                {
                    return Ok(opened.status);
                }
            }
            opened.pool.rest(opened.line);
            Ok(opened.status)
        };
        let ended = self.deps.clock.timeout(layer, whole).await;
        ended.map_err(|_| Failure::Silent(format!("not all of it came within {layer:?}")))?
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.deps.tasks.cancel();
    }
}
