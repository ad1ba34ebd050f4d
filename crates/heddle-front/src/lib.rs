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

pub mod catalog;
