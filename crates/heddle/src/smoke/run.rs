//! One run, step by step. The first step that fails is the last, but for cleaning up.

use std::collections::BTreeSet;
use std::time::Duration;

use heddle_api::conditions::{Conditions, Status};
use heddle_api::smoke::{NAME_PREFIX, SmokeReport, SmokeStep};
use heddle_api::{Application, ApplicationMapping, EventFlow};
use heddle_mesh::heartbeat::{HeartbeatArrival, smoke_request};
use http::StatusCode;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::{Smoke, SmokeDeps, SmokeListener, Teller, tell};
use crate::client::Remote;

/// How long one step may take. All of them together take about a second where all is well.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is looked whether something has become ready, or is gone.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Until the event of a run is worth nothing any more.
const EVENT_LIFETIME: Duration = Duration::from_secs(30);
const NAME_CHARS: usize = 8;
/// Nobody else's service has this id.
const SERVICE: &str = "heddle-smoke";

const ASK_HEALTH: &str = "`heddle health` and `heddle doctor` name what is broken";
const ASK_CONTROLLERS: &str =
    "`heddle health` says whether controllers are at work; the log of the server says why not";
const ASK_LISTENER: &str =
    "see whether the events listener answers (`heddle doctor`), and the log of the server";
const ASK_WAY: &str =
    "`heddle health APP` names the hop at which synthetic events of the application are stuck";

/// A step that failed: why.
type SmokeError = String;

struct Run<'a> {
    deps: &'a SmokeDeps,
    listener: Option<&'a SmokeListener>,
    teller: Teller,
    begun: Duration,
    report: SmokeReport,
}

impl<'a> Run<'a> {
    fn begin(smoke: &'a Smoke, application: &str, teller: Teller) -> Self {
        let deps = &*smoke.deps;
        Self {
            deps,
            listener: smoke.listener.get(),
            teller,
            begun: deps.clock.monotonic(),
            report: SmokeReport {
                passed: true,
                application: application.to_owned(),
                ..SmokeReport::default()
            },
        }
    }

    /// Two steps: an object is made, and becomes ready.
    async fn make_ready<K>(
        &mut self,
        api: &Api<K>,
        object: Value,
        [made, ready]: [&str; 2],
        conditions: fn(&K) -> Option<&Conditions>,
    ) -> Option<()>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
    {
        let deps = self.deps;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let becoming = until_ready(deps, api, name.to_owned(), conditions);
        let creating = create(api, object);
        self.step(made, ASK_HEALTH, creating).await?;
        self.step(ready, ASK_CONTROLLERS, becoming).await
    }

    /// Tries something; gives what came of it unless it failed.
    async fn step<T>(
        &mut self,
        what: &str,
        remedy: &str,
        work: impl Future<Output = Result<T, SmokeError>>,
    ) -> Option<T> {
        let clock = self.deps.clock.clone();
        let begun = clock.monotonic();
        let done = match clock.timeout(STEP_TIMEOUT, work).await {
            Ok(done) => done,
            Err(late) => Err(format!("not done within {} s", late.0.as_secs())),
        };
        let error = done.as_ref().err().cloned();
        let step = SmokeStep {
            step: what.to_owned(),
            passed: error.is_none(),
            took_seconds: clock.monotonic().saturating_sub(begun).as_secs_f64(),
            remedy: error.as_ref().map(|_| remedy.to_owned()),
            error,
        };
        tell(&self.teller, &step).await;
        self.report.passed &= step.passed;
        self.report.steps.push(step);
        done.ok()
    }

    fn end(mut self) -> SmokeReport {
        let took = self.deps.clock.monotonic().saturating_sub(self.begun);
        self.report.took_seconds = took.as_secs_f64();
        self.report
    }
}

/// Makes an Application, a namespace and everything between them; publishes; removes all of it.
pub(super) async fn with_own(smoke: &Smoke, teller: Teller) -> SmokeReport {
    let deps = &*smoke.deps;
    let name = format!("{NAME_PREFIX}{}", deps.chance.suffix(NAME_CHARS));
    let mut run = Run::begin(smoke, &name, teller);
    if able(&mut run).await.is_some() {
        make_and_publish(&mut run, &name).await;
        let gone = "everything that was made is gone again";
        let removing = remove(deps, &name);
        run.step(gone, ASK_CONTROLLERS, removing).await;
    }
    run.end()
}

