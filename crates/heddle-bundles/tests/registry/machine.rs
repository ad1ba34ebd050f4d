//! A registry, a proxy in front of it that makes trouble, and a reader.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use heddle_api::bundle_source::ReadRequest;
use heddle_api::evidence::{Credentials, ImageEvidence, ImageName, Known, Reading};
use heddle_api::registry::RegistrySpec;
use heddle_bundles::images::{self, Store};
use heddle_bundles::registries::{Options, Patience, Registries, push::PushStore};
use heddle_rt::net::dial::Network;
use heddle_rt::net::egress::Egress;
use heddle_rt::net::{self, Door, rustls};
use heddle_rt::{Chance, Clock, DiskVfs, OnError, Tasks};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::made::Made;

/// One real registry.
pub(crate) struct Registry {
    child: Option<Child>,
    _dir: TempDir,
    pub(crate) port: u16,
    config: PathBuf,
}

fn binary() -> PathBuf {
    let path = std::env::var_os("DOCKER_REGISTRY");
    let path =
        PathBuf::from(path.expect("DOCKER_REGISTRY must be the path of Debian's docker-registry"));
    assert!(
        path.is_file(),
        "DOCKER_REGISTRY: there is no {}",
        path.display()
    );
    path
}

impl Registry {
    pub(crate) async fn start() -> Self {
        Self::with(|_| json!({})).await
    }

