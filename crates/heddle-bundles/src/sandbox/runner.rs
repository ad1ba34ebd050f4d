//! The server's side of runs: starts shims, and reads from their directories how runs stand.
//!
//! ```text
//!   runs/ID/          a run, until it is forgotten
//!   data/INSTANCE/    what an instance owns, from its first action to its last
//!   archives/         what instances left behind on purpose
//!   logs/ID           logs of runs that are forgotten, bounded in number and bytes
//!   trash/            on its way out: a name leaves its place in one step
//!   network.json      where runs may connect to, as this server says: shims of an earlier one heed it too
//! ```
//! It remembers nothing that is not in these directories, so another one on the same directory knows as much. Its methods
//! block for as long as files and the start of a process take; a start takes a few milliseconds.

mod archive;
mod watch;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heddle_api::action::{Outcome, Run, RunEnd, RunState};
use heddle_rt::{Chance, Clock};
use nix::unistd::{Gid, Uid, chown, geteuid};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::files::{self, RunFiles, RunFilesState};
use super::log::end_of;
use super::order::{Order, VARIABLES_BYTES_MAX};
use super::shim::{KNOWN, MINE, PROBE, Probed, read_answer};
use super::{Capabilities, Options, Program, SandboxError, cgroup};
use watch::Watch;

/// What is told with the end of a run that nobody ended.
const TAIL_BYTES_MAX: usize = 4 << 10;

/// A log with both halves and the note between them.
const LOG_BYTES_MAX: u64 = 2 << 20;

/// The file with the rules of the network.
const NETWORK_RULES: &str = "network.json";

/// The first line of a shim.
const ANSWER_BYTES_MAX: u64 = 4 << 10;

/// Starts runs and tells how they stand.
#[derive(Debug)]
pub struct Runner {
    options: Options,
    clock: Clock,
    chance: Chance,
    watch: Watch,
    /// What this machine can do, once that was found out. Held while it is found out.
    able: Mutex<Option<Capabilities>>,
}

impl Runner {
    /// Opens a directory of runs, with those that are under way in it.
    pub fn open(mut options: Options, clock: Clock, chance: Chance) -> Result<Self, SandboxError> {
        let directory = options.directory.clone();
        if options.shim.is_empty() {
            return Err(SandboxError::Invalid(
                "there is no command for shims".to_owned(),
            ));
        }
        for name in ["runs", "data", "archives", "logs", "trash", "probe"] {
            files::make_private(&directory.join(name)).map_err(SandboxError::io(format!(
                "make {name} in {}",
                directory.display()
            )))?;
        }
        options.directory = std::path::absolute(&directory)
            .map_err(SandboxError::io(format!("find {}", directory.display())))?;
        let runner = Self {
            options,
            clock,
            chance,
            watch: Watch::default(),
            able: Mutex::new(None),
        };
        let rules = &runner.options.network;
        rules
            .write(&runner.place(NETWORK_RULES))
            .map_err(SandboxError::io("write the rules of the network"))?;
        runner.empty_trash();
        runner.bound_archives();
        for id in files::names(&runner.place("runs")).map_err(SandboxError::io("list runs"))? {
            // One that cannot be read keeps nobody from the others; whoever looks at it is told.
            if let Err(error) = runner.look(&id) {
                tracing::warn!(run = id, %error, "a run cannot be read");
            }
        }
        Ok(runner)
    }

    /// Finds out whether sandboxes can be made here.
    pub fn check(&self) -> Result<Capabilities, SandboxError> {
        let mut able = self.able.lock();
        if let Some(capabilities) = *able {
            return Ok(capabilities);
        }
        let mut command = self.shim(&self.place("probe"));
        command.env(PROBE, self.options.user.to_string());
        let output = command
            .output()
            .map_err(SandboxError::io("start the shim"))?;
        let is_root = geteuid().is_root();
        let line = String::from_utf8_lossy(&output.stdout);
        match read_answer(&line) {
            Probed::Able(limited_by) => {
                let user = if is_root {
                    self.options.user
                } else {
                    geteuid().as_raw()
                };
                let found = Capabilities { user, limited_by };
                *able = Some(found);
                Ok(found)
            }
            Probed::Refused(why) => Err(SandboxError::Unable {
                why,
                remedy: remedy(is_root),
            }),
        }
    }

