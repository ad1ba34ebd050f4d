//! heddle-apiserver.

pub mod cel;
pub mod patch;
pub mod schema;
pub mod select;
