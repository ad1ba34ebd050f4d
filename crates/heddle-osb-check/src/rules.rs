//! The promises, by theme. A theme is a file: its table comes first, and each row of it is one function below.

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

use crate::session::{CheckSession, PlanRequirement};

/// One promise, and how to find out whether it is kept.
#[derive(Clone, Copy)]
pub struct ConformanceRule {
    /// Unique in its group, and kept: reports of two runs are compared by it.
    pub name: &'static str,
    pub group: &'static str,
    /// The promise itself, as a sentence.
    pub promise: &'static str,
    /// The heading in the specification under which it is made; some follow from HTTP or from several places.
    pub section: Option<&'static str>,
    pub(crate) needs: PlanRequirement,
    pub(crate) run: for<'a> fn(&'a CheckSession) -> BoxFuture<'a, Result<()>>,
}

impl std::fmt::Debug for ConformanceRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.promise)
    }
}

/// All of them, in the order of an instance's life.
pub(crate) fn all() -> Vec<ConformanceRule> {
    [
        transport::rules(),
        catalog::rules(),
        instance::rules(),
        poll::rules(),
        update::rules(),
        binding::rules(),
        removal::rules(),
        crowd::rules(),
    ]
    .concat()
}

/// Declares the promises of a theme: what it needs, the function that asks, the promise, and where it is made.
macro_rules! promises {
    ($group:literal: $($need:ident $run:ident $promise:literal $(in $section:literal)?),* $(,)?) => {
        pub(crate) fn rules() -> Vec<super::ConformanceRule> {
            vec![$(super::ConformanceRule {
                name: stringify!($run),
                group: $group,
                promise: $promise,
                section: {
                    let named: &[&'static str] = &[$($section)?];
                    named.first().copied()
                },
                needs: crate::session::PlanRequirement::$need,
                run: |session| Box::pin($run(session)),
            }),*]
        }
    };
}
pub(crate) use promises;
