//! heddle-apiserver.

pub mod apply;
pub mod cel;
pub mod fields;
pub mod jsonpath;
pub mod patch;
pub mod protobuf;
pub mod schema;
pub mod select;
pub mod table;
