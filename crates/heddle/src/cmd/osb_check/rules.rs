//! The promises, by theme.

mod binding;
mod catalog;
mod crowd;
mod instance;
mod poll;
mod removal;
mod transport;
mod update;

use anyhow::Result;
use futures::future::BoxFuture;

use super::lab::{Lab, Need};

/// One promise, and how to find out whether it is kept.
#[derive(Clone, Copy)]
pub(super) struct Check {
    pub(super) group: &'static str,
    /// The promise itself, as a sentence.
    pub(super) promise: &'static str,
    pub(super) needs: Need,
    pub(super) run: for<'a> fn(&'a Lab) -> BoxFuture<'a, Result<()>>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.promise)
    }
}

/// All of them, in the order of an instance's life.
pub(super) fn all() -> Vec<Check> {
    [
        transport::checks(),
        catalog::checks(),
        instance::checks(),
        poll::checks(),
        update::checks(),
        binding::checks(),
        removal::checks(),
        crowd::checks(),
    ]
    .concat()
}

/// Declares the promises of a theme.
macro_rules! promises {
    ($group:literal: $($need:ident $run:ident $promise:literal),* $(,)?) => {
        pub(super) fn checks() -> Vec<super::Check> {
            vec![$(super::Check {
                group: $group,
                promise: $promise,
                needs: crate::cmd::osb_check::lab::Need::$need,
                run: |lab| Box::pin($run(lab)),
            }),*]
        }
    };
}
pub(super) use promises;
