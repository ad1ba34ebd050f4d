//! Limits for all processes of a run together, by control groups of either version.
//!
//! A group is made below the one this process is in, so whoever limits heddle limits its runs with it. With version 2 a group
//! that holds processes cannot pass controllers on; then the group above is tried, which is heddle's own when it is started
//! with a delegated subgroup. Where no group can be made each process is limited on its own, and the log says so.

#![expect(
    clippy::disallowed_methods,
    reason = "control groups are files of the kernel: no fault is injected there"
)]

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heddle_api::action::Limits;

/// How often a group whose last process just ended is tried to be removed, and how long is waited in between.
const REMOVALS_MAX: u32 = 50;
const REMOVAL_WAIT: Duration = Duration::from_millis(5);

/// What holds memory and processes within their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// All processes together.
    CgroupV2,
    /// All processes together.
    CgroupV1,
    /// Each process on its own: control groups cannot be written here.
    Rlimits,
}

impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CgroupV2 => "cgroup v2",
            Self::CgroupV1 => "cgroup v1",
            Self::Rlimits => "rlimits, each process on its own",
        })
    }
}

/// The control groups of one run.
#[derive(Debug)]
pub(super) struct Cgroup {
    pub(super) limited_by: LimitedBy,
    /// One with version 2; one for memory and one for processes with version 1.
    pub(super) directories: Vec<PathBuf>,
}

impl Cgroup {
    /// Makes the groups of a run; `None` where that cannot be done.
    pub(super) fn make(name: &str, limits: Limits) -> Option<Self> {
        let place = Place::of_this_process().ok()??;
        place.make(name, limits)
    }

    /// How many processes were killed because all of them together used too much memory.
    pub(super) fn oom_kills(&self) -> u64 {
        let file = match self.limited_by {
            LimitedBy::CgroupV2 => "memory.events",
            _ => "memory.oom_control",
        };
        counter(&self.directories[0].join(file), "oom_kill")
    }

    /// How often a process could not be made because there were too many.
    pub(super) fn refused_processes(&self) -> u64 {
        let last = self.directories.last().expect("a group has a directory");
        counter(&last.join("pids.events"), "max")
    }

    pub(super) fn remove(&self) {
        remove(&self.directories);
    }
}

/// Removes groups whose processes are gone or going.
pub(super) fn remove(directories: &[PathBuf]) {
    for directory in directories {
        for _ in 0..REMOVALS_MAX {
            match fs::remove_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(REMOVAL_WAIT);
                }
                _ => break,
            }
        }
    }
}

/// Puts the calling process into a group. It has no other thread.
pub(super) fn join(directory: &Path) -> io::Result<()> {
    // To move a process the kernel waits for all processors, some ten milliseconds. A thread that moves itself, which only
    // version 1 lets it do, waits for nobody.
    let threads = directory.join("tasks");
    let members = if threads.try_exists()? {
        threads
    } else {
        directory.join("cgroup.procs")
    };
    fs::write(members, "0")
}

/// Where groups may be made.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// To be tried in this order.
    V2(Vec<PathBuf>),
    V1 {
        memory: PathBuf,
        pids: PathBuf,
    },
}

impl Place {
    fn of_this_process() -> io::Result<Option<Self>> {
        let memberships = fs::read_to_string("/proc/self/cgroup")?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        Ok(Self::from(&memberships, &mounts))
    }

    /// Version 1 goes first: where both are mounted, a controller that version 1 has is missing in the other.
    fn from(memberships: &str, mounts: &str) -> Option<Self> {
        let v1 = |controller| v1_directory(controller, memberships, mounts);
        if let (Some(memory), Some(pids)) = (v1("memory"), v1("pids")) {
            return Some(Self::V1 { memory, pids });
        }
        let path = memberships
            .lines()
            .find_map(|line| line.strip_prefix("0::"))?;
        let (root, point) = mounts
            .lines()
            .find_map(|line| mount_of(line, "cgroup2", None))?;
        let own = below(&point, &root, path);
        let above = (own != point)
            .then(|| own.parent().map(Path::to_owned))
            .flatten();
        Some(Self::V2([Some(own), above].into_iter().flatten().collect()))
    }