    /// Starts a run, unless it was started before. Once this has answered well the run is under way or over; after an error
    /// nothing ran.
    pub fn start(&self, run: &Run, root: &Path, program: &Program) -> Result<(), SandboxError> {
        let run_files = self.files(&run.id)?;
        let what = || format!("start run {}", run.id);
        check_run(run)?;
        if run_files.standing().map_err(SandboxError::io(what()))? != RunFilesState::Fresh {
            return Ok(());
        }
        self.check()?;
        let order = Order {
            run: run.clone(),
            root: root.to_owned(),
            data: self.make_data(&run.instance)?,
            program: program.clone(),
            shim: self.options.shim.iter().map(PathBuf::from).collect(),
            user: self.options.user,
            cgroups: self.options.cgroups,
            network_rules: self.place(NETWORK_RULES),
        };
        files::make_private(&run_files.directory)
            .and_then(|()| self.launch(&run_files, &order))
            .map_err(SandboxError::io(what()))?;
        self.watch.follow(&run.id, &run.instance, run_files);
        Ok(())
    }

    /// Returns when a shim has the run, be it the one that is started here or an earlier one.
    fn launch(&self, run_files: &RunFiles, order: &Order) -> io::Result<()> {
        let mut child = self
            .shim(&run_files.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().expect("it was asked for");
        // A shim that does not have the run does not listen, and says why.
        input.write_all(order.to_text().as_bytes()).ok();
        drop(input);
        let output = child.stdout.take().expect("it was asked for");
        let mut line = String::new();
        BufReader::new(output.take(ANSWER_BYTES_MAX)).read_line(&mut line)?;
        self.watch.adopt(child);
        match line.trim() {
            MINE | KNOWN => Ok(()),
            "" => Err(io::Error::other("the shim says nothing")),
            other => Err(io::Error::other(other.to_owned())),
        }
    }

    fn shim(&self, directory: &Path) -> Command {
        let (program, arguments) = self
            .options
            .shim
            .split_first()
            .expect("checked when this was opened");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(directory)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// How a run stands.
    pub fn look(&self, id: &str) -> Result<RunState, SandboxError> {
        let run_files = self.files(id)?;
        let what = || format!("look at run {id}");
        Ok(
            match run_files.standing().map_err(SandboxError::io(what()))? {
                RunFilesState::Fresh => RunState::Unheard,
                RunFilesState::Running => {
                    self.follow(id, &run_files);
                    RunState::Running {
                        progress: run_files.read_progress(),
                    }
                }
                RunFilesState::Ended => {
                    let end = run_files.read_ended().map_err(SandboxError::io(what()))?;
                    RunState::Ended(Box::new(end))
                }
                RunFilesState::Abandoned => {
                    self.clean_up(&run_files);
                    let log = self.log(id)?;
                    RunState::Ended(Box::new(RunEnd {
                        outcome: Outcome::Interrupted,
                        dashboard_url: None,
                        log_tail: end_of(&log, TAIL_BYTES_MAX).to_owned(),
                    }))
                }
            },
        )
    }

    /// Follows a run that somebody else started, an earlier server as a rule.
    fn follow(&self, id: &str, run_files: &RunFiles) {
        if !self.watch.follows(id) {
            // The order is gone when the run has just ended, which the next look finds out.
            let instance = Order::read(&run_files.directory).map(|order| order.run.instance);
            let instance = instance.unwrap_or_default();
            self.watch.follow(id, &instance, run_files.clone());
        }
    }

    /// What a shim would have taken away. Nothing of the run is left, since all of it died with the shim.
    fn clean_up(&self, run_files: &RunFiles) {
        // What stays behind costs little, and the next look tries again.
        files::remove_if_there(&run_files.order()).ok();
        if let Ok(listed) = files::read_bounded(&run_files.cgroups(), 1 << 16) {
            let listed = String::from_utf8_lossy(&listed).into_owned();
            let groups: Vec<PathBuf> = listed.lines().map(PathBuf::from).collect();
            cgroup::remove(&groups);
            files::remove_if_there(&run_files.cgroups()).ok();
        }
    }

    /// The credentials that a run which succeeded handed out, if it did.
    pub fn credentials(&self, id: &str) -> Result<Option<Map<String, Value>>, SandboxError> {
        let run_files = self.files(id)?;
        let what = || format!("read the credentials of run {id}");
        if self.standing(id)? != RunFilesState::Ended {
            return Ok(None);
        }
        run_files
            .read_credentials()
            .map_err(SandboxError::io(what()))
    }

    /// Has a run killed with all its processes, soon. It ends as cancelled unless it ended before.
    pub fn cancel(&self, id: &str) -> Result<(), SandboxError> {
        let run_files = self.files(id)?;
        if !run_files.directory.exists() {
            return Ok(());
        }
        files::write_whole(&run_files.cancelled(), b"")
            .map_err(SandboxError::io(format!("cancel run {id}")))
    }

    /// Forgets a run that ended: its secrets, its outcome. Its log stays for a while.
    pub fn forget(&self, id: &str) -> Result<(), SandboxError> {
        let run_files = self.files(id)?;
        match self.standing(id)? {
            RunFilesState::Running => return Err(SandboxError::Busy(id.to_owned())),
            RunFilesState::Abandoned | RunFilesState::Fresh => self.clean_up(&run_files),
            RunFilesState::Ended => {}
        }
        self.watch.leave(id);
        self.keep_log(id, &run_files)?;
        self.discard(&run_files.directory)
    }

    /// Removes what an instance kept from action to action. What it put into `archive` is kept among the archives.
    pub fn forget_instance(&self, instance: &str) -> Result<(), SandboxError> {
        check_name(instance)?;
        if let Some(id) = self.watch.under_way(instance) {
            return Err(SandboxError::Busy(id));
        }
        let data = self.place("data").join(instance);
        self.keep_archive(instance, &data)?;
        self.discard(&data)
    }

    /// What a run printed, within bounds and without secrets as far as they are known. Empty when nothing is kept.
    pub fn log(&self, id: &str) -> Result<String, SandboxError> {
        let run_files = self.files(id)?;
        let kept = self.place("logs").join(id);
        for path in [run_files.log(), kept] {
            match files::read_bounded(&path, LOG_BYTES_MAX) {
                Ok(bytes) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(SandboxError::io(format!("read the log of run {id}"))(error));
                }
            }
        }
        Ok(String::new())
    }

    /// Completes when some run may have ended or said something new since the mark `seen`, with the new mark.
    pub async fn changed(&self, seen: u64) -> u64 {
        self.watch.changed(&self.clock, seen).await
    }

    fn place(&self, name: &str) -> PathBuf {
        self.options.directory.join(name)
    }

    fn files(&self, id: &str) -> Result<RunFiles, SandboxError> {
        check_name(id)?;
        Ok(RunFiles {
            directory: self.place("runs").join(id),
        })
    }

    fn standing(&self, id: &str) -> Result<RunFilesState, SandboxError> {
        let standing = self.files(id)?.standing();
        standing.map_err(SandboxError::io(format!("look at run {id}")))
    }

    /// The directory that is the instance's own, and its program's.
    fn make_data(&self, instance: &str) -> Result<PathBuf, SandboxError> {
        let data = self.place("data").join(instance);
        let (uid, gid) = (
            Uid::from_raw(self.options.user),
            Gid::from_raw(self.options.user),
        );
        files::make_private(&data)
            .and_then(|()| {
                if geteuid().is_root() {
                    chown(&data, Some(uid), Some(gid))?;
                }
                Ok(())
            })
            .map_err(SandboxError::io(format!(
                "make the directory of instance {instance}"
            )))?;
        Ok(data)
    }
}

fn check_run(run: &Run) -> Result<(), SandboxError> {
    check_name(&run.instance)?;
    let limits = run.limits;
    let disk = limits.disk_bytes.min(limits.disk_files);
    if limits.memory_bytes == 0 || limits.processes == 0 || limits.seconds == 0 || disk == 0 {
        return Err(SandboxError::Invalid(format!(
            "run {} may use nothing at all",
            run.id
        )));
    }
    let variables = Value::Object(run.variables.clone()).to_string().len();
    if variables > VARIABLES_BYTES_MAX {
        let text = format!(
            "run {} is told {variables} bytes, of at most {VARIABLES_BYTES_MAX}",
            run.id
        );
        return Err(SandboxError::Invalid(text));
    }
    Ok(())
}

/// Names become names of files: nothing in them leads elsewhere.
fn check_name(name: &str) -> Result<(), SandboxError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=63).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let text = format!("{name:?} is not made of 1 to 63 lower-case letters, digits and dashes");
    Err(SandboxError::Invalid(text))
}

fn remedy(is_root: bool) -> &'static str {
    if is_root {
        "in a container, give it CAP_SYS_ADMIN and allow unshare, mount and pivot_root; on a machine, set \
         user.max_user_namespaces above zero and kernel.unprivileged_userns_clone and \
         kernel.apparmor_restrict_unprivileged_userns, where they exist, to 1 and 0"
    } else {
        "set user.max_user_namespaces above zero and kernel.unprivileged_userns_clone and \
         kernel.apparmor_restrict_unprivileged_userns, where they exist, to 1 and 0; in a container, also show /proc \
         unmasked; or start heddle as root"
    }
}