/// Publishes an event of an Application that exists, to all of its namespaces. Makes nothing.
pub(super) async fn with_existing(smoke: &Smoke, name: &str, teller: Teller) -> SmokeReport {
    let mut run = Run::begin(smoke, name, teller);
    existing(&mut run, name).await;
    run.end()
}

async fn existing(run: &mut Run<'_>, name: &str) -> Option<()> {
    let deps = run.deps;
    able(run).await?;
    let api = Api::<Application>::all(deps.client.clone());
    let remedy = "apply it, or name another: `heddle get applications`";
    let found = async { api.get_metadata(name).await.map(drop).map_err(said) };
    run.step("the Application exists", remedy, found).await?;
    let remedy = "lead its events into a namespace (`heddle provision`), with healthCheck of the EventFlow enabled";
    let targets = async {
        let targets = namespaces_of(deps, name);
        match targets.is_empty() {
            true => {
                Err("no EventFlow leads its events anywhere, or none is to be probed".to_owned())
            }
            false => Ok(targets),
        }
    };
    let targets = run
        .step("its events are led somewhere", remedy, targets)
        .await?;
    publish(run, name, &targets).await
}

/// Whether there is anything for an event to arrive at.
async fn able(run: &mut Run<'_>) -> Option<()> {
    let remedy = "start the server without --no-heartbeats: smoke tests arrive where heartbeats do";
    let on = run.deps.mesh.has_heartbeats();
    let able = async {
        on.then_some(())
            .ok_or_else(|| "heartbeats are switched off".to_owned())
    };
    run.step("there is a sink for synthetic events", remedy, able)
        .await
}

async fn make_and_publish(run: &mut Run<'_>, name: &str) -> Option<()> {
    let deps = run.deps;
    let client = || deps.client.clone();
    let namespaces = Api::<Namespace>::all(client());
    let namespace = json!({"metadata": {"name": name}});
    let creating = create(&namespaces, namespace);
    run.step("a namespace can be made", ASK_HEALTH, creating)
        .await?;
    let applications = Api::<Application>::all(client());
    let texts = [
        "an Application can be made",
        "its source and channel become ready",
    ];
    run.make_ready(&applications, application(name), texts, |one| {
        one.status.as_ref().map(|status| &status.conditions)
    })
    .await?;
    let mappings = Api::<ApplicationMapping>::namespaced(client(), name);
    let mapping = json!({"metadata": {"name": name}, "spec": {"services": [{"id": SERVICE}]}});
    let texts = [
        "it can be enabled in the namespace",
        "the mapping becomes ready",
    ];
    run.make_ready(&mappings, mapping, texts, |one| {
        one.status.as_ref().map(|status| &status.conditions)
    })
    .await?;
    let flows = Api::<EventFlow>::namespaced(client(), name);
    let flow = json!({
        "metadata": {"name": name},
        "spec": {"application": name, "serviceID": SERVICE, "onDeprovision": "discard"},
    });
    let texts = [
        "a flow can be made",
        "its broker, link and policy become ready",
    ];
    run.make_ready(&flows, flow, texts, |one| {
        one.status.as_ref().map(|status| &status.conditions)
    })
    .await?;
    let targets = BTreeSet::from([name.to_owned()]);
    let led = async {
        while namespaces_of(deps, name) != targets {
            deps.clock.sleep(LOOK_PERIOD).await;
        }
        Ok(())
    };
    run.step("the mesh leads its events there", ASK_HEALTH, led)
        .await?;
    publish(run, name, &targets).await
}

/// Publishes through the listener, as anybody and as itself, and waits for the arrival in every namespace.
async fn publish(run: &mut Run<'_>, name: &str, targets: &BTreeSet<String>) -> Option<()> {
    let (deps, listener) = (run.deps, run.listener);
    let id = format!("smoke-{}", deps.chance.suffix(NAME_CHARS));
    let arrivals = deps.mesh.heartbeat_arrivals();
    let refused = async {
        match sent(deps, listener.map(|one| &one.stranger), name, &id).await? {
            StatusCode::UNAUTHORIZED => Ok(()),
            other => Err(format!("the listener answered {other}")),
        }
    };
    let what = "the events listener refuses strangers";
    run.step(what, ASK_LISTENER, refused).await?;
    let accepted = async {
        match sent(deps, listener.map(|one| &one.known), name, &id).await? {
            StatusCode::ACCEPTED => Ok(()),
            other => Err(format!("the listener answered {other}")),
        }
    };
    run.step(
        "the events listener accepts an event",
        ASK_LISTENER,
        accepted,
    )
    .await?;
    let arrived = arrived(arrivals, name, &id, targets.clone());
    let what = match targets.len() {
        1 => "it arrives in the namespace".to_owned(),
        many => format!("it arrives in all {many} namespaces"),
    };
    run.step(&what, ASK_WAY, arrived).await
}

