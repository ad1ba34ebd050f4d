//! The nouns of heddle: every resource kind, with its conditions, its defaults and its validation.
//!
//! One file is one kind. What is written here becomes the definitions that an API server enforces, the reference in
//! `docs/reference` and the types that controllers use, so the three cannot disagree. No IO, no async, no clock: callers bring
//! the time.
//!
//! # Words
//!
//! The ecosystem reuses some words; here each thing has one name.
//!
//! | Word | Means | The others are called |
//! |---|---|---|
//! | Broker | the [`Broker`] of a namespace in the mesh | OSB front; tool broker |
//! | Channel | an Application's durable log ([`Channel`]) | in-process queues are named by their role |
//! | Subscription | what carries a Channel's events to a Broker ([`Subscription`]) | legacy subscription ([`LegacySubscription`]) |
//! | Trigger | filter and subscriber in the mesh ([`Trigger`]) | git trigger |
//! | Event | a CloudEvent | change (from a watch), notice (a Kubernetes Event) |
//! | Service | one entry of an Application's `spec.services` ([`application::Service`]) | an OSB service is an offering |
//! | Flow | one provisioned service's events on their way into a namespace ([`EventFlow`]) | path: the hops they take |
//! | Claim | a stated need for a Broker to exist ([`broker::Claim`]) | |
//! | Revision | one immutable state of a bundle ([`BundleRevision`]) | generation: of a spec; resource version: of an object |

pub mod access;
pub mod account_terms;
pub mod action;
pub mod application;
pub mod application_mapping;
pub mod attributes;
pub mod audit;
pub mod broker;
pub mod bundle;
pub mod bundle_revision;
pub mod bundle_source;
pub mod cesql;
pub mod channel;
pub mod checks;
pub mod conditions;
mod counted;
pub mod dataplane;
pub mod dead_letters;
pub mod delays;
pub mod delivery;
pub mod description;
pub mod duck;
pub mod event_activation;
pub mod event_flow;
pub mod event_policy;
pub mod evidence;
pub mod filter;
pub mod forecast;
pub mod health;
pub mod http_source;
mod knative;
pub mod ledger;
pub mod legacy_subscription;
pub mod manifest;
pub mod mask;
pub mod names;
pub mod offer;
pub mod operation;
pub mod pause;
pub mod protobuf;
pub mod rate;
pub mod raw_json;
pub mod record;
pub mod refusals;
pub mod refused_events;
pub mod registry;
pub mod republish;
pub mod resend;
mod schema;
pub mod search;
pub mod service_binding;
pub mod service_instance;
pub mod signing;
pub mod silence;
pub mod smoke;
pub mod subscriber_trial;
pub mod subscription;
pub mod sync_run;
pub mod test_event;
pub mod tombstone;
pub mod trigger;
pub mod types;
pub mod well_known;
pub mod what_if;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON,
};
use kube::CustomResourceExt;

pub use application::Application;
pub use application_mapping::ApplicationMapping;
pub use broker::Broker;
pub use bundle::Bundle;
pub use bundle_revision::BundleRevision;
pub use channel::Channel;
pub use conditions::{Condition, ConditionSet, ConditionType, Conditions, Reason};
pub use counted::{counted, counted_that, span};
pub use event_activation::EventActivation;
pub use event_flow::EventFlow;
pub use event_policy::EventPolicy;
pub use http_source::HTTPSource;
pub use legacy_subscription::LegacySubscription;
pub use registry::Registry;
pub use service_binding::ServiceBinding;
pub use service_instance::ServiceInstance;
pub use subscription::Subscription;
pub use sync_run::SyncRun;
pub use trigger::Trigger;

/// What the rest of the system needs to know about a kind without knowing its type.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// The definition that an API server enforces.
    pub crd: CustomResourceDefinition,
    /// The conditions that objects of the kind show.
    pub conditions: ConditionSet,
    /// Whether objects of the kind are derived from others, so that only controllers may write them.
    pub read_only: bool,
}

