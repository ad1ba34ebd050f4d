//! Answers as far as somebody may have them: without what lies in namespaces that are not theirs, and without data that they
//! may not read. Pure.

use heddle_api::access::{Access, Right, Scope};
use heddle_api::ledger::{Accounts, Trace};

use crate::ledger::{Error, trace};

/// What of a trace somebody may know: events that came in or could arrive in their namespaces, and what consumers there made
/// of them.
pub(super) fn trace(mut trace: Trace, access: &Access) -> Trace {
    if access.scope == Scope::All {
        return trace;
    }
    trace.events.retain_mut(|event| {
        let before = event.verdicts.len();
        event
            .verdicts
            .retain(|verdict| access.sees(&verdict.consumer));
        event.cause = (event.cause.take()).filter(|cause| access.sees(&cause.consumer));
        if event.verdicts.len() < before && !trace::is_unmatched(&event.summary) {
            event.summary = trace::summary(&event.verdicts, false);
        }
        !event.verdicts.is_empty() || access.sees(&event.entry)
    });
    // A sentence that names a consumer is about that consumer.
    let names_consumer =
        |told: &str| ["trigger/", "subscription/"].map(|kind| told.contains(kind)) != [false; 2];
    trace.losses.retain(|told| !names_consumer(told));
    trace
}

/// The accounts of consumers that somebody may know of.
pub(super) fn accounts(mut accounts: Accounts, access: &Access) -> Accounts {
    accounts
        .consumers
        .retain(|account| access.sees(&account.consumer));
    accounts
}

/// Whether somebody may do something in a namespace.
pub(super) fn check(access: &Access, right: Right, namespace: Option<&str>) -> Result<(), Error> {
    match access.may(right, namespace) {
        true => Ok(()),
        false => Err(Error::Forbidden(access.refusal(right, namespace))),
    }
}
