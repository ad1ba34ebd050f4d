//! "Where is my event": what the log, the journal and the consumers say about it, for people.
//!
//! Nothing is sampled and nothing is stored for this. The log has the event, the revisions of each consumer say what its
//! filter made of it, the journal has every attempt, and what the journal does not have is waiting or under way.

mod accounts;
mod dead_letter_groups;
mod dead_letters;
mod delays;
mod explain;
mod forecasts;
mod found;
pub(crate) mod hints;
mod look_back;
mod losses;
mod reach;
mod reading;
mod refused;
mod resend;
pub(crate) mod samples;
mod search;
mod silence;
mod tail;
pub(crate) mod trace;
mod try_one;
mod types;
mod visible;
pub(crate) mod what_if;

pub(crate) use accounts::Depth;
pub(crate) use found::SoughtRecord;
pub(crate) use trace::held;

pub use self::delays::DelaysRequest;
use self::look_back::{Look, LookBack, LookState};
pub use self::refused::RefusedQuery;
pub use self::search::{EventSearch, SearchRequest, SearchStep};
pub use self::silence::SilenceRequest;
pub use self::tail::{Tail, TailStep};
pub use self::types::TypesRequest;
pub use self::visible::Visible;
pub(crate) use self::visible::{ShownData, mask_for, shown_event};
use crate::aside::AsideError;
use crate::log::{Offset, Unavailable};
use crate::mesh::Mesh;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ask differently.
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    NotFound(String),
    /// Not now.
    #[error("{0}")]
    Conflict(String),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error(transparent)]
    Aside(#[from] AsideError),
    /// Somebody else may ask this.
    #[error("{0}")]
    Forbidden(String),
    /// The query cannot be read.
    #[error(transparent)]
    Query(#[from] heddle_api::search::QueryFault),
    /// The filter cannot be read; where in the expression, if it is one.
    #[error("{message}")]
    Filter {
        message: String,
        position: Option<usize>,
    },
}

impl Mesh {
    /// Looks until whoever looks has seen enough, everything was looked at, or so many bytes were read. `Some` is where the
    /// look stopped: nothing older was looked at.
    async fn look<L: Look + Send + 'static>(
        &self,
        mut looking: LookBack<L>,
        bytes_max: usize,
    ) -> Result<(L, Option<Offset>), Error> {
        loop {
            let slice = self.shared.aside.slice(move || {
                let state = looking.slice();
                (looking, state)
            });
            let (back, state) = slice.await?;
            looking = back;
            let stopped = match state? {
                LookState::Through => None,
                LookState::Going if looking.bytes() < bytes_max => continue,
                LookState::Going | LookState::Enough => Some(looking.looked_at().start),
            };
            return Ok((looking.look, stopped));
        }
    }

    /// Answers a question aside that is short enough to be one slice.
    pub async fn aside<T: Send + 'static>(
        &self,
        answer: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let mesh = self.clone();
        self.shared.aside.slice(move || answer(&mesh)).await?
    }
}
