//! Answers as far as somebody may have them: without what lies in namespaces that are not theirs, and without data that they
//! may not read. Pure.

use heddle_api::access::{Access, Right, Scope};
use heddle_api::ledger::Accounts;

use crate::ledger::Error;

/// The accounts of consumers that somebody may know of. The log is that of all namespaces.
pub(super) fn accounts(mut accounts: Accounts, access: &Access) -> Accounts {
    accounts
        .consumers
        .retain(|account| access.sees(&account.consumer));
    match access.scope {
        Scope::All => accounts,
        Scope::Namespaces(_) => Accounts {
            consumers: accounts.consumers,
            ..Accounts::default()
        },
    }
}

/// Whether somebody may do something in a namespace.
pub(super) fn check(access: &Access, right: Right, namespace: Option<&str>) -> Result<(), Error> {
    match access.may(right, namespace) {
        true => Ok(()),
        false => Err(Error::Forbidden(access.refusal(right, namespace))),
    }
}
