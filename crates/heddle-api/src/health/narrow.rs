//! What of a verdict somebody may know who has a role in some namespaces only. Pure.
//!
//! What everybody shares may be out of order through somebody's doing. That it is, is told; not whose doing, and not how many
//! events of all namespaces there are.

use super::catalogue;
use super::stream::VerdictEvent;
use super::{HealthPlane, Verdict};
use crate::access::{Scope, namespace_of};

/// What stands for an object that is not theirs.
const SHARED: &str = "log";

impl Verdict {
    /// Leaves out what lies in other namespaces.
    pub fn narrow(&mut self, scope: &Scope) {
        let planes = &mut self.planes;
        for (plane, found) in [
            (HealthPlane::Dependencies, &mut planes.dependencies),
            (HealthPlane::Data, &mut planes.data),
        ] {
            let reason = &found.reason;
            narrow(
                plane,
                reason,
                (&mut found.object, &mut found.evidence),
                scope,
            );
        }
        if let Some(plane) = self.plane {
            let of = (&mut self.object, &mut self.evidence);
            narrow(plane, &self.reason, of, scope);
        }
    }
}

impl VerdictEvent {
    /// The same as it is streamed.
    pub fn narrow(&mut self, scope: &Scope) {
        for plane in [HealthPlane::Dependencies, HealthPlane::Data] {
            if let Some(found) = self.planes.get_mut(plane.word()) {
                let of = (&mut found.object, &mut found.evidence);
                narrow(plane, &found.reason, of, scope);
            }
            if self.plane.as_deref() == Some(plane.word()) {
                let of = (&mut self.object, &mut self.evidence);
                narrow(plane, &self.code, of, scope);
            }
        }
    }
}

fn narrow(
    plane: HealthPlane,
    reason: &str,
    (object, evidence): (&mut Option<String>, &mut Option<String>),
    scope: &Scope,
) {
    let counts_all = plane == HealthPlane::Data && reason == catalogue::MATCHING_BEHIND.code;
    if counts_all || plane == HealthPlane::Dependencies {
        *evidence = None;
    }
    if plane != HealthPlane::Dependencies {
        return;
    }
    let namespace = object.as_deref().and_then(namespace_of);
    if namespace.is_some_and(|namespace| !scope.contains(Some(namespace))) {
        *object = Some(SHARED.to_owned());
    }
}
