//! A whole mesh in one test: real HTTP over pipes in memory, simulated time, a log that survives the mesh.
//!
//! Subscribers are named by host. What one answers is a [`Manner`] that the test may change at any time; what it received
//! is kept in order. Restarting opens a new mesh on the same log, as a new process would.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_api::access::Access;
use heddle_api::dataplane::Resources;
use heddle_api::ledger::{Account, ExplainRequest, Explanation, Trace};
use heddle_api::mask::Mask;
use heddle_mesh::ledger::Error;
use heddle_mesh::log::embedded::{self, EmbeddedLog};
use heddle_mesh::log::memory::MemoryLog;
use heddle_mesh::log::{Log, Reserve};
use heddle_mesh::observer::{Accepted, Attempted, Observer, Seen};
use heddle_mesh::path::delivery::ConnectionLimits;
use heddle_mesh::path::delivery::courier::{Courier, CourierOptions};
use heddle_mesh::who::Who;
use heddle_mesh::{HeartbeatSink, Mesh, Options, Quota, Retention, Span};
use heddle_rt::net::dial::{Connect, Connecting, Place, Stream};
use heddle_rt::net::own::OwnListener;
use heddle_rt::vfs::{MemoryVfs, PowerLoss};
use heddle_rt::{Chance, Clock, OnError, Tasks};
use heddle_store::Mode;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// How a subscriber answers.
#[derive(Clone, Debug)]
pub(crate) enum Manner {
    Accept,
    Answer(u16),
    /// Accepts after so long.
    AcceptAfter(Duration),
    /// Fails so many times per event, then accepts.
    FailFirst(usize),
    /// Never answers.
    Hang,
    /// 200 with an event of this type; its id is the received one with `-r` behind it.
    Reply(&'static str),
    /// With this header beside the status.
    AnswerWith(u16, &'static str, &'static str),
    /// Answers this to the events with these ids, and accepts all others.
    AnswerTo(&'static [&'static str], u16),
    /// 200 with these headers and this body.
    Say(&'static [(&'static str, &'static str)], &'static str),
    /// The same to the events with these ids; accepts all others.
    SayTo(
        &'static [&'static str],
        &'static [(&'static str, &'static str)],
        &'static str,
    ),
    /// Never answers the event with this id, and accepts all others.
    HangOn(&'static str),
    /// No new connection can be opened, for want of something that this machine has too little of: a number of the system.
    Exhausted(i32),
}

/// One delivery as the subscriber saw it.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) host: String,
    pub(crate) id: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What a subscriber says when it is asked for its consent: a status and headers.
#[derive(Clone, Debug)]
pub(crate) struct Consent(pub(crate) u16, pub(crate) Vec<(&'static str, &'static str)>);

/// One question for consent as the subscriber saw it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
}

#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    consents: Mutex<HashMap<String, Consent>>,
    asked: Mutex<Vec<Asked>>,
    manners: Mutex<HashMap<String, Manner>>,
    received: Mutex<Vec<Received>>,
    tasks: Mutex<Option<Tasks>>,
    clock: Mutex<Option<Clock>>,
    /// What is behind the host `heartbeats`.
    sink: Mutex<Option<HeartbeatSink>>,
}

impl Subscribers {
    /// What came so far no longer counts.
    pub(crate) fn forget(&self) {
        self.received.lock().clear();
    }

    fn answer_asked(&self, host: &str, parts: http::request::Parts) -> Response<Full<Bytes>> {
        self.asked.lock().push(Asked {
            host: host.to_owned(),
            path: parts.uri.to_string(),
            headers: parts.headers,
        });
        let consent = self.consents.lock().get(host).cloned();
        let Consent(status, headers) = consent.unwrap_or(Consent(200, Vec::new()));
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        response.body(Full::default()).expect("a response")
    }

