//! Which services of an Application can be offered, given what all Applications claim.
//!
//! Whether an id or a name is taken depends on every other Application, and reading all of them in every reconcile would cost
//! their number squared. So this is kept in a register that the watch of Applications feeds. It may lag behind the server
//! as any cache does; a verdict that changes with it wakes the Applications it is about, so none stays wrong.

use heddle_api::application::{Application, RejectedService};
use heddle_api::offer::{Mode, Register};
use kube::ResourceExt as _;
use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;

use crate::watch::Change;

#[derive(Debug)]
pub(crate) struct Rivals {
    mode: Mode,
    store: Store<Application>,
    /// Filled from the whole first list at once. Filled one by one, it would find the first Applications without rivals and
    /// take that back a moment later, at every start.
    register: Mutex<Option<Register>>,
}

impl Rivals {
    pub(crate) fn new(mode: Mode, store: Store<Application>) -> Self {
        Self {
            mode,
            store,
            register: Mutex::new(None),
        }
    }

    /// Takes in a change, and names the other Applications that it concerns.
    pub(super) fn heed(&self, change: &Change<'_, Application>) -> Vec<ObjectRef<Application>> {
        let concerned = self.with(|register| match change {
            Change::Deleted(gone) => register.remove(&gone.name_any()),
            _ => register.put(change.object()),
        });
        concerned.iter().map(|name| ObjectRef::new(name)).collect()
    }

    pub(super) fn rejected(&self, application: &Application) -> Vec<RejectedService> {
        self.with(|register| register.rejected(application))
    }

    /// Invariant: nobody asks and nothing changes before the first list is in the store.
    fn with<T>(&self, act: impl FnOnce(&mut Register) -> T) -> T {
        let mut register = self.register.lock();
        let fill = || {
            let applications = self.store.state();
            Register::of(self.mode, applications.iter().map(|shared| &**shared))
        };
        act(register.get_or_insert_with(fill))
    }
}
