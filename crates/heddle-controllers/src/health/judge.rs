//! From evidence to a verdict: pure, and the only place where health is decided.
//!
//! ```text
//!   control       the first object that others wait for and that is not ready; unknown while its controller is stalled
//!   data          synthetic events; conditions do not outweigh them
//!   user          triggers, subscribers, publishers: no say in the health of the mesh
//!   dependencies  the log, its room, the journal, the store
//! ```
//! Invariant: less evidence never gives a better verdict. What is not known is `Unknown`, not what it was.
//!
//! The only memory is the verdict before, for two rules: synthetic events have to arrive twice before a broken way counts as
//! mended, and `since` stays while the health does.

use std::time::Duration;

use heddle_api::dataplane::{ConsumerReading, HeartbeatReading};
use heddle_api::health::catalogue::{self, HealthFault};
use heddle_api::health::{HealthPlane, HealthStatus, PlaneHealth, Planes, Verdict, state};
use jiff::Timestamp;

use super::evidence::{
    ApplicationEvidence, ObjectState, PairEvidence, PathObject, Probing, SharedEvidence,
    TriggerEvidence,
};
use super::subscriber_probe;

/// Intervals without an arrival, and failures of a probe in a row, that are believed; and the intervals after which what was
/// seen proves nothing any more.
pub(super) const MISSES_MAX: u32 = 3;
/// Arrivals in a row after which a broken way is mended.
const HITS_MIN: u32 = 2;
/// Synthetic events that take longer are slow.
const SLOW: Duration = Duration::from_secs(5);
/// An event of a user that has waited for longer is late.
const LATE: Duration = Duration::from_secs(60);
/// How long a failed attempt is news when nothing has been tried since.
const FAILURE_KEPT: Duration = Duration::from_secs(600);
/// How long a delivery proves that a subscriber answers when nothing has been sent since.
const SUCCESS_KEPT: Duration = Duration::from_secs(3600);
/// Used of the room for events: from here on it is worth a look.
const FILLING: f64 = 0.8;
/// Events that nobody has matched for longer are stuck.
const UNMATCHED_MAX: Duration = Duration::from_secs(30);

/// A plane in which nothing is wrong.
pub(super) fn well(reason: &str, message: impl Into<String>) -> PlaneHealth {
    PlaneHealth {
        health: HealthStatus::Healthy,
        reason: reason.to_owned(),
        message: message.into(),
        ..PlaneHealth::default()
    }
}

/// A plane in which this is wrong.
pub(super) fn wrong(fault: &HealthFault) -> PlaneHealth {
    PlaneHealth {
        health: fault.health,
        reason: fault.code.to_owned(),
        message: fault.said(),
        remedy: fault.remedy.to_owned(),
        hop: fault.hop.map(str::to_owned),
        object: None,
        evidence: None,
    }
}

pub(super) trait PlaneDetails {
    fn about(self, object: impl Into<String>) -> Self;
    fn seen(self, evidence: impl Into<String>) -> Self;
}

impl PlaneDetails for PlaneHealth {
    fn about(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }

    fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence = Some(evidence.into()).filter(|evidence| !evidence.is_empty());
        self
    }
}

/// The verdict on an application as far as no namespace is concerned.
pub(crate) fn application(
    evidence: &ApplicationEvidence,
    shared: &SharedEvidence,
    before: Option<&Verdict>,
    now: Timestamp,
) -> Verdict {
    let planes = Planes {
        control: control(&own_path(evidence), evidence.skipped, shared, |object| {
            object == evidence.application.object
        }),
        data: canary(shared),
        user: publisher(evidence),
        dependencies: dependencies(shared),
    };
    conclude(planes, before, now)
}