    /// With more settings, made for its directory.
    pub(crate) async fn with(more: impl FnOnce(&Path) -> Value) -> Self {
        let dir = TempDir::new().unwrap();
        // Free now; whoever takes it in between makes the start fail loudly.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut config = json!({"version": 0.1, "log": {"level": "error", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": dir.path().join("storage")}, "delete": {"enabled": true}},
            "http": {"addr": format!("127.0.0.1:{port}")}});
        for (key, value) in more(dir.path()).as_object().unwrap() {
            match (config[key].as_object_mut(), value.as_object()) {
                (Some(there), Some(value)) => there.extend(value.clone()),
                _ => config[key] = value.clone(),
            }
        }
        let path = dir.path().join("config.yml");
        std::fs::write(&path, config.to_string()).unwrap();
        let mut registry = Self {
            child: None,
            _dir: dir,
            port,
            config: path,
        };
        registry.run().await;
        registry
    }

    /// Starts it, and waits until somebody listens.
    pub(crate) async fn run(&mut self) {
        let mut command = Command::new(binary());
        command
            .arg("serve")
            .arg(&self.config)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        let clock = Clock::system();
        let address = ([127, 0, 0, 1], self.port).into();
        while net::connect(address).await.is_err() {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "docker-registry ended: {ended:?}");
            clock.sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// `STOP` and `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(
            Command::new("kill")
                .arg(format!("-{name}"))
                .arg(pid)
                .status()
                .unwrap()
                .success()
        );
    }

    /// Removes what no tag leads to.
    pub(crate) async fn collect_garbage(&mut self) {
        self.stop();
        let mut command = Command::new(binary());
        command
            .args(["garbage-collect", "-m"])
            .arg(&self.config)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(command.status().unwrap().success());
        self.run().await;
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn put(&self, repository: &str, tag: &str, made: &Made) {
        self.put_as(repository, tag, made, None).await;
    }

    /// Pushes, whatever the image is worth.
    pub(crate) async fn put_as(
        &self,
        repository: &str,
        tag: &str,
        made: &Made,
        authorization: Option<&str>,
    ) {
        for child in &made.children {
            Box::pin(self.put_as(repository, &child.digest(), child, authorization)).await;
        }
        let call = |method, path: String, kind, body: Bytes| {
            call(self.port, method, path, kind, authorization, body)
        };
        for blob in &made.blobs {
            let digest = images::Digest::of(blob);
            let started = call(
                Method::POST,
                format!("/v2/{repository}/blobs/uploads/"),
                None,
                Bytes::new(),
            )
            .await;
            assert_eq!(started.0, StatusCode::ACCEPTED);
            let location = started.1["location"].to_str().unwrap();
            let path = location
                .split_once("://")
                .map_or(location, |(_, rest)| &rest[rest.find('/').unwrap()..]);
            let put = call(
                Method::PUT,
                format!("{path}&digest={digest}"),
                None,
                blob.clone(),
            )
            .await;
            assert_eq!(put.0, StatusCode::CREATED);
        }
        let path = format!("/v2/{repository}/manifests/{tag}");
        let put = call(
            Method::PUT,
            path,
            Some(made.media_type),
            made.manifest.clone(),
        )
        .await;
        assert_eq!(put.0, StatusCode::CREATED, "{:?}", put.2);
    }

    /// Deletes a manifest, and with it every tag of it.
    pub(crate) async fn delete(&self, repository: &str, digest: &str) {
        let path = format!("/v2/{repository}/manifests/{digest}");
        let deleted = call(self.port, Method::DELETE, path, None, None, Bytes::new()).await;
        assert_eq!(deleted.0, StatusCode::ACCEPTED);
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One request on a connection of its own.
pub(crate) async fn call(
    port: u16,
    method: Method,
    path: String,
    content_type: Option<&str>,
    authorization: Option<&str>,
    body: Bytes,
) -> (StatusCode, HeaderMap, Bytes) {
    let mut headers = HeaderMap::new();
    let mut add = |name, value: Option<&str>| {
        value.map(|value| headers.insert(name, HeaderValue::from_str(value).unwrap()));
    };
    add(http::header::CONTENT_TYPE, content_type);
    add(http::header::AUTHORIZATION, authorization);
    forward(port, method, &path, headers, body).await.unwrap()
}

async fn forward(
    port: u16,
    method: Method,
    path: &str,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, HeaderMap, Bytes), std::io::Error> {
    let stream = net::connect(([127, 0, 0, 1], port).into()).await?;
    let connecting = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connecting.map_err(std::io::Error::other)?;
    headers.insert(
        "host",
        HeaderValue::from_str(&format!("127.0.0.1:{port}")).unwrap(),
    );
    let mut request = http::Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    *request.headers_mut() = headers;
    let answered = async move {
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok::<_, hyper::Error>((head.status, head.headers, body.collect().await?.to_bytes()))
    };
    let (answered, _) = futures::join!(answered, connection);
    answered.map_err(std::io::Error::other)
}

/// What the proxy does to a request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Answers by itself.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Never answers.
    Hang,
    /// Hangs up without an answer.
    HangUp,
    /// Sends half of the body and hangs up.
    Truncate,
    /// Sends another body with the same headers.
    Swap(String),
    /// Passes on, without the headers that ask for certain kinds.
    WithoutAccept,
}

/// When.
#[derive(Clone, Debug)]
struct Rule {
    method: Option<Method>,
    path: String,
    fault: Fault,
    times: usize,
}

/// A proxy in front of a registry.
#[derive(Clone)]
pub(crate) struct Proxy {
    state: Arc<Mutex<State>>,
    pub(crate) port: u16,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    seen: Vec<Seen>,
}

/// One request that came by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    /// What it should have changed against.
    pub(crate) conditions: Vec<String>,
    /// Since the clock of the proxy started.
    pub(crate) at: Duration,
}

type Answered = http::Response<BoxBody<Bytes, std::io::Error>>;

