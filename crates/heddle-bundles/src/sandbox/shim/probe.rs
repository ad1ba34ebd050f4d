//! Tries whether a sandbox can be made here, with nothing in it.
//!
//! It takes the same steps as a run, in the same order, and stops at the first that is refused. It answers with one line.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use heddle_api::action::Limits;
use nix::mount::MsFlags;

use super::super::cgroup::{Cgroup, LimitedBy};
use super::{DEDICATED, PROBE, init, is_dedicated, mounts, namespaces, user};

/// What a probe found out.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Probed {
    Able(LimitedBy),
    Refused(String),
}

/// What the second process of a probe finds in its environment, before the user to become.
const INSIDE: &str = "inside-";

pub(super) fn run(directory: &Path) -> ExitCode {
    let asked = std::env::var_os(PROBE).unwrap_or_default();
    let asked = asked.to_string_lossy();
    let answer = match asked.strip_prefix(INSIDE) {
        Some(user) => probe_inside(directory, user).map(|()| "able".to_owned()),
        None => probe_outside(&asked),
    };
    let line = answer.unwrap_or_else(|why| format!("refused {why}"));
    // Whoever asked sees that nothing came.
    writeln!(io::stdout(), "{line}").ok();
    ExitCode::SUCCESS
}

/// Reads the line that a probe answered with.
pub(in super::super) fn read_answer(line: &str) -> Probed {
    match line.trim() {
        "able v2" => Probed::Able(LimitedBy::CgroupV2),
        "able v1" => Probed::Able(LimitedBy::CgroupV1),
        "able rlimits" => Probed::Able(LimitedBy::Rlimits),
        "" => Probed::Refused("the shim says nothing".to_owned()),
        other => Probed::Refused(other.strip_prefix("refused ").unwrap_or(other).to_owned()),
    }
}

fn probe_outside(user: &str) -> Result<String, String> {
    let limited_by = probe_cgroup();
    let dedicated = namespaces::become_root()?;
    namespaces::part_with_children()?;
    let this =
        std::env::current_exe().map_err(|error| format!("cannot find this binary: {error}"))?;
    let mut command = Command::new(this);
    command
        .args(std::env::args_os().skip(1))
        .env_clear()
        .env(PROBE, format!("{INSIDE}{user}"))
        .stdin(Stdio::null());
    if dedicated {
        command.env(DEDICATED, "1");
    }
    let output = command
        .output()
        .map_err(|error| format!("cannot start a process inside: {error}"))?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "able" => Ok(match limited_by {
            LimitedBy::CgroupV2 => "able v2",
            LimitedBy::CgroupV1 => "able v1",
            LimitedBy::Rlimits => "able rlimits",
        }
        .to_owned()),
        other => Err(other.trim_start_matches("refused ").to_owned()),
    }
}

fn probe_cgroup() -> LimitedBy {
    let limits = Limits {
        memory_bytes: 64 << 20,
        processes: 64,
        seconds: 1,
        network: false,
        disk_bytes: 1 << 30,
        disk_files: 100_000,
    };
    let name = format!("heddle-probe-{}", std::process::id());
    Cgroup::make(&name, limits).map_or(LimitedBy::Rlimits, |group| {
        group.remove();
        group.limited_by
    })
}

fn probe_inside(directory: &Path, user: &str) -> Result<(), String> {
    init::ask_to_die()?;
    let user = user.parse().map_err(|_| format!("{user} is no user"))?;
    namespaces::part_with_the_rest(false)?;
    mounts::keep_to_ourselves()?;
    mounts::file_system("tmpfs", directory, MsFlags::empty(), "size=64k")?;
    let proc = directory.join("proc");
    nix::unistd::mkdir(&proc, nix::sys::stat::Mode::S_IRWXU)
        .map_err(|error| format!("cannot make a directory in a file system of its own: {error}"))?;
    mounts::file_system("proc", &proc, MsFlags::MS_NOEXEC, "")?;
    mounts::make_root(directory)?;
    if is_dedicated() {
        user::become_user(user).map_err(|error| format!("cannot become user {user}: {error}"))?;
    }
    user::enter_own_namespace()
        .map_err(|error| format!("the kernel refuses user namespaces: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_understood_and_silence_is_a_refusal() {
        assert_eq!(read_answer("able v1\n"), Probed::Able(LimitedBy::CgroupV1));
        assert_eq!(
            read_answer("refused no\n"),
            Probed::Refused("no".to_owned())
        );
        assert!(matches!(read_answer(""), Probed::Refused(_)));
    }
}
