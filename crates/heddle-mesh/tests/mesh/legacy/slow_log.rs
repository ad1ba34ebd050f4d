//! A log that takes events at once and says so when a test lets it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_mesh::log::{
    AppendRefused, Batch, Draft, Journal, Log, LogFuture, Lookup, Offset, Room, SegmentInfo,
    Unavailable,
};
use heddle_store::Health;
use jiff::Timestamp;
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct SlowLog {
    inner: Arc<dyn Log>,
    answers: watch::Sender<bool>,
    appends: AtomicUsize,
}

impl SlowLog {
    pub(super) fn over(inner: Arc<dyn Log>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            answers: watch::Sender::new(false),
            appends: AtomicUsize::new(0),
        })
    }

    /// Appends are answered from now on, those before as well.
    pub(super) fn answer(&self) {
        self.answers.send_replace(true);
    }

    pub(super) fn appends(&self) -> usize {
        self.appends.load(Ordering::Relaxed)
    }
}

impl Log for SlowLog {
    fn append(&self, drafts: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
        self.appends.fetch_add(1, Ordering::Relaxed);
        let (appending, mut answers) = (self.inner.append(drafts), self.answers.subscribe());
        async move {
            answers.wait_for(|answers| *answers).await.unwrap();
            appending.await
        }
        .boxed()
    }

    fn bounds(&self) -> Range<Offset> {
        self.inner.bounds()
    }

    fn beyond(&self, offset: Offset) -> BoxFuture<'static, Offset> {
        self.inner.beyond(offset)
    }

    fn recent(&self, from: Offset, bytes_max: usize) -> Option<Batch> {
        self.inner.recent(from, bytes_max)
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable> {
        self.inner.read(from, bytes_max)
    }

    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable> {
        self.inner.get(offset)
    }

    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable> {
        self.inner.find(key, limit)
    }

    fn at_time(&self, at: Timestamp) -> Offset {
        self.inner.at_time(at)
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.inner.segments()
    }

    fn trim(&self, first: Offset) -> LogFuture<(), Unavailable> {
        self.inner.trim(first)
    }

    fn acknowledge(&self, lines: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
        self.inner.acknowledge(lines)
    }

    fn journal(&self) -> &dyn Journal {
        self.inner.journal()
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn survey(&self) {
        self.inner.survey();
    }

    fn room(&self) -> watch::Receiver<Room> {
        self.inner.room()
    }

    fn damaged(&self) -> u64 {
        self.inner.damaged()
    }

    fn damaged_at(&self) -> Vec<Range<Offset>> {
        self.inner.damaged_at()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.inner.close()
    }
}
