//! One set of controllers acts at a time: a Lease decides which.
//!
//! The holder renews it well before it ends; who loses it stops acting before the next holder can start, because
//! the grace is shorter than the lease. Every destructive step is bound to a uid and every status to the object
//! it was read from, so that even a write that was under way when the lease was lost cannot hit a namesake.

use std::future::Future;

use heddle_api::well_known::SYSTEM_NAMESPACE;
use kube::Client;
use kube_lease_manager::{LeaseCreateMode, LeaseManagerBuilder, LeaseManagerError};

/// Seconds a lease lasts without being renewed, and how long before its end it is renewed.
const LEASE_SECONDS: u64 = 15;
const GRACE_SECONDS: u64 = 5;

/// What to lead, and as whom.
#[derive(Debug, Clone)]
pub struct Leadership {
    pub lease: String,
    pub identity: String,
}

/// Runs `work` whenever this process leads, and drops it when it no longer does. Ends only by error or by drop.
pub async fn lead<F, W>(
    client: Client,
    leadership: Leadership,
    work: F,
) -> Result<(), LeaseManagerError>
where
    F: Fn() -> W,
    W: Future<Output = ()>,
{
    let manager = LeaseManagerBuilder::new(client, &leadership.lease)
        .with_namespace(SYSTEM_NAMESPACE)
        .with_create_mode(LeaseCreateMode::AutoCreate)
        .with_identity(&leadership.identity)
        .with_duration(LEASE_SECONDS)
        .with_grace(GRACE_SECONDS)
        .build()
        .await?;
    loop {
        while !manager.changed().await? {}
        tracing::info!(
            lease = leadership.lease,
            identity = leadership.identity,
            "leading"
        );
        tokio::select! {
            () = work() => {}
            changed = async {
                while manager.changed().await? {}
                Ok::<(), LeaseManagerError>(())
            } => changed?,
        }
        tracing::warn!(
            lease = leadership.lease,
            identity = leadership.identity,
            "no longer leading"
        );
    }
}
