//! One set of controllers acts at a time: a Lease decides which.
//!
//! The holder renews it well before it ends; who loses it, or cannot renew it, stops acting at once and stands
//! again. Every destructive step is bound to a uid and every status to the object it was read from, so that even a
//! write that was under way when the lease was lost cannot hit a namesake.

use std::future::Future;
use std::time::Duration;

use heddle_api::well_known::SYSTEM_NAMESPACE;
use heddle_rt::Clock;
use kube::Client;
use kube_lease_manager::{LeaseCreateMode, LeaseManager, LeaseManagerBuilder, LeaseManagerError};

/// Seconds a lease lasts without being renewed, and how long before its end it is renewed.
const LEASE_SECONDS: u64 = 15;
const GRACE_SECONDS: u64 = 5;
/// How soon to stand again after the API server refused or could not be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// What to lead, and as whom.
#[derive(Debug, Clone)]
pub struct Leadership {
    pub lease: String,
    /// Two processes must never share it. One that comes back under its own takes its lease up again at once.
    pub identity: String,
}

/// Runs `work` whenever this process leads, and drops it as soon as it no longer does, until the future is dropped.
pub async fn lead<F, W>(client: Client, clock: Clock, leadership: Leadership, work: F)
where
    F: Fn() -> W,
    W: Future<Output = ()>,
{
    loop {
        if let Err(error) = hold_lease(&client, &leadership, &work).await {
            tracing::warn!(lease = leadership.lease, %error, "cannot hold the lease; standing again");
        }
        clock.sleep(PAUSE).await;
    }
}

/// From standing for the lease to losing it.
async fn hold_lease<F, W>(
    client: &Client,
    leadership: &Leadership,
    work: &F,
) -> Result<(), LeaseManagerError>
where
    F: Fn() -> W,
    W: Future<Output = ()>,
{
    let manager = LeaseManagerBuilder::new(client.clone(), &leadership.lease)
        .with_namespace(SYSTEM_NAMESPACE)
        .with_create_mode(LeaseCreateMode::AutoCreate)
        .with_identity(&leadership.identity)
        .with_duration(LEASE_SECONDS)
        .with_grace(GRACE_SECONDS)
        .build()
        .await?;
    until(&manager, true).await?;
    tracing::info!(
        lease = leadership.lease,
        identity = leadership.identity,
        "leading"
    );
    tokio::select! {
        () = work() => Ok(()),
        lost = until(&manager, false) => lost,
    }
}

async fn until(manager: &LeaseManager, leading: bool) -> Result<(), LeaseManagerError> {
    while manager.changed().await? != leading {}
    Ok(())
}
