//! Drawings: values in, SVG out. Nothing here asks anybody or knows the time.

pub(crate) mod graph;
pub(crate) mod heat;
pub(crate) mod layout;
pub(crate) mod schedule;
pub(crate) mod timeline;
