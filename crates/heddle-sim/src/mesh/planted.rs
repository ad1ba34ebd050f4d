//! Meshes that are wrong on purpose.

use std::ops::Range;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_mesh::journal::{self, Checkpoint, JournalRecord};
use heddle_mesh::log::{
    AppendRefused, Batch, Draft, Journal, Log, LogFuture, Lookup, Offset, Room, SegmentInfo,
    Unavailable,
};
use heddle_rt::vfs::{TwistedVfs, Vfs};
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
            Self::LazySync => Arc::new(TwistedVfs::lazy(disk, 0)),
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
