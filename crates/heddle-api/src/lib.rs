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
//! | Subscription | what carries a Channel's events to a Broker ([`Subscription`]) | legacy subscription |
//! | Trigger | filter and subscriber in the mesh ([`Trigger`]) | git trigger |
//! | Event | a CloudEvent | change (from a watch), notice (a Kubernetes Event) |
//! | Service | one entry of an Application's `spec.services` ([`application::Service`]) | an OSB service is an offering |
//! | Flow | one provisioned service's events on their way into a namespace | path: the hops they take |
//! | Claim | a stated need for a Broker to exist ([`broker::Claim`]) | |
//! | Revision | one immutable state of a bundle | generation: of a spec; resource version: of an object |

pub mod application;
pub mod application_mapping;
pub mod broker;
pub mod channel;
pub mod conditions;
pub mod duck;
pub mod filter;
pub mod http_source;
mod schema;
pub mod subscription;
pub mod trigger;
pub mod well_known;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use application::Application;
pub use application_mapping::ApplicationMapping;
pub use broker::Broker;
pub use channel::Channel;
pub use conditions::{Condition, ConditionSet, ConditionType, Conditions, Reason};
pub use http_source::HTTPSource;
pub use subscription::Subscription;
pub use trigger::Trigger;

/// Everything the rest of the system needs to know about a kind without knowing its type.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// The definition that an API server enforces.
    pub crd: CustomResourceDefinition,
    /// The conditions that objects of the kind show.
    pub conditions: ConditionSet,
}

/// All kinds, in path order: an event passes them from top to bottom, then come the broker and its catalog.
pub fn kinds() -> Vec<KindInfo> {
    fn kind<K: CustomResourceExt>(conditions: ConditionSet) -> KindInfo {
        KindInfo {
            crd: K::crd(),
            conditions,
        }
    }
    vec![
        kind::<Application>(application::CONDITIONS),
        kind::<ApplicationMapping>(application_mapping::CONDITIONS),
        kind::<HTTPSource>(http_source::CONDITIONS),
        kind::<Channel>(channel::CONDITIONS),
        kind::<Subscription>(subscription::CONDITIONS),
        kind::<Broker>(broker::CONDITIONS),
        kind::<Trigger>(trigger::CONDITIONS),
    ]
}

/// The definitions of all kinds, in the order of [`kinds`].
pub fn crds() -> Vec<CustomResourceDefinition> {
    kinds().into_iter().map(|kind| kind.crd).collect()
}
