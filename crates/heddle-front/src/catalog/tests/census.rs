//! How instances are counted.

use heddle_api::ServiceInstance;
use heddle_api::operation::{OperationKind, OperationProgress, OperationState, RevisionReference};
use kube::runtime::watcher::Event;

use super::*;
use crate::catalog::testing::list;
use crate::lifecycle::Lifecycle;
use crate::verbs::testing::instance;

/// An instance of that name which waits for the catalog.
fn waiting(name: &str) -> ServiceInstance {
    let mut waiting = instance("prompt", Lifecycle::Making);
    waiting.metadata.name = Some(name.to_owned());
    waiting.status = None;
    waiting
}

fn pinned(name: &str, revision: &str) -> ServiceInstance {
    let mut pinned = waiting(name);
    pinned.spec.revision_ref = Some(RevisionReference {
        name: revision.to_owned(),
        ..RevisionReference::default()
    });
    pinned
}

#[test]
fn instances_are_counted_by_what_they_wait_for_or_are_pinned_to() {
    let census = Census::default();
    assert!(!census.is_listed());
    let mut of_application = waiting("app");
    of_application.spec.application = Some(Default::default());
    census.take(list(&[
        waiting("a"),
        pinned("b", "db-1"),
        pinned("c", "db-1"),
        of_application,
    ]));
    assert!(census.is_listed());
    assert_eq!((census.awaiting(), census.pinned()["db-1"]), (1, 2));
    // What was accepted just now counts before a watch tells of it, and once.
    census.expect(&waiting("d"));
    census.take(vec![Event::Apply(waiting("d"))]);
    assert_eq!(census.awaiting(), 2);
    census.take(vec![Event::Apply(pinned("d", "db-2"))]);
    assert_eq!((census.awaiting(), census.pinned().len()), (1, 2));
    let mut failed = waiting("a");
    let asked = failed.spec.operation.as_ref().unwrap().id.clone();
    failed.status.get_or_insert_default().operation = Some(OperationProgress {
        id: asked,
        kind: OperationKind::Provision,
        state: OperationState::Failed,
        description: None,
        attempts: None,
        finished_at: None,
        instance_usable: None,
        update_repeatable: None,
    });
    census.take(vec![Event::Apply(failed)]);
    assert_eq!(census.awaiting(), 0, "what has failed waits no longer");
    census.take(vec![Event::Delete(pinned("b", "db-1"))]);
    assert_eq!(census.pinned()["db-1"], 1);
}
