//! The second process: makes the namespaces, in which only its child can live.
//!
//! Root makes them as it is, so that they belong to the machine and nothing inside has any say over them. Anybody else makes a
//! user namespace first and is root in that.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::super::order::Order;
use super::report::{Report, Reporter};
use super::{DEDICATED, again, die_with_parent, user};

pub(super) fn run(directory: &Path) -> ExitCode {
    let Ok(reporter) = Reporter::on_stdin() else {
        return ExitCode::FAILURE;
    };
    match enter(directory, &reporter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Without a shim there is nobody to tell.
            reporter.tell(&Report::Failed(why)).ok();
            ExitCode::FAILURE
        }
    }
}

fn enter(directory: &Path, reporter: &Reporter) -> Result<(), String> {
    die_with_parent()?;
    let order =
        Order::read(directory).map_err(|error| format!("cannot read the order: {error}"))?;
    let dedicated = make_namespaces(order.run.limits.network)?;
    let mut command = again(&order.shim, directory, "init");
    if dedicated {
        command.env(DEDICATED, "1");
    }
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot start the first process inside: {error}"))?;
    let told = tell_of(child.id(), reporter);
    if told.is_err() {
        child.kill().map_err(|error| error.to_string())?;
    }
    child.wait().map_err(|error| error.to_string())?;
    Ok(())
}

fn tell_of(pid: u32, reporter: &Reporter) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    reporter.tell(&Report::Init(pid))
}

/// Whether the program gets a user of its own.
pub(super) fn make_namespaces(network: bool) -> Result<bool, String> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if !network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    let (uid, gid) = (geteuid(), getegid());
    if uid.is_root() {
        unshare(flags)
            .map_err(|error| format!("the kernel refuses namespaces to root: {error}"))?;
        return Ok(true);
    }
    unshare(flags | CloneFlags::CLONE_NEWUSER)
        .map_err(|error| format!("the kernel refuses user namespaces: {error}"))?;
    user::map(0, uid.as_raw(), gid.as_raw())
        .map_err(|error| format!("the kernel refuses to map this user: {error}"))?;
    Ok(false)
}
