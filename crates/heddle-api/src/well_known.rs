//! Names that more than one crate must spell alike.

/// Namespace of heddle's own objects: leases, credentials, records.
pub const SYSTEM_NAMESPACE: &str = "heddle-system";
/// Namespace of the sources, channels and links of all Applications.
pub const INTEGRATION_NAMESPACE: &str = "kyma-integration";

/// Label: the Application an object belongs to.
pub const APPLICATION_LABEL: &str = "application-name";
/// Label: the namespace whose Broker a Subscription feeds.
pub const BROKER_NAMESPACE_LABEL: &str = "broker-namespace";
/// Label of a namespace: `enabled` asks for a Broker, `disabled` forbids one.
pub const INJECTION_LABEL: &str = "knative-eventing-injection";
/// Label: who manages an object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY_LABEL`] on objects that heddle's controllers own.
pub const MANAGED_BY: &str = "heddle";

/// Finalizer of objects whose removal means work: instances, bindings and flows. Held until that work is done.
pub const FINALIZER: &str = "heddle.dev/broker";
/// Finalizer of an EventFlow that was made for an instance: held until the instance has taken down what became of the
/// flow's events.
pub const INSTANCE_FINALIZER: &str = "heddle.dev/service-instance";
/// Label: the instance, by the name of its ServiceInstance, that an object was made for.
pub const INSTANCE_LABEL: &str = "heddle.dev/instance";
/// Label of records of what was removed; its value says what kind of thing it was.
pub const RECORD_LABEL: &str = "heddle.dev/record";
/// Annotation of an instance or binding: when its platform last asked about it. Coarse, so that polling writes nothing.
pub const LAST_CONTACT_ANNOTATION: &str = "heddle.dev/last-contact";

/// Annotation of an instance or binding: the path of the OSB front it was asked for at. Each front knows its own only; what
/// has no such annotation was written by hand and is known to all.
pub const OSB_FRONT_ANNOTATION: &str = "heddle.dev/osb-front";

/// Label: the Registry that a Bundle, a BundleRevision or a SyncRun belongs to (see [`crate::names::registry_label`]).
pub const REGISTRY_LABEL: &str = "heddle.dev/registry";

/// Annotation of a Registry: any text that was not there before asks for a reading now.
pub const SYNC_ANNOTATION: &str = "heddle.dev/sync";
/// Annotation of a Registry: the id of a suspicion that somebody approved.
pub const APPROVED_ANNOTATION: &str = "heddle.dev/removal-approved";
/// Annotation of a Bundle: `true` withdraws it, whatever its registry says.
pub const WITHDRAWN_ANNOTATION: &str = "heddle.dev/withdrawn";

/// Annotation of an instance or binding of a bundle: `true` lets it go without its last action, and leaves behind whatever
/// that would have removed.
pub const ABANDON_ANNOTATION: &str = "heddle.dev/abandon";

/// Annotation of an Application: since when the publish API of old Kyma is deprecated for its publishers, in RFC 3339.
pub const LEGACY_DEPRECATION: &str = "heddle.dev/legacy-deprecation";
/// Annotation of an Application: when that API may end for them, in RFC 3339.
pub const LEGACY_SUNSET: &str = "heddle.dev/legacy-sunset";
/// Annotation of an Application: where they read what to do about it.
pub const LEGACY_LINK: &str = "heddle.dev/legacy-link";

/// Type of the Secrets with which Applications prove who they are when they publish.
pub const PUBLISHER_TOKEN_TYPE: &str = "heddle.dev/publisher-token";
/// Key of the token in such a Secret.
pub const PUBLISHER_TOKEN_KEY: &str = "token";

/// The name of an Application's Secret of type [`PUBLISHER_TOKEN_TYPE`], in [`INTEGRATION_NAMESPACE`].
#[must_use]
pub fn publisher_secret(application: &str) -> String {
    format!("{application}-publisher")
}

/// Type of the Secrets that hold the keys with which events of a Trigger are signed.
pub const SIGNING_SECRET_TYPE: &str = "heddle.dev/signing-key";