    async fn answer(&self, host: &str, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let body = body
            .collect()
            .await
            .map(|body| body.to_bytes())
            .unwrap_or_default();
        if parts.method == Method::OPTIONS {
            return self.answer_asked(host, parts);
        }
        let id = parts
            .headers
            .get("ce-id")
            .and_then(|id| id.to_str().ok())
            .map_or_else(|| id_in(&body), str::to_owned);
        self.received.lock().push(Received {
            host: host.to_owned(),
            id: id.clone(),
            headers: parts.headers,
            body,
        });
        let manner = self
            .manners
            .lock()
            .get(host)
            .cloned()
            .unwrap_or(Manner::Accept);
        let status = |status: u16| Response::builder().status(status);
        match manner {
            Manner::Accept | Manner::Exhausted(_) => status(202).body(Full::default()),
            Manner::AcceptAfter(span) => {
                let clock = self.clock.lock().clone().expect("the world is running");
                clock.sleep(span).await;
                status(202).body(Full::default())
            }
            Manner::Answer(code) => status(code).body(Full::from("no")),
            Manner::AnswerWith(code, name, value) => {
                status(code).header(name, value).body(Full::default())
            }
            Manner::FailFirst(times) => {
                let seen = self
                    .received
                    .lock()
                    .iter()
                    .filter(|seen| seen.host == host && seen.id == id)
                    .count();
                status(if seen > times { 200 } else { 500 }).body(Full::default())
            }
            Manner::AnswerTo(ids, code) => {
                status(if ids.contains(&&*id) { code } else { 200 }).body(Full::default())
            }
            Manner::SayTo(ids, ..) if !ids.contains(&&*id) => status(202).body(Full::default()),
            Manner::Say(headers, body) | Manner::SayTo(_, headers, body) => headers
                .iter()
                .fold(status(200), |response, (name, value)| {
                    response.header(*name, *value)
                })
                .body(Full::from(body)),
            Manner::HangOn(hung) if hung != id => status(200).body(Full::default()),
            Manner::Hang | Manner::HangOn(_) => std::future::pending().await,
            Manner::Reply(type_) => status(200)
                .header("ce-specversion", "1.0")
                .header("ce-type", type_)
                .header("ce-source", "/replier")
                .header("ce-id", format!("{id}-r"))
                .body(Full::default()),
        }
        .expect("a response")
    }
}

/// The host at which heartbeats arrive, in a world that has them.
pub(crate) const SINK_HOST: &str = "heartbeats";

/// The network of a test: every host is a subscriber, but `own`, which is this mesh's own listener.
#[derive(Debug)]
struct Wires(Arc<Subscribers>);

