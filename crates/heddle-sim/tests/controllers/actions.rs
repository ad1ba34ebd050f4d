//! What the controllers promise about instances and bindings of bundles, on simulated time and the real API server, with
//! runs that do what they are told.
//!
//! Here the test is the OSB front and the registry: it writes what they would have written.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::action::{Action, Outcome, Run};
use heddle_api::operation::{
    OperationKind, OperationProgress, OperationState, RunReport, RunResult,
};
use heddle_api::record::{About, Record};
use heddle_api::service_binding::SECRET_KEY;
use heddle_api::service_instance::{Phase, provision_secret};
use heddle_api::well_known::{ABANDON_ANNOTATION, FINALIZER, SYSTEM_NAMESPACE};
use heddle_api::{Bundle, BundleRevision, ServiceBinding, ServiceInstance};
use heddle_controllers::{Bundles, Options};
use heddle_sim::bundles::runs::{Script, ScriptedRuns, description};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde_json::{Value, json};

use crate::world::{self, A_WHILE, TEAM, Users};

/// Longer than every script, every pause of the controllers and the grace of a minute.
const LONGER: Duration = Duration::from_secs(90);

struct World {
    users: Users,
    runs: ScriptedRuns,
}

fn tell<F: Future<Output = ()>>(story: impl FnOnce(World) -> F) {
    tell_with(true, story);
}

/// The same in a world that runs bundles or does not.
fn tell_with<F: Future<Output = ()>>(runs_bundles: bool, story: impl FnOnce(World) -> F) {
    let provide = |options: &mut Options| {
        let runs = ScriptedRuns::new(options.clock.clone());
        let bundles: Arc<dyn Bundles> = Arc::new(runs.clone());
        options.bundles = runs_bundles.then_some(bundles);
        runs
    };
    world::tell(provide, |users, runs| story(World { users, runs }));
}

fn reference(version: &str) -> Value {
    json!({"name": format!("db-{version}"), "digest": format!("sha256:{version}"), "bundleVersion": version})
}

impl World {
    async fn rest(&self, pause: Duration) {
        self.users.clock.sleep(pause).await;
    }

    async fn state<K>(&self, api: Api<K>, name: &str, status: Value)
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let patch = json!({"status": status});
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    async fn revision(&self, version: &str) {
        let spec = json!({
            "bundle": "db", "registry": "hub", "image": "registry.example/db",
            "manifestDigest": format!("sha256:{version}"), "configDigest": "sha256:c",
            "bundleVersion": version, "description": description("db"),
        });
        let object = json!({"metadata": {"name": format!("db-{version}")}, "spec": spec});
        let revisions = Api::<BundleRevision>::all(self.users.client.clone());
        self.users.create(revisions, object).await;
    }

    /// A registry that was never read.
    async fn registry(&self) {
        self.runs.hold_readings(true);
        let spec = json!({"type": "apiv2", "url": "http://registry.example"});
        let object = json!({"metadata": {"name": "hub"}, "spec": spec});
        let registries = Api::<heddle_api::Registry>::all(self.users.client.clone());
        self.users.create(registries, object).await;
    }

    /// The registry answers at last.
    fn converge(&self) {
        self.runs.hold_readings(false);
    }

    async fn bundle(&self, version: &str, phase: &str) {
        let spec =
            json!({"registry": "hub", "repository": "db", "track": "latest", "serviceID": "db"});
        let bundles = || Api::<Bundle>::all(self.users.client.clone());
        let object = json!({"metadata": {"name": "db"}, "spec": spec});
        self.users.create(bundles(), object).await;
        let absence = json!({"reason": "TagRemoved", "readings": 1, "syncRun": "run"});
        let status = json!({
            "phase": phase, "currentRevision": format!("db-{version}"),
            "seen": {
                "digest": format!("sha256:{version}"), "revision": format!("db-{version}"),
                "absence": (phase == "Marked").then_some(absence),
            },
        });
        self.state(bundles(), "db", status).await;
    }

