//! The shim: outlives the server, keeps time, keeps the log, has what the instance keeps weighed, and writes down how the run
//! ended.
//!
//! Invariant: nothing of the program is executed before `started` is on disk, and whoever holds the lock and finds it there
//! starts nothing. So a run is executed at most once, whoever dies when. The processes of the sandbox are started before, and
//! wait for the word: without a shim it never comes.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use heddle_api::action::Outcome;
use heddle_rt::Clock;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::setsid;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::super::cgroup::{Cgroup, LimitedBy};
use super::super::disk::{self, Excess};
use super::super::files::{Lock, RunFiles, remove_if_there, write_lightly};
use super::super::log::Log;
use super::super::mask::{Masker, secrets_of_variables};
use super::super::order::Order;
use super::proxy::{self, Proxy};
use super::report::{self, Report, Wanted};
use super::verdict::{Course, Ending, RunReport, verdict};
use super::weigh::weigh;
use super::{DEDICATED, again, namespaces};

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
    let taken = keep_files_to_ourselves().and_then(|()| take(directory));
    let done = taken.and_then(|taken| match taken {
        Some((order, files, lock)) => supervise(&order, &files, lock),
        None => Ok(()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody listens any more once the run began. Then nobody knows how it ended, and the files say so.
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
fn take(directory: &Path) -> io::Result<Option<(Order, RunFiles, Lock)>> {
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
    Ok(Some((order, files, lock)))
}

/// From here on the run is this shim's, and is not executed a second time.
fn begin(files: &RunFiles) -> io::Result<()> {
    files.write_started()?;
    answer(MINE);
    Ok(())
}

fn answer(line: &str) {
    // Whoever started this may be gone; the run goes on.
    writeln!(io::stdout(), "{line}").ok();
}

fn supervise(order: &Order, files: &RunFiles, lock: Lock) -> io::Result<()> {
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
    let executed = execute(order, files, &secrets);
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
    // Secrets are needed no more.
    let removed = remove_if_there(&files.order());
    let (course, init) = executed?;
    let RunReport {
        end,
        credentials,
        log,
    } = verdict(course, &ending);
    write_lightly(&files.log(), log.as_bytes())?;
    removed?;
    files.write_ended(&end, credentials)?;
    drop(lock);
    // What it takes the kernel to take a sandbox down is nobody's time but ours.
    if let Some(mut init) = init {
        init.wait().ok();
    }
    Ok(())
}

/// Runs it to its end, whatever that is, and hands over what may be left of process 1. An error means that nothing ran.
fn execute(
    order: &Order,
    files: &RunFiles,
    secrets: &[String],
) -> io::Result<(Course, Option<Child>)> {
    let not_executed = |course: Course| -> io::Result<(Course, Option<Child>)> {
        begin(files)?;
        Ok((course, None))
    };
    if files.cancelled().exists() {
        return not_executed(Course {
            stopped: Some(Outcome::Cancelled),
            ..Course::default()
        });
    }
    let unable = |why: String| {
        not_executed(Course {
            failed: Some(why),
            ..Course::default()
        })
    };
    let no_sandbox = |why: String| unable(format!("cannot start the sandbox: {why}"));
    let dedicated = match namespaces::become_root() {
        Ok(dedicated) => dedicated,
        Err(why) => return no_sandbox(why),
    };
    // By whom nothing that a program made can be hidden from.
    if let Some(why) = has_too_much(order) {
        return unable(why);
    }
    let (line, theirs) = UnixStream::pair()?;
    let (output, printer) = io::pipe()?;
    let (log, heard) = (Mutex::new(Log::default()), line.try_clone()?);
    let masker = || Masker::new(secrets.iter().cloned());
    let excess = OnceLock::new();
    let executed = std::thread::scope(|scope| {
        let (tx, rx) = mpsc::channel();
        scope.spawn(move || report::follow(heard, |report| pass_on(report, &tx)));
        scope.spawn(|| keep_log(output, masker(), &log));
        // Threads are started before the namespace of processes is, behind which the kernel allows none.
        let ((running, over), excess) = (mpsc::channel(), &excess);
        scope.spawn(move || weigh(order, &over, excess));
        // Gone with whatever comes to an end first: this, or the listener that never comes.
        let (_proxied, proxy_over) = oneshot::channel();
        let (listener, listening) = mpsc::channel();
        let has_network = order.run.limits.network;
        if has_network {
            let rules = &order.network_rules;
            let proxy = Proxy::new(Clock::system(), rules, &log, masker());
            scope.spawn(move || listening.recv().map(|it| proxy.serve(it, proxy_over)));
        }
        let inside = Inside {
            line: theirs,
            printer,
            dedicated,
            proxy: has_network.then_some(listener),
        };
        let mut init = match inside.start(order, &files.directory) {
            Ok(init) => init,
            Err(why) => return no_sandbox(why),
        };
        // It gets ready while the disk is busy, and waits.
        if let Err(error) = begin(files) {
            init.kill()?;
            init.wait()?;
            return Err(error);
        }
        report::let_go_on(&line);
        let course = watch(order, files, &mut init, &rx, excess, &log, &masker());
        drop(running);
        Ok((course, Some(init)))
    });
    executed.map(|(mut course, init)| {
        course.log = log.into_inner().text();
        (course, init)
    })
}

/// Why what the instance keeps forbids to start anything for it.
fn has_too_much(order: &Order) -> Option<String> {
    match disk::refusal(order.run.limits, order.run.action, &order.data) {
        Ok(excess) => excess.map(|excess| excess.to_string()),
        Err(error) => Some(format!("cannot look at what the instance keeps: {error}")),
    }
}

/// Behind how the program ended there is nothing more to hear: by then no process of it is left.
fn pass_on(report: Report, to: &Sender<Report>) -> Wanted {
    let is_last = matches!(report, Report::Exited(_) | Report::Signalled(_));
    match to.send(report) {
        Ok(()) if !is_last => Wanted::More,
        _ => Wanted::NoMore,
    }
}

/// What process 1 is given.
struct Inside {
    line: UnixStream,
    printer: PipeWriter,
    dedicated: bool,
    /// Serves what it is handed, from the machine's network.
    proxy: Option<Sender<TcpListener>>,
}

impl Inside {
    fn start(self, order: &Order, directory: &Path) -> Result<Child, String> {
        if let Some(proxy) = self.proxy {
            namespaces::part_with_the_network()?;
            // It waits for this, and says itself what is wrong with it.
            proxy.send(proxy::listen()?).ok();
        }
        namespaces::part_with_children()?;
        let mut command = again(&order.shim, directory, "init", self.line);
        if self.dedicated {
            command.env(DEDICATED, "1");
        }
        let printer = self.printer.try_clone();
        let started = printer.and_then(|printer| {
            command
                .stdout(Stdio::from(printer))
                .stderr(Stdio::from(self.printer))
                .spawn()
        });
        started.map_err(|error| format!("cannot start the first process inside: {error}"))
    }
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

/// Listens until no process of the program is left, and ends it when its time is up, when its instance keeps too much, or when
/// it is called off.
fn watch(
    order: &Order,
    files: &RunFiles,
    init: &mut Child,
    reports: &Receiver<Report>,
    excess: &OnceLock<Excess>,
    log: &Mutex<Log>,
    masker: &Masker,
) -> Course {
    let clock = Clock::system();
    let seconds_max = Duration::from_secs(u64::from(order.run.limits.seconds));
    let mut logged = (Duration::ZERO, 0);
    let mut course = Course::default();
    loop {
        match reports.recv_timeout(LOOK_EVERY) {
            Ok(Report::Progress(text)) => {
                // Told to people while it lasts; the next one comes.
                write_lightly(&files.progress(), masker.text(&text).as_bytes()).ok();
            }
            Ok(report) => course.hear(report),
            Err(RecvTimeoutError::Timeout) => {}
            // Whoever reported has told everything, or is gone.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if course.stopped.is_none() {
            course.stopped = if files.cancelled().exists() {
                Some(Outcome::Cancelled)
            } else if let Some(excess) = excess.get() {
                let why = excess.to_string();
                Some(Outcome::Killed { why })
            } else {
                (clock.monotonic() > seconds_max).then_some(Outcome::TimedOut)
            };
        }
        if course.stopped.is_some() {
            end_all(init);
        }
        if clock.monotonic() > logged.0 + LOG_EVERY {
            let text = log.lock().text();
            if text.len() != logged.1 {
                write_lightly(&files.log(), text.as_bytes()).ok();
            }
            logged = (clock.monotonic(), text.len());
        }
    }
    end_all(init);
    course
}

/// Process 1 takes everybody inside with it. It may be gone, which is what is wanted.
fn end_all(init: &mut Child) {
    init.kill().ok();
}
