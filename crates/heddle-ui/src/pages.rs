//! One file for each page: what it asks, and what it makes of the answers.

pub(crate) mod application;
pub(crate) mod catalog;
pub(crate) mod dead_letters;
pub(crate) mod event;
pub(crate) mod events;
pub(crate) mod find;
pub(crate) mod help;
pub(crate) mod instances;
pub(crate) mod login;
pub(crate) mod mesh;
pub(crate) mod missing;
pub(crate) mod object;
pub(crate) mod publish;
pub(crate) mod subscribe;
pub(crate) mod trigger;
pub(crate) mod types;

use jiff::Timestamp;

use crate::ask::{AnswerFault, Inquirer};
use crate::frame::RenderedPage;
use crate::links::PageLinks;
use crate::visit::Visit;

/// What a page is made with.
#[derive(Clone, Debug)]
pub(crate) struct PageLook {
    pub(crate) ask: Inquirer,
    pub(crate) links: PageLinks,
    pub(crate) now: Timestamp,
    pub(crate) visit: Visit,
}

/// A page, or the refusal of a question that it cannot do without.
pub(crate) type PageResult = Result<RenderedPage, AnswerFault>;
