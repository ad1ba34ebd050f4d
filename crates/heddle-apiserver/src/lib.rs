//! heddle-apiserver.

pub mod select;
