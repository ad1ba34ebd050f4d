//! What goes over the wire: bodies and queries of requests, and answers.
//!
//! Requests are taken apart by hand: a field that is not known is left alone, one that is known must be what it should be,
//! and the refusal names it.

pub(crate) mod body;
pub(crate) mod encoding;
pub(crate) mod numbers;
pub(crate) mod query;
pub(crate) mod request;
pub(crate) mod response;