macro_rules! resource_kinds {
    ($($(#[doc = $doc:literal])* $kind:ident from $module:ident $({$($field:ident: $value:expr),*})?;)*) => {
        /// Every kind there is. Whoever must have an answer for each of them matches on this, so that a new kind does not
        /// compile without one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ResourceKind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl ResourceKind {
            /// All kinds, always in the same order: first the path of an event from Application to Trigger, then the broker
            /// and its catalog.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// As it is spelled in objects.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($kind),)*
                }
            }

            /// Everything about it.
            pub fn info(self) -> KindInfo {
                match self {
                    $(Self::$kind => KindInfo {
                        $($($field: $value,)*)?
                        ..written::<$kind>($module::CONDITIONS)
                    },)*
                }
            }
        }
    };
}

resource_kinds! {
    /// Something that publishes.
    Application from application;
    /// Lets a namespace use an application.
    ApplicationMapping from application_mapping;
    /// Shows which of an application's services a namespace uses.
    EventActivation from event_activation {read_only: true};
    /// Where an application publishes.
    HTTPSource from http_source;
    /// A durable log.
    Channel from channel;
    /// What leads from a Channel to a Broker or a subscriber.
    Subscription from subscription;
    /// Where the events of a namespace come together.
    Broker from broker;
    /// A filter and a subscriber.
    Trigger from trigger;
    /// Who may publish where.
    EventPolicy from event_policy;
    /// The events of one service on their way into a namespace.
    EventFlow from event_flow;
    /// What a platform asked for.
    ServiceInstance from service_instance;
    /// How it is used.
    ServiceBinding from service_binding;
    /// Where bundles come from.
    Registry from registry;
    /// Something that can be provisioned.
    Bundle from bundle;
    /// One immutable state of it.
    BundleRevision from bundle_revision;
    /// One reading of a registry.
    SyncRun from sync_run;
}

/// All kinds, in the order of [`ResourceKind::ALL`].
pub fn kinds() -> Vec<KindInfo> {
    ResourceKind::ALL.iter().map(|kind| kind.info()).collect()
}

fn written<K: CustomResourceExt>(conditions: ConditionSet) -> KindInfo {
    let mut crd = K::crd();
    allow_empty_spec(&mut crd);
    knative::label(&mut crd);
    KindInfo {
        crd,
        conditions,
        read_only: false,
    }
}

/// Lets people leave `spec` away where nothing in it is required: it is then the empty one.
fn allow_empty_spec(crd: &mut CustomResourceDefinition) {
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut();
        let Some(root) = schema.and_then(|schema| schema.open_api_v3_schema.as_mut()) else {
            continue;
        };
        let properties = root.properties.as_mut();
        let Some(spec) = properties.and_then(|properties| properties.get_mut("spec")) else {
            continue;
        };
        if spec
            .required
            .as_ref()
            .is_some_and(|required| !required.is_empty())
        {
            continue;
        }
        spec.default = Some(JSON(serde_json::json!({})));
        let required = root.required.take().unwrap_or_default();
        let required: Vec<String> = required
            .into_iter()
            .filter(|field| field != "spec")
            .collect();
        root.required = (!required.is_empty()).then_some(required);
    }
}

/// The definitions of all kinds, in the order of [`kinds`].
pub fn crds() -> Vec<CustomResourceDefinition> {
    kinds().into_iter().map(|kind| kind.crd).collect()
}

/// The definitions of the kinds that only controllers may write.
pub fn read_only_kinds() -> Vec<CustomResourceDefinition> {
    kinds()
        .into_iter()
        .filter(|kind| kind.read_only)
        .map(|kind| kind.crd)
        .collect()
}

/// The definitions of the old mesh's kinds that are served here for migrations, and that nothing here acts on.
pub fn legacy_crds() -> Vec<CustomResourceDefinition> {
    vec![LegacySubscription::crd()]
}
