//! A report as somebody may read it who has a role in some namespaces only. Pure.
//!
//! Their mesh is what is bound to their namespaces, and is as well as the worst of it: verdicts on more than that name objects
//! which are not theirs.

use std::sync::Arc;

use heddle_api::access::{Scope, namespace_of};
use heddle_api::dataplane::MeshReading;
use heddle_api::health::{HealthCounts, HealthStatus, NamespaceHealth, Verdict};

use super::Report;

impl Report {
    /// The same for somebody with that scope.
    #[must_use]
    pub fn within(&self, scope: &Scope) -> Self {
        let mut report = self.clone();
        if *scope == Scope::All {
            return report;
        }
        let is_theirs = |name: &str| scope.contains(Some(name));
        report
            .pairs
            .retain(|(_, namespace), _| is_theirs(namespace));
        let pairs = std::mem::take(&mut report.pairs);
        report.applications.retain(|name, application| {
            let first = (name.clone(), String::new());
            let own = || {
                pairs
                    .range(first.clone()..)
                    .take_while(|((of, _), _)| of == name)
            };
            let Some(worst) = worst(own().map(|(_, pair)| pair)) else {
                return false;
            };
            application.eventing.verdict = worst.verdict.clone();
            let state = own().map(|(_, pair)| pair.state).max();
            application.eventing.state = state.unwrap_or_default();
            let namespaces = &mut application.eventing.namespaces;
            namespaces.retain(|namespace| is_theirs(&namespace.name));
            application.eventing.namespaces_left_out = 0;
            true
        });
        let mut counts = HealthCounts::default();
        for application in report.applications.values() {
            counts.add(application.eventing.verdict.health);
        }
        report.mesh.applications = counts;
        report
            .mesh
            .namespaces
            .retain(|namespace| is_theirs(&namespace.name));
        report.mesh.verdict = match worst(pairs.values()) {
            Some(worst) => worst.verdict.clone(),
            None => Verdict {
                health: HealthStatus::Healthy,
                since: report.mesh.at,
                reason: "NothingDeclared".to_owned(),
                message: "no application is bound to a namespace of yours".to_owned(),
                ..Verdict::default()
            },
        };
        report.pairs = pairs;
        let mut evidence = Vec::clone(&report.evidence);
        evidence.retain_mut(|application| {
            let namespaces = &mut application.namespaces;
            namespaces.retain(|pair| is_theirs(&pair.namespace));
            !namespaces.is_empty()
        });
        report.evidence = Arc::new(evidence);
        let narrow = |reading: &MeshReading| {
            let mut reading = reading.clone();
            let consumers = &mut reading.consumers;
            consumers.retain(|one| scope.contains(namespace_of(&one.key)));
            let doors = &mut reading.doors;
            doors.retain(|door| report.applications.contains_key(&door.application));
            Arc::new(reading)
        };
        let reading = narrow(&report.reading);
        let earlier = (report.earlier.as_ref()).map(|(at, reading)| (*at, narrow(reading)));
        (report.reading, report.earlier) = (reading, earlier);
        report
    }
}

fn worst<'a>(pairs: impl Iterator<Item = &'a NamespaceHealth>) -> Option<&'a NamespaceHealth> {
    pairs.max_by_key(|pair| pair.verdict.health)
}
