//! The smoke test: does any flow work, from an Application that did not exist before to an event that arrives?
//!
//! ```text
//!   POST /heddle/v1/smoke[?app=NAME]  ─┐
//!   every few minutes                 ─┴─> one run at a time ─> steps, each told as it ends ─> cleaned up, whatever happened
//! ```
//! It answers for the product, not for anybody's application; that is what heartbeats are for, and it is their isolation that
//! is used: its event has their reserved type, arrives where they do, and is in no number, account or dead letter of users. What
//! it makes has names that lists leave out. What is left when no run is under way is nobody's: it is removed when a process
//! starts and every minute from then on, whatever the clock says about its age.

mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures::StreamExt as _;
use heddle_api::Application;
use heddle_api::ledger::ErrorBody;
use heddle_api::smoke::{NAME_PREFIX, SmokeReport, SmokeStep};
use heddle_mesh::Mesh;
use heddle_rt::metrics::{family, sample};
use heddle_rt::{Chance, Clock, OnError, Tasks};
use http::{HeaderValue, StatusCode, header};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, mpsc};

use crate::client::events::EventsArgs;
use crate::client::{ClientArgs, Remote};
use crate::identity::Published;

/// How often leftovers are looked for.
const SWEEP_PERIOD: Duration = Duration::from_secs(60);
/// Lines of a run that whoever asked for it has not read yet; there are fewer.
const LINES_MAX: usize = 64;

/// What a run works with.
pub(crate) struct SmokeDeps {
    pub(crate) client: kube::Client,
    pub(crate) mesh: Mesh,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) tasks: Tasks,
}

/// The events listener, as it is reached by others.
#[derive(Clone)]
pub(crate) struct SmokeListener {
    /// With what lets this process in as a prober.
    pub(crate) known: Remote,
    /// With what lets nobody in.
    pub(crate) stranger: Remote,
}

impl SmokeListener {
    /// Where the listener is, as the files say that were written for others.
    pub(crate) async fn at(published: &Published, pass: &str) -> anyhow::Result<Self> {
        let args = ClientArgs {
            kubeconfig: Some(published.kubeconfig.clone().into()),
            context: None,
            data_dir: PathBuf::new(),
        };
        let events = |token: &str| EventsArgs {
            events: Some(published.events.clone()),
            token: Some(token.to_owned()),
        };
        Ok(Self {
            known: events(pass).connect(&args).await?,
            stranger: events("nobody").connect(&args).await?,
        })
    }
}

/// Runs smoke tests, and remembers how they ended. Clones are the same.
#[derive(Clone)]
pub(crate) struct Smoke {
    deps: Arc<SmokeDeps>,
    listener: Arc<OnceLock<SmokeListener>>,
    numbers: Arc<Mutex<SmokeNumbers>>,
    one_at_a_time: Arc<AsyncMutex<()>>,
}

impl std::fmt::Debug for Smoke {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Smoke").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct SmokeNumbers {
    passed: u64,
    failed: u64,
    failed_in_a_row: u64,
    last_seconds: Option<f64>,
}

/// Whom steps are told to as they end. Nobody need listen.
type Teller = Option<mpsc::Sender<Bytes>>;

impl Smoke {
    pub(crate) fn new(deps: SmokeDeps) -> Self {
        Self {
            deps: Arc::new(deps),
            listener: Arc::default(),
            numbers: Arc::default(),
            one_at_a_time: Arc::default(),
        }
    }

    /// The listener is open.
    pub(crate) fn listen(&self, listener: SmokeListener) {
        self.listener.set(listener).ok();
    }

    /// Runs every `period`, if there is one, and removes what is left over, until the future is dropped.
    pub(crate) async fn run(self, period: Option<Duration>) {
        let clock = self.deps.clock.clone();
        // Of the process before this one nobody cleans up any more.
        self.sweep().await;
        let mut schedule = SmokeSchedule::begin(period, clock.monotonic());
        loop {
            clock.sleep(schedule.pause(clock.monotonic())).await;
            self.sweep().await;
            if !schedule.take_due(clock.monotonic()) {
                continue;
            }
            let Some(turn) = self.turn() else { continue };
            let report = self.test(turn, None, None).await;
            if let Some(step) = report.steps.iter().find(|step| !step.passed) {
                let error = step.error.as_deref().unwrap_or_default();
                tracing::warn!(step = step.step, error, "the smoke test failed");
            }
        }
    }