impl Proxy {
    /// In front of a port; `None` stands alone.
    pub(crate) async fn start(tasks: &Tasks, to: Option<u16>) -> Self {
        let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let proxy = Self {
            state: Arc::default(),
            port: listener.address().port(),
        };
        let (accepting, group, clock) = (proxy.clone(), tasks.clone(), Clock::system());
        tasks.spawn("proxy", OnError::Report, async move {
            while let Ok(stream) = listener.accept().await {
                let (proxy, clock) = (accepting.clone(), clock.clone());
                let answer = hyper::service::service_fn(move |request| {
                    let (proxy, at) = (proxy.clone(), clock.monotonic());
                    async move { proxy.answer(to, request, at).await }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer);
                group.spawn(
                    "proxied",
                    OnError::Report,
                    async move { drop(connection.await) },
                );
            }
        });
        proxy
    }

    /// The same for those who speak TLS.
    pub(crate) async fn secured(
        tasks: &Tasks,
        to: Option<u16>,
        tls: Arc<rustls::ServerConfig>,
    ) -> Self {
        let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let proxy = Self {
            state: Arc::default(),
            port: listener.address().port(),
        };
        let door = Door::secured(Clock::system(), tls);
        let answering = proxy.clone();
        let service = tower::service_fn(move |request| {
            let answer = answering.clone().answer(to, request, Duration::ZERO);
            async move { Ok::<_, Infallible>(answer.await.unwrap()) }
        });
        tasks.spawn("secured proxy", OnError::Report, async move {
            net::serve(listener, door, service, CancellationToken::new()).await
        });
        proxy
    }

    /// The next `times` requests whose path holds `path` get this.
    pub(crate) fn fault(&self, method: Option<Method>, path: &str, times: usize, fault: Fault) {
        let rule = Rule {
            method,
            path: path.to_owned(),
            fault,
            times,
        };
        self.state.lock().rules.push(rule);
    }

    pub(crate) fn status(&self, path: &str, status: u16) {
        self.fault(
            None,
            path,
            usize::MAX,
            Fault::Answer(status, Vec::new(), "no".to_owned()),
        );
    }

    /// Makes no trouble any more, and forgets what came by.
    pub(crate) fn calm(&self) {
        *self.state.lock() = State::default();
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.lock().seen.clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn next_fault(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut state = self.state.lock();
        let fits = |rule: &&mut Rule| {
            rule.times > 0
                && path.contains(&rule.path)
                && rule.method.as_ref().is_none_or(|it| it == method)
        };
        let rule = state.rules.iter_mut().find(fits)?;
        rule.times -= 1;
        Some(rule.fault.clone())
    }

    async fn answer(
        self,
        to: Option<u16>,
        request: http::Request<Incoming>,
        at: Duration,
    ) -> Result<Answered, std::io::Error> {
        let (mut head, body) = request.into_parts();
        let path = head
            .uri
            .path_and_query()
            .map_or("/", |it| it.as_str())
            .to_owned();
        let header = |name: &str| {
            let value = head.headers.get(name);
            value.map(|it| it.to_str().unwrap().to_owned())
        };
        let authorization = header("authorization");
        let conditions = ["if-none-match", "if-modified-since"];
        let conditions = conditions.into_iter().filter_map(header).collect();
        self.state.lock().seen.push(Seen {
            method: head.method.clone(),
            path: path.clone(),
            authorization,
            conditions,
            at,
        });
        let fault = self.next_fault(&head.method, &path);
        match &fault {
            Some(Fault::Answer(status, headers, body)) => {
                let mut answer = whole(Bytes::from(body.clone()));
                *answer.status_mut() = StatusCode::from_u16(*status).unwrap();
                for (name, value) in headers {
                    answer
                        .headers_mut()
                        .insert(*name, HeaderValue::from_str(value).unwrap());
                }
                return Ok(answer);
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::HangUp) => return Err(std::io::Error::other("hung up")),
            Some(Fault::WithoutAccept) => {
                head.headers.remove("accept");
            }
            Some(Fault::Truncate | Fault::Swap(_)) | None => {}
        }
        let Some(to) = to else {
            let mut answer = whole(Bytes::new());
            *answer.status_mut() = StatusCode::NOT_FOUND;
            return Ok(answer);
        };
        let body = body
            .collect()
            .await
            .map_err(std::io::Error::other)?
            .to_bytes();
        let is_head = head.method == Method::HEAD;
        let (status, mut headers, mut body) =
            forward(to, head.method, &path, head.headers, body).await?;
        if let Some(Fault::Swap(other)) = &fault {
            body = Bytes::from(other.clone());
            headers.insert("content-length", HeaderValue::from(body.len()));
        }
        let mut answer = if matches!(fault, Some(Fault::Truncate)) {
            half(&body)
        } else {
            whole(body)
        };
        *answer.status_mut() = status;
        headers.remove("connection");
        if is_head {
            headers.remove("content-length");
        }
        *answer.headers_mut() = headers;
        Ok(answer)
    }
}

fn whole(body: Bytes) -> Answered {
    http::Response::new(Full::new(body).map_err(|never| match never {}).boxed())
}

fn half(body: &Bytes) -> Answered {
    let half = body.slice(..body.len() / 2);
    let frames = [Ok(Frame::data(half)), Err(std::io::Error::other("cut"))];
    http::Response::new(StreamBody::new(stream::iter(frames)).boxed())
}

/// Somebody who reads registries.
pub(crate) struct Reader {
    pub(crate) registries: Registries,
    pub(crate) store: Store,
    pub(crate) tasks: Tasks,
    _dir: TempDir,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self::patient(Patience::default(), 100)
    }

    pub(crate) fn patient(patience: Patience, page: usize) -> Self {
        let dir = TempDir::new().unwrap();
        let tasks = Tasks::new("test");
        let clock = Clock::system();
        let store = Store::open(&dir.path().join("images"), images::Limits::default()).unwrap();
        let pushed = PushStore::open(Arc::new(DiskVfs), &dir.path().join("pushed")).unwrap();
        let registries = Registries::new(Options {
            tasks: tasks.clone(),
            connect: Arc::new(Network::new(clock.clone(), Egress::default())),
            clock,
            chance: Chance::seeded(1),
            store: store.clone(),
            pushed,
            patience,
            page,
        });
        Self {
            registries,
            store,
            tasks,
            _dir: dir,
        }
    }

    pub(crate) async fn proxy(&self, registry: &Registry) -> Proxy {
        Proxy::start(&self.tasks, Some(registry.port)).await
    }

    pub(crate) async fn read(&self, spec: &Value, known: &[Known]) -> Reading {
        self.read_as(spec, known, Credentials::None).await
    }

    pub(crate) async fn read_as(
        &self,
        spec: &Value,
        known: &[Known],
        credentials: Credentials,
    ) -> Reading {
        let request = ReadRequest {
            registry: "r".to_owned(),
            spec: Arc::new(registry_spec(spec)),
            credentials,
            known: known.to_vec(),
            run: "run".to_owned(),
        };
        self.registries.read(request).await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

pub(crate) fn registry_spec(members: &Value) -> RegistrySpec {
    let mut whole = json!({"type": "apiv2", "whiteList": [".*"]});
    whole
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

/// `repository:tag`, known with a digest.
pub(crate) fn known(text: &str, digest: &str) -> Known {
    let (repository, track) = text.rsplit_once(':').unwrap();
    Known {
        image: ImageName {
            repository: repository.to_owned(),
            track: track.to_owned(),
        },
        digest: (!digest.is_empty()).then(|| digest.to_owned()),
    }
}

/// What a reading found, in words and in order.
pub(crate) fn words(reading: &Reading) -> Vec<String> {
    let word = |verdict: &ImageEvidence| match verdict {
        ImageEvidence::Unchanged => "unchanged".to_owned(),
        ImageEvidence::Present(found) => {
            let version = found
                .version
                .as_ref()
                .map_or("-", |(version, _)| version.as_str());
            format!("present {version}")
        }
        ImageEvidence::Rejected { .. } => "rejected".to_owned(),
        ImageEvidence::Absent { reason, .. } => format!("absent {reason:?}"),
        ImageEvidence::Unknown { .. } => "unknown".to_owned(),
    };
    let mut words: Vec<String> = reading
        .sightings
        .iter()
        .map(|it| format!("{} {}", it.image, word(&it.verdict)))
        .collect();
    words.sort();
    words
}

/// What a reading makes known.
pub(crate) fn learned(reading: &Reading) -> Vec<Known> {
    let learn = |sighting: &heddle_api::evidence::ImageSighting| match &sighting.verdict {
        ImageEvidence::Present(found) => Some(Known {
            image: sighting.image.clone(),
            digest: Some(found.digest().to_owned()),
        }),
        _ => None,
    };
    reading.sightings.iter().filter_map(learn).collect()
}