/// Field managers: who applied a field. Each controller has its own, so that each takes back only what it applied.
pub mod field_manager {
    /// The controller of Applications.
    pub const APPLICATION: &str = "heddle-application";
    /// The controller of ApplicationMappings.
    pub const APPLICATION_MAPPING: &str = "heddle-application-mapping";
    /// The controller of HTTPSources.
    pub const SOURCE: &str = "heddle-source";
    /// The controller of Channels.
    pub const CHANNEL: &str = "heddle-channel";
    /// The controller of Subscriptions.
    pub const SUBSCRIPTION: &str = "heddle-subscription";
    /// The controller of Brokers and of the claims on them.
    pub const BROKER: &str = "heddle-broker";
    /// The controller of Triggers.
    pub const TRIGGER: &str = "heddle-trigger";
    /// The controller of EventPolicies.
    pub const EVENT_POLICY: &str = "heddle-event-policy";
    /// The controller of EventActivations.
    pub const EVENT_ACTIVATION: &str = "heddle-event-activation";
    /// The controller of EventFlows.
    pub const EVENT_FLOW: &str = "heddle-event-flow";
    /// The controller of what the flows of a namespace share: Broker, links, policies, projections.
    pub const EVENTING: &str = "heddle-eventing";
    /// The controller that judges how well events get where they should.
    pub const HEALTH: &str = "heddle-health";
    /// The controller of ServiceInstances.
    pub const INSTANCE: &str = "heddle-service-instance";
    /// The controller of ServiceBindings.
    pub const BINDING: &str = "heddle-service-binding";
    /// The controller of Registries.
    pub const REGISTRY: &str = "heddle-registry";
    /// The controller of Bundles.
    pub const BUNDLE: &str = "heddle-bundle";
    /// The controller of BundleRevisions.
    pub const BUNDLE_REVISION: &str = "heddle-bundle-revision";
    /// The OSB front.
    pub const OSB: &str = "heddle-osb";
    /// Whoever has the keys made with which events are signed.
    pub const SIGNING: &str = "heddle-signing";
    /// The command line, unless a user names another.
    pub const CLI: &str = "heddle";
}

/// Annotations of Triggers and Subscriptions that say how events are handed over, beyond what `spec.delivery` can say.
pub mod annotation {
    /// `true` keeps events until it is taken away again.
    pub const PAUSED: &str = "heddle.dev/paused";
    /// Until when, in RFC 3339; the mesh goes on by itself then.
    pub const PAUSED_UNTIL: &str = "heddle.dev/paused-until";
    /// Who paused it, for people.
    pub const PAUSED_BY: &str = "heddle.dev/paused-by";
    /// Why, for people.
    pub const PAUSED_REASON: &str = "heddle.dev/paused-reason";
    /// How many events may be sent in a span of time, such as `100/s`, `0.5/s` or `30/min`; the others wait.
    pub const RATE: &str = "heddle.dev/rate";
    /// `true` has events of a Trigger signed with the key in its Secret; without a key nothing is sent.
    pub const SIGNING: &str = "heddle.dev/signing";
    /// `ordered` or `unordered`.
    pub const DELIVERY_ORDER: &str = "heddle.dev/delivery-order";
    /// The same by another name, which existing manifests use.
    pub const KAFKA_DELIVERY_ORDER: &str = "kafka.eventing.knative.dev/delivery.order";
    /// How many deliveries may be under way at once, from 1 to 1000.
    pub const MAX_IN_FLIGHT: &str = "heddle.dev/max-in-flight";
    /// Where a new consumer starts: `new`, `earliest`, a time in RFC 3339, or `event:SOURCE#ID`.
    pub const START: &str = "heddle.dev/start";
    /// How often dead letters are sent on their way again without being asked, from 0 to 10.
    pub const AUTO_REDRIVE: &str = "heddle.dev/auto-redrive";
    /// How many bytes of the log the backlog may keep, such as `500Mi`, or `none`; beyond that the oldest events expire.
    pub const BACKLOG_BYTES_MAX: &str = "heddle.dev/backlog-bytes-max";
    /// How old the backlog may be, as an ISO 8601 duration such as `PT24H`, or `none`; older events expire.
    pub const BACKLOG_AGE_MAX: &str = "heddle.dev/backlog-age-max";
    /// The DNS name under which the subscriber is asked for its consent before anything is sent to it.
    pub const WEBHOOK_ORIGIN: &str = "heddle.dev/webhook-origin";
    /// How many events per minute it is asked for, from 1 to 1000000.
    pub const WEBHOOK_RATE: &str = "heddle.dev/webhook-rate";
    /// How the subscriber is tried between events: `tcp`, `options` or `heartbeat`.
    pub const SUBSCRIBER_PROBE: &str = "heddle.dev/subscriber-probe";
}