/// The verdict on an application in a namespace.
pub(crate) fn pair(
    evidence: &ApplicationEvidence,
    pair: &PairEvidence,
    shared: &SharedEvidence,
    before: Option<&Verdict>,
    now: Timestamp,
) -> Verdict {
    let mut path = own_path(evidence);
    path.extend(pair.path());
    let namespace = format!("namespace/{}", pair.namespace);
    let concerns = |object: &str| {
        let triggers = &mut pair.triggers.iter();
        object == namespace
            || path.iter().any(|(_, own)| own.object == object)
            || triggers.any(|one| one.trigger.object == object)
    };
    let planes = Planes {
        control: control(&path, evidence.skipped, shared, concerns),
        data: data(evidence, pair, shared, before),
        user: user(evidence, &pair.triggers),
        dependencies: dependencies(shared),
    };
    conclude(planes, before, now)
}

/// How far an application has come in a namespace.
pub(crate) fn reached(
    evidence: &ApplicationEvidence,
    pair: &PairEvidence,
    data: HealthStatus,
) -> u8 {
    // A link that somebody made by hand needs neither a mapping nor a flow.
    let by_hand = pair.flows.is_empty() && pair.link.as_ref().is_some_and(PathObject::is_ready);
    let bound = by_hand || pair.mapping.as_ref().is_some_and(PathObject::is_ready);
    let flowing = !pair.flows.is_empty() && pair.flows.iter().all(PathObject::is_ready);
    let enabled = by_hand || flowing;
    let triggers = &mut pair.triggers.iter();
    let triggered = triggers.any(|one| one.trigger.is_ready()) && data == HealthStatus::Healthy;
    let created = own_path(evidence)
        .iter()
        .all(|(_, object)| object.is_ready());
    match (created && bound, enabled, triggered) {
        (true, true, true) => state::TRIGGERED,
        (true, true, false) => state::ENABLED,
        (true, false, _) => state::BOUND,
        (false, _, _) => state::CREATED,
    }
}

type Path<'a> = Vec<(&'static HealthFault, &'a PathObject)>;

/// What others wait for comes first, so that the cause is named and not what follows from it: an Application waits for its
/// Channel and its source to be ready, and both go with an Application that does.
fn own_path(evidence: &ApplicationEvidence) -> Path<'_> {
    let mut path = vec![
        (&catalogue::CHANNEL_NOT_READY, &evidence.channel),
        (&catalogue::SOURCE_NOT_READY, &evidence.source),
        (&catalogue::APPLICATION_NOT_READY, &evidence.application),
    ];
    if evidence.application.state == ObjectState::Missing {
        path.rotate_right(1);
    }
    path
}

impl PairEvidence {
    fn path(&self) -> Path<'_> {
        let parts = [
            (&catalogue::MAPPING_NOT_READY, self.mapping.as_ref()),
            (&catalogue::INSTANCE_FAILED, self.failed_instance.as_ref()),
            (&catalogue::BROKER_NOT_READY, self.broker.as_ref()),
            (&catalogue::LINK_NOT_READY, self.link.as_ref()),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(fault, object)| Some((fault, object?)));
        let flows = self.flows.iter();
        parts
            .chain(flows.map(|flow| (&catalogue::FLOW_NOT_READY, flow)))
            .collect()
    }
}

/// The control plane as far as all share it.
pub(crate) fn shared_control(shared: &SharedEvidence) -> PlaneHealth {
    control(&Vec::new(), false, shared, |_| true)
}

