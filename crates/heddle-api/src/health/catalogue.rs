//! What can go wrong, as one table: code, plane, severity, who notices, what it means, what to do.
//!
//! A verdict is made from an entry of this table and from nothing else, so a code without an entry cannot be written. The
//! reference, `heddle health inventory`, the alerts and their runbooks are made from it too. Codes retire; they are not given
//! to something else.

mod fault;

use super::{HealthPlane, HealthStatus};
pub use fault::{Detector, HealthFault, RUNBOOKS};
use fault::{beneath, edge, of_user, stuck, unready};

macro_rules! catalogue {
    ($($(#[doc = $doc:literal])* $name:ident = $fault:expr;)*) => {
        $($(#[doc = $doc])* pub const $name: HealthFault = $fault;)*

        /// All entries, by plane.
        pub const ALL: &[HealthFault] = &[$($name),*];
    };
}

/// The entry of a code.
#[must_use]
pub fn find(code: &str) -> Option<&'static HealthFault> {
    ALL.iter().find(|fault| fault.code == code)
}

catalogue! {
    /// The Application itself.
    APPLICATION_NOT_READY = unready(
        "ApplicationNotReady", Some("source"),
        "The Application is not ready, and its conditions say why.",
        "follow what its Ready condition says",
        &["kubectl describe application APP"],
    );
    /// Its door.
    SOURCE_NOT_READY = unready(
        "SourceNotReady", Some("source"),
        "The HTTPSource through which the application publishes is missing or not ready.",
        "it is made again without help; if it stays away, follow what its Ready condition says",
        &["kubectl -n kyma-integration describe httpsource APP"],
    );
    /// Its log.
    CHANNEL_NOT_READY = unready(
        "ChannelNotReady", Some("channel"),
        "The Channel that keeps the application's events is missing or not ready.",
        "it is made again without help; if it stays away, follow what its Ready condition says",
        &["kubectl -n kyma-integration describe channel.messaging.knative.dev APP"],
    );
    /// Its mapping.
    MAPPING_NOT_READY = unready(
        "MappingNotReady", None,
        "The ApplicationMapping of the namespace names something that does not exist, or enables nothing.",
        "follow what the Ready condition of the ApplicationMapping says",
        &["kubectl -n NS describe applicationmapping APP"],
    );
    /// What somebody provisioned.
    INSTANCE_FAILED = unready(
        "InstanceFailed", None,
        "A service instance that asks for the application's events has failed.",
        "`heddle explain instance` says what would let it go on; deprovision it if nobody wants it any more",
        &["heddle explain instance NAME -n NS"],
    );
    /// A flow.
    FLOW_NOT_READY = unready(
        "FlowNotReady", None,
        "An EventFlow of the application in the namespace is not ready.",
        "follow what its Ready condition says; what can be made without help is made without help",
        &["kubectl -n NS describe eventflow NAME"],
    );
    /// A link.
    LINK_NOT_READY = unready(
        "LinkNotReady", Some("subscription"),
        "The Subscription that leads from the application's Channel to the namespace's Broker is missing or not ready.",
        "it is made again without help; if it stays away, follow what its Ready condition says",
        &["kubectl -n kyma-integration get subscriptions.messaging.knative.dev", "heddle topology"],
    );
    /// A broker.
    BROKER_NOT_READY = unready(
        "BrokerNotReady", Some("broker"),
        "The Broker of the namespace is missing or not ready.",
        "it is made again without help unless the namespace forbids it; follow what its Ready condition says",
        &["kubectl -n NS describe broker NAME"],
    );
    /// Conditions that nobody keeps.
    CONTROLLER_STALLED = HealthFault {
        code: "ControllerStalled",
        plane: HealthPlane::Control,
        health: HealthStatus::Unknown,
        detector: Detector::Resources,
        hop: None,
        meaning: "A controller has not been at work for more than fifteen seconds, so its conditions may say what is no longer so.",
        impact: "What is declared or changed now is not acted on. Events that are routed already go on.",
        remedy: "look for its last error in the log; restart heddle if it does not go on by itself",
        diagnosis: &["heddle health inventory", "curl -s http://127.0.0.1:4333/readyz"],
    };
    /// A controller that fails again and again.
    CONTROLLER_FAILING = HealthFault {
        code: "ControllerFailing",
        plane: HealthPlane::Control,
        health: HealthStatus::Degraded,
        detector: Detector::Resources,
        hop: None,
        meaning: "A controller keeps failing; it tries again with growing pauses.",
        impact: "Some objects are not brought to where they should be.",
        remedy: "the evidence is its last error; it goes on by itself once that is gone",
        diagnosis: &["heddle health inventory", "kubectl get events -A"],
    };
    /// Conditions say no, events say yes.
    CONTROL_PLANE_STALE = HealthFault {
        code: "ControlPlaneStale",
        plane: HealthPlane::Control,
        health: HealthStatus::Degraded,
        detector: Detector::Heartbeat,
        hop: None,
        meaning: "Conditions say that something is broken, and synthetic events pass all the same.",
        impact: "Events arrive. A restart or a change may end that.",
        remedy: "mend what the control plane names; events pass meanwhile",
        diagnosis: &["heddle health APP -n NS", "heddle doctor"],
    };
    /// Nobody has looked yet.
    NOT_YET_OBSERVED = HealthFault {
        code: "NotYetObserved",
        plane: HealthPlane::Control,
        health: HealthStatus::Unknown,
        detector: Detector::Resources,
        hop: None,
        meaning: "A part has no conditions yet, or they speak of an earlier generation.",
        impact: "None yet.",
        remedy: "wait a moment; it is looked at without help",
        diagnosis: &["heddle health APP -n NS"],
    };
    /// New objects are refused.
    ADMISSION_FAILING = HealthFault {
        code: "AdmissionFailing",
        plane: HealthPlane::Control,
        health: HealthStatus::Unhealthy,
        detector: Detector::Resources,
        hop: None,
        meaning: "A Trigger that is offered for a trial, and not kept, is refused or takes too long.",
        impact: "Nothing can be declared. Events that are routed already go on.",
        remedy: "the evidence is what the API server answered; look at its log and its disk",
        diagnosis: &["curl -s http://127.0.0.1:4333/readyz", "heddle doctor"],
    };

    /// The door does not take them.
    SOURCE_REFUSES = stuck(
        "SourceRefuses", Some("source"),
        "Synthetic events are refused where the application publishes, and so are real ones.",
        "the evidence is the refusal; the page on refusals says what each means",
    );
    /// They are not appended.
    CHANNEL_NOT_WRITTEN = stuck(
        "ChannelNotWritten", Some("channel"),
        "Synthetic events are not appended to the log.",
        "look at the disk of the data directory; a failed disk needs a restart after it was mended",
    );
    /// The link loses them.
    LINK_BROKEN = stuck(
        "LinkBroken", Some("subscription"),
        "Synthetic events are in the application's channel and no link leads them into the namespace.",
        "see the Subscription that is named; it is made again without help unless a policy or a label forbids it",
    );
    /// The broker does not hand them on.
    BROKER_NOT_ROUTING = stuck(
        "BrokerNotRouting", Some("broker"),
        "Synthetic events reach the namespace's broker, and it does not hand them to triggers.",
        "see whether the Broker is there and of a class that is served; if all namespaces are concerned, restart heddle",
    );
    /// They are not sent.
    DISPATCH_STALLED = stuck(
        "DispatchStalled", Some("trigger"),
        "Synthetic events are matched and not sent.",
        "see what is held in the evidence; deliveries wait while what becomes of them cannot be written down",
    );
    /// Sending fails.
    DELIVERY_FAILING = stuck(
        "DeliveryFailing", Some("delivery"),
        "Synthetic events are sent and do not arrive, although their destination is heddle itself.",
        "the evidence is the error; look at file descriptors, at the limits of connections and at egress rules",
    );
    /// Nobody knows where they are.
    HEARTBEAT_MISSING = stuck(
        "HeartbeatMissing", None,
        "No synthetic event arrived within three intervals.",
        "`heddle doctor` shows what else is wrong; events that were accepted are kept",
    );
    /// The first is still on its way.
    HEARTBEAT_PENDING = HealthFault {
        code: "HeartbeatPending",
        plane: HealthPlane::Data,
        health: HealthStatus::Unknown,
        detector: Detector::Heartbeat,
        hop: None,
        meaning: "No synthetic event has arrived yet, and it is too early to worry.",
        impact: "None.",
        remedy: "wait for an interval",
        diagnosis: &["heddle health APP -n NS --watch"],
    };
    /// Nobody sends them.
    HEARTBEAT_STALE = HealthFault {
        code: "HeartbeatStale",
        plane: HealthPlane::Data,
        health: HealthStatus::Unknown,
        detector: Detector::Heartbeat,
        hop: None,
        meaning: "No synthetic event was sent for three intervals, so nobody knows whether events arrive.",
        impact: "None by itself.",
        remedy: "if the process was stopped for a while, wait for an interval; otherwise restart heddle and report it",
        diagnosis: &["heddle health APP -n NS", "heddle doctor"],
    };
    /// They are switched off.
    HEARTBEAT_DISABLED = HealthFault {
        code: "HeartbeatDisabled",
        plane: HealthPlane::Data,
        health: HealthStatus::Unknown,
        detector: Detector::Heartbeat,
        hop: None,
        meaning: "No synthetic events are sent: every EventFlow of the application here has `spec.healthCheck.enabled: false`, or the server runs with `--no-heartbeats`.",
        impact: "Nobody would notice if events stopped to arrive.",
        remedy: "set `spec.healthCheck.enabled` of an EventFlow to true, or run the server without `--no-heartbeats`",
        diagnosis: &["kubectl -n NS get eventflows -o yaml"],
    };
    /// They are slow.
    HEARTBEAT_SLOW = HealthFault {
        code: "HeartbeatSlow",
        plane: HealthPlane::Data,
        health: HealthStatus::Degraded,
        detector: Detector::Heartbeat,
        hop: None,
        meaning: "Synthetic events take more than five seconds from the source to the end. The hop that is named kept up the last one longest.",
        impact: "Events arrive late.",
        remedy: "at `channel` look at the disk, at `broker`, `trigger` and `delivery` at the load of the machine and at backlogs",
        diagnosis: &["heddle health APP -n NS", "heddle top", "heddle doctor"],
    };
    /// An account does not add up.
    BALANCE_VIOLATED = HealthFault {
        code: "BalanceViolated",
        plane: HealthPlane::Data,
        health: HealthStatus::Unhealthy,
        detector: Detector::Accounting,
        hop: None,
        meaning: "What was matched is not the sum of what was delivered, dead-lettered, expired, removed and is pending.",
        impact: "An event may have ended in no way at all. That is a fault of heddle.",
        remedy: "keep the data directory, run `heddle doctor` and report it",
        diagnosis: &["heddle doctor", "curl -s -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:4333/heddle/v1/accounts?verify=true"],
    };
    /// Matching does not keep up.
    MATCHING_BEHIND = HealthFault {
        code: "MatchingBehind",
        plane: HealthPlane::Data,
        health: HealthStatus::Unhealthy,
        detector: Detector::Accounting,
        hop: Some("broker"),
        meaning: "Events have been safe in the log for more than thirty seconds and nobody has matched them.",
        impact: "Nothing new is delivered to anybody. It is kept.",
        remedy: "look for read errors in the log of heddle; it goes on by itself once the log can be read",
        diagnosis: &["heddle doctor", "heddle top"],
    };
    /// The canary is dead.
    CANARY_FAILING = stuck(
        "CanaryFailing", None,
        "The canary, a synthetic event on a path that belongs to nobody, does not arrive.",
        "something that all applications share is broken; the evidence names the hop",
    );

    /// Its time is over.
    EDGE_CERTIFICATE_EXPIRED = edge(
        "EdgeCertificateExpired",
        "The certificate at the address by which publishers reach the events listener has expired, or is not valid yet.",
        "renew it where TLS ends; if that is heddle itself, compare the clocks, for its own certificate is renewed in time",
    );
    /// It vouches for somebody else.
    EDGE_CERTIFICATE_UNTRUSTED = edge(
        "EdgeCertificateUntrusted",
        "The certificate at the address by which publishers reach the events listener is for another name, or of an authority that is not trusted.",
        "give heddle that name (`--tls-name`), or put a certificate there that the system's authorities or that of heddle signed",
    );
    /// Somebody says no.
    EDGE_REFUSES = edge(
        "EdgeRefuses",
        "A synthetic event is refused at the address by which publishers reach the events listener.",
        "the evidence is the answer; see what stands before the listener, whether it leads here and hands Authorization on",
    );
    /// Nobody says anything.
    EDGE_TIMED_OUT = edge(
        "EdgeTimedOut",
        "No answer comes in time at the address by which publishers reach the events listener.",
        "look at what stands before the listener and at rules that drop packets, also those for a machine that calls itself",
    );
    /// There is no way.
    EDGE_UNREACHABLE = edge(
        "EdgeUnreachable",
        "No connection can be made at the address by which publishers reach the events listener, or it breaks off.",
        "see whether the name leads here and the port is open; `edgeProbe` says what is tried",
    );
    /// It was not tried.
    EDGE_UNPROVEN = HealthFault {
        health: HealthStatus::Unknown,
        impact: "None by itself.",
        ..edge(
            "EdgeUnproven",
            "No synthetic event has come in lately by the address by which publishers reach the events listener.",
            "wait a moment; if it stays so, `heddle health` soon says why",
        )
    };

    /// A subscriber fails.
    SUBSCRIBER_FAILING = of_user(
        "SubscriberFailing", HealthStatus::Unhealthy, Some("delivery"),
        "A subscriber does not take the events that it is sent.",
        "Its events wait and are tried again; those that are tried too often become dead letters.",
        "mend the subscriber; what became dead letters can be redriven then",
        &["heddle dead-letters list --trigger NS/NAME", "heddle trace ID"],
    );
    /// A subscriber is not there.
    SUBSCRIBER_UNREACHABLE = HealthFault {
        detector: Detector::Heartbeat,
        ..of_user(
        "SubscriberUnreachable", HealthStatus::Unhealthy, Some("delivery"),
        "A subscriber did not answer three times in a row when it was tried between events, as its Trigger asks for.",
        "The next event will not be delivered at once. It will be kept and tried again.",
        "the evidence is the error; mend the subscriber, or take the annotation `heddle.dev/subscriber-probe` away if it is not to be tried",
        &["kubectl -n NS get trigger NAME -o yaml", "heddle health APP -n NS"],
    )
    };
    /// A trigger that cannot work.
    TRIGGER_NOT_READY = HealthFault {
        detector: Detector::Resources,
        ..of_user(
        "TriggerNotReady", HealthStatus::Unhealthy, Some("trigger"),
        "A Trigger is not ready: its subscriber has no address, or something it asks for cannot be done.",
        "It receives nothing. Its events are kept once it was in force.",
        "follow what its Ready condition says",
        &["kubectl -n NS describe trigger NAME"],
    )
    };
    /// Nothing was ever sent to it.
    SUBSCRIBER_UNTRIED = of_user(
        "SubscriberUntried", HealthStatus::Unknown, Some("delivery"),
        "No event was sent to a subscriber in the last hour, or since heddle started, so nobody knows whether it answers.",
        "None yet.",
        "publish an event that its filter wants, or have the subscriber tried between events (annotation `heddle.dev/subscriber-probe`)",
        &["heddle publish APP --type TYPE --data '{}'", "heddle explain trigger NS/NAME"],
    );
    /// Events rest.
    DEAD_LETTERS = of_user(
        "DeadLetters", HealthStatus::Degraded, Some("dead-letter"),
        "Events rest as dead letters.",
        "They were not delivered and will not be until somebody redrives them.",
        "mend what their reasons say, then redrive or discard them",
        &["heddle dead-letters list --trigger NS/NAME", "heddle dead-letters redrive --trigger NS/NAME"],
    );
    /// Events are late.
    BACKLOG_OLD = of_user(
        "BacklogOld", HealthStatus::Degraded, Some("delivery"),
        "The oldest event of a trigger has waited for more than a minute.",
        "Events arrive late.",
        "see whether the subscriber is slow or the trigger is paused; raise its window if the subscriber can take more",
        &["heddle top", "heddle doctor"],
    );
    /// Nobody wants them.
    EVENTS_UNMATCHED = of_user(
        "EventsUnmatched", HealthStatus::Degraded, Some("trigger"),
        "The application published lately, and no trigger wanted any of it although there are some.",
        "Those events were delivered to nobody.",
        "compare the types that are published with the filters: `heddle explain` shows what a filter would have done",
        &["heddle explain trigger NS/NAME", "heddle trace ID"],
    );
    /// The publisher is refused.
    PUBLISHER_REFUSED = of_user(
        "PublisherRefused", HealthStatus::Degraded, Some("source"),
        "Events of the application were refused lately: for their form, their size, or whom they came from.",
        "Those events are not stored, and their publisher was told so.",
        "the publisher's log has the refusal, and the page on refusals says what it means",
        &["heddle top"],
    );

    /// The disk failed.
    LOG_BROKEN = beneath(
        "LogBroken", HealthStatus::Unhealthy,
        "The disk of the events failed to make something safe, and nothing is accepted until a restart.",
        "Publishers are refused. Nothing that was accepted is lost.",
        "mend the disk, then restart heddle",
    );
    /// There is no room.
    LOG_FULL = beneath(
        "LogFull", HealthStatus::Unhealthy,
        "Events are refused because the disk has no room for them, or something else is exhausted.",
        "Publishers are answered 507 or 503 and told when to come back.",
        "make room on the disk of the data directory, or let whoever keeps most of the log go on; it recovers by itself",
    );
    /// There is little room.
    LOG_FILLING = beneath(
        "LogFilling", HealthStatus::Degraded,
        "More than 80 % of the room for events is used.",
        "None yet; at 100 % publishers are refused.",
        "make room, shorten the retention, or see who keeps most of the log",
    );
    /// Outcomes cannot be written.
    JOURNAL_STALLED = beneath(
        "JournalStalled", HealthStatus::Unhealthy,
        "What becomes of events cannot be written down, so none are sent.",
        "Deliveries wait. Nothing is lost.",
        "make room on the disk of the data directory; it goes on by itself",
    );
    /// Records are damaged.
    LOG_DAMAGED = beneath(
        "LogDamaged", HealthStatus::Degraded,
        "Records of the log are damaged and kept aside, or the journal lost some in both copies.",
        "Those events are named by `heddle doctor`; all others are served.",
        "check the disk; `heddle repair events --dry-run` says what can be done",
    );
    /// The resources cannot be written.
    STORE_BROKEN = beneath(
        "StoreBroken", HealthStatus::Unhealthy,
        "The store of resources does not take writes.",
        "Nothing can be declared or changed. Events that are routed already go on.",
        "make room or mend the disk; restart heddle if it failed",
    );
    /// The mesh has no table.
    NOT_ROUTING = beneath(
        "NotRouting", HealthStatus::Unknown,
        "No routing table is in force yet.",
        "Publishers are asked to come back in a moment.",
        "wait; if it lasts, look at the log of heddle",
    );
}
