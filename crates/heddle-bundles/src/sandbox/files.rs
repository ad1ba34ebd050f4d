//! The files of a run, and what they prove.
//!
//! The runner and the shim know each other through this directory only. The lock is one of an open file, so it ends with the
//! last process that has the file open, however that ends, and looking at it does not take it.

#![expect(
    clippy::disallowed_methods,
    reason = "shared with other processes and other users: modes, locks and links matter, and faults come from killing them"
)]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use heddle_api::action::RunEnd;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use serde_json::{Map, Value};

/// The end of a run, with its log, in bytes.
const ENDED_BYTES_MAX: u64 = 4 << 20;

const CREDENTIALS_BYTES_MAX: u64 = 1 << 20;

/// The field of the end that holds what the run handed out.
const CREDENTIALS: &str = "credentials";

/// The directory of one run.
#[derive(Clone, Debug)]
pub(super) struct RunFiles {
    pub(super) directory: PathBuf,
}

/// What the files of a run prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunFilesState {
    /// Nothing of it was executed.
    Fresh,
    Running,
    Ended,
    /// It was begun and nobody is there who could end it.
    Abandoned,
}

impl RunFiles {
    pub(super) fn order(&self) -> PathBuf {
        self.directory.join("run.json")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.directory.join("lock")
    }

    pub(super) fn started(&self) -> PathBuf {
        self.directory.join("started")
    }

    pub(super) fn ended(&self) -> PathBuf {
        self.directory.join("ended.json")
    }

    pub(super) fn cancelled(&self) -> PathBuf {
        self.directory.join("cancel")
    }

    /// Where shims of earlier versions put what a run handed out.
    fn older_credentials(&self) -> PathBuf {
        self.directory.join("credentials.json")
    }

    pub(super) fn progress(&self) -> PathBuf {
        self.directory.join("progress")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Names the control groups of the run, one on each line.
    pub(super) fn cgroups(&self) -> PathBuf {
        self.directory.join("cgroups")
    }

    /// The order of questions matters: a run that ends while they are asked is seen as one that ended.
    pub(super) fn standing(&self) -> io::Result<RunFilesState> {
        if self.ended().try_exists()? {
            return Ok(RunFilesState::Ended);
        }
        if is_locked(&self.lock())? {
            return Ok(RunFilesState::Running);
        }
        if self.ended().try_exists()? {
            return Ok(RunFilesState::Ended);
        }
        Ok(if self.started().try_exists()? {
            RunFilesState::Abandoned
        } else {
            RunFilesState::Fresh
        })
    }

    pub(super) fn read_ended(&self) -> io::Result<RunEnd> {
        let bytes = read_bounded(&self.ended(), ENDED_BYTES_MAX)?;
        serde_json::from_slice(&bytes).map_err(io::Error::other)
    }

    /// From here on the run is never executed again. An empty file has no content to sync, only a name.
    pub(super) fn write_started(&self) -> io::Result<()> {
        open_private(&self.started())?;
        File::open(&self.directory)?.sync_all()
    }

    /// From here on the run is over, for everybody and for ever. What it handed out is in the same file, so that there is
    /// never one without the other.
    pub(super) fn write_ended(
        &self,
        end: &RunEnd,
        credentials: Option<Map<String, Value>>,
    ) -> io::Result<()> {
        let mut value = serde_json::to_value(end).map_err(io::Error::other)?;
        if let Some(credentials) = credentials {
            value[CREDENTIALS] = credentials.into();
        }
        write_whole(&self.ended(), value.to_string().as_bytes())
    }

    /// What a run that is over handed out.
    pub(super) fn read_credentials(&self) -> io::Result<Option<Map<String, Value>>> {
        let bytes = read_bounded(&self.ended(), ENDED_BYTES_MAX)?;
        let mut ended: Map<String, Value> =
            serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        if let Some(Value::Object(credentials)) = ended.remove(CREDENTIALS) {
            return Ok(Some(credentials));
        }
        match read_bounded(&self.older_credentials(), CREDENTIALS_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            bytes => serde_json::from_slice(&bytes?)
                .map(Some)
                .map_err(io::Error::other),
        }
    }

    pub(super) fn read_progress(&self) -> Option<String> {
        let bytes = read_bounded(&self.progress(), 4096).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// Holds a file for as long as it is open here or in a process that inherited it.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// `None` when somebody has it.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = open_private(path)?;
        match fcntl(file.as_raw_fd(), FcntlArg::F_OFD_SETLK(&whole_file())) {
            Ok(_) => Ok(Some(Self { file })),
            Err(nix::Error::EAGAIN | nix::Error::EACCES) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Leaves a note for people who look for the process.
    pub(super) fn note(&self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        (&self.file).write_all(text.as_bytes())
    }
}

fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut found = whole_file();
    fcntl(file.as_raw_fd(), FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(found.l_type != lock_type(libc::F_UNLCK))
}

fn whole_file() -> libc::flock {
    libc::flock {
        l_type: lock_type(libc::F_WRLCK),
        l_whence: lock_type(libc::SEEK_SET),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn lock_type(value: libc::c_int) -> libc::c_short {
    libc::c_short::try_from(value).expect("the kernel's own constants fit its own type")
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Makes a directory with those above it that are missing, for its owner alone.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Puts a file in place whole and safe.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let temporary = temporary_name(path);
    let file = open_private(&temporary)?;
    file.set_len(0)?;
    (&file).write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(directory)?.sync_all()
}

/// Replaces a file for those who look, whatever a loss of power makes of it.
pub(super) fn write_lightly(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_name(path);
    let file = open_private(&temporary)?;
    file.set_len(0)?;
    (&file).write_all(bytes)?;
    fs::rename(&temporary, path)
}

/// Nobody else's: several processes and threads may write a file at once.
fn temporary_name(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{count}.new", std::process::id()))
}

pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path)?;
    let taken = file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if taken as u64 > bytes_max {
        return Err(io::Error::other(format!("more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Removes a file that may be gone already.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Names in a directory that may be missing, sorted. Those that are not UTF-8 are nobody's here.
pub(super) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

#[cfg(test)]
mod tests;