/// `concerns` says whether an object that a controller fails for belongs to this scope.
fn control(
    path: &Path<'_>,
    skipped: bool,
    shared: &SharedEvidence,
    concerns: impl Fn(&str) -> bool,
) -> PlaneHealth {
    if shared.pulses.is_empty() {
        return wrong(&catalogue::NOT_YET_OBSERVED).seen("no controller has begun to work");
    }
    if let Some(stalled) = shared.pulses.iter().find(|pulse| pulse.is_stalled()) {
        let (age, waiting, running) = (stalled.age, stalled.waiting_for, stalled.running_for);
        let evidence = if running > age && running > waiting {
            format!("a reconcile has not ended for {} s", running.as_secs())
        } else if waiting > age {
            let seconds = waiting.as_secs();
            format!(
                "{} wait, and none was taken for {seconds} s",
                stalled.queued
            )
        } else {
            format!("it was last seen {} s ago", age.as_secs())
        };
        return wrong(&catalogue::CONTROLLER_STALLED)
            .about(format!("controller/{}", stalled.controller))
            .seen(evidence);
    }
    if let Err(answer) = &shared.admission {
        return wrong(&catalogue::ADMISSION_FAILING)
            .about("admission")
            .seen(answer);
    }
    if skipped {
        return well(
            "InstallationSkipped",
            "the application asks for nothing to be set up",
        );
    }
    let broken = path.iter().find_map(|(fault, object)| {
        let missing = "it does not exist";
        let why = match &object.state {
            ObjectState::Missing => missing,
            ObjectState::NotReady(why) => why,
            ObjectState::Unobserved(_) | ObjectState::Ready => return None,
        };
        Some(wrong(fault).about(&object.object).seen(why))
    });
    let unobserved = || {
        path.iter().find_map(|(fault, object)| {
            let ObjectState::Unobserved(why) = &object.state else {
                return None;
            };
            let mut unknown = wrong(&catalogue::NOT_YET_OBSERVED);
            unknown.hop = fault.hop.map(str::to_owned);
            Some(unknown.about(&object.object).seen(why))
        })
    };
    if let Some(found) = broken.or_else(unobserved) {
        return found;
    }
    let failing = shared.pulses.iter().find_map(|pulse| {
        let mut objects = pulse.failing_objects.iter();
        let one = objects.find(|one| concerns(&one.object));
        let own = one.map(|one| format!("{}: {}", one.object, one.error));
        Some((pulse.controller, own.or_else(|| pulse.failing.clone())?))
    });
    if let Some((controller, error)) = failing {
        return wrong(&catalogue::CONTROLLER_FAILING)
            .about(format!("controller/{controller}"))
            .seen(error);
    }
    well("AsDeclared", "every object on the way is there and ready")
}

fn data(
    evidence: &ApplicationEvidence,
    pair: &PairEvidence,
    shared: &SharedEvidence,
    before: Option<&Verdict>,
) -> PlaneHealth {
    if let Some(found) = shared_path(shared) {
        return found;
    }
    let triggers = pair.triggers.iter();
    let mut unaccounted = triggers.filter(|one| shared.unaccounted.contains(&one.trigger.object));
    if let Some(one) = unaccounted.next() {
        return wrong(&catalogue::BALANCE_VIOLATED).about(&one.trigger.object);
    }
    match &pair.probing {
        Probing::Unneeded => well("NothingFlows", "no events flow into the namespace yet"),
        Probing::Off => wrong(&catalogue::HEARTBEAT_DISABLED),
        Probing::On(None) => wrong(&catalogue::HEARTBEAT_PENDING),
        Probing::On(Some(reading)) => {
            let before = before.map(|before| before.planes.data.health);
            let mut found = heartbeat(reading, before);
            if found.object.is_none() && found.health == HealthStatus::Unhealthy {
                found.object = Some(format!("application/{}", evidence.name));
            }
            found
        }
    }
}

