//! The loops that make the world match what was asked.
//!
//! Every controller has the same four beats, and whoever has read one has read them all:
//!
//! ```text
//!  wake (a change, a timer)  ->  observe   gather into one value, by live reads
//!                            ->  plan      pure: value in, steps out
//!                            ->  apply     one request per step, each idempotent
//!                            ->  status    pure: what was observed, as conditions
//! ```
//! A wake-up carries no data: the object is read again, so a stale cache can delay a controller but not mislead
//! it. Nothing is destroyed without the uid it had when it was looked at.
//!
//! This crate knows a `kube::Client` and nothing else; it cannot tell heddle's own API server from a cluster's.

mod application;
mod application_mapping;
mod leader;
mod machine;

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, future};
use heddle_rt::{Chance, Clock};
use kube::Client;

pub use leader::{Leadership, lead};
pub use machine::{Beats, Ctx, Error, Step, Ticket, run_one};

/// What all controllers share.
#[derive(Debug, Clone)]
pub struct Options {
    pub clock: Clock,
    pub chance: Chance,
    /// Objects of one kind reconciled at once. More hides the latency of the API server; the store batches them.
    pub concurrency: u16,
    /// Everything is looked at again this often, however quiet the watches are.
    pub resync: Duration,
}

impl Options {
    pub fn new(clock: Clock, chance: Chance) -> Self {
        Self {
            clock,
            chance,
            concurrency: 64,
            resync: Duration::from_secs(600),
        }
    }
}

/// Runs every controller until the future is dropped.
pub async fn run(client: Client, options: Options) {
    let all: Vec<BoxFuture<'static, ()>> = vec![
        application::run(client.clone(), options.clone()).boxed(),
        application_mapping::run(client, options).boxed(),
    ];
    future::join_all(all).await;
}
