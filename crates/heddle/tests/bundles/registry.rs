//! A real registry, started for one test, which can be stopped, frozen, emptied and swept.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use heddle_rt::{DiskVfs, Vfs as _};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::eventually;
use crate::program;

/// The manifests that heddle makes.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

pub(crate) struct Registry {
    folder: tempfile::TempDir,
    port: u16,
    child: Option<Child>,
}

impl Registry {
    pub(crate) async fn start() -> Self {
        let port = free_port().await;
        let mut registry = Self {
            folder: tempfile::tempdir().unwrap(),
            port,
            child: None,
        };
        registry.launch().await;
        registry
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config.yml")
    }

    fn storage(&self) -> PathBuf {
        self.folder.path().join("storage")
    }

    /// Starts it again, with what it had.
    pub(crate) async fn launch(&mut self) {
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage:\n  filesystem: {{rootdirectory: {}}}\n  delete: {{enabled: true}}\n\
             http: {{addr: 127.0.0.1:{}}}\n",
            self.storage().display(),
            self.port
        );
        DiskVfs
            .write_atomic(&self.config(), text.as_bytes(), 0o644)
            .unwrap();
        let child = Command::new(program("DOCKER_REGISTRY"))
            .arg("serve")
            .arg(self.config())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        eventually("the registry", async || {
            self.send("GET", "/v2/")
                .await
                .is_some_and(|(code, _)| code == StatusCode::OK)
                .then_some(())
        })
        .await;
    }

    pub(crate) fn stop(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// It takes connections and answers nothing.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().unwrap().id();
        kill_process(Pid::from_raw(id.try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Removes an image, as its owner would.
    pub(crate) async fn remove(&self, repository: &str, tag: &str) {
        let (_, digest) = self
            .send("HEAD", &format!("/v2/{repository}/manifests/{tag}"))
            .await
            .unwrap();
        let path = format!("/v2/{repository}/manifests/{}", digest.unwrap());
        let (code, _) = self.send("DELETE", &path).await.unwrap();
        assert_eq!(code, StatusCode::ACCEPTED);
    }

    /// Removes what no tag refers to, as its owner would at night. It has to be stopped for that.
    pub(crate) fn collect_garbage(&self) {
        let status = Command::new(program("DOCKER_REGISTRY"))
            .args(["garbage-collect", "-m"])
            .arg(self.config())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Somebody mounts the wrong disk.
    pub(crate) fn lose_everything(&self) {
        std::fs::remove_dir_all(self.storage()).unwrap();
    }

    /// The status and the digest of an answer; `None` if there is none.
    async fn send(&self, method: &str, path: &str) -> Option<(StatusCode, Option<String>)> {
        let mut config = kube::Config::new(self.url().parse().unwrap());
        config.default_retry = false;
        let client = kube::Client::try_from(config).unwrap();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::ACCEPT, MANIFEST);
        let response = client
            .send(request.body(Body::empty()).unwrap())
            .await
            .ok()?;
        let digest = response.headers().get("docker-content-digest");
        let digest = digest.map(|digest| digest.to_str().unwrap().to_owned());
        let code = response.status();
        response.into_body().collect().await.ok()?;
        Some((code, digest))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.stop();
        }
    }
}

/// A port that nobody has at the moment; the registry does not tell which one it took.
async fn free_port() -> u16 {
    let listener = heddle_rt::net::bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    listener.address().port()
}