impl Connect for Wires {
    fn connect(&self, place: &Place) -> Connecting {
        let (host, subscribers) = (place.host.clone(), Arc::clone(&self.0));
        Box::pin(async move {
            if host == "own" {
                return Err(OwnListener(([127, 0, 0, 1], 4334).into()).into());
            }
            let manner = subscribers.manners.lock().get(&host).cloned();
            if let Some(Manner::Exhausted(number)) = manner {
                return Err(std::io::Error::from_raw_os_error(number));
            }
            let (near, far) = tokio::io::duplex(64 << 10);
            let tasks = subscribers
                .tasks
                .lock()
                .clone()
                .expect("the world is running");
            let service = hyper::service::service_fn(move |request| {
                let (host, subscribers) = (host.clone(), Arc::clone(&subscribers));
                async move {
                    let sink = subscribers.sink.lock().clone();
                    let answer = match sink.filter(|_| host == SINK_HOST) {
                        Some(sink) => sink.handle(request).await,
                        None => subscribers.answer(&host, request).await,
                    };
                    Ok::<_, std::convert::Infallible>(answer)
                }
            });
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(far), service);
            tasks.spawn("subscriber", OnError::Report, async move {
                drop(serving.await);
            });
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

/// What an observer was told, in the order in which it was.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) span: Span,
    pub(crate) parent: Option<u64>,
    pub(crate) state: String,
    pub(crate) id: String,
    pub(crate) offset: u64,
    /// The entry of an event that came, the consumer of an attempt.
    pub(crate) place: String,
    pub(crate) sink: bool,
    /// Of the attempt; 0 for an event that came.
    pub(crate) number: u32,
    pub(crate) status: u16,
    pub(crate) error: Option<String>,
}

/// An observer that remembers everything.
#[derive(Debug, Default)]
pub(crate) struct Watcher(Mutex<Vec<Sight>>);

impl Watcher {
    fn saw(&self, seen: &Seen<'_>, place: &str, attempted: Option<&Attempted<'_>>) {
        self.0.lock().push(Sight {
            span: seen.span,
            parent: seen.parent,
            state: seen.state.to_owned(),
            id: seen.event.id().to_owned(),
            offset: seen.offset,
            place: place.to_owned(),
            sink: attempted.is_some_and(|attempted| attempted.sink),
            number: attempted.map_or(0, |attempted| attempted.number),
            status: attempted.map_or(0, |attempted| attempted.status),
            error: attempted.and_then(|attempted| attempted.error.map(str::to_owned)),
        });
    }
}

impl Observer for Watcher {
    fn accepted(&self, accepted: &Accepted<'_>) {
        self.saw(&accepted.seen, accepted.entry, None);
    }

    fn attempted(&self, attempted: &Attempted<'_>) {
        self.saw(&attempted.seen, attempted.consumer, Some(attempted));
    }
}

/// A mesh with everything around it.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) mesh: Mesh,
    pub(crate) resources: Resources,
    pub(crate) retention: Retention,
    pub(crate) quota: Quota,
    pub(crate) reserve: Reserve,
    watcher: Option<Arc<Watcher>>,
    /// What is hidden in data.
    pub(crate) mask: Arc<Mask>,
    /// Where the log lies, unless it is one in memory, which outlives the mesh by itself.
    pub(crate) disk: Option<MemoryVfs>,
    /// Whether a loss had to be accepted before it began.
    pub(crate) repaired: bool,
    /// Whether there is somewhere for heartbeats to arrive.
    pub(crate) heartbeats: bool,
    tasks: Tasks,
}

impl World {
    fn new(clock: Clock, log: Arc<dyn Log>, disk: Option<MemoryVfs>) -> Self {
        let subscribers = Arc::new(Subscribers::default());
        let (tasks, chance) = (Tasks::new("test"), Chance::seeded(7));
        *subscribers.tasks.lock() = Some(tasks.clone());
        *subscribers.clock.lock() = Some(clock.clone());
        let retention = Retention::default();
        let quota = Quota::default();
        let mesh = open(Around {
            clock: &clock,
            chance: &chance,
            tasks: &tasks,
            log: &log,
            subscribers: &subscribers,
            retention,
            quota,
            watcher: None,
            heartbeats: false,
            mask: &Arc::default(),
        })
        .unwrap();
        Self {
            mask: Arc::default(),
            watcher: None,
            heartbeats: false,
            clock,
            chance,
            log,
            subscribers,
            mesh,
            resources: Resources::default(),
            retention,
            quota,
            reserve: Reserve::default(),
            disk,
            repaired: false,
            tasks,
        }
    }

    fn clock() -> Clock {
        Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap())
    }

    /// In memory.
    pub(crate) async fn in_memory() -> Self {
        Self::in_memory_that_refuses().0
    }

    /// In memory, with a Broker `ns/default`.
    pub(crate) fn with_broker() -> Self {
        Self::in_memory_that_refuses().0.and_broker()
    }

    fn and_broker(mut self) -> Self {
        self.broker("ns", "default");
        self
    }

    /// In memory, with the handle that makes the log refuse.
    pub(crate) fn in_memory_that_refuses() -> (Self, MemoryLog) {
        let clock = Self::clock();
        let log = MemoryLog::new(clock.clone());
        (Self::new(clock, Arc::new(log.clone()), None), log)
    }

    /// In memory, with somebody who watches.
    pub(crate) fn watched() -> Self {
        let (mut world, _) = Self::in_memory_that_refuses();
        world.watcher = Some(Arc::default());
        world.begin();
        world
    }

    /// In memory, with somewhere for heartbeats to arrive.
    pub(crate) async fn with_heartbeats() -> Self {
        let (world, _) = Self::in_memory_that_refuses();
        world.and_heartbeats().await
    }

    /// The same world as another process that has somewhere for heartbeats to arrive.
    pub(crate) async fn and_heartbeats(mut self) -> Self {
        self.heartbeats = true;
        self.restart().await;
        self
    }

    /// What whoever watches was told so far.
    pub(crate) fn seen(&self) -> Vec<Sight> {
        let watcher = self.watcher.as_ref().expect("somebody watches");
        watcher.0.lock().clone()
    }

    /// On a simulated disk, with segments of a few events.
    pub(crate) fn on_disk() -> Self {
        let (clock, disk) = (Self::clock(), MemoryVfs::new());
        let log = open_log(&clock, &disk, Reserve::default());
        Self::new(clock, log, Some(disk))
    }

