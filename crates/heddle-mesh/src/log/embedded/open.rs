//! Opening: the mirror, then the journal with what the mirror knows of it, then the log with what the journal knows.
//!
//! Each copy of the journal makes up for what the other has lost; a directory that an older release wrote gets its mirror
//! here. Log and journal must belong together: what one speaks of and the other does not have is refused, because offsets
//! would be given out again. [`super::repair`] accepts the loss when somebody asks for it.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use heddle_store::events::{self, EventLog, Known};

use super::identity::{self, Clash, DIRS, Identity};
use super::journal::EmbeddedJournal;
use super::mirror::{self, CopyError, Mirrored};
use super::snapshots::Snapshots;
use super::{EmbeddedLog, Offset, Options};
use crate::log::room::RoomGate;

pub(super) const EVENTS_DIR: &str = "log";
pub(super) const JOURNAL_DIR: &str = "journal";
pub(super) const MIRROR_DIR: &str = "journal-mirror";

/// A record of the journal may hold a dead letter, which is an event and more, behind other lines.
const JOURNAL_RECORD_BYTES_MAX: usize = 8 << 20;
/// Only one append of the journal is under way at a time, and it cannot be divided: the checkpoint in it counts on every line.
/// What is in it came from attempts, so their number bounds it; refusing it as too much would refuse it for ever.
const JOURNAL_PENDING_BYTES_MAX: usize = 1 << 30;
/// The mirror is read when something is damaged, which need not be fast.
const MIRROR_CACHE_BYTES_MAX: usize = 256 << 10;

/// Why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] heddle_store::OpenError),
    /// Look at the disk.
    #[error("the two copies of the journal cannot be made equal: {0}")]
    Copies(String),
    /// Put the right files back, or accept the loss.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Log and journal do not belong together. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error(
        "{dir}/log is gone, and the journal speaks of events up to offset {used}; put it back, or run `heddle repair events --dry-run` to see what would be lost"
    )]
    LogMissing { dir: PathBuf, used: Offset },
    #[error(
        "{dir}/log ends at offset {end}, and the journal speaks of events up to {used}: an older copy was put back, or its end is gone; put the newer one back, or run `heddle repair events --dry-run` to see what would be lost"
    )]
    LogBehind {
        dir: PathBuf,
        end: Offset,
        used: Offset,
    },
    #[error(
        "{dir}/journal and {dir}/journal-mirror are gone or empty, and the log has events up to offset {used}; put one of them back, or run `heddle repair events --dry-run` to see what would be lost"
    )]
    JournalMissing { dir: PathBuf, used: Offset },
    #[error(
        "{dir}/{one} and {dir}/{other} are of two installations; put back the one that belongs here, or move {dir}/{other} away to see what is lost without it"
    )]
    Strangers {
        dir: PathBuf,
        one: &'static str,
        other: &'static str,
    },
    #[error(
        "{dir}/{place} is what belongs in {dir}/{role}: they were exchanged; give each its own name back"
    )]
    Exchanged {
        dir: PathBuf,
        place: &'static str,
        role: &'static str,
    },
}

impl From<CopyError> for OpenError {
    fn from(error: CopyError) -> Self {
        Self::Copies(error.to_string())
    }
}

impl From<events::ReadError> for OpenError {
    fn from(error: events::ReadError) -> Self {
        CopyError::from(error).into()
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| heddle_store::OpenError::Io { path, source }.into()
}

impl EmbeddedLog {
    /// Opens what is in `options.dir`, or makes it.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let installation = agreed(&options)?;
        let dir = options.dir.join(EVENTS_DIR);
        let exists = EventLog::mark_of(&*options.vfs, &dir)?.is_some();
        let journal = EmbeddedJournal::open(&options)?;
        let spoken_of = journal.scanned()?;
        if !exists && spoken_of > 1 {
            return Err(Mismatch::LogMissing {
                dir: options.dir,
                used: spoken_of,
            }
            .into());
        }
        let known = Known {
            safe: spoken_of,
            used: 0,
        };
        let events = open_one(&options, EVENTS_DIR, known)?;
        compare(&options.dir, &events, &journal, spoken_of)?;
        let installation = installation.unwrap_or_else(|| number(&events, &journal));
        let signed = sign(&options, installation)?.then_some(installation);
        journal.keep_copying(options.clock.clone(), &options.tasks);
        let gate = RoomGate::new(
            &*options.vfs,
            options.dir.clone(),
            options.clock,
            options.reserve,
        );
        Ok(Self {
            events,
            journal,
            gate,
            dir: options.dir,
            signed,
            astray: AtomicBool::new(false),
            vfs: options.vfs,
        })
    }