async fn sent(
    deps: &SmokeDeps,
    to: Option<&Remote>,
    name: &str,
    id: &str,
) -> Result<StatusCode, SmokeError> {
    let to = to.ok_or("the listener is not open yet")?;
    let request = smoke_request(name, id, deps.clock.now(), EVENT_LIFETIME);
    let answer = to.send(request.map(|_| Vec::new())).await;
    answer
        .map(|answer| answer.code)
        .map_err(|error| format!("{error:#}"))
}

async fn arrived(
    mut arrivals: Receiver<HeartbeatArrival>,
    application: &str,
    id: &str,
    mut missing: BTreeSet<String>,
) -> Result<(), SmokeError> {
    while !missing.is_empty() {
        match arrivals.recv().await {
            Ok(arrival) if arrival.application == application && arrival.id == id => {
                missing.remove(&arrival.namespace);
            }
            // Whoever is behind has lost some, and goes on with what comes.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return Err("the mesh is closing".to_owned()),
        }
    }
    Ok(())
}

/// Where the mesh leads synthetic events of an Application.
fn namespaces_of(deps: &SmokeDeps, name: &str) -> BTreeSet<String> {
    let heartbeats = deps.mesh.reading().heartbeats.into_iter();
    let own = heartbeats.filter(|one| one.application == name);
    own.map(|one| one.namespace).collect()
}

/// Removes everything of a run, and waits until it is gone.
pub(super) async fn remove(deps: &SmokeDeps, name: &str) -> Result<(), SmokeError> {
    let client = || deps.client.clone();
    // A flow first: its end waits for what only its neighbours can do.
    gone(deps, &Api::<EventFlow>::namespaced(client(), name), name).await?;
    gone(
        deps,
        &Api::<ApplicationMapping>::namespaced(client(), name),
        name,
    )
    .await?;
    gone(deps, &Api::<Namespace>::all(client()), name).await?;
    gone(deps, &Api::<Application>::all(client()), name).await
}

async fn gone<K>(deps: &SmokeDeps, api: &Api<K>, name: &str) -> Result<(), SmokeError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    match api.delete(name, &DeleteParams::foreground()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => return Err(said(error)),
    }
    loop {
        match api.get_metadata_opt(name).await {
            Ok(None) => return Ok(()),
            Ok(Some(_)) => deps.clock.sleep(LOOK_PERIOD).await,
            Err(error) => return Err(said(error)),
        }
    }
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<(), SmokeError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let mut typed = object;
    typed["apiVersion"] = json!(K::api_version(&()));
    typed["kind"] = json!(K::kind(&()));
    let object: K = serde_json::from_value(typed).map_err(|error| error.to_string())?;
    let created = api.create(&PostParams::default(), &object).await;
    created.map(drop).map_err(said)
}

/// Waits until an object says that it is ready. What it says instead is why it failed, if it is not in time.
async fn until_ready<K>(
    deps: &SmokeDeps,
    api: &Api<K>,
    name: String,
    conditions: fn(&K) -> Option<&Conditions>,
) -> Result<(), SmokeError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    // A moment before the step itself gives up, so that it can say what was missing.
    let until = deps.clock.monotonic() + STEP_TIMEOUT - 2 * LOOK_PERIOD;
    loop {
        let object = api.get(&name).await.map_err(said)?;
        let ready = conditions(&object).and_then(|conditions| conditions.find("Ready"));
        if ready.is_some_and(|ready| ready.status == Status::True) {
            return Ok(());
        }
        if deps.clock.monotonic() >= until {
            let words = ready.map(|ready| {
                let words = [&ready.reason, &ready.message].into_iter().flatten();
                words.map(String::as_str).collect::<Vec<_>>().join(": ")
            });
            return Err(words.unwrap_or_else(|| "no controller has looked at it".to_owned()));
        }
        deps.clock.sleep(LOOK_PERIOD).await;
    }
}

fn application(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "description": "Made by a smoke test, and gone in a moment",
            "services": [{
                "id": SERVICE, "name": name, "displayName": name, "description": "Made by a smoke test",
                "providerDisplayName": "heddle", "entries": [{"type": "Events"}],
            }],
        },
    })
}

fn said(error: kube::Error) -> SmokeError {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