    /// The same, with a Broker `ns/default`.
    pub(crate) fn on_disk_with_broker() -> Self {
        Self::on_disk().and_broker()
    }

    /// On a simulated disk of this size, of which events leave some free.
    pub(crate) fn on_small_disk(bytes: u64, reserve: Reserve) -> Self {
        let (clock, disk) = (Self::clock(), MemoryVfs::new());
        disk.set_capacity(Some(bytes));
        let log = open_log(&clock, &disk, reserve);
        Self {
            reserve,
            ..Self::new(clock, log, Some(disk))
        }
    }

    /// One world of each kind, for whatever must survive a restart.
    pub(crate) fn each() -> [Self; 2] {
        [Self::in_memory_that_refuses().0, Self::on_disk()]
    }

    /// The same, with a Broker `ns/default`.
    pub(crate) fn each_with_broker() -> [Self; 2] {
        Self::each().map(Self::and_broker)
    }

    /// The process dies without a word and takes the power with it; a new one takes over the log. Lines not yet safe are
    /// lost.
    pub(crate) async fn crash(&mut self) {
        self.tasks.cancel();
        self.tasks.join().await;
        self.disk = self
            .disk
            .as_ref()
            .map(|disk| disk.power_loss(PowerLoss::LoseUnsynced));
        self.begin();
    }

    /// The process dies.
    pub(crate) async fn die(&mut self) {
        self.tasks.cancel();
        self.tasks.join().await;
    }

    /// Another process over what is left of a disk: started as usual, and after a refusal as by somebody who accepts the
    /// loss. Its subscribers accept everything.
    pub(crate) fn over(&self, disk: MemoryVfs, what: &str) -> Self {
        let tasks = Tasks::new("test");
        let subscribers = Arc::new(Subscribers::default());
        *subscribers.tasks.lock() = Some(tasks.clone());
        let mut repaired = false;
        loop {
            let options = log_options(&self.clock, &disk, self.reserve);
            let opened = EmbeddedLog::open(options.clone()).map_err(|error| error.to_string());
            let opened = opened.and_then(|log| {
                let log: Arc<dyn Log> = Arc::new(log);
                let mesh = open(Around {
                    tasks: &tasks,
                    log: &log,
                    subscribers: &subscribers,
                    watcher: None,
                    heartbeats: false,
                    ..self.around()
                })?;
                Ok((log, mesh))
            });
            match opened {
                Ok((log, mesh)) => {
                    return Self {
                        mask: Arc::clone(&self.mask),
                        watcher: None,
                        heartbeats: false,
                        clock: self.clock.clone(),
                        chance: self.chance.clone(),
                        log,
                        subscribers,
                        mesh,
                        resources: self.resources.clone(),
                        retention: self.retention,
                        quota: self.quota,
                        reserve: self.reserve,
                        repaired,
                        disk: Some(disk),
                        tasks,
                    };
                }
                Err(error) => {
                    assert!(!repaired, "{what}: refused after a repair: {error}");
                    assert!(
                        error.contains("heddle repair events"),
                        "{what}: no remedy: {error}"
                    );
                    let found = embedded::repair(&options, false).unwrap();
                    assert!(
                        found.problem.is_some(),
                        "{what}: nothing to repair: {error}"
                    );
                    repaired = true;
                }
            }
        }
    }