    fn make(&self, name: &str, limits: Limits) -> Option<Cgroup> {
        match self {
            Self::V1 { memory, pids } => {
                let directories = vec![memory.join(name), pids.join(name)];
                let group = Cgroup {
                    limited_by: LimitedBy::CgroupV1,
                    directories,
                };
                group.set(|| limit_v1(&group.directories, limits))
            }
            Self::V2(places) => places.iter().find_map(|place| {
                // Refused while the group holds processes, and not needed where it is enabled already.
                fs::write(place.join("cgroup.subtree_control"), "+memory +pids").ok();
                let group = Cgroup {
                    limited_by: LimitedBy::CgroupV2,
                    directories: vec![place.join(name)],
                };
                group.set(|| limit_v2(&group.directories[0], limits))
            }),
        }
    }
}

impl Cgroup {
    /// All of it or nothing.
    fn set(&self, limit: impl FnOnce() -> io::Result<()>) -> Option<Self> {
        let made =
            self.directories
                .iter()
                .try_for_each(|directory| match fs::create_dir(directory) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => Ok(()),
                });
        match made.and_then(|()| limit()) {
            Ok(()) => Some(Self {
                limited_by: self.limited_by,
                directories: self.directories.clone(),
            }),
            Err(_) => {
                self.remove();
                None
            }
        }
    }
}

fn limit_v1(directories: &[PathBuf], limits: Limits) -> io::Result<()> {
    let bytes = limits.memory_bytes.to_string();
    fs::write(directories[0].join("memory.limit_in_bytes"), &bytes)?;
    // Kernels that do not account for swap have no such file.
    fs::write(directories[0].join("memory.memsw.limit_in_bytes"), &bytes).ok();
    fs::write(
        directories[1].join("pids.max"),
        limits.processes.to_string(),
    )
}

fn limit_v2(directory: &Path, limits: Limits) -> io::Result<()> {
    // These files exist only where the controller was passed on; a file of that name is never made here.
    let set = |file: &str, value: String| {
        let path = directory.join(file);
        if !path.try_exists()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        fs::write(path, value)
    };
    set("memory.max", limits.memory_bytes.to_string())?;
    set("pids.max", limits.processes.to_string())?;
    set("memory.swap.max", "0".to_owned()).ok();
    set("memory.oom.group", "1".to_owned()).ok();
    Ok(())
}

fn v1_directory(controller: &str, memberships: &str, mounts: &str) -> Option<PathBuf> {
    let path = memberships.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let listed = parts.next()?.split(',').any(|c| c == controller);
        parts.next().filter(|_| listed)
    })?;
    let (root, point) = mounts
        .lines()
        .find_map(|line| mount_of(line, "cgroup", Some(controller)))?;
    Some(below(&point, &root, path))
}

/// Which part of a hierarchy a line of mountinfo shows, and where.
fn mount_of(line: &str, kind: &str, option: Option<&str>) -> Option<(String, PathBuf)> {
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(3);
    let (root, point) = (front.next()?, front.next()?);
    let mut back = back.split(' ');
    let is_kind = back.next()? == kind;
    let options = back.nth(1)?;
    let has_option = option.is_none_or(|wanted| options.split(',').any(|o| o == wanted));
    (is_kind && has_option).then(|| (root.to_owned(), PathBuf::from(point)))
}

/// Where a membership is found in what is mounted.
fn below(point: &Path, root: &str, path: &str) -> PathBuf {
    let inside = Path::new(path)
        .strip_prefix(root)
        .unwrap_or_else(|_| Path::new(""));
    if inside.as_os_str().is_empty() {
        point.to_owned()
    } else {
        point.join(inside)
    }
}

/// A counter in a file of lines `name number`; zero where it is not told.
fn counter(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
