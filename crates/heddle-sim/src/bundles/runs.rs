//! Runs that only pretend: an action takes as long as its script says, ends as its script says, and is counted.
//!
//! What a run does is said by the instance itself, in a parameter, or by the test for all runs of an action:
//!
//! ```text
//!   "parameters": {"script": {"provision": {"takes": 30, "code": 3, "message": "no room"}}}
//! ```
//! Runs outlive the controllers that started them, as real ones do, and a run that was forgotten would run again if it were
//! started again, so that whoever does this is caught by the count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_api::action::{Action, Outcome, Run, RunEnd, RunState};
use heddle_api::bundle_source::{Fetch, FetchError, ReadRequest};
use heddle_api::evidence::{ImageEvidence, ImageSighting, Reading};
use heddle_controllers::Bundles;
use heddle_rt::Clock;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// What an action does.
#[derive(Debug, Clone)]
pub struct Script {
    /// How long it takes; without, it never ends by itself.
    pub takes: Option<Duration>,
    pub outcome: Outcome,
    pub credentials: Option<Map<String, Value>>,
    pub dashboard_url: Option<String>,
    pub progress: Option<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            takes: Some(Duration::from_secs(1)),
            outcome: Outcome::Succeeded,
            credentials: None,
            dashboard_url: None,
            progress: None,
        }
    }
}

impl Script {
    /// Ends like this, in a second.
    pub fn ends(outcome: Outcome) -> Self {
        Self {
            outcome,
            ..Self::default()
        }
    }

    /// Hands this out, in a second.
    pub fn hands_out(credentials: Value) -> Self {
        Self {
            credentials: credentials.as_object().cloned(),
            ..Self::default()
        }
    }

    /// Runs until it is called off.
    pub fn endless() -> Self {
        Self {
            takes: None,
            ..Self::default()
        }
    }

    /// What the instance says in its parameters.
    fn of(run: &Run) -> Option<Self> {
        let said = run.variables.get("script")?.get(run.action.word())?;
        let seconds = said.get("takes").map_or(Some(1), Value::as_u64);
        let code = said.get("code").and_then(Value::as_i64).unwrap_or_default();
        let text = |key: &str| said.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            takes: seconds.map(Duration::from_secs),
            outcome: match i32::try_from(code).unwrap_or(1) {
                0 => Outcome::Succeeded,
                8 => Outcome::NothingToDo,
                code => Outcome::Failed {
                    code,
                    message: text("message"),
                },
            },
            credentials: said.get("credentials").and_then(Value::as_object).cloned(),
            dashboard_url: text("dashboardUrl"),
            progress: text("progress"),
        })
    }
}

/// Everything that outlives the controllers.
#[derive(Debug, Clone)]
pub struct ScriptedRuns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    state: Mutex<State>,
    bell: Notify,
}

#[derive(Debug, Default)]
struct State {
    scripts: BTreeMap<&'static str, VecDeque<Script>>,
    known: BTreeMap<String, Entry>,
    executed: Vec<Run>,
    /// Digests of images that are not kept.
    missing: BTreeSet<String>,
    /// Why nothing can be started at present.
    refusal: Option<String>,
    gone: Vec<String>,
    /// Registries do not answer for now.
    held: bool,
    mark: u64,
}

#[derive(Debug)]
struct Entry {
    script: Script,
    due: Option<Duration>,
    /// Its end was told.
    told: bool,
}