    /// The process ends as it should; a new one takes over.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.begin();
    }

    /// The process ends as it should.
    pub(crate) async fn stop(&mut self) {
        self.mesh.close(Duration::from_secs(1)).await;
        self.tasks.cancel();
        self.tasks.join().await;
        self.disk = self.disk.as_ref().map(MemoryVfs::kill);
    }

    pub(crate) fn begin(&mut self) {
        self.reopen_log();
        self.begin_mesh().unwrap();
    }

    /// A new process, as far as its log.
    pub(crate) fn reopen_log(&mut self) {
        self.tasks = Tasks::new("test");
        *self.subscribers.tasks.lock() = Some(self.tasks.clone());
        if let Some(disk) = &self.disk {
            self.log = open_log(&self.clock, disk, self.reserve);
        }
    }

    /// The rest of a process whose log is open; the error is what it says when it refuses to start.
    pub(crate) fn begin_mesh(&mut self) -> Result<(), String> {
        self.mesh = open(self.around())?;
        Ok(())
    }

    fn around(&self) -> Around<'_> {
        Around {
            clock: &self.clock,
            chance: &self.chance,
            tasks: &self.tasks,
            log: &self.log,
            subscribers: &self.subscribers,
            retention: self.retention,
            quota: self.quota,
            watcher: self.watcher.clone(),
            heartbeats: self.heartbeats,
            mask: &self.mask,
        }
    }

    pub(crate) fn manner(&self, host: &str, manner: Manner) {
        self.subscribers
            .manners
            .lock()
            .insert(host.to_owned(), manner);
    }

    pub(crate) fn consent(&self, host: &str, consent: Consent) {
        let mut consents = self.subscribers.consents.lock();
        consents.insert(host.to_owned(), consent);
    }

    /// How a host was asked for its consent, in order.
    pub(crate) fn asked(&self, host: &str) -> Vec<Asked> {
        let asked = self.subscribers.asked.lock();
        asked
            .iter()
            .filter(|one| one.host == host)
            .cloned()
            .collect()
    }

    /// Brings the resources into force.
    pub(crate) async fn route(&self) {
        self.mesh.route(&self.resources).await;
    }

    pub(crate) fn broker(&mut self, namespace: &str, name: &str) {
        let broker = json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
            "metadata": {"namespace": namespace, "name": name, "uid": format!("b-{name}"), "generation": 1}, "spec": {},
        });
        self.resources
            .brokers
            .push(Arc::new(serde_json::from_value(broker).unwrap()));
    }

    /// A trigger on `ns/default` whose subscriber is `http://HOST/`. `extra` is merged into the object.
    pub(crate) fn trigger(&mut self, name: &str, host: &str, extra: Value) {
        let mut trigger = json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
            "metadata": {"namespace": "ns", "name": name, "uid": format!("t-{name}"), "generation": 1},
            "spec": {"broker": "default", "subscriber": {"uri": format!("http://{host}/")}},
            "status": {"subscriberUri": format!("http://{host}/")},
        });
        merge(&mut trigger, extra);
        self.remove_trigger(name);
        self.resources
            .triggers
            .push(Arc::new(serde_json::from_value(trigger).unwrap()));
    }

    /// A trigger `bridge` that leads from `ns/default` to a Broker `ns/other`, where trigger `t` with host `a` is. `extra` is
    /// merged into the first.
    pub(crate) fn bridge(&mut self, extra: Value) {
        self.broker("ns", "default");
        self.broker("ns", "other");
        let other =
            json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "other"});
        let mut bridge = json!({
            "spec": {"subscriber": {"ref": other, "uri": null}}, "status": {"subscriberUri": null},
        });
        merge(&mut bridge, extra);
        self.trigger("bridge", "nobody", bridge);
        self.trigger("t", "a", json!({"spec": {"broker": "other"}}));
    }

    /// A trigger `asks` whose subscriber `a` replies to what was created, and one, `hears`, that wants those replies for `b`.
    pub(crate) fn asks_and_hears(&mut self) {
        let of_type = |type_: &str| json!({"spec": {"filter": {"attributes": {"type": type_}}}});
        self.trigger("asks", "a", of_type("order.created"));
        self.trigger("hears", "b", of_type("order.checked"));
        self.manner("a", Manner::Reply("order.checked"));
    }

    /// Both of them; publishes event `1`, lets the first attempt at its reply fail, crashes, and waits until it is delivered.
    pub(crate) async fn deliver_a_reply_over_a_crash(&mut self) {
        self.asks_and_hears();
        self.manner("b", Manner::Answer(503));
        self.route().await;
        self.publish("1", &[]).await;
        self.until_retrying("hears", 1).await;
        self.mesh.settled().await;
        self.crash().await;
        self.manner("b", Manner::Accept);
        self.route().await;
        self.until_delivered("hears", 1).await;
    }

    pub(crate) fn remove_trigger(&mut self, name: &str) {
        self.resources
            .triggers
            .retain(|trigger| trigger.metadata.name.as_deref() != Some(name));
    }

    /// Publishes to `ns/default`; gives the status.
    pub(crate) async fn publish(&self, id: &str, attributes: &[(&str, &str)]) -> u16 {
        self.publish_both("/broker/ns/default", id, attributes, &[])
            .await
    }

    /// The same with headers that are no attributes.
    pub(crate) async fn publish_with(&self, id: &str, headers: &[(&str, &str)]) -> u16 {
        self.publish_both("/broker/ns/default", id, &[], headers)
            .await
    }

    /// Publishes to a path; gives the status.
    pub(crate) async fn publish_at(
        &self,
        path: &str,
        id: &str,
        attributes: &[(&str, &str)],
    ) -> u16 {
        self.publish_both(path, id, attributes, &[]).await
    }

    async fn publish_both(
        &self,
        path: &str,
        id: &str,
        attributes: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> u16 {
        let type_ = attributes.iter().find(|(name, _)| *name == "type");
        let mut request = request(path, id, type_.map_or("order.created", |(_, type_)| type_));
        let attributes = attributes.iter().filter(|(name, _)| *name != "type");
        for (name, value) in attributes {
            request = request.header(format!("ce-{name}"), *value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(format!("data of {id}"))).unwrap();
        self.mesh
            .source()
            .handle(&Who::Anonymous, request)
            .await
            .status()
            .as_u16()
    }

    /// Publishes an event with so many bytes of data to `ns/default`; gives the status.
    pub(crate) async fn publish_large(&self, id: &str, bytes: usize) -> u16 {
        let request = request("/broker/ns/default", id, "order.created")
            .header("content-type", "text/plain")
            .body(Full::from(vec![b'x'; bytes]))
            .unwrap();
        self.ask(request).await.0
    }

    /// Posts one small event to a path; gives the status, the header `Retry-After` and the body as JSON.
    pub(crate) async fn post(&self, path: &str) -> (u16, Option<String>, Value) {
        let request = request(path, "posted", "order.created")
            .body(Full::<Bytes>::default())
            .unwrap();
        self.ask(request).await
    }

    /// Publishes a batch to `ns/default`.
    pub(crate) async fn post_batch(&self, events: &Value) -> (u16, Option<String>, Value) {
        let request = Request::post("/broker/ns/default")
            .header("content-type", "application/cloudevents-batch+json")
            .body(Full::from(events.to_string()))
            .unwrap();
        self.ask(request).await
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> (u16, Option<String>, Value) {
        let response = self.mesh.source().handle(&Who::Anonymous, request).await;
        let pause = response.headers().get("retry-after");
        let pause = pause.map(|pause| pause.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        (status, pause, body)
    }

    pub(crate) async fn publish_many(&self, ids: impl Iterator<Item = String>) {
        for id in ids {
            assert_eq!(self.publish(&id, &[]).await, 202);
        }
    }

    /// Waits in simulated time until a condition holds.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if condition(self) {
                return;
            }
            self.clock.sleep(Duration::from_millis(7)).await;
        }
        panic!(
            "never happened: {what}; accounts {:#?}",
            self.mesh.accounts(true).consumers
        );
    }

    /// Waits until so many events of a trigger in `ns` are delivered.
    pub(crate) async fn until_delivered(&self, trigger: &str, count: u64) {
        self.until_account("delivered", trigger, |account| account.delivered == count)
            .await;
    }

    /// The same for those that were tried in vain and will be again.
    pub(crate) async fn until_retrying(&self, trigger: &str, count: u64) {
        self.until_account("retrying", trigger, |account| account.retrying == count)
            .await;
    }

    /// The same for those that have not ended.
    pub(crate) async fn until_pending(&self, trigger: &str, count: u64) {
        self.until_account("pending", trigger, |account| account.pending == count)
            .await;
    }

    pub(crate) async fn until_dead_lettered(&self, trigger: &str, count: u64) {
        self.until_account("dead", trigger, |account| account.dead_lettered == count)
            .await;
    }

    async fn until_account(&self, what: &str, trigger: &str, is: impl Fn(&Account) -> bool) {
        self.until(what, |world| is(&world.account(trigger))).await;
    }

    /// What a host received, in order.
    pub(crate) fn received(&self, host: &str) -> Vec<String> {
        let received = self.subscribers.received.lock();
        received
            .iter()
            .filter(|seen| seen.host == host)
            .map(|seen| seen.id.clone())
            .collect()
    }

    /// What a host received, sorted.
    pub(crate) fn received_sorted(&self, host: &str) -> Vec<String> {
        let mut received = self.received(host);
        received.sort_unstable();
        received
    }

    /// Lets simulated time pass, so that what should not happen has had its chance.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn deliveries(&self, host: &str) -> Vec<Received> {
        let received = self.subscribers.received.lock();
        received
            .iter()
            .filter(|seen| seen.host == host)
            .cloned()
            .collect()
    }

    /// The account of a trigger in `ns`, which must balance.
    pub(crate) fn account(&self, trigger: &str) -> Account {
        let key = format!("trigger/ns/{trigger}");
        let accounts = self.mesh.accounts(true);
        let account = accounts
            .consumers
            .into_iter()
            .find(|account| account.consumer == key);
        let account = account.unwrap_or_else(|| panic!("no account of {key}"));
        assert_eq!(account.difference(), 0, "{account:#?}");
        account
    }

    /// Tries a filter for somebody who sees everything.
    pub(crate) async fn explain(&self, request: &ExplainRequest) -> Result<Explanation, Error> {
        let visible = self.mesh.visible_to(&Access::administrator("ada"));
        self.mesh.explain(request, &visible).await
    }

    pub(crate) async fn trace(&self, id: &str) -> Trace {
        self.mesh.settled().await;
        self.mesh.trace(id, "/test").unwrap()
    }
}

