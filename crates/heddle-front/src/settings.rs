//! What an operator may choose.
//!
//! Most of it exists because platforms and their test suites contradict each other; the defaults follow the specification.

use std::time::Duration;

/// The choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where instances go whose platform names no namespace.
    pub namespace: String,
    /// What becomes of a request that announces no version.
    pub missing_version: MissingVersion,
    /// What is answered when a platform asks after something that is gone.
    pub deleted_poll: DeletedPoll,
    /// How long a platform that cannot wait for later is kept waiting now. Well below the minute after which platforms
    /// give a request up.
    pub sync_wait: Duration,
    /// How long an operation may take to be answered as done although the platform would ask again.
    pub fast_wait: Duration,
    /// How long after the start an empty catalog is not shown while registries have yet to be read for the first time.
    pub initial_catalog_wait: Duration,
    /// How many instances may wait for a registry to be read that may have what they ask for.
    pub awaiting_catalog_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "default".to_owned(),
            missing_version: MissingVersion::BadRequest,
            deleted_poll: DeletedPoll::Succeeded,
            sync_wait: Duration::from_secs(10),
            fast_wait: Duration::ZERO,
            initial_catalog_wait: Duration::from_secs(60),
            awaiting_catalog_max: 100,
        }
    }
}

/// What becomes of a request without a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingVersion {
    /// 400, as the specification says since 2.16.
    BadRequest,
    /// 412, as it said before.
    PreconditionFailed,
    /// It is taken for the oldest version that is understood.
    Accept,
}

/// What is answered after a removal has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletedPoll {
    /// 200, succeeded.
    Succeeded,
    /// 410.
    Gone,
}
