//! `GET last_operation`, of instances and bindings.
//!
//! A platform that names an operation is told about that one, also after another was accepted. One that names an operation
//! nobody knows is told about the last: refusing would make some platforms take the operation for failed. Only when the thing is gone does it matter which operation is meant: its making did not
//! succeed, its removal did.

use heddle_api::operation::{OperationKind, OperationProgress};
use heddle_api::record::{About, Record};
use heddle_api::service_binding::ServiceBinding;
use heddle_api::service_instance::ServiceInstance;
use serde_json::{Map, Value, json};

use super::{Call, Deps, OsbAnswer, word};
use crate::error::OsbError;
use crate::lifecycle::{Provisioned, Report, title};
use crate::settings::DeletedPoll;
use crate::version::Version;
use crate::wire::response::OsbResponse;

pub(crate) async fn of_instance(deps: &Deps, call: &Call, id: &str) -> OsbAnswer {
    let live = deps.objects.instance(call.scope.as_deref(), id).await;
    let about = About::Instance(id.to_owned());
    answer::<ServiceInstance>(deps, call, live, about, id).await
}

pub(crate) async fn of_binding(deps: &Deps, call: &Call, instance: &str, id: &str) -> OsbAnswer {
    let live = deps.binding(call, instance, id).await;
    let about = About::Binding {
        instance: instance.to_owned(),
        binding: id.to_owned(),
    };
    answer::<ServiceBinding>(deps, call, live, about, id).await
}

async fn answer<K: Provisioned>(
    deps: &Deps,
    call: &Call,
    live: Result<Option<K>, OsbError>,
    about: About,
    id: &str,
) -> OsbAnswer {
    // Nothing was to be written, so nothing needs cleaning up: simply ask again.
    if let Some(object) = live.map_err(OsbError::about_existing)? {
        if let Some(ended) = earlier(&object, call.query.operation.as_deref()) {
            deps.contacts.note(&object);
            return Ok(shown(Report::of_progress(ended), call.version));
        }
        let mut report = Report::of(&object, deps.clock.now());
        if object.is_unresolved() && object.progress().is_none() {
            report.description = waiting(deps.catalog_view(call).unread()).or(report.description);
        }
        deps.metrics.told(&object, &report);
        deps.contacts.note(&object);
        return Ok(shown(report, call.version));
    }
    let record = deps
        .objects
        .record(call.scope.as_deref(), &about)
        .await
        .map_err(OsbError::about_existing)?;
    let record = record.ok_or_else(|| OsbError::NotFound {
        what: title::<K>(id),
    })?;
    let report = after(
        &record,
        call.query.operation.as_deref(),
        deps.settings.deleted_poll,
    );
    let report = report.ok_or_else(|| OsbError::Gone {
        what: title::<K>(id),
    })?;
    Ok(shown(report, call.version))
}

/// The operation that is asked about, if it is one before the last.
fn earlier<'a, K: Provisioned>(
    object: &'a K,
    operation: Option<&str>,
) -> Option<&'a OperationProgress> {
    let id = operation?;
    let mut earlier = object.earlier().iter();
    earlier.find(|ended| ended.id == id)
}

/// What something waits for that no offering was found for yet, until its controller says it better.
fn waiting(unread: &[String]) -> Option<String> {
    (!unread.is_empty()).then(|| format!("waiting for registry {} to be read", unread.join(", ")))
}

/// What is told about something that is gone; `None` is 410.
fn after(record: &Record, operation: Option<&str>, setting: DeletedPoll) -> Option<Report> {
    let about_making = operation.is_some_and(|id| {
        let making = [
            OperationKind::Provision,
            OperationKind::Update,
            OperationKind::Bind,
        ];
        making.iter().any(|kind| {
            id.strip_prefix(word(*kind))
                .is_some_and(|rest| rest.starts_with('-'))
        })
    });
    if about_making {
        return Some(Report::plain(Report::FAILED, Some("it was removed")));
    }
    match setting {
        DeletedPoll::Gone => None,
        DeletedPoll::Succeeded => Some(match &record.operation {
            Some(progress) => Report::of_progress(progress),
            None => Report::plain(
                Report::SUCCEEDED,
                Some("it was removed, though not by its platform"),
            ),
        }),
    }
}

fn shown(report: Report, version: Version) -> OsbResponse {
    let mut body = Map::new();
    body.insert("state".to_owned(), json!(report.state));
    if let Some(description) = report.description {
        body.insert("description".to_owned(), Value::String(description));
    }
    if version >= Version::V2_16 {
        let told = [
            ("instance_usable", report.instance_usable),
            ("update_repeatable", report.update_repeatable),
        ];
        body.extend(
            told.into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), Value::Bool(value?)))),
        );
    }
    let mut answer = OsbResponse::ok(body);
    answer.retry_seconds = report.retry_seconds;
    answer
}

#[cfg(test)]
mod tests;