    /// The right to run, unless another run is under way.
    fn turn(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.one_at_a_time).try_lock_owned().ok()
    }

    /// Runs, with an Application of its own or with one that exists.
    async fn test(
        &self,
        _turn: OwnedMutexGuard<()>,
        application: Option<&str>,
        teller: Teller,
    ) -> SmokeReport {
        let report = match application {
            Some(name) => run::with_existing(self, name, teller).await,
            None => {
                let report = run::with_own(self, teller).await;
                self.numbers.lock().count(&report);
                report
            }
        };
        tracing::debug!(report.passed, report.took_seconds, "a smoke test ended");
        report
    }

    /// Removes what runs have left.
    async fn sweep(&self) {
        // A run that is under way removes its own things.
        let Some(_turn) = self.turn() else { return };
        let client = self.deps.client.clone();
        let mut names = left_of(&Api::<Namespace>::all(client.clone())).await;
        names.extend(left_of(&Api::<Application>::all(client)).await);
        for name in names {
            tracing::info!(name, "removing what a smoke test left");
            let removing = run::remove(&self.deps, &name);
            // What is not gone by then is removed the next time.
            self.deps.clock.timeout(SWEEP_PERIOD, removing).await.ok();
        }
    }

    /// The router, without the prefix.
    pub(crate) fn router(self) -> Router {
        Router::new().route("/smoke", post(answer)).with_state(self)
    }

    /// The text that Prometheus reads, without the end mark.
    pub(crate) fn metrics_text(&self) -> String {
        self.numbers.lock().text()
    }
}

/// Names of smoke tests among all of a kind; none when nobody can be asked, which is tried again.
async fn left_of<K>(api: &Api<K>) -> BTreeSet<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let found = api.list_metadata(&ListParams::default()).await;
    let items = found.map(|found| found.items).unwrap_or_default();
    let names = items.iter().map(ResourceExt::name_any);
    names.filter(|name| name.starts_with(NAME_PREFIX)).collect()
}

/// When to test, and when to look for leftovers.
#[derive(Debug)]
struct SmokeSchedule {
    period: Option<Duration>,
    /// By the monotonic clock; the first test is due after one period.
    due: Option<Duration>,
}

impl SmokeSchedule {
    fn begin(period: Option<Duration>, now: Duration) -> Self {
        let due = period.map(|period| now.saturating_add(period));
        Self { period, due }
    }

    /// How long there is nothing to do.
    fn pause(&self, now: Duration) -> Duration {
        let left = self.due.map(|due| due.saturating_sub(now));
        left.map_or(SWEEP_PERIOD, |left| left.min(SWEEP_PERIOD))
    }

    /// Whether a test is due; then the next one is after a period from now.
    fn take_due(&mut self, now: Duration) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.due = self.period.map(|period| now.saturating_add(period));
        }
        is_due
    }
}

impl SmokeNumbers {
    fn count(&mut self, report: &SmokeReport) {
        self.last_seconds = Some(report.took_seconds);
        if report.passed {
            self.passed += 1;
            self.failed_in_a_row = 0;
        } else {
            self.failed += 1;
            self.failed_in_a_row += 1;
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let name = "heddle_smoke_runs";
        let help = "Smoke tests with an Application of their own, by how they ended.";
        family(&mut out, name, "counter", help);
        for (result, count) in [("passed", self.passed), ("failed", self.failed)] {
            let labels = format!("result=\"{result}\"");
            sample(&mut out, &format!("{name}_total"), &labels, count);
        }
        let name = "heddle_smoke_failed_in_a_row";
        let help = "Smoke tests that failed since the last that did not.";
        family(&mut out, name, "gauge", help);
        sample(&mut out, name, "", self.failed_in_a_row);
        if let Some(seconds) = self.last_seconds {
            let name = "heddle_smoke_last_seconds";
            family(
                &mut out,
                name,
                "gauge",
                "How long the last smoke test took.",
            );
            sample(&mut out, name, "", seconds);
        }
        out
    }
}

async fn answer(State(smoke): State<Smoke>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let application = query.split('&').find_map(|pair| pair.strip_prefix("app="));
    let application = application.map(str::to_owned);
    let Some(turn) = smoke.turn() else {
        let refusal = ErrorBody {
            code: "busy".to_owned(),
            message: "another smoke test is under way; try again in a moment".to_owned(),
            ..ErrorBody::default()
        };
        let text = serde_json::to_vec(&refusal).unwrap_or_default();
        let kind = HeaderValue::from_static("application/json");
        return (
            StatusCode::TOO_MANY_REQUESTS,
            [(header::CONTENT_TYPE, kind)],
            text,
        )
            .into_response();
    };
    let (teller, lines) = mpsc::channel(LINES_MAX);
    let tasks = smoke.deps.tasks.clone();
    // It goes on when whoever asked is gone: what it made has to be removed.
    tasks.spawn("smoke", OnError::Report, async move {
        let report = smoke.test(turn, application.as_deref(), Some(teller.clone()));
        let report = report.await;
        teller.send(line(&report)).await.ok();
    });
    let lines = stream_of(lines).map(Ok::<_, std::convert::Infallible>);
    let kind = HeaderValue::from_static("application/x-ndjson");
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(lines)).into_response()
}

fn stream_of(lines: mpsc::Receiver<Bytes>) -> impl futures::Stream<Item = Bytes> {
    futures::stream::unfold(lines, |mut lines| async move {
        let line = lines.recv().await?;
        Some((line, lines))
    })
}

/// A line of the answer.
fn line(value: &impl serde::Serialize) -> Bytes {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

/// Tells a step.
async fn tell(teller: &Teller, step: &SmokeStep) {
    if let Some(teller) = teller {
        teller.send(line(step)).await.ok();
    }
}
