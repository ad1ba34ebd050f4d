//! The page: what this server knows, for people with a browser, below `/ui/`.
//!
//! ```text
//!   browser ──> frame (who looks?) ──> page ──asks──> the routers of this process ──> bodies ──> markup
//!                                        └── drawings: values in, SVG out
//! ```
//! Promises: a page shows what the API answers to whoever looks, and asks with their rights; whatever comes from outside is
//! text; no script and no style but this server's own. Without a script every page still shows what it knows.
//!
//! Who looks is decided at the door, before this crate; what they may do is decided by what answers.

mod ask;
mod assets;
mod draw;
mod frame;
mod links;
mod objects;
mod pages;
mod parts;
mod routes;
mod visit;
mod words;

pub use ask::{AnswerFault, Inquirer};
use axum::Router;
pub use frame::guarded;
use heddle_rt::Clock;

/// What the page is made of.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// The questions below `/heddle/v1` and the resource API, as this process answers them.
    pub ask: Router,
    pub clock: Clock,
    /// What stands before every path, when a proxy has this server below a path of its own; empty otherwise.
    pub base: String,
}

/// Everything below `/ui/`.
pub fn router(options: PageOptions) -> Router {
    routes::router(options)
}
