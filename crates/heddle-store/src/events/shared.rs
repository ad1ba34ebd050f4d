//! What the handles, the writer and the keeper of a log share.
//!
//! Locks are taken one at a time, none while another is held, with one exception: the extent of a
//! segment is read while the list of segments is held for reading.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use heddle_rt::Clock;
use heddle_rt::vfs::{Lock, Vfs, VfsFile, is_exhausted};
use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::watch;

use super::cache::Cache;
use super::manifest::Manifest;
use super::pending::{Intake, Pending};
use super::segment::Segment;
use super::stats::AppendCounters;
use super::{Damage, DamageKind, Limits};
use crate::{Health, Mode};

/// Damage kept for whoever asks; more is counted and logged only.
const DAMAGE_MAX: usize = 1024;

pub(super) struct Shared {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    pub(super) clock: Clock,
    pub(super) limits: Limits,
    pub(super) mode: Mode,
    pub(super) mark: u32,
    pub(super) pending: Mutex<Pending>,
    /// Told when something waits and the writer sleeps.
    pub(super) work: Condvar,
    pub(super) segments: RwLock<Segments>,
    pub(super) cache: RwLock<Cache>,
    pub(super) committed: watch::Sender<u64>,
    pub(super) counters: Mutex<AppendCounters>,
    pub(super) damage: Mutex<Found>,
    pub(super) manifest: Mutex<Manifest>,
    pub(super) spare: Mutex<Option<Spare>>,
    /// How many spare files there have been: each has a name of its own.
    pub(super) spares: AtomicU64,
    /// How many segments this process has begun.
    pub(super) begun: AtomicU64,
    /// The last write was refused for want of something that may come back.
    pub(super) full: AtomicBool,
    /// What that was, if not room.
    pub(super) short_of: Mutex<Option<Arc<str>>>,
    pub(super) lock: Mutex<Option<Lock>>,
}

/// The files of the log, and what is in none of them.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) by_first: BTreeMap<u64, Arc<Segment>>,
    /// Offsets that were lost before this process began, sorted.
    pub(super) missing: Vec<Range<u64>>,
}

/// All damage that was found, each once.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) list: Vec<Damage>,
    pub(super) count: u64,
}

/// A file made ready to become a segment.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn VfsFile>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("dir", &self.dir)
            .field("committed", &self.committed())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn committed(&self) -> u64 {
        *self.committed.borrow()
    }

    pub(super) fn health(&self) -> Health {
        if let Intake::Poisoned(reason) = &self.pending.lock().intake {
            return Health::Poisoned(reason.to_string());
        }
        if self.full.load(Ordering::Relaxed) {
            let short_of = self.short_of.lock();
            return match &*short_of {
                Some(reason) => Health::Exhausted(reason.to_string()),
                None => Health::Full,
            };
        }
        Health::Serving
    }

    /// Takes no appends any more; what waits is still written.
    pub(super) fn close(&self) {
        let mut pending = self.pending.lock();
        if pending.intake == Intake::Open {
            pending.intake = Intake::Closed;
        }
        pending.closing = true;
        drop(pending);
        self.work.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.pending.lock().closing
    }

    pub(super) fn is_open(&self) -> bool {
        self.pending.lock().intake == Intake::Open
    }

    pub(super) fn poison(&self, reason: Arc<str>) {
        let mut pending = self.pending.lock();
        if !matches!(pending.intake, Intake::Poisoned(_)) {
            tracing::error!(dir = %self.dir.display(), %reason, "the event log takes nothing until a restart");
            pending.intake = Intake::Poisoned(reason);
        }
    }

    /// A disk that failed is not asked to keep anything more; a system that has too little of something may be, later.
    pub(super) fn failed(&self, doing: &str, error: &io::Error) {
        if is_exhausted(error) {
            tracing::warn!(dir = %self.dir.display(), %error, "{doing} has to wait");
        } else {
            self.poison(format!("{doing} failed: {error}").into());
        }
    }

    pub(super) fn is_poisoned(&self) -> Option<Arc<str>> {
        match &self.pending.lock().intake {
            Intake::Poisoned(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Remembers damage, once.
    pub(super) fn note(&self, damage: Damage) {
        let mut found = self.damage.lock();
        let known = found.list.iter().any(|known| {
            known.kind == damage.kind
                && known.path == damage.path
                && known.position == damage.position
        });
        if known {
            return;
        }
        found.count += 1;
        if found.list.len() < DAMAGE_MAX {
            tracing::error!(%damage, "the event log is damaged");
            found.list.push(damage);
        }
    }

    /// The segment with this offset, or the first one after it.
    pub(super) fn segment_from(&self, offset: u64) -> Option<Arc<Segment>> {
        let segments = self.segments.read();
        let before = segments.by_first.range(..=offset).next_back();
        match before {
            Some((_, segment)) if offset < segment.next() => Some(segment.clone()),
            _ => segments
                .by_first
                .range(offset.saturating_add(1)..)
                .next()
                .map(|(_, segment)| segment.clone()),
        }
    }

    pub(super) fn all_segments(&self) -> Vec<Arc<Segment>> {
        self.segments.read().by_first.values().cloned().collect()
    }

    /// What was lost between these offsets, as damage.
    pub(super) fn missing(&self, offsets: &Range<u64>) -> Vec<Damage> {
        let segments = self.segments.read();
        let overlap = |range: &Range<u64>| {
            let both = range.start.max(offsets.start)..range.end.min(offsets.end);
            (!both.is_empty()).then_some(both)
        };
        let lost = segments.missing.iter().filter_map(overlap);
        lost.map(|offsets| missing_damage(&self.dir, offsets))
            .collect()
    }

    /// Gives the room of the spare file back, when there is one.
    pub(super) fn release_spare(&self) -> bool {
        let Some(spare) = self.spare.lock().take() else {
            return false;
        };
        self.vfs.remove(&spare.path).is_ok()
    }
}

/// Offsets that are in no segment.
pub(super) fn missing_damage(dir: &Path, offsets: Range<u64>) -> Damage {
    Damage {
        path: dir.join(super::segment_name(offsets.start)),
        position: 0,
        offsets,
        kind: DamageKind::Missing,
    }
}
