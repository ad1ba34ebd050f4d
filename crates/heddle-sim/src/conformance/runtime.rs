//! What controllers are made of, used as they use it: reflectors, finalizers, owned children, notices and leases.
//!
//! A `Controller` waits itself for its store to be filled and only one waiter is ever woken, so nothing here waits for the
//! store of a Controller; readers have a reflector of their own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use heddle_api::Trigger;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use k8s_openapi::api::events::v1::Event as Notice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use serde_json::json;

use super::subject::{config_map, trigger};
use super::{PATIENCE, Scope, ensure_eq, group};

group!("runtime":
    a_reflector_follows_every_change,
    a_reflector_follows_a_streaming_list,
    a_controller_repairs_what_it_owns,
    a_finalizer_runs_its_cleanup_before_the_end,
    repeated_notices_become_a_series,
    one_candidate_leads_and_hands_over,
);

const FINALIZER: &str = "conformance.heddle.dev/cleanup";

async fn a_reflector_follows_every_change(client: Client, scope: Scope) -> Result<()> {
    // Pages of one object make the reflector ask for the next page.
    follow(client, scope, watcher::Config::default().page_size(1)).await
}

async fn a_reflector_follows_a_streaming_list(client: Client, scope: Scope) -> Result<()> {
    follow(client, scope, watcher::Config::default().streaming_lists()).await
}

async fn follow(client: Client, scope: Scope, config: watcher::Config) -> Result<()> {
    let api = scope.objects::<Trigger>(&client);
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &trigger(name)).await?;
    }
    let (store, writer) = reflector::store::<Trigger>();
    let mut events = watcher(api.clone(), config).reflect(writer).boxed();
    let names = || -> Vec<String> {
        let mut names: Vec<_> = store
            .state()
            .iter()
            .map(|object| object.name_any())
            .collect();
        names.sort();
        names
    };
    until(&mut events, || names() == ["a", "b", "c"]).await?;
    api.delete("b", &DeleteParams::default()).await?;
    api.create(&PostParams::default(), &trigger("d")).await?;
    until(&mut events, || names() == ["a", "c", "d"]).await?;
    let change = json!({"metadata": {"labels": {"tier": "gold"}}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(&change))
        .await?;
    let key = ObjectRef::new("a").within(&scope.namespace);
    until(&mut events, || {
        store
            .get(&key)
            .is_some_and(|object| object.labels().contains_key("tier"))
    })
    .await
}

/// Drives a watcher until what it feeds looks as expected.
async fn until<S>(events: &mut S, done: impl Fn() -> bool) -> Result<()>
where
    S: futures::Stream<Item = Result<watcher::Event<Trigger>, watcher::Error>> + Unpin,
{
    let drive = async {
        while !done() {
            events.try_next().await?.context("the watcher ended")?;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, drive)
        .await
        .context("the reflector does not get there")?
}

/// What the controllers of these checks know.
struct Context {
    client: Client,
    namespace: String,
}

async fn a_controller_repairs_what_it_owns(client: Client, scope: Scope) -> Result<()> {
    let triggers = scope.objects::<Trigger>(&client);
    let children = scope.objects::<ConfigMap>(&client);
    let controller = Controller::new(triggers.clone(), watcher::Config::default())
        .owns(children.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_millis(100)),
            context(&client, &scope),
        )
        .for_each(|_| std::future::ready(()));
    let story = async {
        triggers
            .create(&PostParams::default(), &trigger("a"))
            .await?;
        let has = |uri: &'static str| {
            move |map: Option<&ConfigMap>| {
                map.and_then(|map| map.data.as_ref())
                    .is_some_and(|data| data["uri"] == uri)
            }
        };
        let child = await_condition(children.clone(), "a", has("http://orders.example")).await?;
        let first = child.and_then(|child| child.uid()).context("no child")?;
        // The owner changes, somebody spoils the child, somebody deletes it: each time it becomes what it should be.
        let change = json!({"spec": {"subscriber": {"uri": "http://new.example"}}});
        triggers
            .patch("a", &PatchParams::default(), &Patch::Merge(&change))
            .await?;
        await_condition(children.clone(), "a", has("http://new.example")).await?;
        let spoil = json!({"data": {"uri": "http://evil.example"}});
        children
            .patch("a", &PatchParams::default(), &Patch::Merge(&spoil))
            .await?;
        await_condition(children.clone(), "a", has("http://new.example")).await?;
        children.delete("a", &DeleteParams::default()).await?;
        let anew =
            |map: Option<&ConfigMap>| map.is_some_and(|map| map.uid() != Some(first.clone()));
        await_condition(children.clone(), "a", anew).await?;
        // The status was applied as well, by the same reconciler.
        let observed = |object: Option<&Trigger>| {
            object.is_some_and(|object| {
                object
                    .status
                    .as_ref()
                    .is_some_and(|status| status.observed_generation == object.metadata.generation)
            })
        };
        await_condition(triggers.clone(), "a", observed).await?;
        anyhow::Ok(())
    };
    alongside(controller, story).await
}