impl ScriptedRuns {
    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(Inner {
            clock,
            state: Mutex::default(),
            bell: Notify::new(),
        }))
    }

    /// Says what the next runs of an action do, one after the other; the last script stays.
    pub fn script(&self, action: Action, scripts: impl IntoIterator<Item = Script>) {
        let scripts = scripts.into_iter().collect();
        self.0.state.lock().scripts.insert(action.word(), scripts);
    }

    /// Says whether an image is kept.
    pub fn set_kept(&self, digest: &str, kept: bool) {
        let mut state = self.0.state.lock();
        match kept {
            true => drop(state.missing.remove(digest)),
            false => drop(state.missing.insert(digest.to_owned())),
        }
    }

    /// Lets readings of registries wait, or no longer.
    pub fn hold_readings(&self, held: bool) {
        self.0.state.lock().held = held;
    }

    /// Refuses to start anything, or no longer.
    pub fn set_refusal(&self, refusal: Option<&str>) {
        self.0.state.lock().refusal = refusal.map(str::to_owned);
    }

    /// Every program that was executed, in order.
    pub fn executed(&self) -> Vec<Run> {
        self.0.state.lock().executed.clone()
    }

    /// The actions that were executed, in order.
    pub fn actions(&self) -> Vec<&'static str> {
        let executed = self.executed();
        executed.iter().map(|run| run.action.word()).collect()
    }

    /// How often each action was executed for each instance or binding, and how many runs nobody has forgotten.
    pub fn count(&self) -> BTreeMap<String, usize> {
        let state = self.0.state.lock();
        let mut counts = BTreeMap::new();
        for run in &state.executed {
            let text = |name: &str| run.variables.get(name).and_then(Value::as_str);
            let instance = text("_apb_service_instance_id").unwrap_or_default();
            let binding = text("_apb_service_binding_id").unwrap_or_default();
            let key = format!("{} of {instance} {binding}", run.action.word());
            *counts.entry(key).or_default() += 1;
        }
        if !state.known.is_empty() {
            counts.insert("runs that nobody forgot".to_owned(), state.known.len());
        }
        counts
    }

    /// Ids of runs that were executed more than once.
    pub fn repeated(&self) -> Vec<String> {
        let executed = self.executed();
        let mut seen = BTreeSet::new();
        let again = executed.iter().filter(|run| !seen.insert(run.id.clone()));
        again.map(|run| run.id.clone()).collect()
    }

    /// Ids of runs that nobody has forgotten.
    pub fn known(&self) -> Vec<String> {
        self.0.state.lock().known.keys().cloned().collect()
    }

    /// Instances whose directories were removed.
    pub fn gone(&self) -> Vec<String> {
        self.0.state.lock().gone.clone()
    }
}

impl Inner {
    fn is_held(&self) -> bool {
        self.state.lock().held
    }

    fn begin(&self, run: Run) -> Result<(), String> {
        let mut state = self.state.lock();
        if state.known.contains_key(&run.id) {
            return Ok(());
        }
        if let Some(refusal) = &state.refusal {
            return Err(refusal.clone());
        }
        assert!(
            !state.missing.contains(&run.manifest_digest),
            "{run:?} is started with an image that is not kept"
        );
        let said = Script::of(&run);
        let queue = state.scripts.entry(run.action.word()).or_default();
        let queued = match queue.len() {
            0 => None,
            1 => queue.front().cloned(),
            _ => queue.pop_front(),
        };
        let script = said.or(queued).unwrap_or_default();
        let now = self.clock.monotonic();
        let entry = Entry {
            due: script.takes.map(|takes| now + takes),
            script,
            told: false,
        };
        state.known.insert(run.id.clone(), entry);
        state.executed.push(run);
        self.ring(&mut state);
        Ok(())
    }

    fn ring(&self, state: &mut State) {
        state.mark += 1;
        self.bell.notify_waiters();
    }

    fn look(&self, id: &str) -> RunState {
        let state = self.state.lock();
        let Some(entry) = state.known.get(id) else {
            return RunState::Unheard;
        };
        if entry.due.is_none_or(|due| due > self.clock.monotonic()) {
            return RunState::Running {
                progress: entry.script.progress.clone(),
            };
        }
        RunState::Ended(Box::new(RunEnd {
            outcome: entry.script.outcome.clone(),
            dashboard_url: entry.script.dashboard_url.clone(),
            log_tail: String::new(),
        }))
    }

    fn call_off(&self, id: &str) {
        let mut state = self.state.lock();
        let now = self.clock.monotonic();
        let running = state.known.get_mut(id);
        if let Some(entry) = running.filter(|entry| entry.due.is_none_or(|due| due > now)) {
            entry.due = Some(now);
            entry.script.outcome = Outcome::Cancelled;
        }
        self.ring(&mut state);
    }

