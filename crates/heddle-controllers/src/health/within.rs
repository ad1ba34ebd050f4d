//! A report as somebody may read it who has a role in some namespaces only. Pure.
//!
//! Their mesh is what is bound to their namespaces, and is as well as the worst of it: verdicts on more than that name objects
//! which are not theirs.

use std::sync::Arc;

use heddle_api::access::{Scope, namespace_of};
use heddle_api::dataplane::MeshReading;
use heddle_api::health::{HealthCounts, HealthStatus, NamespaceHealth, Verdict};

use super::{Report, roll_up};

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
        let mut pairs = std::mem::take(&mut report.pairs);
        for pair in pairs.values_mut() {
            pair.verdict.narrow(scope);
        }
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
            // Theirs may be among those that a list of all leaves out.
            let namespaces = own().map(|(_, pair)| NamespaceHealth {
                heartbeat: None,
                ..pair.clone()
            });
            let eventing = &mut application.eventing;
            (eventing.namespaces, eventing.namespaces_left_out) =
                roll_up::listed(namespaces.collect());
            true
        });
        let mut counts = HealthCounts::default();
        for application in report.applications.values() {
            counts.add(application.eventing.verdict.health);
        }
        report.mesh.applications = counts;
        let healths = pairs.iter();
        let healths = healths.map(|((_, namespace), pair)| (&**namespace, pair.verdict.health));
        report.mesh.namespaces = roll_up::namespaces(healths);
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
        let mut brokers = Vec::clone(&report.brokers);
        brokers.retain(|broker| is_theirs(&broker.namespace));
        report.brokers = Arc::new(brokers);
        let within = |reading: &MeshReading| {
            let mut reading = reading.clone();
            let consumers = &mut reading.consumers;
            consumers.retain(|one| scope.contains(namespace_of(&one.key)));
            let doors = &mut reading.doors;
            doors.retain(|door| report.applications.contains_key(&door.application));
            // How fast the log of all grows is nobody's business who sees a part of them.
            reading.log.end = None;
            Arc::new(reading)
        };
        let reading = within(&report.reading);
        let earlier = (report.earlier.as_ref()).map(|(at, reading)| (*at, within(reading)));
        (report.reading, report.earlier) = (reading, earlier);
        report
    }
}

fn worst<'a>(pairs: impl Iterator<Item = &'a NamespaceHealth>) -> Option<&'a NamespaceHealth> {
    pairs.max_by_key(|pair| pair.verdict.health)
}
