//! "Where is my event": what the log, the journal and the consumers say about it, for people.
//!
//! Nothing is sampled and nothing is stored for this. The log has the event, the revisions of each consumer say what its
//! filter made of it, the journal has every attempt, and what the journal does not have is waiting or under way.

mod accounts;
mod dead_letters;
mod explain;
mod look_back;
mod losses;
mod reading;
pub(crate) mod samples;
mod trace;

use crate::log::Unavailable;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ask differently.
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    NotFound(String),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
