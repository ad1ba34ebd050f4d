//! Who asks, as the door found out, for the line that is written when the answer is there.
//!
//! The layer that writes lines is around the door, so that it hears of what the door refuses as well. It puts an
//! [`AuditSlip`] among the extensions of the request, and the door fills it in.

use std::sync::Arc;

use heddle_api::audit::{AuditEntry, bounded};
use heddle_apiserver::Identity;
use parking_lot::Mutex;

/// Groups that are kept of somebody.
const GROUPS_MAX: usize = 16;
/// Of one of them, and of a name.
const NAME_BYTES_MAX: usize = 256;

/// Who it is, once that is known. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditSlip(Arc<Mutex<Option<AuditCaller>>>);

/// Somebody who came in.
#[derive(Clone, Debug)]
pub(crate) struct AuditCaller {
    pub(crate) identity: Identity,
    /// Whose token it was, if that is somebody else.
    pub(crate) impersonator: Option<Arc<str>>,
    pub(crate) session: bool,
}

impl AuditSlip {
    pub(crate) fn fill_in(&self, caller: AuditCaller) {
        *self.0.lock() = Some(caller);
    }

    /// Adds to a line who it was, if anybody knows.
    pub(super) fn add_to(&self, entry: &mut AuditEntry) {
        if let Some(caller) = &*self.0.lock() {
            caller.add_to(entry);
        }
    }
}

impl AuditCaller {
    pub(super) fn add_to(&self, entry: &mut AuditEntry) {
        let identity = &self.identity;
        entry.user = Some(bounded(&identity.user, NAME_BYTES_MAX));
        let groups = identity.groups.iter().take(GROUPS_MAX);
        entry.groups = groups.map(|group| bounded(group, NAME_BYTES_MAX)).collect();
        let access = identity.access();
        entry.role = access.map(|access| access.role.name().to_owned());
        let impersonator = self.impersonator.as_deref();
        entry.impersonator = impersonator.map(|name| bounded(name, NAME_BYTES_MAX));
        entry.session = self.session;
    }
}