/// Applies one ConfigMap per Trigger, and the status.
async fn reconcile(object: Arc<Trigger>, context: Arc<Context>) -> kube::Result<Action> {
    let name = object.name_any();
    let apply = PatchParams::apply("conformance-controller").force();
    let children: Api<ConfigMap> = Api::namespaced(context.client.clone(), &context.namespace);
    let uri = object.spec.subscriber.uri.clone().unwrap_or_default();
    let mut child = config_map(&name, "uri", &uri);
    child.metadata.owner_references = object.controller_owner_ref(&()).map(|owner| vec![owner]);
    children.patch(&name, &apply, &Patch::Apply(child)).await?;
    let triggers: Api<Trigger> = Api::namespaced(context.client.clone(), &context.namespace);
    let status = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "status": {"observedGeneration": object.metadata.generation},
    });
    triggers
        .patch_status(&name, &apply, &Patch::Apply(status))
        .await?;
    Ok(Action::await_change())
}

async fn a_finalizer_runs_its_cleanup_before_the_end(client: Client, scope: Scope) -> Result<()> {
    let triggers = scope.objects::<Trigger>(&client);
    let records = scope.objects::<ConfigMap>(&client);
    let controller = Controller::new(triggers.clone(), watcher::Config::default())
        .run(
            finalize,
            |_, _, _| Action::requeue(Duration::from_millis(100)),
            context(&client, &scope),
        )
        .for_each(|_| std::future::ready(()));
    let story = async {
        let created = triggers
            .create(&PostParams::default(), &trigger("a"))
            .await?;
        let held = |object: Option<&Trigger>| {
            object.is_some_and(|object| object.finalizers() == [FINALIZER])
        };
        await_condition(triggers.clone(), "a", held).await?;
        await_condition(records.clone(), "applied", conditions::is_created()).await?;
        ensure!(records.get_opt("cleaned-up").await?.is_none());
        triggers.delete("a", &DeleteParams::default()).await?;
        let uid = created.uid().context("no uid")?;
        await_condition(triggers.clone(), "a", conditions::is_deleted(&uid)).await?;
        records
            .get("cleaned-up")
            .await
            .context("the object went before its cleanup")?;
        anyhow::Ok(())
    };
    alongside(controller, story).await
}

/// Leaves a ConfigMap behind for each of the two things a finalizer can ask for.
async fn finalize(
    object: Arc<Trigger>,
    context: Arc<Context>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let triggers: Api<Trigger> = Api::namespaced(context.client.clone(), &context.namespace);
    let records: Api<ConfigMap> = Api::namespaced(context.client.clone(), &context.namespace);
    finalizer(&triggers, FINALIZER, object, |event| async move {
        let name = match event {
            finalizer::Event::Apply(_) => "applied",
            finalizer::Event::Cleanup(_) => "cleaned-up",
        };
        let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        records
            .patch(
                name,
                &PatchParams::apply("conformance"),
                &Patch::Apply(record),
            )
            .await?;
        Ok(Action::await_change())
    })
    .await
}