    async fn provision_spec(&self, change: Value) {
        let mut spec = json!({
            "instanceID": "i", "serviceID": "db", "planID": "small", "revisionRef": reference("1.0.0"),
            "originatingIdentity": {"platform": "kubernetes", "value": {"username": "ada"}},
            "operation": self.users.operation("make", OperationKind::Provision),
        });
        for (key, value) in change.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let object = json!({"metadata": {"name": "i", "finalizers": [FINALIZER]}, "spec": spec});
        self.users
            .create(self.users.team::<ServiceInstance>(), object)
            .await;
    }

    /// An instance of version 1.0.0, made and at rest.
    async fn provisioned(&self) {
        self.provision_spec(json!({})).await;
        self.revision("1.0.0").await;
        self.rest(A_WHILE).await;
        self.check(OperationState::Succeeded, Phase::Running).await;
    }

    async fn bind(&self, parameters: Value) {
        let object = json!({
            "metadata": {"name": "b", "finalizers": [FINALIZER]},
            "spec": {
                "bindingID": "b", "instanceRef": {"name": "i"}, "serviceID": "db", "planID": "small",
                "parameters": parameters, "revisionRef": reference("1.0.0"),
                "operation": self.users.operation("bind", OperationKind::Bind),
            },
        });
        self.users
            .create(self.users.team::<ServiceBinding>(), object)
            .await;
    }

    /// Accepts another operation, with what else it changes, as one write.
    async fn accept<K>(&self, name: &str, id: &str, kind: OperationKind, change: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let mut spec = change;
        spec["operation"] = self.users.operation(id, kind);
        self.meddle::<K>(name, json!({"spec": spec})).await;
    }

    async fn meddle<K>(&self, name: &str, patch: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let params = PatchParams::default();
        let api = self.users.team::<K>();
        api.patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    async fn deprovision(&self, id: &str) {
        let kind = OperationKind::Deprovision;
        self.accept::<ServiceInstance>("i", id, kind, json!({}))
            .await;
    }

    async fn instance(&self) -> ServiceInstance {
        self.users.team().get("i").await.unwrap()
    }

    async fn binding(&self) -> ServiceBinding {
        self.users.team().get("b").await.unwrap()
    }

    async fn run(&self) -> RunReport {
        self.instance().await.status.unwrap().run.unwrap()
    }

    /// Checks where the instance stands, and answers with what is said about its operation.
    async fn check(&self, state: OperationState, phase: Phase) -> String {
        let status = self.instance().await.status.unwrap();
        let operation = status.operation.clone().unwrap();
        let seen = (operation.state, status.phase.unwrap());
        assert_eq!(seen, (state, phase), "{status:#?}");
        operation.description.unwrap_or_default()
    }

    async fn bound(&self) -> OperationProgress {
        self.binding().await.status.unwrap().operation.unwrap()
    }

    async fn content(&self, secret: &str) -> Option<Value> {
        let secret: Option<Secret> = self.users.team().get_opt(secret).await.unwrap();
        let data = secret?.data.unwrap();
        serde_json::from_slice(&data[SECRET_KEY].0).ok()
    }

    async fn is_gone(&self) -> bool {
        let found = self
            .users
            .team::<ServiceInstance>()
            .get_opt("i")
            .await
            .unwrap();
        found.is_none()
    }

    /// Checks that nothing is left but the record, and answers with what that says.
    async fn farewell(&self) -> OperationProgress {
        assert!(self.is_gone().await, "{:#?}", self.instance().await.status);
        let secrets = self
            .users
            .team::<Secret>()
            .list(&ListParams::default())
            .await;
        assert_eq!(secrets.unwrap().items.len(), 0, "a Secret is left");
        assert_eq!(self.runs.known(), Vec::<String>::new(), "runs are left");
        assert_eq!(self.runs.repeated(), Vec::<String>::new());
        let records = Api::<ConfigMap>::namespaced(self.users.client.clone(), SYSTEM_NAMESPACE);
        let name = About::Instance("i".to_owned()).record_name(TEAM);
        let record = Record::from_config_map(&records.get(&name).await.unwrap());
        record.unwrap().operation.unwrap()
    }
}

fn text<'a>(run: &'a Run, name: &str) -> &'a Value {
    run.variables.get(name).unwrap_or(&Value::Null)
}

