//! Bundles without images: what registries hold is scripted, and everything is counted.

pub mod registry;
