//! The last process before the program, which it becomes: takes its place in the world, gives up everything, executes.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use heddle_api::action::Run;
use nix::sys::prctl::{set_no_new_privs, set_thp_disable};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{Mode, umask};

use super::super::cgroup;
use super::super::disk::Bound;
use super::super::files::{RunFiles, read_bounded};
use super::super::order::Order;
use super::report::{Report, Reporter};
use super::{is_dedicated, mounts, proxy, syscalls, user};

/// Open files of one process.
const FILES_MAX: u64 = 1024;

/// One file may have so many bytes even where an instance may keep fewer: it may be one in `/tmp`.
const FILE_BYTES_MIN: u64 = 64 << 20;

/// Where the variables are, as Ansible wants to be told. Their values are no arguments: those can be read by everybody on the
/// machine for as long as the program runs.
const VARIABLES: &str = "@/run/bundle/variables.json";

/// Where programs are looked for when the image does not say.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) fn run(directory: &Path) -> ExitCode {
    let Ok(reporter) = Reporter::on_stdin() else {
        return ExitCode::FAILURE;
    };
    let Err(why) = become_program(directory, &reporter);
    reporter.tell(&Report::Failed(why)).ok();
    ExitCode::FAILURE
}

fn become_program(
    directory: &Path,
    reporter: &Reporter,
) -> Result<std::convert::Infallible, String> {
    let order =
        Order::read(directory).map_err(|error| format!("cannot read the order: {error}"))?;
    let mut command = command(&order)?;
    // The longest of what can be done before the mounts are there.
    let grouped = join_groups(directory)
        .map_err(|error| format!("cannot join the control group: {error}"))?;
    prefer_to_be_killed();
    reporter.wait_to_go_on()?;
    mounts::make_root(&order.root)?;
    if is_dedicated() {
        user::become_user(order.user)
            .map_err(|error| format!("cannot give up privileges: {error}"))?;
    }
    user::enter_own_namespace()
        .map_err(|error| format!("cannot enter a user namespace: {error}"))?;
    limit(&order.run, grouped).map_err(|error| format!("cannot set limits: {error}"))?;
    set_no_new_privs().map_err(|error| format!("cannot give up privileges for good: {error}"))?;
    syscalls::restrict()?;
    umask(Mode::from_bits_truncate(0o022));
    // The server does without huge pages, and what it starts inherits that; the program has the choice again.
    set_thp_disable(false).ok();
    let error = command.exec();
    Err(format!(
        "cannot execute {}: {error}",
        command.get_program().display()
    ))
}

/// Whether there is a group to limit all processes together.
fn join_groups(directory: &Path) -> io::Result<bool> {
    let files = RunFiles {
        directory: directory.to_owned(),
    };
    let listed = String::from_utf8_lossy(&read_bounded(&files.cgroups(), 1 << 16)?).into_owned();
    for group in listed.lines() {
        cgroup::join(&PathBuf::from(group))?;
    }
    Ok(!listed.is_empty())
}

/// When the machine runs out of memory, a run goes before the server does.
#[expect(
    clippy::disallowed_methods,
    reason = "this file is a switch of the kernel"
)]
fn prefer_to_be_killed() {
    std::fs::write("/proc/self/oom_score_adj", "500").ok();
}

fn limit(run: &Run, grouped: bool) -> nix::Result<()> {
    let limits = run.limits;
    // Stops at once a program that writes one file without end, which is counted only now and then.
    let file_bytes = Bound::of(limits, run.action).bytes.max(FILE_BYTES_MIN);
    set(Resource::RLIMIT_CORE, 0)?;
    set(Resource::RLIMIT_NOFILE, FILES_MAX)?;
    set(Resource::RLIMIT_FSIZE, file_bytes)?;
    if !grouped {
        set(Resource::RLIMIT_AS, limits.memory_bytes)?;
        set(Resource::RLIMIT_NPROC, u64::from(limits.processes))?;
    }
    Ok(())
}

/// What is limited further already stays so.
fn set(resource: Resource, limit: u64) -> nix::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let limit = limit.min(hard);
    setrlimit(resource, limit, limit)
}

/// The program with what it is told. Its arguments are those that Ansible playbook bundles get.
fn command(order: &Order) -> Result<Command, String> {
    let program = &order.program;
    let words = if program.entrypoint.is_empty() {
        &program.cmd
    } else {
        &program.entrypoint
    };
    let (first, more) = words
        .split_first()
        .ok_or("the image does not say which program to execute")?;
    let mut command = Command::new(first);
    command
        .args(more)
        .arg(order.run.action.word())
        .arg("--extra-vars")
        .arg(VARIABLES)
        .env_clear()
        .envs(environment(order))
        .current_dir(if program.working_dir.is_empty() {
            "/"
        } else {
            &program.working_dir
        })
        .stdin(Stdio::null());
    Ok(command)
}

/// What the contract promises wins over what the image says, except for where programs are looked for.
fn environment(order: &Order) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
    let of_image = order
        .program
        .env
        .iter()
        .filter_map(|pair| pair.split_once('='));
    all.extend(of_image.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let version = order.run.bundle_version.clone().unwrap_or_default();
    let ours = [
        ("BUNDLE_ACTION", order.run.action.word().to_owned()),
        ("BUNDLE_VERSION", version),
        ("BUNDLE_DATA_PATH", order.data.display().to_string()),
        ("HOME", "/tmp".to_owned()),
    ];
    all.extend(ours.map(|(name, value)| (name.to_owned(), value)));
    if order.run.limits.network {
        let ways = proxy::VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
        all.extend(ways);
    }
    all
}