#[test]
fn an_instance_is_made_bound_changed_given_back_and_removed() {
    tell(|world| async move {
        let admin = json!({"admin": "root", "password": "hush-hush"});
        let made = Script {
            dashboard_url: Some("http://db.example/ui".to_owned()),
            ..Script::hands_out(admin.clone())
        };
        world.runs.script(Action::Provision, [made]);
        let user = json!({"user": "b", "password": "whisper"});
        world
            .runs
            .script(Action::Bind, [Script::hands_out(user.clone())]);
        world.provisioned().await;
        let status = world.instance().await.status.unwrap();
        assert!(status.conditions.is_ready());
        assert_eq!(status.dashboard_url.unwrap(), "http://db.example/ui");
        assert_eq!(
            json!(status.applied.unwrap().revision_ref),
            reference("1.0.0")
        );
        let secret = provision_secret("i");
        assert_eq!(world.content(&secret).await, Some(admin.clone()));
        let run = world.run().await;
        assert_eq!((run.attempt, run.result), (1, Some(RunResult::Succeeded)));

        world.bind(json!({"mode": "ro"})).await;
        world.rest(A_WHILE).await;
        assert_eq!(world.bound().await.state, OperationState::Succeeded);
        assert_eq!(world.content("b").await, Some(user.clone()));

        let change = json!({"parameters": {"size": 2}, "planID": "large"});
        world
            .accept::<ServiceInstance>("i", "change", OperationKind::Update, change)
            .await;
        world.rest(A_WHILE).await;
        world.check(OperationState::Succeeded, Phase::Running).await;
        let applied = world.instance().await.status.unwrap().applied.unwrap();
        assert_eq!(applied.plan_id, "large");

        world
            .accept::<ServiceBinding>("b", "unbind", OperationKind::Unbind, json!({}))
            .await;
        world.rest(A_WHILE).await;
        assert_eq!(world.content("b").await, None);
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        let farewell = world.farewell().await;
        assert_eq!(farewell.id, "drop");
        assert_eq!(farewell.state, OperationState::Succeeded);

        let executed = world.runs.executed();
        let actions: Vec<_> = executed.iter().map(|run| run.action).collect();
        let in_order = [
            Action::Provision,
            Action::Bind,
            Action::Update,
            Action::Unbind,
            Action::Deprovision,
        ];
        assert_eq!(actions, in_order);
        for run in &executed {
            assert_eq!(text(run, "_apb_service_instance_id"), "i");
            assert_eq!(text(run, "_apb_service_class_id"), "db");
            assert_eq!(text(run, "_apb_bundle_version"), "1.0.0");
            assert_eq!(text(run, "namespace"), TEAM);
            assert_eq!(run.manifest_digest, "sha256:1.0.0");
        }
        let [provision, bind, update, unbind, deprovision] = &executed[..] else {
            unreachable!("they were counted");
        };
        assert_eq!(text(provision, "_apb_plan_id"), "small");
        assert_eq!(text(provision, "_apb_last_requesting_user"), "ada");
        assert_eq!(text(provision, "size"), 1, "a default is told");
        assert_eq!(text(bind, "mode"), "ro");
        assert_eq!(text(bind, "_apb_service_binding_id"), "b");
        assert_eq!(text(bind, "_apb_provision_creds"), &admin);
        assert_eq!(text(update, "_apb_plan_id"), "large");
        assert_eq!(text(update, "_apb_previous_bundle_version"), "1.0.0");
        assert_eq!(text(unbind, "_apb_bind_creds"), &user);
        assert_eq!(text(deprovision, "_apb_provision_creds"), &admin);
        assert_eq!(text(deprovision, "size"), 2, "what is in force is told");
        assert_eq!(
            world.runs.gone(),
            std::slice::from_ref(&deprovision.instance)
        );
    });
}

