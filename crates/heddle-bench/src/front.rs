//! The broker's front as a platform sees it: requests with its credentials, one by one or many at once.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::bail;
use base64::Engine as _;
use heddle_rt::metrics::Latencies;
use heddle_rt::{OnError, Tasks};
use http::Request;
use parking_lot::Mutex;
use serde_json::Value;

use super::mesh::server::{STALL_MAX, Server};
use heddle::client::Remote;
use heddle::wire::World;

/// How many requests are under way at once.
const CONNECTIONS: u32 = 64;
const POLL: Duration = Duration::from_millis(50);

/// The broker's HTTP side, as a platform sees it.
#[derive(Debug)]
pub(super) struct Front {
    remote: Remote,
    authorization: String,
    world: World,
}

impl Front {
    pub(super) fn of(server: &Server<'_>, world: &World, dir: &Path) -> anyhow::Result<Self> {
        let file = dir.join("osb-credentials.json");
        let credentials: Value = serde_json::from_slice(&world.vfs.read(&file)?)?;
        let text = |key: &str| credentials[key].as_str().unwrap_or_default().to_owned();
        let pair = format!("{}:{}", text("username"), text("password"));
        let token = base64::engine::general_purpose::STANDARD.encode(pair);
        let address: SocketAddr = server.control;
        let url = format!("http://{address}");
        Ok(Self {
            remote: Remote::anonymous(url.parse()?, url)?,
            authorization: format!("Basic {token}"),
            world: world.clone(),
        })
    }

    pub(super) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("Authorization", &self.authorization)
            .header("X-Broker-API-Version", "2.17")
    }

    /// Waits until the catalog has so many offerings.
    pub(super) async fn offered(&self, wanted: usize) -> anyhow::Result<()> {
        let started = self.world.clock.monotonic();
        loop {
            let request = self.request("GET", "/v2/catalog").body(Vec::new())?;
            let catalog = self.remote.send(request).await?.ok("catalog")?;
            if catalog["services"]
                .as_array()
                .is_some_and(|services| services.len() >= wanted)
            {
                return Ok(());
            }
            if self.world.clock.monotonic().saturating_sub(started) > STALL_MAX {
                bail!("the catalog does not show {wanted} offerings");
            }
            self.world.clock.sleep(POLL).await;
        }
    }

    /// Sends requests on so many connections, as fast as they are answered.
    pub(super) async fn timed(
        &self,
        server: &Server<'_>,
        count: u32,
        request: impl Fn(u32) -> http::Result<Request<Vec<u8>>>,
    ) -> anyhow::Result<Timed> {
        let requests: Result<Vec<_>, _> = (0..count).map(&request).collect();
        let requests: Arc<Vec<_>> = Arc::new(requests?);
        let (tasks, next) = (Tasks::new("platform"), Arc::new(AtomicU32::new(0)));
        let latencies: Arc<Mutex<Latencies>> = Arc::default();
        let before = server.usage()?.cpu;
        for connection in 0..CONNECTIONS.min(count) {
            let (remote, clock) = (self.remote.clone(), self.world.clock.clone());
            let (requests, next, latencies) = (requests.clone(), next.clone(), latencies.clone());
            tasks.spawn(
                &format!("connection-{connection}"),
                OnError::Report,
                async move {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed) as usize;
                        let Some(request) = requests.get(number) else {
                            return Ok::<(), anyhow::Error>(());
                        };
                        let started = clock.monotonic();
                        let answer = remote.send(request.clone()).await?;
                        let took = clock.monotonic().saturating_sub(started);
                        if !answer.code.is_success() {
                            bail!("{} answered {}", request.uri(), answer.code);
                        }
                        latencies.lock().record(took);
                    }
                },
            );
        }
        tasks.join().await;
        if let Some(failure) = tasks.failures().into_iter().next() {
            return Err(failure.into());
        }
        let cpu = server.usage()?.cpu.saturating_sub(before);
        let latencies = latencies.lock();
        Ok(Timed {
            p50: latencies.percentile(0.5),
            p99: latencies.percentile(0.99),
            cpu_micros: cpu.as_secs_f64() * 1e6 / f64::from(count),
        })
    }
}

/// How requests fared.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) cpu_micros: f64,
}
