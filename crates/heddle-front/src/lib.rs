//! The Open Service Broker front.
//!
//! It has two duties and no third. It shows what can be provisioned (the catalog), and it records what a platform asked
//! for, durably, before it answers. It does no work of its own: controllers do that, and the front reads from the objects'
//! status how far they have come. So it keeps no truth either; whatever it knows besides the API server can be forgotten,
//! and any number of fronts can stand side by side.
//!
//! ```text
//!   platform ──> who? version? route? ──> checks, in one order ──> one compare-and-swap write ──> 201, 202
//!                                            │        ^
//!                                            v        └── live read of the instance or binding
//!                                         catalog  <── compiled from what watches brought; swapped whole
//! ```
//! It knows a `kube::Client`, ServiceInstances, ServiceBindings, and what the catalog is made from. It knows no Broker, no
//! Subscription and no mesh.
//!
//! [`Front`] is the door; `verbs` has a file per thing that can be asked, each with one pure function that decides and one
//! that carries out; `error` is the only place where a refusal becomes a status.

mod account;
pub mod auth;
pub mod catalog;
mod compare;
mod contact;
mod error;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod id_locks;
mod identity;
mod lifecycle;
mod metrics;
mod objects;
pub mod offers;
mod ownership;
mod parameters;
mod places;
mod route;
pub mod settings;
mod verbs;
pub mod version;
mod wire;

pub use auth::{Credential, Credentials};
pub use front::{Front, Options};
pub use identity::AdmittedPerson;
pub use offers::Offers;
pub use settings::Settings;
pub use version::Version;