#[test]
fn a_failed_provision_says_why_but_no_secret_and_is_cleaned_up() {
    tell(|world| async move {
        let failed = Outcome::Failed {
            code: 3,
            message: Some("cannot log in with open-sesame: no room".to_owned()),
        };
        world.runs.script(Action::Provision, [Script::ends(failed)]);
        let parameters = json!({"admin_password": "open-sesame"});
        world
            .provision_spec(json!({"parameters": parameters}))
            .await;
        world.revision("1.0.0").await;
        world.rest(A_WHILE).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert_eq!(
            line,
            "provision failed with exit code 3: cannot log in with …: no room"
        );
        let status = json!(world.instance().await.status);
        assert!(!status.to_string().contains("sesame"), "{status}");
        // Nobody tries again by himself.
        world.rest(Duration::from_secs(7200)).await;
        assert_eq!(world.runs.actions(), ["provision"]);
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        assert_eq!(world.farewell().await.state, OperationState::Succeeded);
        assert_eq!(world.runs.actions(), ["provision", "deprovision"]);
    });
}

#[test]
fn what_never_ran_needs_no_removal() {
    tell(|world| async move {
        world.runs.set_kept("sha256:1.0.0", false);
        world.provision_spec(json!({})).await;
        world.revision("1.0.0").await;
        world.rest(LONGER).await;
        let line = world
            .check(OperationState::InProgress, Phase::Provisioning)
            .await;
        assert!(line.contains("is not kept here yet"), "{line}");
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        assert_eq!(world.farewell().await.state, OperationState::Succeeded);
        assert_eq!(world.runs.actions(), Vec::<&str>::new());
    });
}

#[test]
fn what_could_not_be_started_needs_no_removal() {
    tell(|world| async move {
        let why = "the kernel has no user namespaces".to_owned();
        let outcome = Outcome::NotStarted { why };
        world
            .runs
            .script(Action::Provision, [Script::ends(outcome)]);
        world.provision_spec(json!({})).await;
        world.revision("1.0.0").await;
        world.rest(A_WHILE).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert!(line.contains("no user namespaces"), "{line}");
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        world.farewell().await;
        assert_eq!(world.runs.actions(), ["provision"]);
    });
}

#[test]
fn a_runner_that_refuses_is_asked_again() {
    tell(|world| async move {
        world.runs.set_refusal(Some("too many runs at once"));
        world.provision_spec(json!({})).await;
        world.revision("1.0.0").await;
        world.rest(A_WHILE).await;
        let line = world
            .check(OperationState::InProgress, Phase::Provisioning)
            .await;
        assert!(line.contains("too many runs at once"), "{line}");
        world.runs.set_refusal(None);
        world.rest(LONGER).await;
        world.check(OperationState::Succeeded, Phase::Running).await;
        assert_eq!(world.runs.actions(), ["provision"]);
    });
}

#[test]
fn whoever_is_removed_while_it_is_made_is_called_off_and_cleaned_up() {
    tell(|world| async move {
        let endless = Script {
            progress: Some("formatting the disk".to_owned()),
            ..Script::endless()
        };
        world.runs.script(Action::Provision, [endless]);
        world.provision_spec(json!({})).await;
        world.revision("1.0.0").await;
        world.rest(A_WHILE).await;
        let line = world
            .check(OperationState::InProgress, Phase::Provisioning)
            .await;
        assert!(line.contains("formatting the disk"), "{line}");
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        assert_eq!(world.farewell().await.state, OperationState::Succeeded);
        assert_eq!(world.runs.actions(), ["provision", "deprovision"]);
    });
}

