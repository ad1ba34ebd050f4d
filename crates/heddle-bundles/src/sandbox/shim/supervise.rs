//! The shim: outlives the server, keeps time, keeps the log, and writes down how the run ended.
//!
//! Invariant: nothing of the program is executed before `started` is on disk, and whoever holds the lock and finds it there
//! starts nothing. So a run is executed at most once, whoever dies when.

use std::io::{self, PipeReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use heddle_api::action::{Outcome, RunEnd};
use heddle_rt::Clock;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, setsid};
use parking_lot::Mutex;

use super::super::cgroup::{Cgroup, LimitedBy};
use super::super::files::{Lock, RunFiles, remove_if_there, write_lightly, write_whole};
use super::super::log::Log;
use super::super::mask::{Masker, secrets_of_variables};
use super::super::order::Order;
use super::again;
use super::report::{self, Report};
use super::verdict::{Course, Ending, verdict};

/// What the shim tells whoever started it, in one line: that the run is its own from now on, or somebody's already.
pub(in super::super) const MINE: &str = "mine";
pub(in super::super) const KNOWN: &str = "known";

/// How often is looked whether the run was called off or took too long.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often those who look at the log of a run under way see something new.
const LOG_EVERY: Duration = Duration::from_millis(500);

pub(super) fn run(directory: &Path) -> ExitCode {
    // A signal to the server's terminal is not for us. It fails only for whoever leads a session already.
    setsid().ok();
    let begun = keep_files_to_ourselves().and_then(|()| begin(directory));
    match begun {
        Ok(Some((order, files, lock))) => {
            let end = supervise(&order, &files);
            // Secrets are needed no more. Without an end written down nobody knows how it ended, and the files say so.
            let written = remove_if_there(&files.order())
                .and(end)
                .and_then(|end| files.write_ended(&end));
            drop(lock);
            written.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            answer(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Files that whoever started the server left open in it, and the server in us, are not for programs.
fn keep_files_to_ourselves() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if number > 2 {
            // The one that lists the others is closed by now, or closes itself.
            fcntl(number, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok();
        }
    }
    Ok(())
}

/// Takes the run, unless it was taken before.
fn begin(directory: &Path) -> io::Result<Option<(Order, RunFiles, Lock)>> {
    let files = RunFiles {
        directory: directory.to_owned(),
    };
    let Some(lock) = Lock::take(&files.lock())? else {
        answer(KNOWN);
        return Ok(None);
    };
    // Seen by whoever holds the lock, so this is no race.
    if files.ended().try_exists()? || files.started().try_exists()? {
        answer(KNOWN);
        return Ok(None);
    }
    lock.note(&format!("{}\n", std::process::id()))?;
    let order = Order::take(&files, io::stdin().lock())?;
    write_whole(&files.started(), b"")?;
    answer(MINE);
    Ok(Some((order, files, lock)))
}

fn answer(line: &str) {
    // Whoever started this may be gone; the run goes on.
    writeln!(io::stdout(), "{line}").ok();
}

fn supervise(order: &Order, files: &RunFiles) -> io::Result<RunEnd> {
    let limits = order.run.limits;
    let name = format!("heddle-{}", order.run.id);
    let cgroup = order.cgroups.then(|| Cgroup::make(&name, limits)).flatten();
    let groups: Vec<String> = cgroup
        .iter()
        .flat_map(|group| &group.directories)
        .map(|directory| directory.display().to_string())
        .collect();
    let limited_by = cgroup
        .as_ref()
        .map_or(LimitedBy::Rlimits, |group| group.limited_by);
    write_lightly(&files.cgroups(), groups.join("\n").as_bytes())?;

    let secrets = secrets_of_variables(&order.run.variables);
    let course = execute(order, files, secrets.clone());
    let ending = Ending {
        oom_kills: cgroup.as_ref().map_or(0, Cgroup::oom_kills),
        refused_processes: cgroup.as_ref().map_or(0, Cgroup::refused_processes),
        limited_by,
        limits,
        secrets,
    };
    if let Some(group) = &cgroup {
        group.remove();
    }
    let verdict = verdict(course, &ending);
    if let Some(credentials) = &verdict.credentials {
        write_whole(&files.credentials(), credentials.as_bytes())?;
    }
    write_lightly(&files.log(), verdict.log.as_bytes())?;
    Ok(verdict.end)
}

/// Runs it to its end, whatever that is.
fn execute(order: &Order, files: &RunFiles, secrets: Vec<String>) -> Course {
    if files.cancelled().exists() {
        return Course {
            stopped: Some(Outcome::Cancelled),
            ..Course::default()
        };
    }
    let launched = launch(order, &files.directory);
    let (child, reports, output) = match launched {
        Ok(launched) => launched,
        Err(error) => {
            return Course {
                failed: Some(format!("cannot start the sandbox: {error}")),
                ..Course::default()
            };
        }
    };
    let log = Mutex::new(Log::default());
    let mut course = std::thread::scope(|scope| {
        let (tx, rx) = mpsc::channel();
        scope.spawn(move || {
            report::follow(reports, |report| {
                tx.send(report).ok();
            });
        });
        scope.spawn(|| keep_log(output, Masker::new(secrets.iter().cloned()), &log));
        watch(
            order,
            files,
            child,
            &rx,
            &log,
            &Masker::new(secrets.iter().cloned()),
        )
    });
    course.log = log.into_inner().text();
    course
}

fn launch(order: &Order, directory: &Path) -> io::Result<(Child, PipeReader, PipeReader)> {
    let (reports, reporter) = io::pipe()?;
    let (output, printer) = io::pipe()?;
    let child = again(&order.shim, directory, "enter")
        .stdin(Stdio::from(reporter))
        .stdout(Stdio::from(printer.try_clone()?))
        .stderr(Stdio::from(printer))
        .spawn()?;
    Ok((child, reports, output))
}

/// Takes what is printed as fast as it comes, so that a program waits for nobody.
fn keep_log(mut output: PipeReader, mut masker: Masker, log: &Mutex<Log>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => log.lock().push(&masker.feed(&buffer[..read])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    log.lock().push(&masker.finish());
}

/// Listens until nobody is left inside, and ends it when its time is up or it is called off.
fn watch(
    order: &Order,
    files: &RunFiles,
    mut child: Child,
    reports: &Receiver<Report>,
    log: &Mutex<Log>,
    masker: &Masker,
) -> Course {
    let clock = Clock::system();
    let seconds_max = Duration::from_secs(u64::from(order.run.limits.seconds));
    let mut logged = (Duration::ZERO, 0);
    let mut course = Course::default();
    let mut init = None;
    loop {
        match reports.recv_timeout(LOOK_EVERY) {
            Ok(Report::Init(pid)) => init = Some(Pid::from_raw(pid)),
            Ok(Report::Progress(text)) => {
                // Told to people while it lasts; the next one comes.
                write_lightly(&files.progress(), masker.text(&text).as_bytes()).ok();
            }
            Ok(report) => course.hear(report),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if course.stopped.is_none() {
            course.stopped = if files.cancelled().exists() {
                Some(Outcome::Cancelled)
            } else {
                (clock.monotonic() > seconds_max).then_some(Outcome::TimedOut)
            };
        }
        if course.stopped.is_some() {
            end_all(&mut child, init);
        }
        if clock.monotonic() > logged.0 + LOG_EVERY {
            let text = log.lock().text();
            if text.len() != logged.1 {
                write_lightly(&files.log(), text.as_bytes()).ok();
            }
            logged = (clock.monotonic(), text.len());
        }
    }
    end_all(&mut child, init);
    child.wait().ok();
    course
}

/// Process 1 takes everybody inside with it. The one above it goes too, in case that was not heard of yet.
fn end_all(child: &mut Child, init: Option<Pid>) {
    // Both may be gone, which is what is wanted.
    if matches!(child.try_wait(), Ok(None)) {
        if let Some(init) = init {
            kill(init, Signal::SIGKILL).ok();
        }
        child.kill().ok();
    }
}