/// The head of a request that publishes an event.
fn request(path: &str, id: &str, type_: &str) -> http::request::Builder {
    Request::post(path)
        .header("ce-specversion", "1.0")
        .header("ce-id", id)
        .header("ce-source", "/test")
        .header("ce-type", type_)
}

/// Where log and journal are on a simulated disk.
pub(crate) const EVENTS_DIR: &str = "/mesh";

fn open_log(clock: &Clock, disk: &MemoryVfs, reserve: Reserve) -> Arc<dyn Log> {
    Arc::new(EmbeddedLog::open(log_options(clock, disk, reserve)).unwrap())
}

pub(crate) fn log_options(clock: &Clock, disk: &MemoryVfs, reserve: Reserve) -> embedded::Options {
    embedded::Options {
        vfs: disk.shared(),
        dir: EVENTS_DIR.into(),
        clock: clock.clone(),
        tasks: Tasks::new("log"),
        mode: Mode::Inline,
        segment_bytes: Some(4096),
        reserve,
    }
}

/// What a mesh is opened with.
struct Around<'a> {
    clock: &'a Clock,
    chance: &'a Chance,
    tasks: &'a Tasks,
    log: &'a Arc<dyn Log>,
    subscribers: &'a Arc<Subscribers>,
    retention: Retention,
    quota: Quota,
    watcher: Option<Arc<Watcher>>,
    heartbeats: bool,
    mask: &'a Arc<Mask>,
}