#[test]
fn at_the_deadline_a_run_is_called_off_and_nothing_else_is_begun() {
    tell(|world| async move {
        world.runs.script(Action::Provision, [Script::endless()]);
        world.provision_spec(json!({})).await;
        world.revision("1.0.0").await;
        world.rest(Duration::from_secs(3_230)).await;
        world
            .check(OperationState::InProgress, Phase::Provisioning)
            .await;
        world.rest(A_WHILE).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert!(
            line.starts_with("not done by 2027-01-15T08:54:00Z: "),
            "{line}"
        );
        let run = world.run().await;
        assert_eq!(run.ended.as_deref(), Some("was called off"));
        assert_eq!(run.result, Some(RunResult::Failed));
        world.rest(Duration::from_secs(7_200)).await;
        assert_eq!(world.runs.actions(), ["provision"]);
        assert_eq!(world.runs.known(), Vec::<String>::new());
    });
}

#[test]
fn an_image_that_comes_after_the_deadline_comes_too_late() {
    tell(|world| async move {
        world.runs.set_kept("sha256:1.0.0", false);
        world.provision_spec(json!({})).await;
        world.revision("1.0.0").await;
        world.rest(Duration::from_secs(3_300)).await;
        world.check(OperationState::Failed, Phase::Failed).await;
        world.runs.set_kept("sha256:1.0.0", true);
        world.rest(Duration::from_secs(3_300)).await;
        assert_eq!(world.runs.actions(), Vec::<&str>::new());
    });
}

#[test]
fn an_interrupted_provision_fails_and_an_interrupted_removal_is_begun_again() {
    tell(|world| async move {
        let interrupted = || Script::ends(Outcome::Interrupted);
        world.runs.script(Action::Provision, [interrupted()]);
        let removals = [interrupted(), interrupted(), Script::default()];
        world.runs.script(Action::Deprovision, removals);
        world.provision_spec(json!({})).await;
        world.revision("1.0.0").await;
        world.rest(A_WHILE).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert!(line.starts_with("provision was interrupted"), "{line}");
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        assert_eq!(world.farewell().await.state, OperationState::Succeeded);
        let executed = world.runs.executed();
        assert_eq!(executed.len(), 4, "one provision, three removals");
    });
}

#[test]
fn a_removal_that_fails_is_never_silent_and_can_be_asked_for_again() {
    tell(|world| async move {
        let failed = Outcome::Failed {
            code: 1,
            message: Some("still in use".to_owned()),
        };
        let removals = [Script::ends(failed), Script::default()];
        world.runs.script(Action::Deprovision, removals);
        world.provisioned().await;
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert!(
            line.starts_with("deprovision failed with exit code 1: still in use; "),
            "{line}"
        );
        assert!(line.contains(ABANDON_ANNOTATION), "{line}");
        world.rest(Duration::from_secs(7_200)).await;
        assert_eq!(world.runs.actions(), ["provision", "deprovision"]);
        world.deprovision("drop-2").await;
        world.rest(A_WHILE).await;
        assert_eq!(world.farewell().await.id, "drop-2");
    });
}

#[test]
fn what_was_deleted_by_hand_is_removed_until_that_succeeds() {
    tell(|world| async move {
        let failed = || {
            Script::ends(Outcome::Failed {
                code: 1,
                message: None,
            })
        };
        let removals = [failed(), failed(), Script::default()];
        world.runs.script(Action::Deprovision, removals);
        world.provisioned().await;
        let instances = world.users.team::<ServiceInstance>();
        instances
            .delete("i", &DeleteParams::default())
            .await
            .unwrap();
        world.rest(A_WHILE).await;
        assert_eq!(world.runs.actions(), ["provision", "deprovision"]);
        world.rest(Duration::from_secs(300)).await;
        assert!(world.is_gone().await);
        assert_eq!(world.runs.executed().len(), 4);
        assert_eq!(world.runs.repeated(), Vec::<String>::new());
    });
}

