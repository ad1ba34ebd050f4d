use std::collections::BTreeSet;

use heddle_api::action::{Action, Outcome, RunEnd, RunState};
use heddle_api::bundle_revision::{BundleRevisionSpec, BundleRevisionStatus};
use heddle_api::description::PlanDescription;
use heddle_api::operation::{RevisionReference, RunReport, RunResult};
use heddle_api::registry::RegistrySpec;
use heddle_api::service_instance::ServiceInstanceSpec;
use heddle_api::{BundleRevision, Registry, ServiceInstance, offer};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::*;

const UID: &str = "u1";
const START: i64 = 1_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn want(action: Action, operation: &str, persistent: bool) -> Want {
    Want {
        action,
        operation: operation.to_owned(),
        persistent,
    }
}

fn report(want: &Want, attempt: i32, result: Option<RunResult>) -> RunReport {
    RunReport {
        result,
        ended: result.map(|_| "ended".to_owned()),
        ..announced(want, UID, attempt, None, at(START))
    }
}

fn running() -> RunState {
    RunState::Running { progress: None }
}

fn ended() -> RunState {
    RunState::Ended(Box::new(RunEnd {
        outcome: Outcome::Succeeded,
        dashboard_url: None,
        log_tail: String::new(),
    }))
}

fn short(next: &Next) -> String {
    match next {
        Next::Announce { attempt } => format!("announce {attempt}"),
        Next::TakeIn(_) => "take in".to_owned(),
        Next::Pause { until } => format!("pause {}", until.as_second() - START),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// Every pairing of what is wanted with what is written down and what runs.
#[test]
fn what_comes_next_follows_from_what_is_wanted_written_and_running() {
    use RunResult::{Failed, Interrupted, NotStarted, Succeeded};
    let make = want(Action::Provision, "op-1", false);
    let drop = want(Action::Deprovision, "op-2", false);
    let by_hand = want(Action::Deprovision, "delete", true);
    let written = |want: &Want, result| Some(report(want, 1, result));
    let unheard = || RunState::Unheard;
    let cases = [
        (None, None, unheard(), "rest"),
        (Some(&make), None, unheard(), "announce 1"),
        // Announced, and not heard of: it was never started.
        (Some(&make), written(&make, None), unheard(), "start"),
        (None, written(&make, None), unheard(), "withdraw"),
        (Some(&drop), written(&make, None), unheard(), "announce 1"),
        (None, written(&drop, None), unheard(), "rest"),
        // Under way.
        (Some(&make), written(&make, None), running(), "await"),
        (None, written(&make, None), running(), "cancel"),
        (Some(&drop), written(&make, None), running(), "cancel"),
        // Over, and not written down, whoever wanted it.
        (Some(&make), written(&make, None), ended(), "take in"),
        (None, written(&make, None), ended(), "take in"),
        (Some(&drop), written(&make, None), ended(), "take in"),
        // Written down: forgotten before anything else, and never started again.
        (
            Some(&make),
            written(&make, Some(Succeeded)),
            ended(),
            "forget",
        ),
        (Some(&drop), written(&make, Some(Failed)), ended(), "forget"),
        (
            Some(&drop),
            written(&drop, Some(Interrupted)),
            ended(),
            "forget",
        ),
        (
            Some(&make),
            written(&make, Some(Succeeded)),
            unheard(),
            "over",
        ),
        (Some(&make), written(&make, Some(Failed)), unheard(), "over"),
        (
            Some(&make),
            written(&make, Some(Interrupted)),
            unheard(),
            "over",
        ),
        (
            Some(&make),
            written(&make, Some(NotStarted)),
            unheard(),
            "over",
        ),
        (None, written(&make, Some(Failed)), unheard(), "rest"),
        (
            Some(&drop),
            written(&make, Some(Succeeded)),
            unheard(),
            "announce 1",
        ),
        (Some(&drop), written(&drop, Some(Failed)), unheard(), "over"),
        // Only removals are begun again.
        (
            Some(&drop),
            written(&drop, Some(Interrupted)),
            unheard(),
            "announce 2",
        ),
        (
            Some(&by_hand),
            written(&by_hand, Some(Failed)),
            unheard(),
            "pause 60",
        ),
        (
            Some(&by_hand),
            written(&by_hand, Some(NotStarted)),
            unheard(),
            "pause 60",
        ),
        (
            Some(&by_hand),
            written(&by_hand, Some(Interrupted)),
            unheard(),
            "announce 2",
        ),
        (
            Some(&by_hand),
            written(&by_hand, Some(Succeeded)),
            unheard(),
            "over",
        ),
    ];
    for (want, report, state, expected) in cases {
        let next = next(want, UID, report.as_ref(), &state, at(START));
        assert_eq!(short(&next), expected, "{want:?} {report:?} {state:?}");
    }
}

#[test]
fn a_removal_by_hand_is_tried_again_ever_more_rarely_and_interruptions_have_an_end() {
    let by_hand = want(Action::Unbind, "delete", true);
    let after = |attempt, result, second| {
        let report = report(&by_hand, attempt, Some(result));
        let state = RunState::Unheard;
        short(&next(
            Some(&by_hand),
            UID,
            Some(&report),
            &state,
            at(START + second),
        ))
    };
    assert_eq!(after(1, RunResult::Failed, 59), "pause 60");
    assert_eq!(after(1, RunResult::Failed, 60), "announce 2");
    assert_eq!(after(3, RunResult::Failed, 0), "pause 240");
    assert_eq!(after(30, RunResult::Failed, 0), "pause 3600");
    assert_eq!(after(9, RunResult::Interrupted, 0), "announce 10");
    assert_eq!(after(10, RunResult::Interrupted, 0), "pause 3600");
    let asked = want(Action::Unbind, "op", false);
    let report = report(&asked, 10, Some(RunResult::Interrupted));
    let next = next(
        Some(&asked),
        UID,
        Some(&report),
        &RunState::Unheard,
        at(START),
    );
    assert_eq!(next, Next::Over);
    assert!(asked.failure(UID, &report, at(START)).is_some());
}

#[test]
fn runs_of_different_operations_actions_and_attempts_have_different_ids() {
    let runs = [
        (Action::Provision, "a", 1),
        (Action::Update, "a", 1),
        (Action::Provision, "b", 1),
        (Action::Provision, "a", 2),
    ];
    let id = |(action, operation, attempt): &(Action, &str, i32)| {
        want(*action, operation, false).run_id(UID, *attempt)
    };
    let ids: BTreeSet<String> = runs.iter().map(id).collect();
    assert_eq!(ids.len(), runs.len());
    assert_eq!(id(&runs[0]), id(&runs[0]), "and the same one the same");
}

#[test]
fn that_something_ran_is_not_forgotten_by_what_is_announced_after_it() {
    let first = want(Action::Provision, "op-1", false);
    let second = want(Action::Provision, "op-2", false);
    let fresh = announced(&first, UID, 1, None, at(START));
    assert!(!has_run(&fresh), "announced is not started");
    assert_eq!(withdrawn(&fresh), None);
    let failed = report(&first, 1, Some(RunResult::Failed));
    assert!(has_run(&failed));
    assert!(!has_run(&report(&first, 1, Some(RunResult::NotStarted))));
    let again = announced(&second, UID, 1, Some(&failed), at(START));
    let called_off = withdrawn(&again).unwrap();
    assert!(has_run(&called_off), "the first may have made something");
    let removal = want(Action::Deprovision, "op-3", false);
    assert!(has_run(&announced(&removal, UID, 1, None, at(START))));
}

fn instance() -> ServiceInstance {
    let spec = ServiceInstanceSpec {
        instance_id: "I/1".to_owned(),
        service_id: "db".to_owned(),
        ..ServiceInstanceSpec::default()
    };
    let mut instance = ServiceInstance::new("i", spec);
    instance.metadata.namespace = Some("team-a".to_owned());
    instance
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn what_heddle_says_wins_over_settings_and_settings_over_defaults() {
    let plan = json!({
        "name": "small",
        "parameters": [{"name": "size", "default": 1}, {"name": "zone", "default": "a"}, {"name": "none"}],
    });
    let plan: PlanDescription = serde_json::from_value(plan).unwrap();
    let parameters = map(json!({
        "size": 2, "_apb_plan_id": "free", "_apb_bind_creds": "mine", "cluster": "theirs", "extra": [1],
    }));
    let instance = instance();
    let told = ActionInputs {
        instance: &instance,
        binding: None,
        parameters: &parameters,
        identity: None,
        version: Some("1.0.0"),
        previous_version: None,
        provision_credentials: None,
        bind_credentials: None,
    };
    let expected = json!({
        "size": 2, "zone": "a", "extra": [1],
        "_apb_plan_id": "small", "_apb_service_class_id": "db", "_apb_service_instance_id": "I/1",
        "_apb_last_requesting_user": "", "_apb_bundle_version": "1.0.0",
        "namespace": "team-a", "cluster": "heddle",
    });
    assert_eq!(Value::Object(variables(&told, &plan)), expected);
}

#[test]
fn what_a_program_says_is_told_without_what_is_secret() {
    let credentials = map(json!({
        "uri": "db://root:hush@host", "password": "hush", "port": 5432, "nested": {"keys": ["k-12345"]}, "ok": "yes",
    }));
    let settings = map(json!({"api_token": "t-999", "size": "large"}));
    let clean = |text: &str| without_secrets(text, &[&credentials], &[&settings]);
    assert_eq!(clean("db://root:hush@host is down"), "… is down");
    assert_eq!(clean("hush! k-12345 and t-999"), "…! … and …");
    assert_eq!(clean("port 5432, a large yes"), "port …, a large yes");
}

#[test]
fn every_outcome_has_a_word_and_a_line() {
    let failed = |message: Option<&str>| Outcome::Failed {
        code: 4,
        message: message.map(str::to_owned),
    };
    for (outcome, word, line) in [
        (Outcome::Succeeded, RunResult::Succeeded, "succeeded"),
        (Outcome::NothingToDo, RunResult::Succeeded, "nothing to do"),
        (
            failed(Some("no room")),
            RunResult::Failed,
            "exit code 4: no room",
        ),
        (failed(Some("  ")), RunResult::Failed, "does not say why"),
        (failed(None), RunResult::Failed, "does not say why"),
        (Outcome::TimedOut, RunResult::Failed, "longer"),
        (
            Outcome::Killed {
                why: "memory".to_owned(),
            },
            RunResult::Failed,
            "memory",
        ),
        (Outcome::Cancelled, RunResult::Failed, "called off"),
        (Outcome::Interrupted, RunResult::Interrupted, "interrupted"),
        (
            Outcome::NotStarted {
                why: "root".to_owned(),
            },
            RunResult::NotStarted,
            "root",
        ),
    ] {
        let (result, text) = conclusion(&outcome);
        assert_eq!(result, word);
        assert!(text.contains(line), "{text}");
    }
}

fn revision(name: &str, cached: Option<(&str, &str)>) -> BundleRevision {
    let spec = BundleRevisionSpec {
        manifest_digest: format!("sha256:{name}"),
        ..BundleRevisionSpec::default()
    };
    let mut revision = BundleRevision::new(name, spec);
    revision.status = cached.map(|(status, reason)| {
        let condition =
            json!([{"type": "Cached", "status": status, "reason": reason, "message": "why"}]);
        BundleRevisionStatus {
            conditions: serde_json::from_value(condition).unwrap(),
            ..BundleRevisionStatus::default()
        }
    });
    revision
}

fn deps(policy: Option<(&str, &str)>, kept: &[&str]) -> ActionDeps {
    let registry = policy.map(|(image, unavailable)| {
        let spec = json!({"type": "apiv2", "actionImage": image, "whenUnavailable": unavailable});
        let spec: RegistrySpec = serde_json::from_value(spec).unwrap();
        Registry::new("hub", spec)
    });
    ActionDeps {
        reference: RevisionReference {
            name: "old".to_owned(),
            ..RevisionReference::default()
        },
        pinned: Some(revision("old", Some(("False", "FetchFailed")))),
        current: Some(revision("new", None)),
        registry,
        kept: kept.iter().map(|name| format!("sha256:{name}")).collect(),
        run: Some(RunState::Unheard),
        credentials: None,
    }
}

#[test]
fn which_image_runs_is_the_registrys_policy() {
    let (pinned, latest, fail) = ("pinned", "latest", "fail");
    for (policy, kept, expected) in [
        (None, &["old", "new"][..], Some("sha256:old")),
        (None, &["new"], None),
        (Some((pinned, fail)), &["old", "new"], Some("sha256:old")),
        (Some((pinned, fail)), &["new"], None),
        (Some((pinned, latest)), &["old", "new"], Some("sha256:old")),
        (Some((pinned, latest)), &["new"], Some("sha256:new")),
        (Some((latest, fail)), &["old", "new"], Some("sha256:new")),
        (Some((latest, fail)), &["old"], Some("sha256:old")),
        (Some((latest, latest)), &["new"], Some("sha256:new")),
        (Some((latest, latest)), &[], None),
    ] {
        let deps = deps(policy, kept);
        for action in [
            Action::Update,
            Action::Bind,
            Action::Unbind,
            Action::Deprovision,
        ] {
            let chosen = deps.image(action).ok();
            assert_eq!(chosen, expected, "{policy:?} {kept:?} {action:?}");
        }
        // What does not exist yet is made with what was accepted.
        let own = kept.contains(&"old").then_some("sha256:old");
        assert_eq!(deps.image(Action::Provision).ok(), own);
    }
}

#[test]
fn an_image_that_nobody_asked_for_yet_is_not_unavailable() {
    let mut deps = deps(Some(("pinned", "latest")), &["new"]);
    deps.pinned = Some(revision("old", Some(("False", "NotFetched"))));
    let why = deps.image(Action::Deprovision).unwrap_err();
    assert!(
        why.contains("BundleRevision old is not kept here yet: why"),
        "{why}"
    );
    deps.pinned = None;
    let why = deps.image(Action::Deprovision).unwrap_err();
    assert_eq!(why, "BundleRevision old does not exist");
}

#[test]
fn limits_are_the_registrys_or_the_defaults_where_it_is_gone() {
    let mut deps = deps(Some(("pinned", "fail")), &[]);
    let registry = deps.registry.as_mut().unwrap();
    registry.spec.actions.memory_megabytes = 64;
    registry.spec.actions.network = true;
    registry.spec.actions.disk_megabytes = 5000;
    registry.spec.actions.disk_files = 7;
    let limits = deps.limits();
    assert_eq!((limits.memory_bytes, limits.network), (64 << 20, true));
    assert_eq!((limits.disk_bytes, limits.disk_files), (5000 << 20, 7));
    deps.registry = None;
    let limits = deps.limits();
    assert_eq!((limits.memory_bytes, limits.network), (512 << 20, false));
    assert_eq!((limits.seconds, limits.processes), (600, 256));
    assert_eq!((limits.disk_bytes, limits.disk_files), (1 << 30, 100_000));
}

#[test]
fn a_plan_is_known_by_its_id_and_by_its_name() {
    let mut revision = revision("old", None);
    let plans = json!([{"name": "small"}, {"name": "large"}]);
    revision.spec.registry = "hub".to_owned();
    revision.spec.description = map(json!({"name": "db", "plans": plans}));
    let id = offer::bundle::plan_id("service", "hub", "db", "large");
    let found = |service: &str, plan: &str| plan_of(&revision, service, plan).map(|plan| plan.name);
    assert_eq!(found("service", &id).as_deref(), Some("large"));
    assert_eq!(found("service", "small").as_deref(), Some("small"));
    assert_eq!(found("another", &id), None);
    assert_eq!(found("service", "huge"), None);
}

#[test]
fn nothing_secret_is_in_what_deps_show() {
    let mut deps = deps(None, &[]);
    deps.credentials = Some(Ok(Some(map(json!({"password": "hush"})))));
    assert!(!format!("{deps:?}").contains("hush"));
}
