use heddle_api::operation::OperationKind::{Bind, Deprovision, Provision, Unbind, Update};
use heddle_api::operation::OperationState::{Failed, InProgress, Succeeded};
use heddle_api::service_instance::{CONDITIONS, condition, reason};

use super::*;

const ACCEPTED: i64 = 1_000;
const DEADLINE: i64 = 2_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn request(kind: OperationKind) -> OperationRequest {
    OperationRequest {
        id: "op-1".to_owned(),
        kind,
        request_hash: "h".to_owned(),
        accepted_at: Time(at(ACCEPTED)),
        deadline: Some(Time(at(DEADLINE))),
    }
}

fn made(second: i64) -> ObjectMeta {
    ObjectMeta {
        creation_timestamp: Some(Time(at(second))),
        ..ObjectMeta::default()
    }
}

fn said(id: &str, state: OperationState) -> OperationProgress {
    OperationProgress {
        id: id.to_owned(),
        kind: Provision,
        state,
        description: Some("said before".to_owned()),
        attempts: None,
        finished_at: None,
        instance_usable: None,
        update_repeatable: None,
    }
}

fn waiting() -> Fulfilment {
    Fulfilment::Waiting("for the rain".to_owned())
}

fn refused(since: i64) -> Fulfilment {
    Fulfilment::Refused {
        since: at(since),
        why: "no".to_owned(),
    }
}

/// Every standing at every time, for every kind: what the platform is told.
#[test]
fn an_operation_ends_when_it_is_done_or_hopeless_or_out_of_time_and_not_earlier() {
    let done = || Fulfilment::Done(None);
    let hopeless = || Fulfilment::Hopeless("never".to_owned());
    let table = [
        (done(), ACCEPTED, Succeeded),
        (done(), DEADLINE + 1, Succeeded),
        (waiting(), ACCEPTED, InProgress),
        (waiting(), DEADLINE - 1, InProgress),
        (waiting(), DEADLINE, Failed),
        (refused(ACCEPTED), ACCEPTED + 59, InProgress),
        (refused(ACCEPTED), ACCEPTED + 60, Failed),
        // Asking again starts the wait anew, however long it has been refused before.
        (refused(ACCEPTED - 500), ACCEPTED + 59, InProgress),
        (refused(ACCEPTED - 500), ACCEPTED + 60, Failed),
        (refused(ACCEPTED + 30), ACCEPTED + 89, InProgress),
        (refused(ACCEPTED + 30), ACCEPTED + 90, Failed),
        (refused(DEADLINE - 10), DEADLINE, Failed),
        (hopeless(), ACCEPTED, Failed),
        (hopeless(), DEADLINE, Failed),
    ];
    for kind in [Provision, Update, Deprovision, Bind, Unbind] {
        for (fulfilment, now, expected) in &table {
            let request = request(kind);
            let accepted = Accepted::new(&request, &made(ACCEPTED));
            let progress =
                accepted.progress(None, fulfilment, FailureReport::default(), None, at(*now));
            assert_eq!(
                progress.state, *expected,
                "{kind:?} {fulfilment:?} at {now}"
            );
            assert_eq!(progress.kind, kind);
            assert_eq!(progress.finished_at.is_some(), *expected != InProgress);
        }
    }
}

#[test]
fn what_was_told_is_not_taken_back_and_a_new_id_is_a_new_operation() {
    let request = request(Provision);
    let accepted = Accepted::new(&request, &made(ACCEPTED));
    let progress = |before: &OperationProgress, fulfilment| {
        accepted.progress(
            Some(before),
            &fulfilment,
            FailureReport::default(),
            None,
            at(ACCEPTED),
        )
    };
    for end in [Succeeded, Failed] {
        for fulfilment in [Fulfilment::Done(None), waiting(), refused(0)] {
            assert_eq!(progress(&said("op-1", end), fulfilment), said("op-1", end));
        }
        let next = progress(&said("op-0", end), waiting());
        assert_eq!((next.id.as_str(), next.state), ("op-1", InProgress));
    }
    let next = progress(&said("op-1", InProgress), Fulfilment::Done(None));
    assert_eq!(next.state, Succeeded);
}