#[test]
fn a_revision_removed_by_force_fails_the_removal_until_somebody_lets_it_go() {
    tell(|world| async move {
        world.provisioned().await;
        let revisions = Api::<BundleRevision>::all(world.users.client.clone());
        let free = json!({"metadata": {"finalizers": null}});
        let params = PatchParams::default();
        let free = Patch::Merge(&free);
        revisions.patch("db-1.0.0", &params, &free).await.unwrap();
        let delete = DeleteParams::default();
        revisions.delete("db-1.0.0", &delete).await.unwrap();
        world.deprovision("drop").await;
        world.rest(LONGER).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert!(
            line.starts_with("BundleRevision db-1.0.0 does not exist, so deprovision cannot run"),
            "{line}"
        );
        assert!(line.contains(ABANDON_ANNOTATION), "{line}");
        let annotation = json!({"metadata": {"annotations": {ABANDON_ANNOTATION: "true"}}});
        world.meddle::<ServiceInstance>("i", annotation).await;
        world.rest(A_WHILE).await;
        let farewell = world.farewell().await;
        let line = farewell.description.unwrap();
        assert!(line.contains("removed without deprovision"), "{line}");
        assert_eq!(world.runs.actions(), ["provision"]);
    });
}

#[test]
fn an_upgrade_pins_the_instance_anew() {
    tell(|world| async move {
        world.provisioned().await;
        world.revision("2.0.0").await;
        let change =
            json!({"revisionRef": reference("2.0.0"), "maintenanceInfo": {"version": "2.0.0"}});
        world
            .accept::<ServiceInstance>("i", "upgrade", OperationKind::Update, change)
            .await;
        world.rest(A_WHILE).await;
        world.check(OperationState::Succeeded, Phase::Running).await;
        let applied = world.instance().await.status.unwrap().applied.unwrap();
        assert_eq!(json!(applied.revision_ref), reference("2.0.0"));
        assert_eq!(applied.maintenance_info.unwrap().version, "2.0.0");
        let update = &world.runs.executed()[1];
        assert_eq!(update.manifest_digest, "sha256:2.0.0");
        assert_eq!(text(update, "_apb_bundle_version"), "2.0.0");
        assert_eq!(text(update, "_apb_previous_bundle_version"), "1.0.0");
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        world.farewell().await;
        assert_eq!(world.runs.executed()[2].manifest_digest, "sha256:2.0.0");
    });
}

#[test]
fn an_upgrade_that_fails_leaves_everything_as_it_was() {
    tell(|world| async move {
        let failed = Outcome::Failed {
            code: 1,
            message: Some("the schema is too old".to_owned()),
        };
        world.runs.script(Action::Update, [Script::ends(failed)]);
        world.provisioned().await;
        world.revision("2.0.0").await;
        let change = json!({"revisionRef": reference("2.0.0")});
        world
            .accept::<ServiceInstance>("i", "upgrade", OperationKind::Update, change)
            .await;
        world.rest(A_WHILE).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert!(line.contains("the schema is too old"), "{line}");
        let status = world.instance().await.status.unwrap();
        let operation = status.operation.unwrap();
        assert_eq!(operation.instance_usable, Some(true));
        assert_eq!(operation.update_repeatable, Some(true));
        let applied = status.applied.unwrap();
        assert_eq!(json!(applied.revision_ref), reference("1.0.0"));
        // What is in force can be bound, and goes with the image it came with.
        world.bind(json!({})).await;
        world.rest(A_WHILE).await;
        assert_eq!(world.bound().await.state, OperationState::Succeeded);
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        world.farewell().await;
        let executed = world.runs.executed();
        let last = executed.last().unwrap();
        assert_eq!(last.action, Action::Deprovision);
        assert_eq!(last.manifest_digest, "sha256:1.0.0");
        assert_eq!(
            world.runs.actions(),
            ["provision", "update", "bind", "unbind", "deprovision"]
        );
    });
}

