//! Leaving: how a flow that is to go comes to its end, and what becomes of the events it has let in.
//!
//! New events stop first: the link goes, unless another flow of the same Application needs it or it never was heddle's, in
//! which case nothing is cut off and nothing has to end. What was let in and is still pending is then delivered for a
//! while, or given up, as the flow asks for. What became of it is written down before the flow is let go.
//!
//! The wait is bounded: from `DRAIN` after the removal began, nobody is waited for any more except the controller that
//! takes the link away.

use std::time::Duration;

use heddle_api::dataplane::{Fate, GivenUp};
use heddle_api::event_flow::{Ended, EventFlowStatus, OnDeprovision};
use heddle_api::well_known::FINALIZER;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::observe::{World, entries};
use crate::reconcile::{Ctx, Error};

/// How long pending events may still be delivered.
pub(super) const DRAIN: Duration = Duration::from_secs(300);
/// How soon a count is looked at again, at first and at most: the more time has passed, the less hurry there is.
const LOOK_MIN: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(15);

/// What a flow that goes depends on.
#[derive(Debug, Clone)]
pub(crate) struct Leaving {
    /// The whole namespace goes, and whoever could take events with it.
    pub ends_with_namespace: bool,
    /// Another flow, which stays, needs the same link.
    pub is_succeeded: bool,
    /// `None` where no mesh runs: nothing was ever let in.
    pub mesh: Option<MeshState>,
    /// What was given up in this reconcile.
    pub given_up: Option<GivenUp>,
}

#[derive(Debug, Clone)]
pub(crate) struct MeshState {
    /// Whether the table in force still has the link.
    pub is_linked: bool,
    /// Events that came in over the link and have not ended.
    pub pending: u64,
}

/// What comes next for a flow that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The link or the claim is still there; taking them away is another controller's.
    AwaitRemoval,
    /// The table in force still has the link.
    AwaitTable,
    Drain,
    GiveUp(Fate),
    /// Nothing is pending, but nobody has written down what became of it.
    WriteDown,
    LetGo,
    /// Others hold it; we do not any more.
    Nothing,
}

/// `None` for a flow that stays.
pub(super) fn next(world: &World) -> Option<Next> {
    let leaving = world.leaving.as_ref()?;
    if !(world.flow.finalizers().iter()).any(|name| name == FINALIZER) {
        return Some(Next::Nothing);
    }
    let is_linked = world.is_linked();
    let link_stays = leaving.is_succeeded || world.is_linked_by_others();
    // A link that nobody else needs is taken away together with the claim; until then there may be more to come over it.
    if world.is_claimed() || (is_linked && !link_stays) {
        return Some(Next::AwaitRemoval);
    }
    let is_done = status_of(world).ended.is_some();
    let done = if is_done {
        Next::LetGo
    } else {
        Next::WriteDown
    };
    let Some(mesh) = leaving.mesh.as_ref().filter(|_| !is_linked) else {
        return Some(done);
    };
    let is_late = leaving.ends_with_namespace || left(world, world.now).is_zero();
    Some(if is_done {
        Next::LetGo
    } else if mesh.is_linked && !left(world, world.now).is_zero() {
        Next::AwaitTable
    } else if mesh.pending == 0 {
        Next::WriteDown
    } else {
        match world.flow.spec.on_deprovision {
            OnDeprovision::Discard => Next::GiveUp(Fate::Discard),
            OnDeprovision::DeadLetter => Next::GiveUp(Fate::DeadLetter),
            OnDeprovision::Drain if is_late => Next::GiveUp(Fate::DeadLetter),
            OnDeprovision::Drain => Next::Drain,
        }
    })
}

/// Ends what is pending, if it is time for that.
pub(super) async fn give_up(ctx: &Ctx, world: &mut World) -> Result<(), Error> {
    let (Some(Next::GiveUp(fate)), Some(plane)) = (next(world), ctx.plane()) else {
        return Ok(());
    };
    let (channel, broker) = entries(&world.flow);
    let why = format!(
        "EventFlow {}/{} was removed",
        world.flow.namespace().unwrap_or_default(),
        world.flow.name_any()
    );
    let given_up = plane.give_up(&channel, &broker, fate, &why).await;
    let given_up = given_up.map_err(Error::Mesh)?;
    if let Some(leaving) = &mut world.leaving {
        leaving.given_up = Some(given_up);
    }
    Ok(())
}

/// The status of a flow that goes: its conditions as they were, how much there was to end, and how it ended. The count is
/// taken once, when the flow is cut off; what was not given up of it was delivered.
pub(super) fn status(world: &World) -> Option<EventFlowStatus> {
    let leaving = world.leaving.as_ref()?;
    let mut status = status_of(world);
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let pending = || leaving.mesh.as_ref().map_or(0, |mesh| count(mesh.pending));
    match next(world)? {
        Next::Drain => {
            status.pending.get_or_insert_with(pending);
        }
        Next::GiveUp(_) => {
            let given_up = leaving.given_up?;
            let (dead_lettered, discarded) =
                (count(given_up.dead_lettered), count(given_up.discarded));
            let there_were = status.pending.unwrap_or_else(pending);
            status.ended = Some(Ended {
                delivered: there_were.saturating_sub(dead_lettered + discarded).max(0),
                dead_lettered,
                discarded,
            });
            status.pending = Some(0);
        }
        Next::WriteDown => {
            status.ended = Some(Ended {
                delivered: status.pending.unwrap_or_default(),
                ..Ended::default()
            });
            status.pending = Some(0);
        }
        Next::AwaitRemoval | Next::AwaitTable | Next::LetGo | Next::Nothing => return None,
    }
    Some(status)
}

/// No watch tells how much is pending, so a flow that waits for it looks again.
pub(super) fn requeue_after(world: &World, now: Timestamp) -> Option<Duration> {
    let left = left(world, now);
    match next(world)? {
        Next::Drain => {
            let passed = DRAIN.saturating_sub(left);
            let pause = (passed / 4).clamp(LOOK_MIN, LOOK_MAX);
            Some(pause.min(left.max(LOOK_MIN)))
        }
        Next::AwaitTable => Some(left.max(LOOK_MIN)),
        _ => None,
    }
}

fn status_of(world: &World) -> EventFlowStatus {
    world.flow.status.clone().unwrap_or_default()
}

/// What is left of the time in which events may still be delivered.
fn left(world: &World, now: Timestamp) -> Duration {
    let began = world.flow.metadata.deletion_timestamp.as_ref();
    let passed = began.map_or(SignedDuration::ZERO, |began| now.duration_since(began.0));
    let passed = Duration::try_from(passed).unwrap_or_default();
    DRAIN.saturating_sub(passed)
}
