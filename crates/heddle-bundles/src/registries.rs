//! Registries, and what their answers prove.
