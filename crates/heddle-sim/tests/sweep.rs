//! Every single fault against heddle's controllers, and against two that are wrong on purpose.

#![expect(clippy::unwrap_used, reason = "a test says what failed by failing")]

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use heddle_api::{Application, Channel, ServiceInstance};
use heddle_controllers::{Bundles, DataPlane, Options};
use heddle_rt::{Chance, Clock};
use heddle_sim::plane::TestPlane;
use heddle_sim::stage::registry;
use heddle_sim::sweep::{
    Controllers, Fault, Findings, Outside, RESYNC, Story, WriteFault, stories, sweep_by,
};
use kube::api::{DeleteParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

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

fn sweep_all(
    controllers: impl Fn(&Story) -> Controllers + Copy + Send,
    chosen: impl Fn(&Story) -> bool,
) -> Findings {
    sweep_most(controllers, chosen, most(), |_| true)
}

/// Two threads, because the stories are independent of each other.
fn sweep_most(
    controllers: impl Fn(&Story) -> Controllers + Copy + Send,
    chosen: impl Fn(&Story) -> bool,
    most: usize,
    counts: fn(&Fault) -> bool,
) -> Findings {
    let stories: Vec<Story> = stories().into_iter().filter(chosen).collect();
    let mut total = Findings::default();
    std::thread::scope(|scope| {
        let halves: Vec<_> = (0..2)
            .map(|half| {
                let mine: Vec<Story> = stories.iter().skip(half).step_by(2).cloned().collect();
                let run = move |story: &Story| {
                    sweep_by(registry(), story, controllers(story), most, counts)
                };
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

/// Whoever works on one part sweeps its stories only: `HEDDLE_STORY=bundle` picks those with that word in their names.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs a suite says what of it"
)]
fn word() -> String {
    std::env::var("HEDDLE_STORY").unwrap_or_default()
}

#[test]
fn whatever_single_fault_strikes_the_end_is_the_same() {
    let word = word();
    let findings = sweep_all(ours, |story| story.name.contains(&word));
    println!("{} trials", findings.trials);
    held(&findings, if word.is_empty() { 300 } else { 0 });
}

/// The first of these stories has every action but update in it, the second has that.
#[test]
fn wherever_a_crash_strikes_no_action_of_a_bundle_runs_twice() {
    let stories = [
        "a bundle is made, bound, given back and removed",
        "a bundle is updated and upgraded",
    ];
    let crashes = |fault: &Fault| {
        let crashes = [WriteFault::CrashBefore, WriteFault::CrashAfter];
        matches!(fault, Fault::Write { fault, .. } if crashes.contains(fault))
    };
    let chosen = |story: &Story| stories.contains(&story.name);
    let findings = sweep_most(ours, chosen, usize::MAX, crashes);
    println!("{} trials", findings.trials);
    held(&findings, 50);
}

/// Checks that nothing was found, and that there was enough to find.
fn held(findings: &Findings, trials_min: usize) {
    assert!(
        findings.trials > trials_min,
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

/// Starts a run and writes that down afterwards: a crash in between starts another.
fn starts_before_it_says_so(
    client: Client,
    clock: Clock,
    _: Chance,
    outside: Outside,
) -> BoxFuture<'static, ()> {
    let instances = Api::<ServiceInstance>::namespaced(client, "team-a");
    let controller = Controller::new(instances.clone(), watcher::Config::default());
    let reconcile = move |instance: Arc<ServiceInstance>, _: Arc<()>| {
        let (instances, clock, runs) = (
            instances.clone(),
            clock.clone(),
            outside.bundles.runs.clone(),
        );
        async move {
            if instance.annotations().contains_key("started") {
                return Ok::<_, kube::Error>(Action::await_change());
            }
            let run = json!({
                "id": clock.now().to_string(), "action": "provision", "manifestDigest": "sha256:1", "instance": "i",
                "variables": {"_apb_service_instance_id": instance.name_any()},
                "limits": {"memoryBytes": 1, "processes": 1, "seconds": 1, "network": false},
            });
            runs.start(serde_json::from_value(run).unwrap())
                .await
                .unwrap();
            let patch = json!({"metadata": {"annotations": {"started": "yes"}}});
            let patch = kube::api::Patch::Merge(&patch);
            instances
                .patch(&instance.name_any(), &Default::default(), &patch)
                .await?;
            Ok(Action::await_change())
        }
    };
    let retry = |_: Arc<ServiceInstance>, _: &kube::Error, _: Arc<()>| {
        Action::requeue(Duration::from_secs(1))
    };
    Box::pin(async move {
        controller
            .run(reconcile, retry, Arc::new(()))
            .for_each(|_| futures::future::ready(()))
            .await;
    })
}

#[test]
fn a_controller_that_starts_before_it_says_so_is_caught() {
    let findings = sweep_most(
        |_| starts_before_it_says_so,
        |story| story.name == "a bundle is made and bound",
        usize::MAX,
        |fault| matches!(fault, Fault::Write { .. }),
    );
    let twice = |(_, _, what): &(String, Fault, String)| what.contains("provision of i");
    assert!(
        findings.violations.iter().any(twice),
        "{} trials: {:?}",
        findings.trials,
        findings.violations
    );
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