/// What synthetic events say about a way.
fn heartbeat(reading: &HeartbeatReading, before: Option<HealthStatus>) -> PlaneHealth {
    if reading.interval.is_zero() {
        return wrong(&catalogue::HEARTBEAT_DISABLED);
    }
    let patience = reading.interval * MISSES_MAX;
    let waited = reading.age.or(reading.since).unwrap_or_default();
    let overdue = waited > patience;
    if reading.misses >= MISSES_MAX || (overdue && reading.misses + 1 >= MISSES_MAX) {
        return missing(reading, &catalogue::HEARTBEAT_MISSING);
    }
    if overdue {
        // None was sent either: the process was stopped for a while, or whoever sends them is.
        return wrong(&catalogue::HEARTBEAT_STALE);
    }
    if reading.age.is_none() {
        return wrong(&catalogue::HEARTBEAT_PENDING);
    }
    if before == Some(HealthStatus::Unhealthy) && reading.hits < HITS_MIN {
        let mut still = missing(reading, &catalogue::HEARTBEAT_MISSING);
        still.message =
            "a synthetic event arrived again; one more and the way counts as mended".to_owned();
        return still;
    }
    let took = reading.end_to_end.unwrap_or_default();
    if took > SLOW {
        return slow(reading, took);
    }
    let message = format!("synthetic events arrive every {:.0?}", reading.interval);
    well("HeartbeatOK", message)
}

/// Synthetic events arrive late: which hop keeps them up.
fn slow(reading: &HeartbeatReading, took: Duration) -> PlaneHealth {
    let found = wrong(&catalogue::HEARTBEAT_SLOW);
    let Some(slowest) = &reading.slowest else {
        return found.seen(format!("the last one took {took:.1?}"));
    };
    let (hop, most) = (&slowest.hop, slowest.took);
    let evidence = format!("the last one took {took:.1?}, {most:.1?} of it at hop {hop}");
    let mut found = found.about(&slowest.object).seen(evidence);
    found.hop = Some(hop.clone());
    found
}

fn missing(reading: &HeartbeatReading, otherwise: &HealthFault) -> PlaneHealth {
    let Some(stuck) = &reading.stuck else {
        return wrong(otherwise);
    };
    let fault = match stuck.hop.as_str() {
        "source" => &catalogue::SOURCE_REFUSES,
        "channel" => &catalogue::CHANNEL_NOT_WRITTEN,
        "subscription" => &catalogue::LINK_BROKEN,
        "broker" => &catalogue::BROKER_NOT_ROUTING,
        "trigger" => &catalogue::DISPATCH_STALLED,
        "delivery" => &catalogue::DELIVERY_FAILING,
        _ => otherwise,
    };
    let mut found = wrong(fault).about(&stuck.object).seen(&stuck.why);
    found.hop = Some(stuck.hop.clone());
    found
}

/// What is wrong with the part of the path that all share, if anything.
fn shared_path(shared: &SharedEvidence) -> Option<PlaneHealth> {
    let Some(log) = shared.log.as_ref().filter(|_| shared.routing) else {
        return Some(wrong(&catalogue::NOT_ROUTING));
    };
    let stuck = log.unmatched_for.filter(|age| *age > UNMATCHED_MAX)?;
    let evidence = format!("{} events, for {} s", log.unmatched, stuck.as_secs());
    let found = wrong(&catalogue::MATCHING_BEHIND).about("scanner");
    Some(found.seen(evidence))
}

/// The path that belongs to nobody, and the one by which publishers elsewhere come in.
pub(crate) fn canary(shared: &SharedEvidence) -> PlaneHealth {
    if let Some(found) = shared_path(shared) {
        return found;
    }
    let found = heartbeat(&shared.canary, None);
    if found.health != HealthStatus::Unhealthy {
        let edge = shared.edge.as_ref().and_then(super::edge::judge);
        return edge
            .filter(|edge| edge.health > found.health)
            .unwrap_or(found);
    }
    let mut failing = wrong(&catalogue::CANARY_FAILING);
    (failing.hop, failing.object) = (found.hop, found.object);
    let what = found.evidence.unwrap_or(found.message);
    failing.seen(what)
}