    async fn changed(&self, seen: u64) -> u64 {
        loop {
            let mut rung = pin!(self.bell.notified());
            rung.as_mut().enable();
            let next = {
                let mut state = self.state.lock();
                let now = self.clock.monotonic();
                let untold = state.known.values_mut().filter(|entry| !entry.told);
                let (mut ended, mut next) = (false, None);
                for entry in untold {
                    match entry.due {
                        Some(due) if due <= now => {
                            entry.told = true;
                            ended = true;
                        }
                        Some(due) => next = Some(next.map_or(due, |next: Duration| next.min(due))),
                        None => {}
                    }
                }
                if ended {
                    self.ring(&mut state);
                }
                if state.mark > seen {
                    return state.mark;
                }
                next.map(|due| due.saturating_sub(now))
            };
            match next {
                Some(left) => drop(self.clock.timeout(left, rung).await),
                None => rung.await,
            }
        }
    }
}

/// Every bundle that is known is there as it was known; every image is kept unless a test says otherwise.
impl Bundles for ScriptedRuns {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Reading> {
        let sightings = request.known.into_iter().map(|known| ImageSighting {
            image: known.image,
            verdict: ImageEvidence::Unchanged,
        });
        let reading = Reading {
            sightings: sightings.collect(),
            ..Reading::default()
        };
        let inner = Arc::clone(&self.0);
        async move {
            while inner.is_held() {
                inner.clock.sleep(Duration::from_secs(1)).await;
            }
            reading
        }
        .boxed()
    }

    fn is_kept(&self, manifest_digest: &str) -> bool {
        !self.0.state.lock().missing.contains(manifest_digest)
    }

    fn keep(&self, fetch: Fetch) -> BoxFuture<'static, Result<(), FetchError>> {
        let kept = self.is_kept(&fetch.manifest_digest);
        let trouble = FetchError::Unavailable("it is missing".to_owned());
        futures::future::ready(if kept { Ok(()) } else { Err(trouble) }).boxed()
    }

    fn keep_only(&self, _: Vec<String>) -> BoxFuture<'static, Result<(), String>> {
        futures::future::ready(Ok(())).boxed()
    }

    fn start(&self, run: Run) -> BoxFuture<'static, Result<(), String>> {
        let inner = Arc::clone(&self.0);
        async move { inner.begin(run) }.boxed()
    }

    fn look(&self, id: &str) -> BoxFuture<'static, RunState> {
        futures::future::ready(self.0.look(id)).boxed()
    }

    fn credentials(
        &self,
        id: &str,
    ) -> BoxFuture<'static, Result<Option<Map<String, Value>>, String>> {
        let state = self.0.state.lock();
        let entry = state.known.get(id);
        let credentials = entry.and_then(|entry| entry.script.credentials.clone());
        futures::future::ready(Ok(credentials)).boxed()
    }

    fn cancel(&self, id: &str) -> BoxFuture<'static, Result<(), String>> {
        self.0.call_off(id);
        futures::future::ready(Ok(())).boxed()
    }

    fn forget(&self, id: &str) -> BoxFuture<'static, Result<(), String>> {
        self.0.state.lock().known.remove(id);
        futures::future::ready(Ok(())).boxed()
    }

    fn forget_instance(&self, instance: &str) -> BoxFuture<'static, Result<(), String>> {
        self.0.state.lock().gone.push(instance.to_owned());
        futures::future::ready(Ok(())).boxed()
    }

    fn changed(&self, seen: u64) -> BoxFuture<'static, u64> {
        let inner = Arc::clone(&self.0);
        async move { inner.changed(seen).await }.boxed()
    }
}

/// The description of a bundle with two plans, whose parameters have defaults.
pub fn description(name: &str) -> Value {
    let plan = |plan: &str, other: &str| {
        json!({
            "name": plan, "description": plan, "free": true, "updates_to": [other],
            "parameters": [
                {"name": "size", "type": "int", "default": 1, "updatable": true},
                {"name": "script", "type": "object", "updatable": true},
            ],
            "bind_parameters": [{"name": "mode", "type": "string", "default": "rw"}],
        })
    };
    json!({
        "version": "1.0", "name": name, "description": "a database", "bindable": true, "async": "required",
        "plans": [plan("small", "large"), plan("large", "small")],
    })
}
