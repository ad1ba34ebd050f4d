//! Retention: what keeps a Broker that nobody claims, and when it may go.
//!
//! Since when nobody claims it is the time at which `Retained` became true, so a restart does not begin to wait anew.

use std::time::Duration;

use heddle_api::Trigger;
use heddle_api::broker::{Broker, condition, reason};
use heddle_api::conditions::{Condition, Status};
use heddle_api::well_known::{MANAGED_BY, MANAGED_BY_LABEL};
use jiff::Timestamp;
use kube::ResourceExt;

use super::observe::World;
use crate::reconcile::{Ctx, Error, Step, StepName};
use crate::routing;

const REMOVAL: StepName = "removal";
/// No watch tells when the last pending event has ended.
const PENDING_LOOK: Duration = Duration::from_secs(30);
/// Times of conditions are whole seconds, so a wait may begin up to a second before its time.
const ROUNDING: Duration = Duration::from_secs(1);

/// What may keep a Broker that nobody claims.
#[derive(Debug, Clone)]
pub(crate) struct Unclaimed {
    /// Triggers that choose from it, by name.
    pub triggers: Vec<String>,
    pub pending: u64,
    pub linger: Duration,
}

pub(super) async fn observe(ctx: &Ctx, broker: &Broker) -> Result<Option<Unclaimed>, Error> {
    let manager = broker.labels().get(MANAGED_BY_LABEL);
    let is_managed = manager.is_some_and(|manager| manager == MANAGED_BY);
    let is_leaving = broker.metadata.deletion_timestamp.is_some();
    let is_foreign = ctx.options.broker_classes.foreign(broker).is_some();
    if !is_managed || is_leaving || is_foreign || !broker.spec.claims.is_empty() {
        return Ok(None);
    }
    let (namespace, name) = (broker.namespace().unwrap_or_default(), broker.name_any());
    let triggers: Vec<Trigger> = ctx.list(&namespace, "").await?;
    let entry = routing::entry("broker", broker);
    Ok(Some(Unclaimed {
        triggers: (triggers.iter())
            .filter(|trigger| trigger.spec.broker == name)
            .map(ResourceExt::name_any)
            .collect(),
        pending: ctx.plane().map_or(0, |plane| plane.pending(&entry)),
        linger: ctx.options.broker_linger,
    }))
}

/// The condition that says what keeps the Broker; `None` while somebody claims it, or if it is not ours to remove.
pub(super) fn retained(world: &World) -> Option<Condition> {
    let unclaimed = world.unclaimed.as_ref()?;
    let (reason, message) = if let Some(first) = unclaimed.triggers.first() {
        let others = match unclaimed.triggers.len() - 1 {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let message = format!(
            "no flow needs the broker any more, but Trigger {first}{others} still chooses from it; \
             it goes when they are deleted"
        );
        (reason::HAS_TRIGGERS, message)
    } else if unclaimed.pending > 0 {
        let message =
            "no flow needs the broker any more; it goes when its pending events have ended";
        (reason::EVENTS_PENDING, message.to_owned())
    } else {
        let message = format!(
            "no flow needs the broker any more; it goes if none does within {} seconds",
            unclaimed.linger.as_secs()
        );
        (reason::LINGERING, message)
    };
    Some(Condition::met_because(condition::RETAINED, reason, message))
}

/// The step that removes the Broker in exactly the state that was looked at, when nothing keeps it any more.
pub(super) fn removal(world: &World) -> Option<Step> {
    let unclaimed = world.unclaimed.as_ref()?;
    let is_free = unclaimed.triggers.is_empty() && unclaimed.pending == 0;
    let is_over = left(world, unclaimed, world.now).is_some_and(|left| left.is_zero());
    if !is_free || !is_over {
        return None;
    }
    Step::remove_unchanged(REMOVAL, Some(&world.broker))
}

/// When to look again: nobody tells when a while has passed, or when the last pending event has ended.
pub(super) fn requeue_after(world: &World, now: Timestamp) -> Option<Duration> {
    let unclaimed = world.unclaimed.as_ref().filter(|_| !world.is_removed)?;
    if !unclaimed.triggers.is_empty() {
        return None;
    }
    let left = left(world, unclaimed, now).unwrap_or(unclaimed.linger);
    if unclaimed.pending > 0 {
        return Some(left.max(PENDING_LOOK));
    }
    Some(left + ROUNDING)
}

/// What is left of the time for which the Broker stays in any case; `None` before it was written down that it began.
fn left(world: &World, unclaimed: &Unclaimed, now: Timestamp) -> Option<Duration> {
    let conditions = &world.broker.status.as_ref()?.conditions;
    let retained = conditions.find(condition::RETAINED.name);
    let retained = retained.filter(|retained| retained.status == Status::True)?;
    let since = retained.last_transition_time.as_ref()?;
    let passed = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
    Some(unclaimed.linger.saturating_sub(passed))
}