pub(crate) fn dependencies(shared: &SharedEvidence) -> PlaneHealth {
    let Some(log) = &shared.log else {
        return wrong(&catalogue::NOT_ROUTING).seen("no mesh runs beside these controllers");
    };
    // Whoever keeps most of the log can make room.
    let keeper = log.largest.as_deref().unwrap_or("log");
    let room = |fault: &HealthFault| wrong(fault).about(keeper);
    if let Some(why) = &log.broken {
        return wrong(&catalogue::LOG_BROKEN).about("log").seen(why);
    }
    if let Some(why) = &shared.store {
        return wrong(&catalogue::STORE_BROKEN).about("store").seen(why);
    }
    if let Some(why) = &log.refusing {
        return room(&catalogue::LOG_FULL).seen(why);
    }
    if let Some(why) = &log.journal_stalled {
        return wrong(&catalogue::JOURNAL_STALLED)
            .about("journal")
            .seen(why);
    }
    if let Some(used) = log.used_ratio.filter(|used| *used >= FILLING) {
        let forecast = log.disk_full.as_ref();
        let forecast = forecast.map_or_else(String::new, |full| format!("; {}", full.in_words()));
        let evidence = format!("{:.0} % is used{forecast}", used * 100.0);
        return room(&catalogue::LOG_FILLING).seen(evidence);
    }
    if log.damaged + log.journal_lost > 0 {
        let evidence = format!(
            "{} records of the log, {} of the journal",
            log.damaged, log.journal_lost
        );
        return wrong(&catalogue::LOG_DAMAGED).about("log").seen(evidence);
    }
    well(
        "Serving",
        "events are accepted and what becomes of them is written down",
    )
}

/// What is known of publishers alone.
fn publisher(evidence: &ApplicationEvidence) -> PlaneHealth {
    let refused = evidence.door.refused;
    if refused > 0 {
        return wrong(&catalogue::PUBLISHER_REFUSED)
            .about(&evidence.application.object)
            .seen(format!("{refused} in the last minutes"));
    }
    well("NothingToTell", "no publisher was refused lately")
}

fn user(evidence: &ApplicationEvidence, triggers: &[TriggerEvidence]) -> PlaneHealth {
    let door = evidence.door;
    let worst = triggers
        .iter()
        .map(trigger)
        .max_by_key(|found| found.health);
    let Some(worst) = worst else {
        let publisher = publisher(evidence);
        if publisher.health != HealthStatus::Healthy {
            return publisher;
        }
        return well(
            "NothingSubscribed",
            "no Trigger receives events of the application here",
        );
    };
    if worst.health >= HealthStatus::Degraded && worst.health != HealthStatus::Unknown {
        return worst;
    }
    let publisher = publisher(evidence);
    if publisher.health != HealthStatus::Healthy {
        return publisher;
    }
    if door.accepted > 0 && door.unmatched >= door.accepted {
        return wrong(&catalogue::EVENTS_UNMATCHED)
            .about(&evidence.application.object)
            .seen(format!("{} events in the last minutes", door.unmatched));
    }
    worst
}

/// How one trigger is.
pub(super) fn trigger(evidence: &TriggerEvidence) -> PlaneHealth {
    let object = &evidence.trigger.object;
    match &evidence.trigger.state {
        ObjectState::Missing => {
            return wrong(&catalogue::TRIGGER_NOT_READY)
                .about(object)
                .seen("it does not exist");
        }
        ObjectState::NotReady(why) => {
            return wrong(&catalogue::TRIGGER_NOT_READY).about(object).seen(why);
        }
        ObjectState::Unobserved(why) => {
            let mut unknown = wrong(&catalogue::NOT_YET_OBSERVED);
            unknown.hop = Some("trigger".to_owned());
            return unknown.about(object).seen(why);
        }
        ObjectState::Ready => {}
    }
    let Some(reading) = &evidence.reading else {
        return wrong(&catalogue::SUBSCRIBER_UNTRIED).about(object);
    };
    subscriber(reading).about(object)
}

