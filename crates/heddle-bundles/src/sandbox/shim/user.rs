//! Becoming a user with nothing to its name.

#![expect(
    clippy::disallowed_methods,
    reason = "these files are switches of the kernel"
)]

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_dumpable;
use nix::unistd::{Gid, Uid, getegid, geteuid, setgroups, setresgid, setresuid};

/// Who the program believes to be. Not root: what is not root loses its capabilities when a program is executed.
const INSIDE: u32 = 1000;

/// Gives up being root for good.
pub(super) fn become_user(user: u32) -> nix::Result<()> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}

/// Enters a user namespace that owns nothing: neither the mounts nor the network belong to it, so capabilities in it are
/// worth nothing, and the program has none of them.
pub(super) fn enter_own_namespace() -> io::Result<()> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    // Changing the user made the files of this process in /proc root's.
    set_dumpable(true)?;
    unshare(CloneFlags::CLONE_NEWUSER)?;
    map(INSIDE, uid, gid)?;
    // No further ones: they are the way to most of the kernel's weak spots. Kernels that do not know the switch keep going.
    fs::write("/proc/sys/user/max_user_namespaces", "0").ok();
    Ok(())
}

/// Makes one user and its group known in the user namespace that this process has just made.
pub(super) fn map(inside: u32, uid: u32, gid: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{inside} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{inside} {gid} 1"))
}
