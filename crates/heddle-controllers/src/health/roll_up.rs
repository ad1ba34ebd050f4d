//! From the verdicts on pairs to those on applications, namespaces and the mesh. Pure.

use std::collections::BTreeMap;

use heddle_api::health::catalogue;
use heddle_api::health::{
    ApplicationHealth, EventingStatus, HealthCounts, HealthStatus, NamespaceHealth,
    NamespaceSummary, Planes, Verdict, state,
};
use jiff::Timestamp;

use super::evidence::SharedEvidence;
use super::judge;

/// Namespaces that a status or a summary names one by one.
pub(crate) const NAMESPACES_MAX: usize = 100;

/// An application is as well as the worst of itself and its namespaces, plane by plane.
pub(crate) fn application(
    own: Verdict,
    namespaces: Vec<NamespaceHealth>,
    before: Option<&Verdict>,
    now: Timestamp,
) -> EventingStatus {
    let reached = namespaces.iter().map(|one| one.state).max();
    let worst = namespaces.iter().max_by_key(|one| one.verdict.health);
    let mut verdict = match worst.filter(|worst| worst.verdict.health > own.health) {
        Some(worst) => Verdict {
            message: format!("in {}: {}", worst.name, worst.verdict.message),
            ..worst.verdict.clone()
        },
        None => own.clone(),
    };
    verdict.planes = worst_planes(&own.planes, &namespaces);
    if verdict.health == HealthStatus::Healthy {
        verdict.message = match namespaces.len() {
            0 => "it can publish; no namespace uses it yet".to_owned(),
            count => format!(
                "events pass in {}",
                heddle_api::counted(count as u64, "namespace")
            ),
        };
        (verdict.reason, verdict.remedy) = ("Healthy".to_owned(), String::new());
    }
    verdict.since = before
        .filter(|before| before.health == verdict.health)
        .map_or(now, |before| before.since);
    let (namespaces, namespaces_left_out) = listed(namespaces);
    EventingStatus {
        verdict,
        state: reached.unwrap_or(state::CREATED),
        namespaces,
        namespaces_left_out,
    }
}

fn worst_planes(own: &Planes, namespaces: &[NamespaceHealth]) -> Planes {
    let mut planes = own.clone();
    for namespace in namespaces {
        let theirs = &namespace.verdict.planes;
        let pairs = [
            (&mut planes.control, &theirs.control),
            (&mut planes.data, &theirs.data),
            (&mut planes.user, &theirs.user),
            (&mut planes.dependencies, &theirs.dependencies),
        ];
        for (worst, theirs) in pairs {
            if theirs.health > worst.health {
                worst.clone_from(theirs);
            }
        }
    }
    planes
}

/// By name if all of them are named; otherwise the worst.
pub(crate) fn listed(mut namespaces: Vec<NamespaceHealth>) -> (Vec<NamespaceHealth>, u32) {
    if namespaces.len() <= NAMESPACES_MAX {
        return (namespaces, 0);
    }
    namespaces.sort_by(|a, b| (b.verdict.health, &a.name).cmp(&(a.verdict.health, &b.name)));
    let left_out = namespaces.split_off(NAMESPACES_MAX).len();
    (namespaces, u32::try_from(left_out).unwrap_or(u32::MAX))
}

/// The mesh: well when the canary and all applications are; broken when what they share is, or half of them are.
pub(crate) fn mesh<'a>(
    applications: impl Iterator<Item = &'a ApplicationHealth>,
    shared: &SharedEvidence,
    before: Option<&Verdict>,
    now: Timestamp,
) -> (Verdict, HealthCounts) {
    let mut counts = HealthCounts::default();
    let mut worst: Option<&ApplicationHealth> = None;
    for application in applications {
        let health = application.eventing.verdict.health;
        counts.add(health);
        if worst.is_none_or(|worst| health > worst.eventing.verdict.health) {
            worst = Some(application);
        }
    }
    let planes = Planes {
        control: worst.map_or_else(
            || heddle_api::health::PlaneHealth {
                health: HealthStatus::Healthy,
                reason: "NothingDeclared".to_owned(),
                message: "there is no application".to_owned(),
                ..Default::default()
            },
            |worst| worst.eventing.verdict.planes.control.clone(),
        ),
        data: judge::canary(shared),
        user: worst_user(worst),
        dependencies: judge::dependencies(shared),
    };
    let mut verdict = judge::conclude(
        Planes {
            // What is wrong with one application is not yet wrong with the mesh.
            control: judge::shared_control(shared),
            ..planes.clone()
        },
        before,
        now,
    );
    verdict.planes = planes;
    if let Some(worst) = worst
        && verdict.health < HealthStatus::Unhealthy
        && worst.eventing.verdict.health != HealthStatus::Healthy
    {
        tell_applications(&mut verdict, worst, counts);
    }
    if verdict.health == HealthStatus::Healthy {
        verdict.reason = "Healthy".to_owned();
        verdict.message = match counts.all() {
            0 => "the canary passes; there is no application yet".to_owned(),
            all => format!(
                "the canary passes, and events of {} do",
                heddle_api::counted(u64::from(all), "application")
            ),
        };
    }
    verdict.since = before
        .filter(|before| before.health == verdict.health)
        .map_or(now, |before| before.since);
    (verdict, counts)
}

