//! Starts `heddle`, waits until it is ready, and takes it away again.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use heddle_rt::{Clock, DiskVfs, Vfs as _};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A failsafe only: nothing is expected to take that long.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A directory and the server that may be running on it.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    data: PathBuf,
    child: Option<Child>,
    /// `http://127.0.0.1:port`, as endpoints.json has it.
    pub(crate) control: String,
    /// Where events are published, likewise.
    pub(crate) events: String,
    log_filter: &'static str,
    extra_args: &'static [&'static str],
}

impl Server {
    /// A server on a fresh directory.
    pub(crate) async fn start() -> Self {
        Self::start_with("debug", &[]).await
    }

    /// A server that says no more than it must, for tests that make it work hard.
    pub(crate) async fn start_quietly() -> Self {
        Self::start_with("info", &[]).await
    }

    /// A server on a fresh directory, with arguments that it keeps over restarts.
    pub(crate) async fn start_with(
        log_filter: &'static str,
        extra_args: &'static [&'static str],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self {
            data: folder.path().join("data"),
            folder,
            child: None,
            control: String::new(),
            events: String::new(),
            log_filter,
            extra_args,
        };
        server.launch().await;
        server
    }

    /// A server that keeps its data in a place of the caller's choice and is not running yet.
    pub(crate) fn keeping(data: PathBuf) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            data,
            child: None,
            control: String::new(),
            events: String::new(),
            log_filter: "info",
            extra_args: &[],
        }
    }

    /// Starts the binary on the directory and waits until it is ready.
    pub(crate) async fn launch(&mut self) {
        self.launch_on("0").await;
    }

    /// The same, on a port of the caller's choice.
    pub(crate) async fn launch_on(&mut self, port: &str) {
        self.spawn_on(port);
        self.until_launched().await;
    }

    /// Starts the binary on the directory and waits for nothing.
    pub(crate) fn spawn(&mut self) {
        self.spawn_on("0");
    }

    /// A server on a fresh directory that may have so many files and connections open.
    pub(crate) async fn start_with_descriptors(limit: u32) -> Self {
        let mut server = Self::keeping(PathBuf::new());
        server.data = server.folder.path().join("data");
        let command = server.command_with_descriptors(limit);
        server.run(command);
        server.until_launched().await;
        server
    }

    /// The command line that serves this directory under such a limit.
    pub(crate) fn command_with_descriptors(&self, limit: u32) -> Command {
        let inner = self.command();
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -n {limit} && exec \"$0\" \"$@\""))
            .arg(inner.get_program())
            .args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let log = open_log(&self.folder.path().join("log"));
        command.stdout(Stdio::null()).stderr(log);
        command
    }

    /// Starts the binary with a configuration that may keep it from becoming ready, and waits until it tells where it
    /// listens.
    pub(crate) async fn launch_configured(&mut self, text: &str) {
        let file = self.folder.path().join("heddle.yaml");
        write(&file, text);
        let mut command = self.command();
        command.arg("--config").arg(file);
        self.run(command);
        self.until_listening().await;
    }

    /// Starts the binary with a command line of the caller's own, and waits until it is ready.
    pub(crate) async fn launch_with(&mut self, change: impl FnOnce(&mut Command)) {
        let mut command = self.command();
        change(&mut command);
        self.run(command);
        self.until_launched().await;
    }

    fn spawn_on(&mut self, port: &str) {
        let mut command = self.command();
        command.env("HEDDLE_LISTEN", format!("127.0.0.1:{port}"));
        self.run(command);
    }

    fn run(&mut self, mut command: Command) {
        // What a killed server left behind names a port that another test may have by now.
        let endpoints = self.data().join("endpoints.json");
        if exists(&endpoints) {
            DiskVfs.remove(&endpoints).unwrap();
        }
        self.child = Some(command.spawn().unwrap());
    }

    async fn until_launched(&mut self) {
        self.until_listening().await;
        eventually("readiness", async || {
            (self.get("/readyz").await.code == StatusCode::OK).then_some(())
        })
        .await;
    }

    async fn until_listening(&mut self) {
        let endpoints = self.data().join("endpoints.json");
        let endpoints = eventually("endpoints.json", async || {
            let running = self.child.as_mut().unwrap().try_wait().unwrap().is_none();
            assert!(
                running,
                "the server ended early:\n{}",
                read(&self.folder.path().join("log"))
            );
            exists(&endpoints).then(|| read(&endpoints))
        })
        .await;
        let endpoints: Value = serde_json::from_str(&endpoints).unwrap();
        self.control = endpoints["control"].as_str().unwrap().to_owned();
        self.events = endpoints["events"].as_str().unwrap().to_owned();
    }

    /// The command line that serves this directory.
    pub(crate) fn command(&self) -> Command {
        let log = open_log(&self.folder.path().join("log"));
        let mut command = heddle();
        command
            .args(["serve", "--log", self.log_filter, "--data-dir"])
            .arg(self.data())
            .args(self.extra_args)
            .env("HEDDLE_LISTEN", "127.0.0.1:0")
            // Stories count what is in the log; those about health ask for heartbeats.
            .env("HEDDLE_NO_HEARTBEATS", "true")
            .env("HEDDLE_SMOKE_MINUTES", "0");
        command.stdout(Stdio::null()).stderr(log);
        command
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data().join("admin.kubeconfig")
    }

    /// What the server logged so far.
    pub(crate) fn log(&self) -> String {
        read(&self.folder.path().join("log"))
    }

    /// The administrator's token.
    pub(crate) fn token(&self) -> String {
        let kubeconfig: Value = serde_saphyr::from_str(&read(&self.kubeconfig())).unwrap();
        kubeconfig["users"][0]["user"]["token"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Ends the server without warning.
    pub(crate) fn kill(&mut self) {
        self.kill_and(|| ());
    }

    /// The same for a server that cannot end until something happens which may only happen once it is doomed.
    pub(crate) fn kill_and(&mut self, release: impl FnOnce()) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        release();
        child.wait().unwrap();
    }

    /// Asks the server to end, and returns how it did.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        eventually("the end of the server", async || child.try_wait().unwrap()).await
    }

    /// `heddle` with this server's kubeconfig.
    pub(crate) fn heddle(&self, args: &[&str]) -> Outcome {
        Outcome::of(
            heddle()
                .args(args)
                .env("KUBECONFIG", self.kubeconfig())
                .output()
                .unwrap(),
        )
    }

    /// The same, with something on standard input.
    pub(crate) fn heddle_with(&self, args: &[&str], input: &str) -> Outcome {
        let mut command = heddle();
        command.args(args).env("KUBECONFIG", self.kubeconfig());
        Outcome::fed(command, input)
    }

    /// Has an instance made, and waits until it is ready.
    pub(crate) fn provision(&self, namespace: &str, offering: &str, id: &str, more: &[&str]) {
        let mut words = vec!["provision", offering, "-n", namespace, "--id", id];
        words.extend(["--wait", "--timeout", "60"]);
        words.extend(more);
        let said = self.heddle(&words).ok();
        assert_eq!(said, format!("instance {id} is ready\n"));
    }

    /// Has an instance removed, and waits until it is gone.
    pub(crate) fn deprovision(&self, namespace: &str, id: &str) {
        let words = [
            "deprovision",
            id,
            "-n",
            namespace,
            "--wait",
            "--timeout",
            "60",
        ];
        let said = self.heddle(&words).ok();
        let gone = format!("instance {id} is gone");
        assert!(said.starts_with(&gone), "{said}");
    }

    /// A client over TLS with the kubeconfig, as kubectl would be.
    pub(crate) async fn client(&self) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
            .await
            .unwrap();
        kube::Client::try_from(config).unwrap()
    }

    /// All objects of a kind, in all namespaces.
    pub(crate) async fn all<K>(&self) -> Vec<K>
    where
        K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api: kube::Api<K> = kube::Api::all(self.client().await);
        api.list(&Default::default()).await.unwrap().items
    }

    /// One plain request without credentials.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Vec::new()).unwrap())
            .await
    }

    /// One plain request as the administrator.
    pub(crate) async fn admin(&self, mut request: Request<Vec<u8>>) -> Answer {
        let value = format!("Bearer {}", self.token()).parse().unwrap();
        request
            .headers_mut()
            .insert(http::header::AUTHORIZATION, value);
        self.send(request).await
    }

    /// What Prometheus reads, with the token that is made for it.
    pub(crate) async fn metrics(&self) -> String {
        let token = read(&self.data().join("metrics-token"));
        let request = Request::get("/metrics")
            .header("authorization", format!("Bearer {}", token.trim()))
            .header("accept", "application/openmetrics-text")
            .body(Vec::new());
        let answer = self.send(request.unwrap()).await;
        assert_eq!(answer.code, StatusCode::OK, "{}", answer.body);
        answer.body
    }

    /// One plain request, as it is.
    pub(crate) async fn send(&self, request: Request<Vec<u8>>) -> Answer {
        let client =
            kube::Client::try_from(kube::Config::new(self.control.parse().unwrap())).unwrap();
        let response = client.send(request.map(Body::from)).await.unwrap();
        let code = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Answer {
            code,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// What clients that do not stop by themselves were promised so far, and whether the server may go away by now.
#[derive(Debug, Default)]
pub(crate) struct Acknowledgements {
    count: AtomicUsize,
    over: AtomicBool,
}

impl Acknowledgements {
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Panics if a request failed that had to be answered.
    #[track_caller]
    pub(crate) fn missing(&self, failure: &str) {
        assert!(self.over.load(Ordering::SeqCst), "{failure}");
    }

    /// Waits for so many; from then on the server may go away.
    pub(crate) async fn until(&self, count: usize, what: &str) {
        eventually_or_else(&format!("{count} {what}"), async || {
            let so_far = self.count.load(Ordering::SeqCst);
            if so_far >= count {
                return Ok(());
            }
            Err(format!("{so_far} were"))
        })
        .await;
        self.over.store(true, Ordering::SeqCst);
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Runs a command with something on its standard input.
    pub(crate) fn fed(mut command: Command, input: &str) -> Self {
        use std::io::Write as _;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        Self::of(child.wait_with_output().unwrap())
    }

    /// The output of a command that must have worked.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }
}

/// The binary, free of whatever the environment of the tests says.
pub(crate) fn heddle() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heddle"));
    for name in [
        "KUBECONFIG",
        "HEDDLE_DATA_DIR",
        "HEDDLE_LISTEN",
        "HEDDLE_CONFIG",
        "HEDDLE_LOG",
        "HEDDLE_LOG_FORMAT",
        "HEDDLE_ALLOW_REMOTE",
        "HEDDLE_EVENTS",
        "HEDDLE_TOKEN",
        "HEDDLE_EVENTS_REQUIRE_IDENTITY",
        "HEDDLE_EVENTS_CLIENT_CA",
        "HEDDLE_NO_CONTROLLERS",
    ] {
        command.env_remove(name);
    }
    // The default port is one for all tests at once.
    command.env("HEDDLE_EVENTS_LISTEN", "127.0.0.1:0");
    command
}

/// Waits for a condition.
pub(crate) async fn eventually<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let check = async || check().await.ok_or_else(|| "it never came".to_owned());
    eventually_or_else(what, check).await
}

/// Waits for a condition whose absence can be described.
pub(crate) async fn eventually_or_else<T>(
    what: &str,
    mut check: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let clock = Clock::system();
    let mut last = String::new();
    let found = clock.timeout(PATIENCE, async {
        loop {
            match check().await {
                Ok(found) => return found,
                Err(missing) => last = missing,
            }
            clock.sleep(POLL).await;
        }
    });
    let found = found.await;
    found.unwrap_or_else(|_| panic!("waited in vain for {what}: {last}"))
}

pub(crate) fn read(path: &Path) -> String {
    String::from_utf8(DiskVfs.read(path).unwrap()).unwrap()
}

pub(crate) fn exists(path: &Path) -> bool {
    DiskVfs.exists(path).unwrap()
}

/// Puts a file in place for a test.
pub(crate) fn write(path: &Path, text: &str) {
    DiskVfs.write_atomic(path, text.as_bytes(), 0o600).unwrap();
}

/// The folder of examples, which the tests hold to what it promises.
pub(crate) fn examples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .display()
        .to_string()
}

pub(crate) fn open_log(path: &Path) -> std::fs::File {
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
}