#[test]
fn damage_is_told_only_of_failed_updates_and_removals() {
    let damage = FailureReport {
        usable: true,
        repeatable: false,
    };
    for (kind, usable, repeatable) in [
        (Provision, None, None),
        (Update, Some(true), Some(false)),
        (Deprovision, Some(true), None),
        (Bind, None, None),
        (Unbind, None, None),
    ] {
        let request = request(kind);
        let accepted = Accepted::new(&request, &made(ACCEPTED));
        let failed = accepted.progress(None, &waiting(), damage, None, at(DEADLINE));
        let told = (failed.instance_usable, failed.update_repeatable);
        assert_eq!(told, (usable, repeatable), "{kind:?}");
        let done = accepted.progress(None, &Fulfilment::Done(None), damage, None, at(DEADLINE));
        assert_eq!((done.instance_usable, done.update_repeatable), (None, None));
    }
}

#[test]
fn the_next_look_is_at_the_next_end_and_nowhere_once_it_is_over() {
    let request = request(Provision);
    let accepted = Accepted::new(&request, &made(ACCEPTED));
    let requeue_after = |before: Option<&OperationProgress>, fulfilment: &Fulfilment, now| {
        accepted
            .requeue_after(before, fulfilment, at(now))
            .map(|pause| pause.as_secs())
    };
    assert_eq!(requeue_after(None, &waiting(), 1_500), Some(500));
    assert_eq!(requeue_after(None, &refused(1_490), 1_500), Some(50));
    assert_eq!(requeue_after(None, &refused(1_980), 1_990), Some(10));
    assert_eq!(requeue_after(None, &waiting(), DEADLINE), None);
    assert_eq!(
        requeue_after(Some(&said("op-1", Failed)), &waiting(), 1_500),
        None
    );
    assert_eq!(
        requeue_after(Some(&said("op-0", Failed)), &waiting(), 1_500),
        Some(500)
    );
}

#[test]
fn an_operation_that_comes_from_a_backup_has_all_its_time_again() {
    let request = request(Provision);
    let restored = made(50_000);
    let accepted = Accepted::new(&request, &restored);
    let state = |fulfilment: &Fulfilment, now| {
        let progress = accepted.progress(None, fulfilment, FailureReport::default(), None, at(now));
        progress.state
    };
    assert_eq!(state(&waiting(), 50_999), InProgress);
    assert_eq!(state(&waiting(), 51_000), Failed);
    assert_eq!(state(&refused(ACCEPTED), 50_059), InProgress);
    assert_eq!(state(&refused(ACCEPTED), 50_060), Failed);
}

#[test]
fn a_description_is_one_bounded_line_that_names_the_condition_and_since_when() {
    let mut conditions = Conditions::default();
    let message = "EventFlow team-a/x\nis not ready";
    let unmet = Condition::unmet(condition::PROVISIONED, reason::FLOW_NOT_READY, message);
    conditions.set(Condition::met(condition::OFFERING_RESOLVED), at(5));
    conditions.set(unmet, at(7));
    let line = blocking(&CONDITIONS, &conditions);
    let request = request(Provision);
    let accepted = Accepted::new(&request, &made(ACCEPTED));
    let described = |why: String| {
        let fulfilment = Fulfilment::Waiting(why);
        let progress = accepted.progress(
            None,
            &fulfilment,
            FailureReport::default(),
            Some(4),
            at(ACCEPTED),
        );
        assert_eq!(progress.attempts, Some(4));
        progress.description.unwrap()
    };
    assert_eq!(
        described(line),
        "waiting for Provisioned since 1970-01-01T00:00:07Z: EventFlow team-a/x is not ready"
    );
    assert_eq!(described("x".repeat(5_000)).len(), DESCRIPTION_CHARS_MAX);
}

#[test]
fn tries_are_told_in_powers_of_two_and_lost_races_not_at_all() {
    let error = Error::Moved("EventFlow x".to_owned());
    assert_eq!(StepFailure::new("flow", &error, 1), None);
    let error = Error::Panicked("x".to_owned());
    let told = (0..10).map(|attempts| StepFailure::new("flow", &error, attempts).unwrap().attempts);
    assert_eq!(told.collect::<Vec<u32>>(), [1, 1, 2, 2, 4, 4, 4, 4, 8, 8]);
}