fn worst_user(worst: Option<&ApplicationHealth>) -> heddle_api::health::PlaneHealth {
    worst.map_or_else(
        || heddle_api::health::PlaneHealth {
            health: HealthStatus::Healthy,
            reason: "NothingSubscribed".to_owned(),
            message: "there is no application".to_owned(),
            ..Default::default()
        },
        |worst| worst.eventing.verdict.planes.user.clone(),
    )
}

/// Some applications are not well.
fn tell_applications(verdict: &mut Verdict, worst: &ApplicationHealth, counts: HealthCounts) {
    let unhealthy_half = counts.unhealthy * 2 >= counts.all() && counts.unhealthy > 0;
    let theirs = &worst.eventing.verdict;
    let unknown_only = counts.degraded + counts.unhealthy == 0;
    let health = if unhealthy_half {
        HealthStatus::Unhealthy
    } else if unknown_only {
        HealthStatus::Unknown
    } else {
        HealthStatus::Degraded
    };
    if health <= verdict.health {
        return;
    }
    verdict.health = health;
    verdict.reason.clone_from(&theirs.reason);
    let others = counts.all() - counts.healthy;
    let others = heddle_api::counted_that(others, "application", "is not well", "are not well");
    verdict.message = format!("{others}; {}: {}", worst.name, theirs.message);
    verdict.remedy.clone_from(&theirs.remedy);
    verdict.plane = theirs.plane;
    verdict.hop.clone_from(&theirs.hop);
    verdict.object.clone_from(&theirs.object);
    verdict.evidence.clone_from(&theirs.evidence);
}

/// Each namespace with how well the applications in it are, the worst first.
pub(crate) fn namespaces<'a>(
    pairs: impl Iterator<Item = (&'a str, HealthStatus)>,
) -> Vec<NamespaceSummary> {
    let mut all: BTreeMap<&str, NamespaceSummary> = BTreeMap::new();
    for (namespace, health) in pairs {
        let summary = all.entry(namespace).or_insert_with(|| NamespaceSummary {
            name: namespace.to_owned(),
            health: HealthStatus::Healthy,
            ..NamespaceSummary::default()
        });
        summary.health = summary.health.max(health);
        summary.applications.add(health);
    }
    let mut all: Vec<NamespaceSummary> = all.into_values().collect();
    all.sort_by_key(|summary| std::cmp::Reverse(summary.health));
    all.truncate(NAMESPACES_MAX);
    all
}

/// What is shown where the judge itself has fallen silent.
pub(crate) fn silent(verdict: &mut Verdict, seconds: u64) {
    let fault = &catalogue::CONTROLLER_STALLED;
    let evidence = format!("the last verdict is {seconds} s old");
    for plane in [
        &mut verdict.planes.control,
        &mut verdict.planes.data,
        &mut verdict.planes.user,
        &mut verdict.planes.dependencies,
    ] {
        plane.health = HealthStatus::Unknown;
        fault.code.clone_into(&mut plane.reason);
        plane.evidence = Some(evidence.clone());
    }
    verdict.health = HealthStatus::Unknown;
    verdict.reason = fault.code.to_owned();
    verdict.message = fault.said();
    verdict.remedy = fault.remedy.to_owned();
    verdict.object = Some("controller/heddle-health".to_owned());
    verdict.evidence = Some(evidence);
}