fn open(around: Around<'_>) -> Result<Mesh, String> {
    let Around {
        clock,
        chance,
        tasks,
        log,
        subscribers,
        retention,
        quota,
        watcher,
        heartbeats,
        mask,
    } = around;
    let limits = heddle_mesh::event::http::Limits::default();
    let courier = Courier::new(CourierOptions {
        tasks: tasks.child("connections"),
        clock: clock.clone(),
        connect: Arc::new(Wires(Arc::clone(subscribers))),
        limits: ConnectionLimits::default(),
        replies: limits,
        budget: heddle_rt::Budget::default(),
    });
    let options = Options {
        clock: clock.clone(),
        chance: chance.clone(),
        tasks: tasks.clone(),
        log: Arc::clone(log),
        courier,
        retention,
        quota,
        limits,
        mask: Arc::clone(mask),
        observer: watcher.map(|watcher| watcher as Arc<dyn Observer>),
        heartbeat_sink: heartbeats.then(|| format!("http://{SINK_HOST}")),
    };
    let mesh = Mesh::open(options).map_err(|error| error.to_string())?;
    *subscribers.sink.lock() = heartbeats.then(|| mesh.heartbeat_sink());
    Ok(mesh)
}

/// The id of an event in structured form.
fn id_in(body: &[u8]) -> String {
    let event: Value = serde_json::from_slice(body).unwrap_or_default();
    event["id"].as_str().unwrap_or_default().to_owned()
}

/// Puts `extra` over `value`, object by object.
pub(crate) fn merge(value: &mut Value, extra: Value) {
    match (value, extra) {
        (Value::Object(value), Value::Object(extra)) => {
            for (key, extra) in extra {
                merge(value.entry(key).or_insert(Value::Null), extra);
            }
        }
        (value, extra) => *value = extra,
    }
}
