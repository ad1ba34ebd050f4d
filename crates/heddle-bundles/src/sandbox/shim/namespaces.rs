//! The namespaces of a sandbox, made in three steps because each can be taken by one process only.
//!
//! The shim becomes root where it is not, and has its children live apart; only a child can. Process 1 leaves everything else
//! behind by itself: what the shim needs to write down the end is still there for the shim. Real root makes all of them as it is, so
//! that they belong to the machine and nothing inside has any say over them.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::user;

/// Becomes root of a user namespace, unless this is root anyway. Whether it was, so that programs can have a user of their
/// own. Refused to a process with threads.
pub(super) fn become_root() -> Result<bool, String> {
    let (uid, gid) = (geteuid(), getegid());
    if uid.is_root() {
        return Ok(true);
    }
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|error| format!("the kernel refuses user namespaces: {error}"))?;
    user::map(0, uid.as_raw(), gid.as_raw())
        .map_err(|error| format!("the kernel refuses to map this user: {error}"))?;
    Ok(false)
}

/// The next process that this thread starts is process 1 of those that it starts from then on. It can start no more threads.
pub(super) fn part_with_children() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWPID).map_err(refused)
}

/// Gives this thread, and what it starts from then on, a network with nothing in it. The other threads keep the machine's.
pub(super) fn part_with_the_network() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(refused)
}

/// Parts with everything else of the machine. Its network was left before where one with a proxy was made.
pub(super) fn part_with_the_rest(has_network: bool) -> Result<(), String> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if !has_network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).map_err(refused)
}

fn refused(error: nix::Error) -> String {
    format!("the kernel refuses namespaces to root: {error}")
}
