//! Plan: hold a flow before anything is made for it, and let it go when nothing of it is left.

use heddle_api::well_known::FINALIZER;

use super::FLOW;
use super::leaving::{self, Next};
use super::observe::World;
use crate::reconcile::Step;

pub(super) fn plan(world: &World) -> Vec<Step> {
    let step = match leaving::next(world) {
        None => Step::hold(FLOW, &world.flow, FINALIZER),
        Some(Next::LetGo) => Step::release(FLOW, &world.flow, FINALIZER),
        Some(_) => None,
    };
    step.into_iter().collect()
}
