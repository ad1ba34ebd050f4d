//! The whole system under one seed, and the suites that say what right is.

pub mod sweep;
