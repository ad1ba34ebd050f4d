//! heddle-apiserver.

pub mod cel;
pub mod schema;
pub mod select;
