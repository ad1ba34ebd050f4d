//! Records of what is gone: written before an object is let go, and removed when nobody asks any more. So are the
//! tombstones of bundles, which are kept longer.
//!
//! Who removes an object writes its record in the same round, before the finalizer is released. A record that already
//! speaks of the same operation is left as it is, so that a crash between the two writes does not change the story.

use std::time::Duration;

use heddle_api::operation::OperationRequest;
use heddle_api::record::{About, KEPT_SECONDS, Record};
use heddle_api::tombstone::{self, Tombstone};
use heddle_api::well_known::{OSB_FRONT_ANNOTATION, RECORD_LABEL, SYSTEM_NAMESPACE};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::Options;
use crate::reconcile::{Ctx, Error, Step, StepName};

/// How often old records are looked for. They are kept for a week; an hour more or less is nothing.
const PERIOD: Duration = Duration::from_secs(3600);
/// Records read at once.
const PAGE: u32 = 500;

/// The record of something in a namespace, if there is one.
pub(crate) async fn find(
    ctx: &Ctx,
    about: &About,
    namespace: &str,
) -> Result<Option<Record>, Error> {
    let name = about.record_name(namespace);
    let object: Option<ConfigMap> = ctx.find(SYSTEM_NAMESPACE, &name).await?;
    Ok(object.as_ref().and_then(Record::from_config_map))
}

/// The step that writes a record, or `None` if `known` tells of the same operation already.
pub(crate) fn step(
    step_name: StepName,
    record: &Record,
    request: Option<&OperationRequest>,
    known: Option<&Record>,
) -> Option<Step> {
    let told = known.and_then(|known| known.operation.as_ref());
    if told.is_some_and(|told| request.is_some_and(|request| request.id == told.id)) {
        return None;
    }
    let wanted = json!(record.to_config_map());
    Step::ensure::<ConfigMap>(step_name, wanted, None)
}

/// The OSB front that an object was asked for at.
pub(crate) fn front(object: &impl ResourceExt) -> Option<String> {
    object.annotations().get(OSB_FRONT_ANNOTATION).cloned()
}

/// Removes old records, until the future is dropped.
pub(crate) async fn expire(client: Client, options: Options) {
    let api = Api::<ConfigMap>::namespaced(client, SYSTEM_NAMESPACE);
    loop {
        if let Err(error) = sweep(&api, options.clock.now()).await {
            tracing::debug!(%error, "old records could not be removed; they are looked for again later");
        }
        let pause = PERIOD + options.chance.jitter(PERIOD / 10);
        options.clock.sleep(pause).await;
    }
}

async fn sweep(api: &Api<ConfigMap>, now: Timestamp) -> Result<(), kube::Error> {
    let mut page = ListParams::default().labels(RECORD_LABEL).limit(PAGE);
    loop {
        let found = api.list(&page).await?;
        let token = found.metadata.continue_.filter(|token| !token.is_empty());
        for record in found.items.iter().filter(|record| is_old(record, now)) {
            let preconditions = Preconditions {
                uid: record.uid(),
                // A newer removal of the same id may have taken the record over.
                resource_version: record.resource_version(),
            };
            let params = DeleteParams {
                preconditions: Some(preconditions),
                ..DeleteParams::default()
            };
            match api.delete(&record.name_any(), &params).await {
                Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
                outcome => drop(outcome?),
            }
        }
        match token {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// Whether a record or a tombstone has been kept long enough. One that cannot be read counts from when it was made.
fn is_old(object: &ConfigMap, now: Timestamp) -> bool {
    let label = object.labels().get(RECORD_LABEL).map(String::as_str);
    let (gone_at, kept) = if label == Some(tombstone::LABEL) {
        let tombstone = Tombstone::from_config_map(object);
        let gone_at = tombstone.map(|tombstone| tombstone.gone_at);
        (gone_at, tombstone::KEPT_SECONDS)
    } else {
        let record = Record::from_config_map(object);
        (record.map(|record| record.gone_at), KEPT_SECONDS)
    };
    let since = gone_at.or_else(|| object.creation_timestamp());
    since.is_some_and(|since| now.as_second() - since.0.as_second() > kept)
}

#[cfg(test)]
mod tests;
