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
    /// The controller of EventFlows.
    pub const EVENT_FLOW: &str = "heddle-event-flow";
    /// The OSB front.
    pub const OSB: &str = "heddle-osb";
    /// The command line, unless a user names another.
    pub const CLI: &str = "heddle";
}
