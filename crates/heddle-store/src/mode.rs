//! Where a writer runs, and the way to it.

use parking_lot::Mutex;
use tokio::sync::mpsc;

/// Where the writer runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// On a thread of its own, which commits in groups.
    #[default]
    Thread,
    /// Inside each call, one batch at a time: for simulated worlds, where threads would make two
    /// runs differ and paused time would run past a commit that is under way.
    Inline,
}

/// The way to a writer. Closing takes away what is behind it.
#[derive(Debug)]
pub(crate) enum WriterDoor<R, W> {
    /// Requests to a thread, which ends when nobody can send it any more.
    Thread(Mutex<Option<mpsc::Sender<R>>>),
    Inline(Mutex<Option<Box<W>>>),
}

impl<R, W> WriterDoor<R, W> {
    pub(crate) fn thread(requests: mpsc::Sender<R>) -> Self {
        Self::Thread(Mutex::new(Some(requests)))
    }

    pub(crate) fn inline(writer: W) -> Self {
        Self::Inline(Mutex::new(Some(Box::new(writer))))
    }
}
