//! A directory: what was recorded of an old mesh, by us or by whoever exports another one.
//!
//! ```text
//!   recording.json        the format, and how many lines and which checksum each of the other files has
//!   objects.jsonl         one object a line
//!   channels.jsonl        one channel a line, with how far its subscriptions are
//!   events-000001.jsonl   one event a line, each channel's in order; and so on
//!   progress.jsonl        what has been acknowledged since: the only file that is ever written to
//! ```
//! Every line is `{"crc32c":"…","record":…}`, with the checksum of the record's bytes as they stand. Everything is verified
//! before anything is answered, and again when an event is read: a line that is damaged, missing or out of order is named by
//! file and number, and nothing is taken from a recording that has one. Its limits are in `limits`.

pub(crate) mod fuzzing;
mod index;
pub(crate) mod line;
mod progress;
mod ranges;
mod reader;
pub mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heddle_rt::{Tasks, Vfs};
use parking_lot::Mutex;
use serde_json::Value;

use self::index::Index;
use self::progress::ReaderProgress;
use self::reader::RecordedReader;
use crate::counters::{Channel, Fence, FenceHold, Subscription, SubscriptionId};
use crate::origin::{Answer, Error, Origin, Reader};

/// What a recording may hold.
pub mod limits {
    /// One line of it: the largest payload in base 64, with room for its headers.
    pub const LINE_BYTES_MAX: usize = 12 << 20;
    pub const FILES_MAX: usize = 10_000;
    pub const OBJECTS_MAX: usize = 100_000;
    pub const CHANNELS_MAX: usize = 100_000;
    pub const EVENTS_MAX: usize = 5_000_000;
    /// Damaged lines that are named; more are counted.
    pub const NAMED_MAX: usize = 100;
}

/// A recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tasks: Tasks,
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// What was verified, and the `recording.json` it was verified with.
    verified: Mutex<Option<(Vec<u8>, Arc<Index>)>>,
    progress: Mutex<ReaderProgress>,
}

impl Recorded {
    /// Nothing is read before something has to be known.
    #[must_use]
    pub fn new(tasks: Tasks, vfs: Arc<dyn Vfs>, dir: &Path) -> Self {
        let inner = Inner {
            tasks,
            vfs,
            dir: dir.to_owned(),
            verified: Mutex::default(),
            progress: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Does something that reads files, which blocks.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> Answer<'static, T> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let tasks = inner.tasks.clone();
            let done = tasks.blocking("recording", move || work(&inner)).await;
            done.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
        })
    }
}

impl Inner {
    /// The recording as it is now, verified.
    fn index(&self) -> Result<Arc<Index>, Error> {
        let found = index::recording(&*self.vfs, &self.dir)?;
        let mut verified = self.verified.lock();
        if let Some((bytes, index)) = &*verified
            && *bytes == found
        {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(Index::verify(&*self.vfs, &self.dir, &found)?);
        self.progress.lock().load(&*self.vfs, &self.dir)?;
        *verified = Some((found, Arc::clone(&index)));
        Ok(index)
    }

    fn subscriptions(&self, channel: &str) -> Result<Vec<Subscription>, Error> {
        let index = self.index()?;
        let found = index.channel(channel)?;
        let progress = self.progress.lock();
        let subscriptions = found.subscriptions.iter();
        let counted = subscriptions.map(|recorded| progress.of(recorded).counted(found));
        Ok(counted.collect())
    }
}

impl Origin for Recorded {
    fn objects(&self) -> Answer<'_, Vec<Value>> {
        self.ask(|inner| Ok(inner.index()?.objects.clone()))
    }

    fn channels(&self) -> Answer<'_, Vec<Channel>> {
        self.ask(|inner| {
            let index = inner.index()?;
            Ok(index
                .channels
                .values()
                .map(index::Recording::counted)
                .collect())
        })
    }

    fn subscriptions(&self, channel: &str) -> Answer<'_, Vec<Subscription>> {
        let channel = channel.to_owned();
        self.ask(move |inner| inner.subscriptions(&channel))
    }

    /// Whoever still records is found out by the counters.
    fn fence(&self, channel: &str) -> Answer<'_, Fence> {
        let channel = channel.to_owned();
        self.ask(move |inner| {
            let index = inner.index()?;
            let counted = index.channel(&channel)?.counted();
            Ok(Fence {
                channel,
                high_water: counted.high_water,
                hold: FenceHold::Watched,
            })
        })
    }

    fn lift_fence(&self, _channel: &str) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn take_over(&self, subscription: &SubscriptionId) -> Answer<'_, Box<dyn Reader>> {
        let (id, recorded) = (subscription.clone(), self.clone());
        self.ask(move |inner| {
            let index = inner.index()?;
            let reader = RecordedReader::begin(recorded, &index, &id)?;
            Ok(Box::new(reader) as Box<dyn Reader>)
        })
    }
}

#[cfg(test)]
mod tests;