/// What became of the events of one consumer.
fn subscriber(reading: &ConsumerReading) -> PlaneHealth {
    if let Some((age, why)) = &reading.failed
        && (reading.retrying > 0 || *age <= FAILURE_KEPT)
    {
        let evidence = format!("{why}; {} wait", reading.pending);
        return wrong(&catalogue::SUBSCRIBER_FAILING).seen(evidence);
    }
    if let Some(silent) = subscriber_probe::failing(reading) {
        return silent;
    }
    if let Some(late) = reading.oldest_pending.filter(|age| *age > LATE) {
        let evidence = format!(
            "{} wait, the oldest for {} s",
            reading.pending,
            late.as_secs()
        );
        return wrong(&catalogue::BACKLOG_OLD).seen(evidence);
    }
    if reading.dead_letters > 0 {
        return wrong(&catalogue::DEAD_LETTERS).seen(format!("{} rest", reading.dead_letters));
    }
    if reading.succeeded.is_none_or(|age| age > SUCCESS_KEPT) {
        let tried = subscriber_probe::answering(reading);
        return tried.unwrap_or_else(|| wrong(&catalogue::SUBSCRIBER_UNTRIED));
    }
    well("Delivering", "the subscriber takes what it is sent")
}

/// The health of a scope from its planes. What is measured outweighs what is said: a way that synthetic events pass is not
/// broken, whatever its conditions say, and one that they do not pass is.
pub(crate) fn conclude(planes: Planes, before: Option<&Verdict>, now: Timestamp) -> Verdict {
    let deciding = [
        (HealthPlane::Dependencies, &planes.dependencies),
        (HealthPlane::Data, &planes.data),
        (HealthPlane::Control, &planes.control),
    ];
    // Planes that are equally bad are told in this order: what everything stands on, what was measured, what is said. But
    // what is said names an object where what was measured only knows that something is missing.
    let measured =
        planes.data.health == HealthStatus::Healthy && planes.data.reason == "HeartbeatOK";
    let stale = planes.control.health == HealthStatus::Unhealthy && measured;
    let weight = |plane: HealthPlane, health: HealthStatus| {
        if plane == HealthPlane::Control && stale {
            HealthStatus::Degraded
        } else {
            health
        }
    };
    let worst = deciding
        .iter()
        .map(|(plane, found)| weight(*plane, found.health))
        .max()
        .unwrap_or_default();
    let decided = deciding
        .iter()
        .find(|(plane, found)| weight(*plane, found.health) == worst);
    let (plane, found) = match decided {
        Some((HealthPlane::Data, _)) if names_the_cause(&planes) => {
            (HealthPlane::Control, &planes.control)
        }
        Some((plane, found)) => (*plane, *found),
        None => (HealthPlane::Data, &planes.data),
    };
    let since = before
        .filter(|before| before.health == worst)
        .map_or(now, |before| before.since);
    let told = worst != HealthStatus::Healthy;
    // That nothing can be declared is no condition of an object on the way, and events that pass say nothing about it.
    let is_condition = found.reason != catalogue::ADMISSION_FAILING.code;
    let contradicted = found
        .object
        .as_ref()
        .filter(|_| stale && plane == HealthPlane::Control && is_condition);
    let (reason, message) = match contradicted {
        Some(object) => (
            catalogue::CONTROL_PLANE_STALE.code.to_owned(),
            format!("{object} says that it is not ready, and events pass all the same"),
        ),
        None if told => (found.reason.clone(), found.message.clone()),
        None => (planes.data.reason.clone(), planes.data.message.clone()),
    };
    Verdict {
        health: worst,
        since,
        reason,
        message,
        remedy: found.remedy.clone(),
        plane: told.then_some(plane),
        hop: found.hop.clone().filter(|_| told),
        object: found.object.clone().filter(|_| told),
        evidence: found.evidence.clone().filter(|_| told),
        planes,
    }
}

/// Whether the control plane knows why synthetic events are missing.
fn names_the_cause(planes: &Planes) -> bool {
    let both = [&planes.control, &planes.data];
    both.iter()
        .all(|found| found.health == HealthStatus::Unhealthy)
        && planes.control.object.is_some()
}
