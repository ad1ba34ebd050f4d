//! What several pages have in common.

pub(crate) mod act;
pub(crate) mod choice;
pub(crate) mod command;
pub(crate) mod conditions;
pub(crate) mod content;
pub(crate) mod difference;
pub(crate) mod manifest;
pub(crate) mod operations;
pub(crate) mod schema_form;
pub(crate) mod send_form;
pub(crate) mod verdict;
