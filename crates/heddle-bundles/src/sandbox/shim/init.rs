//! Process 1 of the sandbox: puts the mounts in place, has the program started, reaps whatever it leaves behind, and tells how
//! it ended and what it handed out.
//!
//! The process that becomes the program is started first and gets ready meanwhile. It waits for the mounts, and they
//! for the shim: until that has written down that the run began, nothing of the program is executed.
//!
//! All processes of the sandbox die with this one, and this one with those above it. Once the program is started it needs no
//! privileges and keeps none; the program cannot look into it, since it lives in another user namespace.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::prctl::{set_dumpable, set_pdeathsig};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, dup2, sethostname};

use super::super::order::Order;
use super::outputs::Out;
use super::report::{self, Report, Reporter, Wanted};
use super::{again, is_dedicated, mounts, namespaces, user};

/// How often is looked whether the program says something new about what it is doing.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run(directory: &Path) -> ExitCode {
    let Ok(reporter) = Reporter::on_stdin() else {
        return ExitCode::FAILURE;
    };
    let reporter = Arc::new(reporter);
    match live(directory, &reporter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            reporter.tell(&Report::Failed(why)).ok();
            ExitCode::FAILURE
        }
    }
}

fn live(directory: &Path, reporter: &Arc<Reporter>) -> Result<(), String> {
    let order = begin(directory)?;
    namespaces::part_with_the_rest(order.run.limits.network)?;
    let (program, line) = start_program(&order, directory)
        .map_err(|error| format!("cannot start the program's process: {error}"))?;
    sethostname("bundle").map_err(|error| format!("cannot name the sandbox: {error}"))?;
    mounts::prepare(&order)?;
    let out = Out::enter(&order.root.join("out"))
        .map_err(|error| format!("cannot enter /out: {error}"))?;
    if is_dedicated() {
        user::become_user(order.user)
            .map_err(|error| format!("cannot give up privileges: {error}"))?;
        ask_to_die()?;
    }
    // The program may be the same user. Being in another user namespace keeps it out; this is a second wall.
    set_dumpable(false).map_err(|error| format!("cannot hide from the program: {error}"))?;
    reporter.wait_to_go_on()?;
    report::let_go_on(&line);
    if let Some(why) = hear_of_failure(&line) {
        return Err(why);
    }
    watch_progress(out, reporter.clone())?;
    let ended = reap(program)?;
    end_everything();
    let tell = |report: &Report| reporter.tell(report).map_err(|error| error.to_string());
    tell(&Report::Outputs(out.take()))?;
    tell(&ended)
}

fn begin(directory: &Path) -> Result<Order, String> {
    // It ends everybody that it can reach.
    if std::process::id() != 1 {
        return Err("this is not the first process of a sandbox".to_owned());
    }
    ask_to_die()?;
    Order::read(directory).map_err(|error| format!("cannot read the order: {error}"))
}

/// Starts the process that becomes the program, and gives away what the program prints on: when the last process of the
/// program is gone, nobody can print any more.
fn start_program(order: &Order, directory: &Path) -> io::Result<(Pid, UnixStream)> {
    let (line, theirs) = UnixStream::pair()?;
    let child = again(&order.shim, directory, "program", theirs).spawn()?;
    let nothing = OpenOptions::new().write(true).open("/dev/null")?;
    for stream in [io::stdout().as_raw_fd(), io::stderr().as_raw_fd()] {
        dup2(nothing.as_raw_fd(), stream)?;
    }
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok((Pid::from_raw(pid), line))
}

/// Why nothing was executed. Its line is closed when the program is, and says nothing else.
fn hear_of_failure(line: &UnixStream) -> Option<String> {
    let mut failure = None;
    report::follow(line, |report| {
        if let Report::Failed(why) = report {
            failure = Some(why);
        }
        Wanted::More
    });
    failure
}

/// The parent cannot be seen from here. When it died before this was asked for, nobody lets this process go on.
pub(super) fn ask_to_die() -> Result<(), String> {
    set_pdeathsig(Signal::SIGKILL)
        .map_err(|error| format!("cannot ask to die with the shim: {error}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a process of its own, outside of simulated time"
)]
fn watch_progress(out: Out, reporter: Arc<Reporter>) -> Result<(), String> {
    let watch = move || {
        let mut told = None;
        loop {
            std::thread::sleep(PROGRESS_EVERY);
            let now = out.progress();
            if now != told
                && let Some(text) = &now
                && reporter.tell(&Report::Progress(text.clone())).is_err()
            {
                return;
            }
            told = now;
        }
    };
    let started = std::thread::Builder::new().spawn(watch);
    started
        .map(drop)
        .map_err(|error| format!("cannot watch the program: {error}"))
}

/// Waits for the program, and on the way for everybody who lost its parent.
fn reap(program: Pid) -> Result<Report, String> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => return Ok(Report::Exited(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                return Ok(Report::Signalled(signal as i32));
            }
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(format!("cannot wait for the program: {error}")),
        }
    }
}

/// A run is over when its program is. What it left running would go on writing.
fn end_everything() {
    while kill(Pid::from_raw(-1), Signal::SIGKILL).is_ok() {
        while matches!(waitpid(None, None), Ok(_) | Err(nix::Error::EINTR)) {}
    }
}