#[test]
fn a_bundle_without_bind_hands_out_what_provision_did() {
    tell(|world| async move {
        let admin = json!({"admin": "root"});
        let made = Script::hands_out(admin.clone());
        world.runs.script(Action::Provision, [made]);
        let nothing = Script::ends(Outcome::NothingToDo);
        world.runs.script(Action::Bind, [nothing.clone()]);
        world.runs.script(Action::Unbind, [nothing]);
        world.provisioned().await;
        world.bind(json!({})).await;
        world.rest(A_WHILE).await;
        assert_eq!(world.bound().await.state, OperationState::Succeeded);
        assert_eq!(world.content("b").await, Some(admin));
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        world.farewell().await;
    });
}

#[test]
fn a_bundle_that_hands_out_nothing_is_bound_all_the_same() {
    tell(|world| async move {
        world.provisioned().await;
        assert_eq!(world.content(&provision_secret("i")).await, None);
        world.bind(json!({})).await;
        world.rest(A_WHILE).await;
        assert_eq!(world.bound().await.state, OperationState::Succeeded);
        assert_eq!(world.content("b").await, Some(json!({})));
    });
}

#[test]
fn a_failed_bind_says_why_and_is_taken_back() {
    tell(|world| async move {
        let failed = Outcome::Failed {
            code: 1,
            message: Some("no users left".to_owned()),
        };
        world.runs.script(Action::Bind, [Script::ends(failed)]);
        world.provisioned().await;
        world.bind(json!({})).await;
        world.rest(A_WHILE).await;
        let bound = world.bound().await;
        assert_eq!(bound.state, OperationState::Failed);
        assert_eq!(
            bound.description.unwrap(),
            "bind failed with exit code 1: no users left"
        );
        world
            .accept::<ServiceBinding>("b", "unbind", OperationKind::Unbind, json!({}))
            .await;
        world.rest(A_WHILE).await;
        let left = world
            .users
            .team::<ServiceBinding>()
            .get_opt("b")
            .await
            .unwrap();
        assert!(left.is_none(), "{left:?}");
        assert_eq!(world.runs.actions(), ["provision", "bind", "unbind"]);
    });
}

#[test]
fn credentials_that_somebody_deletes_are_there_until_they_are_given_back() {
    tell(|world| async move {
        let user = json!({"user": "b"});
        let bound = Script::hands_out(user.clone());
        world.runs.script(Action::Bind, [bound]);
        world.provisioned().await;
        world.bind(json!({})).await;
        world.rest(A_WHILE).await;
        let secrets = world.users.team::<Secret>();
        secrets.delete("b", &DeleteParams::default()).await.unwrap();
        world.rest(A_WHILE).await;
        assert_eq!(world.content("b").await, Some(user.clone()));
        world
            .accept::<ServiceBinding>("b", "unbind", OperationKind::Unbind, json!({}))
            .await;
        world.rest(A_WHILE).await;
        assert_eq!(world.content("b").await, None);
        let executed = world.runs.executed();
        assert_eq!(text(executed.last().unwrap(), "_apb_bind_creds"), &user);
    });
}

#[test]
fn a_namespace_with_a_bundle_goes_when_everything_was_removed() {
    tell(|world| async move {
        let admin = json!({"admin": "root"});
        let made = Script::hands_out(admin.clone());
        world.runs.script(Action::Provision, [made]);
        world.provisioned().await;
        world.bind(json!({})).await;
        world.rest(A_WHILE).await;
        let namespaces = Api::<Namespace>::all(world.users.client.clone());
        let delete = DeleteParams::default();
        namespaces.delete(TEAM, &delete).await.unwrap();
        world.rest(LONGER).await;
        assert!(namespaces.get_opt(TEAM).await.unwrap().is_none());
        assert_eq!(
            world.runs.actions(),
            ["provision", "bind", "unbind", "deprovision"]
        );
        let executed = world.runs.executed();
        assert_eq!(text(&executed[3], "_apb_provision_creds"), &admin);
        assert_eq!(world.runs.known(), Vec::<String>::new());
    });
}

