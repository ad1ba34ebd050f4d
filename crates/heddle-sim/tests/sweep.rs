//! Every single fault against heddle's controllers, and against two that are wrong on purpose.

#![expect(clippy::unwrap_used, reason = "a test says what failed by failing")]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use heddle_api::{Application, Channel};
use heddle_apiserver::Registry;
use heddle_controllers::{Bundles, DataPlane, Options};
use heddle_rt::{Chance, Clock};
use heddle_sim::plane::TestPlane;
use heddle_sim::sweep::{Controllers, Findings, Outside, RESYNC, Story, stories, sweep};
use kube::api::{DeleteParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

fn registry() -> &'static Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(|| Arc::new(Registry::heddle().unwrap()))
}

fn ours(story: &Story) -> Controllers {
    if story.meshed { meshed } else { alone }
}

fn alone(client: Client, clock: Clock, chance: Chance, outside: Outside) -> BoxFuture<'static, ()> {
    run(client, None, outside, Options::new(clock, chance))
}

/// Each life of the controllers has a mesh of its own, since the two are one process.
fn meshed(
    client: Client,
    clock: Clock,
    chance: Chance,
    outside: Outside,
) -> BoxFuture<'static, ()> {
    let plane: Arc<dyn DataPlane> = Arc::new(TestPlane::new(clock.clone()));
    run(client, Some(plane), outside, Options::new(clock, chance))
}

fn run(
    client: Client,
    data_plane: Option<Arc<dyn DataPlane>>,
    outside: Outside,
    options: Options,
) -> BoxFuture<'static, ()> {
    let bundles: Arc<dyn Bundles> = Arc::new(outside.bundles);
    let options = Options {
        data_plane,
        bundles: Some(bundles),
        resync: RESYNC,
        // Shorter than a story rests, so that a Broker nobody needs goes within it.
        broker_linger: Duration::from_secs(20),
        ..options
    };
    Box::pin(heddle_controllers::run(client, options))
}

/// How many faults strike one story. All of them take half an hour, which `HEDDLE_SWEEP=all` does; a gate gets a share
/// that reaches from the beginning to the end of each.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs a suite says how long it may take"
)]
fn most() -> usize {
    match std::env::var("HEDDLE_SWEEP").as_deref() {
        Ok("all") => usize::MAX,
        _ => 12,
    }
}

/// Two threads, because the stories are independent of each other.
fn sweep_all(
    controllers: impl Fn(&Story) -> Controllers + Copy + Send,
    chosen: impl Fn(&Story) -> bool,
) -> Findings {
    let stories: Vec<Story> = stories().into_iter().filter(chosen).collect();
    let mut total = Findings::default();
    std::thread::scope(|scope| {
        let halves: Vec<_> = (0..2)
            .map(|half| {
                let mine: Vec<Story> = stories.iter().skip(half).step_by(2).cloned().collect();
                let run = move |story: &Story| sweep(registry(), story, controllers(story), most());
                scope.spawn(move || mine.iter().map(run).collect::<Vec<_>>())
            })
            .collect();
        for findings in halves.into_iter().flat_map(|half| half.join().unwrap()) {
            total.trials += findings.trials;
            total.violations.extend(findings.violations);
        }
    });
    total
}

#[test]
fn whatever_single_fault_strikes_the_end_is_the_same() {
    let findings = sweep_all(ours, |_| true);
    println!("{} trials", findings.trials);
    assert!(
        findings.trials > 300,
        "the sweep must have something to strike: {} trials",
        findings.trials
    );
    let text: Vec<String> = findings
        .violations
        .iter()
        .map(|(story, fault, what)| format!("{story}: {fault:?}: {what}"))
        .collect();
    assert!(
        text.is_empty(),
        "{} of {} trials:\n{}",
        text.len(),
        findings.trials,
        text.join("\n")
    );
}

/// Makes a child under a generated name unless the application says that it has one: a lost answer makes a second.
fn generates_names(client: Client, _: Clock, _: Chance, _: Outside) -> BoxFuture<'static, ()> {
    async fn reconcile(
        application: Arc<Application>,
        client: Arc<Client>,
    ) -> Result<Action, kube::Error> {
        let channels: Api<Channel> = Api::namespaced((*client).clone(), "kyma-integration");
        if !application.annotations().contains_key("child")
            && application.metadata.deletion_timestamp.is_none()
        {
            let child = json!({"metadata": {"generateName": "child-"}, "spec": {}});
            create(&channels, child).await?;
            let patch = json!({"metadata": {"annotations": {"child": "made"}}});
            Api::<Application>::all((*client).clone())
                .patch(
                    &application.name_any(),
                    &Default::default(),
                    &kube::api::Patch::Merge(&patch),
                )
                .await?;
        }
        Ok(Action::await_change())
    }
    naive(client, reconcile)
}

/// Believes its cache: removes what an application that skips its installation should not have.
fn trusts_its_cache(client: Client, _: Clock, _: Chance, _: Outside) -> BoxFuture<'static, ()> {
    async fn reconcile(
        application: Arc<Application>,
        client: Arc<Client>,
    ) -> Result<Action, kube::Error> {
        let channels: Api<Channel> = Api::namespaced((*client).clone(), "kyma-integration");
        let name = application.name_any();
        match (
            application.spec.skip_installation,
            channels.get_opt(&name).await?.is_some(),
        ) {
            (true, true) => drop(channels.delete(&name, &DeleteParams::default()).await?),
            (false, false) => {
                create(&channels, json!({"metadata": {"name": name}, "spec": {}})).await?
            }
            _ => {}
        }
        Ok(Action::await_change())
    }
    naive(client, reconcile)
}

async fn create(channels: &Api<Channel>, mut child: serde_json::Value) -> Result<(), kube::Error> {
    child["apiVersion"] = json!("messaging.knative.dev/v1");
    child["kind"] = json!("Channel");
    let child: Channel = serde_json::from_value(child).unwrap();
    channels
        .create(&PostParams::default(), &child)
        .await
        .map(drop)
}

fn naive<F, R>(client: Client, reconcile: F) -> BoxFuture<'static, ()>
where
    F: FnMut(Arc<Application>, Arc<Client>) -> R + Send + 'static,
    R: Future<Output = Result<Action, kube::Error>> + Send + 'static,
{
    let controller = Controller::new(
        Api::<Application>::all(client.clone()),
        watcher::Config::default(),
    );
    let retry = |_: Arc<Application>, _: &kube::Error, _: Arc<Client>| {
        Action::requeue(Duration::from_secs(1))
    };
    Box::pin(async move {
        controller
            .run(reconcile, retry, Arc::new(client))
            .for_each(|_| futures::future::ready(()))
            .await;
    })
}

#[test]
fn a_controller_that_generates_names_is_caught() {
    let findings = sweep_all(
        |_| generates_names,
        |story| story.name == "an application is created",
    );
    assert!(
        !findings.violations.is_empty(),
        "{} trials found nothing",
        findings.trials
    );
}

#[test]
fn a_controller_that_trusts_its_cache_is_caught() {
    let findings = sweep_all(
        |_| trusts_its_cache,
        |story| story.name == "nothing is set up, then everything",
    );
    assert!(
        findings
            .violations
            .iter()
            .any(|(_, _, what)| what.contains("was removed")),
        "{} trials: {:?}",
        findings.trials,
        findings.violations
    );
}
