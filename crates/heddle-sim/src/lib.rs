//! The whole system under one seed, and the suites that say what right is.
//!
//! [`conformance`] is the contract of the API server, written against a client only, so that a real Kubernetes API
//! server can be asked the same questions. [`sweep`] strikes the controllers with every single fault. [`plane`] stands in
//! for a mesh where only the controllers are of interest.

pub mod conformance;
pub mod plane;
pub mod sweep;