#[test]
fn an_unknown_service_waits_for_the_registry_and_goes_on_when_it_is_found() {
    tell(|world| async move {
        world.registry().await;
        world.provision_spec(json!({"revisionRef": null})).await;
        world.rest(LONGER).await;
        let line = world
            .check(OperationState::InProgress, Phase::Provisioning)
            .await;
        assert!(line.contains("waiting for Registry hub"), "{line}");
        world.revision("1.0.0").await;
        world.bundle("1.0.0", "Live").await;
        world.converge();
        world.rest(A_WHILE).await;
        world.check(OperationState::Succeeded, Phase::Running).await;
        let instance = world.instance().await;
        assert_eq!(json!(instance.spec.revision_ref), reference("1.0.0"));
        assert_eq!(instance.spec.maintenance_info.unwrap().version, "1.0.0");
        assert_eq!(instance.status.unwrap().operation.unwrap().id, "make");
        assert_eq!(world.runs.actions(), ["provision"]);
    });
}

#[test]
fn a_service_that_no_registry_has_fails_by_name() {
    tell(|world| async move {
        world.registry().await;
        world.provision_spec(json!({"revisionRef": null})).await;
        world.rest(A_WHILE).await;
        world
            .check(OperationState::InProgress, Phase::Provisioning)
            .await;
        world.converge();
        world.rest(LONGER).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert!(line.contains("Registry hub offers service db"), "{line}");
        // It comes too late: the platform was told.
        world.revision("1.0.0").await;
        world.bundle("1.0.0", "Live").await;
        world.rest(LONGER).await;
        assert_eq!(world.instance().await.spec.revision_ref, None);
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        world.farewell().await;
        assert_eq!(world.runs.actions(), Vec::<&str>::new());
    });
}

#[test]
fn nobody_waits_for_a_registry_for_longer_than_ten_minutes() {
    tell(|world| async move {
        world.registry().await;
        world.provision_spec(json!({"revisionRef": null})).await;
        world.rest(Duration::from_secs(595)).await;
        world
            .check(OperationState::InProgress, Phase::Provisioning)
            .await;
        world.rest(Duration::from_secs(10)).await;
        world.check(OperationState::Failed, Phase::Failed).await;
    });
}

#[test]
fn who_waits_for_the_catalog_can_be_removed_at_once() {
    tell(|world| async move {
        world.registry().await;
        world.provision_spec(json!({"revisionRef": null})).await;
        world.rest(A_WHILE).await;
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        assert_eq!(world.farewell().await.state, OperationState::Succeeded);
        assert_eq!(world.runs.actions(), Vec::<&str>::new());
    });
}

#[test]
fn a_service_that_was_withdrawn_meanwhile_is_not_made() {
    tell(|world| async move {
        world.registry().await;
        world.revision("1.0.0").await;
        world.bundle("1.0.0", "Marked").await;
        world.provision_spec(json!({"revisionRef": null})).await;
        world.rest(LONGER).await;
        let line = world.check(OperationState::Failed, Phase::Failed).await;
        assert!(line.contains("withdrawn"), "{line}");
    });
}

#[test]
fn where_nobody_runs_bundles_instances_say_so() {
    tell_with(false, |world| async move {
        world.provision_spec(json!({})).await;
        world.revision("1.0.0").await;
        world.rest(LONGER).await;
        let line = world
            .check(OperationState::InProgress, Phase::Provisioning)
            .await;
        assert!(line.contains("runs no bundles"), "{line}");
        world.deprovision("drop").await;
        world.rest(A_WHILE).await;
        world.farewell().await;
    });
}