async fn repeated_notices_become_a_series(client: Client, scope: Scope) -> Result<()> {
    let object = scope
        .objects::<Trigger>(&client)
        .create(&PostParams::default(), &trigger("a"))
        .await?;
    let reporter = Reporter {
        controller: "conformance.heddle.dev".to_owned(),
        instance: Some("conformance-0".to_owned()),
    };
    let recorder = Recorder::new(client.clone(), reporter);
    let event = Event {
        type_: EventType::Normal,
        reason: "Checked".to_owned(),
        note: Some("all is well".to_owned()),
        action: "Checking".to_owned(),
        secondary: None,
    };
    let about: ObjectReference = object.object_ref(&());
    for _ in 0..3 {
        recorder.publish(&event, &about).await?;
    }
    let notices = scope.objects::<Notice>(&client);
    let found = notices.list(&ListParams::default()).await?;
    ensure_eq!(found.items.len(), 1);
    let notice = &found.items[0];
    ensure_eq!(notice.reason.as_deref(), Some("Checked"));
    ensure_eq!(notice.note.as_deref(), Some("all is well"));
    ensure_eq!(notice.series.as_ref().map(|series| series.count), Some(3));
    let regarding = notice.regarding.as_ref().context("about nothing")?;
    ensure_eq!(regarding.uid, object.uid());
    Ok(())
}

async fn one_candidate_leads_and_hands_over(client: Client, scope: Scope) -> Result<()> {
    let first = candidate(&client, &scope, "first").await?;
    let second = candidate(&client, &scope, "second").await?;
    ensure!(tokio::time::timeout(PATIENCE, first.changed()).await??);
    let lease = scope.objects::<Lease>(&client).get("leader").await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    ensure_eq!(holder.as_deref(), Some("first"));
    // While the first one renews, the second one does not lead; it does as soon as the first one lets go.
    let waiting = async {
        let leads = second.changed().await?;
        anyhow::Ok((leads, first.release().await))
    };
    let handing_over = async {
        // The first renews at least once: its lease shows a later time.
        let renewed = {
            let leases = scope.objects::<Lease>(&client);
            let before = leases.get("leader").await?;
            let later = move |lease: Option<&Lease>| {
                lease.is_some_and(|lease| {
                    lease
                        .spec
                        .as_ref()
                        .and_then(|spec| spec.renew_time.as_ref())
                        > before
                            .spec
                            .as_ref()
                            .and_then(|spec| spec.renew_time.as_ref())
                })
            };
            await_condition(leases, "leader", later)
        };
        tokio::select! {
            renewed = renewed => { renewed?; }
            changed = first.changed() => { anyhow::bail!("the first lost its lease: {changed:?}"); }
        }
        first.release().await?;
        anyhow::Ok(())
    };
    let both = futures::future::try_join(waiting, handing_over);
    let ((leads, _), ()) = tokio::time::timeout(PATIENCE, both)
        .await
        .context("the lease was not handed over")??;
    ensure!(leads, "the second does not lead");
    let lease = scope.objects::<Lease>(&client).get("leader").await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    ensure_eq!(holder.as_deref(), Some("second"));
    Ok(())
}

async fn candidate(client: &Client, scope: &Scope, identity: &str) -> Result<LeaseManager> {
    Ok(LeaseManagerBuilder::new(client.clone(), "leader")
        .with_namespace(&scope.namespace)
        .with_identity(identity)
        .with_duration(5)
        .with_grace(3)
        .build()
        .await?)
}

fn context(client: &Client, scope: &Scope) -> Arc<Context> {
    Arc::new(Context {
        client: client.clone(),
        namespace: scope.namespace.clone(),
    })
}

/// Runs a controller for as long as a story takes.
async fn alongside(
    controller: impl Future<Output = ()>,
    story: impl Future<Output = Result<()>>,
) -> Result<()> {
    tokio::select! {
        outcome = tokio::time::timeout(PATIENCE, story) => outcome.context("the controller does not get there")?,
        () = controller => anyhow::bail!("the controller ended"),
    }
}
