//! The whole system under one seed, and the suites that say what right is.
//!
//! [`conformance`] is the contract of the API server, written against a client only, so that a real Kubernetes API
//! server can be asked the same questions. [`sweep`] strikes the controllers with every single fault; [`plane`] stands in
//! for a mesh where only the controllers are of interest, [`bundles`] for registries and runners; [`weather`] makes requests
//! fail all the time, and [`stage`] is where
//! their stories are told. [`mesh`] lets the mesh live through crashes, faults and changes of mind, and counts what it owes;
//! [`mesh::storm`] does the same on a network that fails.

pub mod bundles;
pub mod conformance;
pub mod mesh;
pub mod plane;
pub mod stage;
pub mod sweep;
pub mod weather;
