//! Meshes that are wrong on purpose.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_mesh::journal::{self, Checkpoint, JournalRecord};
use heddle_mesh::log::{
    AppendRefused, Batch, Draft, Journal, Log, LogFuture, Lookup, Offset, Room, SegmentInfo,
    Unavailable,
};
use heddle_rt::vfs::{Lock, Open, Space, Vfs, VfsFile};
use heddle_store::Health;
use jiff::Timestamp;
use tokio::sync::watch;

/// What is wrong, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    Nothing,
    /// Syncing does nothing and says that it did.
    LazySync,
    /// An attempt that failed is written down as if it had succeeded, before it has.
    HastyJournal,
    /// Failures are not written down at all, although everything else that counts on them is.
    LossyJournal,
    /// What cannot be read for a moment is taken for gone.
    HastyReader,
}

impl Planted {
    pub(super) fn disk(self, disk: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
        match self {
            Self::LazySync => Arc::new(Lazy(disk)),
            Self::Nothing | Self::HastyJournal | Self::LossyJournal | Self::HastyReader => disk,
        }
    }

    pub(super) fn log(self, log: Arc<dyn Log>) -> Arc<dyn Log> {
        match self {
            Self::HastyJournal => Arc::new(Wrong {
                log,
                rewrite: hasty,
                gives_up: false,
            }),
            Self::LossyJournal => Arc::new(Wrong {
                log,
                rewrite: lossy,
                gives_up: false,
            }),
            Self::HastyReader => Arc::new(Wrong {
                log,
                rewrite: |lines| lines,
                gives_up: true,
            }),
            Self::Nothing | Self::LazySync => log,
        }
    }
}

#[derive(Debug)]
struct Lazy(Arc<dyn Vfs>);

#[derive(Debug)]
struct LazyFile(Arc<dyn VfsFile>);

impl Vfs for Lazy {
    fn open(&self, path: &Path, options: Open) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(LazyFile(self.0.open(path, options)?)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.0.space(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.0.lock(path)
    }
}

impl VfsFile for LazyFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn evict(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A log that does not write down what it is told, or does not look twice.
#[derive(Debug)]
struct Wrong {
    log: Arc<dyn Log>,
    rewrite: fn(Vec<JournalRecord>) -> Vec<JournalRecord>,
    gives_up: bool,
}

fn hasty(lines: Vec<JournalRecord>) -> Vec<JournalRecord> {
    let done = |line| match line {
        JournalRecord::Failed { attempted, .. } => JournalRecord::Delivered(attempted),
        line => line,
    };
    lines.into_iter().map(done).collect()
}

fn lossy(lines: Vec<JournalRecord>) -> Vec<JournalRecord> {
    let lost = |line: &JournalRecord| {
        matches!(line, JournalRecord::Dead(_) | JournalRecord::Failed { .. })
    };
    lines.into_iter().filter(|line| !lost(line)).collect()
}

impl Log for Wrong {
    fn append(&self, drafts: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
        self.log.append(drafts)
    }

    fn bounds(&self) -> Range<Offset> {
        self.log.bounds()
    }

    fn beyond(&self, offset: Offset) -> BoxFuture<'static, Offset> {
        self.log.beyond(offset)
    }

    fn recent(&self, from: Offset, bytes_max: usize) -> Option<Batch> {
        self.log.recent(from, bytes_max)
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable> {
        self.log.read(from, bytes_max)
    }

    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable> {
        match self.log.get(offset) {
            Err(_) if self.gives_up => Ok(Lookup::Gone),
            found => found,
        }
    }

    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable> {
        self.log.find(key, limit)
    }

    fn at_time(&self, at: Timestamp) -> Offset {
        self.log.at_time(at)
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.log.segments()
    }

    fn trim(&self, first: Offset) -> LogFuture<(), Unavailable> {
        self.log.trim(first)
    }

    fn acknowledge(&self, lines: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
        let rewritten: Vec<Vec<u8>> = lines.iter().map(|draft| self.payload(draft)).collect();
        let drafts: Vec<Draft<'_>> = lines
            .iter()
            .zip(&rewritten)
            .map(|(draft, payload)| Draft {
                key: draft.key,
                parts: [payload, &[]],
            })
            .collect();
        self.log.acknowledge(&drafts).boxed()
    }

    fn journal(&self) -> &dyn Journal {
        self.log.journal()
    }

    fn health(&self) -> Health {
        self.log.health()
    }

    fn survey(&self) {
        self.log.survey();
    }

    fn room(&self) -> watch::Receiver<Room> {
        self.log.room()
    }

    fn damaged_at(&self) -> Vec<Range<Offset>> {
        self.log.damaged_at()
    }

    fn damaged(&self) -> u64 {
        self.log.damaged()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.log.close()
    }
}

impl Wrong {
    /// As many records as there were, so that every other line is where the mesh believes it to be. None is empty: a mesh
    /// takes such a one for lost, and makes up for it.
    fn payload(&self, draft: &Draft<'_>) -> Vec<u8> {
        let lines = journal::decode(&draft.parts.concat()).expect("the mesh wrote it");
        let mut lines = (self.rewrite)(lines);
        if lines.is_empty() {
            lines.push(JournalRecord::Checkpoint(Checkpoint::default()));
        }
        let records = journal::encode(&lines);
        records
            .into_iter()
            .flat_map(|record| record.payload)
            .collect()
    }
}