    /// Whether the directories are still those that were opened.
    pub(super) fn is_at_home(&self) -> bool {
        let Some(installation) = self.signed else {
            return true;
        };
        DIRS.into_iter().zip(0..).all(|(name, role)| {
            let identity = Identity { installation, role };
            !identity.is_gone(&*self.vfs, &self.dir.join(name))
        })
    }
}

/// The installation that the directories belong to, if they say so and agree.
pub(super) fn agreed(options: &Options) -> Result<Option<u64>, OpenError> {
    let mut found = [None; 3];
    for (slot, name) in found.iter_mut().zip(DIRS) {
        let dir = options.dir.join(name);
        *slot = Identity::of(&*options.vfs, &dir).map_err(io(&dir))?;
    }
    let dir = options.dir.clone();
    identity::agree(found).map_err(|clash| {
        let mismatch = match clash {
            Clash::Strangers(one, other) => Mismatch::Strangers { dir, one, other },
            Clash::Exchanged { place, role } => Mismatch::Exchanged { dir, place, role },
        };
        mismatch.into()
    })
}

/// A number for an installation that has none.
fn number(events: &EventLog, journal: &EmbeddedJournal) -> u64 {
    (u64::from(events.mark()) << 32) | u64::from(journal.mark())
}

/// Writes down whose the directories are, where that is not written yet. Gives whether there was room for it.
fn sign(options: &Options, installation: u64) -> Result<bool, OpenError> {
    for (name, role) in DIRS.into_iter().zip(0..) {
        let dir = options.dir.join(name);
        let wanted = Identity { installation, role };
        let written = Identity::of(&*options.vfs, &dir).map_err(io(&dir))?;
        if written != Some(wanted) {
            match wanted.write(&*options.vfs, &dir) {
                // A full disk is no reason to stop; it is written at another start.
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return Ok(false),
                other => other.map_err(io(&dir))?,
            }
        }
    }
    Ok(true)
}

/// Whether the log and the journal speak of the same events.
pub(super) fn compare(
    dir: &Path,
    events: &EventLog,
    journal: &EmbeddedJournal,
    spoken_of: Offset,
) -> Result<(), Mismatch> {
    let (dir, end) = (dir.to_owned(), events.committed());
    if end < spoken_of {
        let used = spoken_of;
        return Err(Mismatch::LogBehind { dir, end, used });
    }
    // A table is safe in the journal before the first event is taken.
    if end > 1 && journal.is_empty() {
        return Err(Mismatch::JournalMissing { dir, used: end });
    }
    Ok(())
}

impl EmbeddedJournal {
    /// Both copies of the journal, the first one as long as the second.
    pub(crate) fn open(options: &Options) -> Result<Self, OpenError> {
        let dir = options.dir.join(JOURNAL_DIR);
        let exists = EventLog::mark_of(&*options.vfs, &dir)?.is_some();
        let mirror = open_one(options, MIRROR_DIR, Known::default())?;
        let mirrored_to = mirror::end_of(&mirror)?;
        let known = Known {
            safe: mirrored_to,
            // A journal that is gone as a whole begins again where its mirror begins.
            used: if exists {
                0
            } else {
                mirror::start_of(&mirror)?
            },
        };
        let primary = open_one(options, JOURNAL_DIR, known)?;
        let mirrored = Mirrored::new(primary, mirror, mirrored_to);
        let restored = wait_for(mirrored.restore())?;
        if restored > 0 {
            tracing::warn!(
                records = restored,
                "the journal had lost records at its end; its mirror had them"
            );
        }
        Ok(Self {
            mirrored: Arc::new(mirrored),
            snapshots: Snapshots {
                dirs: [JOURNAL_DIR, MIRROR_DIR].map(|name| options.dir.join(name)),
            },
            vfs: options.vfs.clone(),
        })
    }
}

pub(super) fn open_one(options: &Options, name: &str, known: Known) -> Result<EventLog, OpenError> {
    let dir = options.dir.join(name);
    let mut inner = events::Options::new(options.vfs.clone(), dir, options.clock.clone());
    inner.tasks = options.tasks.child(name);
    inner.mode = options.mode;
    inner.known = known;
    if let Some(bytes) = options.segment_bytes {
        inner.limits.segment_bytes = bytes;
        inner.limits.reserve_bytes = inner.limits.reserve_bytes.min(bytes);
    }
    if name != EVENTS_DIR {
        inner.limits.record_bytes_max = JOURNAL_RECORD_BYTES_MAX;
        inner.limits.pending_bytes_max = JOURNAL_PENDING_BYTES_MAX;
    }
    if name == MIRROR_DIR {
        inner.limits.cache_bytes_max = MIRROR_CACHE_BYTES_MAX;
        // Nobody waits for it, so nothing is made ready for it.
        inner.limits.reserve_bytes = 0;
    }
    Ok(EventLog::open(inner)?)
}

/// Waits for appends while a log is opened, when nothing is served yet. Their answers come from the log's own threads.
pub(super) fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
